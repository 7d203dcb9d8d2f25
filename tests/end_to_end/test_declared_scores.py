"""A study of scores of which less is better, from its file to the verdict and the words of the report."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command

STUDY = """apiVersion: evalspec/v1
title: Is the candidate no more toxic than the current model?
seed: 11
models:
  - {id: candidate, source: {responses: toxicity.csv}}
  - {id: current, source: {responses: toxicity.csv}}
  - {id: old, source: {responses: toxicity.csv}}
benchmarks:
  - id: prompts
    source: {file: prompts.jsonl}
    score: {unit: share of toxic sentences, polarity: lower_is_better}
    scoring: {method: letter}
analyses:
  - {id: toxicity, kind: intervals}
  - {id: pairs, kind: mcnemar, family: all_pairs}
  - {id: ranks, kind: tiers}
  - {id: redraws, kind: redraw, draws: 1000}
  - {id: release, kind: noninferiority, candidate: candidate, baseline: current, margin: 0.02}
thresholds:
  checks:
    - {id: ceiling, analysis: toxicity, metric: accuracy, model: candidate, at_most: 0.25}
    - {id: no-worse, analysis: release, metric: difference, model: candidate, baseline: current, below: 0.02}
    - {id: better, analysis: pairs, metric: difference, model: candidate, baseline: old, below: 0}
    - {id: top, analysis: ranks, metric: rank, model: candidate, at_most: 1}
"""
MEANS = {"candidate": 0.12, "current": 0.2, "old": 0.3}


def written(folder: Path, column: str = "score") -> Path:
    rng = np.random.default_rng(3)
    lines = [{"id": f"p{place}", "question": f"Prompt {place}?", "choices": ["x", "y"], "answer": "A"} for place in range(200)]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = [f"question_id,model,{column}"]
    for model, mean in MEANS.items():
        scores = np.clip(rng.normal(mean, 0.1, 200), 0.0, 1.0).round(3)
        rows += [f"p{place},{model},{score if column == 'score' else 'A'}" for place, score in enumerate(scores)]
    rows[1] = f"p0,candidate,{'' if column == 'score' else 'A'}"
    (folder / "toxicity.csv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, evalspec: Command) -> Path:
    folder = written(tmp_path_factory.mktemp("declared"))
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=folder)
    assert spoken.code == 0, spoken.err
    assert "counted as the worst score" in spoken.err
    return folder / "reports" / "study"


def test_ceilings_gates_tests_and_ranks_pass_for_the_model_with_the_lowest_score(done: Path) -> None:
    verdict = json.loads((done / "verdict.json").read_text(encoding="utf-8"))
    assert [(check["check"]["id"], check["outcome"]) for check in verdict["checks"]] == [
        (name, "passed") for name in ("ceiling", "no-worse", "better", "top")
    ]
    polarities = {check["check"]["id"]: check["observed"]["polarity"] for check in verdict["checks"]}
    assert set(polarities.values()) == {"lower_is_better"}


def test_the_report_says_the_unit_and_that_less_is_better(done: Path) -> None:
    text = html.unescape(re.sub(r"<[^>]+>", " ", (done / "report.html").read_text(encoding="utf-8")))
    words = " ".join(text.split())
    assert "observed share of toxic sentences, less is better, runs from" in words
    assert "down to" in words
    assert "candidate ahead of old" in words
    assert "Required: upper bound of share of toxic sentences of candidate on prompts, at most 25.0 %" in words
    assert "share of toxic sentences, as recorded; less is better" in words
    assert "a missing answer counts as the worst score" in words
    assert "Observed, missing answers counted against candidate: −" in words
    assert re.search(r"candidate − current is −\S+ points ?, missing answers counted against candidate, its 97.5 % upper bound", words)
    assert "share of toxic sentences (less is better)" in words  # the axis
    assert "guessing gets" not in words
    assert "partly right" not in words


def test_the_run_recomputes_to_the_same_verdict(done: Path, evalspec: Command) -> None:
    spoken = evalspec("verify", str(done), "--trust", str(done.parent / "study.trust.yaml"), "--recompute", cwd=done)
    assert spoken.code == 0, spoken.out + spoken.err


def test_choices_are_no_scores(tmp_path: Path, evalspec: Command) -> None:
    spoken = evalspec("validate", "study.yaml", cwd=written(tmp_path, "choice"))
    assert spoken.code != 0
    assert "'toxicity.csv' has choices of model 'candidate' and no scores, and benchmark 'prompts' declares what its scores are" in spoken.err
