"""What was found, in few sentences?  Picks from the estimates what the first page says; templates give it words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.verdict import CheckResult
from evalspec.reporting.documents import Placed, place_all
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.numbers import DEFAULT_DECIMALS, decimals_apart, decimals_of

__all__ = ["CheckView", "Comparisons", "Level", "Overview", "check_views", "overview", "placed_estimates"]

LIMIT_WORDS = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
STYLES_OF_UNITS = {"proportion": "percent", "difference": "points", "rank": "rank"}
BOUND_WORDS = {"low": "lower bound of ", "high": "upper bound of ", "value": "value of "}


@dataclass(frozen=True, slots=True)
class Level:
    """The range of one metric over the models of one benchmark; `highest` and `lowest` are one estimate where one model has it."""

    benchmark: str
    metric: str
    highest: Placed[Estimate]
    lowest: Placed[Estimate]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Differences of one analysis on one benchmark, by the decision of its own adjusted test."""

    analysis: str
    benchmark: str
    separated: tuple[Placed[Estimate], ...]
    open: tuple[Placed[Estimate], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page says was found; `bounded` are differences that a bound decides on, and no test of their own."""

    levels: tuple[Level, ...]
    comparisons: tuple[Comparisons, ...]
    bounded: tuple[Placed[Estimate], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check as the page shows it: which limit it sets, on which bound, and decimals that show observed and limit apart.

    `by_test` marks a difference held against 0, where the analysis's own adjusted test decides and not the interval.
    """

    result: CheckResult
    at: str
    limit: str
    limit_words: str
    bound_words: str
    by_test: bool
    style: str
    decimals: int

    @property
    def compared(self) -> str:
        """The models that the check speaks of."""
        check = self.result.check
        return check.model if check.baseline is None else f"{check.model} − {check.baseline}"


def placed_estimates(dossier: Dossier) -> tuple[Placed[Estimate], ...]:
    """Return every estimate of the findings with its address."""
    return tuple(
        placed for index, finding in enumerate(dossier.findings.findings) for placed in place_all(finding.estimates, f"/findings/{index}/estimates")
    )


def overview(dossier: Dossier) -> Overview:
    """Return the range of every metric per benchmark, and which comparisons are separated."""
    defined = [placed for placed in placed_estimates(dossier) if placed.item.value is not None and placed.item.subject is None]
    sure = [placed for placed in defined if placed.item.confidence_level is not None and len(placed.item.models) == 1]
    levels = [placed for placed in sure if placed.item.unit == "proportion"]
    differences = [placed for placed in defined if placed.item.separated is not None]
    return Overview(
        levels=tuple(
            _level(list(group)) for _, group in groupby(levels, key=lambda placed: (placed.item.analysis, placed.item.benchmark, placed.item.metric))
        ),
        comparisons=tuple(
            _comparisons(list(group)) for _, group in groupby(differences, key=lambda placed: (placed.item.analysis, placed.item.benchmark))
        ),
        bounded=tuple(placed for placed in defined if placed.item.sides != "two" and placed.item.low is not None),
    )


def check_views(dossier: Dossier) -> tuple[CheckView, ...]:
    """Return every check of the verdict as the page shows it."""
    return tuple(_check_view(result, f"verdict.json#/checks/{index}") for index, result in enumerate(dossier.verdict.checks))


def _level(group: list[Placed[Estimate]]) -> Level:
    ordered = sorted(group, key=lambda placed: (placed.item.value or 0.0, placed.item.models))
    first = ordered[0].item
    return Level(first.benchmark, first.metric, highest=ordered[-1], lowest=ordered[0])


def _comparisons(group: list[Placed[Estimate]]) -> Comparisons:
    first = group[0].item
    return Comparisons(
        first.analysis,
        first.benchmark,
        separated=tuple(placed for placed in group if placed.item.separated),
        open=tuple(placed for placed in group if not placed.item.separated),
    )


def _check_view(result: CheckResult, at: str) -> CheckView:
    limit = next(name for name in LIMIT_WORDS if getattr(result.check, name) is not None)
    bound = result.check.bound or ("low" if limit in {"at_least", "above"} else "high")
    observed = result.observed
    style = STYLES_OF_UNITS[observed.unit] if observed is not None else "percent"
    by_test = observed is not None and observed.separated is not None and bound != "value" and getattr(result.check, limit) == 0
    return CheckView(
        result,
        at,
        limit=limit,
        limit_words=LIMIT_WORDS[limit],
        bound_words="" if by_test else BOUND_WORDS[bound],
        by_test=by_test,
        style=style,
        decimals=_decimals(observed, getattr(result.check, limit)),
    )


def _decimals(observed: Estimate | None, limit: float) -> int:
    if observed is None:
        return DEFAULT_DECIMALS
    decimals = decimals_of([observed])
    for number in (observed.value, observed.low, observed.high):
        if number is not None:
            decimals = decimals_apart(number, limit, decimals=decimals)
    return decimals
