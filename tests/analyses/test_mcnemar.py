from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from evalspec.analyses.mcnemar import ANALYSIS, MOST_DRAWN, MOST_LISTED, _drawn, comparisons, compute, estimates, plot
from evalspec.analyses.mcnemar_results import McnemarOptions, McnemarResult
from evalspec.analyses.pairs import NO_COMMON, WEIGHTED
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.reporting.numbers import format_number
from evalspec.statistics.clusters import clustered_interval
from evalspec.statistics.p_values import SMALLEST_P
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered

RESPONSES = sample_responses(models=5, questions=200)


def computed(responses: Responses = RESPONSES, **options: object) -> McnemarResult:
    return compute(responses, McnemarOptions(kind="mcnemar", **options), Context(rng=np.random.default_rng(0)))


def responses_of(scores: np.ndarray, weights: np.ndarray | None = None) -> Responses:
    n = scores.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=tuple("abcdefgh"[: len(scores)]),
        questions=tuple(f"q{index}" for index in range(n)),
        subjects=(None,) * n,
        weights=np.ones(n) if weights is None else weights,
        scores=scores.astype(np.float64)[:, :, None],
        reasons=np.zeros((*scores.shape, 1), dtype=np.int8),
        choices=np.full((*scores.shape, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def table(both: int, only_first: int, only_second: int, neither: int) -> Responses:
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * neither
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return responses_of(np.array([first, second]))


def test_models_whose_scores_have_one_mean_stand_by_id_whatever_rounding_makes_of_their_sums() -> None:
    rising = [0.1, 0.2, 0.3]
    assert sum(rising) > sum(reversed(rising))
    assert computed(responses_of(np.array([rising[::-1], rising])), family="adjacent").order == {"b": ("a", "b")}
    assert computed(responses_of(np.array([rising, rising[::-1]])), family="adjacent").order == {"b": ("a", "b")}


def test_the_article_s_first_pair_is_not_separated() -> None:
    row = computed(table(1217, 219, 182, 382), family="adjacent").rows[0]
    assert row.p_value == pytest.approx(0.0720836380266328, rel=1e-10)  # mpmath and R agree on these digits
    assert row.difference == pytest.approx(0.0185)
    assert (row.low, row.high) == pytest.approx((-0.00113, 0.03820), abs=5e-6)  # Tango, as published to two decimals of a point
    assert row.separated is False


def test_the_family_is_adjusted_as_a_whole_like_the_peers_do() -> None:
    result = computed(family="all_pairs")
    raw = [peer_mcnemar([[row.both, row.only_first], [row.only_second, row.neither]], exact=True).pvalue for row in result.rows]
    assert [row.p_value for row in result.rows] == pytest.approx(raw, rel=1e-9)
    assert [row.p_adjusted for row in result.rows] == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-9)
    assert result.family_size == len(result.rows) == 2 * 10


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        ({"family": "adjacent"}, 4),
        ({"family": "vs_baseline", "baseline": "model-2"}, 4),
        ({"family": "all_pairs"}, 10),
        ({"family": "named", "pairs": (("model-0", "model-1"),)}, 1),
    ],
)
def test_each_family_compares_its_pairs_on_every_benchmark(options: dict[str, object], pairs: int) -> None:
    result = computed(**options)
    assert len(result.rows) == 2 * pairs
    parsed = McnemarOptions(kind="mcnemar", **options)
    planned = comparisons(parsed, RESPONSES.benchmarks[0].models, 2)
    assert len(planned) == pairs
    assert planned[0].alpha == pytest.approx(0.05 / (2 * pairs))


def test_identical_models_are_never_separated() -> None:
    row = computed(table(30, 0, 0, 10), family="adjacent").rows[0]
    assert (row.p_value, row.difference, row.separated, row.odds_ratio) == (1.0, 0.0, False, None)
    assert row.low is not None
    assert row.low < 0 < (row.high or 0)


def test_naming_the_other_model_first_turns_the_sign() -> None:
    one = computed(family="named", pairs=(("model-0", "model-3"),)).rows[0]
    other = computed(family="named", pairs=(("model-3", "model-0"),)).rows[0]
    assert one.p_value == other.p_value
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))


def test_a_weighted_sample_is_refused_with_a_reason() -> None:
    result = computed(responses_of(np.array([[0, 1, 0], [1, 1, 0]]), np.array([1.5, 0.75, 0.75])), family="adjacent")
    assert (result.rows[0].separated, result.rows[0].undefined, result.rows[0].n) == (None, WEIGHTED, 3)
    assert estimates(result)[0].value is None


@pytest.mark.parametrize(
    "options",
    [
        {"family": "vs_baseline"},
        {"family": "adjacent", "baseline": "a"},
        {"family": "named"},
        {"family": "named", "pairs": (("a", "a"),)},
        {"family": "named", "pairs": (("a", "b"), ("b", "a"))},
    ],
)
def test_a_family_without_what_it_needs_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        McnemarOptions(kind="mcnemar", **options)


@pytest.mark.parametrize("family", ["adjacent", "all_pairs"])
@pytest.mark.parametrize("test", ["exact", "mid_p"])
def test_it_passes_what_every_analysis_must_pass(family: str, test: str) -> None:
    check_analysis(ANALYSIS, {"kind": "mcnemar", "family": family, "test": test})


def test_a_large_family_has_one_forecast_and_a_figure_of_bounded_size() -> None:
    many = sample_responses(models=16, questions=40)
    models = many.benchmarks[0].models
    assert [one.label for one in comparisons(McnemarOptions(kind="mcnemar", family="all_pairs"), models, 2)] == ["each of 120 pairs"]
    result = computed(many, family="all_pairs")
    assert (len(result.rows), len(result.others), result.family_size) == (2 * MOST_LISTED, 2 * (120 - MOST_LISTED), 240)
    chart = Chart()
    plot(result, chart)
    drawn = chart.draw("wide").drawn
    assert len(drawn["rows"]) == MOST_DRAWN
    assert str(MOST_DRAWN) in drawn["caption"]
    least = max(row.p_adjusted for row in _drawn(result))
    assert sum(row.p_adjusted < least for row in result.rows) <= MOST_DRAWN


@pytest.mark.parametrize("options", [{}, {"test": "mid_p", "correction": "none"}])
def test_comparisons_that_are_not_listed_keep_their_estimate_and_their_counts(options: dict[str, str]) -> None:
    many = sample_responses(models=16, questions=40)
    result = computed(many, family="all_pairs", **options)
    for benchmark in ("first", "second"):
        listed = [row.p(result.test) for row in result.rows if row.benchmark == benchmark]
        others = [row for row in result.others if row.benchmark == benchmark]
        assert max(listed) <= min(row.p_value for row in others)
        for row in others[:3]:
            alone = computed(many, family="named", pairs=((row.first, row.second),), **options).rows[0 if benchmark == "first" else 1]
            assert row.p_value == alone.p(result.test)
            for name in ("n", "both", "only_first", "only_second", "neither", "difference", "low", "high"):
                assert getattr(row, name) == pytest.approx(getattr(alone, name), abs=1e-12)  # alone and together, sums round differently
    found = estimates(result)
    assert len(found) == result.family_size
    assert [one.benchmark for one in found] == ["first"] * 120 + ["second"] * 120
    assert len({(one.benchmark, *one.models) for one in found}) == 240


def test_without_correction_no_p_value_is_called_adjusted() -> None:
    result = computed(family="all_pairs", correction="none")
    assert {row.p_adjusted for row in result.rows} == {None}
    assert {one.p_adjusted for one in estimates(result)} == {None}
    assert [row.separated for row in result.rows] == [row.p_value <= 0.05 for row in result.rows]
    text = rendered(ANALYSIS, RESPONSES, {"kind": "mcnemar", "family": "all_pairs", "correction": "none"})
    assert "adjusted p" not in text.lower()
    assert "The p-values are not adjusted for that number" in text


def test_only_works_that_a_result_rests_on_are_cited() -> None:
    counted = ANALYSIS.sources_used(computed(family="all_pairs"))
    assert [work.split(" (")[0] for work in counted] == ["McNemar", "Fagerland, Lydersen & Laake", "Holm", "Tango", "Fay"]
    clustered = ANALYSIS.sources_used(computed(sample_responses(clusters=40), family="named", pairs=(("model-0", "model-1"),)))
    assert {work.split(" (")[0] for work in clustered} >= {"Miller", "Bell & McCaffrey"}
    together = ANALYSIS.sources_used(computed(family="all_pairs", correction="none", intervals="simultaneous"))
    assert "Holm" not in {work.split(" (")[0] for work in together}


def test_models_without_a_common_question_leave_the_others_their_numbers() -> None:
    responses = responses_of(np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1]]))
    gaps = responses.benchmarks[0].scores.copy()
    gaps[0, :2], gaps[1, 2:] = np.nan, np.nan
    benchmark = replace(responses.benchmarks[0], scores=gaps, reasons=np.isnan(gaps).astype(np.int8) * 2, missing="complete_case")
    rows = {frozenset((row.first, row.second)): row for row in computed(replace(responses, benchmarks=(benchmark,)), family="all_pairs").rows}
    assert rows[frozenset("ab")].undefined == NO_COMMON
    assert (rows[frozenset("ac")].n, rows[frozenset("bc")].n) == (2, 2)
    assert rows[frozenset("bc")].p_value == 1.0


def benchmark_of(scores: np.ndarray, **changes: object) -> Responses:
    """Responses to one benchmark from scores (M, Q, K)."""
    responses = responses_of(np.zeros(scores.shape[:2]))
    benchmark = replace(
        responses.benchmarks[0],
        scores=scores.astype(np.float64),
        reasons=np.zeros(scores.shape, dtype=np.int8),
        choices=np.full(scores.shape, -1, dtype=np.int16),
        **changes,
    )
    return replace(responses, benchmarks=(benchmark,))


def test_fractional_scores_and_repeats_are_compared_by_their_question_means() -> None:
    repeats = (np.random.default_rng(2).random((2, 80, 5)) < np.array([0.7, 0.5])[:, None, None]).astype(np.float64)
    row = computed(benchmark_of(repeats), family="adjacent").rows[0]
    means = repeats.mean(axis=2)
    expected = stats.ttest_rel(means[0], means[1])
    assert (row.test, row.method, row.p_value) == ("t", "t", pytest.approx(expected.pvalue))
    assert (row.low, row.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert (row.both, row.odds_ratio, row.p_mid) == (None, None, None)


def test_repeating_every_answer_makes_no_evidence() -> None:
    once = (np.random.default_rng(3).random((2, 60, 1)) < 0.6).astype(np.float64)
    one, ten = computed(benchmark_of(once), family="adjacent").rows[0], computed(benchmark_of(np.repeat(once, 10, axis=2)), family="adjacent").rows[0]
    assert ten == one


def test_clustered_questions_are_never_tested_as_independent_ones() -> None:
    scores = (np.random.default_rng(4).random((2, 400, 1)) < 0.6).astype(np.float64)
    labels = np.array([f"c{index // 10:02}" for index in range(400)])
    row = computed(benchmark_of(scores, clusters=tuple(labels.tolist())), family="adjacent").rows[0]
    interval = clustered_interval(scores[0, :, 0] - scores[1, :, 0], labels)
    sign = 1 if row.first == "a" else -1
    assert (row.test, row.method, row.clusters) == ("cluster_sign_flip", "cr2_t", 40)
    assert sorted((row.low, row.high)) == pytest.approx(sorted((sign * interval.low, sign * interval.high)))
    few = computed(benchmark_of(scores[:, :120], clusters=tuple(labels[:120].tolist())), family="adjacent").rows[0]
    assert few.test == "cluster_sign_flip"
    assert "fewer than 30" in str(few.caution)
    one = computed(benchmark_of(scores[:, :10], clusters=tuple(labels[:10].tolist())), family="adjacent").rows[0]
    assert "at least 2 clusters" in str(one.undefined)


def test_a_part_of_a_finite_pool_is_tested_with_its_correction() -> None:
    pooled = replace(table(1217, 219, 182, 382).benchmarks[0], sample="simple", pool=Pool(size=14042))
    row = computed(replace(RESPONSES, benchmarks=(pooled,)), family="adjacent").rows[0]
    assert (row.test, row.method, row.p_mid) == ("pool_exact", "tango_effective_n", None)
    assert row.p_value == pytest.approx(0.0562, abs=5e-5)  # test_pool_tests.py holds it to scipy's hypergeometric tail
    assert row.low == pytest.approx(0.0003, abs=5e-5)
    assert row.only_first == 219


def test_the_odds_ratio_has_its_exact_interval_or_says_that_there_is_none() -> None:
    row = computed(table(1217, 219, 182, 382), family="adjacent").rows[0]
    assert (row.odds_ratio, row.odds_low, row.odds_high) == pytest.approx((1.203, 0.984, 1.473), abs=5e-4)  # R, exact2x2
    never = computed(table(30, 0, 0, 10), family="adjacent").rows[0]
    assert (never.odds_ratio, never.odds_low, never.odds_high) == (None, None, None)
    endless = computed(table(30, 9, 0, 10), family="adjacent").rows[0]
    assert (endless.odds_ratio, endless.odds_high) == (None, None)
    assert endless.odds_low > 1


def test_a_p_value_too_small_for_a_double_keeps_its_logarithm() -> None:
    row = computed(table(0, 1200, 0, 0), family="adjacent").rows[0]
    assert row.log10_p == pytest.approx(-360.934965)
    assert row.p_value > 0
    assert format_number(row.log10_p, "p_log10") == "< 1e-300"


def test_only_more_than_two_models_have_neighbours_that_their_scores_chose() -> None:
    options = {"kind": "mcnemar", "family": "adjacent"}
    assert "look closer than models picked in advance" in rendered(ANALYSIS, RESPONSES, options)
    assert "picked in advance" not in rendered(ANALYSIS, table(1217, 219, 182, 382), options)


def test_a_logarithm_is_left_out_where_student_s_p_value_is_too_small_for_a_double() -> None:
    scores = np.random.default_rng(1).uniform([[0.5], [0.0]], [[0.9], [0.4]], (2, 4000))
    row = computed(responses_of(scores), family="adjacent").rows[0]
    assert (row.test, row.log10_p) == ("t", None)
    assert row.p_value == SMALLEST_P


def test_a_row_whose_interval_and_decision_part_is_marked() -> None:
    scores = np.array([[1] * 20 + [0] * 8 + [1] * 72, [0] * 20 + [1] * 8 + [1] * 72, [0] * 20 + [1] * 8 + [1] * 72])
    rows = computed(responses_of(scores), family="all_pairs").rows
    apart = [row for row in rows if row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)]
    assert apart
    assert all(row.disagrees for row in apart)
    assert not any(row.separated for row in apart)


@pytest.mark.parametrize("made", [{"repeats": 3}, {"clusters": 12}, {"clusters": 25}, {"clusters": 40}])
def test_repeats_clusters_and_simultaneous_intervals_pass_too(made: dict[str, int]) -> None:
    check_analysis(ANALYSIS, {"kind": "mcnemar", "family": "all_pairs", "intervals": "simultaneous"}, sample_responses(**made))


def test_beside_a_part_of_a_pool_no_word_is_said_of_a_p_value_that_is_not_printed() -> None:
    plain = table(1217, 219, 182, 382).benchmarks[0]
    pooled = replace(plain, benchmark="pooled", sample="simple", pool=Pool(size=14042))
    text = rendered(ANALYSIS, replace(RESPONSES, benchmarks=(plain, pooled)), {"kind": "mcnemar", "family": "adjacent", "correction": "none"})
    assert text.count("The exact p-value is the one that decides") == 1
    assert "McNemar, exact for a part of a pool. The interval of the odds ratio is at the level of the interval of the difference, and" in text
