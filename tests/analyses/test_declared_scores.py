"""A score of which less is better is ranked, settled and gated as its complement, of which more is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.analyses import intervals, mcnemar, noninferiority, redraw, sensitivity, split_half, subgroups, tiers
from evalspec.analyses.catalogue import BUILT_IN
from evalspec.artifacts.responses import Reason, Responses
from evalspec.artifacts.scores import Score
from evalspec.language.scores import RIGHT_ANSWERS
from evalspec.protocols import AnyAnalysis, Context
from evalspec.reporting.figures import Chart

from .tables import rendered, responses_of

LESS = Score(unit="share of toxic sentences", polarity="lower_is_better")
MORE = Score(unit="share of polite sentences", polarity="higher_is_better")
PAIR: Mapping[str, Any] = {"kind": "mcnemar", "family": "all_pairs"}


def merits(models: int = 4, questions: int = 120, *, binary: bool = False) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    drawn = np.clip(rng.normal(np.linspace(0.7, 0.4, models)[:, None], 0.2, (models, questions)), 0.0, 1.0)
    scores = (drawn > 0.5).astype(np.float64) if binary else np.round(drawn, 3)
    scores[0, :3] = np.nan
    return scores


def both(scores: NDArray[np.float64], **fields: object) -> tuple[Responses, Responses]:
    """The same answers as a score of which more is better, and as its complement, of which less is."""
    return responses_of(scores, score=MORE, **fields), responses_of(1.0 - scores, score=LESS, **fields)


def computed(module: Any, responses: Responses, **options: Any) -> Any:
    analysis: AnyAnalysis = module.ANALYSIS
    return analysis.compute(responses, analysis.options.model_validate({"kind": analysis.kind, **options}), Context(rng=np.random.default_rng(1)))


@pytest.mark.parametrize("missing", ["wrong", "complete_case"])
@pytest.mark.parametrize("binary", [True, False])
def test_ranks_tiers_redraws_and_halves_are_those_of_the_complement(missing: str, *, binary: bool) -> None:
    more, less = both(merits(binary=binary), missing=missing)
    for method in ("holm", "max_t"):
        up, down = (computed(tiers, responses, method=method) for responses in (more, less))
        assert [(row.model, row.rank, row.low, row.high, row.letters) for row in up.rows] == [
            (row.model, row.rank, row.low, row.high, row.letters) for row in down.rows
        ]
        assert [row.score for row in down.rows] == pytest.approx([1.0 - row.score for row in up.rows])
        assert [row.possible_best for row in up.rows] == [row.possible_best for row in down.rows]
    for module in (redraw, split_half):
        up, down = (computed(module, responses, draws=1000) for responses in (more, less))
        assert up.rows == down.rows or module is split_half
        assert up.pools[0].models == down.pools[0].models
        assert down.pools[0].scores == pytest.approx([1.0 - score for score in up.pools[0].scores])
    assert down.rows[0].lead_selected.value == pytest.approx(up.rows[0].lead_selected.value)
    assert down.rows[0].wins == up.rows[0].wins


def test_a_missing_answer_that_counts_as_wrong_has_the_worst_score() -> None:
    _, less = both(np.array([[np.nan, 1.0, 1.0], [1.0, 0.0, 1.0]]), missing="wrong")
    assert less.benchmarks[0].settled().tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert less.benchmarks[0].reasons[0, 0, 0] == Reason.NOT_ANSWERED


def test_intervals_and_differences_are_those_of_the_complement_turned_round() -> None:
    more, less = both(merits())
    for up, down in zip(computed(intervals, more).rows, computed(intervals, less).rows, strict=True):
        assert (down.value, down.low, down.high) == pytest.approx((1.0 - up.value, 1.0 - up.high, 1.0 - up.low))
    up, down = (computed(mcnemar, responses, family="all_pairs") for responses in (more, less))
    assert up.order == down.order == {"b": ("m0", "m1", "m2", "m3")}
    for one, other in zip(up.rows, down.rows, strict=True):
        assert (one.first, one.second, one.separated) == (other.first, other.second, other.separated)
        assert other.difference == pytest.approx(-one.difference)


def test_adjacent_models_are_the_same_ones() -> None:
    more, less = both(merits())
    pairs = [[(row.first, row.second) for row in computed(mcnemar, responses, family="adjacent").rows] for responses in (more, less)]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize("hypothesis", ["noninferiority", "equivalence", "superiority"])
@pytest.mark.parametrize("binary", [True, False])
def test_a_release_gate_says_of_less_what_it_says_of_the_complement(hypothesis: str, *, binary: bool) -> None:
    options = {"candidate": "m1", "baseline": "m0", "hypothesis": hypothesis, **({} if hypothesis == "superiority" else {"margin": 0.1})}
    more, less = both(merits(binary=binary))
    (up,), (down,) = (computed(noninferiority, responses, **options).rows for responses in (more, less))
    assert (down.difference, down.low, down.high, down.p_value) == pytest.approx((-up.difference, -up.high, -up.low, up.p_value))
    assert (down.outcome, down.n, down.baseline_missing) == (up.outcome, up.n, 3)
    (estimate,) = noninferiority.estimates(computed(noninferiority, less, **options))
    assert estimate.sides == ("two" if hypothesis == "equivalence" else "upper")


def test_the_worst_case_of_a_missing_answer_is_the_highest_score() -> None:
    more, less = both(merits())
    up, down = (computed(sensitivity, responses, pairs=(("m0", "m1"),)) for responses in (more, less))
    for one, other in zip((*up.accuracies, *up.differences), (*down.accuracies, *down.differences), strict=True):
        assert one.case == other.case
        if hasattr(one, "place"):
            assert other.value == pytest.approx(1.0 - one.value)
            assert other.place == one.place
        else:
            assert other.difference == pytest.approx(-one.difference)


def test_every_section_names_the_unit_in_its_sentences_and_in_its_axis() -> None:
    _, less = both(merits(), subjects=("law", "logic") * 60, strata=True)
    asked = {
        intervals: {"kind": "intervals"},
        mcnemar: PAIR,
        tiers: {"kind": "tiers"},
        redraw: {"kind": "redraw", "draws": 1000},
        split_half: {"kind": "split_half", "draws": 1000},
        subgroups: {"kind": "subgroups", "model": "m0"},
        sensitivity: {"kind": "sensitivity"},
        noninferiority: {"kind": "noninferiority", "candidate": "m1", "baseline": "m0", "margin": 0.1},
    }
    for module, options in asked.items():
        words = rendered(module.ANALYSIS, less, options)
        assert "b: scores are the share of toxic sentences, as recorded, and less is better" in words, module
        if module not in (redraw, split_half, tiers):
            result = computed(module, less, **{name: value for name, value in options.items() if name != "kind"})
            chart = Chart()
            module.plot(result, chart)
            assert "share of toxic sentences (less is better)" in chart.draw("wide").svg, module
    words = rendered(intervals.ANALYSIS, less, {"kind": "intervals"})
    assert "Share of toxic sentences on b; in order of the estimate, best first" in words
    assert words.index(" m0 ") < words.index(" m3 ")
    assert "Accuracy on b" not in words


def test_kinds_that_are_not_told_of_the_polarity_are_refused_by_the_study_language() -> None:
    told = {module.ANALYSIS.kind for module in (intervals, mcnemar, tiers, redraw, split_half, subgroups, sensitivity, noninferiority)}
    assert set(BUILT_IN) == told | set(RIGHT_ANSWERS)
