"""What do published checklists ask of a report, and does this one say it?  Each line is decided by what the files of the run hold.

That something is given says that the report states it, and nothing about whether it is enough: nobody judged that. Items are in our own words,
and `BASIS` says which of them were held against a published text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalspec.reporting.dossier import Dossier
from evalspec.reporting.samples import draw_samples
from evalspec.reporting.supplied import Known, State

__all__ = ["ANNEX_IV", "BASIS", "NIST", "STREAM", "Item", "Line", "checklist"]

STREAM = "STREAM (ChemBio), version 1 (arXiv 2508.09853)"
ANNEX_IV = "Regulation (EU) 2024/1689, Annex IV, point 2(g)"
NIST = "NIST AI 800-2, initial public draft of January 2026"

BASIS = {
    STREAM: "Written for tests of chemical and biological abilities in the reports of those who make models. Its six groups, that it has 28 "
    "criteria, and the first six of them were read in its published summary. The text of the others was not at hand: these lines are what we take "
    "them to ask for, and may miss the point of one.",
    ANNEX_IV: "Part of the technical documentation of high-risk AI systems; whether a system is one was not looked into. The sentence of point "
    "2(g) was read as published, and is split here into parts that have no numbers of their own in the law.",
    NIST: "A draft for comment, of voluntary practices. Its three parts were read in the announcement of NIST; its nine practices are known to us "
    "from others who quote them, and not from the draft itself.",
}
"""What each list is for, and how far its lines were held against a published text."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a checklist asks for: where in the list it stands, in which section of the report it would be said, and whether it is.

    `note` says what is missing where it is given in part, `never` why a report of this kind cannot give it.
    """

    source: str
    group: str
    asked: str
    section: str
    state: Callable[[Known], State]
    note: str = ""
    never: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """An item with its answer."""

    item: Item
    state: State


def checklist(dossier: Dossier) -> tuple[Line, ...]:
    """Return every item with its answer, in the order of the lists."""
    known = Known(dossier, tuple(any(question.stem for question in sample.questions) for sample in draw_samples(dossier)))
    return tuple(Line(item, item.state(known)) for item in (*STREAM_ITEMS, *ANNEX_IV_ITEMS, *NIST_ITEMS))


def _given(_: Known) -> State:
    return "given"


def _partly(_: Known) -> State:
    return "in part"


def _not_given(_: Known) -> State:
    return "not given"


def _graders(known: Known) -> State:
    return known.graders


def _human(known: Known) -> State:
    return known.human_baseline


def _people(known: Known) -> State:
    return known.people_asked


OTHER_RULES = "answers were counted by other rules; other prompts, faulty input and attacks are never tried"
ONE_TEXT = "one free text of the study speaks of people; whether it says this was not looked into"


STREAM_ITEMS: tuple[Item, ...] = (
    Item(
        STREAM,
        "Threat relevance",
        "The ability that is measured, and the threat models that it bears on",
        "purpose",
        lambda one: one.purpose("measured", "threat_model"),
    ),
    Item(
        STREAM,
        "Threat relevance",
        "Which results would rule the ability in or out",
        "thresholds",
        lambda one: one.checks,
    ),
    Item(STREAM, "Threat relevance", "An example question with its response", "samples", lambda one: one.share(one.shown)),
    Item(STREAM, "Test construction, grading and scoring", "Number of questions", "data", _given),
    Item(STREAM, "Test construction, grading and scoring", "Type of question and way of scoring", "scoring", _given),
    Item(
        STREAM,
        "Test construction, grading and scoring",
        "How the answer keys came about, and their quality",
        "data",
        lambda one: one.benchmarks(lambda benchmark: benchmark.about.key_quality),
    ),
    Item(STREAM, "Test construction, grading and scoring", "Where people grade: who they were", "scoring", _graders),
    Item(STREAM, "Test construction, grading and scoring", "Where people grade: how they graded", "scoring", _graders),
    Item(STREAM, "Test construction, grading and scoring", "Where people grade: how far they agreed", "scoring", _graders),
    Item(STREAM, "Test construction, grading and scoring", "Where a model grades: which one", "scoring", _graders),
    Item(STREAM, "Test construction, grading and scoring", "Where a model grades: how it graded", "scoring", _graders),
    Item(STREAM, "Test construction, grading and scoring", "Where a model grades: how it compares with people", "scoring", _graders),
    Item(STREAM, "Model elicitation", "The exact versions of the models that were tested", "models", lambda one: one.models),
    Item(
        STREAM,
        "Model elicitation",
        "Safeguards that stood around the models",
        "models",
        lambda one: one.share(bool(model.safeguards) for model in one.dossier.study.models),
    ),
    Item(
        STREAM,
        "Model elicitation",
        "Prompts and settings, and how the models were brought to show what they can do",
        "protocol",
        lambda one: one.observed_here,
    ),
    Item(STREAM, "Model performance", "Scores of each model", "results", lambda one: one.scores),
    Item(STREAM, "Model performance", "Uncertainty of the scores, and the number of repeats", "results", lambda one: one.uncertainty),
    Item(
        STREAM,
        "Model performance",
        "Results under other conditions, such as other prompts or exclusions",
        "robustness",
        lambda one: one.other_rules,
        note=OTHER_RULES,
    ),
    Item(STREAM, "Baseline performance", "Human performance: who the people were", "baselines", _people, note=ONE_TEXT),
    Item(STREAM, "Baseline performance", "Human performance: how well they did", "baselines", _human),
    Item(STREAM, "Baseline performance", "Human performance: how they were asked", "baselines", _people, note=ONE_TEXT),
    Item(
        STREAM,
        "Baseline performance",
        "Without human performance: why there is none",
        "baselines",
        lambda one: "does not apply" if one.human_baseline == "given" else "not given",
    ),
    Item(
        STREAM,
        "Baseline performance",
        "Without human performance: what stands in its place",
        "baselines",
        lambda one: one.beside_people,
        note="guessing, or a model that others are held against; nothing says that it can stand for people",
    ),
    Item(
        STREAM,
        "Results interpretation",
        "What follows from the results",
        "decision",
        lambda one: "given" if one.dossier.verdict.overall else "not given",
    ),
    Item(
        STREAM,
        "Results interpretation",
        "What would overturn it, and whether that was settled before the results",
        "preregistration",
        lambda one: "not given" if not one.dossier.verdict.checks else "given" if one.dossier.plan else "in part",
    ),
    Item(STREAM, "Results interpretation", "What later or better elicited models may do", "limitations", _not_given),
    Item(
        STREAM,
        "Results interpretation",
        "When the evaluation took place, and how long before release",
        "reproduction",
        _partly,
        note="times of the run; when a model is released is not stated",
    ),
    Item(STREAM, "Results interpretation", "Whether those who interpreted the results disagreed", "limitations", _not_given),
)

ANNEX_IV_ITEMS: tuple[Item, ...] = (
    Item(ANNEX_IV, "Procedures", "Procedures of validation and testing", "protocol", _given),
    Item(ANNEX_IV, "Data", "Data used for testing", "data", _given),
    Item(
        ANNEX_IV,
        "Data",
        "Main characteristics of those data",
        "data",
        lambda one: one.benchmarks(lambda benchmark: benchmark.about.language and benchmark.about.key_quality),
    ),
    Item(ANNEX_IV, "Metrics", "Metrics of accuracy", "results", lambda one: one.accuracy),
    Item(ANNEX_IV, "Metrics", "Metrics of robustness", "robustness", lambda one: one.other_rules, note=OTHER_RULES),
    Item(ANNEX_IV, "Metrics", "Metrics of other requirements of Chapter III, Section 2", "results", _not_given),
    Item(ANNEX_IV, "Metrics", "Metrics of potentially discriminatory impacts", "results", _not_given),
    Item(ANNEX_IV, "Records", "Test logs", "responses", _given),
    Item(ANNEX_IV, "Records", "Test report, dated", "provenance", _given),
    Item(
        ANNEX_IV,
        "Records",
        "Test report, signed by the responsible persons",
        "purpose",
        _not_given,
        never="persons may be named; their own signatures are no part of this report",
    ),
    Item(
        ANNEX_IV, "Records", "The same with regard to changes of the system that were settled beforehand, as under point 2(f)", "changes", _not_given
    ),
)

NIST_ITEMS: tuple[Item, ...] = (
    Item(
        NIST, "Objectives and benchmarks", "Objectives of the evaluation", "purpose", lambda one: one.purpose("measured", "intended_use", "decision")
    ),
    Item(
        NIST, "Objectives and benchmarks", "Choice of benchmarks: what they stand for", "purpose", lambda one: one.purpose("measured", "population")
    ),
    Item(NIST, "Implementing and running", "Design of the protocol", "protocol", lambda one: one.observed_here),
    Item(
        NIST,
        "Implementing and running",
        "The evaluation's code, by version",
        "provenance",
        lambda one: "given" if one.dossier.ledger.versions else "not given",
    ),
    Item(NIST, "Implementing and running", "Runs and their tracking", "provenance", _given),
    Item(
        NIST,
        "Implementing and running",
        "Looking for faults: what the answers themselves show",
        "responses",
        lambda one: one.share(summary.self_check_questions is not None for summary in one.dossier.findings.summaries),
    ),
    Item(NIST, "Analysing and reporting", "Statistical analysis and uncertainty", "results", lambda one: one.uncertainty),
    Item(NIST, "Analysing and reporting", "Details and data of the evaluation, shared", "samples", lambda one: one.share(one.shown)),
    Item(
        NIST,
        "Analysing and reporting",
        "Claims with their limits",
        "limitations",
        lambda one: "given" if one.dossier.study.limitations else "in part",
    ),
)
