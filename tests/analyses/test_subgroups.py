from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from evalspec.analyses.subgroups import ANALYSIS, CLUSTERED, NO_STRATA, check_test, compute, estimates
from evalspec.analyses.subgroups_results import SubgroupsOptions, SubgroupsResult
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Context
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered, responses_of

RESPONSES = sample_responses(questions=300)
FIRST = RESPONSES.benchmarks[0]
SUBJECTS = np.array(FIRST.subjects)


def computed(responses: Responses = RESPONSES, **options: object) -> SubgroupsResult:
    return compute(responses, SubgroupsOptions(kind="subgroups", **options), Context(rng=np.random.default_rng(0)))


def test_each_subject_of_one_model_is_held_against_all_others() -> None:
    result = computed(model="model-1")
    scores = FIRST.settled()[1]
    raw = []
    for row in result.rows:
        inside, others = scores[row.subject == SUBJECTS], scores[row.subject != SUBJECTS]
        assert (row.n, row.value, row.elsewhere, row.elsewhere_n) == (inside.size, inside.mean(), pytest.approx(others.mean()), others.size)
        counts = [[inside.sum(), (1 - inside).sum()], [others.sum(), (1 - others).sum()]]
        raw.append(stats.fisher_exact(counts).pvalue)
        assert (row.p_value, row.test) == (pytest.approx(raw[-1]), "fisher")
    assert [row.p_adjusted for row in result.rows] == pytest.approx(multipletests(raw, method="holm")[1])
    assert result.family_size == 3


def test_a_subject_is_held_against_others_of_a_pool_that_were_asked_whole() -> None:
    weights, subjects = np.repeat([1.5, 0.5], 6), ("law",) * 6 + ("art",) * 6
    pool = Pool(size=24, subjects={"law": 18, "art": 6})
    found = responses_of([[1, 0] * 3 + [1] * 4 + [0] * 2], subjects=subjects, strata=True, sample="stratified", weights=weights, pool=pool)
    law = next(row for row in computed(found, model="m0").rows if row.subject == "law")
    error = np.sqrt(0.3 / 6 * (1 - 6 / 18))  # of the law questions alone: what is known of the others is certain
    assert (law.elsewhere, law.test) == (pytest.approx(4 / 6), "welch")
    assert law.p_value == pytest.approx(2 * stats.t.sf((4 / 6 - 0.5) / error, 5))


def test_a_family_that_is_not_adjusted_has_no_adjusted_p_value_and_decides_by_each_test() -> None:
    smallest, *others = sorted(row.p_value for row in computed(model="model-1").rows)
    alpha = (smallest + others[0]) / 2
    result = computed(model="model-1", correction="none", alpha=alpha)
    assert sorted((row.p_value, row.p_adjusted, row.separated) for row in result.rows) == [
        (smallest, None, True),
        *((p, None, False) for p in others),
    ]


def test_two_models_are_compared_within_each_subject_and_adjusted_over_subjects() -> None:
    result = computed(model="model-0", baseline="model-1")
    first, second = FIRST.settled()[:2]
    raw = []
    for row in result.rows:
        a, b = first[row.subject == SUBJECTS], second[row.subject == SUBJECTS]
        assert (row.only_first, row.only_second) == (np.sum(a > b), np.sum(b > a))
        raw.append(peer_mcnemar([[np.sum(a * b), row.only_first], [row.only_second, np.sum((1 - a) * (1 - b))]], exact=True).pvalue)
    assert [row.p_value for row in result.rows] == pytest.approx(raw)
    assert [row.p_adjusted for row in result.rows] == pytest.approx(multipletests(raw, method="holm")[1])
    found = estimates(result)
    assert {(one.metric, one.models, one.unit) for one in found} == {("difference", ("model-0", "model-1"), "difference")}
    assert all(one.subject for one in found)


def test_subjects_that_differ_are_found_by_the_test_over_all_of_them_and_alike_ones_are_not() -> None:
    apart = FIRST.scores.copy()
    apart[0, SUBJECTS == "subject-0"] = 1.0
    apart[0, SUBJECTS == "subject-1"] = 0.0
    result = computed(replace(RESPONSES, benchmarks=(replace(FIRST, scores=apart),)), model="model-0")
    assert result.heterogeneity[0].p_value == pytest.approx(1e-4, abs=1e-6)  # the smallest that 10,000 reshuffles can give
    assert all(row.separated for row in result.rows if row.subject != "subject-2")
    assert computed(model="model-0").heterogeneity[0].p_value > 0.01


def test_subjects_that_are_no_strata_have_no_rows_and_a_reason() -> None:
    result = computed(replace(RESPONSES, benchmarks=RESPONSES.benchmarks[1:]), model="model-0")
    assert (result.rows, result.heterogeneity[0].undefined) == ((), NO_STRATA)


def test_clusters_inside_subjects_stay_whole() -> None:
    clustered = replace(FIRST, clusters=tuple(f"{subject}-{index // 15}" for index, subject in enumerate(FIRST.subjects)))
    responses = replace(RESPONSES, benchmarks=(clustered,))
    assert {row.test for row in computed(responses, model="model-0").rows} == {"welch"}
    result = computed(responses, model="model-0", baseline="model-1")
    assert {row.test for row in result.rows} == {"cluster_sign_flip"}
    assert result.heterogeneity[0].undefined == CLUSTERED


def test_a_weighted_sample_is_compared_within_subjects_where_questions_weigh_the_same() -> None:
    weights = np.where(SUBJECTS == "subject-0", 1.5, 0.75)
    responses = replace(RESPONSES, benchmarks=(replace(FIRST, weights=weights / weights.mean()),))
    row = computed(responses, model="model-0").rows[1]
    scores = FIRST.settled()[0]
    shares = {name: weights[name == SUBJECTS].sum() for name in ("subject-0", "subject-2")}
    expected = sum(shares[name] * scores[name == SUBJECTS].mean() for name in shares) / sum(shares.values())
    assert (row.elsewhere, row.test) == (pytest.approx(expected), "welch")
    assert {pair.test for pair in computed(responses, model="model-0", baseline="model-1").rows} == {"mcnemar_exact"}


def test_a_model_is_not_compared_with_itself() -> None:
    with pytest.raises(ValidationError):
        SubgroupsOptions(kind="subgroups", model="a", baseline="a")


@pytest.mark.parametrize("options", [{}, {"baseline": "model-2"}, {"baseline": "model-2", "test": "mid_p", "correction": "none"}])
@pytest.mark.parametrize("made", [{}, {"repeats": 3}])
def test_it_passes_what_every_analysis_must_pass(options: dict[str, str], made: dict[str, int]) -> None:
    check_analysis(ANALYSIS, {"kind": "subgroups", "model": "model-1", **options}, sample_responses(**made))


def test_a_check_of_a_subject_is_decided_by_its_interval_or_at_a_limit_of_zero_by_its_test() -> None:
    accuracy = Check(id="c", analysis="x", metric="accuracy", model="a", subject="s", at_least=0.5)
    found = check_test(SubgroupsOptions(kind="subgroups", model="a", method="clopper_pearson"), accuracy, (), 1)
    assert (found.test, found.alpha, found.shared_by_subjects) == ("clopper_pearson", pytest.approx(0.025), False)
    ahead = Check(id="c", analysis="x", metric="difference", model="a", baseline="b", subject="s", above=0.0)
    pair = SubgroupsOptions(kind="subgroups", model="a", baseline="b", alpha=0.1, level=0.9)
    assert (check_test(pair, ahead, (), 1).test, check_test(pair, ahead, (), 1).shared_by_subjects) == ("exact", True)
    margin = check_test(pair, ahead.model_copy(update={"above": -0.1}), (), 1)
    assert (margin.test, margin.alpha, margin.shared_by_subjects) == ("score", pytest.approx(0.05), False)


def test_the_error_of_the_smallest_p_value_by_reshuffling_has_no_made_up_digits() -> None:
    apart = responses_of(np.repeat([[1.0, 0.0]], 40, axis=1), subjects=("law",) * 40 + ("logic",) * 40, strata=True)
    text = rendered(ANALYSIS, apart, {"kind": "subgroups", "model": "m0"})
    assert "p < 0.0001 (Monte Carlo standard error 0.0001 )" in text


def test_long_names_of_subjects_may_break_after_an_underscore_and_stay_text() -> None:
    named = replace(FIRST, subjects=tuple(f"high_school_<{subject}>" for subject in FIRST.subjects))
    text = rendered(ANALYSIS, replace(RESPONSES, benchmarks=(named,)), {"kind": "subgroups", "model": "model-1"})
    assert "high_ school_ <subject-0>" in text  # a place to break after each underscore, and no element of the name's own
