"""What is done when memory runs out?  A batch is computed in parts, twice as many each time, down to single questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Memory:
    """How to tell that memory ran out, and to give back what a failed try has left."""

    ran_out: Callable[[BaseException], bool]
    free: Callable[[], None]


def compute_in_parts(
    compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item], parts: int, *, memory: Memory, halved: Callable[[int], None]
) -> tuple[list[Result], int]:
    """Return the results of all items and into how many parts they had to be cut; `halved` is told each greater number.

    Raises MemoryError where memory does not do even for one item at a time.
    """
    parts = min(parts, len(items))
    while True:
        results = _try(compute, cut(items, parts), memory)
        if results is not None:
            return results, parts
        memory.free()
        if parts == len(items):
            raise MemoryError
        parts = min(2 * parts, len(items))
        halved(parts)


def cut(items: Sequence[Item], parts: int) -> list[Sequence[Item]]:
    """Return the items in order in so many parts, whose lengths differ by one at most.

    >>> cut([1, 2, 3, 4, 5], 2)
    [[1, 2, 3], [4, 5]]
    """
    size, longer = divmod(len(items), parts)
    ends = [size * number + min(number, longer) for number in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


def _try(compute: Callable[[Sequence[Item]], Sequence[Result]], parts: Sequence[Sequence[Item]], memory: Memory) -> list[Result] | None:
    """Return the results, None where memory ran out; the error is gone by then, with the frames that would hold what it had computed."""
    try:
        return [result for part in parts for result in compute(part)]
    except (RuntimeError, MemoryError) as error:
        if not memory.ran_out(error):
            raise
    return None
