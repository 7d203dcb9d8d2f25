from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from evalspec.analyses.pairs import WEIGHTED
from evalspec.analyses.separations import NO_COMMON, ONE_MODEL
from evalspec.analyses.tiers import ANALYSIS, ONE_CLUSTER, TOO_MANY, check_test, compute, estimates, plot, stricter
from evalspec.analyses.tiers_results import Method, TiersOptions, TiersResult
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.gating import gate
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.designs import Design
from evalspec.statistics.paired_designs import bounded_difference
from evalspec.testing import check_analysis, sample_responses

from .tables import article_like, rendered, responses_of

SAMPLE = sample_responses(models=5, questions=400)


def computed(responses: Responses = SAMPLE, **options: object) -> TiersResult:
    return compute(responses, TiersOptions(kind="tiers", **options), Context(rng=np.random.default_rng(1)))


def ranks(result: TiersResult) -> list[tuple[int | None, int | None]]:
    return [(row.low, row.high) for row in result.rows]


def ladder(models: int, questions: int = 300) -> NDArray[np.float64]:
    rng = np.random.default_rng(8)
    return (rng.random((1, questions)) < np.linspace(0.9, 0.3, models)[:, None]).astype(np.float64)


def test_max_t_gives_the_ranks_of_csranks_on_the_article_s_models() -> None:
    result = computed(article_like(), method="max_t")
    assert [row.low for row in result.rows] == [1, 1, 3, 4, 4, 4, 7, 7]
    assert [row.high for row in result.rows] == [2, 2, 3, 6, 6, 6, 8, 8]
    assert [row.model for row in result.rows if row.possible_best] == ["m0", "m1"]
    assert 2.5 < result.benchmarks[0].critical < 3.2
    assert 0.0 < result.benchmarks[0].critical_error < 0.05


def test_holm_gives_the_article_s_letters_and_leaves_its_three_pairs_open() -> None:
    result = computed(article_like())
    assert [row.letters for row in result.rows] == [("a",), ("a",), ("b",), ("c",), ("c",), ("c",), ("d",), ("e",)]
    assert ranks(result) == [(1, 2), (1, 2), (3, 3), (4, 6), (4, 6), (4, 6), (7, 7), (8, 8)]
    assert (result.family_size, result.benchmarks[0].separated) == (28, 24)


def test_separations_are_those_of_the_peers_over_all_benchmarks_as_one_family() -> None:
    result = computed()
    raw, signs = [], []
    for benchmark in SAMPLE.benchmarks:
        for first, second in combinations(benchmark.settled(), 2):
            table = [[np.sum(first * second), np.sum(first * (1 - second))], [np.sum((1 - first) * second), 0]]
            raw.append(peer_mcnemar(table, exact=True).pvalue)
            signs.append((benchmark.benchmark, np.sign(first.mean() - second.mean())))
    separated = multipletests(raw, alpha=0.05, method="holm")[0]
    assert result.family_size == len(raw) == 20
    for entry in result.benchmarks:
        assert entry.separated == sum(found for found, (name, _) in zip(separated, signs, strict=True) if name == entry.benchmark)


@pytest.mark.parametrize("method", ["holm", "exact", "max_t"])
def test_models_share_a_letter_exactly_when_they_may_hold_ranks_in_either_order(method: str) -> None:
    result = computed(method=method)
    for benchmark in ("first", "second"):
        rows = [row for row in result.rows if row.benchmark == benchmark]
        apart = {(a.model, b.model) for a, b in combinations(rows, 2) if not set(a.letters) & set(b.letters)}
        about = next(entry for entry in result.benchmarks if entry.benchmark == benchmark)
        assert len(apart) == about.separated
        for row in rows:
            assert row.low <= row.rank <= row.high
            above = sum((other.model, row.model) in apart for other in rows)
            below = sum((row.model, other.model) in apart for other in rows)
            assert (row.low, row.high) == (1 + above, len(rows) - below)  # rows stand in the order of their scores


@pytest.mark.parametrize("method", ["holm", "exact", "max_t"])
def test_a_copy_of_a_model_changes_nobody_s_tier(method: str) -> None:
    scores = ladder(4)
    alone = computed(responses_of(scores), method=method)
    copied = computed(responses_of(np.vstack([scores, scores[1:2]])), method=method)
    assert copied.family_size == alone.family_size == 6
    letters = {row.model: row.letters for row in copied.rows}
    assert {row.model: row.letters for row in alone.rows} == {name: found for name, found in letters.items() if name != "m4"}
    assert letters["m4"] == letters["m1"]
    twin = next(row for row in copied.rows if row.model == "m4")
    assert (twin.alike, twin.rank) == (("m1",), 2)
    best, last = (next((row.low, row.high) for row in copied.rows if row.model == name) for name in ("m0", "m3"))
    assert best == ranks(alone)[0]
    assert last == tuple(rank + 1 for rank in ranks(alone)[3])


def test_models_of_one_answer_sheet_hold_every_rank() -> None:
    result = computed(responses_of(np.ones((3, 10))), method="max_t")
    assert ranks(result) == [(1, 3)] * 3
    assert {row.letters for row in result.rows} == {("a",)}
    assert (result.family_size, result.benchmarks[0].critical) == (0, None)
    assert all(row.possible_best for row in result.rows)


@pytest.mark.parametrize("method", ["holm", "max_t"])
def test_models_that_differ_by_as_much_on_every_question_are_told_apart(method: str) -> None:
    result = computed(responses_of(np.vstack([np.ones(40), np.zeros(40), np.arange(40) % 2])), method=method)
    assert result.benchmarks[0].undecided == 0
    assert ranks(result) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("method", ["holm", "max_t"])
def test_clusters_that_all_differ_by_as_much_are_told_apart_by_both_methods(method: str) -> None:
    labels = tuple(f"c{place}" for place in range(10) for _ in range(3))
    result = computed(responses_of(np.vstack([np.ones(30), np.zeros(30)]), clusters=labels), method=method)
    assert (result.benchmarks[0].undecided, result.benchmarks[0].separated) == (0, 1)


def test_independent_scores_that_all_differ_by_as_much_are_told_apart_by_flips_of_single_questions_only() -> None:
    constant = responses_of(np.vstack([np.full(40, 0.75), np.full(40, 0.5)]))
    assert (computed(constant).benchmarks[0].undecided, computed(constant).benchmarks[0].separated) == (1, 0)
    assert computed(constant, method="max_t").benchmarks[0].separated == 1


def in_clusters(sizes: tuple[int, ...]) -> Responses:
    labels = tuple(f"c{place}" for place, size in enumerate(sizes) for _ in range(size))
    return responses_of(ladder(3, len(labels)), clusters=labels)


@pytest.mark.parametrize("method", ["holm", "max_t"])
@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((20,) * 5, "5 clusters cannot separate any two models at this error rate"),
        ((5,) * 20, "20 clusters, worth about 20 of one size: fewer than 30"),
        ((60, *(1,) * 60), "61 clusters, worth about 5 of one size: fewer than 30"),
    ],
)
def test_few_or_unequal_clusters_are_cautioned_against(method: str, sizes: tuple[int, ...], says: str) -> None:
    responses = in_clusters(sizes)
    assert says in str(computed(responses, method=method).benchmarks[0].caution)
    assert says in rendered(ANALYSIS, responses, {"kind": "tiers", "method": method})
    assert computed(in_clusters((3,) * 33), method=method).benchmarks[0].caution is None


def test_draws_too_few_for_the_error_rate_separate_nothing_and_are_named() -> None:
    few, enough = (computed(responses_of(ladder(3)), method="max_t", alpha=0.0005, draws=draws).benchmarks[0] for draws in (1000, 1999))
    assert (few.separated, few.critical) == (0, None)
    assert few.caution == "1,000 draws are too few for this error rate: nothing can be separated with fewer than 1,999"
    assert (enough.separated > 0, enough.caution) == (True, None)


def test_one_cluster_is_refused_by_max_t_and_separates_nothing_by_holm() -> None:
    assert computed(in_clusters((50,)), method="max_t").benchmarks[0].undefined == ONE_CLUSTER
    assert computed(in_clusters((50,))).benchmarks[0].undecided == 3


def test_fractional_scores_and_clusters_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(2)
    scores = np.clip(rng.random((3, 120)) * 0.5 + np.array([[0.5], [0.25], [0.0]]), 0, 1)
    assert ranks(computed(responses_of(scores))) == [(1, 1), (2, 2), (3, 3)]
    clusters = tuple(f"c{index // 3}" for index in range(120))
    for method in ("holm", "max_t"):
        assert ranks(computed(responses_of(scores, clusters=clusters), method=method)) == [(1, 1), (2, 2), (3, 3)]


def test_models_are_ranked_on_the_questions_that_all_of_them_answered() -> None:
    scores = ladder(3)
    scores[0, :40] = np.nan
    result = computed(responses_of(scores, missing="complete_case"))
    assert (result.benchmarks[0].n, result.benchmarks[0].dropped) == (260, 40)
    assert result.rows[0].score == pytest.approx(np.nanmean(scores[0]))


def test_what_cannot_be_ranked_is_refused_with_its_reason_for_every_model() -> None:
    scores = ladder(2, questions=6)
    weighted = computed(responses_of(scores, weights=np.array([1.5, 0.5] * 3)))
    assert weighted.benchmarks[0].undefined == WEIGHTED
    assert [estimate.undefined for estimate in estimates(weighted)] == [WEIGHTED] * 2
    assert computed(responses_of(scores[:1])).benchmarks[0].undefined == ONE_MODEL
    apart = np.array([[1.0, np.nan], [np.nan, 1.0]])
    assert computed(responses_of(apart, missing="complete_case")).benchmarks[0].undefined == NO_COMMON
    assert computed(responses_of(np.zeros((101, 3))), method="max_t").benchmarks[0].undefined == TOO_MANY


@pytest.mark.parametrize(("limit", "outcome"), [(2, "passed"), (1, "inconclusive")])
def test_a_gate_on_ranks_passes_only_where_the_worst_rank_clears_it(limit: float, outcome: str) -> None:
    responses = article_like()
    result = computed(responses)
    request = AnalysisRequest(id="ranks", kind="tiers", benchmarks=("b",), options={"kind": "tiers"})
    placed = tuple(estimate.model_copy(update={"analysis": "ranks"}) for estimate in estimates(result))
    finding = {"request": request, "estimates": placed, "result": {}}
    findings = Findings(protocol_sha256="1" * 64, responses_sha256="2" * 64, summaries=(), findings=(finding,))
    check = Check(id="among-the-first", analysis="ranks", metric="rank", model="m0", at_most=limit)
    assert gate(findings, Thresholds(checks=(check,))).checks[0].outcome == outcome


def test_a_stricter_family_divides_its_error_rate() -> None:
    assert stricter(TiersOptions(kind="tiers"), 5).alpha == pytest.approx(0.01)


def test_among_very_many_models_the_first_ones_are_drawn_and_letters_are_left_out() -> None:
    chart = Chart()
    plot(computed(responses_of(ladder(120, questions=60))), chart)
    drawn = chart.draw("wide").drawn
    assert len(drawn["rows"]) == 40
    assert "first 40 models" in drawn["caption"]
    assert "Letters are left out among more than 100 models" in rendered(ANALYSIS, responses_of(ladder(101, questions=20)), {"kind": "tiers"})


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 0.9}, {"method": "visual"}, {"draws": 5}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TiersOptions(kind="tiers", **options)


@pytest.mark.parametrize("method", ["holm", "exact", "max_t"])
def test_it_passes_what_every_analysis_must_pass(method: str) -> None:
    check_analysis(ANALYSIS, {"kind": "tiers", "method": method, "draws": 1000})


def test_the_report_calls_letters_overlapping_sets_and_names_copies() -> None:
    scores = ladder(3)
    text = rendered(ANALYSIS, responses_of(np.vstack([scores, scores[:1]])), {"kind": "tiers"})
    assert "they do not divide the models into classes" in text
    assert "m0 and m3 have the same score on every question" in text
    other = rendered(ANALYSIS, SAMPLE, {"kind": "tiers", "method": "max_t", "draws": 1000})
    assert "Monte Carlo standard error" in other
    assert "takes its even part" in other


def test_a_critical_value_that_many_draws_share_is_not_said_to_be_without_error() -> None:
    few = responses_of(np.vstack([np.ones(40), np.repeat([1.0, 0.0], [30, 10])]))
    assert computed(few, method="max_t").benchmarks[0].critical_error == 0.0
    text = rendered(ANALYSIS, few, {"kind": "tiers", "method": "max_t"})
    assert "so many draws share that value that they show no Monte Carlo error of it" in text
    assert "Monte Carlo standard error" not in text


def test_exact_ranks_test_every_direction_of_every_pair_as_one_family() -> None:
    models = ladder(6, questions=120)
    tails = []
    for first, second in combinations(models, 2):
        b, c = int(np.sum(first > second)), int(np.sum(first < second))
        tails += [stats.binomtest(b, b + c, alternative=side).pvalue for side in ("greater", "less")]
    expected = multipletests(tails, alpha=0.05, method="holm")[0]
    result = computed(responses_of(models), method="exact")
    assert result.benchmarks[0].separated == expected.sum() > 0
    above = [sum(bool(won) for won, pair in zip(expected[::2], combinations(range(6), 2), strict=True) if pair[1] == place) for place in range(6)]
    assert [row.low for row in result.rows] == [1 + count for count in above]


@pytest.mark.parametrize("sizes", [(10,) * 40, (10,) * 39 + (100,)])
def test_exact_ranks_of_clusters_rest_on_gaffke_s_test(sizes: tuple[int, ...]) -> None:
    responses = in_clusters(sizes)
    result = computed(responses, method="exact")
    assert result.benchmarks[0].tests == ("gaffke_clustered",)
    assert ("sizes say nothing" in str(result.benchmarks[0].caution)) == (len(set(sizes)) > 1)
    scores, labels = responses.benchmarks[0].scores[:, :, 0], np.array(responses.benchmarks[0].clusters)
    found = [bounded_difference(first, second, Design(clusters=labels)) for first, second in combinations(scores, 2)]
    adjusted = multipletests([pair.p_value / 2 for pair in found] + [1.0] * len(found), method="holm")[1]
    assert result.benchmarks[0].separated == int((adjusted[: len(found)] <= 0.05).sum())
    text = rendered(ANALYSIS, responses, {"kind": "tiers", "method": "exact"})
    assert "Gaffke’s test of the differences of whole clusters, in both directions, and Holm’s method keeps the chance" in text
    assert "any model is called better than one that is at least as accurate" in text


@pytest.mark.parametrize("method", ["holm", "exact"])
def test_the_planned_directions_say_from_how_many_questions_on_anything_can_be_separated(method: Method) -> None:
    planned = check_test(
        TiersOptions(kind="tiers", method=method), Check(id="c", analysis="ranks", metric="rank", model="m0", at_most=1), ["m0", "m1"], 1
    )
    fewest = next(count for count in range(1, 20) if planned.directions and 2.0**-count <= planned.alpha / planned.directions)
    for questions, separated in ((fewest - 1, 0), (fewest, 1)):
        responses = responses_of(np.vstack([np.ones(questions), np.zeros(questions)]))
        assert computed(responses, method=method).benchmarks[0].separated == separated
