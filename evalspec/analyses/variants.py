"""Which rules could have been chosen otherwise, and what would the responses be then?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.artifacts.thresholds import Check

CaseId = Literal[
    "declared", "missing_wrong", "missing_left_out", "missing_worst", "missing_best", "without_flagged", "fragile_worst", "fragile_best", "macro"
]
DIRECTED = ("missing_worst", "missing_best", "fragile_worst", "fragile_best")
"""Cases that mean something only for or against somebody."""

Gaps = Mapping[str, float | None]
"""How close two best choices must be for an answer to count as fragile, in nats, by model; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Case:
    """A rule that applies to a benchmark, and how many answers (flagged: questions) it touches."""

    id: CaseId
    touched: int


@dataclass(frozen=True, slots=True)
class Sides:
    """The models whose uncertain answers count as wrong, and those whose count as right."""

    wrong: frozenset[str] = frozenset()
    right: frozenset[str] = frozenset()

    @classmethod
    def against(cls, model: str, others: Sequence[str] = ()) -> Sides:
        """Settle what is uncertain against a model and for others."""
        return cls(frozenset({model}), frozenset(others))

    @classmethod
    def against_claim(cls, check: Check, benchmark: BenchmarkResponses, unit: str) -> Sides:
        """Settle what is uncertain against what a check claims: for its model on the one side, on the other for its baseline, or else all others.

        A lower limit claims that the model is good, an upper one that it is bad; where less is better, and of a rank, the opposite.
        """
        others = [check.baseline] if check.baseline is not None else [model for model in benchmark.models if model != check.model]
        against = cls.against(check.model, others)
        falls = unit == "rank" or benchmark.lower_is_better
        return against if check.lower != falls else against.turned()

    def turned(self) -> Sides:
        """Settle it the other way round."""
        return Sides(self.right, self.wrong)


def gaps_of(benchmark: BenchmarkResponses, responses: Responses, declared: float | None) -> Gaps:
    """Return the fragile gap of each model: the declared one, or what the run's self-check of that model says."""
    known = {(origin.model, origin.benchmark): origin.fragile_gap for origin in responses.origins}
    return {model: known.get((model, benchmark.benchmark)) if declared is None else declared for model in benchmark.models}


def cases_of(benchmark: BenchmarkResponses, gaps: Gaps) -> tuple[Case, ...]:
    """Return the declared rules, and every other rule that can change a number of this benchmark."""
    import numpy as np

    missing, fragile = int(np.isnan(benchmark.scores).sum()), int(_fragile(benchmark, gaps).sum())
    flagged = sum(1 for flags in benchmark.flags if flags)
    cases = [Case("declared", 0)]
    if missing:
        cases += [Case(name, missing) for name in ("missing_wrong", "missing_left_out", "missing_worst", "missing_best")]
    if 0 < flagged < len(benchmark.questions):
        cases.append(Case("without_flagged", flagged))
    if fragile:
        cases += [Case(name, fragile) for name in ("fragile_worst", "fragile_best")]
    if benchmark.strata or (benchmark.clusters and benchmark.clusters == benchmark.subjects):
        cases.append(Case("macro", 0))
    return tuple(cases)


def varied(benchmark: BenchmarkResponses, case: CaseId, sides: Sides, gaps: Gaps) -> BenchmarkResponses:
    """Return the responses under one rule; `sides` says for whom and against whom a directed one is settled."""
    import numpy as np

    match case:
        case "missing_wrong":
            return replace(benchmark, missing="wrong")
        case "missing_left_out":
            return replace(benchmark, missing="complete_case")
        case "missing_worst" | "missing_best" | "fragile_worst" | "fragile_best":
            return settled_for(benchmark, uncertain(benchmark, case, gaps), sides)
        case "without_flagged":
            return _chosen(benchmark, np.array([not flags for flags in benchmark.flags], dtype=np.bool_))
        case "declared" | "macro":
            return benchmark


def uncertain(benchmark: BenchmarkResponses, case: CaseId, gaps: Gaps) -> NDArray[np.bool_]:
    """Return which answers (M, Q, K) a directed case counts for or against somebody."""
    import numpy as np

    return _fragile(benchmark, gaps) if case.startswith("fragile") else np.isnan(benchmark.scores)


def bearing(check: Check, benchmark: BenchmarkResponses, unit: str, case: CaseId = "missing_worst", gaps: Gaps | None = None) -> int:
    """Count the uncertain answers that bear on a check: of its models, for a rank of all, and in one subject where it names one."""
    named = {check.model, check.baseline}
    models = [unit == "rank" or model in named for model in benchmark.models]
    asked = [check.subject in (None, subject) for subject in benchmark.subjects]
    return int(uncertain(benchmark, case, gaps or {})[models][:, asked].sum())


def settled_for(benchmark: BenchmarkResponses, unsettled: NDArray[np.bool_], sides: Sides) -> BenchmarkResponses:
    """Return the responses with uncertain answers (M, Q, K) wrong for the models on the one side and right for those on the other.

    Of a score that is not of right answers, wrong is the worst there can be and right the best.
    """
    from evalspec.artifacts.responses import Reason

    scores, reasons = benchmark.scores.copy(), benchmark.reasons.copy()
    for place, model in enumerate(benchmark.models):
        if model in sides.wrong or model in sides.right:
            scores[place][unsettled[place]] = 1.0 - benchmark.worst if model in sides.right else benchmark.worst
            reasons[place][unsettled[place]] = Reason.NONE
    return replace(benchmark, scores=scores, reasons=reasons)


def _fragile(benchmark: BenchmarkResponses, gaps: Gaps) -> NDArray[np.bool_]:
    """Return which answers (M, Q, K) have two best choices closer than the model's gap; exact ties are missing answers already."""
    import numpy as np

    nothing = np.zeros(benchmark.scores.shape, dtype=np.bool_)
    limits = np.array([gaps.get(model) or 0.0 for model in benchmark.models])
    if benchmark.logprobs is None or benchmark.scores.shape[2] > 1 or benchmark.logprobs.shape[2] < 2:
        return nothing
    ranked = np.sort(np.where(np.isnan(benchmark.logprobs), -np.inf, benchmark.logprobs), axis=2)
    known = np.isfinite(ranked[:, :, -2])
    apart = np.where(known, ranked[:, :, -1] - np.where(known, ranked[:, :, -2], 0.0), np.inf)
    return np.asarray((apart < limits[:, None])[:, :, None] & ~np.isnan(benchmark.scores))


def _chosen(benchmark: BenchmarkResponses, which: NDArray[np.bool_]) -> BenchmarkResponses:
    """Return the responses to some of the questions; weights are scaled to average 1 again."""
    import numpy as np

    places = np.flatnonzero(which).tolist()
    weights = benchmark.weights[which]
    return replace(
        benchmark,
        questions=tuple(benchmark.questions[place] for place in places),
        subjects=tuple(benchmark.subjects[place] for place in places),
        clusters=tuple(benchmark.clusters[place] for place in places) if benchmark.clusters else (),
        flags=(),
        weights=weights / weights.mean(),
        scores=benchmark.scores[:, which],
        texts=None if benchmark.texts is None else benchmark.texts[:, which],
        reasons=benchmark.reasons[:, which],
        choices=benchmark.choices[:, which],
        logprobs=None if benchmark.logprobs is None else benchmark.logprobs[:, which],
    )
