"""What can this study not show?  Limitations that follow from its own facts, after those that its author states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalspec.artifacts.findings import ModelSummary
from evalspec.artifacts.served import ServedIdentity
from evalspec.reporting.dossier import Dossier

__all__ = ["limitations", "main_limitations"]

MAIN = 3
FEW_CLUSTERS = 30
MOST_NAMED = 12
MISSING_WORDS = {
    "wrong": "counted as wrong",
    "complete_case": "left out of the numbers",
    "error": "not allowed by the study",
}
WORST = "counted as the worst score"


def limitations(dossier: Dossier) -> tuple[str, ...]:
    """Return what follows from the facts of the run: departures from a locked plan, then the most general; sentences hold no results."""
    return (*_departures(dossier), *_general(dossier), *_of_models(dossier))


def main_limitations(dossier: Dossier) -> tuple[str, ...]:
    """Return those that stand on the first page: departures, the author's own, what befell a model's answers, then the most general facts."""
    return (*_departures(dossier), *dossier.study.limitations[: MAIN - 2], *_of_models(dossier)[: MAIN - 2], *_general(dossier))[:MAIN]


def _of_models(dossier: Dossier) -> tuple[str, ...]:
    places: dict[str, list[tuple[str, str]]] = {}
    for summary in dossier.findings.summaries:
        for sentence in _of_model(summary, dossier):
            places.setdefault(sentence, []).append((summary.model, summary.benchmark))
    return tuple(f"{sentence} This holds for {_listed(where, dossier)}." for sentence, where in places.items())


def _listed(places: Sequence[tuple[str, str]], dossier: Dossier) -> str:
    """Name models with their benchmarks: all of few, the number of many, and only the models where one benchmark or all of them are meant."""
    models = list(dict.fromkeys(model for model, _ in places))
    named = ", ".join(models[:MOST_NAMED]) + (f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else "")
    everywhere = len(places) == len(models) * len(dossier.protocol.benchmarks)
    if everywhere and len(models) == len(dossier.protocol.models):
        return "every model" if len(models) > 1 else named
    if everywhere:
        return named
    if len(places) <= MOST_NAMED:
        return ", ".join(f"{model} on {benchmark}" for model, benchmark in places)
    return f"{named}, on some benchmarks"


def _general(dossier: Dossier) -> Iterator[str]:
    repeats = sorted({entry.scores.shape[2] for entry in dossier.responses.benchmarks})
    shown = " to ".join(str(number) for number in (repeats if len(repeats) < 2 else [repeats[0], repeats[-1]]))
    forms = "1" if any(origin.route != "recorded" for origin in dossier.responses.origins) else "not observed"
    told = {bool(benchmark.about.contamination) for benchmark in dossier.study.benchmarks}
    seen = "not assessed" if told == {False} else "as the author states it" if told == {True} else "not assessed, or as the author states it"
    yield f"Prompt forms tried: {forms}; repeats: {shown}; contamination: {seen}."
    yield (
        f"Intervals allow for the luck of {_reach(dossier)} asked. "
        "They say nothing about other tasks, other wordings or the use that the models are meant for."
    )
    if any(entry.flags for entry in dossier.responses.benchmarks):
        yield "Answer keys are taken as the source gives them, also those of questions that it flags as faulty."
    elif all(benchmark.about.key_quality for benchmark in dossier.study.benchmarks):
        yield "Answer keys are taken as the source gives them; what their author says of their quality was not looked into."
    else:
        yield "Answer keys are taken as the source gives them; how many of them are wrong was not assessed."
    if any(0 < len(set(entry.clusters)) < FEW_CLUSTERS for entry in dossier.responses.benchmarks):
        yield (
            "Where questions come in fewer than thirty clusters, intervals that rest on the spread between them may miss their true value more often "
            "than they say."
        )
    if any(entry.strata for entry in dossier.responses.benchmarks):
        yield "Intervals of single subjects are not adjusted for their number: among many, some are likely to miss their true value."
    if any(benchmark.disclosure == "none" for benchmark in dossier.protocol.benchmarks):
        yield "Questions are not disclosed, so readers cannot judge their quality from this report."
    if dossier.ledger.looks is not None and dossier.ledger.looks > _planned_looks(dossier):
        yield (
            f"These checks have judged {dossier.ledger.looks} different sets of answers to these questions, as far as the cache folder of this run "
            "knows, and that is more looks than the study plans: the chance of a false pass over all of them is larger than stated."
        )
    if dossier.verdict.checks or any(request.planned for request in dossier.study.analyses):
        yield _plan_unseen(dossier)
    if dossier.ledger.git_dirty:
        yield "The study file had changes that were not committed when the run started."
    if dossier.ledger.git_commit is None:
        yield "The study file was not under version control, as far as the run could tell."


def _reach(dossier: Dossier) -> str:
    """Say what was left to luck among the questions that intervals speak of."""
    targets = {benchmark.target for benchmark in dossier.study.benchmarks}
    if targets == {"super_population"}:
        return "which questions of their kind were"
    if targets == {"this_pool"}:
        return "which part of the source was"
    return "which questions of their kind were, or which part of the source where it alone is the target, was"


def _departures(dossier: Dossier) -> tuple[str, ...]:
    """Say that the run is other than its locked plan, and whether that reaches the decision."""
    if dossier.plan is None or dossier.plan.as_locked:
        return ()
    told = "This run departs from the plan that was locked before it; every deviation is listed under Preregistration."
    named = {check.analysis for check in dossier.protocol.thresholds.checks} if dossier.protocol.thresholds else set()
    if named & dossier.plan.unplanned or dossier.plan.limits_moved:
        told += " The decision rests on what is not as locked."
    return (told,)


def _plan_unseen(dossier: Dossier) -> str:
    replayed = [origin for origin in dossier.responses.origins if origin.route in {"recorded", "earlier_run"}]
    known = " The recorded answers existed before the study was run." if replayed else ""
    if dossier.plan is None:
        shown = "The plan was not signed before the run, so nothing here shows that analyses, margins and limits were set before answers were seen."
    elif dossier.plan.lock.before.any:
        shown = "When the plan was locked, answers to these questions existed, so the lock does not show that it was set before they were seen."
    else:
        shown = "That the plan was set before answers were seen rests on the signer's word: no independent authority dates the lock."
    return shown + known


def _planned_looks(dossier: Dossier) -> float:
    """Return the number of looks over which every check keeps its error rate."""
    observed = [result.observed for result in dossier.verdict.checks if result.observed is not None]
    return min((math.inf if estimate.anytime else estimate.looks or 1 for estimate in observed), default=1)


def _of_model(summary: ModelSummary, dossier: Dossier) -> Iterator[str]:
    if summary.degenerate:
        yield "One letter takes more than nine in ten of the choices, so the score says more about that habit than about ability."
    if summary.missing:
        benchmark = dossier.protocol.benchmark(summary.benchmark)
        rule = WORST if benchmark.score is not None and benchmark.missing == "wrong" else MISSING_WORDS[benchmark.missing]
        some = "Some" if summary.answered else "All"
        yield f"{some} scores are missing ({', '.join(reason.replace('_', ' ') for reason in summary.missing)}) and {rule}."
    if summary.self_check_flips and summary.route == "server":
        yield "Some answers changed when questions were asked again, so the server alone can move this score."
    elif summary.self_check_flips:
        yield "Some answers changed when questions were scored one at a time, so the arithmetic alone can move this score."
    if summary.route == "recorded":
        yield "Responses were recorded elsewhere and replayed; this run did not meet the model."
    if summary.route == "earlier_run":
        yield "Answers are those of an earlier signed run; this run did not meet the model, and other software or devices may have given them."
    if summary.route == "server":
        yield "Answers came from a server, whose weights cannot be verified and whose operator could read the questions."
        identity = dossier.protocol.model(summary.model).identity
        if isinstance(identity, ServedIdentity) and identity.alias:
            yield "The name at the server has neither a date nor a revision, so that other weights may answer under it tomorrow."
