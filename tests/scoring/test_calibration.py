"""A plan that has scored a small part of a run tells what the rest takes, and the run does not do that part again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalspec.artifacts.journal import JobRecord
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import WorkOrder
from evalspec.protocols import ignore_progress
from evalspec.scoring.calibration import PROBED, least, measure, observe, seconds_left, telling
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.queue import Estimates
from evalspec.scoring.tokens import encode_work

causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")

COUNT = 120
RULE = BatchRule(token_budget=384, overhead_tokens=16)
DEVICES = ("cpu",)


@pytest.fixture(scope="module")
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    questions = make.questions(COUNT)
    benchmarks = [
        make.benchmark("letters", questions, LetterScoring(method="letter")),
        make.benchmark("texts", questions, OptionScoring(method="option")),
    ]
    protocol = make.protocol({"m": make.identity(llama)}, benchmarks, rule=RULE)
    return ScoringTask(protocol=protocol, questions=dict.fromkeys(("letters", "texts"), questions), folders={"m": llama}, records={})


@pytest.fixture(scope="module")
def calibrated(task: ScoringTask, make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The journal after a calibration, what it told, and the journal and responses after the run that followed."""
    journal = make.journal(tmp_path_factory.mktemp("calibrated"))
    (order,) = task.orders()
    measure(task.orders(), make.executor(Estimates(share=0.02)), journal, ignore_progress)
    first = {work.benchmark: record_of(order, work.benchmark, journal) for work in order.works}
    scorer = causal_lm.load(Path(order.folder), model="m", precision="as_shipped")
    encoded = {work.benchmark: encode_work(work, scorer.vocabulary).questions for work in order.works}
    told = observe(order, encoded, journal, DEVICES)
    scored = score(task, make.executor(), journal, ignore_progress)
    return SimpleNamespace(order=order, journal=journal, first=first, encoded=encoded, told=told, scored=scored)


def record_of(order: WorkOrder, benchmark: str, journal: Any) -> JobRecord:
    work = next(work for work in order.works if work.benchmark == benchmark)
    return journal.read(order.key(work, work.questions).digest())


@pytest.mark.parametrize("benchmark", ["letters", "texts"])
def test_a_small_part_is_scored_and_kept_for_the_run(calibrated: SimpleNamespace, benchmark: str) -> None:
    before, after = calibrated.first[benchmark], record_of(calibrated.order, benchmark, calibrated.journal)
    assert 0.02 * COUNT <= before.answered <= COUNT / 3
    assert after.complete
    assert {index: after.batches[index] for index in before.batches} == dict(before.batches)


def test_the_responses_are_those_of_a_run_without_calibration(
    calibrated: SimpleNamespace, task: ScoringTask, make: SimpleNamespace, tmp_path: Path
) -> None:
    plain = score(task, make.executor(), make.journal(tmp_path), ignore_progress).responses
    for one, other in zip(calibrated.scored.responses.benchmarks, plain.benchmarks, strict=True):
        assert one.logprobs.tobytes() == other.logprobs.tobytes()
        assert one.choices.tobytes() == other.choices.tobytes()


@pytest.mark.parametrize("benchmark", ["letters", "texts"])
def test_the_tokens_that_are_left_are_exactly_those_that_the_run_then_pads(calibrated: SimpleNamespace, benchmark: str) -> None:
    before, after = calibrated.first[benchmark], record_of(calibrated.order, benchmark, calibrated.journal)
    per_token = {index: batch.model_copy(update={"seconds": batch.padded_tokens / 1000}) for index, batch in before.batches.items()}
    work = next(work for work in calibrated.order.works if work.benchmark == benchmark)
    left = seconds_left(calibrated.order, work.questions, calibrated.encoded[benchmark], replace(before, batches=per_token))
    assert left == pytest.approx(sum(batch.padded_tokens for index, batch in after.batches.items() if index not in before.batches) / 1000)


def test_the_most_memory_of_the_run_was_seen_before(calibrated: SimpleNamespace) -> None:
    records = [record_of(calibrated.order, name, calibrated.journal) for name in ("letters", "texts")]
    peak = max(batch.peak_bytes for record in records for batch in record.batches.values())
    assert calibrated.told.peak_bytes == pytest.approx(peak, rel=0.2)
    assert calibrated.told.part
    after = observe(calibrated.order, calibrated.encoded, calibrated.journal, DEVICES)
    assert (after.part, after.peak_bytes) == (False, max(peak, calibrated.told.peak_bytes))


def test_the_self_check_is_part_of_what_is_left(calibrated: SimpleNamespace) -> None:
    order = calibrated.order
    work = order.works[0]
    job = order.key(work, work.questions).digest()
    alone = seconds_left(order, work.questions, calibrated.encoded["letters"], calibrated.first["letters"])
    assert alone is not None
    assert calibrated.told.seconds[job] > alone
    after = observe(order, calibrated.encoded, calibrated.journal, DEVICES)
    assert after.seconds[job] == 0


def test_pace_is_that_of_questions_where_the_batches_are_not_known(calibrated: SimpleNamespace) -> None:
    before, work = calibrated.first["letters"], calibrated.order.works[0]
    spent = sum(batch.seconds for batch in before.batches.values())
    left = seconds_left(calibrated.order, work.questions, (), before)
    assert left == pytest.approx(spent * (COUNT - before.answered) / before.answered)
    assert seconds_left(calibrated.order, work.questions, (), JobRecord("0" * 64)) is None


def test_what_tells_most_comes_first(calibrated: SimpleNamespace) -> None:
    from evalspec.scoring.batching import plan_questions
    from evalspec.scoring.sharing import Abilities

    plan = plan_questions(calibrated.encoded["letters"], Abilities(), RULE)
    order = telling(plan)
    assert sorted(order) == list(range(len(plan)))
    assert order[0] == 0
    assert len(plan[order[1]].questions) == max(len(batch.questions) for batch in plan)
    assert least(plan) <= set(order[:2])


def test_a_few_questions_are_asked_alone(calibrated: SimpleNamespace) -> None:
    from evalspec.scoring.calibration import probe

    work = calibrated.order.works[0]
    probed = probe(calibrated.order, work)
    (few,) = probed.works
    record = calibrated.journal.read(calibrated.order.key(work, few.questions, one_by_one=True).digest())
    assert (record.complete, len(few.questions), len(record.batches)) == (True, PROBED, PROBED)
