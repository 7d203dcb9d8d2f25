"""How fast is MDAD?  420 models on GPQA, 50 trials, five sizes, two samplers, against a loop over the pairs of the same draws."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude, median_seconds, peak_mib, read_scores, seconds
from evalspec.statistics.mdad import Reference, first_crossing, rising_crossing
from evalspec.statistics.mdad_intervals import Resampling, crossing_intervals
from evalspec.statistics.mdad_trials import Trial, TrialPlan, draw_trials
from evalspec.statistics.samplers import SAMPLERS, Answers, Choices, choose_questions, sampled_scores

SIZES = (10, 25, 50, 100, 200)
NAMES = ("uniform", "stratified_equal")
BLOCKS = 4
TRIALS = 50
LOOPED = 10
TURNS = 5
SEED = 20261129
BAR = 50

Agreement = dict[tuple[str, int], dict[int, tuple[int, float]]]
"""Pairs, and how many are ranked alike, by bin of each sampler and size."""


def main() -> None:
    """Time MDAD and the loops from the same draws, ours also with the drawing and with intervals, and compare every bin."""
    scores = read_scores("gpqa_main_correct_420models.csv.gz").astype(np.float64)
    draws = draw(scores)
    few = draws.first(LOOPED)
    # Interleaved, so that both meet the same machine.
    turns = [
        (seconds(lambda: loop_over_rows(few)), seconds(lambda: loop_over_totals(few)), median_seconds(lambda: ours(draws))) for _ in range(TURNS)
    ]
    rows, totals, own = (statistics.median(turn[place] for turn in turns) for place in range(3))
    rows, totals = (value * TRIALS / LOOPED for value in (rows, totals))
    drawn = median_seconds(lambda: draw(scores))
    figures = {
        "ours_s": round(own, 4),
        "peer_s": round(rows, 2),
        "peer": f"a loop over pairs that adds up the two rows of answers of each, {LOOPED} of {TRIALS} trials, scaled",
        "ratio": round(rows / own),
        "ratio_bar": BAR,
        "lean_peer_s": round(totals, 3),
        "lean_peer": "the same loop over totals added up beforehand",
        "lean_ratio": round(totals / own),
        "drawing_s": round(drawn, 4),
        "ratio_with_drawing": round(rows / (own + drawn)),
        "intervals_s": round(median_seconds(lambda: ours(draws, resamples=400), runs=3) - own, 3),
        "peak_mib": peak_mib(),
        "agree": loop_over_rows(few) == loop_over_totals(few) == ours(few),
    }
    work = (
        f"MDAD of 420 models on 448 questions: {TRIALS} trials of 50 models, five sizes, uniform and stratified (GPQA has one subject: four blocks)"
    )
    conclude("mdad", work, figures)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The draws of some trials: models, halves and chosen questions."""

    answers: Answers
    trials: Sequence[Trial]
    choices: Mapping[str, Choices]

    def first(self, count: int) -> Sampled:
        """Return the draws of the first trials."""
        choices = {name: replace(one, by_trial=one.by_trial[:count]) for name, one in self.choices.items()}
        return Sampled(self.answers, self.trials[:count], choices)


def draw(scores: NDArray[np.float64]) -> Sampled:
    """Draw trials, and samples of every size."""
    blocks = np.arange(scores.shape[1]) * BLOCKS // scores.shape[1]  # stand for subjects
    answers = Answers(scores, blocks)
    trials = draw_trials(blocks, len(scores), TrialPlan(TRIALS, 50), np.random.default_rng(SEED))
    choices = {name: choose_questions(answers, trials, SAMPLERS[name], SIZES, np.random.default_rng(SEED)) for name in NAMES}
    return Sampled(answers, trials, choices)


def ours(draws: Sampled, *, resamples: int = 0) -> Agreement:
    """Estimate scores, rank every pair and find MDAD; return the agreement of every bin."""
    answers, trials = draws.answers, draws.trials
    halves = np.stack([answers.scores[trial.targets][:, trial.seen].sum(axis=1) for trial in trials]).astype(np.int64)
    reference = Reference(halves, trials[0].seen.size)
    found: Agreement = {}
    outcomes = []
    for name, choices in draws.choices.items():
        for size, entry in zip(SIZES, sampled_scores(answers, trials, choices), strict=True):
            assert entry.own is not None
            outcomes.append(reference.outcomes(entry.own))
            curve = reference.curve_of(outcomes[-1])
            first_crossing(curve)
            rising_crossing(curve)
            pairs, right = curve.pairs.sum(axis=0), curve.right.sum(axis=0)
            found[name, size] = {place: (int(pairs[place]), float(right[place])) for place in np.flatnonzero(pairs).tolist()}
    if resamples:
        models = np.stack([trial.targets for trial in trials])
        crossing_intervals(reference, outcomes, models, np.random.default_rng(SEED), resampling=Resampling(resamples))
    return found


def loop_over_rows(draws: Sampled) -> Agreement:
    """Compare the two rows of answers of every pair, on the half and on each sample, questions by their weight."""
    found = _Counted()
    for number, trial in enumerate(draws.trials):
        chosen = _chosen(draws, number)
        for first, second in combinations(trial.targets.tolist(), 2):
            one, other = draws.answers.scores[first], draws.answers.scores[second]
            gap = int(one[trial.seen].sum()) - int(other[trial.seen].sum())
            for key, (questions, weights) in chosen.items():
                found.add(key, gap, float(one[questions] @ weights) - float(other[questions] @ weights))
    return found.agreement()


def loop_over_totals(draws: Sampled) -> Agreement:
    """Compare scores that were added up beforehand."""
    found = _Counted()
    for number, trial in enumerate(draws.trials):
        scores = draws.answers.scores[trial.targets]
        half = scores[:, trial.seen].sum(axis=1).astype(int).tolist()
        for key, (questions, weights) in _chosen(draws, number).items():
            sample = (scores[:, questions] @ weights).tolist()
            for first, second in combinations(range(len(half)), 2):
                found.add(key, half[first] - half[second], sample[first] - sample[second])
    return found.agreement()


def _chosen(draws: Sampled, number: int) -> dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.float64]]]:
    seen = draws.trials[number].seen
    return {
        (name, SIZES[place]): (seen[choice.own.questions], choice.own.weights)
        for name, choices in draws.choices.items()
        for place, choice in choices.by_trial[number].items()
    }


class _Counted:
    """Pairs, and pairs ranked alike, by sampler, size and bin of half a point."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[tuple[str, int], int]] = Counter()
        self.right: dict[tuple[tuple[str, int], int], float] = {}

    def add(self, key: tuple[str, int], gap: int, sampled: float) -> None:
        """Count one pair; one that is level on the half counts half, one that ties on the sample nothing."""
        place = key, abs(gap) * 200 // 224
        self.pairs[place] += 1
        right = 0.0 if abs(sampled) <= 1e-9 else 0.5 if gap == 0 else float((gap > 0) == (sampled > 0))
        self.right[place] = self.right.get(place, 0.0) + right

    def agreement(self) -> Agreement:
        """Return the counts by sampler and size."""
        found: Agreement = {}
        for (key, bin_), count in sorted(self.pairs.items()):
            found.setdefault(key, {})[bin_] = (count, self.right[key, bin_])
        return found


if __name__ == "__main__":
    main()
