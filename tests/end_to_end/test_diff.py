"""Two runs of recorded answers, held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

STUDY = """apiVersion: evalspec/v1
title: Is the release good enough?
seed: {seed}
models:
  - {{id: candidate, source: {{responses: {table}}}}}
{more}benchmarks:
  - id: facts
    source: {{file: questions.jsonl}}
    sample: {{method: simple, size: {size}}}
    scoring: {{method: letter}}
analyses:
  - {{id: accuracy, kind: intervals}}
thresholds:
  checks:
    - {{id: floor, analysis: accuracy, metric: accuracy, model: candidate, bound: low, at_least: 0.5}}
"""
QUESTIONS = 60


def write_table(path: Path, right: Sequence[bool], models: Sequence[str] = ("candidate",)) -> None:
    rows = [f"{model},q{number:02d},{int(score)}" for model in models for number, score in enumerate(right)]
    path.write_text("model,id,score\n" + "\n".join(rows) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f'{{"id": "q{number:02d}", "question": "Stem {number}?", "choices": ["a", "b"], "answer": "A"}}' for number in range(QUESTIONS)]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n")
    write_table(tmp_path / "old.csv", [number % 3 > 0 for number in range(QUESTIONS)])
    write_table(tmp_path / "new.csv", [number % 3 > 0 and number >= 20 for number in range(QUESTIONS)], ("candidate", "other"))
    return tmp_path


def run(evalspec: Any, folder: Path, name: str, table: str, *, size: int = QUESTIONS - 10, seed: int = 1, more: str = "") -> None:
    (folder / f"{name}.yaml").write_text(STUDY.format(table=table, size=size, seed=seed, more=more))
    spoken = evalspec("run", f"{name}.yaml", "--no-pdf", "--throwaway-key", "--quiet", "--out", name, cwd=folder)
    assert (folder / name / "verdict.json").is_file(), spoken.err


def test_what_was_changed_and_what_it_changed_is_told(folder: Path, evalspec: Any) -> None:
    run(evalspec, folder, "before", "old.csv")
    run(evalspec, folder, "after", "new.csv", size=40, more="  - {id: other, source: {responses: new.csv}}\n")
    spoken = evalspec("diff", "before", "after", "--json", cwd=folder)
    assert spoken.code == 0
    found = spoken.content
    (benchmark,) = found["benchmarks"]
    assert (benchmark["common"], benchmark["asked_first"], benchmark["asked_second"], benchmark["differs"]) == (40, 50, 40, ["sample"])
    assert [(model["model"], model["where"], model["differs"]) for model in found["models"]] == [
        ("candidate", "both", ["responses"]),
        ("other", "only_second", []),
    ]
    (comparison,) = found["comparisons"]
    row = comparison["row"]
    assert (row["n"], row["only_first"]) == (40, 0), "nothing that was wrong became right"
    assert row["only_second"] == round(40 * (comparison["accuracy_first"] - comparison["accuracy_second"])) > 0
    assert row["low"] <= row["difference"] <= row["high"] < 0
    assert found["checks"] == [{"check": "floor (facts)", "first": found["overall_first"], "second": found["overall_second"]}]
    text = evalspec("diff", "before", "after", cwd=folder).out
    assert "facts: 40 questions in common (50 -> 40 asked); differs in sample" in text
    assert "candidate: differs in responses" in text


def test_a_run_differs_in_nothing_from_itself(folder: Path, evalspec: Any) -> None:
    run(evalspec, folder, "before", "old.csv")
    found = evalspec("diff", "before", "before", "--json", cwd=folder).content
    assert (found["study"], found["benchmarks"][0]["differs"], found["models"][0]["differs"]) == ([], [], [])
    assert (found["comparisons"][0]["row"]["difference"], found["comparisons"][0]["p_adjusted"]) == (0, 1)
    assert "the same answers" in evalspec("diff", "before", "before", cwd=folder).out


def test_a_change_of_the_study_is_named_by_its_path(folder: Path, evalspec: Any) -> None:
    run(evalspec, folder, "before", "old.csv")
    run(evalspec, folder, "after", "old.csv", seed=2)
    assert {"path": "/seed", "first": 1, "second": 2} in evalspec("diff", "before", "after", "--json", cwd=folder).content["study"]


def test_another_role_of_the_same_groups_is_a_difference(folder: Path, evalspec: Any) -> None:
    asked = [f'{{"id": "q{n:02d}", "question": "Stem {n}?", "choices": ["a", "b"], "answer": "A", "subject": "s{n % 12}"}}' for n in range(QUESTIONS)]
    (folder / "questions.jsonl").write_text("\n".join(asked) + "\n")
    for name, role in (("before", "clusters"), ("after", "strata")):
        study = STUDY.format(table="old.csv", size=QUESTIONS, seed=1, more="")
        (folder / f"{name}.yaml").write_text(study.replace("    scoring:", f"    groups: {{subject: {role}}}\n    scoring:"))
        assert evalspec("run", f"{name}.yaml", "--no-pdf", "--throwaway-key", "--quiet", "--out", name, cwd=folder).code in (0, 1, 4)
    found = evalspec("diff", "before", "after", "--json", cwd=folder).content
    assert found["study"] == [{"path": "/benchmarks/facts/groups/subject", "first": "clusters", "second": "strata"}]
    assert found["benchmarks"][0]["differs"] == ["strata", "clusters"]
    text = evalspec("diff", "before", "after", cwd=folder).out
    assert '/benchmarks/facts/groups/subject: "clusters" -> "strata"' in text
    assert "differs in strata, clusters" in text


def test_an_altered_run_is_not_compared(folder: Path, evalspec: Any) -> None:
    run(evalspec, folder, "before", "old.csv")
    (folder / "before" / "findings.json").write_bytes(b"{}")
    spoken = evalspec("diff", "before", "before", cwd=folder)
    assert spoken.code == 3
    assert "is not as it was signed: ALTERED findings.json" in spoken.err


def test_a_folder_that_is_not_there_is_a_fault_of_usage(folder: Path, evalspec: Any) -> None:
    assert evalspec("diff", "before", "after", cwd=folder).code == 2
