"""What was found, in few sentences?  Picks from the estimates what the first page says; templates give it words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.verdict import CheckResult
from evalspec.reporting.documents import Placed, place_all
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.numbers import DEFAULT_DECIMALS, decimals_apart, decimals_of

__all__ = ["ByGroup", "CheckView", "Comparisons", "Level", "Overview", "check_views", "overview", "placed_estimates"]

LIMIT_WORDS = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
STYLES_OF_UNITS = {"proportion": "percent", "difference": "points", "rank": "rank", "score": "plain", "index": "index"}
GROUP_METRICS = ("worst_group", "group_gap", "harmony", "size_harmony")
BOUND_WORDS = {"low": "lower bound of ", "high": "upper bound of ", "value": "value of "}


@dataclass(frozen=True, slots=True)
class ByGroup:
    """What one accuracy hides: that of the worst group, the gap between groups, and harmony beside its value from sizes alone."""

    worst_group: Placed[Estimate]
    group_gap: Placed[Estimate]
    harmony: Placed[Estimate]
    size_harmony: Placed[Estimate]


@dataclass(frozen=True, slots=True)
class Level:
    """The range of one metric of one analysis over the models of one benchmark, at both ends with every model that stands there.

    `fewest` and `most` are those on the fewest and on the most questions. `by_group` is of the first of the highest, where the study asked for it.
    """

    analysis: str
    benchmark: str
    metric: str
    macro: bool
    highest: tuple[Placed[Estimate], ...]
    lowest: tuple[Placed[Estimate], ...]
    fewest: Placed[Estimate]
    most: Placed[Estimate]
    by_group: ByGroup | None = None


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


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check as the page shows it: which limit it sets, on which bound, and decimals that show observed and limit apart.

    `by_test` marks a difference held against 0, where the analysis's own test decides and not the interval. `stricter_at` is where the bounds
    stand that decide after the correction for the number of checks.
    """

    result: CheckResult
    at: str
    limit: str
    limit_words: str
    bound_words: str
    by_test: bool
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
    groups = _by_group(dossier)
    differences = [placed for placed in defined if placed.item.separated is not None]
    return Overview(
        levels=tuple(
            _level(list(group), groups)
            for _, group in groupby(levels, key=lambda placed: (placed.item.analysis, placed.item.benchmark, placed.item.metric))
        ),
        comparisons=tuple(
            _comparisons(list(group)) for _, group in groupby(differences, key=lambda placed: (placed.item.analysis, placed.item.benchmark))
        ),
        bounded=tuple(placed for placed in defined if placed.item.look is not None and placed.item.low is not None),
    )


def check_views(dossier: Dossier) -> tuple[CheckView, ...]:
    """Return every check of the verdict as the page shows it."""
    return tuple(_check_view(result, f"verdict.json#/checks/{index}") for index, result in enumerate(dossier.verdict.checks))


def _by_group(dossier: Dossier) -> dict[tuple[str, str], ByGroup]:
    """Return what the first analysis that looks at groups says, by benchmark and model."""
    found: dict[tuple[str, str, str], dict[str, Placed[Estimate]]] = {}
    for placed in placed_estimates(dossier):
        if placed.item.metric in GROUP_METRICS:
            found.setdefault((placed.item.analysis, placed.item.benchmark, placed.item.models[0]), {})[placed.item.metric] = placed
    told: dict[tuple[str, str], ByGroup] = {}
    for (_, benchmark, model), metrics in found.items():
        if len(metrics) == len(GROUP_METRICS):
            told.setdefault((benchmark, model), ByGroup(**metrics))
    return told


def _level(group: list[Placed[Estimate]], groups: Mapping[tuple[str, str], ByGroup]) -> Level:
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
        by_group=groups.get((first.benchmark, highest[0].item.models[0])),
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
    style = STYLES_OF_UNITS[observed.unit] if observed is not None else "points" if result.check.baseline else "percent"
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
