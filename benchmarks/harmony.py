"""How fast are groups by answer distributions, for 2 to 20 of them?  Against scikit-learn's spectral clustering and silhouettes."""

from __future__ import annotations

import statistics
import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude, peak_mib, seconds
from benchmarks.simulated_answers import distributions

NUMBERS = range(2, 21)
RUNS = 5
BARS = {2000: 10, 5000: 30}
LEAST_AGREEMENT = 0.99
PEER = "scikit-learn SpectralClustering(affinity='precomputed', n_init=10) for each number, and silhouette_score; similarities are given to it"


def main() -> None:
    """Time both on two sizes and compare the number of groups, the groups and the silhouette that it has."""
    smaller, larger = (_compared(questions) for questions in BARS)
    agree = bool(smaller["agree"] and larger["agree"])
    figures = {**larger, "peer": PEER, "at_2000": smaller, "peak_mib": peak_mib(), "agree": agree}
    conclude("harmony", "5,000 questions with 32 answers each, 2 to 20 groups, from distributions to the chosen groups", figures)
    sys.exit(0 if agree and all(float(found["ratio"]) >= found["ratio_bar"] for found in (smaller, larger)) else 1)


def _compared(questions: int) -> dict[str, float]:
    from sklearn.metrics import adjusted_rand_score

    from evalspec.statistics.answer_similarity import answer_similarity

    table = distributions(questions, signal=1.5, rng=np.random.default_rng(0))
    # The peer gets its similarities for nothing.
    affinity = answer_similarity([table]).columns(np.arange(questions)).astype(np.float64)
    affinity = (affinity + affinity.T) / 2.0
    np.fill_diagonal(affinity, 1.0)
    ours: list[tuple[int, NDArray[np.int64], float]] = []
    before = [seconds(lambda: ours.append(_ours(table))) for _ in range(RUNS // 2 + 1)]
    peers: list[tuple[int, NDArray[np.int64], float]] = []
    peer_s = seconds(lambda: peers.append(_peer(affinity)))
    # Interleaved, so that both meet the same machine.
    after = [seconds(lambda: ours.append(_ours(table))) for _ in range(RUNS // 2)]
    ours_s = statistics.median([*before, *after])
    (number, labels, silhouette), (peer_number, peer_labels, peer_silhouette) = ours[0], peers[0]
    agreement = float(adjusted_rand_score(peer_labels, labels))
    return {
        "ours_s": round(ours_s, 3),
        "peer_s": round(peer_s, 2),
        "ratio": round(peer_s / ours_s, 1),
        "ratio_bar": BARS[questions],
        "groups": number,
        "peer_groups": peer_number,
        "adjusted_rand": round(agreement, 4),
        "silhouette_difference": abs(silhouette - peer_silhouette),
        "agree": number == peer_number and agreement >= LEAST_AGREEMENT,
    }


def _ours(table: NDArray[np.float64]) -> tuple[int, NDArray[np.int64], float]:
    from evalspec.statistics.answer_similarity import answer_similarity
    from evalspec.statistics.silhouettes import similarity_silhouettes
    from evalspec.statistics.spectral import spectral_coordinates, spectral_groups

    rng = np.random.default_rng(1)
    similarity = answer_similarity([table])
    groups = spectral_groups(spectral_coordinates(similarity, count=NUMBERS[-1], rng=rng), NUMBERS, starts=10, rng=rng)
    found = similarity_silhouettes(similarity, groups)
    best = int(np.argmax(found))
    return NUMBERS[best], groups[best], found[best]


def _peer(affinity: NDArray[np.float64]) -> tuple[int, NDArray[np.int64], float]:
    from sklearn.cluster import SpectralClustering
    from sklearn.metrics import silhouette_score

    groups = [SpectralClustering(number, affinity="precomputed", n_init=10, random_state=0).fit_predict(affinity) for number in NUMBERS]
    distances = 1.0 - affinity
    found = [float(silhouette_score(distances, labels, metric="precomputed")) for labels in groups]
    best = int(np.argmax(found))
    return NUMBERS[best], groups[best], found[best]


if __name__ == "__main__":
    main()
