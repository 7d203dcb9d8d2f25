"""The annex of checklists answers from what the files hold, and says of nothing that it is enough."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import About, Study
from evalspec.reporting.checklist import ANNEX_IV, BASIS, NIST, STREAM, checklist
from evalspec.reporting.compose import SECTIONS, compose
from evalspec.reporting.dossier import Dossier

LESS = Score(unit="share of toxic sentences", polarity="lower_is_better")
EVERYTHING = About(**dict.fromkeys(About.model_fields, "stated"))


def states(dossier: Dossier) -> dict[str, str]:
    """The answers by what is asked."""
    return {line.item.asked: line.state for line in checklist(dossier)}


def with_study(dossier: Dossier, **update: Any) -> Dossier:
    return replace(dossier, study=dossier.study.model_copy(update=update))


def with_purpose(study: Study, **stated: str) -> dict[str, Any]:
    return {"purpose": study.purpose.model_copy(update=stated)}


def with_about(study: Study, about: About, *, of: int | None = None) -> dict[str, Any]:
    changed = (one.model_copy(update={"about": about}) if of in (None, place) else one for place, one in enumerate(study.benchmarks))
    return {"benchmarks": tuple(changed)}


def with_safeguards(study: Study) -> dict[str, Any]:
    return {"models": tuple(model.model_copy(update={"safeguards": "none"}) for model in study.models)}


def test_the_lists_are_whole_and_each_item_names_a_section_of_the_report(dossier: Dossier) -> None:
    lines = checklist(dossier)
    assert Counter(line.item.source for line in lines) == {STREAM: 28, ANNEX_IV: 11, NIST: 9}
    assert {line.item.section for line in lines} <= {"decision", *(name for name, _ in SECTIONS)}
    assert len({(line.item.source, line.item.asked) for line in lines}) == len(lines)


def test_a_study_that_says_little_is_given_little(bare_dossier: Dossier) -> None:
    said = states(bare_dossier)
    for asked in (
        "The ability that is measured, and the threat models that it bears on",
        "Which results would rule the ability in or out",
        "How the answer keys came about, and their quality",
        "Safeguards that stood around the models",
        "Human performance: how well they did",
        "Main characteristics of those data",
        "Test report, signed by the responsible persons",
        "Objectives of the evaluation",
        "The evaluation's code, by version",
        "What follows from the results",
    ):
        assert said[asked] == "not given", asked


@pytest.mark.parametrize(
    ("asked", "change", "before", "after"),
    [
        ("The ability that is measured, and the threat models that it bears on", lambda s: with_purpose(s, threat_model="t"), "in part", "given"),
        ("Choice of benchmarks: what they stand for", lambda s: with_purpose(s, population="p"), "in part", "given"),
        ("How the answer keys came about, and their quality", lambda s: with_about(s, EVERYTHING), "not given", "given"),
        ("How the answer keys came about, and their quality", lambda s: with_about(s, EVERYTHING, of=1), "not given", "in part"),
        ("Main characteristics of those data", lambda s: with_about(s, EVERYTHING), "not given", "given"),
        ("Main characteristics of those data", lambda s: with_about(s, About(language="English")), "not given", "not given"),
        ("Human performance: how well they did", lambda s: with_about(s, EVERYTHING), "not given", "given"),
        ("Without human performance: why there is none", lambda s: with_about(s, EVERYTHING), "not given", "does not apply"),
        ("Safeguards that stood around the models", with_safeguards, "not given", "given"),
        ("Claims with their limits", lambda _: {"limitations": ()}, "given", "in part"),
        ("Human performance: who the people were", lambda s: with_about(s, EVERYTHING), "not given", "in part"),
        ("Human performance: how they were asked", lambda s: with_about(s, EVERYTHING, of=1), "not given", "in part"),
    ],
)
def test_an_answer_turns_with_what_the_study_states(
    asked: str, change: Callable[[Study], dict[str, Any]], before: str, after: str, dossier: Dossier
) -> None:
    assert states(dossier)[asked] == before
    assert states(with_study(dossier, **change(dossier.study)))[asked] == after


def test_examples_are_given_as_far_as_questions_are_disclosed(dossier: Dossier, build_dossier: Callable[..., Dossier]) -> None:
    asked = "An example question with its response"
    assert [states(one)[asked] for one in (dossier, build_dossier(disclosure="ids"), build_dossier(disclosure="none"))] == [
        "given",
        "not given",
        "not given",
    ]


def test_who_graded_is_not_known_where_a_table_gives_scores_without_choices(dossier: Dossier) -> None:
    first, *others = dossier.responses.benchmarks
    without = replace(first, choices=np.full_like(first.choices, -1))
    graded = replace(dossier, responses=replace(dossier.responses, benchmarks=(without, *others)))
    assert states(dossier)["Where a model grades: which one"] == "does not apply"
    assert states(graded)["Where a model grades: which one"] == "not given"


def test_that_persons_are_named_does_not_count_as_their_signature(dossier: Dossier) -> None:
    assert dossier.study.owner is not None
    assert dossier.study.owner.responsible
    assert states(dossier)["Test report, signed by the responsible persons"] == "not given"
    section = re.search(r'<section id="checklist".*?</section>', compose(dossier).html, re.DOTALL)[0]
    assert '<td class="not-given">not given: persons may be named; their own signatures are no part of this report</td>' in section


@pytest.mark.parametrize(("kind", "state"), [("redraw", "not given"), ("split_half", "not given"), ("sensitivity", "in part")])
def test_drawing_the_same_answers_again_is_neither_another_condition_nor_robustness(kind: str, state: str, dossier: Dossier) -> None:
    first, *others = dossier.findings.findings
    another = first.model_copy(update={"request": first.request.model_copy(update={"kind": kind})})
    changed = replace(dossier, findings=dossier.findings.model_copy(update={"findings": (another, *others)}))
    for asked in ("Results under other conditions, such as other prompts or exclusions", "Metrics of robustness"):
        assert states(dossier)[asked] == "not given"
        assert states(changed)[asked] == state


def test_guessing_stands_in_the_place_of_people_only_where_it_is_known(dossier: Dossier) -> None:
    asked = "Without human performance: what stands in its place"
    unknown = with_study(dossier, benchmarks=tuple(one.model_copy(update={"score": LESS}) for one in dossier.study.benchmarks))
    apart = replace(unknown, findings=unknown.findings.model_copy(update={"findings": ()}), verdict=unknown.verdict.model_copy(update={"checks": ()}))
    assert [states(one)[asked] for one in (dossier, apart)] == ["in part", "not given"]


def test_a_declared_score_is_no_metric_of_accuracy(dossier: Dossier) -> None:
    declared = with_study(dossier, benchmarks=tuple(one.model_copy(update={"score": LESS}) for one in dossier.study.benchmarks))
    assert [states(one)["Metrics of accuracy"] for one in (dossier, declared)] == ["given", "not given"]
    assert states(declared)["Scores of each model"] == "given"


def test_every_list_says_what_its_lines_were_held_against(dossier: Dossier) -> None:
    section = re.search(r'<section id="checklist".*?</section>', compose(dossier).html, re.DOTALL)[0]
    assert set(BASIS) == {STREAM, ANNEX_IV, NIST}
    for source, basis in BASIS.items():
        assert section.index(source) < section.index(basis)
    assert "not their wording, numbering or order" in section


def test_what_is_given_is_not_called_enough(dossier: Dossier) -> None:
    section = re.search(r'<section id="checklist".*?</section>', compose(dossier).html, re.DOTALL)[0]
    answers = re.findall(r'<td class="[\w-]+">([^<]*)</td></tr>', section)
    lines = checklist(dossier)
    assert len(answers) == len(lines)
    for line, answer in zip(lines, answers, strict=True):
        if line.state == "given":
            assert answer == "field supplied; adequacy not assessed"
        if line.state == "in part":
            assert answer.startswith("supplied in part; adequacy not assessed")
    assert "no claim that the study follows any of these documents" in section


def test_persons_are_named_as_in_the_study_and_the_seal_is_not_theirs(dossier: Dossier, bare_dossier: Dossier) -> None:
    section = re.search(r'<section id="purpose".*?</section>', compose(dossier).html, re.DOTALL)[0]
    assert '<th scope="row">A. Reviewer</th><td>evaluation lead</td><td><span class="absent">not stated</span></td>' in section
    assert '<th scope="row">B. Keeper</th><td><span class="absent">not stated</span></td>' in section
    assert "It is not the signature of any person named here." in section
    page = compose(bare_dossier).html
    assert "Not signed" in page
    assert "Named as the study file names them" not in page
