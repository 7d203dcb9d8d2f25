from __future__ import annotations

from typing import get_args

import pytest

from evalspec.statistics.designs import MeanMethod
from evalspec.statistics.gaffke import GaffkeMethod
from evalspec.statistics.guarantees import guarantee


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("clopper_pearson", "exact"),
        ("clopper_pearson_pool", "exact"),
        ("clopper_pearson_stratified", "effective"),
        ("clopper_pearson_stratified, average over subjects", "effective"),
        ("stratified_t, average over subjects", "unmeasured"),
        ("cluster_means_t", "unmeasured"),
        ("gaffke_cluster_means, average over subjects", "conjectured"),
        ("fay_lumbard", "conjectured"),
        ("wilson", "approximate"),
        ("jeffreys_clustered", "effective"),
        ("tango", "approximate"),
        ("tango, simultaneous", "approximate"),
        ("fay_lumbard, simultaneous", "conjectured"),
        ("t, simultaneous", "approximate"),
        ("wilson, average over subjects", "effective"),
        ("max_t, all pairs", "approximate"),
        ("somebody_s_own", "unmeasured"),
    ],
)
def test_a_bound_is_called_no_better_than_what_is_known_of_it(method: str, expected: str) -> None:
    assert guarantee(method) == expected


def test_student_s_bounds_are_approximate_at_best_and_gaffke_s_conjectured() -> None:
    assert {guarantee(method) for method in get_args(MeanMethod)} == {"approximate", "unmeasured"}
    assert {guarantee(method) for method in get_args(GaffkeMethod)} == {"conjectured"}
