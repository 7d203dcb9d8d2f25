from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalspec.artifacts.columns import rows_of

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.end_to_end.conftest import Command

MODELS = ("openai_gpt-4o-2024-05-13", "qwen_qwen2-72b-instruct", "openai_gpt-4-0613", "mistralai_mistral-large-2407")

MMLU = """apiVersion: evalspec/v1
title: Do four models differ on five hundred questions of MMLU?
seed: 11
models:
{models}
benchmarks:
  - id: mmlu
    source: {{file: questions.jsonl, licence: MIT, duplicate_choices: keep}}
    groups: {{subject: strata}}
    missing: wrong
    scoring: {{method: letter}}
    disclosure: ids
analyses:
  - {{id: accuracy, kind: intervals, method: wilson, level: 0.95}}
  - {{id: pairs, kind: mcnemar, family: all_pairs, correction: holm, alpha: 0.05}}
thresholds:
  checks:
    - {{id: ahead, analysis: pairs, metric: difference, model: {first}, baseline: {last}, above: 0}}
"""


@pytest.fixture(scope="module")
def mmlu(shared: Path, tmp_path_factory: pytest.TempPathFactory, evalspec: Command) -> Path:
    """A study of recorded answers of real models, run to a signed report without a PDF."""
    folder = tmp_path_factory.mktemp("mmlu")
    shutil.copy2(shared / "data" / "mmlu_500_subject_balanced.jsonl", folder / "questions.jsonl")
    shutil.copy2(shared / "data" / "mmlu_500_predictions_14models.csv", folder / "recorded.csv")
    models = "\n".join(f"  - {{id: {name}, source: {{responses: recorded.csv}}}}" for name in MODELS)
    (folder / "study.yaml").write_text(MMLU.format(models=models, first=MODELS[0], last=MODELS[1]))
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=folder)
    assert spoken.code in {0, 1, 4}, spoken.err
    return folder


def test_accuracies_of_real_models_are_those_of_a_direct_count(mmlu: Path) -> None:
    with (mmlu / "recorded.csv").open(newline="") as stream:
        recorded = list(csv.DictReader(stream))
    lines = [json.loads(line) for line in (mmlu / "questions.jsonl").read_text().splitlines()]
    key = {line["id"]: line["answer"] for line in lines}
    expected = {model: sum(row[model] == key[row["item_id"]] for row in recorded) / len(key) for model in MODELS}
    findings = json.loads((mmlu / "reports" / "study" / "findings.json").read_text())
    estimates = [estimate for estimate in rows_of(findings["findings"][0]["estimates"]) if estimate["subject"] is None]
    assert {estimate["models"][0]: estimate["value"] for estimate in estimates} == pytest.approx(expected, abs=1e-12)
    assert {estimate["n"] for estimate in estimates} == {500}


def test_a_report_about_real_models_is_verified_and_recomputed(mmlu: Path, evalspec: Command) -> None:
    spoken = evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--recompute", cwd=mmlu)
    assert (spoken.code, "recomputed: findings and verdict follow" in spoken.out) == (0, True)


def test_a_study_can_ask_what_a_plug_in_answers(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    pytest.importorskip("evalspec_agreement", reason="the plug-in of tests/plugin is not installed")
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().replace("analyses:\n", "analyses:\n  - {id: alike, kind: agreement}\n"))
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path)
    assert spoken.code == 0, spoken.err
    page = (tmp_path / "reports" / "study" / "report.html").read_text()
    assert '<data value="24" data-path="/findings/0/result/rows/0/same">24</data>' in page
    assert evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--recompute", cwd=tmp_path).code == 0
