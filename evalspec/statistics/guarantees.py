"""How well does a bound keep its error rate?  One answer per bound, by the name that results give it.

Assumption: that of the bound. The documentation on gates gives measured rates of those that are not exact, as far as there are any.
"""

from __future__ import annotations

from typing import Literal

Guarantee = Literal["exact", "conjectured", "effective", "approximate", "unmeasured"]
"""`exact`: at every sample size. `conjectured`: so, by a conjecture that calculation supports. `effective`: a bound of right and wrong answers on
the effective number of questions, approximately. `approximate`: the more closely the larger the sample, by rates that were measured.
`unmeasured`: at best so."""

EXACT = ("clopper_pearson", "clopper_pearson_pool", "e_value")
CONJECTURED = ("fay_lumbard", "gaffke", "gaffke_clustered", "gaffke_cluster_means", "gaffke_weighted")
APPROXIMATE = ("wilson", "jeffreys", "tango", "score", "mid_p", "t", "cr2_t", "cluster_sign_flip", "max_t")
UNMEASURED = ("stratified_t", "cluster_means_t")
AVERAGE = "average over subjects"
EFFECTIVE = ("_effective_n", "_stratified", "_clustered")


def guarantee(method: str) -> Guarantee:
    """Return how well the bound of this name keeps its error rate.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404. Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86, 1-27,
    arXiv:2010.09686 (e-values). Fay and Lumbard (2021), Stat. Med. 40, 1147-1159, doi:10.1002/sim.8829. Gaffke (2005), Math. Methods Statist. 14,
    451-467.

    Examples
    --------
    >>> guarantee("clopper_pearson"), guarantee("gaffke_clustered"), guarantee("wilson_clustered"), guarantee("tango, simultaneous")
    ('exact', 'conjectured', 'effective', 'approximate')
    """
    named, _, among = method.partition(", ")
    if named in CONJECTURED:
        return "conjectured"
    if named in UNMEASURED:
        return "unmeasured"
    if named.endswith(EFFECTIVE) or among == AVERAGE:
        return "effective"
    if named in EXACT:
        return "exact"
    return "approximate" if named in APPROXIMATE else "unmeasured"
