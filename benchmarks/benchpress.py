"""How fast is the completion of a matrix of scores?  One fit against the plain loop over rows, the thirty folds, and a search for five probes."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude, median_seconds, peak_mib, seconds, shared_data
from evalspec.statistics.benchpress import AUDIT_SEEDS, PUBLISHED_SEEDS, Fit, Method, Standard, fit, published_tops
from evalspec.statistics.benchpress_als import PENALTY, SWEEPS
from evalspec.statistics.benchpress_folds import hold_out, holdout_folds, summarise
from evalspec.statistics.benchpress_probes import Objective, Trials, search

TURNS = 5
BARS = {"ratio": 15, "evaluation_s": 5.0, "search_s": 600.0}
PROBES = ("gpqa_diamond", "hle", "codeforces_rating", "mmlu_pro", "arc_agi_1")
ERROR_WITH_PROBES = 3.926
MEDIAN_ERROR = 4.598


def main() -> None:
    """Time the fit, the loop, the folds and the search, and compare each with what is published."""
    columns, scores = read_matrix()
    method = Method(PUBLISHED_SEEDS)
    looped, ours = loop(scores, PUBLISHED_SEEDS), fit(scores, method)
    # Interleaved, so that both meet the same machine.
    turns = [(seconds(lambda: loop(scores, PUBLISHED_SEEDS)), median_seconds(lambda: fit(scores, method))) for _ in range(TURNS)]
    peer_s, ours_s = (statistics.median(turn[side] for turn in turns) for side in (0, 1))
    folds = list(holdout_folds(~np.isnan(scores), range(42, 52)))
    audit_s = median_seconds(lambda: hold_out(scores, Method(AUDIT_SEEDS), folds), runs=3)
    published_s = median_seconds(lambda: hold_out(scores, method, folds), runs=3)
    held = hold_out(scores, method, folds)
    trials = Trials(scores, method)
    search_s = seconds(lambda: search(trials, range(len(columns)), 5, Objective(count_revealed=True)))
    path = search(trials, range(len(columns)), 5, Objective(count_revealed=True))
    agree = (
        float(np.max(np.abs(looped - mean_of(ours)))) < 1e-6
        and abs(summarise(held.error, held.actual).median - MEDIAN_ERROR) < 5e-4
        and tuple(columns[step.benchmark] for step in path) == PROBES
        and abs(path[-1].revealed - ERROR_WITH_PROBES) < 5e-4
    )
    figures = {
        "ours_s": round(ours_s, 4),
        "peer_s": round(peer_s, 3),
        "peer": "the same fit, one numpy solve per row and column",
        "ratio": round(peer_s / ours_s, 1),
        "ratio_bar": BARS["ratio"],
        "evaluation_s": round(audit_s, 2),
        "evaluation_published_s": round(published_s, 2),
        "evaluation_bar_s": BARS["evaluation_s"],
        "search_s": round(search_s, 1),
        "search_bar_s": BARS["search_s"],
        "limit_s": BARS["search_s"],
        "of_limit": round(search_s / BARS["search_s"], 3),
        "peak_mib": peak_mib(),
        "agree": bool(agree),
    }
    conclude("benchpress", "84 models on 133 benchmarks: a fit from 10 starts, 30 folds from 100 starts each, 5 probes of 133 candidates", figures)


def read_matrix() -> tuple[list[str], NDArray[np.float64]]:
    """Return the columns and the scores of the published matrix."""
    with shared_data("benchpress/scores.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header[1:], np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])


def mean_of(fitted: Fit) -> NDArray[np.float64]:
    """Return the mean of the standardised tables of all starts."""
    return np.asarray(fitted.tables.mean(axis=0))


def loop(scores: NDArray[np.float64], seeds: Sequence[int]) -> NDArray[np.float64]:
    """Return the mean completed table, standardised: start by start, and in each sweep one small system per model and per benchmark."""
    known = ~np.isnan(scores)
    z = np.where(known, Standard.of(scores, published_tops(scores)).standardised(scores), 0.0)
    models, benchmarks = scores.shape
    seen_of_model = [np.flatnonzero(row) for row in known]
    seen_of_benchmark = [np.flatnonzero(column) for column in known.T]
    total = np.zeros(scores.shape)
    for seed in seeds:
        generator = np.random.RandomState(seed)
        u, v = generator.normal(0.0, 0.01, (models, 2)), generator.normal(0.0, 0.01, (benchmarks, 2))
        a, c, mu = np.zeros(models), np.zeros(benchmarks), z[known].mean()
        for _ in range(SWEEPS):
            for model, seen in enumerate(seen_of_model):
                a[model], u[model] = solved(v[seen], z[model, seen] - mu - c[seen])
            for benchmark, seen in enumerate(seen_of_benchmark):
                c[benchmark], v[benchmark] = solved(u[seen], z[seen, benchmark] - mu - a[seen])
            mu = (z - a[:, None] - c - u @ v.T)[known].mean()
        total += mu + a[:, None] + c + u @ v.T
    return total / len(seeds)


def solved(factors: NDArray[np.float64], residuals: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return bias and factors of one row, by ridge regression."""
    features = np.column_stack([np.ones(len(factors)), factors])
    found = np.asarray(np.linalg.solve(features.T @ features + PENALTY * np.eye(3), features.T @ residuals), dtype=np.float64)
    return float(found[0]), found[1:]


if __name__ == "__main__":
    main()
