"""What is declared, asked and told about a model that answers behind a server?  Nothing here identifies weights: nobody outside can."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from evalspec.artifacts.base import Artifact

Endpoint = Annotated[str, Field(pattern=r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$", max_length=500)]
KeyVariable = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*_API_KEY$", max_length=100)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Amount = Annotated[float, Field(ge=0)]
Charge = Annotated[float, Field(ge=0, le=1e9)]
Tokens = Annotated[int, Field(ge=0, le=10**9)]
ServerName = Annotated[str, Field(max_length=200)]

DEFAULT_KEY_VARIABLE = "EVALSPEC_API_KEY"
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}|(?<!\d)20\d{6}(?!\d)|[-_]\d{4}(?=$|[-_.:@])|[@:][0-9a-f]{7,64}$")
_LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


class ServedModel(Artifact):
    """A model behind a server that speaks the OpenAI API; which weights answer under its name cannot be verified."""

    endpoint: Endpoint
    model: Annotated[str, Field(min_length=1, max_length=200)]
    api_key_env: KeyVariable | None = None
    merge_variants: bool = Field(
        default=False,
        description="Whether a letter counts with and without the space before it, as in `A` and ` A`, and their probabilities are added.",
    )

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key for the server."""
        return self.api_key_env or DEFAULT_KEY_VARIABLE


class Price(Artifact):
    """What a server charges for tokens, as the study's author knows it."""

    input: Charge
    output: Charge
    per: Annotated[float, Field(ge=1, le=1e12)] = 1e6
    currency: Currency

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return what so many tokens cost."""
        return (self.input * input_tokens + self.output * output_tokens) / self.per


class ServedIdentity(Artifact):
    """Which name at which server a model id stands for; the weights behind the name are nobody's claim."""

    kind: Literal["served"] = "served"
    endpoint: str
    model: str
    merge_variants: bool = False
    alias: bool = Field(description="Whether the name has neither a date nor a revision, so that other weights may answer under it tomorrow.")
    weights: Literal["not verifiable"] = "not verifiable"
    origin: str

    @property
    def host(self) -> str:
        """The server's name, with its port where it has one."""
        return urlsplit(self.endpoint).netloc


class ServerAbilities(Artifact):
    """What a server was found to give when it was tried out, with a text of ours and before any question.

    `listed` is how many of the likeliest tokens it names; `ids` are the letters' token ids where it tells them; `exact` says that it gives the
    probability of exactly those tokens, `steered` that it picks the likeliest of them. `echo_tokens` is how many tokens it must generate beside
    the echo of a prompt.
    """

    listed: Annotated[int, Field(ge=0, le=1000)] = 0
    ids: tuple[tuple[str, Tokens], ...] = ()
    exact: bool = False
    steered: bool = False
    echo_tokens: Literal[0, 1] | None = None


class Reply(Artifact):
    """How a question's answer came from a server, as the server tells it: names, tokens, and when.

    `requests` counts what was answered, `tries` what was sent; of those, `unanswered` may have been charged and gave nothing.
    """

    asked: str = Field(description="When, UTC.")
    model: ServerName | None = None
    fingerprint: ServerName | None = None
    requests: Annotated[int, Field(ge=1)]
    tries: Annotated[int, Field(ge=1)]
    unanswered: Annotated[int, Field(ge=0)] = 0
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    def cost(self, price: Price) -> float:
        """Return what it cost; a try that was never answered counts as charged for what it sent."""
        sent = self.input_tokens or 0
        return price.cost(sent + self.unanswered * sent / self.requests, self.output_tokens or 0)


class ServerUse(Artifact):
    """What a job took of a server; a count of tokens is None where the server tells none, the cost where the study states no price."""

    requests: int
    tries: int
    unanswered: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Amount | None = None
    currency: Currency | None = None

    @classmethod
    def of(cls, replies: Iterable[Reply], price: Price | None) -> ServerUse:
        """Return the sum over some replies."""
        told = tuple(replies)
        return cls(
            requests=sum(reply.requests for reply in told),
            tries=sum(reply.tries for reply in told),
            unanswered=sum(reply.unanswered for reply in told),
            input_tokens=_sum(reply.input_tokens for reply in told),
            output_tokens=_sum(reply.output_tokens for reply in told),
            cost=None if price is None else sum(reply.cost(price) for reply in told),
            currency=None if price is None else price.currency,
        )


class ServerFacts(Artifact):
    """How one model's answers to one benchmark came from a server, over all of its questions and those asked again.

    `reported` and `fingerprints` are what the server called itself: more than one says that several systems may have answered. `compared` are the
    texts whose probabilities stand for the letter A, where letters are compared; `listed` and `exact` are as in `ServerAbilities`; `censored`
    counts questions of which a letter was not among the listed tokens.
    """

    endpoint: str
    model: str
    chat: bool
    reported: tuple[ServerName, ...]
    fingerprints: tuple[ServerName, ...]
    first: str
    last: str
    compared: tuple[str, ...] = ()
    listed: int | None = None
    exact: bool = False
    censored: int = 0


def identity_of(source: ServedModel) -> ServedIdentity:
    """Return what is known of a served model before it is asked anything.

    >>> identity_of(ServedModel(endpoint="https://llm.example/v1/", model="large-2026-10-01")).origin
    'large-2026-10-01 at llm.example'
    """
    endpoint = source.endpoint.rstrip("/")
    return ServedIdentity(
        endpoint=endpoint,
        model=source.model,
        merge_variants=source.merge_variants,
        alias=is_alias(source.model),
        origin=f"{source.model} at {urlsplit(endpoint).netloc}",
    )


def is_alias(name: str) -> bool:
    """Return whether a model's name has neither a date nor a revision.

    >>> [is_alias(name) for name in ("gpt-4o", "gpt-4o-2024-08-06", "gpt-4-0613", "llama-3-70b", "mistral@0a1b2c3d")]
    [True, False, False, True, False]
    """
    return _DATED.search(name) is None


def is_local(endpoint: str) -> bool:
    """Return whether an endpoint lies on this machine, so that what is sent to it passes no network.

    >>> [is_local(f"http://{host}/v1") for host in ("localhost:8000", "127.0.0.1", "[::1]:80", "127.0.0.1.example", "10.0.0.1")]
    [True, True, True, False, False]
    """
    return _LOCAL.fullmatch(urlsplit(endpoint).hostname or "") is not None


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None where nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
