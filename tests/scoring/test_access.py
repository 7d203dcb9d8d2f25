from __future__ import annotations

import asyncio
from random import Random

import pytest

from evalspec.scoring.access import CostLimitError, Purse


def test_nothing_is_spent_beyond_the_limit_however_many_spend_at_once() -> None:
    random = Random(7)

    async def spend(purse: Purse, most: float) -> int:
        done = 0
        while True:
            try:
                async with purse.at_most(most) as hold:
                    await asyncio.sleep(0)
                    hold.spent = random.uniform(0.0, most)
                    done += 1
            except CostLimitError:
                return done

    async def together() -> float:
        purse = Purse(10.0, 1.0)
        done = await asyncio.gather(*(spend(purse, most) for most in (0.1, 0.3, 0.7, 1.3)))
        assert all(done)
        return purse.spent

    spent = asyncio.run(asyncio.wait_for(together(), 10))
    assert 8.7 <= spent <= 10.0


def test_what_is_under_way_is_waited_for_where_only_that_stands_against_more() -> None:
    order: list[str] = []

    async def first(purse: Purse) -> None:
        async with purse.at_most(0.9) as hold:
            await asyncio.sleep(0.05)
            hold.spent = 0.1
            order.append("first")

    async def second(purse: Purse) -> None:
        await asyncio.sleep(0.01)
        async with purse.at_most(0.9) as hold:
            order.append("second")
            hold.spent = 0.2

    async def together() -> float:
        purse = Purse(1.0, 0.0)
        await asyncio.gather(first(purse), second(purse))
        return purse.spent

    assert asyncio.run(asyncio.wait_for(together(), 10)) == pytest.approx(0.3)
    assert order == ["first", "second"]


def test_what_ends_without_a_word_and_what_may_have_been_charged_count_in_full() -> None:
    async def lose(purse: Purse, *, word: bool) -> None:
        async with purse.at_most(0.3) as hold:
            hold.more(0.3)
            if not word:
                raise RuntimeError
            hold.spent = 0.3

    async def spend() -> Purse:
        purse = Purse(1.0, 0.0)
        with pytest.raises(RuntimeError):
            await lose(purse, word=False)
        with pytest.raises(CostLimitError):
            await lose(purse, word=True)
        return purse

    assert asyncio.run(spend()).spent == pytest.approx(0.9)


def test_without_a_limit_everything_may_be_spent() -> None:
    async def spend() -> float:
        purse = Purse(None, 5.0)
        async with purse.at_most(1e9) as hold:
            hold.spent = 2.0
        return purse.spent

    assert asyncio.run(spend()) == 7.0
