from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.scoring.parts import Memory, compute_in_parts, cut

NO_ROOM = "no room"


class Room:
    """Computes the squares of at most so many numbers at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.freed = 0
        self.memory = Memory(lambda error: str(error) == NO_ROOM, self._free)

    def squares(self, numbers: Sequence[int]) -> list[int]:
        if len(numbers) > self.most:
            raise RuntimeError(NO_ROOM)
        return [number * number for number in numbers]

    def _free(self) -> None:
        self.freed += 1


@given(st.lists(st.integers(), min_size=1, max_size=70), st.integers(1, 70))
def test_a_cut_keeps_every_item_in_order_in_parts_of_almost_one_length(items: list[int], parts: int) -> None:
    some = cut(items, min(parts, len(items)))
    assert [item for part in some for item in part] == items
    assert max(map(len, some)) - min(map(len, some)) <= 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_parts_are_halved_until_they_have_room_and_every_step_is_told(count: int, most: int, begin: int) -> None:
    room, told = Room(most), list[int]()
    results, parts = compute_in_parts(room.squares, range(count), begin, memory=room.memory, halved=told.append)
    assert results == [number * number for number in range(count)]
    assert -(-count // parts) <= most
    assert parts == min(begin, count) or told[-1] == parts
    assert len(told) == room.freed


def test_no_room_for_a_single_item_is_an_error() -> None:
    with pytest.raises(MemoryError):
        compute_in_parts(Room(0).squares, [1, 2, 3], 1, memory=Room(0).memory, halved=lambda _parts: None)


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    def broken(_numbers: Sequence[int]) -> list[int]:
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        compute_in_parts(broken, [1, 2], 1, memory=Room(1).memory, halved=lambda _parts: None)
