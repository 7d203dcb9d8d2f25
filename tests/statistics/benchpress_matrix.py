"""The published matrix of scores, and a small made-up one of the same kind."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Published:
    """The matrix of 84 models and 133 benchmarks, NaN where there is no score."""

    models: list[str]
    columns: list[str]
    scores: NDArray[np.float64]

    def places(self, *names: str) -> list[int]:
        """The columns of these names."""
        return [self.columns.index(name) for name in names]


def read_published(shared: Path) -> Published:
    """Read the matrix where it lies."""
    with (shared / "data" / "benchpress" / "scores.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    scores = np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])
    return Published([row[0] for row in rows], header[1:], scores)


def made_up(models: int = 14, benchmarks: int = 9, *, missing: float = 0.35, seed: int = 3) -> NDArray[np.float64]:
    """Percentages of models with one ability, every model with at least four of them; the last column has no highest score."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(models, 1)), rng.normal(size=benchmarks)
    scores = 100.0 / (1.0 + np.exp(-(ability - difficulty + 0.2 * rng.normal(size=(models, benchmarks)))))
    scores[:, -1] = 1000.0 + 100.0 * ability[:, 0] + 10.0 * rng.normal(size=models)
    hidden = rng.random(scores.shape) < missing
    hidden[:, :4] = False
    scores[hidden] = np.nan
    return scores


def made_up_tops(benchmarks: int = 9) -> NDArray[np.float64]:
    """The highest scores of the made-up columns."""
    return np.array([100.0] * (benchmarks - 1) + [np.nan])
