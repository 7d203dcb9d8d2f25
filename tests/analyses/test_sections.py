"""The sections of analyses whose text depends on how questions came about: every form of them renders, and says what it must."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from markupsafe import Markup

from evalspec.analyses.catalogue import built_in
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.responses import Origin, Responses
from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import AnalysisRequest
from evalspec.protocols import Context
from evalspec.reporting.documents import Documents
from evalspec.reporting.figures import Chart
from evalspec.reporting.templates import make_environment
from evalspec.testing import sample_responses


def section(kind: str, responses: Responses, **options: object) -> str:
    """Compute an analysis, draw its figure and render its section, as text without marks."""
    analysis = built_in()[kind]
    parsed = analysis.options.model_validate_json(json.dumps({"kind": kind, **options}))
    result = analysis.compute(responses, parsed, Context(rng=np.random.default_rng(1)))
    request = AnalysisRequest(
        id="it", kind=kind, benchmarks=tuple(one.benchmark for one in responses.benchmarks), options=json.loads(parsed.model_dump_json())
    )
    findings = {"findings": [{"result": json.loads(result.model_dump_json()), "request": json.loads(request.model_dump_json())}]}
    chart = Chart()
    analysis.plot(analysis.result.model_validate_json(result.model_dump_json()), chart)
    chart.draw("wide")
    environment = make_environment(Documents({"findings.json": findings}))
    html = environment.get_template(analysis.template).render(request=request, result=result, at="/findings/0", estimates=(), figure=Markup(""))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def pooled(responses: Responses) -> Responses:
    entries = tuple(replace(entry, strata=False, sample="simple", pool=Pool(size=300)) for entry in responses.benchmarks)
    return replace(responses, benchmarks=entries)


def weighted(responses: Responses) -> Responses:
    first = responses.benchmarks[0]
    weights = np.where(np.array(first.subjects) == "subject-0", 1.5, 0.75)
    return replace(responses, benchmarks=(replace(first, weights=weights / weights.mean()),))


def graded(responses: Responses) -> Responses:
    rng = np.random.default_rng(3)
    return replace(responses, benchmarks=tuple(replace(one, scores=one.scores * rng.random(one.scores.shape)) for one in responses.benchmarks))


SHAPES = {
    "plain": sample_responses(),
    "repeats": sample_responses(repeats=3),
    "few clusters": sample_responses(clusters=12),
    "more clusters than can be enumerated": sample_responses(clusters=25),
    "clusters whose sums cannot be counted": graded(sample_responses(clusters=25)),
    "many clusters": sample_responses(clusters=40),
    "pool": pooled(sample_responses()),
    "weighted": weighted(sample_responses()),
    "left out": replace(sample_responses(), benchmarks=tuple(replace(one, missing="complete_case") for one in sample_responses().benchmarks)),
}
COMPARED = {"candidate": "model-0", "baseline": "model-1"}
STUDIES: list[tuple[str, dict[str, object]]] = [
    ("intervals", {}),
    ("intervals", {"average": "macro", "method": "jeffreys"}),
    ("mcnemar", {"family": "all_pairs"}),
    ("mcnemar", {"family": "all_pairs", "intervals": "simultaneous", "test": "mid_p"}),
    ("mcnemar", {"family": "adjacent", "correction": "none"}),
    ("subgroups", {"model": "model-0"}),
    ("subgroups", {"model": "model-0", "baseline": "model-1", "correction": "none"}),
    ("sensitivity", {"pairs": [["model-0", "model-1"]]}),
    ("noninferiority", {**COMPARED, "margin": 0.05}),
    ("noninferiority", {**COMPARED, "margin": 0.05, "hypothesis": "equivalence", "method": "e_value"}),
    ("noninferiority", {**COMPARED, "hypothesis": "superiority", "method": "exact"}),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("kind", "options"), STUDIES, ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value.values())) or "default"
)
def test_every_form_of_a_section_renders(kind: str, options: dict[str, object], shape: str) -> None:
    text = section(kind, SHAPES[shape], **options)
    assert "None" not in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_a_row_says_which_interval_it_has_and_what_it_rests_on() -> None:
    assert "Wilson, strata" in section("intervals", SHAPES["plain"])
    clustered = section("intervals", SHAPES["few clusters"])
    assert "Wilson, clusters" in clustered
    assert "12 clusters: fewer than 30, so the interval may cover less often than its level" in clustered
    assert "Wilson, finite pool" in section("intervals", SHAPES["pool"])
    passed_over = "it passes over the pool, as if they were independent draws"
    assert passed_over in section("mcnemar", SHAPES["pool"], family="all_pairs")
    assert passed_over not in section("mcnemar", SHAPES["plain"], family="all_pairs")
    assert "right or wrong and questions are independent draws" in section("intervals", SHAPES["plain"])


def test_repeats_have_a_table_of_what_their_average_hides() -> None:
    text = section("intervals", SHAPES["repeats"])
    assert "What the average over 3 repeats of each question of first hides" in text
    assert "Right in every repeat" in text


def test_a_test_that_flips_clusters_at_random_prints_its_error() -> None:
    text = section("mcnemar", SHAPES["clusters whose sums cannot be counted"], family="all_pairs")
    assert "flips the signs of whole clusters" in text
    assert "±" in text
    for shape in ("few clusters", "more clusters than can be enumerated", "many clusters"):
        assert "over all arrangements" in section("mcnemar", SHAPES[shape], family="all_pairs")


@pytest.mark.parametrize(("kind", "options"), [("mcnemar", {"family": "all_pairs"}), ("tiers", {})])
def test_a_family_too_large_for_random_flips_is_told_that_they_separate_nothing_in_it(kind: str, options: dict[str, object]) -> None:
    drawn = SHAPES["clusters whose sums cannot be counted"]
    family = sum(comb(len(one.models), 2) for one in drawn.benchmarks)
    told = f"By 20,000 random flips no p-value is below 5e-05, and Holm&#39;s method takes the smallest of {family} comparisons times their number: "
    assert told + f"none that is tested so can be separated before {family - 4} others are." in section(kind, drawn, **options, alpha=0.0002)
    assert told not in section(kind, drawn, **options, alpha=0.05)
    assert told not in section(kind, SHAPES["few clusters"], **options, alpha=0.0002)  # counted, not drawn
    assert kind == "tiers" or told not in section(kind, drawn, **options, alpha=0.0002, correction="none")


def test_where_interval_and_decision_part_a_sentence_says_why() -> None:
    first = sample_responses(models=3).benchmarks[0]
    scores = np.ones((3, 120, 1))
    scores[0, :8], scores[1, 8:28], scores[2, 8:28] = 0.0, 0.0, 0.0
    entry = replace(
        first, models=("a", "b", "c"), scores=scores, reasons=np.zeros(scores.shape, np.int8), choices=np.full(scores.shape, -1, np.int16)
    )
    origins = tuple(Origin(model=name, benchmark="first", route="recorded", precision="float32") for name in "abc")
    text = section("mcnemar", Responses((entry,), origins, "0" * 64), family="all_pairs")
    assert "a − b , a − c on first: the interval leaves out zero while the adjusted test does not separate the two;" in text
    assert "the interval is for its comparison alone, and the adjusted p-value allows for all 3 of the family" in text
    assert "The test decides." in text


def test_an_e_value_is_printed_beside_its_p_and_no_other_method_has_one() -> None:
    asked = {**COMPARED, "margin": 0.05}
    e_value = section("noninferiority", SHAPES["plain"], **asked, method="e_value")
    assert "p is one over the e-value" in e_value
    assert " e-value p at any look Shown? " in e_value
    assert "e-value p" not in section("noninferiority", SHAPES["plain"], **asked)


def test_clusters_that_all_differ_by_as_much_have_a_p_value_and_a_reason_instead_of_an_interval() -> None:
    one = SHAPES["few clusters"].benchmarks[-1]
    scores = np.repeat([1.0, 0.0], [1, len(one.models) - 1])[:, None, None] * np.ones_like(one.scores)
    apart = replace(SHAPES["few clusters"], benchmarks=(replace(one, scores=scores, reasons=np.zeros_like(one.reasons)),))
    text = section("mcnemar", apart, family="named", pairs=[["model-0", "model-1"]])
    assert " +100.0 undefined 0.0005 separated " in text  # 2 / 2^12
    assert "the spread is 0, so it gives no interval." in text


MARGIN: dict[str, object] = {**COMPARED, "margin": 0.05}
ALMOST_ALIKE = "By Student's t it can be far larger where nearly all differences are alike, or questions or clusters are few."


@pytest.mark.parametrize(
    ("shape", "options", "says", "never"),
    [
        ("plain", {"method": "score"}, ["measured rates of Tango's test", "p is approximately the chance", "or the e-value, before"], [ALMOST_ALIKE]),
        ("few clusters", {"method": "score"}, ["Student's one-sided t test", ALMOST_ALIKE, "declares planned looks before"], ["Tango"]),
        (
            "repeats",
            {"method": "exact"},
            ["Gaffke's for means", "p is a bound, as far as that conjecture holds, on the chance", "declares planned looks before"],
            ["Fay", "clusters of one"],
        ),
        ("few clusters", {"method": "exact"}, ["The conjecture is about clusters of one size", "not of questions"], ["Fay", "Student"]),
        (
            "plain",
            {"method": "exact"},
            ["Fay and Lumbard's", "not proven", "p is a bound, as far as that conjecture holds, on the chance"],
            ["Gaffke", "Student"],
        ),
        (
            "plain",
            {"method": "exact", "hypothesis": "equivalence"},
            ["would count against the equivalence, on either side"],
            ["the lower bound and p"],
        ),
        ("plain", {"method": "e_value"}, ["p is one over the e-value", "whenever one stops"], ["approximately", "Gaffke", "Tango"]),
    ],
)
def test_the_words_of_a_release_comparison_are_those_of_its_method_and_its_scores(
    shape: str, options: dict[str, object], says: list[str], never: list[str]
) -> None:
    one = SHAPES[shape].benchmarks[-1 if "clusters" in shape else 0]
    answered = replace(one, strata=False, scores=np.nan_to_num(one.scores), reasons=np.zeros_like(one.reasons))
    text = section("noninferiority", replace(SHAPES[shape], benchmarks=(answered,)), **MARGIN, **options)
    assert [words for words in says if words not in text] == []
    assert [words for words in never if words in text] == []


@pytest.mark.parametrize(
    ("method", "says"), [("exact", "the levels of all looks add up to 0.025 , which bounds"), ("score", "have 0.025 , approximately")]
)
def test_planned_looks_have_their_alpha_together_as_far_as_the_method_keeps_it(method: str, says: str) -> None:
    asked = len(SHAPES["plain"].benchmarks[0].questions)
    assert says in section("noninferiority", SHAPES["plain"], **MARGIN, method=method, looks={"at": [asked, 2 * asked], "this": 1})


def test_an_equivalence_says_which_way_its_two_sides_count_missing_answers() -> None:
    first = SHAPES["plain"].benchmarks[0]
    scores, reasons = first.scores.copy(), first.reasons.copy()
    scores[0, 0], reasons[0, 0] = np.nan, 2
    lacking = replace(SHAPES["plain"], benchmarks=(replace(first, scores=scores, reasons=reasons),))
    both = section("noninferiority", lacking, **MARGIN, hypothesis="equivalence")
    assert "difference and lower bound count them against the candidate" in both
    assert "in its favour, and p is the larger one of the two sides, each so counted" in both
    assert "difference, lower bound and p count them against the candidate" in section("noninferiority", lacking, **MARGIN)


@pytest.mark.parametrize("correction", ["holm", "none"])
def test_a_single_comparison_is_never_called_adjusted_nor_left_without_adjustment(correction: str) -> None:
    alone = replace(SHAPES["plain"], benchmarks=SHAPES["plain"].benchmarks[:1])
    text = section("mcnemar", alone, family="named", pairs=[["model-0", "model-1"]], correction=correction)
    assert "1 comparison in all. With one comparison there is nothing to adjust for. The test decides." in text
    assert "djusted" not in text.replace("Neither is adjusted here", "")


def test_not_separated_is_never_called_equal() -> None:
    for kind, options in STUDIES[2:7]:
        assert "does not mean" in section(kind, SHAPES["plain"], **options)


def test_the_table_of_rules_says_that_it_decides_nothing() -> None:
    text = section("sensitivity", SHAPES["plain"], pairs=[["model-0", "model-1"]])
    assert "it decides nothing, no p-value stands in it" in text
    assert "questions are flagged" in text
    assert "answers are missing, all models together" in text


def test_intervals_that_hold_all_together_say_for_which_pairs_and_by_which_quantile() -> None:
    together = {"intervals": "simultaneous"}
    neighbours = section("mcnemar", SHAPES["plain"], family="adjacent", **together)
    assert "for all comparisons together, had the pairs been named in advance" in neighbours
    assert "had the pairs been named" not in section("mcnemar", SHAPES["plain"], family="all_pairs", **together)
    clusters = section("mcnemar", SHAPES["many clusters"], family="all_pairs", **together)
    assert re.search(r"it goes with a critical value of \d\.\d\d , .*; Student\S+s quantile at the same level is what the intervals take", clusters)
    assert "quantile at the same level" not in section("mcnemar", pooled(SHAPES["plain"]), family="all_pairs", **together)


def test_the_table_of_rules_names_its_intervals() -> None:
    text = section("sensitivity", SHAPES["plain"], pairs=[["model-0", "model-1"]])
    assert "Intervals of the scores of models: Wilson. Intervals of differences: Tango." in text


def test_subjects_name_their_intervals() -> None:
    assert "Intervals: Clopper-Pearson." in section("subgroups", SHAPES["plain"], model="model-0", method="clopper_pearson")


def test_where_less_is_better_a_missing_score_counts_as_the_worst_and_is_never_called_wrong() -> None:
    toxic = Score(unit="share of toxic sentences", polarity="lower_is_better")
    entries = []
    for entry in sample_responses().benchmarks:
        scores, reasons = entry.scores.copy(), entry.reasons.copy()
        scores[0, 0], reasons[0, 0] = np.nan, 2
        entries.append(replace(entry, scores=scores, reasons=reasons, score=toxic))
    text = section("sensitivity", replace(sample_responses(), benchmarks=tuple(entries)))
    assert "the study counts them as the worst score" in text
    assert "counts as wrong" not in text
    assert "how often the model is right" not in section("subgroups", replace(sample_responses(), benchmarks=tuple(entries)), model="model-0")


def test_every_analysis_has_a_drawing_its_place_in_the_section_and_sources() -> None:
    for kind, analysis in built_in().items():
        assert analysis.plot is not None, kind
        assert analysis.sources, kind
        source = make_environment(Documents({})).loader.get_source(make_environment(Documents({})), analysis.template)[0]
        assert "{{ figure }}" in source, kind


def test_subjects_that_one_test_compared_name_it_once_and_say_when_interval_and_test_can_part() -> None:
    compared = {"model": "model-0", "baseline": "model-1"}
    text = section("subgroups", SHAPES["plain"], **compared)
    assert " Adjusted p Decision " in text
    assert "Intervals: Tango. Test: McNemar, exact." in text
    assert "the adjusted test decides, and an interval can leave out zero where the test does not separate: it allows for no other subject." in text
    plain = section("subgroups", SHAPES["plain"], **compared, correction="none", method="clopper_pearson")
    assert "for its own subject alone; the test decides. A subject" in plain
    assert "not counted" not in section("subgroups", graded(SHAPES["plain"]), **compared)


def test_right_answers_are_not_counted_beside_an_accuracy_of_another_weighting() -> None:
    headed = " Model Right Questions Accuracy "
    assert headed in section("intervals", SHAPES["plain"])
    assert headed not in section("intervals", SHAPES["weighted"], method="clopper_pearson")
    both = section("intervals", sample_responses(questions=100), average="macro", method="clopper_pearson")
    macro, micro = both.index("every subject counting the same (macro)"), both.index("every question counting the same (micro)")
    assert headed not in both[macro:micro]
    assert headed in both[micro:]


def test_reshufflings_that_all_part_subjects_as_far_are_given_no_error_of_zero() -> None:
    first = sample_responses(models=2).benchmarks[0]
    alike = replace(first, scores=np.repeat(np.array([1.0, 0.0])[:, None, None], first.scores.shape[1], axis=1))
    responses = replace(sample_responses(models=2), benchmarks=(replace(alike, reasons=np.zeros_like(alike.scores, dtype=np.int8)),))
    text = section("subgroups", responses, model="model-0", baseline="model-1")
    assert "p = 1 (every one of them does)" in text
    assert "standard error 0)" not in text
