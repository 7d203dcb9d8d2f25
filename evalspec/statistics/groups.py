"""Which group does each question belong to?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Groups:
    """Group names in order of first appearance, the number of the group of each question, shape (Q,), and the group sizes."""

    names: tuple[Hashable, ...]
    codes: IntArray
    sizes: IntArray

    def totals(self, values: FloatArray) -> FloatArray:
        """Sum values of shape (Q,) within each group, shape (groups,)."""
        return np.bincount(self.codes, values, minlength=len(self.names)).astype(np.float64)


def group(labels: Iterable[Hashable], questions: int) -> Groups:
    """Number the groups that ``labels`` name, one label per question.

    Raises
    ------
    ValueError
        When the number of labels is not the number of questions, or a label is missing (``None`` or NaN): questions without a
        label must not become one large group.

    Examples
    --------
    >>> group(["law", "logic", "law"], 3).codes
    array([0, 1, 0])
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "U":
        return _group_texts(labels, questions)
    numbers: dict[Hashable, int] = {}
    codes = []
    for place, label in enumerate(labels):
        if label is None or label != label:  # noqa: PLR0124 - only NaN differs from itself
            raise ValueError(f"every question needs a group label; the one at position {place} is missing")
        codes.append(numbers.setdefault(label, len(numbers)))
    _require_length(len(codes), questions)
    array = np.array(codes, dtype=np.int64)
    return Groups(tuple(numbers), array, np.bincount(array, minlength=len(numbers)).astype(np.int64))


def _group_texts(labels: NDArray[np.str_], questions: int) -> Groups:
    """Number the groups of an array of texts, none of which can be missing: the same, without a step per question."""
    _require_length(labels.size, questions)
    found, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    codes = np.argsort(order)[inverse].astype(np.int64)
    return Groups(tuple(found[order].tolist()), codes, np.bincount(codes, minlength=found.size).astype(np.int64))


def _require_length(labels: int, questions: int) -> None:
    if labels != questions:
        raise ValueError(f"needs one group label per question; got {labels} labels for {questions} questions")
