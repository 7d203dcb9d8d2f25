"""Which figures does the recipe of a much-read article give, and which ones stand for them here?

The recipe compares the two models with the highest scores: Wald intervals with z = 1.96 and divisor n, a sample size from the observed difference,
and redrawn questions with ties broken by a tiny random number. Each figure stands beside the one that evalspec would use; no estimate, and so no
threshold, rests on the recipe. Statistics are imported where they are used: numpy and scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evalspec.analyses.article_compat_results import (
    ArticleCompatOptions,
    ArticleCompatResult,
    ArticleRow,
    DifferenceLimits,
    Redraw,
    Resolution,
    Step,
    Trio,
)
from evalspec.analyses.sources import TANGO
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.differences import PairedCounts

SHARED_TIE_DRAWS = 20_000
LEVEL = 0.95
ONE_MODEL = "the recipe compares two models, and there is one"
WEIGHTED = "the sample is weighted (equal allocation), and the recipe counts every question the same"
CLUSTERED = "questions come in clusters, and the recipe takes them as independent"
NOT_BINARY = "scores are not 0 or 1, and the recipe counts right and wrong answers"
ENOUGH = 300
NEVER_APART = "the two models never disagree, and the recipe then gives an interval of no width, as if that were certain of questions not asked"
FEW = f"with fewer than {ENOUGH} questions the recipe's intervals hold the true value less often than they say"
INCOMPLETE = "a score is missing, and the recipe needs every model's answer to every question"


def compute(responses: Responses, options: ArticleCompatOptions, context: Context) -> ArticleCompatResult:
    """Return the recipe's figures for the two leading models of every benchmark."""
    rows = tuple(_row(benchmark, options, context.rng) for benchmark in responses.benchmarks)
    return ArticleCompatResult(level=LEVEL, draws=options.draws, shared_tie_draws=SHARED_TIE_DRAWS, rows=rows)


def estimates(result: ArticleCompatResult) -> tuple[Estimate, ...]:
    """Return one `difference` estimate per benchmark that can be compared, with Tango's interval."""
    return tuple(
        Estimate(
            analysis="article_compat",
            metric="difference",
            benchmark=row.benchmark,
            models=tuple(model for model in (row.first, row.second) if model is not None),
            value=row.difference,
            low=row.low,
            high=row.high,
            confidence_level=result.level,
            method="tango",
            n=row.n,
            unit="difference",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def check_test(_options: ArticleCompatOptions, _check: Check, _models: Sequence[str], _benchmarks: int) -> CheckTest:
    """Return what a check of the difference rests on: Tango's interval."""
    return CheckTest("score", (1.0 - LEVEL) / 2.0)


def plot(result: ArticleCompatResult, axes: Axes) -> None:
    """Draw the difference of the two models with each of the four intervals; those by the recipe less strongly."""
    axes.caption(
        f"Difference in accuracy of the two leading models, with {result.level * 100:g} % intervals by the recipe and those that evalspec gives."
    )
    axes.scale("difference in accuracy")
    axes.reference(0.0, "equal accuracy")
    for row in result.rows:
        if row.difference is None or row.unpaired_half_width is None or row.unpaired_score is None or row.paired is None:
            continue
        group, difference, half = f"{row.first} − {row.second}, {row.benchmark}", row.difference, row.unpaired_half_width
        axes.interval("different questions, recipe", difference, difference - half, difference + half, group=group, muted=True)
        axes.interval("different questions, Newcombe", difference, row.unpaired_score.low, row.unpaired_score.high, group=group)
        axes.interval("same questions, recipe", difference, row.paired.low, row.paired.high, group=group, muted=True)
        axes.interval("same questions, Tango", difference, row.low, row.high, group=group)


def _row(benchmark: BenchmarkResponses, options: ArticleCompatOptions, rng: np.random.Generator) -> ArticleRow:
    scores = benchmark.settled()
    empty = ArticleRow(benchmark=benchmark.benchmark, n=scores.shape[1], first=benchmark.models[0])
    reason = _why_undefined(benchmark, scores)
    if reason:
        return empty.model_copy(update={"undefined": reason})
    from evalspec.statistics.differences import PairedCounts

    order = sorted(range(len(scores)), key=lambda place: (-float(scores[place].sum()), benchmark.models[place]))
    counts = PairedCounts.from_scores(scores[order[0]], scores[order[1]])
    return empty.model_copy(
        update={
            "first": benchmark.models[order[0]],
            "second": benchmark.models[order[1]],
            **_pair(counts),
            "closest": _closest(scores[order], [benchmark.models[place] for place in order]),
            "caution": _caution(counts),
            "steps": tuple(Step(questions=size, one=1 / size, two=2 / size) for size in options.step_sizes),
            "resolutions": _resolutions(counts, options.resolution_sizes),
            "redraws": _redraws(scores[order], options, rng),
        }
    )


def _why_undefined(benchmark: BenchmarkResponses, scores: NDArray[np.float64]) -> str | None:
    import numpy as np

    if len(scores) < 2:
        return ONE_MODEL
    if np.ptp(benchmark.weights) > 0:
        return WEIGHTED
    if benchmark.clusters:
        return CLUSTERED
    if np.isnan(scores).any():
        return INCOMPLETE
    return None if np.all((scores == 0) | (scores == 1)) else NOT_BINARY


def _pair(counts: PairedCounts) -> dict[str, object]:
    from evalspec.statistics.article import paired_interval, pairing_gain, unpaired_half_width
    from evalspec.statistics.differences import paired_difference, tango
    from evalspec.statistics.paired_power import questions_needed
    from evalspec.statistics.sample_sizes import simple_questions
    from evalspec.statistics.unpaired import TwoSamples, newcombe_independent

    samples = TwoSamples(counts.first_correct, counts.questions, counts.second_correct, counts.questions)
    difference, paired = paired_difference(counts), paired_interval(counts)
    unpaired, score = newcombe_independent(samples, level=LEVEL), tango(counts, level=LEVEL)
    return {
        "first_right": counts.first_correct,
        "second_right": counts.second_correct,
        "only_first": counts.only_first,
        "only_second": counts.only_second,
        "difference": difference,
        "discordance": counts.discordance,
        "unpaired_half_width": unpaired_half_width(samples),
        "paired_half_width": (paired.high - paired.low) / 2,
        "paired": DifferenceLimits(low=paired.low, high=paired.high),
        "gain": _or_none(lambda: pairing_gain(counts)),
        "simple_questions": _or_none(lambda: simple_questions(counts.discordance, difference)),
        "unpaired_score": DifferenceLimits(low=unpaired.low, high=unpaired.high),
        "low": score.low,
        "high": score.high,
        "score_gain": 1 - (score.high - score.low) / (unpaired.high - unpaired.low),
        "exact_questions": _or_none(lambda: questions_needed(counts.discordance, abs(difference)).questions),
        "halved_simple_questions": _or_none(lambda: simple_questions(counts.discordance, difference / 2)),
        "halved_exact_questions": _or_none(lambda: questions_needed(counts.discordance, abs(difference) / 2).questions),
    }


def _closest(scores: NDArray[np.float64], models: list[str]) -> Trio | None:
    """Return the closest three neighbours, the higher ones of several; `scores` are in the order of `models`, highest first."""
    means = scores.mean(axis=1)
    spans = [round(float(means[place] - means[place + 2]), 12) for place in range(len(means) - 2)]
    if not spans:
        return None
    place = spans.index(min(spans))
    return Trio(models=tuple(models[place : place + 3]), span=spans[place])


def _caution(counts: PairedCounts) -> str | None:
    if counts.only_first + counts.only_second == 0:
        return NEVER_APART
    return FEW if counts.questions < ENOUGH else None


def _resolutions(counts: PairedCounts, sizes: tuple[int, ...]) -> tuple[Resolution, ...]:
    from evalspec.statistics.article import null_half_width

    return tuple(Resolution(questions=size, half_width=null_half_width(counts.discordance, size)) for size in sizes)


def _redraws(scores: NDArray[np.float64], options: ArticleCompatOptions, rng: np.random.Generator) -> tuple[Redraw, ...]:
    import numpy as np

    from evalspec.statistics.article import jittered_first_share
    from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, redraw_ranking

    patterns = ResponsePatterns.from_scores(scores)
    # Questions in the order of their patterns, so that the order of the file moves no number.
    sorted_scores = np.repeat(patterns.patterns, patterns.counts, axis=0).T
    redraws = []
    for size in options.redraw_sizes:
        share = jittered_first_share(sorted_scores, size, draws=options.draws, rng=rng)
        shared = redraw_ranking(patterns, RedrawPlan(size, SHARED_TIE_DRAWS), order=[0], rng=rng).first[0]
        errors = (_error(share, options.draws), _error(shared, SHARED_TIE_DRAWS))
        redraws.append(Redraw(questions=size, share=share, share_error=errors[0], shared_ties=shared, shared_ties_error=errors[1]))
    return tuple(redraws)


def _error(share: float, draws: int) -> float:
    """Return the Monte Carlo standard error, with one success and one failure added so that it is never 0."""
    settled = (share * draws + 1) / (draws + 2)
    return math.sqrt(settled * (1 - settled) / draws)


def _or_none(figure: Callable[[], float]) -> float | None:
    """Return None where the formula has no answer, as for a difference of exactly 0."""
    try:
        return figure()
    except ValueError:
        return None


SOURCES = (
    "Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640",
    TANGO,
    "Newcombe (1998), Stat. Med. 17(8), 873-890 (difference of independent proportions)",
    "Duffy (1984), Biometrics 40, 1005-1015, doi:10.2307/2531151 (power of the exact test)",
)


def sources_used(result: ArticleCompatResult) -> tuple[str, ...]:
    """Return all works where the recipe gives a figure, and none where it gives none."""
    return SOURCES if any(row.difference is not None for row in result.rows) else ()


ANALYSIS = Analysis(
    kind="article_compat",
    options=ArticleCompatOptions,
    result=ArticleCompatResult,
    compute=compute,
    metrics=("difference",),
    pair_metrics=("difference",),
    ordered=("difference",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/article_compat.html.j2",
    plot=plot,
    check_test=check_test,
    sources=SOURCES,
    sources_used=sources_used,
)
