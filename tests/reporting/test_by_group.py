"""Beside every accuracy stands what it hides of groups, or why not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from evalspec.artifacts.findings import Estimate
from evalspec.reporting.by_group import GROUP_METRICS, NO_SUBJECTS, NOT_ASKED, ONE_SUBJECT, Beside
from evalspec.reporting.compose import compose
from evalspec.reporting.documents import place_all
from evalspec.reporting.dossier import Dossier

VALUES = {"worst_group": 0.4, "group_gap": 0.45, "harmony": 0.71, "size_harmony": 0.93}


def by_subject(model: str, benchmark: str = "everyday", *, analysis: str = "subjects", groups: str = "declared", **changed: Any) -> list[Estimate]:
    """What a harmony analysis says of one model; `changed` holds fields of the estimate of harmony itself."""
    method = f"empirical Bayes over {groups} groups"
    shared = Estimate(analysis=analysis, metric="harmony", benchmark=benchmark, models=(model,), value=0.71, method=method, n=240, unit="index")
    made = [shared.model_copy(update={"metric": metric, "value": VALUES[metric]}) for metric in GROUP_METRICS]
    worst = made[0].model_copy(update={"method": "lowest of 6 subjects: tools", "unit": "proportion", "n": 40})
    return [worst, made[1].model_copy(update={"unit": "proportion"}), made[2].model_copy(update=changed), made[3]]


def beside(dossier: Dossier, *estimates: list[Estimate]) -> Beside:
    return Beside.of(place_all([one for each in estimates for one in each], "/estimates"), dossier.responses)


def with_groups(dossier: Dossier, estimates: list[Estimate]) -> Dossier:
    """The dossier whose last analysis gives these estimates too."""
    *others, last = dossier.findings.findings
    more = last.model_copy(update={"estimates": (*last.estimates, *estimates)})
    return replace(dossier, findings=dossier.findings.model_copy(update={"findings": (*others, more)}))


def with_many(dossier: Dossier, number: int) -> Dossier:
    """The dossier whose first analysis gives the accuracies of so many models, and whose last one what they hide."""
    first, *others = dossier.findings.findings
    pattern = next(one for one in first.estimates if one.benchmark == "everyday" and one.subject is None)
    models = [f"m{place:03}" for place in range(number)]
    values = [0.5 + place / 1000 for place in range(number)]
    made = [
        pattern.model_copy(update={"models": (name,), "value": value, "low": 0.4, "high": 0.95}) for name, value in zip(models, values, strict=True)
    ]
    changed = first.model_copy(update={"estimates": tuple(made)})
    whole = replace(dossier, findings=dossier.findings.model_copy(update={"findings": (changed, *others)}))
    return with_groups(whole, [one for name in models for one in by_subject(name)])


def table(html: str, caption: str) -> list[str]:
    """The rows of the table of this caption, as words."""
    found = next(one for one in re.findall(r"<table.*?</table>", html, re.DOTALL) if f"<caption>{caption}" in one)
    return [words(row) for row in re.findall(r"<tr>.*?</tr>", found, re.DOTALL)]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_each_model_has_its_own_worst_group_and_where_there_are_none_a_reason_stands(dossier: Dossier) -> None:
    found = beside(dossier, by_subject("demo-mid"))
    groups = found.on("everyday", "demo-mid")
    assert groups is not None
    assert (groups.worst, groups.declared, groups.harmony.item.value) == ("tools", True, 0.71)
    assert found.on("everyday", "demo-large") is None
    assert found.absent == {"triples": NO_SUBJECTS}
    assert beside(dossier).without(["everyday", "triples"]) == {NOT_ASKED: ["everyday"], NO_SUBJECTS: ["triples"]}


def test_questions_of_one_subject_are_not_said_to_name_none(dossier: Dossier) -> None:
    responses = dossier.responses
    alike = tuple(replace(entry, subjects=("physics",) * len(entry.questions)) for entry in responses.benchmarks)
    assert set(beside(replace(dossier, responses=replace(responses, benchmarks=alike))).absent.values()) == {ONE_SUBJECT}


def test_declared_subjects_go_before_groups_that_were_made(dossier: Dossier) -> None:
    groups = beside(dossier, by_subject("demo-mid", analysis="by-words", groups="embedding"), by_subject("demo-mid")).on("everyday", "demo-mid")
    assert groups is not None
    assert groups.worst_group.item.analysis == "subjects"


def test_the_first_page_and_the_table_of_accuracies_say_it_of_every_model(dossier: Dossier) -> None:
    names = ("demo-large", "demo-mid", "demo-small", "recorded")
    html = compose(with_groups(dossier, [one for name in names for one in by_subject(name)])).html
    head, *rows = table(html, "Accuracy on everyday beside what it hides of subjects")
    assert head == "Model Accuracy Worst subject Its accuracy Gap, points Harmony From sizes alone"
    assert [row.split()[0] for row in rows] == list(names)
    assert all(row.endswith("tools 40.0 % of 40 45.0 0.71 0.93") for row in rows)
    head, *rows = table(html, "Accuracy on everyday; in order of the estimate")
    assert "Worst subject, gap, harmony" in head
    assert len(rows) == 4
    assert all("tools, 40.0 % gap 45.0 points; harmony 0.71 , from sizes alone 0.93" in row for row in rows)
    assert f"How much accuracies differ from subject to subject is not shown here on triples: {NO_SUBJECTS}." in html
    assert f"Beside these accuracies on triples stand no worst subject, no gap between subjects and no harmony: {NO_SUBJECTS}." in html


def test_the_gap_is_no_more_precise_than_the_accuracy_of_the_worst_group(dossier: Dossier) -> None:
    names = ("demo-large", "demo-mid", "demo-small", "recorded")
    told = [one.model_copy(update={"low": 0.27, "high": 0.55}) if one.metric == "worst_group" else one for name in names for one in by_subject(name)]
    html = compose(with_groups(dossier, told)).html
    _, *rows = table(html, "Accuracy on everyday beside what it hides of subjects")
    assert all(row.endswith("tools 40 % of 40 ; 27 to 55 45 0.71 0.93") for row in rows)
    _, *rows = table(html, "Accuracy on everyday; in order of the estimate")
    assert all("tools, 40 % gap 45 points; harmony" in row for row in rows)


def test_harmony_that_is_not_said_stands_with_its_reason_and_its_models(dossier: Dossier) -> None:
    unsure = {"value": None, "undefined": "inconclusive: 1 group has fewer than 30 scored questions"}
    names = ("demo-large", "demo-small", "recorded")
    told = [*by_subject("demo-mid", **unsure), *(one for name in names for one in by_subject(name))]
    html = compose(with_groups(dossier, told)).html
    rows = table(html, "Accuracy on everyday beside what it hides of subjects")
    assert [("not said" in row) for row in rows] == [False, False, True, False, False]
    assert words(html).count("everyday, demo-mid : harmony is not said beside the accuracy: inconclusive: 1 group has fewer than 30") == 2


@pytest.mark.parametrize(("models", "shown"), [(10, 10), (420, 10)])
def test_of_many_models_the_first_page_shows_the_highest_and_says_where_the_others_are(models: int, shown: int, dossier: Dossier) -> None:
    page = re.search(r'<section id="decision".*?</section>', compose(with_many(dossier, models)).html, re.DOTALL)
    assert page
    _, *rows = table(page[0], "Accuracy on everyday beside what it hides")
    assert [row.split()[0] for row in rows] == [f"m{models - 1 - place:03}" for place in range(shown)]
    assert ("of 420 models the highest 10, the others under" in page[0]) == (models > 10)
