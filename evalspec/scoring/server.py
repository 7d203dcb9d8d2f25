"""How is a server asked?  Within limits of time and size, again where that may help, and with a key that nothing of ours repeats.

The only module that speaks HTTP. Redirects are not followed: the key is for one server. What comes back is read as a stranger's: at most so many
bytes, JSON as strict as the standard.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Self

import httpx2

from evalspec import __version__
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.served import is_local
from evalspec.foreign import parse_json
from evalspec.scoring.access import Access

LARGEST_REPLY = 1 << 24
LARGEST_COMPLAINT = 1 << 16
LONGEST_MESSAGE = 300
CONNECT_SECONDS = 15.0
MOST_UNREADABLE = 3
"""Tries after which a reply that is no JSON is taken for what the server has to say."""

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses after which the same request may succeed later."""

SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes of a complaint that waiting does not mend."""

Object = dict[str, JsonValue]


class ServerError(Exception):
    """The server cannot be asked, or not this; `said` is what the server itself says, which may repeat what it was asked."""

    def __init__(self, problem: str, *, said: str = "", hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.said = said
        self.hint = hint


class RefusedError(ServerError):
    """The server answered that it will not do this, as for a request that it does not understand."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply, how many tries it took, and how many of them may have been charged and gave nothing."""

    content: Object
    tries: int
    unanswered: int


class _FailedTryError(Exception):
    """One try failed; another may succeed, after `wait` seconds where the server says so."""

    def __init__(self, problem: str, *, charged: bool = False, unreadable: bool = False, wait: float | None = None) -> None:
        super().__init__(problem)
        self.problem, self.charged, self.unreadable, self.wait = problem, charged, unreadable, wait


class Server:
    """One endpoint, open while the block lasts; any number of tasks may ask, so many of them at once as the access allows."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._slots = asyncio.Semaphore(access.patience.at_once)
        self._opens = 0.0
        self._random = random.SystemRandom()
        limits = httpx2.Limits(max_connections=access.patience.at_once)
        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if access.key is not None:
            headers["authorization"] = f"Bearer {access.key}"
        self._client = httpx2.AsyncClient(
            headers={**headers, "user-agent": f"evalspec/{__version__}"},
            follow_redirects=False,
            timeout=httpx2.Timeout(access.patience.timeout, connect=CONNECT_SECONDS),
            limits=limits,
            transport=httpx2.AsyncHTTPTransport(limits=limits) if is_local(access.endpoint) else None,  # no proxy on the way to this machine
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._client.aclose()

    async def ask(self, address: str, body: Mapping[str, JsonValue], *, again: Callable[[], None] = lambda: None) -> Asked:
        """Return the reply to a request; `again` is called before one is repeated that may have been charged already.

        An address is seen from the endpoint, or whole. Raises RefusedError where the server will not, ServerError where it cannot or is not
        understood.
        """
        content, tries, unanswered, unreadable = json.dumps(body, ensure_ascii=False, allow_nan=False).encode(), 0, 0, 0
        while True:
            tries += 1
            try:
                async with self._slots:
                    await self._until_open()
                    return Asked(await self._attempt(address, content), tries, unanswered)
            except _FailedTryError as failed:
                unanswered, unreadable = unanswered + failed.charged, unreadable + failed.unreadable
                if tries >= self._access.patience.tries or unreadable >= MOST_UNREADABLE:
                    told = f"{failed.problem}, {tries} times" if tries > 1 else failed.problem
                    raise ServerError(told, hint="what was answered is kept; the same command goes on from there") from failed
                await self._pause(tries, failed)
                if failed.charged:
                    again()

    async def _until_open(self) -> None:
        wait = self._opens - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)
            await self._until_open()  # another task may have been told to wait longer

    async def _pause(self, tries: int, failed: _FailedTryError) -> None:
        """Wait before the next try; where the server says how long, all tasks do."""
        patience = self._access.patience
        if failed.wait is None:
            longest = min(patience.longest_pause, patience.first_pause * 2 ** (tries - 1))
            await asyncio.sleep(self._random.uniform(longest / 2, longest))
        elif failed.wait > patience.longest_wait:
            raise ServerError(f"{failed.problem}; the server asks to wait {failed.wait:,.0f} s", hint="run the same command then")
        else:
            wait = failed.wait + self._random.uniform(0.0, min(1.0, patience.first_pause))
            self._opens = max(self._opens, asyncio.get_running_loop().time() + wait)
            await self._until_open()

    async def _attempt(self, address: str, content: bytes) -> Object:
        seconds = self._access.patience.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(address, content)
        except TimeoutError as error:
            raise _FailedTryError(f"no answer within {seconds:g} s", charged=True) from error
        except httpx2.ConnectError as error:
            raise _FailedTryError(f"it cannot be reached ({_printable(str(error))[:LONGEST_MESSAGE]})") from error
        except (httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _FailedTryError("it cannot be reached") from error
        except httpx2.HTTPError as error:
            raise _FailedTryError(f"the connection broke off ({type(error).__name__})", charged=True) from error
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise ServerError("its address cannot be used") from error

    async def _exchange(self, address: str, content: bytes) -> Object:
        whole = address if "://" in address else f"{self._access.endpoint}/{address}"
        async with self._client.stream("POST", whole, content=content) as response:
            if response.status_code == httpx2.codes.OK:
                return self._object(await _read(response, LARGEST_REPLY))
            if 300 <= response.status_code < 400:
                raise ServerError("it redirects to another address, which is not followed", hint="name that address as the endpoint, if it is meant")
            raise self._complaint(response, await _read(response, LARGEST_COMPLAINT))

    def _object(self, content: bytes) -> Object:
        try:
            found = parse_json(content.decode())
        except ValueError as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            raise _FailedTryError(f"its reply cannot be read: {why}", charged=True, unreadable=True) from error
        if not isinstance(found, dict):
            raise _FailedTryError("its reply cannot be read: it is no JSON object", charged=True, unreadable=True)
        return found

    def _complaint(self, response: httpx2.Response, content: bytes) -> Exception:
        status, (code, message) = response.status_code, _complaint_in(content)
        said = self._access.scrubbed(message)[:LONGEST_MESSAGE]
        if status in {401, 403}:  # servers may repeat the key here
            given = f"the key in {self._access.key_variable}" if self._access.key is not None else "a request without a key"
            return ServerError(f"it does not accept {given} (HTTP {status})", hint=f"put the right key into the variable {self._access.key_variable}")
        if code in SPENT:
            return ServerError(f"it says that the account's quota is used up (HTTP {status})", said=said)
        if status in BUSY:
            return _FailedTryError(f"it answers with HTTP {status}", wait=_wait_in(response.headers.get("retry-after", "")))
        return RefusedError(f"it answers with HTTP {status}", said=said)


async def _read(response: httpx2.Response, limit: int) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _FailedTryError("its reply cannot be read: it is packed, which was not asked for", charged=True, unreadable=True)
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > limit:
            raise _FailedTryError(f"its reply cannot be read: it has more than {limit:,} bytes", charged=True, unreadable=True)
    return bytes(found)


def _complaint_in(content: bytes) -> tuple[str, str]:
    """Return the code and the message of a complaint, empty where there is none to be read."""
    try:
        found = parse_json(content.decode())
    except ValueError:
        return "", ""
    inner = found.get("error", found) if isinstance(found, dict) else found
    if isinstance(inner, str):
        return "", _printable(inner)
    code, message = (inner.get("code"), inner.get("message")) if isinstance(inner, dict) else (None, None)
    return code if isinstance(code, str) else "", _printable(message) if isinstance(message, str) else ""


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _wait_in(header: str) -> float | None:
    """Return the seconds that a Retry-After asks for, as a number or as a date (RFC 9110, 10.2.3); None where it says neither."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
