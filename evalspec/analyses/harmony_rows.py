"""What does harmony say of one model on one benchmark, over groups that are given?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalspec.analyses.harmony_results import GroupRow, HarmonyOptions, HarmonyRow, LowestAccuracy, Rebalanced, SweepPoint
from evalspec.analyses.harmony_scored import Scored, scored_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from evalspec.analyses.harmony_partitions import Partition
    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.harmony import Kernel

CIRCULAR = "the groups were made from the models' own answers, so a test against those answers would be circular"
CLUSTERED = "questions come in clusters, and scores of clustered questions cannot be reshuffled one by one"
ALIKE = "all scores are alike"
MOST_RANGE = 0.1
FAR_APART = (0.25, 0.75)


@dataclass(frozen=True, slots=True)
class Streams:
    """Where draws come from: `rng` for tests and intervals; `pruning` is one seed for all models, so that all lose the same questions."""

    rng: np.random.Generator
    pruning: int


def harmony_row(benchmark: BenchmarkResponses, model: int, partition: Partition, options: HarmonyOptions, streams: Streams) -> HarmonyRow:
    """Return everything that is said of one model; `model` is its position."""
    row = HarmonyRow(benchmark=benchmark.benchmark, model=benchmark.models[model], n=0)
    try:
        scored = scored_groups(benchmark, model, partition, options)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    nearby = _nearby(scored, options)
    found = {
        "n": scored.scores.size,
        "k": len(partition.names),
        **_described(scored, options),
        **_interval(scored, options, streams.rng),
        **_tested(scored, options, streams.rng),
        "rebalanced": _rebalanced(scored, options, streams.pruning),
        "near_k": nearby,
        "flags": (*partition.summary.flags, *_small_groups(scored, options), *_blind(scored, options), *_unsettled(scored, nearby, options)),
    }
    return row.model_copy(update=found)


def _small_groups(scored: Scored, options: HarmonyOptions) -> Iterator[str]:
    small = int((scored.sizes < options.min_cluster).sum())
    if small:
        number = "1 group has" if small == 1 else f"{small} groups have"
        yield f"{number} fewer than {options.min_cluster} scored questions"


def _blind(scored: Scored, options: HarmonyOptions) -> Iterator[str]:
    """Say of two groups of nearly one size that harmony does not see them: both lie equally far from the mean, whatever their accuracies."""
    from evalspec.statistics.harmony import harmony, size_harmony

    if scored.shares.size == 2 and harmony(FAR_APART, scored.shares, _kernel(options)) > size_harmony(scored.shares, _kernel(options)) - MOST_RANGE:
        yield "of two groups of nearly one size, harmony is near 1 whatever their accuracies"


def _nearby(scored: Scored, options: HarmonyOptions) -> tuple[SweepPoint, ...]:
    """Return harmony over nearly as many induced groups."""
    import numpy as np

    from evalspec.statistics.harmony import harmony

    found = []
    for codes in scored.partition.nearby:
        sizes = np.bincount(codes[scored.kept])
        asked = sizes > 0
        if asked.sum() > 1:
            means = np.bincount(codes[scored.kept], scored.scores)[asked] / sizes[asked]
            found.append(SweepPoint(k=int(asked.sum()), value=harmony(means, sizes[asked], _kernel(options))))
    return tuple(found)


def _unsettled(scored: Scored, nearby: tuple[SweepPoint, ...], options: HarmonyOptions) -> Iterator[str]:
    from evalspec.statistics.harmony import harmony

    values = [harmony(scored.means, scored.shares, _kernel(options)), *(point.value for point in nearby)]
    if max(values) - min(values) > MOST_RANGE:
        yield "harmony moves by more than 0.10 over nearly as many groups"


def _described(scored: Scored, options: HarmonyOptions) -> dict[str, object]:
    from evalspec.statistics.harmony import harmony, masses, size_harmony, spread

    names, apart = scored.partition.names, spread(scored.means, scored.shares)
    mass = masses(scored.means, scored.shares, _kernel(options))
    sweep = [SweepPoint(b=wide, value=harmony(scored.means, scored.shares, _kernel(options, wide))) for wide in sorted(set(options.b_sweep))]
    return {
        "value": harmony(scored.means, scored.shares, _kernel(options)),
        "size_harmony": size_harmony(scored.shares, _kernel(options)),
        "accuracy": apart.mean,
        "macro": apart.macro,
        "deviation": apart.deviation,
        "gap": apart.gap,
        "worst": names[apart.worst],
        "best": names[apart.best],
        "lowest": _lowest(scored, apart.worst),
        "sweep": tuple(sweep),
        "groups": tuple(_group_row(scored, code, float(mass[code])) for code in range(len(names))),
    }


def _lowest(scored: Scored, worst: int) -> LowestAccuracy:
    """Return limits of the lowest true accuracy of any group.

    The least lower bound is above it no more often than one bound errs; the least upper bound, of bounds for all groups at once, is below it no
    more often than those together do.
    """
    value = float(scored.means[worst])
    lows = [found.interval.low for found in scored.found if found and found.interval]
    highs = [found.interval.high for found in scored.wider if found and found.interval]
    complete = len(lows) == len(highs) == len(scored.found)
    limits = {"low": min(*lows, value), "high": max(min(highs), value)} if complete else {}
    return LowestAccuracy(value=value, n=int(scored.sizes[worst]), **limits)


def _group_row(scored: Scored, code: int, mass: float) -> GroupRow:
    found = scored.found[code]
    limits = found.interval if found else None
    value = float(scored.means[code])
    return GroupRow(
        group=scored.partition.names[code],
        n=int(scored.sizes[code]),
        weight=float(scored.shares[code]),
        value=value,
        low=min(limits.low, value) if limits else None,
        high=max(limits.high, value) if limits else None,
        mass=mass,
    )


def _interval(scored: Scored, options: HarmonyOptions, rng: np.random.Generator) -> dict[str, object]:
    """Give the limits, drawn out to the observed value: sampling noise can carry it below them."""
    from evalspec.statistics.harmony import harmony
    from evalspec.statistics.harmony_intervals import empirical_bayes_interval

    limits = empirical_bayes_interval(
        scored.means,
        scored.errors,
        scored.shares,
        draws=options.null_draws,
        rng=rng,
        level=options.level,
        kernel=_kernel(options),
        asked=scored.asked,
        own=_own_limits(scored, options),
    )
    value = harmony(scored.means, scored.shares, _kernel(options))
    return {"low": min(limits.low, value), "high": max(limits.high, value), "between": limits.between}


def _own_limits(scored: Scored, options: HarmonyOptions) -> tuple[list[float], list[float]]:
    """Return the limits of each group alone, as its row has them; scores without a spread get those that hold whatever other scores may be."""
    from evalspec.statistics.harmony_intervals import alike_limits

    lows, highs = [], []
    for found, value, size in zip(scored.found, scored.means.tolist(), scored.sizes.tolist(), strict=True):
        limits = found.interval if found else None
        units = found.clusters or size if found else size
        low, high = (limits.low, limits.high) if limits else alike_limits(value, units, level=options.level)
        lows.append(min(low, value))
        highs.append(max(high, value))
    return lows, highs


def _tested(scored: Scored, options: HarmonyOptions, rng: np.random.Generator) -> dict[str, object]:
    """Give both tests of equal groups, or why there are none."""
    from evalspec.statistics.harmony import harmony
    from evalspec.statistics.harmony_nulls import harmony_null

    reason = CIRCULAR if scored.partition.from_answers else ALIKE if scored.scores.min() == scored.scores.max() else None
    if reason:
        return {"untested": reason}
    tested = _homogeneity(scored)
    if scored.clustered:
        return {**tested, "untested": CLUSTERED}
    null = harmony_null(scored.scores, scored.codes.tolist(), draws=options.null_draws, rng=rng, kernel=_kernel(options), weights=scored.shares)
    distance = harmony(scored.means, scored.shares, _kernel(options)) - null.mean
    return {**tested, "null_mean": null.mean, "distance": distance, "p_value": null.p_value, "p_error": null.standard_error}


def _homogeneity(scored: Scored) -> dict[str, object]:
    import numpy as np

    from evalspec.statistics.harmony_nulls import SMALLEST_EXPECTED, homogeneous_counts, homogeneous_means

    if not scored.counted or scored.clustered:
        return {"homogeneity_test": "cochran_q", "homogeneity_p": homogeneous_means(scored.means, scored.errors).p_value}
    found = homogeneous_counts(np.rint(scored.means * scored.sizes).astype(np.int64), scored.sizes)
    few = found.smallest_expected is not None and found.smallest_expected < SMALLEST_EXPECTED
    cautions = ("fewer than five right or wrong answers are expected in a group, so the homogeneity test is rough",) if few else ()
    return {"homogeneity_test": "pearson", "homogeneity_p": found.p_value, "cautions": cautions}


def _kernel(options: HarmonyOptions, bandwidth: float | None = None) -> Kernel:
    from evalspec.statistics.harmony import Kernel

    return Kernel(bandwidth or options.b, options.eps)


def _rebalanced(scored: Scored, options: HarmonyOptions, seed: int) -> Rebalanced | None:
    import numpy as np

    from evalspec.statistics.harmony import harmony
    from evalspec.statistics.rebalancing import levelled_sizes, removal_test, thinned

    kept_sizes = levelled_sizes(scored.sizes, most_removed=options.prune)
    if scored.weighted or np.array_equal(kept_sizes, scored.sizes):
        return None
    kept = thinned(scored.codes, kept_sizes, rng=np.random.default_rng(seed))
    means = np.bincount(scored.codes[kept], scored.scores[kept]) / kept_sizes
    row = Rebalanced(
        kept=int(kept.sum()),
        removed=int((~kept).sum()),
        value=float(scored.scores[kept].mean()),
        harmony=harmony(means, kept_sizes, _kernel(options)),
    )
    if scored.clustered or scored.partition.from_answers:
        return row.model_copy(update={"undefined": CLUSTERED if scored.clustered else CIRCULAR})
    return row.model_copy(update={"p_value": removal_test(scored.scores, kept)})
