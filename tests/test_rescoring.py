"""When is a recorded answer the one that the weights give?  On arrays alone; real models are scored again in end_to_end/test_rescoring.py."""

from __future__ import annotations

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, FileDigest, Protocol, ProtocolModel
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Reason, Responses, SelfCheck
from evalspec.rescoring import Compared, compare, one_sided

KEYS = np.zeros(20, dtype=np.int64)


def protocol(stored: str) -> Protocol:
    identity = CheckpointIdentity(
        files=(FileDigest(name="model.safetensors", sha256="0" * 64, size=1),),
        weights_sha256="0" * 64,
        tokenizer_sha256="0" * 64,
        architecture="LlamaForCausalLM",
        parameters=1,
        stored_dtype=stored,
        origin="m",
    )
    model = ProtocolModel(id="m", precision="as_shipped", identity=identity)
    return Protocol(study_sha256="0" * 64, seed=1, models=(model,), benchmarks=(), analyses=(), thresholds=None, batch_rule=BatchRule())


def answers(logprobs: np.ndarray) -> Responses:
    """Responses of one model whose choices and scores follow from its log-probabilities; the first choice is right everywhere."""
    choices = np.where(logprobs[:, 0] == logprobs[:, 1], -1, np.nanargmax(logprobs, axis=1)).astype(np.int16)
    tied = choices < 0
    entry = BenchmarkResponses(
        benchmark="b",
        models=("m",),
        questions=tuple(f"q{number}" for number in range(len(logprobs))),
        subjects=(None,) * len(logprobs),
        weights=np.ones(len(logprobs)),
        scores=np.where(tied, np.nan, (choices == 0).astype(np.float64))[None, :, None],
        reasons=np.where(tied, Reason.UNDETERMINED, Reason.NONE).astype(np.int8)[None, :, None],
        choices=choices[None, :, None],
        logprobs=logprobs[None].copy(),
        missing="wrong",
    )
    check = SelfCheck(questions=20, flips=0, max_difference=0.0, p999_difference=0.0)
    origin = Origin(model="m", benchmark="b", route="scored_here", precision="as_shipped", self_check=check)
    return Responses((entry,), (origin,), "0" * 64)


def compared(recorded: np.ndarray, again: np.ndarray, stored: str = "bfloat16") -> tuple[Compared, list[str]]:
    found, differing = compare(protocol(stored), answers(recorded), ("m", "b"), (range(len(KEYS)), KEYS), answers(again))
    return found, [divergence.path for divergence in differing]


@pytest.fixture
def weights() -> np.ndarray:
    """What the weights give: choices that lie well apart, half of them right."""
    logprobs = np.tile([-0.5, -2.0], (20, 1))
    logprobs[10:] = logprobs[10:, ::-1]
    return logprobs


def test_the_same_numbers_are_the_same(weights: np.ndarray) -> None:
    found, paths = compared(weights, weights)
    assert (found.largest, found.fragile, found.otherwise, paths) == (0.0, 0, 0, [])


@pytest.mark.parametrize(
    ("stored", "step", "differs"), [("float32", 9e-4, False), ("float32", 2e-3, True), ("bfloat16", 0.09, False), ("bfloat16", 0.12, True)]
)
def test_a_log_probability_may_move_by_what_its_precision_allows(weights: np.ndarray, stored: str, step: float, differs: bool) -> None:
    recorded = weights.copy()
    recorded[3, 1] += step
    found, paths = compared(recorded, weights, stored)
    assert paths == (["/b/m/q3/logprobs/B"] if differs else [])
    assert found.largest == pytest.approx(step, rel=1e-9)  # the same numbers up to rounding of one subtraction


def test_a_choice_that_is_another_one_differs_where_the_two_lie_apart(weights: np.ndarray) -> None:
    recorded = weights.copy()
    recorded[12] = recorded[12, ::-1]
    _, paths = compared(recorded, weights)
    assert paths == ["/b/m/q12/logprobs/A", "/b/m/q12/choice"]


def test_a_fragile_choice_may_be_another_one(weights: np.ndarray) -> None:
    again, recorded = weights.copy(), weights.copy()
    again[12], recorded[12] = (-1.04, -1.0), (-1.0, -1.04)
    found, paths = compared(recorded, again)
    assert (found.fragile, found.otherwise, found.gained, found.lost, paths) == (1, 1, 1, 0, [])
    assert "1 fragile, 1 of them chosen otherwise (1 right as recorded, 0 now)" in str(found)


def test_a_log_probability_that_is_absent_differs(weights: np.ndarray) -> None:
    three = np.column_stack([weights, np.full(20, -3.0)])
    assert compared(weights, three)[1] == [f"/b/m/q{number}/logprobs/C" for number in range(20)]


def turned(gained: int, lost: int, model: str = "m") -> Compared:
    return Compared(model, "b", 50, 0.05, 0.1, 40, gained + lost, gained, lost)


@pytest.mark.parametrize(
    ("gained", "lost", "told"), [(0, 0, False), (5, 4, False), (10, 0, False), (11, 0, True), (0, 11, True), (30, 20, False), (40, 10, True)]
)
def test_fragile_choices_that_all_differ_to_one_side_are_told(gained: int, lost: int, told: bool) -> None:
    """Two-sided exact binomial test at 1e-3: 2 * 0.5**11 is 0.00098, and 2 * 0.5**10 is 0.002."""
    found = list(one_sided([turned(gained, lost)]))
    assert [(one.path, one.recorded, one.recomputed) for one in found] == (
        [("/m, fragile choices that differ", f"{gained} right", f"{lost} right")] if told else []
    )


def test_the_chance_of_a_false_alarm_is_that_of_the_whole_check() -> None:
    assert len(list(one_sided([turned(11, 0)]))) == 1
    assert list(one_sided([turned(11, 0), turned(0, 0, "n")])) == []
    assert len(list(one_sided([turned(6, 0), turned(6, 0)]))) == 1, "the benchmarks of one model are taken together"
