"""Which vectors has an encoder given to the questions?  A table beside the study: question ids, then a column of numbers for each dimension."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import Field

from evalspec.artifacts.base import Artifact, Text
from evalspec.artifacts.outside import OutsideTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evalspec.errors import Diagnostic
    from evalspec.tables.faults import Faults
    from evalspec.tables.rows import Row

FEWEST_DIMENSIONS = 2


class Encoder(Artifact):
    """An encoder by name, and the vectors that it gave to the questions: a CSV file of question ids and numbers, pinned by its SHA-256."""

    name: Text = Field(description="The encoder and its version, as the report names it.")
    vectors: OutsideTable = Field(description="The CSV file: question ids in the first column, a column for each dimension.")


def examine_vectors(encoder: Encoder, tables: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield every fault of the table of vectors."""
    from evalspec.tables.faults import Faults

    faults = Faults()
    _read(encoder, tables, faults)
    yield from faults.found


def directions_of(encoder: Encoder, tables: Mapping[str, bytes], questions: Sequence[str]) -> NDArray[np.float64]:
    """Return the unit vector of each question, shape (Q, d); raises ValueError with the reason where the table does not have them all."""
    import numpy as np

    from evalspec.tables.faults import Faults

    faults = Faults()
    known = _read(encoder, tables, faults)
    missing = sum(question not in known for question in questions)
    if missing or faults.found:
        raise ValueError(f"{missing:,} of {len(questions):,} questions have no vector in the table of encoder {encoder.name}")
    vectors = np.array([known[question] for question in questions])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0.0))


def _read(encoder: Encoder, tables: Mapping[str, bytes], faults: Faults) -> dict[str, list[float]]:
    from evalspec.errors import Location
    from evalspec.tables.rows import csv_rows

    table = encoder.vectors
    found: dict[str, list[float]] = {}
    for row in csv_rows(table.path, tables[table.sha256], faults):
        question, *numbers = map(str, row.cells.values())
        if question in found:
            faults.add(row.location, "the question has a vector already", hint="give each question one row")
        found[question] = _numbers(numbers, row, faults)
    if not faults.found and len(next(iter(found.values()), [])) < FEWEST_DIMENSIONS:
        faults.add(Location(table.path, 1), f"the table needs question ids and at least {FEWEST_DIMENSIONS} columns of numbers")
    return found


def _numbers(cells: Sequence[str], row: Row, faults: Faults) -> list[float]:
    """Return the cells as numbers; notes one fault for a row of which some are none."""
    numbers = []
    for cell in cells:
        try:
            numbers.append(float(cell))
        except ValueError:
            numbers.append(math.nan)
    wrong = sum(not math.isfinite(number) for number in numbers)
    if wrong:
        faults.add(row.location, f"{wrong} of {len(numbers)} cells of the vector hold no finite number")
    return numbers
