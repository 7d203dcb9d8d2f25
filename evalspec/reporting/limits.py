"""What can this study not show?  Limitations that follow from its own facts, after those that its author states."""

from __future__ import annotations

import math
from collections.abc import Iterator

from evalspec.artifacts.findings import ModelSummary
from evalspec.reporting.dossier import Dossier

__all__ = ["limitations", "main_limitations"]

MAIN = 3
FEW_CLUSTERS = 30
MISSING_WORDS = {
    "wrong": "counted as wrong",
    "complete_case": "left out of the numbers",
    "error": "not allowed by the study",
}


def limitations(dossier: Dossier) -> tuple[str, ...]:
    """Return what follows from the facts of the run, most general first; sentences name models but hold no results."""
    return (*_general(dossier), *_of_models(dossier))


def main_limitations(dossier: Dossier) -> tuple[str, ...]:
    """Return those that stand on the first page: the author's own, what befell a model's answers, then the most general facts."""
    return (*dossier.study.limitations[: MAIN - 2], *_of_models(dossier)[: MAIN - 2], *_general(dossier))[:MAIN]


def _of_models(dossier: Dossier) -> tuple[str, ...]:
    places: dict[str, list[str]] = {}
    for summary in dossier.findings.summaries:
        for sentence in _of_model(summary, dossier):
            places.setdefault(sentence, []).append(f"{summary.model} on {summary.benchmark}")
    return tuple(f"{sentence} This holds for {', '.join(where)}." for sentence, where in places.items())


def _general(dossier: Dossier) -> Iterator[str]:
    repeats = sorted({entry.scores.shape[2] for entry in dossier.responses.benchmarks})
    shown = " to ".join(str(number) for number in (repeats if len(repeats) < 2 else [repeats[0], repeats[-1]]))
    yield f"Prompt forms tried: 1; repeats: {shown}; contamination: not assessed."
    yield (
        "Intervals say how far other questions of the same kind would move a number. "
        "They say nothing about other tasks, other wordings or the use that the models are meant for."
    )
    if any(entry.flags for entry in dossier.responses.benchmarks):
        yield "Answer keys are taken as the source gives them, also those of questions that it flags as faulty."
    else:
        yield "Answer keys are taken as the source gives them; how many of them are wrong was not assessed."
    if any(0 < len(set(entry.clusters)) < FEW_CLUSTERS for entry in dossier.responses.benchmarks):
        yield "Where questions come in fewer than thirty clusters, intervals may miss their true value more often than they say."
    if any(entry.strata for entry in dossier.responses.benchmarks):
        yield "Intervals of single subjects are not adjusted for their number: among many subjects, some intervals miss their true value."
    if any(benchmark.disclosure == "none" for benchmark in dossier.protocol.benchmarks):
        yield "Questions are not disclosed, so readers cannot judge their quality from this report."
    if dossier.ledger.looks is not None and dossier.ledger.looks > _planned_looks(dossier):
        yield (
            f"These checks have judged {dossier.ledger.looks} different sets of answers to these questions, as far as the cache folder of this run "
            "knows, and that is more looks than the study plans: the chance of a false pass over all of them is larger than stated."
        )
    if dossier.ledger.git_dirty:
        yield "The study file had changes that were not committed when the run started."
    if dossier.ledger.git_commit is None:
        yield "The study file was not under version control, as far as the run could tell."


def _planned_looks(dossier: Dossier) -> float:
    """Return the number of looks over which every check keeps its error rate."""
    observed = [result.observed for result in dossier.verdict.checks if result.observed is not None]
    return min((math.inf if estimate.anytime else estimate.looks or 1 for estimate in observed), default=1)


def _of_model(summary: ModelSummary, dossier: Dossier) -> Iterator[str]:
    if summary.degenerate:
        yield "One letter takes more than nine in ten of the choices, so the score says more about that habit than about ability."
    if summary.missing:
        rule = MISSING_WORDS[dossier.protocol.benchmark(summary.benchmark).missing]
        yield f"Some scores are missing ({', '.join(reason.replace('_', ' ') for reason in summary.missing)}) and {rule}."
    if summary.self_check_flips:
        yield "Some answers changed when questions were scored one at a time, so the arithmetic alone can move this score."
    if summary.route == "recorded":
        yield "Responses were recorded elsewhere and replayed; this run did not meet the model."
