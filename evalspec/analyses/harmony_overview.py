"""What do many benchmarks and models show together: the mean-variance plane, and harmony against declared traits of models?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evalspec.analyses.harmony_results import HarmonyRow, PlanePoint, TraitCorrelation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

    from evalspec.artifacts.study import Model

FEWEST_MODELS = 4
"""With fewer models, no order of theirs is rare enough to say anything."""

TOO_FEW_FOR_VARIANCE = "harmony is said of fewer than two models"
CONSTANT = "harmony or the trait is the same for all of these models"
Trait = Literal["parameters", "training_tokens"]
TRAITS: tuple[Trait, ...] = ("parameters", "training_tokens")


def mean_variance_plane(rows: Sequence[HarmonyRow]) -> tuple[PlanePoint, ...]:
    """Return each benchmark's mean and variance of harmony over models; nothing for a single benchmark."""
    benchmarks = list(dict.fromkeys(row.benchmark for row in rows))
    return tuple(_point(name, [row for row in rows if row.benchmark == name]) for name in benchmarks) if len(benchmarks) > 1 else ()


def trait_correlations(rows: Sequence[HarmonyRow], models: Sequence[Model], *, draws: int, rng: np.random.Generator) -> tuple[TraitCorrelation, ...]:
    """Return, by benchmark and trait, how harmony goes with it over all models that declare it, and within each family of enough models."""
    found = []
    for benchmark in dict.fromkeys(row.benchmark for row in rows):
        harmonies = {row.model: row.value for row in rows if row.benchmark == benchmark and row.value is not None and not row.flags}
        for trait in TRAITS:
            found += [_correlation(benchmark, trait, *group, draws, rng) for group in _families(harmonies, models, trait)]
    return tuple(found)


def _point(benchmark: str, rows: Sequence[HarmonyRow]) -> PlanePoint:
    import numpy as np

    known = [row for row in rows if row.value is not None and not row.flags]
    if len(known) < 2:
        return PlanePoint(benchmark=benchmark, models=len(known), undefined=TOO_FEW_FOR_VARIANCE)
    values = np.array([row.value for row in known])
    distances = [row.distance for row in known if row.distance is not None]
    return PlanePoint(
        benchmark=benchmark,
        models=len(known),
        mean=float(values.mean()),
        variance=float(values.var(ddof=1)),
        mean_distance=float(np.mean(distances)) if len(distances) == len(known) else None,
    )


Pairs = list[tuple[float, float]]


def _families(harmonies: Mapping[str, float], models: Sequence[Model], trait: Trait) -> Iterator[tuple[str | None, Pairs]]:
    """Yield a name and the pairs of harmony and trait: of all models first, then of each family."""
    pairs: dict[str | None, Pairs] = {None: []}
    for model in models:
        value, harmony = getattr(model, trait), harmonies.get(model.id)
        if value is None or harmony is None:
            continue
        pairs[None].append((harmony, value))
        if model.family is not None:
            pairs.setdefault(model.family, []).append((harmony, value))
    for family, entries in pairs.items():
        if len(entries) >= FEWEST_MODELS and (family is None or len(entries) < len(pairs[None])):
            yield family, entries


def _correlation(benchmark: str, trait: Trait, family: str | None, pairs: Pairs, draws: int, rng: np.random.Generator) -> TraitCorrelation:
    from evalspec.statistics.rank_correlations import spearman

    row = TraitCorrelation(benchmark=benchmark, trait=trait, family=family, models=len(pairs))
    try:
        found = spearman([harmony for harmony, _ in pairs], [value for _, value in pairs], draws=draws, rng=rng)
    except ValueError:
        return row.model_copy(update={"undefined": CONSTANT})
    return row.model_copy(update={"value": found.coefficient, "p_value": found.p_value})
