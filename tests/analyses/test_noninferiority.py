from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar

from evalspec.analyses.noninferiority import ANALYSIS, check_test, comparisons, compute, estimates, sources_used, stricter
from evalspec.analyses.noninferiority_results import NoninferiorityOptions, NoninferiorityResult, NoninferiorityRow
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Context
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered

MISSING = np.nan
PAIR = {"candidate": "a", "baseline": "b"}


def responses_of(scores: np.ndarray, **fields: object) -> Responses:
    shaped = scores[:, :, None] if scores.ndim == 2 else scores
    n = shaped.shape[1]
    benchmark = BenchmarkResponses(
        **{
            "benchmark": "x",
            "models": ("a", "b"),
            "questions": tuple(f"q{index}" for index in range(n)),
            "subjects": (None,) * n,
            "weights": np.ones(n),
            "scores": shaped.astype(np.float64),
            "reasons": np.isnan(shaped).astype(np.int8) * 2,
            "choices": np.full(shaped.shape, -1, dtype=np.int16),
            "logprobs": None,
            "missing": "wrong",
            **fields,
        }
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def table(both: int, only_candidate: int, only_baseline: int, neither: int) -> Responses:
    candidate = [1] * both + [1] * only_candidate + [0] * only_baseline + [0] * neither
    baseline = [1] * both + [0] * only_candidate + [1] * only_baseline + [0] * neither
    return responses_of(np.array([candidate, baseline]))


def computed(responses: Responses, **options: object) -> NoninferiorityResult:
    given_options = NoninferiorityOptions(kind="noninferiority", **{**PAIR, **options})
    return compute(responses, given_options, Context(rng=np.random.default_rng(0)))


def row(responses: Responses, **options: object) -> NoninferiorityRow:
    return computed(responses, **options).rows[0]


# z and p of Tango's test from R, ratesci 1.0.0, pairbinci(method = "Score", skew = FALSE, bcf = FALSE, theta0 = -margin).
@pytest.mark.parametrize(
    ("counts", "margin", "p_value", "outcome"),
    [
        ((1217, 219, 182, 382), 0.02, 6.7e-5, "shown"),
        ((1217, 182, 219, 382), 0.02, 0.440414792382, "open"),
        ((1217, 182, 219, 382), 0.05, 0.000910306297741, "shown"),
        ((80, 5, 8, 7), 0.1, 0.038695787399, "open"),
        ((43, 0, 1, 0), 0.1, 0.0437658444386, "open"),
        ((36, 2, 12, 0), 0.1, 0.926183384607, "open"),
        ((40, 0, 0, 0), 0.05, 0.073, "open"),
    ],
)
def test_the_score_test_against_a_margin_gives_the_published_p_values(
    counts: tuple[int, int, int, int], margin: float, p_value: float, outcome: str
) -> None:
    found = row(table(*counts), margin=margin)
    assert found.p_value == pytest.approx(p_value, rel=6e-3 if p_value in (6.7e-5, 0.073) else 1e-7)  # two were published to two digits
    assert found.outcome == outcome
    assert (found.low is not None and found.low > -margin) == (outcome == "shown")


def test_identical_answers_to_forty_questions_do_not_clear_a_margin_of_five_points() -> None:
    found = row(table(30, 0, 0, 10), margin=0.05)
    assert (found.difference, found.outcome) == (0.0, "open")


def test_a_loss_that_surely_exceeds_the_margin_is_refuted() -> None:
    assert row(table(1000, 100, 300, 600), margin=0.02).outcome == "refuted"


def test_superiority_with_the_exact_method_is_the_one_sided_exact_mcnemar_test() -> None:
    found = row(table(1217, 219, 182, 382), hypothesis="superiority", method="exact")
    assert found.p_value == pytest.approx(0.0720836380266328 / 2, rel=1e-9)
    assert found.p_value == pytest.approx(peer_mcnemar([[1217, 219], [182, 382]], exact=True).pvalue / 2, rel=1e-9)
    assert found.outcome == "open"


def test_equivalence_needs_both_sides() -> None:
    assert row(table(1217, 200, 201, 382), margin=0.05, hypothesis="equivalence", alpha=0.05).outcome == "shown"
    clearly_better = table(1217, 300, 101, 382)
    assert row(clearly_better, margin=0.05, alpha=0.05).outcome == "shown"
    assert row(clearly_better, margin=0.05, hypothesis="equivalence", alpha=0.05).outcome == "refuted"


def test_equivalence_bounds_form_an_interval_of_twice_the_error() -> None:
    found = estimates(computed(table(1217, 200, 201, 382), margin=0.05, hypothesis="equivalence", alpha=0.05))[0]
    assert (found.sides, found.confidence_level) == ("two", pytest.approx(0.90))


def test_the_estimate_s_bound_is_one_sided_at_the_level_of_the_test() -> None:
    found = estimates(computed(table(1217, 182, 219, 382), margin=0.05))[0]
    assert (found.sides, found.confidence_level, found.method) == ("lower", pytest.approx(0.975), "tango")
    assert found.low == pytest.approx(-0.038198, abs=1e-6)  # the upper limit of the published interval, seen from the other model


def test_missing_answers_count_against_the_candidate_and_are_counted() -> None:
    answered = np.array([[1] * 70 + [0] * 20, [1] * 65 + [0] * 25], dtype=float)
    gaps = np.concatenate([answered, [[MISSING] * 6 + [1] * 4, [1] * 6 + [MISSING] * 4]], axis=1)
    found = row(responses_of(gaps), margin=0.1)
    settled = row(responses_of(np.concatenate([answered, [[0] * 6 + [1] * 4, [1] * 10]], axis=1)), margin=0.1)
    assert (found.candidate_missing, found.baseline_missing, found.n) == (6, 4, 100)
    assert (found.difference, found.low, found.p_value) == (settled.difference, settled.low, settled.p_value)
    favourable = row(responses_of(np.concatenate([answered, [[1] * 10, [1] * 6 + [0] * 4]], axis=1)), margin=0.1)
    assert found.high == favourable.high


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, MISSING]), st.sampled_from([0.0, 1.0, MISSING])), min_size=4, max_size=40), st.data())
def test_no_way_of_filling_missing_answers_leaves_the_bounds(answers: list[tuple[float, float]], data: st.DataObject) -> None:
    scores = np.array(answers).T
    guesses = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=scores.size, max_size=scores.size))
    filled = np.where(np.isnan(scores), np.array(guesses).reshape(scores.shape), scores)
    outer, inner = row(responses_of(scores), margin=0.1), row(responses_of(filled), margin=0.1)
    assert outer.low is not None
    assert inner.low is not None
    assert outer.low <= inner.low + 1e-12
    assert (outer.high or 0.0) >= (inner.high or 0.0) - 1e-12


def test_planned_looks_leave_each_look_its_part_of_alpha() -> None:
    looks = {"at": (1000, 2000), "this": 2}
    final = computed(table(1217, 182, 219, 382), margin=0.05, looks=looks)
    assert final.look_alpha == pytest.approx(0.0245, abs=5e-5)  # Lan and DeMets, O'Brien and Fleming's spending, two equal looks: z = 1.969
    early = computed(table(609, 91, 109, 191), margin=0.05, looks={"at": (1000, 2000), "this": 1})
    assert early.look_alpha == pytest.approx(0.00153, abs=5e-6)
    found = estimates(early)[0]
    assert (found.look, found.looks, found.confidence_level) == (1, 2, pytest.approx(1 - early.look_alpha))


def test_looks_of_an_exact_test_spend_no_more_than_their_parts() -> None:
    levels = [computed(table(609, 91, 109, 191), margin=0.05, method="exact", looks={"at": (1000, 2000), "this": look}).look_alpha for look in (1, 2)]
    assert sum(levels) == pytest.approx(0.025)


def test_a_sample_that_is_not_the_planned_look_is_refused() -> None:
    found = row(table(600, 91, 109, 191), margin=0.05, looks={"at": (1000, 2000), "this": 1})
    assert found.undefined == "look 1 is planned at 1,000 questions, and this sample has 991"
    assert found.difference is None


def test_an_e_value_clears_the_margin_when_it_reaches_one_over_alpha() -> None:
    found = row(table(1217, 219, 182, 382), margin=0.05, method="e_value")
    assert found.outcome == "shown"
    assert found.log10_e is not None
    assert found.p_value == pytest.approx(10**-found.log10_e)
    assert estimates(computed(table(1217, 219, 182, 382), margin=0.05, method="e_value"))[0].anytime


def test_clusters_and_fractional_scores_are_averaged_with_the_design_s_standard_error() -> None:
    rng = np.random.default_rng(4)
    scores = (rng.random((2, 400)) < 0.7).astype(float)
    clustered = row(responses_of(scores, clusters=tuple(f"c{index // 10}" for index in range(400))), margin=0.1)
    assert (clustered.interval, clustered.clusters, clustered.only_candidate) == ("cr2_t", 40, None)
    repeated = row(responses_of(np.stack([scores, scores[:, ::-1]], axis=2)), margin=0.1)
    differences = np.stack([scores, scores[:, ::-1]], axis=2).mean(axis=2)
    spread = np.std(differences[0] - differences[1], ddof=1) / 20.0
    assert repeated.interval == "t"
    assert repeated.low == pytest.approx(repeated.difference - 1.965927 * spread, rel=1e-6)  # t quantile, 399 degrees of freedom


@pytest.mark.parametrize("hypothesis", ["noninferiority", "equivalence", "superiority"])
def test_the_exact_method_bounds_clusters_and_fractional_scores_without_taking_a_shape_for_granted(hypothesis: str) -> None:
    rng = np.random.default_rng(4)
    scores = (rng.random((2, 400)) < 0.7).astype(float)
    asked = {"method": "exact", "hypothesis": hypothesis, **({} if hypothesis == "superiority" else {"margin": 0.1})}
    clustered = computed(responses_of(scores, clusters=tuple(f"c{index // 10}" for index in range(400))), **asked)
    repeated = computed(responses_of(np.stack([scores, scores[:, ::-1]], axis=2)), **asked)
    for result, method, clusters in ((clustered, "gaffke_clustered", 40), (repeated, "gaffke", None)):
        (found,) = result.rows
        assert (found.interval, found.clusters, found.only_candidate) == (method, clusters, None)
        assert found.low < found.difference < found.high
        assert estimates(result)[0].method == method
        assert any("Gaffke" in work for work in sources_used(result))
        assert not any("Fay" in work or "McNemar" in work for work in sources_used(result))
        assert any("Schuirmann" in work for work in sources_used(result)) == (hypothesis == "equivalence")


def test_what_a_single_question_shows_by_student_s_t_is_cautioned_about_and_gaffke_s_bound_does_not_show_it() -> None:
    scores = np.zeros((2, 40))
    scores[0, 0] = 0.1
    found = row(responses_of(scores), margin=0.05)
    assert found.outcome == "shown"
    assert "1 of 40 questions has another score than all others: fewer than 10 make the spread" in str(found.caution)
    assert found.caution in rendered(ANALYSIS, responses_of(scores), {"kind": "noninferiority", **PAIR, "margin": 0.05})
    assert row(responses_of(scores), margin=0.05, method="exact").outcome == "open"


def test_what_a_method_cannot_count_is_refused_with_a_reason() -> None:
    assert "fractional" in (row(responses_of(np.array([[0.5, 1.0, 0.0], [1.0, 1.0, 0.0]])), margin=0.1, method="e_value").undefined or "")
    weighted = responses_of(np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]), weights=np.array([1.5, 0.75, 0.75]))
    assert "weighted" in (row(weighted, margin=0.1).undefined or "")
    assert "equal" in (row(responses_of(np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]])), margin=0.1).undefined or "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"margin": 0.1, "baseline": "a"}, "two different models"),
        ({}, "margin"),
        ({"margin": 0.1, "hypothesis": "superiority"}, "margin"),
        ({"margin": 0.1, "method": "e_value", "looks": {"at": (10, 20), "this": 1}}, "e_value"),
        ({"margin": 0.1, "looks": {"at": (20, 10), "this": 1}}, "rise"),
        ({"margin": 0.1, "looks": {"at": (10, 20), "this": 3}}, "2 are planned"),
        ({"margin": 0.1, "alpha": 0.6}, "alpha"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        NoninferiorityOptions(kind="noninferiority", **{**PAIR, **options})


def test_a_check_on_planned_looks_knows_the_last_look_and_its_alpha() -> None:
    options = NoninferiorityOptions(kind="noninferiority", **PAIR, margin=0.05, looks={"at": (500, 1000), "this": 1})
    asked = check_test(options, Check(id="c", analysis="x", metric="difference", model="a", baseline="b", above=-0.05), (), 1)
    assert asked.alpha == pytest.approx(0.00153, abs=1e-5)
    assert asked.looks is not None
    assert (asked.looks.this, asked.looks.count, asked.looks.last_questions) == (1, 2, 1000)
    assert asked.looks.last_alpha == pytest.approx(0.0245, abs=1e-4)


def test_a_stricter_analysis_divides_its_error_rate_before_it_is_spent_on_looks() -> None:
    options = NoninferiorityOptions(kind="noninferiority", **PAIR, margin=0.05)
    assert comparisons(stricter(options, 5), (), 1)[0].alpha == pytest.approx(0.005)


@pytest.mark.parametrize(
    "options",
    [{"margin": 0.1}, {"margin": 0.1, "hypothesis": "equivalence", "method": "exact"}, {"hypothesis": "superiority", "method": "e_value"}],
)
def test_it_passes_what_every_analysis_must_pass(options: dict[str, object]) -> None:
    check_analysis(ANALYSIS, {"kind": "noninferiority", "candidate": "model-0", "baseline": "model-1", **options})


def test_it_passes_with_clusters_too() -> None:
    check_analysis(ANALYSIS, {"kind": "noninferiority", "candidate": "model-0", "baseline": "model-1", "margin": 0.1}, sample_responses(clusters=12))
