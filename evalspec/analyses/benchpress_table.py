"""What does a matrix of scores hold, on which scales, and what is wrong with it?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import Polarity, Scale
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.outside import OutsideTable
from evalspec.errors import Diagnostic, Location, in_file_order
from evalspec.statistics.benchpress import PERCENT, Method, published_tops
from evalspec.statistics.benchpress_lint import ERRORS, Flaw, flaws, looks_like_fraction
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row, csv_rows

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
FEWEST_MODELS = 3
FEWEST_COLUMNS = 2
MOST_CELLS = 100_000
LISTED = 8

SCALES: Mapping[str, Scale] = {
    **dict.fromkeys(("percent", "percent_0_100", "index_0_100"), "percent"),
    **dict.fromkeys(("fraction", "fraction_0_1"), "fraction"),
    **dict.fromkeys(("unbounded", "elo", "rating", "usd"), "unbounded"),
}
"""Words for scales in a table of columns; `mixed` is understood too, and refused."""

POLARITIES: Mapping[str, Polarity] = {
    **dict.fromkeys(("higher", "higher_is_better"), "higher"),
    **dict.fromkeys(("lower", "lower_is_better"), "lower"),
}
MIXED = "mixed"
TOPS: Mapping[Scale, float] = {"percent": PERCENT, "fraction": 1.0, "unbounded": math.nan}


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared of a column."""

    scale: Scale
    polarity: Polarity
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """Scores of N models on D benchmarks, NaN where there is none, and each benchmark's scale, polarity and cost; `tops` as in `Method`."""

    models: tuple[str, ...]
    columns: tuple[str, ...]
    scores: NDArray[np.float64]
    declared: tuple[Declared, ...]

    @property
    def tops(self) -> NDArray[np.float64]:
        """Each benchmark's highest possible score, NaN where there is none."""
        return np.array([TOPS[column.scale] for column in self.declared])

    def place(self, column: str) -> int:
        """Return the column's place; raises ValueError when there is none of that name."""
        return self.columns.index(column)

    def method(self, options: BenchpressOptions, seeds: tuple[int, ...]) -> Method:
        """Return how this matrix is completed; the published method tells scales from the scores."""
        return Method(seeds, self.tops if options.mode == "audit" else None)


def read_matrix(options: BenchpressOptions, tables: Mapping[str, bytes], faults: Faults) -> Matrix | None:
    """Return the matrix that the options name, without the columns that they leave out; None where a fault of it was noted."""
    rows = list(_rows(options.matrix, tables, faults))
    whole = not faults.found
    if not rows and not whole:
        return None
    names = list(rows[0].cells)[1:] if rows else []
    unknown = [name for name in options.leave_out if name not in names]
    _absent(options.matrix, "leave_out names", unknown, faults)
    noted = len(faults.found)
    columns = tuple(name for name in names if name not in options.leave_out)
    if whole:
        _check_size(options.matrix, rows, columns, faults)
    models = _model_names(rows, faults)
    scores = np.array([[_score(row, name, faults) for name in columns] for row in rows], dtype=np.float64).reshape(len(rows), len(columns))
    if len(faults.found) == noted:
        for row, known in zip(rows, ~np.isnan(scores), strict=True):
            if not known.any():
                faults.add(row.location, "the model has no score in the columns that are used", hint="delete the row")
    declared = _declared(options, tables, columns, scores, faults)
    sound = whole and len(faults.found) == noted
    if whole:
        _check_names(options, columns, models, faults)
    return Matrix(models, columns, scores, declared) if sound else None


def examine(options: BenchpressOptions, tables: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield everything that is wrong with the matrix, its declared scales, and what the options say of them."""
    faults = Faults()
    matrix = read_matrix(options, tables, faults)
    if matrix is not None:
        start = Location(options.matrix.path, 1)
        tops = matrix.tops if options.mode == "audit" else published_tops(matrix.scores)
        for flaw in flaws(matrix.scores, tops):
            # The published method takes scores as they are, but no error can be told on a scale without an end or a spread.
            if flaw.kind in ERRORS and (options.mode == "audit" or np.isnan(tops[flaw.benchmark])):
                faults.add(start, _told(flaw, matrix), hint=HINTS[flaw.kind])
        _check_options(options, matrix, faults)
    yield from in_file_order(faults.found)


HINTS = {
    "outside": "mend the score, or declare the scale that the column is on",
    "fractions": "declare the scale fraction, or mend the scores",
    "constant": "leave the column out: leave_out: [...]",
}


def _rows(table: OutsideTable, tables: Mapping[str, bytes], faults: Faults) -> Iterator[Row]:
    yield from csv_rows(table.path, tables[table.sha256], faults)


def _check_size(table: OutsideTable, rows: list[Row], columns: tuple[str, ...], faults: Faults) -> None:
    start = Location(table.path, 1)
    if len(rows) < FEWEST_MODELS or len(columns) < FEWEST_COLUMNS:
        message = f"the matrix has {len(rows)} models and {len(columns)} columns that are used"
        faults.add(start, message, hint=f"at least {FEWEST_MODELS} models and {FEWEST_COLUMNS} columns are needed")
    if len(rows) * len(columns) > MOST_CELLS:
        message = f"the matrix has {len(rows):,} models and {len(columns):,} columns that are used"
        faults.add(start, message, hint=f"at most {MOST_CELLS:,} cells are completed; leave columns out, or delete rows")
    odd = [name for name in columns if not NAME.fullmatch(name)]
    if odd:
        message = f"column names are ids: {_listed(odd)} cannot be one"
        faults.add(start, message, hint="1 to 64 letters, digits, '.', '_' or '-', a letter or a digit first")


def _model_names(rows: list[Row], faults: Faults) -> tuple[str, ...]:
    names: dict[str, Row] = {}
    for row in rows:
        name = str(next(iter(row.cells.values()), "")).strip()
        if not name:
            faults.add(row.location, "the row names no model in its first column")
        elif name in names:
            faults.add(row.location, f"the model{faults.quote(name)} stands already in line {names[name].location.line}", hint="keep one of the two")
        names.setdefault(name, row)
    return tuple(names)


def _score(row: Row, column: str, faults: Faults) -> float:
    written = str(row.cells[column]).strip()
    if not written:
        return math.nan
    try:
        score = float(written) if "_" not in written else math.inf
    except ValueError:
        score = math.inf
    if not math.isfinite(score):
        faults.add(
            row.location, f"the score in column '{column}' is no number:{faults.quote(written)}", hint="leave the cell empty where there is none"
        )
        return math.nan
    return score


def _declared(
    options: BenchpressOptions, tables: Mapping[str, bytes], columns: tuple[str, ...], scores: NDArray[np.float64], faults: Faults
) -> tuple[Declared, ...]:
    if options.columns is None:
        return tuple(Declared("unbounded" if math.isnan(top) else "percent", "undeclared") for top in published_tops(scores))
    noted = len(faults.found)
    rows = list(_rows(options.columns, tables, faults))
    start = Location(options.columns.path, 1)
    if rows and not {"benchmark_id", "scale", "polarity"} <= set(rows[0].cells):
        faults.add(start, "the columns benchmark_id, scale and polarity are needed", hint=faults.list_columns(list(rows[0].cells)))
        return ()
    said: dict[str, Row] = {}
    for row in rows:
        name = str(row.cells["benchmark_id"]).strip()
        if name in said:
            faults.add(row.location, f"'{name}' is declared already in line {said[name].location.line}", hint="keep one of the two")
        said[name] = row
    missing = [name for name in columns if name not in said]
    _absent(options.columns, "no line declares", missing, faults)
    if len(faults.found) > noted:
        return ()
    strict = options.mode == "audit"
    found = [_declaration(said[name], name, faults, strict=strict) for name in columns]
    if not strict:
        tops = published_tops(scores)
        found = [Declared("unbounded" if math.isnan(top) else "percent", entry.polarity, entry.cost) for entry, top in zip(found, tops, strict=True)]
    return tuple(found)


def _declaration(row: Row, name: str, faults: Faults, *, strict: bool) -> Declared:
    scale, polarity = (str(row.cells[key]).strip().lower() for key in ("scale", "polarity"))
    for key, word, words in (("scale", scale, SCALES), ("polarity", polarity, POLARITIES)):
        if strict and word == MIXED:
            faults.add(row.location, f"'{name}' has a mixed {key}, from which nothing can be predicted", hint=f"leave it out: leave_out: [{name}]")
        elif strict and word not in words:
            faults.add(row.location, f"the {key} of '{name}' is{faults.quote(word)}", hint=f"one of {', '.join(words)}")
    return Declared(SCALES.get(scale, "unbounded"), POLARITIES.get(polarity, "undeclared"), _cost(row, name, faults))


def _cost(row: Row, name: str, faults: Faults) -> float | None:
    written = str(row.cells.get("cost") or "").strip()
    if not written:
        return None
    try:
        cost = float(written)
    except ValueError:
        cost = math.nan
    if not cost >= 0 or math.isinf(cost):
        faults.add(row.location, f"the cost of '{name}' is{faults.quote(written)}", hint="a number from 0 on, or nothing")
        return None
    return cost


def _check_names(options: BenchpressOptions, columns: tuple[str, ...], models: tuple[str, ...], faults: Faults) -> None:
    table = options.matrix
    _absent(table, "targets names", [name for name in options.targets or () if name not in columns], faults)
    _absent(table, "measured names", [entry.column for entry in options.measured if entry.column not in columns], faults)
    _absent(table, "models names the row", [entry.row for entry in options.models if entry.row and entry.row not in models], faults)
    if options.probes is not None:
        _absent(table, "candidates of probes names", [name for name in options.probes.candidates or () if name not in columns], faults)
    for model in options.models:
        _absent(table, f"known of model '{model.model}' names", [name for name in model.known if name not in columns], faults)


def _check_options(options: BenchpressOptions, matrix: Matrix, faults: Faults) -> None:
    known = set(matrix.columns)
    table, probes = options.matrix, options.probes
    if probes is not None and probes.budget is not None:
        among = [matrix.place(name) for name in probes.candidates or matrix.columns if name in known]
        _check_budget(probes.budget, among, matrix, faults, table)
    for entry in options.measured:
        if entry.column in known and matrix.declared[matrix.place(entry.column)].scale == "unbounded":
            message = f"'{entry.column}' has no highest score, and a benchmark of a study measures shares"
            faults.add(Location(table.path, 1), message, hint="name a column of percentages or fractions")
    for model in options.models:
        for name, score in model.known.items():
            if name in known:
                _check_known(model.model, name, score, matrix, faults, table)


def _check_budget(budget: float, among: list[int], matrix: Matrix, faults: Faults, table: OutsideTable) -> None:
    costs = [cost for place in among if (cost := matrix.declared[place].cost) is not None]
    if not costs:
        hint = "add a column cost to the table that declares the columns"
        faults.add(Location(table.path, 1), "a budget is set, and no column that may be chosen has a cost", hint=hint)
    elif min(costs) > budget:
        faults.add(Location(table.path, 1), f"the budget of {budget:g} buys no candidate", hint=f"the cheapest costs {min(costs):g}")


def _check_known(model: str, name: str, score: JsonValue, matrix: Matrix, faults: Faults, table: OutsideTable) -> None:
    place = matrix.place(name)
    top, value = float(matrix.tops[place]), float(str(score))
    if not math.isnan(top) and not 0.0 <= value <= top:
        faults.add(Location(table.path, 1), f"{value:g} for '{name}', known of model '{model}', is not on its scale of 0 to {top:g}")
    elif top == PERCENT and looks_like_fraction(value, matrix.scores[:, place]):
        message = f"{value:g} for '{name}', known of model '{model}', looks like a fraction, and the column holds percentages"
        faults.add(Location(table.path, 1), message, hint=f"write {value * PERCENT:g}")


def _told(flaw: Flaw, matrix: Matrix) -> str:
    name, declared = matrix.columns[flaw.benchmark], matrix.declared[flaw.benchmark]
    if flaw.kind == "outside":
        model = matrix.models[int(np.flatnonzero(matrix.scores[:, flaw.benchmark] == flaw.number)[0])]
        return f"'{name}' is declared as {declared.scale}, and {flaw.count} of its scores lie outside, such as {flaw.number:g} of '{model}'"
    if flaw.kind == "fractions":
        return f"'{name}' is declared as percent, and none of its scores is above {flaw.number:g}"
    if flaw.count == 1:
        return f"'{name}' has one score on a scale without an end; no error can be told in units of its spread, and nothing can be learned from it"
    return f"all {flaw.count} scores of '{name}' are alike, or alike once they are cut near the ends of the scale; nothing can be learned from them"


def _absent(table: OutsideTable, what: str, names: list[str], faults: Faults) -> None:
    if names:
        faults.add(
            Location(table.path, 1),
            f"{what} {_listed(names)}, which the matrix does not have" if "declares" not in what else f"{what} {_listed(names)}",
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(f"'{name}'" for name in names[:LISTED]) + more
