"""A run whose rows are laid end to end says so, goes on after a kill to the same bits, and answers as one whose rows are padded."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.comparison import attended_otherwise
from evalspec.protocols import ignore_progress
from evalspec.scoring.calibration import seconds_left
from evalspec.scoring.dispatch import Dispatch
from evalspec.scoring.execute import Scored, ScoringTask, score
from evalspec.scoring.model_run import Place
from evalspec.scoring.queue import Queue
from evalspec.scoring.sharing import ROW_BY_ROW
from evalspec.scoring.tokens import encode_work
from evalspec.scoring.worker import Worker

causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")

ROUNDING = 1e-5
"""Float32 sums in another order, relative to log-probabilities of size one to ten."""


class Inline:
    """Scores in this process, with rows end to end or padded."""

    def __init__(self, inline: Any, *, packing: bool, parts: int = 1) -> None:
        self.inline, self.packing, self.parts = inline, packing, parts

    def devices(self) -> Any:
        return self.inline.devices()

    def run(self, orders: Any, journal: Any, tell: Any) -> None:
        dispatch = Dispatch(Queue(orders, journal, self.inline.estimates), ["cpu"], tell)
        worker = Worker(lambda _assignment: journal, Place("cpu", 1, packing=self.packing), lambda event: dispatch.heard("cpu", event))
        while (assignment := dispatch.assign("cpu")) is not None:
            worker.score(assignment.model_copy(update={"parts": self.parts}))
        dispatch.conclude()


@pytest.fixture(scope="module")
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    asked, folder = make.questions(70), llama
    benchmarks = [make.benchmark("letters", asked, LetterScoring(method="letter")), make.benchmark("texts", asked, OptionScoring(method="option"))]
    protocol = make.protocol({"m": make.identity(folder)}, benchmarks, rule=BatchRule(token_budget=512, branches=False), precision="float32")
    return ScoringTask(protocol, dict.fromkeys(("letters", "texts"), asked), {"m": folder}, {})


@pytest.fixture(scope="module")
def packed(make: SimpleNamespace, task: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> tuple[Scored, Any]:
    journal = make.journal(tmp_path_factory.mktemp("packed"))
    return score(task, Inline(make.executor(), packing=True), journal, ignore_progress), journal


def records_of(task: ScoringTask, journal: Any) -> list[Any]:
    (order,) = task.orders()
    return [journal.read(order.key(work, work.questions).digest()) for work in order.works]


def values_of(scored: Scored) -> list[Any]:
    return [benchmark.logprobs for benchmark in scored.responses.benchmarks]


def test_it_is_recorded_that_rows_were_laid_end_to_end_and_what_kept_them_apart(task: ScoringTask, packed: tuple[Scored, Any]) -> None:
    scored, journal = packed
    for record, entry in zip(records_of(task, journal), scored.jobs, strict=True):
        assert all(batch.packed and batch.padded_tokens == batch.real_tokens for batch in record.batches.values())
        assert (record.sessions[0].packing, record.sessions[0].attention) == (ROW_BY_ROW.keeper, "sdpa")
        assert (entry.packed, entry.packing) == (len(record.batches), ROW_BY_ROW.keeper)
    origin = scored.responses.origin("m", "letters")
    assert origin.versions["attention"] == f"sdpa and {ROW_BY_ROW.keeper}", "the self-check reads every row alone"
    assert origin.self_check is not None
    assert origin.self_check.p999_difference < ROUNDING * 10


def test_padded_rows_give_the_same_answers_and_the_comparison_of_runs_names_the_attention(
    make: SimpleNamespace, task: ScoringTask, packed: tuple[Scored, Any], tmp_path: Path
) -> None:
    journal = make.journal(tmp_path)
    padded = score(task, Inline(make.executor(), packing=False), journal, ignore_progress)
    for one, other in zip(padded.responses.benchmarks, packed[0].responses.benchmarks, strict=True):
        np.testing.assert_array_equal(one.choices, other.choices)
    for values, others in zip(values_of(padded), values_of(packed[0]), strict=True):
        np.testing.assert_allclose(values, others, rtol=ROUNDING, atol=ROUNDING)
    assert [(entry.packed, entry.packing) for entry in padded.jobs] == [(0, None), (0, None)]
    plans = [[record.sessions[0].plan_sha256 for record in records_of(task, each)] for each in (journal, packed[1])]
    assert set(plans[0]).isdisjoint(plans[1])
    assert attended_otherwise("m", padded.responses, packed[0].responses)
    assert not attended_otherwise("m", padded.responses, padded.responses)
    assert not attended_otherwise("another", padded.responses, packed[0].responses)


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_a_run_that_was_cut_off_goes_on_to_the_same_bits(
    make: SimpleNamespace, task: ScoringTask, packed: tuple[Scored, Any], tmp_path: Path, kept: int
) -> None:
    journal = make.journal(tmp_path / "journal")
    shutil.copytree(packed[1].folder, journal.folder)
    for path in journal.folder.glob("*.jsonl"):
        whole = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(whole[:kept]) + b"".join(whole[kept : kept + 1])[:40])
    again = score(task, Inline(make.executor(), packing=True), journal, ignore_progress)
    assert [one.tobytes() for one in values_of(again)] == [one.tobytes() for one in values_of(packed[0])]
    assert all(len(record.sessions) == 2 for record in records_of(task, journal))


def test_what_a_machine_without_it_goes_on_with_is_scored_anew(
    make: SimpleNamespace, task: ScoringTask, packed: tuple[Scored, Any], tmp_path: Path
) -> None:
    journal = make.journal(tmp_path / "journal")
    shutil.copytree(packed[1].folder, journal.folder)
    for path in journal.folder.glob("*.jsonl"):
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    scored = score(task, Inline(make.executor(), packing=False), journal, ignore_progress)
    assert [(entry.packed, entry.packing) for entry in scored.jobs] == [(0, None), (0, None)]
    aside = {path.stem for path in journal.folder.glob("*.rejected-1")}
    assert aside >= {record.job for record in records_of(task, journal)}


def test_in_parts_rows_are_laid_end_to_end_within_each(make: SimpleNamespace, task: ScoringTask, packed: tuple[Scored, Any], tmp_path: Path) -> None:
    journal = make.journal(tmp_path)
    parts = score(task, Inline(make.executor(), packing=True, parts=2), journal, ignore_progress)
    for one, other in zip(values_of(parts), values_of(packed[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=ROUNDING, atol=ROUNDING)
    for record in records_of(task, journal):
        assert {batch.parts for batch in record.batches.values()} <= {1, 2}
        assert any(batch.parts == 2 for batch in record.batches.values())
        assert all(batch.padded_tokens == batch.real_tokens for batch in record.batches.values())


def test_the_tokens_that_are_left_are_those_that_are_computed(task: ScoringTask, packed: tuple[Scored, Any], llama: Path) -> None:
    (order,) = task.orders()
    scorer = causal_lm.load(llama, model="m", precision="float32")
    for work, record in zip(order.works, records_of(task, packed[1]), strict=True):
        part = {
            index: batch.model_copy(update={"seconds": batch.padded_tokens / 1000})
            for index, batch in record.batches.items()
            if index < len(record.batches) // 2
        }
        left = seconds_left(order, work.questions, encode_work(work, scorer.vocabulary).questions, replace(record, batches=part))
        assert left == pytest.approx(sum(batch.real_tokens for index, batch in record.batches.items() if index not in part) / 1000)
