"""How does a first study look?  A commented file that validates and runs as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from evalspec.artifacts.study import API_VERSIONS
from evalspec.language.example import SYSTEMS, questions_jsonl, recorded_csv
from evalspec.language.grammar import build_grammar
from evalspec.language.scalars import quoted
from evalspec.protocols import Catalogue

STUDY, QUESTIONS, RECORDED, SCHEMA = "study.yaml", "questions.jsonl", "recorded.csv", "evalspec.schema.json"

HEAD = f"""# yaml-language-server: $schema={SCHEMA}
# A first study. Change it piece by piece; `evalspec validate {STUDY}` names every fault with its line.
apiVersion: {API_VERSIONS[0]}
title: What can this model do?                 # the question, as it stands on the report
owner:
  organisation: My organisation
purpose:
  construct: Everyday knowledge                # what the questions stand for
  decision: Whether the model is good enough   # what hangs on the result
seed: 1                                        # every random draw begins here

"""

BENCHMARKS = f"""
benchmarks:                                    # sets of questions
  - id: everyday
    source:
      file: {QUESTIONS}                    # .jsonl, .csv or .parquet
    sample:                                    # or simple (with size), stratified (with by and size), ids
      method: all
    groups:
      subject: strata                          # also give results per subject
    scoring:
      method: letter                           # compare the letters A, B, ... ; `option` compares the texts of the choices
    disclosure: full                           # what the report may show: full, ids, none

analyses:                                      # decided before the results are seen
  - id: accuracy
    kind: intervals
    method: wilson
    level: 0.95
"""

COMPARISON = """  - id: comparison                             # which models differ, asked on the same questions?
    kind: mcnemar
    family: all_pairs
    correction: holm
    alpha: 0.05
"""

THRESHOLDS = """
thresholds:                                    # the exit code: 0 passed, 1 failed, 4 inconclusive
  checks:
    - id: floor
      analysis: accuracy
      metric: accuracy
      model: {model}
      bound: low                               # the lower end of the interval must reach the limit
      at_least: 0.5
"""


def starter_files(checkpoints: Sequence[str], catalogue: Catalogue) -> dict[str, str]:
    """Return every file of a first study by name; without checkpoints it replays invented answers, so that it runs on any machine."""
    schema = json.dumps(build_grammar(catalogue).schema(), indent=2, ensure_ascii=False) + "\n"
    files = {STUDY: scaffold(checkpoints), QUESTIONS: questions_jsonl(), SCHEMA: schema}
    return files if checkpoints else {**files, RECORDED: recorded_csv()}


def scaffold(checkpoints: Sequence[str] = ()) -> str:
    """Return a commented study of these checkpoint folders, given as seen from the study's folder; without any, of invented answers."""
    names = _names(checkpoints) if checkpoints else list(SYSTEMS)
    sources = [f"path: {quoted(path)}" for path in checkpoints] or [f"responses: {RECORDED}"] * len(SYSTEMS)
    lines = ["models:                                        # the systems under test"]
    if not checkpoints:
        lines += [
            "  # These two replay invented answers. For a model of your own, write instead:",
            "  #   source: {path: folder/of/the/checkpoint}   # config.json, *.safetensors, tokenizer",
        ]
    for name, source in zip(names, sources, strict=True):
        lines += [f"  - id: {name}", "    source:", f"      {source}"]
    comparison = COMPARISON if len(names) > 1 else ""
    return HEAD + "\n".join(lines) + "\n" + BENCHMARKS + comparison + THRESHOLDS.format(model=names[0])


def _names(checkpoints: Sequence[str]) -> list[str]:
    """Return a short name for each folder, no two alike."""
    names: list[str] = []
    for path in checkpoints:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(path).name).strip("-._")[:56] or "model"
        taken = sum(1 for name in names if name == stem or name.startswith(f"{stem}."))
        names.append(f"{stem}.{taken + 1}" if taken else stem)
    return names
