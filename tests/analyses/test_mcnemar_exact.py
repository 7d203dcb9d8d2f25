"""By method exact, intervals of differences agree with McNemar's exact test, and of fractional scores and clusters with Gaffke's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.mcnemar import ANALYSIS, check_test
from evalspec.analyses.mcnemar_results import McnemarOptions
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import CheckTest
from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.exact_differences import fay_lumbard
from evalspec.statistics.paired_designs import bounded_difference
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered
from .test_mcnemar import RESPONSES, benchmark_of, computed, table


def test_exact_intervals_go_with_mcnemar_s_exact_test() -> None:
    usual, exact = (computed(table(1217, 219, 182, 382), family="adjacent", method=method).rows[0] for method in ("score", "exact"))
    limits = fay_lumbard(PairedCounts(1217, 219, 182, 382))
    assert (exact.method, exact.low, exact.high) == ("fay_lumbard", limits.low, limits.high)
    changed = {"method", "low", "high"}
    assert usual.model_dump(exclude=changed) == exact.model_dump(exclude=changed)


@pytest.mark.parametrize("clusters", [0, 40, 7])
def test_exact_intervals_of_fractional_scores_and_clusters_are_gaffke_s_and_so_is_the_test(clusters: int) -> None:
    rng = np.random.default_rng(4)
    scores = rng.random((2, 280, 1)) * np.array([1.0, 0.7])[:, None, None]
    scores = np.round(scores) if clusters else scores
    labels = np.array([f"c{index % clusters:02}" for index in range(280)]) if clusters else None
    fields = {} if labels is None else {"clusters": tuple(labels.tolist())}
    row = computed(benchmark_of(scores, **fields), family="named", pairs=(("a", "b"),), method="exact").rows[0]
    expected = bounded_difference(scores[0, :, 0], scores[1, :, 0], Design(clusters=labels))
    assert (row.low, row.high, row.p_value) == (expected.interval.low, expected.interval.high, expected.p_value)
    assert (row.test, row.method, row.p_error) == (expected.test, expected.test, None)
    assert not row.disagrees


def test_exact_intervals_of_a_part_of_a_pool_pass_over_it_and_its_test_stays() -> None:
    pooled = replace(table(1217, 219, 182, 382).benchmarks[0], sample="simple", pool=Pool(size=14042))
    responses = replace(RESPONSES, benchmarks=(pooled,))
    usual, exact = (computed(responses, family="adjacent", method=method).rows[0] for method in ("score", "exact"))
    limits = fay_lumbard(PairedCounts(1217, 219, 182, 382))
    assert (exact.method, exact.low, exact.high) == ("fay_lumbard", limits.low, limits.high)
    assert (exact.test, exact.p_value, exact.standard_error) == ("pool_exact", usual.p_value, usual.standard_error)


@pytest.mark.parametrize("made", [{}, {"repeats": 3}, {"clusters": 12}, {"clusters": 40}])
def test_exact_comparisons_pass_what_every_analysis_must_pass(made: dict[str, int]) -> None:
    check_analysis(ANALYSIS, {"kind": "mcnemar", "family": "all_pairs", "method": "exact"}, sample_responses(**made))


def test_a_report_says_what_exact_comparisons_of_clusters_rest_on() -> None:
    options = {"kind": "mcnemar", "family": "all_pairs", "method": "exact"}
    scores, labels = np.round(np.random.default_rng(4).random((3, 120, 1))), tuple(f"c{max(0, index % 12 - 1):02}" for index in range(120))
    text = rendered(ANALYSIS, benchmark_of(scores, clusters=labels), options)
    assert "Where questions come in clusters, Gaffke's test asks whether the mean difference could be zero" in text
    assert "calculation alone supports the test" in text
    assert "Gaffke's interval of the mean difference" in text
    assert "Gaffke's test" not in rendered(ANALYSIS, sample_responses(), options)


@pytest.mark.parametrize(
    ("options", "limit", "decided_by"),
    [
        ({}, 0.0, CheckTest("exact", 0.025 / 6)),
        ({"method": "exact"}, 0.0, CheckTest("exact", 0.025 / 6, exact_means=True)),
        ({}, -0.02, CheckTest("score", 0.025)),
        ({"method": "exact"}, -0.02, CheckTest("fay_lumbard", 0.025)),
        ({"intervals": "simultaneous"}, -0.02, None),
        ({"method": "exact", "intervals": "simultaneous"}, -0.02, CheckTest("fay_lumbard", 0.025 / 6)),
    ],
)
def test_what_decides_a_check_is_known_beforehand(options: dict[str, str], limit: float, decided_by: CheckTest | None) -> None:
    check = Check(id="c", analysis="pairs", metric="difference", model="a", baseline="b", above=limit)
    found = check_test(McnemarOptions(kind="mcnemar", family="all_pairs", **options), check, ("a", "b", "c"), 2)
    assert (found is None) == (decided_by is None)
    if found is not None and decided_by is not None:
        assert found == replace(decided_by, alpha=pytest.approx(decided_by.alpha))
