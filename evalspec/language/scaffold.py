"""How does a first study look, and where may it stand?  A commented file that validates and runs as it is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath

from evalspec.artifacts.study import API_VERSIONS
from evalspec.errors import Diagnostic, UsageError
from evalspec.language.example import SYSTEMS, questions_jsonl, recorded_csv
from evalspec.language.grammar import build_grammar
from evalspec.language.scalars import quoted
from evalspec.places import SETTINGS_FILE, find_root
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
    kind: intervals                            # for the check below, the exact interval of Clopper and Pearson; `method` names another
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


def checkpoints_seen_from(folder: Path, checkpoints: Sequence[Path]) -> tuple[str, ...]:
    """Return checkpoint folders as a study in `folder` names them; raises UsageError with every one that it could not read."""
    faults = [fault for checkpoint in checkpoints if (fault := _unreadable(checkpoint, folder))]
    if faults:
        raise UsageError(faults)
    return tuple(PurePath(os.path.relpath(checkpoint.resolve(), folder.resolve())).as_posix() for checkpoint in checkpoints)


def write_new(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder, which is made where it is not there; raises UsageError, and writes nothing, where one of them exists."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a first study needs a folder", hint="name another folder; nothing was written")
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(f"{folder} already holds {', '.join(taken)}", hint="name another folder; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _unreadable(checkpoint: Path, folder: Path) -> Diagnostic | None:
    """Return why a study in `folder` could not read a checkpoint; None where it could."""
    if not checkpoint.is_dir():
        message = f"{checkpoint} is a file; --model takes the folder of a checkpoint" if checkpoint.exists() else f"there is no folder {checkpoint}"
        return Diagnostic(message, hint="name the folder that holds config.json and the weights, as seen from here; nothing was written")
    real, root = checkpoint.resolve(), find_root(folder)
    if real.is_relative_to(root):
        return None
    around = Path(os.path.commonpath((real, root)))
    hint = f"copy it into {root}"
    if not (root / SETTINGS_FILE).is_file() and around != Path(around.anchor):
        hint += f", or put an empty {SETTINGS_FILE} into {around}: studies below it may then read all that it holds"
    return Diagnostic(f"{checkpoint} lies outside {root}, the folder that a study in {folder} may read", hint=f"{hint}; nothing was written")


def _names(checkpoints: Sequence[str]) -> list[str]:
    """Return a short name for each folder, no two alike."""
    names: list[str] = []
    for path in checkpoints:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(path).name).strip("-._")[:56] or "model"
        taken = sum(1 for name in names if name == stem or name.startswith(f"{stem}."))
        names.append(f"{stem}.{taken + 1}" if taken else stem)
    return names
