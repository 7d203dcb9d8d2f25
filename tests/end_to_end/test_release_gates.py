"""A release gate from the study file to its exit code: non-inferiority that passes, fails, stays open, is corrected, and is looked at again."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

QUESTIONS = 1600
STUDY = """apiVersion: evalspec/v1
title: May the candidate replace the baseline?
seed: 5
models:
{models}
benchmarks:
  - {{id: facts, source: {{file: questions.jsonl}}, sample: {sample}, scoring: {{method: letter}}{groups}}}
analyses:
{analyses}
thresholds:
  require: {require}
  checks:
{checks}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recorded answers of a baseline and of candidates that are as good, five points worse, and hardly better than the margin."""
    folder = tmp_path_factory.mktemp("gates")
    (folder / "evalspec.toml").write_text("")
    lines = (
        {"id": f"q{place:04}", "question": f"Number {place}?", "choices": list("abcd"), "answer": place % 4, "subject": f"s{place % 400}"}
        for place in range(QUESTIONS)
    )
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rng = np.random.default_rng(8)
    baseline = rng.random(QUESTIONS) < 0.7
    answers = {"baseline": baseline}
    for name, lost, won in (("same", 0.04, 0.0933), ("worse", 0.12, 0.05), ("doubtful", 0.08, 0.1)):
        chance = rng.random(QUESTIONS)
        answers[name] = np.where(baseline, chance >= lost, chance < won)
    with (folder / "recorded.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["question_id", "model", "score"])
        table.writerows([f"q{place:04}", model, int(right[place])] for model, right in answers.items() for place in range(QUESTIONS))
    return folder


def write(folder: Path, *candidates: str, sample: str = "{method: all}", require: str = "all", options: str = "", groups: str = "") -> Path:
    asked = ("baseline", *candidates)
    study = folder / "study.yaml"
    study.write_text(
        STUDY.format(
            models="\n".join(f"  - {{id: {model}, source: {{responses: recorded.csv}}}}" for model in asked),
            sample=sample,
            groups=groups,
            analyses="\n".join(
                f"  - {{id: {name}, kind: noninferiority, candidate: {name}, baseline: baseline, margin: 0.03, discordance: 0.08{options}}}"
                for name in candidates
            ),
            require=require,
            checks="\n".join(
                f"    - {{id: {name}, analysis: {name}, metric: difference, model: {name}, baseline: baseline, above: -0.03}}" for name in candidates
            ),
        )
    )
    return study


def run(evalspec: Callable[..., Any], folder: Path, *more: str) -> Any:
    return evalspec("run", "study.yaml", "--throwaway-key", "--no-pdf", "--quiet", *more, cwd=folder)


def page_of(folder: Path) -> str:
    html = (folder / "reports" / "study" / "report.html").read_text()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.mark.parametrize(("candidate", "code", "outcome"), [("same", 0, "passed"), ("worse", 1, "failed"), ("doubtful", 4, "inconclusive")])
def test_a_margin_passes_fails_or_stays_open(evalspec: Callable[..., Any], place: Path, candidate: str, code: int, outcome: str) -> None:
    sample = "{method: simple, size: 400}" if candidate == "doubtful" else "{method: all}"
    write(place, candidate, sample=sample)
    spoken = run(evalspec, place)
    assert (spoken.code, f"verdict: {outcome}" in spoken.out) == (code, True), spoken.out + spoken.err
    recomputed = evalspec("verify", "reports/study", "--tofu", "--recompute", cwd=place)
    assert "recomputed: findings and verdict follow" in recomputed.out


def test_a_margin_on_clusters_rests_on_gaffke_s_bound_and_says_what_that_takes_for_granted(evalspec: Callable[..., Any], place: Path) -> None:
    write(place, "same", groups=", groups: {subject: clusters}")
    planned = evalspec("plan", "study.yaml", cwd=place)
    assert "rests on Gaffke's bound, since questions come in clusters" in planned.out + planned.err
    spoken = run(evalspec, place)
    assert (spoken.code, "verdict: passed" in spoken.out) == (0, True), spoken.out + spoken.err
    verdict = json.loads((place / "reports" / "study" / "verdict.json").read_text())
    assert verdict["checks"][0]["observed"]["method"] == "gaffke_clustered"
    page = page_of(place)
    assert "Gaffke, clusters: at every sample size by a conjecture that calculation supports" in page
    assert "whose sizes say nothing about their scores" in page
    recomputed = evalspec("verify", "reports/study", "--tofu", "--recompute", cwd=place)
    assert "recomputed: findings and verdict follow" in recomputed.out


def test_an_open_gate_says_how_many_questions_it_needs_and_what_another_look_costs(evalspec: Callable[..., Any], place: Path) -> None:
    write(place, "doubtful", sample="{method: simple, size: 400}")
    spoken = run(evalspec, place)
    assert "with a true value of 0 (assumed) and 8 % discordant questions (declared), 80 % power at alpha 0.025 needs 7" in spoken.out
    page = page_of(place)
    assert "questions would let this check pass with a chance of 80 %" in page
    assert "another look" in page
    planned = evalspec("plan", "study.yaml", cwd=place)
    assert re.search(r"check 'doubtful' on 'facts' will pass with a chance of \d\d % only", planned.out)


def test_any_of_several_candidates_is_corrected_and_the_page_says_so(evalspec: Callable[..., Any], place: Path) -> None:
    write(place, "same", "worse", "doubtful", require="any")
    spoken = run(evalspec, place)
    assert spoken.code == 0, spoken.out
    verdict = json.loads((place / "reports" / "study" / "verdict.json").read_text())
    assert {check["check"]["id"]: check["outcome"] for check in verdict["checks"]}["worse"] == "failed"
    assert "Holm" in page_of(place)
    assert [bounds["divisor"] for bounds in verdict["checks"][0]["observed"]["stricter"]] == [1, 2, 3]


def test_a_size_from_the_study_is_drawn_and_reported_with_its_plan(evalspec: Callable[..., Any], place: Path) -> None:
    write(place, "same", sample="{method: simple, size: {detect: 0.03, power: 0.8, discordance: 0.08}}")
    assert run(evalspec, place).code in (0, 4)
    protocol = json.loads((place / "reports" / "study" / "protocol.json").read_text())
    (benchmark,) = protocol["benchmarks"]
    assert benchmark["planned_size"]["questions"] == len(benchmark["questions"])
    assert benchmark["sample"]["size"] == {"detect": 0.03, "power": 0.8, "discordance": 0.08}
    assert "Samples whose size was planned to detect a difference" in page_of(place)


def test_a_size_that_the_source_does_not_have_is_refused_with_both_numbers(evalspec: Callable[..., Any], place: Path) -> None:
    write(place, "same", sample="{method: simple, size: {detect: 0.01, power: 0.9, discordance: 0.2}}")
    spoken = evalspec("validate", "study.yaml", cwd=place)
    assert spoken.code == 2
    assert re.search(r"asks for 2?\d,\d{3} questions to detect 0.01 by analysis \"same\", and the source has 1,600", spoken.out + spoken.err)


def test_a_planned_look_spends_its_part_of_alpha_and_other_answers_are_counted_as_another_look(evalspec: Callable[..., Any], place: Path) -> None:
    looks = ", looks: {at: [400, 1600], this: THIS}"
    write(place, "same", sample="{method: simple, size: 400}", options=looks.replace("THIS", "1"))
    assert run(evalspec, place, "--cache", "looks").code == 4
    assert "look 1 of 2" in page_of(place)
    write(place, "same", options=looks.replace("THIS", "2"))
    assert run(evalspec, place, "--cache", "looks").code == 0
    assert json.loads((place / "reports" / "study" / "ledger.json").read_text())["looks"] == 2
    assert "more looks than the study plans" not in page_of(place)
    write(place, "same")  # the same gate again without a plan, on answers that were judged already
    assert run(evalspec, place, "--cache", "looks").code == 0
    assert json.loads((place / "reports" / "study" / "ledger.json").read_text())["looks"] == 2
    assert "more looks than the study plans" in page_of(place)


LOST = """apiVersion: evalspec/v1
title: Does a candidate pass by answers that got lost?
seed: 5
models:
  - {id: baseline, source: {responses: recorded.csv}}
  - {id: same, source: {responses: lost.csv}}
benchmarks:
  - {id: facts, source: {file: questions.jsonl}, missing: complete_case, scoring: {method: letter}}
analyses:
  - {id: accuracy, kind: intervals}
  - {id: gain, kind: mcnemar, family: vs_baseline, baseline: baseline}
thresholds:
  checks:
    - {id: floor, analysis: accuracy, metric: accuracy, model: same, at_least: 0.8}
    - {id: better, analysis: gain, metric: difference, model: same, baseline: baseline, above: 0.0}
"""


def test_answers_that_got_lost_open_a_gate_that_they_would_have_passed(evalspec: Callable[..., Any], place: Path) -> None:
    with (place / "recorded.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["model"] == "same"]
    kept = [row for number, row in enumerate(rows) if row["score"] == "1" or number % 3]  # a third of the wrong answers is lost
    with (place / "lost.csv").open("w", newline="") as stream:
        table = csv.DictWriter(stream, ["question_id", "model", "score"])
        table.writeheader()
        table.writerows(kept)
    (place / "study.yaml").write_text(LOST)
    spoken = run(evalspec, place)
    assert spoken.code == 4, spoken.out + spoken.err
    assert "it passes on the answers given; with every missing one counted against it, it does not" in spoken.out
    assert f"with the {len(rows) - len(kept):,} missing answers counted against it: 0.7" in spoken.out
    page = page_of(place)
    assert "answers that bear on it are missing; with all of them counted against the check:" in page
    assert "Clopper-Pearson" in page
    recomputed = evalspec("verify", "reports/study", "--tofu", "--recompute", cwd=place)
    assert "recomputed: findings and verdict follow" in recomputed.out
