"""How fast are redrawn rankings of many models?  29 models on 12,032 questions of MMLU-Pro, 20,000 draws of 1,000, against gathering."""

from __future__ import annotations

import csv
import gzip
import statistics
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.gather import DRAWS, first_share_by_gathering
from benchmarks.measuring import conclude, peak_mib, shared_data

SIZE = 1000
OUR_DRAWS = 20_000
RUNS = 5
BAR = 4
MOST_MIB = 1024


def main() -> None:
    """Measure our peak first, then time both in turn and compare the frequencies."""
    from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, redraw_ranking

    scores = best_first(shared_data("mmlu_pro_correct_29models.csv.gz"))
    rows = np.ascontiguousarray(scores.T)

    def ours() -> float:
        responses = ResponsePatterns.from_scores(scores)
        return redraw_ranking(responses, RedrawPlan(SIZE, OUR_DRAWS), order=[0, 1, 2], rng=np.random.default_rng(1)).first[0]

    ours()
    peak = peak_mib()
    own, other = [], []
    found = expected = 0.0
    for _ in range(RUNS):
        started = time.process_time()
        found = ours()
        between = time.process_time()
        expected = first_share_by_gathering(rows, SIZE, np.random.default_rng(0))
        other.append(time.process_time() - between)
        own.append(between - started)
    scale = OUR_DRAWS / DRAWS
    figures = {
        "ours_s": round(statistics.median(own), 4),
        "peer_s": round(statistics.median(other) * scale, 3),
        "peer": f"gathering rows of 64-bit floats, {DRAWS} draws, scaled",
        "ratio": round(statistics.median(other) * scale / statistics.median(own), 1),
        "bar": BAR,
        "peak_mib": peak,
        "peak_bar_mib": MOST_MIB,
        # Five standard errors of the difference of two frequencies.
        "agree": abs(found - expected) < 5 * (0.25 / DRAWS + 0.25 / OUR_DRAWS) ** 0.5,
    }
    conclude("redraw_wide", "29 models x 12032 questions, 20000 draws of 1000 with replacement, ties shared, order of the first three", figures)


def best_first(source: Path) -> NDArray[np.float64]:
    """Return the scores of all models, (29, 12032), best model first; a question that was not answered counts as wrong."""
    with gzip.open(source, "rt", encoding="utf-8") as table:
        first = next(csv.reader([table.readline()])).index("key_differs") + 1
        scores = np.array([[float(entry or 0) for entry in row[first:]] for row in csv.reader(table)]).T
    return scores[np.argsort(-scores.mean(axis=1), kind="stable")]


if __name__ == "__main__":
    main()
