"""Which works do analyses cite?  Those that several share, and which of all of them a result rests on: a report cites what was done, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

__all__ = [
    "CLUSTERS",
    "DIFFERENCES",
    "FAY_LUMBARD",
    "GAFFKE",
    "GAFFKE_BOUND",
    "HOLM",
    "INTERVALS",
    "MCNEMAR",
    "MEANS",
    "PAIRED_MEANS",
    "POOLS",
    "TANGO",
    "WILSON",
    "behind_intervals",
    "behind_pairs",
    "used",
]

CLUSTERS = "Bell & McCaffrey (2002), Surv. Methodol. 28(2), 169-181 (clusters)"
CLOPPER_PEARSON = "Clopper & Pearson (1934), Biometrika 26(4), 404-413, doi:10.1093/biomet/26.4.404"
EFFECTIVE = "Korn & Graubard (1998), Surv. Methodol. 24(2), 193-201 (effective number of questions)"
FAY_LUMBARD = "Fay & Lumbard (2021), Stat. Med. 40(5), 1147-1159, doi:10.1002/sim.8829"
FLIPS = "Canay, Romano & Shaikh (2017), Econometrica 85(3), 1013-1030, doi:10.3982/ECTA13081 (signs of clusters flipped)"
GAFFKE = "Gaffke (2005), Math. Methods Statist. 14(4), 451-467 (means of bounded scores)"
GAFFKE_BOUND = "Learned-Miller & Thomas (2019), arXiv:1905.06208 (Gaffke's bound as a confidence limit)"
HOLM = "Holm (1979), Scand. J. Stat. 6(2), 65-70"
JEFFREYS = "Brown, Cai & DasGupta (2001), Stat. Sci. 16(2), 101-133, doi:10.1214/ss/1009213286"
MCNEMAR = "McNemar (1947), Psychometrika 12(2), 153-157, doi:10.1007/BF02295996"
MEANS = "Miller (2024), arXiv:2411.00640 (means of scores, repeats, clusters)"
PAIRED_MEANS = "Miller (2024), arXiv:2411.00640 (means of question differences, repeats, clusters)"
POOLS = "Cochran (1977), Sampling Techniques, 3rd ed., chapters 2 and 5 (finite pools, strata)"
TANGO = "Tango (1998), Stat. Med. 17(8), 891-908"
WILSON = "Wilson (1927), J. Am. Stat. Assoc. 22(158), 209-212, doi:10.1080/01621459.1927.10502953"

POOL_TEST = "Berger & Boos (1994), J. Am. Stat. Assoc. 89(427), 1012-1016, doi:10.1080/01621459.1994.10476836 (exact test on a part of a pool)"

RANDOM_FLIPS = "Phipson & Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585 (sign flips)"

INTERVALS = (WILSON, CLOPPER_PEARSON, JEFFREYS, GAFFKE, GAFFKE_BOUND, EFFECTIVE, POOLS, CLUSTERS, MEANS)
"""The works behind intervals of one model."""

DIFFERENCES = (PAIRED_MEANS, CLUSTERS, GAFFKE, GAFFKE_BOUND, POOLS, POOL_TEST)
"""The works behind tests and intervals of two models, beside McNemar's test and flipped signs."""

BEHIND_INTERVALS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "wilson": (WILSON, JEFFREYS),  # Brown, Cai & DasGupta recommend either
        "clopper_pearson": (CLOPPER_PEARSON,),
        "jeffreys": (JEFFREYS,),
        "effective_n": (EFFECTIVE, POOLS),
        "pool": (POOLS,),
        "stratified": (EFFECTIVE, POOLS),
        "clustered": (EFFECTIVE, MEANS),
        "t": (MEANS,),
        "stratified_t": (MEANS, POOLS),
        "cr2_t": (MEANS, CLUSTERS),
        "cluster_means_t": (MEANS,),
        "gaffke": (GAFFKE, GAFFKE_BOUND),
        "gaffke_clustered": (GAFFKE, GAFFKE_BOUND, CLUSTERS),  # the standard error beside the bounds is CR2's
        "gaffke_cluster_means": (GAFFKE, GAFFKE_BOUND),
        "gaffke_weighted": (GAFFKE, GAFFKE_BOUND, POOLS),  # the standard error beside the bounds is that of strata
        "chosen": (),
    }
)

BEHIND_PAIRS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mcnemar": (MCNEMAR,),
        "tango": (TANGO,),
        "pool_exact": (MCNEMAR, POOLS, POOL_TEST),
        "tango_effective_n": (TANGO, POOLS),
        "t": (PAIRED_MEANS,),
        "stratified_t": (PAIRED_MEANS, POOLS),
        "cr2_t": (PAIRED_MEANS, CLUSTERS),
        "cluster_means_t": (PAIRED_MEANS,),
        "cluster_sign_flip": (PAIRED_MEANS, FLIPS),
        "fay_lumbard": (FAY_LUMBARD,),
        "gaffke": (GAFFKE, GAFFKE_BOUND),
        "gaffke_clustered": (GAFFKE, GAFFKE_BOUND),
    }
)


def behind_intervals(methods: Iterable[str | None]) -> frozenset[str]:
    """Return the works behind intervals of one model, by their names, such as `wilson_stratified`."""
    found: set[str] = set()
    for method in filter(None, methods):
        base = next((name for name in ("wilson", "clopper_pearson", "jeffreys") if method.startswith(name)), method)
        found |= {*BEHIND_INTERVALS[base], *BEHIND_INTERVALS.get(method.removeprefix(f"{base}_"), ())}
    return frozenset(found)


def behind_pairs(names: Iterable[str | None]) -> frozenset[str]:
    """Return the works behind tests and intervals of two models, by their names."""
    return frozenset(work for name in filter(None, names) for work in BEHIND_PAIRS.get(name, ()))


def used(listed: Iterable[str], rested_on: Collection[str]) -> tuple[str, ...]:
    """Return those of the works that an analysis lists, in its order, on which a result rests."""
    return tuple(work for work in listed if work in rested_on)
