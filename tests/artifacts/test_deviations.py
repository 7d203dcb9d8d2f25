"""Differences between a locked plan and a run: every one by its place, none of a hidden text, none of mere layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.deviations import deviations, standings, tells_more
from evalspec.artifacts.lock import Before, Earlier, Lock, LockedPlan, listed
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.study import Study
from evalspec.cli import main
from evalspec.store import RunDirectory

Plan = tuple[Study, Protocol]
Change = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("deviations")
    assert main(["init", str(folder / "first")]) == 0
    assert main(["run", str(folder / "first" / "study.yaml"), "--out", str(folder / "run"), "--no-pdf", "--quiet"]) == 0
    run = RunDirectory(Path(folder / "run"))
    return run.read_study(), run.read_protocol()


def locked(plan: Plan, change: Change | None = None) -> Lock:
    """The lock of a plan that was other than the run by `change`."""
    study, protocol = (json.loads(artifact.to_json()) for artifact in plan)
    if change is not None:
        change(study, protocol)
    protocol["study_sha256"] = sha256_hex(canonical_json(study))
    lists = listed(protocol)
    return Lock(
        locked_at="2026-11-29T20:00:00Z",
        versions={},
        study_source_sha256=study["source_sha256"],
        study_sha256=sha256_hex(canonical_json(study)),
        protocol_sha256=sha256_hex(canonical_json(protocol)),
        benchmarks=lists.benchmarks,
        models=lists.models,
        analyses=lists.analyses,
        thresholds_sha256=lists.thresholds_sha256,
        before=Before(answers=0, asked=0),
        earlier=Earlier(),
        signer_certificate="",
        study=study,
        protocol=protocol,
    )


def places(plan: Plan, change: Change | None = None) -> list[tuple[str, str | None, str | None]]:
    return [(found.file + found.path, found.locked, found.run) for found in deviations(locked(plan, change), *plan)]


def test_the_same_plan_has_no_deviation(plan: Plan) -> None:
    assert places(plan) == []
    assert [(one.analysis, one.planned, one.why) for one in standings(locked(plan), plan[1])] == [("accuracy", True, ""), ("comparison", True, "")]


def test_another_text_that_says_the_same_is_none(plan: Plan) -> None:
    assert places(plan, lambda study, _: study.update(source_sha256="0" * 64)) == []


def rename_model(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["models"][0]["id"] = "other"


def swap_models(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["models"].reverse()


def other_licence(study: dict[str, Any], _: dict[str, Any]) -> None:
    study["models"][1]["licence"] = "MIT"


def no_thresholds(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["thresholds"] = None


def one_check_more(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["thresholds"]["checks"].append(dict(protocol["thresholds"]["checks"][0], id="slash/tilde~"))


def other_question(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["benchmarks"][0]["questions"][0]["id"] = "secret name"


def other_example(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["benchmarks"][0]["preambles"] = [{"subject": None, "examples": [], "text": "secret text"}]


def named_questions(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["benchmarks"][0]["sample"] = {"method": "ids", "ids": ["secret name"]}


def other_prompt(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["benchmarks"][0]["prompt"] = "{question} " + "x" * 500


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (rename_model, [("protocol.json/models/other", "there", None), ("protocol.json/models/candidate", None, "there")]),
        (swap_models, [("protocol.json/models", "baseline, candidate", "candidate, baseline")]),
        (other_licence, [("study.json/models/baseline/licence", '"MIT"', None)]),
        (one_check_more, [("protocol.json/thresholds/checks/slash~1tilde~0", "there", None)]),
        (other_question, [("protocol.json/benchmarks/everyday/questions", "24 entries", "24 entries, 23 of them as locked")]),
        (other_example, [("protocol.json/benchmarks/everyday/preambles", "1 entry", "0 entries, 0 of them as locked")]),
    ],
)
def test_each_difference_has_its_place(plan: Plan, change: Change, expected: list[tuple[str, str | None, str | None]]) -> None:
    assert places(plan, change) == expected


def test_a_rule_that_was_added_is_shown_shortened(plan: Plan) -> None:
    ((place, before, now),) = places(plan, no_thresholds)
    assert (place, before, len(now or "") < 200, (now or "")[-1]) == ("protocol.json/thresholds", None, True, "…")
    ((place, before, _),) = places(plan, other_prompt)
    assert (place, len(before or "") < 200) == ("protocol.json/benchmarks/everyday/prompt", True)


@pytest.mark.parametrize("change", [other_question, other_example, named_questions])
def test_no_question_text_or_id_is_told(plan: Plan, change: Change) -> None:
    assert "secret" not in str(places(plan, change))


def other_alpha(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["analyses"][1]["options"]["alpha"] = 0.01


def exploratory(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["analyses"][0]["planned"] = False


def absent(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    del protocol["analyses"][0]


def other_seed(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["seed"] = 99


def moved(_: dict[str, Any], protocol: dict[str, Any]) -> None:
    protocol["models"][0]["identity"]["origin"] = "elsewhere.csv"
    protocol["benchmarks"][0]["source"] = "elsewhere.jsonl"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_alpha, ("", "changed since the lock")),
        (exploratory, ("exploratory in the lock", "")),
        (absent, ("not in the lock", "")),
        (rename_model, ("over other models than locked",) * 2),
        (other_question, ("on other questions, or asked otherwise, than locked",) * 2),
        (other_prompt, ("on other questions, or asked otherwise, than locked",) * 2),
        (other_seed, ("under another seed than locked",) * 2),
        (moved, ("", "")),
        (other_licence, ("", "")),
    ],
)
def test_an_analysis_is_planned_only_where_the_lock_has_it_as_it_is(plan: Plan, change: Change, why: tuple[str, str]) -> None:
    found = standings(locked(plan, change), plan[1])
    assert tuple(one.why for one in found) == why
    assert [one.planned for one in found] == [not reason for reason in why]


def test_what_the_study_calls_exploratory_stays_so(plan: Plan) -> None:
    study, protocol = plan
    changed = protocol.model_copy(update={"analyses": tuple(one.model_copy(update={"planned": False}) for one in protocol.analyses)})
    assert {one.why for one in standings(locked(plan), changed)} == {"the study calls it exploratory"}
    assert study


def test_limits_that_moved_are_told_apart(plan: Plan) -> None:
    def beside(change: Change) -> LockedPlan:
        return LockedPlan(locked(plan, change), "0" * 64, "SHA256:x", "n", deviations(locked(plan, change), *plan), ())

    assert beside(one_check_more).limits_moved
    assert not beside(other_alpha).limits_moved


def test_a_lock_that_discloses_more_is_named(plan: Plan) -> None:
    benchmarks = tuple(one.model_copy(update={"disclosure": "ids"}) for one in plan[1].benchmarks)
    assert tells_more(locked(plan), plan[1]) == ()
    assert tells_more(locked(plan), plan[1].model_copy(update={"benchmarks": benchmarks})) == ("everyday",)


def test_a_benchmark_that_the_run_left_out_has_nothing_to_hide(plan: Plan) -> None:
    assert tells_more(locked(plan), plan[1].model_copy(update={"benchmarks": ()})) == ()
