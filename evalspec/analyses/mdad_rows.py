"""How does `mdad` come to its numbers?  Trials of one benchmark, the samplers on them, and both halves as the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalspec.analyses.designs import subject_labels, weighted
from evalspec.analyses.mdad_results import NOT_REACHED, AgreementOn, CurveBin, MdadBenchmark, MdadOptions, MdadRow, Reached, SamplerName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.mdad import AgreementCurve, Crossing, Reference
    from evalspec.statistics.mdad_closed_form import PairSpread
    from evalspec.statistics.mdad_intervals import GapInterval
    from evalspec.statistics.mdad_trials import Trial
    from evalspec.statistics.samplers import Answers, SampledScores

SIZES = (10, 25, 50, 100, 250, 500, 1000)

ONE_MODEL = "a ranking needs at least two models"
CLUSTERED = "questions come in clusters, so that a smaller benchmark would be a draw of clusters, which is not computed"
WEIGHTED = "the sample is weighted, and a part of it would need weights of its own, which is not computed"
NO_COMMON = "no question has a score from every model"
NO_STRATA = "this sampler needs subjects that the study declares as strata"
FEW_QUESTIONS = "a half of the questions needs at least one question, of every subject where subjects are strata"
FEW_SOURCES = "this sampler looks at models that are not judged, and fewer than two are left"


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials of one benchmark, and what they are drawn from; models of `judged` can be targets."""

    about: MdadBenchmark
    answers: Answers
    spread: PairSpread
    trials: tuple[Trial, ...]


def draw(benchmark: BenchmarkResponses, options: MdadOptions, rng: np.random.Generator) -> Trials:
    """Draw the trials of a benchmark; raises ValueError with the reason where nothing can be drawn."""
    import numpy as np

    from evalspec.statistics.mdad_closed_form import PairSpread
    from evalspec.statistics.mdad_trials import TrialPlan, draw_trials
    from evalspec.statistics.samplers import SAMPLERS

    looks = any(SAMPLERS[name].looks for name in options.samplers)
    answers = _answers(benchmark, looks=looks)
    models, questions = answers.scores.shape
    judged = [place for place, model in enumerate(benchmark.models) if not options.models or model in options.models]
    targets = min(options.targets, len(judged), max(2, models // 2) if looks else models)
    plan = TrialPlan(options.trials, targets, options.sources if looks and models - targets >= 2 else 0)
    trials = draw_trials(answers.strata, models, plan, rng, judged=judged)
    spread = PairSpread.of(answers.scores[judged])
    about = MdadBenchmark(
        benchmark=benchmark.benchmark,
        n=questions,
        dropped=len(benchmark.questions) - questions,
        seen=trials[0].seen.size,
        fresh=trials[0].fresh.size,
        strata=int(answers.strata.max()) + 1 if benchmark.strata else 0,
        models=models,
        targets=targets,
        sources=trials[0].sources.size,
        pairs=spread.gaps.size,
        own_error=float(np.sqrt(spread.near(0.0) / questions)),
        looks_at=("scores" if answers.confidence is None else "confidence") if looks else None,
    )
    return Trials(about, answers, spread, trials)


def _answers(benchmark: BenchmarkResponses, *, looks: bool) -> Answers:
    """Return the scores on questions that every model has one for, in the order of their ids, so that the order of a file moves nothing."""
    import numpy as np

    from evalspec.statistics.samplers import Answers

    _refuse(benchmark)
    scores = benchmark.settled()
    complete = np.flatnonzero(~np.isnan(scores).any(axis=0))
    if not complete.size:
        raise ValueError(NO_COMMON)
    order = np.array(sorted(complete.tolist(), key=lambda place: benchmark.questions[place]))
    labels = subject_labels(benchmark)[order] if benchmark.strata else np.zeros(order.size)
    strata = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if np.bincount(strata).min() < 2:
        raise ValueError(FEW_QUESTIONS)
    return Answers(scores[:, order], strata, _confidence(benchmark, scores, order) if looks else None)


def _confidence(benchmark: BenchmarkResponses, scores: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Return the probability that each model gives to the right choice, (M, N), where every model has probabilities for every question.

    Responses hold no keys: the right choice is the one of a model that was right. Where none was, scores stand in, which are all 0 there.
    """
    import numpy as np

    if benchmark.logprobs is None or np.isnan(benchmark.logprobs[:, order]).all(axis=2).any():
        return None
    known = np.where((benchmark.scores == 1.0) & (benchmark.choices >= 0), benchmark.choices, -1).max(axis=(0, 2))[order]
    weights = np.exp(benchmark.logprobs[:, order] - np.nanmax(benchmark.logprobs[:, order], axis=2, keepdims=True))
    shares = np.take_along_axis(weights, np.maximum(known, 0)[None, :, None], axis=2)[:, :, 0] / np.nansum(weights, axis=2)
    return np.where(known >= 0, shares, scores[:, order])


def _refuse(benchmark: BenchmarkResponses) -> None:
    if len(benchmark.models) < 2:
        raise ValueError(ONE_MODEL)
    if benchmark.clusters:
        raise ValueError(CLUSTERED)
    if weighted(benchmark):
        raise ValueError(WEIGHTED)


def rows(drawn: Trials, options: MdadOptions, rng: np.random.Generator) -> Iterator[MdadRow]:
    """Yield a row per sampler and size; each sampler and each half has its own random stream, which no other moves."""
    from evalspec.statistics.samplers import SAMPLERS, choose_questions, sampled_scores

    streams = dict(zip((*SAMPLERS, "seen", "fresh"), rng.spawn(len(SAMPLERS) + 2), strict=True))
    sizes = sorted(options.sizes) or [size for size in SIZES if size <= drawn.about.seen] or [drawn.about.seen]
    feasible = [size for size in sizes if size <= drawn.about.seen]
    found: dict[tuple[SamplerName, int], SampledScores] = {}
    for name in options.samplers:
        if _why_not(name, drawn) is None:
            choices = choose_questions(drawn.answers, drawn.trials, SAMPLERS[name], feasible, streams[name])
            scores = sampled_scores(drawn.answers, drawn.trials, choices)
            found.update({(name, size): entry for size, entry in zip(feasible, scores, strict=True)})
    usable = {key: entry for key, entry in found.items() if entry.own is not None}
    seen, fresh = (_Half(drawn, half, options) for half in ("seen", "fresh"))
    on_seen, on_fresh = (half.judge(list(usable.values()), streams[half.name]) for half in (seen, fresh))
    judged = dict(zip(usable, zip(on_seen, on_fresh, strict=True), strict=True))
    for name in options.samplers:
        for size in sizes:
            row = MdadRow(benchmark=drawn.about.benchmark, sampler=name, questions=size)
            if (name, size) in judged:
                yield _row(row, usable[name, size], judged[name, size], seen, options)
            else:
                reason = _why_not(name, drawn) or (found[name, size].undefined if (name, size) in found else None)
                yield row.model_copy(update={"undefined": reason or f"the half that is sampled has {drawn.about.seen} questions"})


def _why_not(name: SamplerName, drawn: Trials) -> str | None:
    from evalspec.statistics.samplers import SAMPLERS

    if SAMPLERS[name].strata and not drawn.about.strata:
        return NO_STRATA
    return FEW_SOURCES if SAMPLERS[name].looks and drawn.about.sources < 2 else None


class _Half:
    """One half of the questions as the reference of every trial."""

    def __init__(self, drawn: Trials, name: str, options: MdadOptions) -> None:
        import numpy as np

        from evalspec.statistics.mdad import Bins, Reference
        from evalspec.statistics.response_patterns import denominator_of

        self.name = name
        self._drawn, self._options = drawn, options
        self._rule = (options.agreement, options.min_pairs)
        self._scale = denominator_of(drawn.answers.scores)
        self._targets = np.stack([trial.targets for trial in drawn.trials])
        whole = np.rint(drawn.answers.scores * self._scale).astype(np.int64)
        self.totals = np.stack([whole[trial.targets[:, None], getattr(trial, name)].sum(axis=1) for trial in drawn.trials])
        self.units = self._scale * getattr(drawn.about, name)
        self.reference: Reference = Reference(self.totals, self.units, Bins(round(options.bin_width * 10_000), options.bins == "centred"))

    @property
    def spread(self) -> PairSpread:
        """Gaps and discordances of the study's own pairs."""
        return self._drawn.spread

    @property
    def reference_size(self) -> int:
        """Questions of this half."""
        return int(self.units // self._scale)

    def judge(self, entries: Sequence[SampledScores], rng: np.random.Generator) -> list[AgreementOn]:
        """Return what this half says of each sample's estimates."""
        from evalspec.statistics.mdad_intervals import Resampling, crossing_intervals

        own = [entry.own for entry in entries if entry.own is not None]
        outcomes = [self.reference.outcomes(estimates, self._options.ties) for estimates in own]
        resampling = Resampling(self._options.resamples, self._options.level)
        intervals = crossing_intervals(self.reference, outcomes, self._targets, rng, resampling=resampling, rule=self._rule) if outcomes else ()
        curves = [self.reference.curve_of(counts) for counts in outcomes]
        return [self._said(*found) for found in zip(entries, curves, intervals, strict=True)]

    def _said(self, entry: SampledScores, curve: AgreementCurve, interval: GapInterval) -> AgreementOn:
        from evalspec.statistics.mdad import first_crossing, rising_crossing

        level, min_pairs = self._rule
        assert entry.own is not None
        published = self.reference.curve(entry.own if entry.published is None else entry.published, "wrong")
        rising = rising_crossing(curve, level=level, min_pairs=min_pairs)
        return AgreementOn(
            agreement=curve.agreement,
            published=_reached(first_crossing(published, level=level, min_pairs=1)),
            first=_reached(first_crossing(curve, level=level, min_pairs=min_pairs)),
            rising=_reached(rising).model_copy(update={"low": interval.low, "high": interval.high}),
            below=None if rising.gap is None else self._drawn.spread.share_below(rising.gap),
            curve=tuple(_bins(curve)),
        )


def _reached(crossing: Crossing) -> Reached:
    undefined = NOT_REACHED if crossing.gap is None else None
    return Reached(gap=crossing.gap, agreement=crossing.agreement, pairs=crossing.pairs, trials=crossing.trials, undefined=undefined)


def _bins(curve: AgreementCurve) -> Iterator[CurveBin]:
    columns: tuple[NDArray[np.float64], ...] = (curve.gaps, curve.pairs.sum(axis=0), curve.of_bins(), curve.rising())
    for gap, pairs, agreement, rising in zip(*(column.tolist() for column in columns), strict=True):
        if pairs:
            yield CurveBin(gap=gap, pairs=int(pairs), agreement=agreement, rising=rising)


def _row(row: MdadRow, entry: SampledScores, halves: tuple[AgreementOn, AgreementOn], seen: _Half, options: MdadOptions) -> MdadRow:
    import numpy as np

    from evalspec.statistics.mdad_closed_form import rankable_gap

    assert entry.own is not None
    formula = None
    if row.sampler == "uniform":
        formula = rankable_gap(row.questions, seen.reference_size, seen.spread.near, level=options.agreement, ties=options.ties)
    return row.model_copy(
        update={
            "seen": halves[0],
            "fresh": halves[1],
            "formula": formula,
            "rank_correlation": seen.reference.rank_correlation(entry.own),
            "error": float(np.mean(np.abs(entry.own - seen.totals / seen.units))),
            "published_estimate": entry.published is not None,
        }
    )
