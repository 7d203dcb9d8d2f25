"""How do time and memory grow with models and questions?  Intervals, all pairs and redraws, each fitted by a power of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude, peak_mib, seconds

MODELS = (8, 30, 100, 400)
QUESTIONS = (500, 2000, 10_000, 50_000)
REDRAWN, DRAWS = 500, 200
MOST_MIB = 1024
RESOLVED_S, MOST_CALLS = 0.02, 200


def main() -> None:
    """Time each part on each size, fit the exponents, and compare the peak of memory with its bound."""
    rng = np.random.default_rng(20261129)
    grid = list(product(MODELS, QUESTIONS))
    parts: dict[str, Callable[[NDArray[np.bool_]], object]] = {"intervals": _intervals, "pairs": _pairs, "redraw": _redraw}
    times: dict[str, list[float]] = {name: [] for name in parts}
    before = peak_mib()
    for models, questions in grid:
        scores = _scores(rng, models, questions)
        for name, part in parts.items():
            part(scores[:2, :20])
            times[name].append(min(_resolved_seconds(partial(part, scores)) for _ in range(2)))
        print(f"{models:>4} models, {questions:>6,} questions: " + ", ".join(f"{name} {times[name][-1]:.3f} s" for name in parts))
    figures = {
        "ours_s": round(sum(sum(part) for part in times.values()), 2),
        "exponents": {name: _growth(grid, part) for name, part in times.items()},
        "largest_s": {name: round(part[-1], 3) for name, part in times.items()},
        "peak_mib": peak_mib(),
        "peak_mib_before": before,
        "limit_mib": MOST_MIB,
        "of_limit": round(peak_mib() / MOST_MIB, 2),
        "agree": peak_mib() <= MOST_MIB,
    }
    work = (
        f"intervals, all pairs, {DRAWS} redraws of {REDRAWN} questions; {MODELS[0]}-{MODELS[-1]} models, {QUESTIONS[0]:,}-{QUESTIONS[-1]:,} questions"
    )
    conclude("growth", work, figures)


def _scores(rng: np.random.Generator, models: int, questions: int) -> NDArray[np.bool_]:
    """Draw answers that agree with each other as models' answers do: ability and difficulty on one scale."""
    ability, difficulty = rng.normal(0.5, 0.8, (models, 1)), rng.normal(0.0, 1.2, questions)
    return np.stack([rng.random(questions) < 1.0 / (1.0 + np.exp(difficulty - one)) for one in ability])


def _intervals(scores: NDArray[np.bool_]) -> object:
    from evalspec.statistics.proportions import clopper_pearson_many, wilson_many

    right, trials = scores.sum(axis=1), np.full(len(scores), scores.shape[1])
    return wilson_many(right, trials), clopper_pearson_many(right, trials)


def _pairs(scores: NDArray[np.bool_]) -> object:
    from evalspec.statistics.all_pairs import all_pairs

    return all_pairs(scores)


def _redraw(scores: NDArray[np.bool_]) -> object:
    from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, redraw_ranking

    patterns = ResponsePatterns.from_scores(scores)
    return redraw_ranking(patterns, RedrawPlan(REDRAWN, DRAWS), order=[0], rng=np.random.default_rng(1))


def _resolved_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call, averaged over as many as the clock needs to tell them."""
    first = seconds(work)
    calls = math.ceil(RESOLVED_S / max(first, RESOLVED_S / MOST_CALLS))
    return first if calls <= 1 else seconds(lambda: [work() for _ in range(calls)]) / calls


def _growth(grid: list[tuple[int, int]], times: list[float]) -> dict[str, float | str]:
    """Fit log time = constant + a log models + b log questions by least squares, or say why not.

    The sizes that take less than twice what the cheapest one does are left out: there the fixed cost of a call hides how it grows. `off_by` is the
    largest factor between a fitted time and its measured one.
    """
    kept = [(size, time) for size, time in zip(grid, times, strict=True) if time >= 2.0 * min(times)]
    design = np.array([[1.0, math.log(models), math.log(questions)] for (models, questions), _ in kept]).reshape(-1, 3)
    if len(kept) < 4 or np.linalg.matrix_rank(design) < 3:
        return {"refused": f"{len(kept)} of {len(grid)} sizes take twice the cheapest one's time, too few to fit two exponents to"}
    measured = np.log([time for _, time in kept])
    fitted = np.linalg.lstsq(design, measured, rcond=None)[0]
    off = math.exp(float(np.abs(design @ fitted - measured).max()))
    return {"models": round(float(fitted[1]), 2), "questions": round(float(fitted[2]), 2), "sizes": len(kept), "off_by": round(off, 2)}


if __name__ == "__main__":
    main()
