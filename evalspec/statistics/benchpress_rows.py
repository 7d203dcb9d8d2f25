"""Which scores would one model have if only some of its scores were known?  Many such sets of known scores of it at once.

The other models of the table keep all of theirs. This is how a new model is met, how one score is hidden to be compared with what the rest say of
it, and how probes are tried out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.benchpress import Method, Predictions, Standard, cells_of
from evalspec.statistics.benchpress_als import VaryingRow, als

STARTS_AT_ONCE = 400
"""Starts that are solved together: their features fit a processor's cache."""


def predict_row(scores: FloatArray, model: int, visible: NDArray[np.bool_], method: Method) -> Predictions:
    """Predict all scores of one model from the whole table and, of its own row, only what is visible.

    Parameters
    ----------
    scores
        The table (N, D), NaN where there is no score.
    model
        The row of the model.
    visible
        Which of its cells the fit may see, (B, D), one row per set; a cell without a score is never seen.
    method
        How the table is completed.

    Returns
    -------
    Predictions
        Of shape (B, D). For a model of which nothing is visible they are those of an average model, with the noise of the starts.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020. Each prediction equals that of a fit of the table without the other cells.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, 50.0]])
    >>> predict_row(table, 2, np.array([[True, False]]), Method((42,), np.full(2, 100.0))).value.shape
    (1, 2)
    """
    seen = np.asarray(visible & ~np.isnan(scores[model]))
    parts = Predictions(*(np.empty(seen.shape) for _ in range(3)))
    for sets, tops in _scaled_alike(scores, model, seen, method):
        most = max(1, STARTS_AT_ONCE // len(method.seeds))
        for begin in range(0, len(sets), most):
            chunk = sets[begin : begin + most]
            found = _predicted(scores, model, seen[chunk], Method(method.seeds, tops))
            parts.value[chunk], parts.spread[chunk], parts.span[chunk] = found.value, found.spread, found.span
    return parts


def _scaled_alike(scores: FloatArray, model: int, seen: NDArray[np.bool_], method: Method) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the sets under which every benchmark has the same scale; the published rule looks at the scores that are visible."""
    if method.tops is not None:
        yield np.arange(len(seen)), method.tops
        return
    without = scores.copy()
    without[model] = np.nan
    tops = np.where(seen, method.tops_of(scores), method.tops_of(without))
    _, kinds = np.unique(np.isnan(tops), axis=0, return_inverse=True)
    for kind in range(kinds.max(initial=-1) + 1):
        sets = np.flatnonzero(kinds.ravel() == kind)
        yield sets, tops[sets[0]]


def _predicted(scores: FloatArray, model: int, seen: NDArray[np.bool_], method: Method) -> Predictions:
    """Standardise by the other models, and let each set shift and scale that by the scores that it adds."""
    assert method.tops is not None
    without, count = scores.copy(), len(method.seeds)
    without[model] = np.nan
    base, joint = Standard.of(without, method.tops), Standard.of(scores, method.tops)
    mean, spread = np.where(seen, joint.mean, base.mean), np.where(seen, joint.spread, base.spread)
    # A benchmark that no other model has is standardised by this model's score alone.
    base = Standard(base.tops, np.where(np.isnan(base.mean), joint.mean, base.mean), base.spread)
    own = base.standardised(scores[model])
    varying = VaryingRow(
        model=model,
        known=np.repeat(seen.T.astype(np.float64), count, axis=1),
        values=np.nan_to_num(own),
        scale=np.repeat(_filled(base.spread / spread, 1.0).T, count, axis=1),
        shift=np.repeat(_filled((mean - base.mean) / spread, 0.0).T, count, axis=1),
    )
    rows = als(cells_of(without, base), method.seeds * len(seen), varying).completed_row(model)
    tables = rows.T.reshape(len(seen), count, -1).swapaxes(0, 1)
    return Predictions.of(tables, Standard(base.tops, mean, spread))


def _filled(numbers: FloatArray, replacement: float) -> FloatArray:
    """Put a number where a benchmark has no known score, so that nothing of it enters a sum."""
    return np.where(np.isnan(numbers), replacement, numbers)
