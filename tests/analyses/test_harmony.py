from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from evalspec.analyses.harmony import ANALYSIS, METRICS, compute, estimates, stricter
from evalspec.analyses.harmony_results import HarmonyOptions, HarmonyResult, HarmonyRow
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import Model
from evalspec.protocols import Background, Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.harmony import harmony
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered, responses_of

SUBJECTS = tuple(f"s{index % 4}" for index in range(400))


def right_answers(counts: list[int], sizes: list[int]) -> np.ndarray:
    return np.concatenate([np.repeat([1.0, 0.0], [count, size - count]) for count, size in zip(counts, sizes, strict=True)])


def by_subject(counts: list[int], sizes: list[int], **fields: object) -> Responses:
    subjects = tuple(np.repeat([f"s{index}" for index in range(len(sizes))], sizes).tolist())
    return responses_of([right_answers(counts, sizes)], subjects=subjects, **fields)


def computed(responses: Responses, **options: object) -> HarmonyResult:
    return compute(responses, HarmonyOptions(kind="harmony", **options), Context(rng=np.random.default_rng(0)))


def row_of(responses: Responses, **options: object) -> HarmonyRow:
    return computed(responses, **options).rows[0]


def test_declared_subjects_give_harmony_beside_all_that_it_must_be_read_with() -> None:
    row = row_of(by_subject([90, 70, 60, 40], [100] * 4))
    assert row.value == pytest.approx(harmony([0.9, 0.7, 0.6, 0.4], [1] * 4))
    assert row.low < row.value < row.high
    assert (row.size_harmony, row.accuracy, row.macro) == (pytest.approx(1.0), pytest.approx(0.65), pytest.approx(0.65))
    assert (row.gap, row.worst, row.best) == (pytest.approx(0.5), "s3", "s0")
    assert row.homogeneity_p == pytest.approx(stats.chi2_contingency([[90, 70, 60, 40], [10, 30, 40, 60]], correction=False).pvalue)
    assert row.p_value == pytest.approx(1 / 2001)
    assert row.distance == pytest.approx(row.value - row.null_mean)
    assert [point.b for point in row.sweep] == [0.05, 0.1, 0.2]
    assert sum(group.mass for group in row.groups) == pytest.approx(1.0)
    assert row.flags == ()


def test_sizes_and_accuracy_are_told_apart() -> None:
    row = row_of(by_subject([490, 70, 70, 70], [700, 100, 100, 100]))
    assert row.value == pytest.approx(row.size_harmony) == pytest.approx(0.678, abs=5e-4)
    assert row.homogeneity_p == pytest.approx(1.0)


def test_a_symmetric_split_that_harmony_misses_is_found_by_the_test_of_equal_accuracies() -> None:
    row = row_of(by_subject([30, 30, 90, 90], [100] * 4))
    assert row.value == pytest.approx(1.0)
    assert row.homogeneity_p < 1e-9
    assert row.gap == pytest.approx(0.6)


def test_one_subject_with_few_questions_makes_harmony_inconclusive_and_leaves_the_worst_subject() -> None:
    result = computed(by_subject([90, 70, 60, 8], [100, 100, 100, 20]))
    assert result.rows[0].flags == ("1 group has fewer than 30 scored questions",)
    found = {one.metric: one for one in estimates(result)}
    assert (found["harmony"].value, found["harmony"].low) == (None, None)
    assert found["harmony"].undefined == "inconclusive: 1 group has fewer than 30 scored questions"
    assert found["worst_group"].value == pytest.approx(0.4)
    assert row_of(by_subject([90, 70, 60, 8], [100, 100, 100, 20]), min_cluster=20).flags == ()


@pytest.mark.parametrize(
    ("sizes", "blind"), [([100, 100], True), ([102, 98], True), ([110, 90], False), ([140, 60], False), ([100, 100, 100], False)]
)
def test_two_subjects_of_one_size_give_no_harmony_because_it_would_be_1_whatever_their_accuracies(sizes: list[int], blind: bool) -> None:
    row = row_of(by_subject([50, *[20] * (len(sizes) - 1)], sizes))
    assert any("whatever their accuracies" in flag for flag in row.flags) == blind
    assert row.worst == "s1"


def test_every_estimate_says_what_it_is() -> None:
    result = computed(by_subject([90, 70, 60, 40], [100] * 4))
    found = {one.metric: one for one in estimates(result)}
    assert tuple(found) == METRICS
    assert (found["harmony"].unit, found["worst_group"].unit, found["harmony"].confidence_level) == ("index", "proportion", 0.95)
    assert found["worst_group"].method == "lowest of 4 subjects: s3"
    assert found["worst_group"].n == 100
    assert found["group_gap"].value == pytest.approx(0.5)


def test_the_interval_of_the_worst_subject_is_for_the_lowest_true_accuracy_whichever_subject_that_is() -> None:
    rng = np.random.default_rng(20261129)
    truth, sizes = [0.62, 0.6, 0.6, 0.7, 0.65, 0.6], [60, 200, 40, 100, 50, 400]
    below = above = 0
    for _ in range(200):
        row = row_of(by_subject(rng.binomial(sizes, truth).tolist(), sizes), null_draws=200, b_sweep=())
        assert row.lowest.low <= row.lowest.value <= row.lowest.high
        below += row.lowest.high < min(truth)
        above += row.lowest.low > min(truth)
    assert max(below, above) / 200 <= 0.025 + 3 * (0.025 * 0.975 / 200) ** 0.5


@pytest.mark.parametrize(
    ("subjects", "reason"),
    [((*("s",) * 399, None), "1 of 400 questions have no subject"), (("s",) * 400, "all questions are of one subject")],
)
def test_questions_without_groups_give_a_reason_and_no_number(subjects: tuple[str | None, ...], reason: str) -> None:
    responses = responses_of([np.ones(400)], subjects=subjects)
    result = computed(responses)
    assert (result.partitions[0].undefined, result.rows[0].undefined, result.rows[0].value) == (reason, reason, None)
    assert f"Not applicable to b: {reason}." in rendered(ANALYSIS, responses, {"kind": "harmony"})


def test_answers_that_are_all_right_have_harmony_and_no_test() -> None:
    row = row_of(by_subject([100] * 4, [100] * 4))
    assert (row.value, row.p_value, row.homogeneity_p) == (pytest.approx(1.0), None, None)
    assert row.untested == "all scores are alike"


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_scores_that_are_all_alike_do_not_show_that_subjects_are(score: float) -> None:
    subjects = tuple(np.repeat(["s0", "s1", "s2"], 30).tolist())
    alone = row_of(responses_of([[score] * 90], subjects=subjects))
    clustered = row_of(responses_of([[score] * 90], subjects=subjects, clusters=tuple(f"c{index // 5}" for index in range(90))))
    assert alone.low < harmony([0.9, 0.99, 0.99], [30] * 3) < alone.high  # true accuracies that give 90 right answers often enough
    assert clustered.low < harmony([0.8, 0.99, 0.99], [30] * 3) < clustered.high  # six clusters of a subject say less than thirty questions
    assert alone.high == pytest.approx(1.0)


def test_p_values_are_adjusted_over_all_models_and_benchmarks() -> None:
    responses = sample_responses(questions=300)
    result = computed(responses)
    raw = [row.p_value for row in result.rows]
    order = np.argsort(raw)
    expected = np.minimum(np.maximum.accumulate(np.array(raw)[order] * np.arange(len(raw), 0, -1)), 1.0)[np.argsort(order)]
    assert [row.p_adjusted for row in result.rows] == pytest.approx(expected)
    assert result.family_size == 8


def test_clusters_inside_subjects_widen_the_interval_and_forbid_reshuffling() -> None:
    plain = by_subject([90, 70, 60, 40], [100] * 4)
    # Ten clusters in each subject, whose questions share one answer.
    clusters = tuple(f"c{index // 10}" for index in range(400))
    clustered = replace(plain, benchmarks=(replace(plain.benchmarks[0], clusters=clusters),))
    row, free = row_of(clustered), row_of(plain)
    assert row.p_value is None
    assert "clusters" in row.untested
    assert row.homogeneity_test == "cochran_q"
    assert row.high - row.low > 1.3 * (free.high - free.low)
    assert row_of(replace(clustered, benchmarks=(replace(plain.benchmarks[0], clusters=plain.benchmarks[0].subjects),))) == free


def test_a_finite_pool_that_is_nearly_exhausted_leaves_little_doubt() -> None:
    from evalspec.artifacts.protocol import Pool

    plain = by_subject([90, 70, 60, 40], [100] * 4)
    pool = Pool(size=420, subjects={f"s{index}": 105 for index in range(4)})
    pooled = row_of(replace(plain, benchmarks=(replace(plain.benchmarks[0], pool=pool, sample="stratified"),)))
    free = row_of(plain)
    assert pooled.high - pooled.low < 0.4 * (free.high - free.low)


def test_a_subject_of_a_finite_pool_that_was_asked_whole_is_known_exactly() -> None:
    from evalspec.artifacts.protocol import Pool

    plain = by_subject([90, 70, 60, 25], [100] * 4)
    pool = Pool(size=1300, subjects={"s0": 400, "s1": 400, "s2": 400, "s3": 100})
    row = row_of(replace(plain, benchmarks=(replace(plain.benchmarks[0], pool=pool, sample="stratified"),)))
    assert row.worst == "s3"
    assert (row.lowest.low, row.lowest.value, row.lowest.high) == (0.25, 0.25, 0.25)
    assert row.low < row.value < row.high


def test_questions_that_were_left_out_leave_the_subject_with_the_others() -> None:
    scores = right_answers([90, 70, 60, 40], [100] * 4)
    scores[:20] = np.nan
    subjects = tuple(np.repeat(["s0", "s1", "s2", "s3"], 100).tolist())
    row = row_of(responses_of([scores], subjects=subjects, missing="complete_case"))
    assert (row.n, row.groups[0].n) == (380, 80)
    scores[:100] = np.nan
    gone = row_of(responses_of([scores], subjects=subjects, missing="complete_case"))
    assert gone.undefined == "no question of s0 has a score"


def test_weights_of_the_sample_are_the_shares_of_the_subjects() -> None:
    weights = np.repeat([2.8, 0.4, 0.4, 0.4], 100)
    row = row_of(by_subject([90, 70, 60, 40], [100] * 4, weights=weights))
    assert row.value == pytest.approx(harmony([0.9, 0.7, 0.6, 0.4], [0.7, 0.1, 0.1, 0.1]))
    assert row.rebalanced is None


def test_over_represented_subjects_give_up_the_same_questions_for_every_model() -> None:
    sizes = [600, 100, 100, 100]
    subjects = tuple(np.repeat(["s0", "s1", "s2", "s3"], sizes).tolist())
    first = right_answers([540, 50, 50, 50], sizes)
    result = computed(responses_of([first, 1 - first], subjects=subjects))
    one, other = (row.rebalanced for row in result.rows)
    assert (one.kept, one.removed) == (450, 450)  # half of the questions at most: the largest subject keeps 150
    assert one.value == pytest.approx(1.0 - other.value)
    assert one.value < 690 / 900
    assert one.p_value < 0.001
    assert one.harmony != pytest.approx(result.rows[0].value)


def test_the_plane_holds_mean_and_variance_over_models_of_several_benchmarks() -> None:
    result = computed(sample_responses(questions=300))
    for point in result.plane:
        values = [row.value for row in result.rows if row.benchmark == point.benchmark]
        assert (point.models, point.mean, point.variance) == (4, pytest.approx(np.mean(values)), pytest.approx(np.var(values, ddof=1)))
    chart = Chart()
    ANALYSIS.further_plots[0](result, chart)
    assert "first" in chart.draw("wide").svg
    assert computed(replace(sample_responses(questions=300), benchmarks=sample_responses(questions=300).benchmarks[:1])).plane == ()


def test_harmony_is_set_against_what_the_study_states_of_its_models() -> None:
    counts = [[90, 85, 80, 75], [90, 80, 70, 60], [90, 70, 60, 40], [90, 60, 40, 20], [70, 70, 70, 70]]
    subjects = tuple(np.repeat(["s0", "s1", "s2", "s3"], 100).tolist())
    responses = responses_of([right_answers(row, [100] * 4) for row in counts], subjects=subjects)
    models = tuple(
        Model.model_validate_json(
            json.dumps({"id": f"m{index}", "source": {"path": "x"}, "family": "F" if index < 4 else "G", "parameters": 2.0 ** (5 - index)})
        )
        for index in range(5)
    )
    context = Context(rng=np.random.default_rng(0), background=Background(models=models))
    found = compute(responses, HarmonyOptions(kind="harmony"), context).traits
    assert [(one.trait, one.family, one.models) for one in found] == [("parameters", None, 5), ("parameters", "F", 4)]
    assert found[1].value == pytest.approx(1.0)
    assert found[1].p_value == pytest.approx(2 / 24)


def test_every_row_of_the_section_stands_there_with_its_neighbours() -> None:
    text = rendered(ANALYSIS, by_subject([540, 50, 50, 45], [600, 100, 100, 100]), {"kind": "harmony"})
    assert "Harmony over declared subjects (not the induced partition of the published method)" in text
    assert "From sizes alone" in text
    assert "450 questions removed at random from the largest subjects" in text
    assert "None" not in text


@pytest.mark.parametrize(
    "options",
    [
        {"b": 0.0},
        {"eps": 1.0},
        {"partition": "declared", "predictive": {}},
        {"partition": "embedding", "embedding": {"k": [9, 3]}},
        {"b_sweep": [0.1, 0.0]},
        {"by": "letter"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        HarmonyOptions.model_validate_json(json.dumps({"kind": "harmony", **options}))


def test_the_whole_contract_can_be_written_out() -> None:
    predictive = {
        "pbar": "answer_tokens",
        "tau": 1.0,
        "clamp": 1e-6,
        "k": [2, 20],
        "silhouette": "1-S",
        "labels": "kmeans",
        "n_init": 10,
        "seeds": 5,
        "shared": "consensus",
    }
    written = {"by": "subject", "b": 0.1, "b_sweep": [0.05, 0.1, 0.2], "eps": 1e-12, "ci": "eb", "level": 0.95, "null_draws": 2000, "min_cluster": 30}
    for options in (written, {**written, "partition": "predictive", "predictive": predictive}):
        assert HarmonyOptions.model_validate_json(json.dumps({"kind": "harmony", **options})).b == 0.1


def test_a_stricter_analysis_has_wider_intervals() -> None:
    options = HarmonyOptions(kind="harmony")
    assert stricter(options, 5).level == pytest.approx(0.99)
    responses = by_subject([90, 70, 60, 40], [100] * 4)
    plain, strict = (compute(responses, one, Context(rng=np.random.default_rng(0))).rows[0] for one in (options, stricter(options, 5)))
    assert strict.low < plain.low
    assert strict.lowest.low < plain.lowest.low


@pytest.mark.parametrize("options", [{}, {"b": 0.2, "b_sweep": []}, {"partition": "embedding"}, {"partition": "predictive"}])
@pytest.mark.parametrize("made", [{}, {"repeats": 3}, {"clusters": 12}])
def test_it_passes_what_every_analysis_must_pass(options: dict[str, object], made: dict[str, int]) -> None:
    check_analysis(ANALYSIS, {"kind": "harmony", **options}, sample_responses(**made))


def test_models_with_other_missing_answers_have_their_own_numbers_of_questions_in_the_report() -> None:
    scores = np.vstack([right_answers([60, 30], [80, 40])] * 2)
    scores[0, 10:60] = np.nan
    subjects = tuple(["a"] * 80 + ["b"] * 40)
    text = rendered(ANALYSIS, responses_of(scores, subjects=subjects, missing="complete_case"), {"kind": "harmony"})
    assert "10 questions removed at random" not in text
    assert "b with questions removed at random from the largest subjects" in text
    assert "a 33 % of 30 ; 19 to 51 75 % of 80 ; 65 to 83 b 75 % of 40" in text
    whole = rendered(ANALYSIS, responses_of(scores[1:], subjects=subjects), {"kind": "harmony"})
    assert "b with 40 questions removed at random" in whole
