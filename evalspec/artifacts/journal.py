"""Which results can be used again?  The content address of a job, and the chained lines in which a journal keeps its batches.

A line is `{"body": ..., "key": ..., "mac": ..., "previous": ...}`: `mac` is HMAC-SHA-256, under a secret of the user who scores, over `previous`
and the body; `previous` is the `mac` of the line before (the job's id for the first); `key` names the secret and tells nothing of it. Without the
secret nobody can write a line, or change one or drop one between two others, that is taken for scored here. With it, anybody can: the journal
shows whoever scores what they scored themselves, and shows others nothing.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from evalspec.artifacts.base import Artifact, Digest, FormatOne, Precision, sha256_hex
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.served import Reply, ServerAbilities

Count = Annotated[int, Field(ge=0, le=1 << 53)]
ROUNDING = 1e-3
"""How far above 1 probabilities may add up that were computed in 32 bits over a vocabulary."""

Length = Annotated[int, Field(ge=1, le=1 << 53)]
Seconds = Annotated[float, Field(ge=0)]
LogProbability = Annotated[float, Field(le=1.0)]
"""In nats; above 0 by rounding at most."""


class JobKey(Artifact):
    """Everything that can change a job's results but the arithmetic of the machine; `digest()` is the job's id."""

    format: FormatOne = 1
    weights_sha256: Digest
    tokenizer_sha256: Digest
    precision: Precision
    method: Literal["letter", "option"]
    prompt: str
    preambles_sha256: Digest | None = None
    chat: bool = False
    distribution: int | None = None
    batches: BatchRule | Literal["one_by_one"]
    questions: tuple[Digest, ...]


class SessionRecord(Artifact):
    """A worker opened the journal of a job: what it read, with which libraries, on what."""

    kind: Literal["session"] = "session"
    questions: Count
    batches: Count
    plan_sha256: Digest = Field(description="SHA-256 of the batches: which questions, in which order, and what their rows share.")
    prefix_tokens: Count = Field(default=0, description="The longest beginning, in tokens, that prompts have in common and that was read once.")
    branches: bool = Field(default=False, description="Whether the answers of a question were branches of one row.")
    attention: str = Field(description="Which attention computed, by transformers' name, but for rows that were laid end to end.")
    packing: str | None = Field(default=None, description="What kept rows apart that were laid end to end, where some were.")
    letters: tuple[tuple[str, Count], ...] = ()
    first_ids: tuple[Count, ...]
    head: str
    dtype: str
    versions: dict[str, str]
    device: str
    threads: Count
    server: ServerAbilities | None = Field(default=None, description="What a server was found to give, where one was asked.")
    start_seconds: Seconds | None = Field(default=None, description="To import the libraries, where this model was the first of its worker.")
    load_seconds: Seconds | None = Field(default=None, description="To load the model, where this session began with that.")
    ends: tuple[Count, ...] = Field(default=(), description="The token ids that end a text, where texts are generated.")


class TopTokens(Artifact):
    """A distribution over the vocabulary: its most probable tokens, in order, and their probabilities; what is left belongs to all others."""

    tokens: tuple[Count, ...]
    probabilities: tuple[Annotated[float, Field(ge=0, le=1)], ...]


class SampledKey(Artifact):
    """Everything that can change the texts that a job generates, and how they are read where the texts are not kept."""

    format: FormatOne = 1
    weights_sha256: Digest
    tokenizer_sha256: Digest
    precision: Precision
    method: Literal["sampled"] = "sampled"
    draws: Literal["inverse_cdf_v1"] = "inverse_cdf_v1"
    seed: int
    temperature: float
    max_tokens: int
    stop: tuple[str, ...]
    prompt: str
    preambles_sha256: Digest | None = None
    chat: bool = False
    batches: BatchRule | Literal["one_by_one"]
    questions: tuple[Digest, ...]
    repeats: tuple[Count, ...] = Field(description="The repeat of each question.")
    reading_sha256: Digest | None = Field(default=None, description="Of the rules by which answers are read, where no text is kept.")


class Generated(Artifact):
    """A generated answer: its text, or, of questions that stay secret, what was read off it; how it ended, and its tokens."""

    text: str | None = None
    choice: Count | None = None
    refused: bool = False
    ended: Literal["end", "stop", "limit"]
    tokens: Length


class BatchRecord(Artifact):
    """The results of one batch: per question the summed log-probability, in nats, of each answer, with its tokens and UTF-8 bytes.

    Where answers are generated, they stand in `generated`, and there are no log-probabilities.

    Where a server names only its likeliest tokens, `logprobs` are what the answers have at most, and `lowest` what they have at least, None where
    nothing is known but that.
    """

    kind: Literal["batch"] = "batch"
    index: Count
    questions: tuple[Count, ...] = Field(description="Positions in the job's list of questions.")
    logprobs: tuple[tuple[LogProbability, ...], ...] = ()
    token_counts: tuple[tuple[Length, ...], ...] = ()
    byte_counts: tuple[tuple[Length, ...], ...] = ()
    lowest: tuple[tuple[LogProbability | None, ...], ...] = ()
    distributions: tuple[TopTokens, ...] = Field(default=(), description="The answer distribution of each question, where it was asked for.")
    padded_tokens: Count
    real_tokens: Count
    packed: bool = Field(default=False, description="Whether its rows were laid end to end, so that nothing was padded.")
    seconds: Seconds
    peak_bytes: Count | None = Field(default=None, description="The most memory in use since the model was loaded, where the system tells.")
    parts: Length = Field(default=1, description="In how many parts it was computed, more than one where memory ran out.")
    reply: Reply | None = None
    generated: tuple[Generated, ...] = ()


Record = Annotated[SessionRecord | BatchRecord, Field(discriminator="kind")]
_RECORD: TypeAdapter[SessionRecord | BatchRecord] = TypeAdapter(Record)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What the journal holds of one job: its sessions, its batches by index, and where its chain ends."""

    job: str
    sessions: tuple[SessionRecord, ...] = ()
    batches: dict[int, BatchRecord] = field(default_factory=dict)
    tip: str = ""
    size: int = 0

    @property
    def answered(self) -> int:
        """How many questions have results."""
        return sum(len(batch.questions) for batch in self.batches.values())

    @property
    def complete(self) -> bool:
        """Whether every batch of the plan is there."""
        return bool(self.sessions) and len(self.batches) == self.sessions[0].batches and self.answered == self.sessions[0].questions

    def fits(self, answers: Sequence[int]) -> bool:
        """Return whether the results can be those of questions with so many answers each, as every record that was not forged is.

        A question whose answer is generated has none beforehand.
        """
        rows = ((position, values) for batch in self.batches.values() for position, values in _compared(batch))
        right = all(session.questions == len(answers) for session in self.sessions)
        return right and all(len(values) == answers[position] for position, values in rows)

    def content_sha256(self) -> str:
        """Return the digest of the results alone: no clock, no device, no order of writing."""
        rows = [
            [
                batch.questions,
                batch.logprobs,
                batch.token_counts,
                batch.byte_counts,
                *([batch.lowest] if batch.lowest else []),
                *([[top.tokens, top.probabilities] for top in batch.distributions]),
                *(one.model_dump(mode="json") for one in batch.generated),
            ]
            for _, batch in sorted(self.batches.items())
        ]
        return sha256_hex(_compact([self.job, rows]).encode())


class ForeignLineError(ValueError):
    """A line was written under another secret, or under none."""


def sealed_line(record: SessionRecord | BatchRecord, previous: str, secret: bytes) -> tuple[bytes, str]:
    """Return the line that carries `record` behind `previous`, and its authentication code."""
    body = record.model_dump(mode="json")
    mac = _mac(secret, previous, body)
    return _compact({"body": body, "key": _name(secret), "mac": mac, "previous": previous}).encode() + b"\n", mac


def read_lines(content: bytes, job: str, secret: bytes) -> JobRecord:
    """Return what the lines hold; a torn last line, one without its line feed, is left out of `size`.

    Raises ValueError naming the line that does not continue the chain, ForeignLineError for one under another secret.
    """
    sessions: list[SessionRecord] = []
    batches: dict[int, BatchRecord] = {}
    answered: set[int] = set()
    tip, name = job, _name(secret)
    size = content.rfind(b"\n") + 1
    for number, line in enumerate(content[:size].split(b"\n")[:-1], start=1):
        record, tip = _unsealed(line, tip, (secret, name), number)
        if isinstance(record, SessionRecord):
            if sessions and _plan(record) != _plan(sessions[0]):
                raise ValueError(f"line {number} opens the journal for other batches")
            sessions.append(record)
        elif not sessions or record.index in batches or record.index >= sessions[0].batches or not _fits(record, sessions[0], answered):
            raise ValueError(f"line {number} holds a batch that the plan does not have or that was there before")
        else:
            batches[record.index] = record
            answered |= set(record.questions)
    return JobRecord(job, tuple(sessions), batches, tip, size)


def _unsealed(line: bytes, previous: str, named: tuple[bytes, str], number: int) -> tuple[SessionRecord | BatchRecord, str]:
    secret, name = named
    try:
        parts = json.loads(line)
        body, key, mac = parts["body"], parts.get("key"), str(parts.get("mac"))
        continues = parts["previous"] == previous and hmac.compare_digest(mac.encode(), _mac(secret, previous, body).encode())
        record = _RECORD.validate_json(_compact(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"line {number} is not a line of this journal") from error
    if key != name:
        raise ForeignLineError(f"line {number} was written under another secret")
    if not continues:
        raise ValueError(f"line {number} does not continue the line before it")
    return record, mac


def _name(secret: bytes) -> str:
    return hmac.digest(secret, b"the name of a journal's secret", "sha256").hex()[:16]


def _mac(secret: bytes, previous: str, body: object) -> str:
    return hmac.digest(secret, _compact([previous, body]).encode(), "sha256").hex()


def _compared(batch: BatchRecord) -> Iterator[tuple[int, Sequence[float]]]:
    """Yield the position of each question of a batch with its log-probabilities; none where its answer was generated."""
    yield from zip(batch.questions, ((),) * len(batch.generated) if batch.generated else batch.logprobs, strict=True)


def _fits(batch: BatchRecord, session: SessionRecord, answered: set[int]) -> bool:
    """Return whether a batch answers questions of the session that no other one has, with as many numbers of each sort for each."""
    positions = set(batch.questions)
    answers = batch.generated or batch.logprobs
    distinct = len(positions) == len(batch.questions) == len(answers) and positions.isdisjoint(answered)
    alike = not batch.packed or (session.packing is not None and batch.padded_tokens == batch.real_tokens)
    return distinct and alike and _is_whole(batch) and all(position < session.questions for position in positions)


def _plan(session: SessionRecord) -> tuple[int, int, str]:
    """Return what all sessions of a job have in common."""
    return session.questions, session.batches, session.plan_sha256


def _is_whole(batch: BatchRecord) -> bool:
    """Return whether a batch has either generated answers alone, or as many numbers of each sort for each question."""
    numbers = (batch.logprobs, batch.token_counts, batch.byte_counts, batch.lowest or batch.logprobs)
    if batch.generated:
        return not any(numbers) and not batch.distributions and not batch.packed
    shapes = {tuple(map(len, some)) for some in numbers}
    distributed = len(batch.distributions) in {0, len(batch.questions)} and all(map(_is_distribution, batch.distributions))
    return distributed and len(shapes) == 1 and 0 not in shapes.pop()


def _is_distribution(top: TopTokens) -> bool:
    """Return whether these are as many probabilities as tokens, each token once, which together have no more than all by more than rounding."""
    return len(set(top.tokens)) == len(top.tokens) == len(top.probabilities) and sum(top.probabilities) <= 1 + ROUNDING


def _compact(value: Mapping[str, object] | Sequence[object]) -> str:
    """Return JSON on one line, with sorted keys and numbers that read back to the same bits; raises ValueError on NaN."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
