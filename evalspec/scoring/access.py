"""Under which conditions may a server be asked?  Its address, the key, how patiently, and how much it may cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from evalspec.artifacts.served import Price


@dataclass(frozen=True, slots=True)
class Patience:
    """How a server is met: requests at once, tries of each, seconds for one try from connection to last byte, and pauses between tries.

    Pauses double from `first_pause` to `longest_pause`; a server that asks for a longer one than `longest_wait` is left alone.
    """

    at_once: int = 8
    tries: int = 7
    timeout: float = 120.0
    first_pause: float = 1.0
    longest_pause: float = 60.0
    longest_wait: float = 600.0


@dataclass(frozen=True, slots=True)
class Access:
    """How one served model is reached. The key is in no artifact, and not in what this prints as; `key_needed` says that the study names it."""

    endpoint: str
    key: str | None = field(default=None, repr=False)
    key_variable: str = ""
    key_needed: bool = False
    price: Price | None = None
    max_cost: float | None = None
    patience: Patience = field(default_factory=Patience)

    def scrubbed(self, text: str) -> str:
        """Return a text that came from the server without the key, in case the server repeats it."""
        return text.replace(self.key, "***") if self.key else text


class CostLimitError(Exception):
    """What comes next could cost more than is left."""


class Purse:
    """What may still be spent: nothing is sent whose greatest possible cost is not covered, what is under way included."""

    def __init__(self, limit: float | None, spent: float) -> None:
        self.spent = spent
        self._limit = limit
        self._holds: list[Hold] = []
        self._returned = asyncio.Condition()

    @asynccontextmanager
    async def at_most(self, amount: float) -> AsyncIterator[Hold]:
        """Hold `amount` back while something is asked; what the hold then says is spent.

        Waits where only what is under way stands against it; raises CostLimitError where nothing is and it is still too much.
        """
        hold = Hold(self, amount)
        async with self._returned:
            while not self.covers(amount):
                if not self._holds:
                    raise CostLimitError
                await self._returned.wait()
            self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            self.spent += hold.amount if hold.spent is None else hold.spent
            async with self._returned:
                self._returned.notify_all()

    def covers(self, amount: float) -> bool:
        """Return whether so much may be spent beside what is spent and what is under way."""
        return self._limit is None or self.spent + sum(hold.amount for hold in self._holds) + amount <= self._limit


@dataclass(slots=True, eq=False)
class Hold:
    """An amount that is held back; `spent` is what it came to, None for all of it."""

    purse: Purse
    amount: float
    spent: float | None = None

    def more(self, amount: float) -> None:
        """Hold back more, for something that may have been charged and must be sent again; raises CostLimitError where that is not covered."""
        if not self.purse.covers(amount):
            raise CostLimitError
        self.amount += amount
