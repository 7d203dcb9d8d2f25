"""What does harmony over groups by answer distributions cost on 14,042 questions, as many as MMLU has?  Time and memory of the whole."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.measuring import conclude, peak_mib, seconds
from benchmarks.simulated_answers import distributions, subjects_of

QUESTIONS = 14_042
BARS = {"seconds": 30.0, "mib": 512}


def main() -> None:
    """Time the groups with everything that says how firm they are, and the row of one model over them."""
    from evalspec.analyses.harmony_induced import AnswerDistributions, predictive_partition
    from evalspec.analyses.harmony_results import HarmonyOptions, HarmonyRow, PredictiveOptions
    from evalspec.analyses.harmony_rows import Streams, harmony_row
    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.partitions import adjusted_rand

    rng = np.random.default_rng(0)
    subjects = subjects_of(QUESTIONS)
    table = distributions(QUESTIONS, signal=1.5, rng=rng)
    scores = (rng.random(QUESTIONS) < np.array([0.9, 0.7, 0.6, 0.4])[subjects]).astype(np.float64)
    benchmark = BenchmarkResponses(
        benchmark="simulated",
        models=("model",),
        questions=tuple(f"q{index:05d}" for index in range(QUESTIONS)),
        subjects=tuple(f"subject-{subject}" for subject in subjects),
        weights=np.ones(QUESTIONS),
        scores=scores[None, :, None],
        reasons=np.zeros((1, QUESTIONS, 1), dtype=np.int8),
        choices=np.full((1, QUESTIONS, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
    )
    found: list[tuple[float, HarmonyRow]] = []

    def whole() -> None:
        recorded = AnswerDistributions("answer_tokens", {0: table})
        partition = predictive_partition(benchmark, recorded, [0], PredictiveOptions(), rng)
        options = HarmonyOptions(kind="harmony", partition="predictive")
        found.append((adjusted_rand(partition.codes, subjects), harmony_row(benchmark, 0, partition, options, Streams(rng, 1))))

    ours = seconds(whole)
    agreement, row = found[0]
    peak = peak_mib()
    figures = {
        "ours_s": round(ours, 2),
        "limit_s": BARS["seconds"],
        "of_limit": round(ours / BARS["seconds"], 3),
        "groups": row.k,
        "harmony": row.value,
        "adjusted_rand_with_truth": round(agreement, 4),
        "peak_mib": peak,
        "peak_bar_mib": BARS["mib"],
        "agree": row.k == 4 and agreement > 0.95,
    }
    conclude("harmony_full", f"{QUESTIONS:,} questions with 32 answers each: groups for 2 to 20, silhouettes, stability, interval, sweep", figures)
    sys.exit(0 if figures["agree"] and ours <= BARS["seconds"] and peak < BARS["mib"] else 1)


if __name__ == "__main__":
    main()
