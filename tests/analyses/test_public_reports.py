"""Inputs from public bug reports of evaluation tools, and the values that are right for them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import built_in
from evalspec.analyses.intervals_results import IntervalsResult
from evalspec.analyses.mcnemar_results import McnemarResult
from evalspec.analyses.sensitivity import SensitivityResult
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Protocol, ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.questions import Question
from evalspec.artifacts.responses import Reason, Responses
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.study import AnalysisRequest, LetterScoring, MissingRule
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.artifacts.verdict import Verdict
from evalspec.errors import InputError
from evalspec.gating import gate
from evalspec.scoring.assemble import assemble
from evalspec.scoring.replay import identify_record, recorded_rows
from evalspec.scoring.tables import RecordedTable

INTERVALS = {"id": "accuracy", "kind": "intervals"}


def replayed(
    folder: Path,
    table: list[dict[str, object]],
    *,
    subjects: list[str] | None = None,
    missing: MissingRule = "wrong",
    checks: tuple[Check, ...] = (),
    **analyses: dict[str, object],
) -> tuple[Responses, Findings, Verdict]:
    """Write a long table of recorded results, replay it, analyse and gate it: the road that a study takes."""
    path = folder / "recorded.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    ids = list(dict.fromkeys(str(row["question_id"]) for row in table))
    questions = tuple(Question(name, "?", ("w", "x", "y", "z"), 0, subjects[place] if subjects else None) for place, name in enumerate(ids))
    models = list(dict.fromkeys(str(row["model"]) for row in table))
    benchmark = ProtocolBenchmark(
        id="b",
        source="questions.jsonl",
        source_sha256="0" * 64,
        source_size=len(questions),
        sample=SampleAll(),
        questions=tuple(DrawnQuestion(id=one.id, sha256=one.digest(), subject=one.subject) for one in questions),
        strata="subject" if subjects else None,
        missing=missing,
        scoring=LetterScoring(method="letter"),
        prompt="{question}",
        disclosure="full",
    )
    requests = tuple(
        AnalysisRequest(id=name, kind=str(options["kind"]), benchmarks=("b",), options=json.loads(json.dumps(options)))
        for name, options in analyses.items()
    )
    identities: dict[str, RecordIdentity] = {name: identify_record(path, name=name, origin="recorded.csv") for name in models}
    protocol = Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=tuple(ProtocolModel(id=name, precision="as_shipped", identity=identity) for name, identity in identities.items()),
        benchmarks=(benchmark,),
        analyses=requests,
        thresholds=Thresholds(checks=checks) if checks else None,
        batch_rule=BatchRule(),
    )
    recorded = RecordedTable.read(path)
    rows = {(model.id, "b"): recorded_rows(recorded, model, benchmark, questions) for model in protocol.models}
    responses = assemble(protocol, {"b": questions}, rows)
    findings = analyse(responses, protocol, built_in(), responses_sha256="1" * 64, gate=gate)
    return responses, findings, gate(findings, protocol.thresholds)


def result_of(findings: Findings, name: str, kind: type) -> object:
    finding = next(finding for finding in findings.findings if finding.request.id == name)
    return kind.model_validate_json(json.dumps(finding.result))


def scores(values: list[object], model: str = "m") -> list[dict[str, object]]:
    return [{"question_id": f"q{place:05}", "model": model, "score": value} for place, value in enumerate(values)]


def test_a_macro_mean_has_the_standard_error_of_a_macro_mean_and_a_micro_one_that_of_a_micro_one(tmp_path: Path) -> None:
    table = scores([1, 0] * 2000 + [1, 1, 0, 1, 0, 0, 1, 1, 0, 1])
    subjects = ["large"] * 4000 + ["small"] * 10
    _, findings, _ = replayed(tmp_path, table, subjects=subjects, accuracy={"kind": "intervals", "average": "macro"})
    rows = {row.average: row for row in result_of(findings, "accuracy", IntervalsResult).rows if row.subject is None}
    assert rows["macro"].standard_error == pytest.approx(0.08175, abs=5e-6)
    assert rows["micro"].standard_error == pytest.approx(0.00790, abs=5e-6)
    assert rows["macro"].high - rows["macro"].low > 0.3


@pytest.mark.parametrize(
    ("right", "n", "error", "low", "high"),
    [
        (14, 307, 0.011926, 0.0274, 0.0751),
        (2, 123, 0.011450, 0.0045, 0.0574),
        (2, 132, 0.010673, 0.0042, 0.0536),
        (5, 280, 0.007929, 0.0077, 0.0411),
        (8, 154, 0.017941, 0.0266, 0.0992),
        (8, 193, 0.014385, 0.0212, 0.0796),
    ],
)
def test_rare_right_answers_have_a_standard_error_and_an_interval(tmp_path: Path, right: int, n: int, error: float, low: float, high: float) -> None:
    _, findings, _ = replayed(tmp_path, scores([1] * right + [0] * (n - right)), accuracy={"kind": "intervals"})
    row = result_of(findings, "accuracy", IntervalsResult).rows[0]
    assert row.standard_error == pytest.approx(error, abs=5e-7)
    assert (row.low, row.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("method", "high"), [("wilson", 0.490), ("clopper_pearson", 0.602)])
def test_no_right_answer_of_four_is_not_plus_or_minus_zero(tmp_path: Path, method: str, high: float) -> None:
    _, findings, _ = replayed(tmp_path, scores([0] * 4), accuracy={"kind": "intervals", "method": method})
    row = result_of(findings, "accuracy", IntervalsResult).rows[0]
    assert (row.low, row.high, row.standard_error) == (0.0, pytest.approx(high, abs=5e-4), None)


def test_two_models_on_the_same_questions_are_compared_in_pairs(tmp_path: Path) -> None:
    first = [1] * 68 + [1] * 30 + [0] * 12 + [0] * 110
    second = [1] * 68 + [0] * 30 + [1] * 12 + [0] * 110
    _, findings, _ = replayed(
        tmp_path, [*scores(first, "a"), *scores(second, "b")], pairs={"kind": "mcnemar", "family": "named", "pairs": [["a", "b"]]}
    )
    row = result_of(findings, "pairs", McnemarResult).rows[0]
    assert row.p_value == pytest.approx(0.0079, abs=5e-5)
    errors = [np.std(one, ddof=1) / np.sqrt(220) for one in (first, second)]
    unpaired = 2 * stats.norm.sf((98 - 80) / 220 / np.hypot(*errors))
    assert unpaired == pytest.approx(0.0800, abs=5e-5)  # what a comparison as if on different questions would say
    assert findings.estimates()[0].p_value == row.p_value


@pytest.mark.parametrize(("missing", "observed"), [("wrong", 0.8), ("complete_case", 80 / 90)])
def test_samples_that_ended_in_an_error_show_all_three_rates_and_cannot_make_a_check_pass(
    tmp_path: Path, missing: MissingRule, observed: float
) -> None:
    check = Check(id="floor", analysis="accuracy", metric="accuracy", model="m", bound="value", at_least=0.85)
    table = scores([1] * 80 + [0] * 10 + [""] * 10)
    _, findings, verdict = replayed(tmp_path, table, missing=missing, checks=(check,), accuracy={"kind": "intervals"}, rules={"kind": "sensitivity"})
    rates = {row.case: (row.value, row.n) for row in result_of(findings, "rules", SensitivityResult).accuracies}
    assert rates["missing_left_out"] == (pytest.approx(80 / 90), 90)
    assert rates["missing_wrong"] == (0.8, 100)
    assert rates["missing_best"] == (0.9, 100)
    assert verdict.checks[0].observed.value == pytest.approx(observed)
    # The declared rule gives the number; a pass must hold with every missing answer wrong as well.
    assert (verdict.checks[0].missing, verdict.checks[0].settled.value) == (10, 0.8)
    assert verdict.overall == ("failed" if missing == "wrong" else "inconclusive")
    outcomes = {row.case: row.outcome for row in result_of(findings, "rules", SensitivityResult).checks}
    assert outcomes == {"declared": verdict.overall, "missing_wrong": "failed", "missing_left_out": "inconclusive", "missing_worst": "failed"}


@pytest.mark.parametrize(("cell", "reason"), [("", Reason.NOT_ANSWERED), ("-1.0", Reason.UNDETERMINED), ("0.0", Reason.UNDETERMINED)])
def test_log_probabilities_that_tell_nothing_are_never_an_answer(tmp_path: Path, cell: str, reason: Reason) -> None:
    table = [{"question_id": f"q{place:02}", "model": "m", **{f"logprob_{letter}": cell for letter in "ABCD"}} for place in range(12)]
    responses, findings, _ = replayed(tmp_path, table, accuracy={"kind": "intervals"})
    entry = responses.benchmarks[0]
    assert np.all(np.isnan(entry.scores))
    assert np.all(entry.choices == -1)
    assert set(entry.reasons.ravel().tolist()) == {int(reason)}
    assert findings.summaries[0].missing == {reason.name.lower(): 12}
    assert result_of(findings, "accuracy", IntervalsResult).rows[0].value == 0.0  # every key is A, and nobody chose it
    _, left_out, _ = replayed(tmp_path, table, missing="complete_case", accuracy={"kind": "intervals"})
    assert result_of(left_out, "accuracy", IntervalsResult).rows[0].undefined is not None


def test_log_probabilities_that_are_no_numbers_stop_the_run_with_their_row(tmp_path: Path) -> None:
    table = [{"question_id": f"q{place:02}", "model": "m", **{f"logprob_{letter}": "nan" for letter in "ABCD"}} for place in range(12)]
    with pytest.raises(InputError, match=r"recorded\.csv:2:1: .*4 log-probabilities of at most 0 are needed"):
        replayed(tmp_path, table, accuracy={"kind": "intervals"})


def test_one_question_that_always_fails_is_not_hidden_by_the_average_over_repeats(tmp_path: Path) -> None:
    table = [{"question_id": f"q{place:02}", "model": "m", "repeat": repeat, "score": int(place != 7)} for place in range(50) for repeat in range(10)]
    checks = (
        Check(id="average", analysis="accuracy", metric="accuracy", model="m", bound="value", at_least=0.95),
        Check(id="every-question", analysis="accuracy", metric="worst_question", model="m", bound="value", at_least=0.5),
        Check(id="always", analysis="accuracy", metric="always_right", model="m", bound="value", at_least=0.99),
    )
    _, findings, verdict = replayed(tmp_path, table, checks=checks, accuracy={"kind": "intervals"})
    assert [(result.check.id, result.outcome) for result in verdict.checks] == [
        ("average", "passed"),
        ("every-question", "failed"),
        ("always", "failed"),
    ]
    row = result_of(findings, "accuracy", IntervalsResult).repeats[0]
    assert (row.always, row.never, row.repeats, row.worst) == (49, 1, 10, 0.0)
    assert result_of(findings, "accuracy", IntervalsResult).rows[0].n == 50  # not 500
