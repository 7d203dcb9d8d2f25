"""How fast are redrawn rankings?  8 models on 2,000 questions, six sizes, 20,000 draws each, against gathering every drawn row."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.gather import DRAWS, first_share_by_gathering
from benchmarks.measuring import ROOT, conclude, peak_mib, seconds

SIZES = (30, 100, 200, 500, 1000, 2000)
OUR_DRAWS = 20_000
RUNS = 5
BAR = 100


def main() -> None:
    """Time both on the same scores in turn, compare the frequencies, and time ours at sizes far apart."""
    from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, redraw_rankings

    scores = fixture()
    rows = np.ascontiguousarray(scores.T)

    def ours(*sizes: int) -> list[float]:
        responses, rng = ResponsePatterns.from_scores(scores), np.random.default_rng(1)
        plans = [RedrawPlan(size, OUR_DRAWS) for size in sizes]
        return [ranking.first[0] for ranking in redraw_rankings(responses, plans, order=[0, 1, 2], rng=rng)]

    def peer(correct: NDArray[np.generic]) -> list[float]:
        rng = np.random.default_rng(0)
        return [first_share_by_gathering(correct, size, rng) for size in SIZES]

    ours(*SIZES)
    times: dict[str, list[float]] = {"ours": [], "peer": [], "whole": []}
    for _ in range(RUNS):
        found = timed(times["ours"], lambda: ours(*SIZES))
        expected = timed(times["peer"], lambda: peer(rows))
        timed(times["whole"], lambda: peer(rows.astype(np.int64)))
    by_size = {size: statistics.median(seconds(partial(ours, size)) for _ in range(RUNS)) for size in SIZES}
    own, other, whole = (statistics.median(times[name]) for name in ("ours", "peer", "whole"))
    scale = OUR_DRAWS / DRAWS
    figures = {
        "ours_s": round(own, 4),
        "peer_s": round(other * scale, 3),
        "peer": f"gathering rows of 64-bit floats, {DRAWS} draws, scaled; {round(whole * scale / own)} times ours with 64-bit whole numbers",
        "ratio": round(other * scale / own, 1),
        "bar": BAR,
        "ours_by_size_s": {str(size): round(spent, 4) for size, spent in by_size.items()},
        "peak_mib": peak_mib(),
        # Five standard errors of the difference of two frequencies.
        "agree": all(abs(one - two) < 5 * (0.25 / DRAWS + 0.25 / OUR_DRAWS) ** 0.5 for one, two in zip(found, expected, strict=True)),
    }
    conclude("redraw", "8 models x 2000 questions, sizes 30 to 2000, 20000 draws each, ties shared, order of the first three", figures)


def fixture() -> NDArray[np.float64]:
    """Return the synthetic scores of 8 models on 2,000 questions, (8, 2000)."""
    reference = json.loads((ROOT / "tests" / "statistics" / "reference" / "statistics.json").read_text(encoding="utf-8"))
    counts = reference["fixtures"]["article_like_8x2000"]["pattern_counts"]
    return np.array([[int(mark) for mark in pattern] for pattern, count in sorted(counts.items()) for _ in range(count)], dtype=np.float64).T


def timed(times: list[float], work: Callable[[], list[float]]) -> list[float]:
    """Run `work`, note its CPU seconds and return what it gives."""
    started = time.process_time()
    result = work()
    times.append(time.process_time() - started)
    return result


if __name__ == "__main__":
    main()
