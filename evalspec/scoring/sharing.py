"""What do rows have in common, and where does it stand when it is read once?

Two things are shared. The beginning of every prompt of a job (instructions, few-shot examples) is read once and kept in the model's cache.
The answers of one question become the branches of a tree: its prompt once, then every answer's own ids, which do not see each other.
Rows that share nothing stand below each other, padded, or end to end in one, where a model keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, takewhile

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.work import Answer, EncodedQuestion

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packing:
    """What keeps rows apart that are laid end to end, how many tokens a batch of them has at most, and whether rows may have branches."""

    keeper: str
    most_tokens: int | None = None
    branches: bool = False


BY_KERNEL = Packing("torch.nn.attention.varlen.varlen_attn")
ROW_BY_ROW = Packing("torch.nn.functional.scaled_dot_product_attention, row by row", most_tokens=1024, branches=True)
"""On a processor products of more tokens are no faster, and what they read and write no longer stays in its cache."""

PACKINGS = {packing.keeper: packing for packing in (BY_KERNEL, ROW_BY_ROW)}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a loaded model can be asked for: rows with branches, going on from its cache, and rows no longer than `window` in either case.

    `gaps`: it goes on from a cache in which shorter rows have a gap behind their end. `packing`: what keeps rows apart that are laid end to end,
    where none is longer than `longest_packed`; None where nothing does. `stretched_from`: a row that is longer has other positions, and so has
    whatever is read with it.
    """

    branches: bool = False
    cache: bool = False
    window: int | None = None
    gaps: bool = False
    packing: Packing | None = None
    longest_packed: int | None = None
    stretched_from: int | None = None

    def stretches(self, length: int) -> bool:
        """Return whether a row of this length has other positions than shorter ones."""
        return self.stretched_from is not None and length > self.stretched_from


@dataclass(frozen=True, slots=True)
class Shape:
    """How much a question asks a model to read behind the prefix: how many rows, the longest of them, and the ids in all."""

    rows: int
    longest: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the rows of a job share: the ids that all begin with, whether the answers of a question are branches of one row.

    With `packing` the rows of a batch, with branches or without, are laid end to end in one; that does not go with a prefix.
    """

    prefix: tuple[int, ...] = ()
    branches: bool = False
    packing: bool = False

    def computed(self, shapes: Sequence[Shape]) -> int:
        """Return the tokens that are computed for a batch of these shapes, padding included."""
        if self.packing:
            return sum(shape.tokens for shape in shapes)
        return sum(shape.rows for shape in shapes) * max(shape.longest for shape in shapes)

    def shape(self, question: EncodedQuestion) -> Shape:
        """Return what one question takes."""
        before = len(self.prefix)
        if not self.branches:
            return Shape(len(question.rows), question.longest - before, sum(len(row) - before for row in question.rows))
        common = len(_common(question.rows))
        tokens = common - before + sum(len(row) - common for row in question.rows)
        return Shape(1, tokens, tokens)


SEPARATE = Sharing()
"""Every row is read whole and alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What a model reads in one forward pass behind a prefix, and where its log-probabilities are looked up.

    `ids` (R, T) are the rows, padded on the right, or all in one, end to end, each of one of the `lengths`. `positions` (R, T), the place of an id
    in its own text, is there when rows have branches or stand end to end; `branches` (R, T), the branch of an id, when rows have them, 0 being
    common to all.
    `kept` (R, T) marks where logits are needed. The N predicted ids are `targets` (N,), each read at the mark `mark` (N,), counted along the rows;
    `first` (A,) says where the ids of each answer begin.
    """

    ids: Indices
    positions: Indices | None
    branches: Indices | None
    kept: NDArray[np.bool_]
    mark: Indices
    targets: Indices
    first: Indices
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Questions, by their place in the job, and what they share."""

    questions: tuple[int, ...]
    sharing: Sharing


def share(questions: Sequence[EncodedQuestion], abilities: Abilities, rule: BatchRule, *, written: int = 0) -> tuple[Group, ...]:
    """Return the questions in groups of a common beginning, and what each group shares on a model of these abilities.

    Prompts with the same instructions and examples form a group when their first `shortest_prefix` ids agree; the rest forms one without a prefix.
    Rows that share nothing are laid end to end where the model keeps them apart. Questions that stretch positions, with the up to `written` ids
    that are generated, come first, and share no more than a question's own rows do.
    """
    numbers = range(len(questions))
    long = [number for number in numbers if abilities.stretches(questions[number].longest + written)]
    short = [number for number in numbers if not abilities.stretches(questions[number].longest + written)]
    alike = ((long, replace(abilities, cache=False, packing=None)), (short, abilities))
    return tuple(group for some, able in alike if some for group in _groups(some, questions, able, rule))


def _groups(numbers: Sequence[int], questions: Sequence[EncodedQuestion], abilities: Abilities, rule: BatchRule) -> Iterator[Group]:
    """Yield the groups of these questions, of which none or every one stretches positions."""
    longest = max(questions[number].longest for number in numbers)
    fits = abilities.longest_packed is None or longest <= abilities.longest_packed
    packing = abilities.packing if rule.packing and fits else None
    if abilities.window is not None and longest > abilities.window:
        yield Group(tuple(numbers), Sharing(packing=packing is not None))
        return
    branches = rule.branches and abilities.branches and any(len(questions[number].rows) > 1 for number in numbers)
    together: dict[tuple[int, ...], list[int]] = {}
    for number in numbers:
        together.setdefault(_common(questions[number].rows)[: rule.shortest_prefix] if abilities.cache else (), []).append(number)
    alone: list[int] = []
    for members in together.values():
        prefix = _prefix([questions[number] for number in members]) if abilities.cache and len(members) > 1 else ()
        if prefix and len(prefix) >= rule.shortest_prefix:
            yield Group(tuple(members), Sharing(prefix, branches))
        else:
            alone += members
    if alone:
        yield Group(tuple(sorted(alone)), Sharing(branches=branches, packing=packing is not None and (packing.branches or not branches)))


def _prefix(questions: Sequence[EncodedQuestion]) -> tuple[int, ...]:
    """Return what all rows begin with, up to the last id of the shortest prompt: what follows it is predicted from there."""
    common = _common([row for question in questions for row in question.rows])
    return common[: min(answer.start for question in questions for answer in question.answers)]


def lay_out(batch: Sequence[EncodedQuestion], sharing: Sharing) -> Layout:
    """Return the rows of a batch as the model is to read them."""
    if sharing.packing:
        return _trees_end_to_end(batch) if sharing.branches else _end_to_end(batch)
    return _trees(batch, len(sharing.prefix)) if sharing.branches else _rows(batch, len(sharing.prefix))


def _rows(batch: Sequence[EncodedQuestion], prefix: int) -> Layout:
    rows = [row[prefix:] for question in batch for row in question.rows]
    reads = _Reads()
    for answer, row in _answers(batch):
        reads.add(answer, [(row, answer.start + step - prefix) for step in range(len(answer.ids))])
    return reads.layout(_padded(rows), None, None)


def _end_to_end(batch: Sequence[EncodedQuestion]) -> Layout:
    rows = [row for question in batch for row in question.rows]
    lengths = tuple(map(len, rows))
    begins = (0, *accumulate(lengths))
    reads = _Reads()
    for answer, row in _answers(batch):
        reads.add(answer, [(0, begins[row] + answer.start + step) for step in range(len(answer.ids))])
    return reads.layout(_joined(rows), _joined(list(map(range, lengths))), None, lengths)


def _trees_end_to_end(batch: Sequence[EncodedQuestion]) -> Layout:
    trees = [_Tree(question, 0) for question in batch]
    lengths = tuple(len(tree.ids) for tree in trees)
    reads = _Reads()
    for question, tree, begin in zip(batch, trees, (0, *accumulate(lengths)), strict=False):
        for answer in question.answers:
            reads.add(answer, [(0, begin + tree.column(answer.row, answer.start + step)) for step in range(len(answer.ids))])
    ids, positions, branches = map(_joined, _columns(trees))
    return reads.layout(ids, positions, branches, lengths)


def _answers(batch: Sequence[EncodedQuestion]) -> Iterator[tuple[Answer, int]]:
    """Yield every answer with the row of the batch that it is read in."""
    rows_before = 0
    for question in batch:
        for answer in question.answers:
            yield answer, rows_before + answer.row
        rows_before += len(question.rows)


def _trees(batch: Sequence[EncodedQuestion], prefix: int) -> Layout:
    trees = [_Tree(question, prefix) for question in batch]
    reads = _Reads()
    for number, (question, tree) in enumerate(zip(batch, trees, strict=True)):
        for answer in question.answers:
            reads.add(answer, [(number, tree.column(answer.row, answer.start + step)) for step in range(len(answer.ids))])
    ids, positions, branches = map(_padded, _columns(trees))
    return reads.layout(ids, positions, branches)


class _Reads:
    """Where each answer's log-probabilities are looked up: rows and columns, in the order of the answers."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int]] = []
        self._targets: list[int] = []
        self._first: list[int] = []

    def add(self, answer: Answer, places: Sequence[tuple[int, int]]) -> None:
        self._first.append(len(self._targets))
        self._targets += answer.ids
        self._places += places

    def layout(self, ids: Indices, positions: Indices | None, branches: Indices | None, lengths: tuple[int, ...] = ()) -> Layout:
        flat = np.ravel_multi_index(tuple(np.asarray(self._places, dtype=np.int64).T), ids.shape)
        kept = np.zeros(ids.shape, dtype=bool)
        kept.flat[flat] = True
        mark = (np.cumsum(kept) - 1)[flat]
        targets, first = (np.asarray(numbers, dtype=np.int64) for numbers in (self._targets, self._first))
        return Layout(ids, positions, branches, kept, mark, targets, first, lengths)


class _Tree:
    """One question as a single row: what its rows have in common behind the prefix, then the rest of each as a branch."""

    def __init__(self, question: EncodedQuestion, prefix: int) -> None:
        self._prefix = prefix
        self._common = len(_common(question.rows))
        self.ids = list(question.rows[0][prefix : self._common])
        self.positions = list(range(prefix, self._common))
        self.branches = [0] * len(self.ids)
        self._first_columns: list[int] = []
        for number, row in enumerate(question.rows, start=1):
            self._first_columns.append(len(self.ids))
            rest = row[self._common :]
            self.ids += rest
            self.positions += range(self._common, len(row))
            self.branches += [number] * len(rest)

    def column(self, row: int, place: int) -> int:
        """Return where the id at `place` of row `row` stands."""
        return place - self._prefix if place < self._common else self._first_columns[row] + place - self._common


def _columns(trees: Sequence[_Tree]) -> Iterator[tuple[list[int], ...]]:
    """Yield the ids, the positions and the branches of all trees."""
    return zip(*((tree.ids, tree.positions, tree.branches) for tree in trees), strict=True)


def _common(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return what all rows begin with."""
    first, last = min(rows), max(rows)
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))


def _joined(rows: Sequence[Sequence[int]]) -> Indices:
    """Return all rows in one, (1, T)."""
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)[None]


def _padded(rows: Sequence[Sequence[int]]) -> Indices:
    padded = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
