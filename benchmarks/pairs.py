"""How fast are all pairs of many models?  420 models on GPQA, against statsmodels in a loop on a sample of the pairs, scaled."""

from __future__ import annotations

import importlib.util
import statistics
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude, median_seconds, peak_mib, read_scores, seconds

if TYPE_CHECKING:
    from evalspec.statistics.all_pairs import AllPairs

SAMPLED = 400
TURNS = 7
LEADERBOARD_MODELS = 20  # it lists groups by searching cliques, which on more of these near-equal models does not end within minutes
BARS = {"ratio": 500, "seconds": 2.0}


def main() -> None:
    """Time all pairs, one pair after the other with the peers, and compare the numbers."""
    from evalspec.statistics.all_pairs import all_pairs

    scores = read_scores("gpqa_main_correct_420models.csv.gz")
    found = all_pairs(scores)
    pairs = len(found.first)
    chosen = np.random.default_rng(20261129).choice(pairs, SAMPLED, replace=False)
    one_after_the_other = partial(_peer_p_values, scores, found, chosen)
    peer_p = np.array(one_after_the_other())
    # Interleaved, so that both meet the same machine.
    turns = [(seconds(one_after_the_other), median_seconds(lambda: all_pairs(scores))) for _ in range(TURNS)]
    peer = statistics.median(turn[0] for turn in turns) * pairs / SAMPLED
    ours = statistics.median(turn[1] for turn in turns)
    figures = {
        "ours_s": round(ours, 3),
        "peer_s": round(peer, 2),
        "peer": f"statsmodels mcnemar(exact=True), {SAMPLED} of {pairs} pairs, scaled: exact p alone, without mid-p, interval and Holm",
        "ratio": round(peer / ours),
        "ratio_bar": BARS["ratio"],
        "limit_s": BARS["seconds"],
        "of_limit": round(ours / BARS["seconds"], 3),
        f"leaderboard_{LEADERBOARD_MODELS}": _leaderboard(scores[:LEADERBOARD_MODELS]),
        "peak_mib": peak_mib(),
        "agree": _agrees(found, chosen, peer_p) and all(_agrees_with_one(scores, found, place) for place in chosen[:100]),
    }
    conclude("pairs", f"all {pairs:,} pairs of 420 models on 448 questions: exact McNemar, mid-p, log10 p, Tango, Holm", figures)


def _peer_p_values(scores: NDArray[np.bool_], found: AllPairs, chosen: NDArray[np.int64]) -> list[float]:
    from statsmodels.stats.contingency_tables import mcnemar

    p_values = []
    for place in chosen:
        first, second = scores[found.first[place]], scores[found.second[place]]
        table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
        p_values.append(float(mcnemar(table, exact=True).pvalue))
    return p_values


def _agrees(found: AllPairs, chosen: NDArray[np.int64], peer_p: NDArray[np.float64]) -> bool:
    """Compare exact p-values, and Holm's adjustment of all of them, with the peer's."""
    from statsmodels.stats.multitest import multipletests

    adjusted = multipletests(found.comparisons.p_value, method="holm")[1]
    return bool(
        np.allclose(found.comparisons.p_value[chosen], peer_p, rtol=1e-9, atol=0) and np.allclose(found.p_adjusted, adjusted, rtol=1e-9, atol=0)
    )


def _agrees_with_one(scores: NDArray[np.bool_], found: AllPairs, place: int) -> bool:
    """Compare limits and mid-p of a pair with the functions for one pair."""
    from evalspec.statistics.differences import PairedCounts, tango
    from evalspec.statistics.mcnemar import mcnemar_mid_p

    counts = PairedCounts.from_scores(scores[found.first[place]], scores[found.second[place]])
    limits, shown = tango(counts), found.comparisons
    apart = max(abs(limits.low - shown.low[place]), abs(limits.high - shown.high[place]))
    return bool(apart <= 1e-10 and mcnemar_mid_p(counts) == shown.p_mid[place])


def _leaderboard(scores: NDArray[np.bool_]) -> dict[str, float] | None:
    """Compare with the leaderboard of `errorbars`, where that is installed: pairwise t tests and Holm."""
    if importlib.util.find_spec("errorbars") is None:
        return None
    from errorbars.io import EvalData
    from errorbars.leaderboard import build_leaderboard

    from evalspec.statistics.all_pairs import all_pairs

    models, questions = scores.shape
    long = EvalData(
        question_id=[f"q{question}" for _ in range(models) for question in range(questions)],
        model=[f"m{model}" for model in range(models) for _ in range(questions)],
        score=scores.astype(float).ravel().tolist(),
    )
    peer, ours = seconds(lambda: build_leaderboard(long)), median_seconds(lambda: all_pairs(scores))
    pairs = len(list(combinations(range(models), 2)))
    return {"pairs": pairs, "peer_s": round(peer, 3), "ours_s": round(ours, 4), "ratio": round(peer / ours)}


if __name__ == "__main__":
    main()
