"""What a report says is what its numbers carry: of options that an analysis has, of missing answers, of tests beside bounds, of what was drawn."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from evalspec.analyses.analyse import analyse
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.samples import SampleIds
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check
from evalspec.artifacts.verdict import CheckResult
from evalspec.conclusion import describe
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.limits import limitations

RELEASE: dict[str, Any] = {"kind": "noninferiority", "candidate": "demo-small", "baseline": "demo-mid", "margin": 0.02, "method": "exact"}

GATE = Check(id="gate", analysis="release", metric="difference", model="demo-small", baseline="demo-mid", benchmark="everyday", above=-0.02)
FINE = Check(id="fine", analysis="power", metric="detectable_difference", model="demo-large", baseline="demo-mid", benchmark="everyday", at_most=0.05)


def words_of(dossier: Dossier, section: str) -> str:
    """The words of one section of the report."""
    found = re.search(rf'<section id="{section}".*?</section>', compose(dossier).html, re.DOTALL)[0]
    return re.sub(r" (?=[,;:.)])", "", " ".join(re.sub(r"<[^>]+>", " ", found).split()))


def with_analyses(dossier: Dossier, **options: dict[str, Any]) -> Dossier:
    """The dossier with further analyses of its first benchmark, by their ids."""
    requests = tuple(
        AnalysisRequest(
            id=name,
            kind=given["kind"],
            benchmarks=("everyday",),
            options=dossier.catalogue[given["kind"]].options.model_validate_json(json.dumps(given)).model_dump(mode="json"),
        )
        for name, given in options.items()
    )
    protocol = dossier.protocol.model_copy(update={"analyses": (*dossier.protocol.analyses, *requests)})
    findings = analyse(dossier.responses, protocol, dossier.catalogue, responses_sha256=sha256_hex(b"responses"))
    return replace(dossier, protocol=protocol, findings=findings)


def with_check(dossier: Dossier, check: Check, **changes: Any) -> Dossier:
    """The dossier with one check of an estimate that is there, judged as `changes` say."""
    observed = next(
        estimate
        for estimate in dossier.findings.estimates()
        if (estimate.analysis, estimate.metric, estimate.benchmark) == (check.analysis, check.metric, check.benchmark)
        and {*estimate.models} == {check.model, check.baseline} - {None}
        and estimate.subject is None
    )
    given = {"outcome": "inconclusive", "why": "the interval lies on both sides of the limit", "error_control": True} | changes
    result = CheckResult(check=check, benchmark="everyday", observed=observed, **given)
    return replace(dossier, verdict=dossier.verdict.model_copy(update={"checks": (result,), "overall": given["outcome"]}))


def with_benchmarks(dossier: Dossier, **changes: Any) -> Dossier:
    """The dossier with other facts of both benchmarks in its protocol."""
    benchmarks = tuple(benchmark.model_copy(update=changes) for benchmark in dossier.protocol.benchmarks)
    return replace(dossier, protocol=dossier.protocol.model_copy(update={"benchmarks": benchmarks}))


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ({"kind": "tiers", "method": "holm"}, "it tiers all pairs holm 0.05 does not apply does not apply"),
        ({"kind": "tiers", "method": "exact"}, "it tiers all directions of all pairs holm 0.05 does not apply does not apply"),
        ({"kind": "tiers", "method": "max_t"}, "it tiers all directions of all pairs max-T 0.05 does not apply does not apply"),
        ({"kind": "subgroups", "model": "demo-mid"}, "it subgroups each subject holm 0.05 95 % does not apply"),
        ({"kind": "subgroups", "model": "demo-mid", "correction": "none"}, "it subgroups each subject none 0.05 95 % does not apply"),
        ({"kind": "power"}, "it power all pairs holm 0.05 does not apply does not apply"),
        ({"kind": "power", "baseline": "demo-mid", "correction": "none"}, "it power each with demo-mid none 0.05 does not apply does not apply"),
        (RELEASE, "it noninferiority demo-small with demo-mid none 0.025 does not apply 2.0 points"),
        ({"kind": "split_half"}, "it split half does not apply does not apply does not apply does not apply does not apply"),
        ({"kind": "harmony", "null_draws": 200}, "it harmony each model holm does not apply 95 % does not apply"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value.split(" ", 1)[1],
)
def test_the_plan_says_none_of_no_option_that_an_analysis_does_not_have(options: dict[str, Any], row: str, dossier: Dossier) -> None:
    assert row in words_of(with_analyses(dossier, it=options), "power")


def test_a_test_that_separates_and_a_bound_that_does_not_are_reconciled(dossier: Dossier) -> None:
    studied = with_check(with_analyses(dossier, release=RELEASE), GATE)
    told = "That pairs separates the same two models is no contradiction. Its test asks whether they differ at all"
    free = "it holds whatever the distribution of the differences, by a conjecture that calculation supports, and pays for that in width"
    assert told in words_of(studied, "decision")
    assert free not in words_of(studied, "decision")
    assert free in words_of(judged(studied, observed=observed_of(studied).model_copy(update={"method": "gaffke_clustered"})), "decision")
    assert told not in words_of(judged(studied, outcome="failed"), "decision")  # there is nothing to reconcile
    assert told not in words_of(judged(studied, observed=observed_of(studied).model_copy(update={"models": ("demo-mid", "demo-large")})), "decision")


def observed_of(dossier: Dossier) -> Estimate:
    """What the only check of a dossier observed."""
    observed = dossier.verdict.checks[0].observed
    assert observed is not None
    return observed


def judged(dossier: Dossier, **changes: Any) -> Dossier:
    """The dossier with another judgement of its only check."""
    result = dossier.verdict.checks[0].model_copy(update=changes)
    return replace(dossier, verdict=dossier.verdict.model_copy(update={"checks": (result,)}))


def test_what_the_plan_knew_of_an_open_check_stands_with_it(dossier: Dossier) -> None:
    short = "it is not cleared by models that do not differ on any question with 57 clusters: that takes at least 183, of one size"
    clusters = "questions come in clusters"
    forecast = GateForecast(check="gate", benchmark="everyday", n=240, source_size=320, limit=-0.02, why_not=short, undefined=clusters)
    studied = with_check(with_analyses(dossier, release=RELEASE), GATE, forecast=forecast)
    said = words_of(studied, "decision")
    assert f"This sample is too small for this check: {short}. How many questions would be enough cannot be stated: {clusters}." in said
    planned = replace(studied, schedule=studied.schedule.model_copy(update={"gates": (forecast,)}))
    assert f"{clusters}; {short}" in words_of(planned, "power")
    console = describe(studied.verdict)
    assert f"this sample is too small for it: {short}; the questions needed cannot be stated: {clusters}" in console


def with_missing(dossier: Dossier, **options: Any) -> Dossier:
    """The dossier with a gate on a model of which answers are missing, all of them counted against the check in what it is held against."""
    studied = with_analyses(dossier, release=RELEASE | options)
    found = next(one for one in studied.findings.estimates() if one.analysis == "release")
    assert found.high is not None
    return with_check(studied, GATE, missing=3, settled=found.model_copy(update={"high": found.high - 0.01}))


@pytest.mark.parametrize("options", [{}, {"hypothesis": "equivalence", "margin": 0.5}], ids=["noninferiority", "equivalence"])
def test_bounds_that_count_missing_answers_both_ways_are_not_called_one_interval(options: dict[str, Any], dossier: Dossier) -> None:
    page = with_missing(dossier, **options)
    decision, table = words_of(page, "decision"), words_of(page, "thresholds")
    both = "bounds with an error rate of 0.025 each, the lower one with missing answers counted against demo-small, the upper one for it: "
    assert re.search(rf"Observed, missing answers counted against demo-small: \S+ points \({both}", decision)
    assert "points bounds that count missing answers both ways, Fay and Lumbard" in table
    assert not re.search(r"95 %( interval|, Fay)", decision.split("The checks")[1] + table)
    assert re.search(r"with all of them counted against the check, for both bounds: \S+ points, bounds \S+ to", decision)
    answered = judged(page, missing=0)
    assert "both ways" not in words_of(answered, "thresholds")
    assert (
        "interval" in re.search(r"Observed: .*?\)", words_of(answered, "decision"))[0]
        if options
        else "bounds at 97.5 % each" in words_of(answered, "decision")
    )


def test_a_difference_seen_from_the_other_model_counts_missing_answers_against_the_same_one(dossier: Dossier) -> None:
    page = with_missing(dossier)
    said = words_of(judged(page, observed=observed_of(page).reversed()), "decision")
    assert "Observed, missing answers counted against demo-small: " in said
    assert "the lower one with missing answers counted for demo-small, the upper one against it" in said


def test_a_difference_that_counts_missing_answers_says_how_beside_tests_that_may_not(dossier: Dossier) -> None:
    told = "Counted so, they are wrong for demo-small and right for demo-mid, whichever rule the numbers above follow."
    page = with_missing(dossier)
    assert re.search(rf"missing answers counted against demo-small, its 97.5 % lower bound \S+ points. {told}", words_of(page, "decision"))
    both = with_missing(dossier, hypothesis="equivalence", margin=0.5)
    assert re.search(r"its bounds \S+ to \S+ points, with an error rate of 0.025 each, the lower one with missing", words_of(both, "decision"))
    summaries = tuple(one.model_copy(update={"missing": {}}) for one in page.findings.summaries)
    answered = replace(page, findings=page.findings.model_copy(update={"summaries": summaries}))
    assert "Counted so" not in words_of(answered, "decision")


def test_a_detectable_difference_is_in_points_wherever_it_stands(dossier: Dossier) -> None:
    page = with_check(with_analyses(dossier, power={"kind": "power"}), FINE)
    for section in ("decision", "thresholds"):
        said = words_of(page, section)
        assert re.search(r"at most 5\.0* points", said)
        assert not re.search(r"at most 5\.0* %", said)
    observed = re.search(r"Observed: (\S+) points \( ?95 % interval (\S+) to (\S+) points\)", words_of(page, "decision"))
    assert observed
    assert not any(number.startswith("+") for number in observed.groups())


def test_a_gap_between_groups_is_in_points_too(dossier: Dossier) -> None:
    studied = with_analyses(dossier, even={"kind": "harmony", "null_draws": 200})
    check = Check(id="even", analysis="even", metric="group_gap", model="demo-large", benchmark="everyday", at_most=0.3, bound="value")
    assert re.search(r"at most 30\.\d points.*Observed: \d+\.\d points", words_of(with_check(studied, check), "decision"))


def test_no_measured_rates_are_claimed_for_detectable_differences(dossier: Dossier) -> None:
    page = with_check(with_analyses(dossier, power={"kind": "power"}), FINE)
    said = words_of(page, "thresholds")
    assert "measured rates" not in said
    assert "mcnemar exact" not in said
    told = "Detectable differences: their bounds are the differences detectable at the ends of Wilson's interval of the discordance"
    assert told in said.replace("&#39;", "'")
    assert "how often a check of them passes falsely was not measured" in said


def test_measured_rates_are_claimed_of_bounds_alone_whose_rates_were_measured(dossier: Dossier) -> None:
    studied = with_analyses(dossier, even={"kind": "harmony", "null_draws": 200})
    check = Check(id="least", analysis="even", metric="worst_group", model="demo-large", benchmark="everyday", at_least=0.5)
    said = words_of(with_check(studied, check), "thresholds")
    assert re.search(r"lowest of 6 subjects: \w+: approximately at best; no rates were measured", said)
    assert "the documentation gives measured rates" not in said
    assert "Wilson, strata: approximately" in words_of(dossier, "thresholds")


def test_intervals_predict_nothing(dossier: Dossier) -> None:
    said = "\n".join(limitations(dossier))
    assert "Intervals allow for the luck of which questions of their kind were asked." in said
    assert "would move a number" not in said


def test_little_probability_on_letters_is_not_explained(dossier: Dossier) -> None:
    said = words_of(dossier, "responses")
    assert "understood" not in said
    assert "where it is low, most of its probability lies on other answers, and the choice rests on the little that is left" in said


def test_subjects_that_are_clusters_are_not_followed_by_none(dossier: Dossier) -> None:
    said = words_of(with_benchmarks(dossier, strata=None, clusters="subject"), "data")
    assert "Clusters of questions the subjects" in said
    assert "none declared" not in said
    assert "Clusters of questions none declared" in words_of(dossier, "data")


def test_other_seeds_are_of_no_use_where_every_question_was_asked(dossier: Dossier) -> None:
    assert "Other seeds not tried: one sample was drawn of everyday Further" in words_of(dossier, "robustness")
    everything = tuple(one.model_copy(update={"source_size": len(one.questions)}) for one in dossier.protocol.benchmarks)
    asked = replace(dossier, protocol=dossier.protocol.model_copy(update={"benchmarks": everything}))
    assert "Other seeds would draw the same: every question of the source was asked" in words_of(asked, "robustness")
    named = with_benchmarks(dossier, sample=SampleIds(method="ids", ids=("everyday-000",)))
    assert "Other seeds would draw the same: the study names its questions" in words_of(named, "robustness")
