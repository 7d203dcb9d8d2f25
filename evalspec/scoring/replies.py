"""What do the replies of a server say?  Log-probabilities, each a number that it can be, or an error with what is wrong; never a guess.

`/completions` lists tokens beside each other (`tokens`, `token_logprobs`, `top_logprobs`), `/chat/completions` one after the other (`content`);
some servers answer both in the second form. A token is known by its text, or by its id where it is written `token_id:7`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalspec.artifacts.base import JsonValue

LEAST = -9998.0
"""Servers write -9999 for the logarithm of nothing, which is not known to be nothing."""

ROUNDING = 0.01
"""How far above 1 probabilities may add up by rounding, and how far above 0 a log-probability may lie."""

MOST_TOKENS = 10**7
"""In one request; a record holds the sum over all choices of a question."""

OVERHEAD_TOKENS = 64
"""Tokens that a server may put around a prompt, such as a chat template; of the prompt itself, a byte is one token at most."""

WILD = 10
"""A server that counts so many times the most that can be meant does not count what it was asked."""

_NAME = re.compile(r"[!-~]{1,200}")
_SPACES = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
"""How raw vocabularies write a space and a line break."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The tokens that a server names as the next one, with their log-probabilities; any other has `bound` at most. `picked` is what it chose."""

    logprobs: dict[str, float]
    bound: float
    picked: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What an answer's log-probability is at most and at least; None where only the first is known, both the same where it was told."""

    highest: float
    lowest: float | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and generated, as the server counts them."""

    input_tokens: int
    output_tokens: int


def listed_tokens(content: dict[str, JsonValue], *, most: int) -> Listed:
    """Return the likeliest next tokens, of which `most` were asked for; raises ValueError where the reply does not hold them."""
    found = _logprobs_of(content)
    entry = _first(found.get("content"), "token") if "content" in found else found
    pairs: list[tuple[JsonValue, JsonValue]]
    if entry is found:
        picked, value, named = (_item(found.get(name)) for name in ("tokens", "token_logprobs", "top_logprobs"))
        pairs = [*named.items()] if isinstance(named, dict) else []
    else:
        picked, value, rows = entry.get("token"), entry.get("logprob"), entry.get("top_logprobs")
        pairs = [(row.get("token"), row.get("logprob")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if not isinstance(picked, str) or not pairs:
        raise ValueError("it names no likeliest tokens")
    known: dict[str, float] = {}
    for token, logprob in pairs:
        text = _text(token)
        known[text] = max(_logprob(logprob), known.get(text, -math.inf))
    known = {token: logprob for token, logprob in known.items() if logprob > LEAST}
    if not known:
        raise ValueError("it gives no token a probability")
    bound = sorted(known.values(), reverse=True)[: max(1, most)][-1]
    known.setdefault(_plain(picked), _logprob(value))
    if math.fsum(map(math.exp, known.values())) > 1 + ROUNDING:
        raise ValueError("its probabilities add up to more than 1, so they are none")
    return Listed(known, bound, _plain(picked))


def limits_of(listed: Listed, forms: Sequence[str]) -> Limits:
    """Return what the texts of one answer have together, as far as they are listed.

    >>> limits_of(Listed({" A": -0.5}, -3.0, " A"), [" A"])
    Limits(highest=-0.5, lowest=-0.5)
    >>> limits_of(Listed({" A": -0.5}, -3.0, " A"), [" B"])
    Limits(highest=-3.0, lowest=None)
    """
    seen = [listed.logprobs[form] for form in forms if form in listed.logprobs]
    lowest = _added(seen) if seen else None
    return Limits(_added([*seen, *[listed.bound] * (len(forms) - len(seen))]), lowest)


def echoed_answer(content: dict[str, JsonValue], *, prompt: str, answer: str) -> tuple[float, int]:
    """Return the log-probability of the end of a prompt that was echoed, and how many tokens it is.

    `answer` is that end, from the space before it on. Raises ValueError where the echo is not the prompt, or no token begins where the answer does.
    """
    found = _logprobs_of(content)
    tokens, values = found.get("tokens"), found.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise ValueError("it gives no log-probabilities of the prompt's own tokens")
    text = _choice(content).get("text")
    if not isinstance(text, str) or prompt not in text:
        raise ValueError("it does not echo the prompt as it was sent")
    texts = [_text(token) for token in tokens]
    # Behind the prompt stands what was generated: a token, nothing, or a token that shows as nothing.
    for end in (-1, None) if text.partition(prompt)[2] else (None, -1):
        count = _tokens_of_end(texts[:end], answer)
        if count is not None:
            return math.fsum(_logprob(value) for value in values[:end][-count:]), count
    raise ValueError("no token begins where the answer does")


def usage_of(content: dict[str, JsonValue]) -> Usage | None:
    """Return the tokens that the server counted; None where it tells none, ValueError where they are no counts."""
    usage = content.get("usage")
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise ValueError("its count of tokens is no count")  # noqa: TRY004 - as below
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens") or 0))


def most_tokens(*texts: str) -> int:
    """Return how many tokens a server can mean that is sent these texts as one prompt.

    >>> most_tokens("The answer is", " red")
    81
    """
    return sum(len(text.encode()) for text in texts) + OVERHEAD_TOKENS


def refuse_wild(counted: Usage, sent: Usage) -> None:
    """Raise ValueError where a server counts many times the tokens that it can have been sent and asked for."""
    if counted.input_tokens > WILD * sent.input_tokens or counted.output_tokens > WILD * sent.output_tokens:
        raise ValueError(
            f"it counts {counted.input_tokens:,} tokens read and {counted.output_tokens:,} written, where at most "
            f"{sent.input_tokens:,} and {sent.output_tokens:,} were asked for"
        )


def name_in(content: dict[str, JsonValue], field: str) -> str | None:
    """Return what the server calls itself or its model in a field; None where it is absent or no short plain word."""
    value = content.get(field)
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def _choice(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    choice = _item(content.get("choices"))
    if not isinstance(choice, dict):
        raise ValueError("its reply has no answer in it")  # noqa: TRY004 - what a server sends is a value
    return choice


def _logprobs_of(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    found = _choice(content).get("logprobs")
    if not isinstance(found, dict):
        raise ValueError("it gives no log-probabilities")  # noqa: TRY004 - as above
    return found


def _first(rows: JsonValue, key: str) -> dict[str, Any]:  # Any: JSON
    entry = _item(rows)
    if not isinstance(entry, dict) or key not in entry:
        raise ValueError("it generated nothing")
    return entry


def _item(rows: JsonValue) -> JsonValue:
    return rows[0] if isinstance(rows, list) and rows else None


def _text(token: JsonValue) -> str:
    if not isinstance(token, str):
        raise ValueError("it lists a token that is no text")  # noqa: TRY004 - as above
    return _plain(token)


def _plain(token: str) -> str:
    """Return a token with the space and the line break written as such.

    >>> _plain("\u0120A"), _plain("\u2581A"), _plain(" A")
    (' A', ' A', ' A')
    """
    return token.translate(_SPACES)


def _count(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_TOKENS:
        raise ValueError("its count of tokens is no count")
    return value


def _logprob(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value > ROUNDING:
        raise ValueError("a log-probability is none")
    return float(value)


def _added(logprobs: Sequence[float]) -> float:
    highest = max(logprobs)
    return highest + math.log(math.fsum(math.exp(value - highest) for value in logprobs)) if len(logprobs) > 1 else highest


def _tokens_of_end(tokens: Sequence[str], end: str) -> int | None:
    """Return how many of the last tokens make up `end`; None where none begins there, or where nothing comes before it.

    Spaces are left out of the comparison, since some vocabularies show a token without the space before it.

    >>> _tokens_of_end(["Answer", ":", " red", " stone"], " red stone"), _tokens_of_end(["Answer", ": red"], " red")
    (2, None)
    """
    wanted, made, count = end.replace(" ", ""), "", 0
    while count < len(tokens) and (len(made) < len(wanted) or not tokens[-1 - count].strip(" ")):
        made = tokens[-1 - count].replace(" ", "") + made
        count += 1
    return count if made == wanted and 0 < count < len(tokens) else None
