"""What was found, in few sentences?  Picks from the estimates what the first page says; templates give it words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.verdict import CheckResult
from evalspec.reporting.by_group import GROUP_METRICS
from evalspec.reporting.documents import Placed, place_all
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.numbers import DEFAULT_DECIMALS, decimals_apart, decimals_of

__all__ = ["CheckView", "Comparisons", "Level", "Overview", "check_views", "overview", "placed_estimates"]

LIMIT_WORDS = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
STYLES_OF_UNITS = {"proportion": "percent", "difference": "points", "rank": "rank", "score": "plain", "index": "index"}
STYLES_OF_METRICS = {"detectable_difference": "gap", "group_gap": "gap"}
"""Shares that are distances between two accuracies, which are counted in points."""

BOUND_WORDS = {"low": "lower bound of ", "high": "upper bound of ", "value": "value of "}


@dataclass(frozen=True, slots=True)
class Level:
    """The range of one metric of one analysis over the models of one benchmark, at both ends with every model that stands there.

    `every` holds all models, highest first; `fewest` and `most` are those on the fewest and on the most questions; `declared` says that the
    study declares what a score is, other than right answers.
    """

    analysis: str
    benchmark: str
    metric: str
    macro: bool
    highest: tuple[Placed[Estimate], ...]
    lowest: tuple[Placed[Estimate], ...]
    fewest: Placed[Estimate]
    most: Placed[Estimate]
    every: tuple[Placed[Estimate], ...]
    planned: bool
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Differences of one analysis on one benchmark, by the decision of its own test.

    `adjusted` says whether the family is allowed for, `single` that the family is one comparison, for which nothing needs to be allowed.
    """

    analysis: str
    benchmark: str
    adjusted: bool
    single: bool
    planned: bool
    separated: tuple[Placed[Estimate], ...]
    open: tuple[Placed[Estimate], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page says was found; `bounded` are differences that are held against a declared limit, and have no test of their own."""

    levels: tuple[Level, ...]
    comparisons: tuple[Comparisons, ...]
    bounded: tuple[Placed[Estimate], ...] = ()

    @property
    def parted(self) -> bool:
        """Whether one analysis separates two models of a benchmark that another one leaves open."""
        apart = {(placed.item.benchmark, frozenset(placed.item.models)) for one in self.comparisons for placed in one.separated}
        return any((placed.item.benchmark, frozenset(placed.item.models)) in apart for one in self.comparisons for placed in one.open)

    @property
    def accuracies(self) -> tuple[Level, ...]:
        """The first range of accuracies of each benchmark, where they are shares of right answers."""
        first: dict[str, Level] = {}
        for level in self.levels:
            if level.metric == "accuracy" and not level.declared:
                first.setdefault(level.benchmark, level)
        return tuple(first.values())


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check as the page shows it: which limit it sets, on which bound, and decimals that show observed and limit apart.

    `by_test` marks a difference held against 0, where the analysis's own test decides and not the interval; `adjusted` says that its p-value is
    adjusted for the family of the analysis, which is left out where checks are corrected for their own number. `stricter_at` is where the bounds
    stand that decide after the correction for the number of checks.
    """

    result: CheckResult
    at: str
    limit: str
    limit_words: str
    bound_words: str
    by_test: bool
    adjusted: bool
    style: str
    decimals: int
    stricter_at: str | None

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
    levels = [placed for placed in sure if placed.item.unit == "proportion" and placed.item.metric not in GROUP_METRICS]
    differences = [placed for placed in defined if placed.item.separated is not None]
    return Overview(
        levels=tuple(
            replace(_level(list(group)), declared=dossier.protocol.benchmark(benchmark).score is not None)
            for (_, benchmark, _), group in groupby(levels, key=lambda placed: (placed.item.analysis, placed.item.benchmark, placed.item.metric))
        ),
        comparisons=tuple(
            _comparisons(list(group)) for _, group in groupby(differences, key=lambda placed: (placed.item.analysis, placed.item.benchmark))
        ),
        bounded=tuple(placed for placed in defined if placed.item.look is not None and placed.item.low is not None),
    )


def check_views(dossier: Dossier) -> tuple[CheckView, ...]:
    """Return every check of the verdict as the page shows it."""
    corrected = dossier.protocol.thresholds is not None and dossier.protocol.thresholds.require == "any"
    views = (_check_view(result, f"verdict.json#/checks/{index}") for index, result in enumerate(dossier.verdict.checks))
    return tuple(replace(view, adjusted=view.adjusted and not corrected) for view in views)


def _level(group: list[Placed[Estimate]]) -> Level:
    first = group[0].item
    values = [round(placed.item.value or 0.0, 12) for placed in group]
    ends = min(values), max(values)
    lowest, highest = (tuple(placed for placed, value in zip(group, values, strict=True) if value == end) for end in ends)
    return Level(
        first.analysis,
        first.benchmark,
        first.metric,
        macro=first.method.endswith("average over subjects"),
        highest=highest,
        lowest=lowest,
        fewest=min(group, key=lambda placed: placed.item.n),
        most=max(group, key=lambda placed: placed.item.n),
        every=tuple(sorted(group, key=lambda placed: -(placed.item.value or 0.0))),
        planned=first.planned,
    )


def _comparisons(group: list[Placed[Estimate]]) -> Comparisons:
    first = group[0].item
    return Comparisons(
        first.analysis,
        first.benchmark,
        adjusted=any(placed.item.p_adjusted is not None for placed in group),
        single=first.family_size == 1,
        planned=first.planned,
        separated=tuple(placed for placed in group if placed.item.separated),
        open=tuple(placed for placed in group if not placed.item.separated),
    )


def _check_view(result: CheckResult, at: str) -> CheckView:
    limit = next(name for name in LIMIT_WORDS if getattr(result.check, name) is not None)
    bound = result.check.bound or ("low" if limit in {"at_least", "above"} else "high")
    observed = result.observed
    stricter = observed.stricter if observed is not None and result.divisor > 1 else ()
    usual = STYLES_OF_UNITS[observed.unit] if observed is not None else "points" if result.check.baseline else "percent"
    style = STYLES_OF_METRICS.get(result.check.metric, usual)
    by_test = observed is not None and observed.separated is not None and bound != "value" and getattr(result.check, limit) == 0
    return CheckView(
        result,
        at,
        limit=limit,
        limit_words=LIMIT_WORDS[limit],
        bound_words="" if by_test else BOUND_WORDS[bound],
        by_test=by_test,
        adjusted=by_test and observed is not None and observed.p_adjusted is not None,
        style=style,
        decimals=_decimals(observed, getattr(result.check, limit)),
        stricter_at=next((f"{at}/observed/stricter/{place}" for place, one in enumerate(stricter) if one.divisor == result.divisor), None),
    )


def _decimals(observed: Estimate | None, limit: float) -> int:
    if observed is None:
        return DEFAULT_DECIMALS
    decimals = decimals_of([observed])
    for number in (observed.value, observed.low, observed.high):
        if number is not None:
            decimals = decimals_apart(number, limit, decimals=decimals)
    return decimals
