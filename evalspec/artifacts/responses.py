"""What did the models answer?  Read-only arrays per benchmark, with their shapes checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Identifier
from evalspec.artifacts.protocol import Pool, Route
from evalspec.artifacts.samples import SampleMethod
from evalspec.artifacts.scores import Score
from evalspec.artifacts.served import ServerFacts
from evalspec.artifacts.study import MissingRule


class Reason(IntEnum):
    """Why a score is missing; `NONE` where it is not."""

    NONE = 0
    UNDETERMINED = 1  # two or more choices share the highest probability exactly
    NOT_ANSWERED = 2  # recorded as missing
    NOT_RECORDED = 3  # the recorded table has no row for this question
    CENSORED = 4  # the best choice cannot be told from the tokens that a server lists
    REFUSED = 5  # the generated text refuses, by a declared pattern, and no rule finds a choice in it
    UNPARSEABLE = 6  # no declared rule finds a choice in the generated text


class SelfCheck(Artifact):
    """What changed when questions were scored again one at a time: a measure of how fragile the arithmetic is."""

    questions: int
    flips: int
    max_difference: float
    p999_difference: float


class TextCheck(Artifact):
    """What changed when texts were generated again one at a time: in how many another choice was read, and how many are not the same text.

    `rewritten` is None where no texts are kept.
    """

    texts: int
    flips: int
    rewritten: int | None = None


class GeneratedFacts(Artifact):
    """The texts of one model on one benchmark: how many refuse or hold no choice, how they ended, and their tokens.

    A text ends by the model's own end, with one of the token ids `ends`, by a stop text or by the limit.
    """

    texts: int
    refused: int
    unparseable: int
    at_end: int
    at_stop: int
    at_limit: int
    tokens: int
    ends: tuple[int, ...] = ()
    check: TextCheck | None = None


class Origin(Artifact):
    """How one model's responses to one benchmark came about; `earlier_route` is how in the earlier run that they are taken from."""

    model: Identifier
    benchmark: Identifier
    route: Route
    earlier_route: Literal["scored_here", "recorded", "server"] | None = None
    precision: str
    chosen: dict[str, int] = Field(default_factory=dict, description="How often each letter was chosen.")
    letters: tuple[tuple[str, int], ...] = ()
    first_ids: tuple[int, ...] = ()
    journal_sha256: Digest | None = None
    recorded_sha256: Digest | None = None
    letter_mass: float | None = None
    fragile: int | None = None
    fragile_gap: float | None = None
    self_check: SelfCheck | None = None
    server: ServerFacts | None = None
    generated: GeneratedFacts | None = None
    versions: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTokens:
    """Answer distributions over each model's vocabulary, their most probable tokens alone.

    `tokens` (M, Q, K) int32, -1 where a row has fewer, or where a model has none; `probabilities` (M, Q, K) float64, NaN there. What a row lacks
    to 1 belongs to all other tokens. Raises ValueError when shapes or values do not fit together.
    """

    tokens: NDArray[np.int32]
    probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.tokens.ndim != 3 or self.tokens.shape != self.probabilities.shape:
            raise ValueError(f"tokens and probabilities must be (M, Q, K); got {self.tokens.shape} and {self.probabilities.shape}")
        known = self.tokens >= 0
        if not np.array_equal(known, ~np.isnan(self.probabilities)):
            raise ValueError("a probability must be missing exactly where a token is")
        if np.any((self.probabilities[known] < 0) | (self.probabilities[known] > 1)) or np.any(np.nansum(self.probabilities, axis=2) > 1 + 1e-6):
            raise ValueError("the probabilities of a row must lie in [0, 1] and sum to no more than 1")
        for array in (self.tokens, self.probabilities):
            array.setflags(write=False)

    def at(self, places: Sequence[int]) -> AnswerTokens:
        """Return the distributions of the questions at these places, in this order."""
        return AnswerTokens(self.tokens[:, list(places)], self.probabilities[:, list(places)])


@dataclass(frozen=True, slots=True)
class BenchmarkResponses:
    """Responses of M models to Q questions of one benchmark in K repeats; C is the largest number of choices.

    `scores` (M, Q, K) float64 in [0, 1], NaN where missing; `reasons` (M, Q, K) int8 says why (`Reason`);
    `choices` (M, Q, K) int16 is the index of the chosen option, -1 where unknown; `logprobs` (M, Q, C) float64 in nats, NaN where a
    question has fewer choices or the model has none, or None when no model has any; `weights` (Q,) average 1.
    `strata` says that subjects are groups that the study asks about; `clusters` holds a label per question where the study declares clusters
    and is empty where it does not; `flags` holds each question's known problems, or is empty where none is flagged; `sample` is how the
    questions were drawn; `pool` is what they were drawn from where the study asks about that pool alone; `distributions` are there where the
    study asks for them; `score` is what the study declares of scores that are not right and wrong answers; `texts` (M, Q, K) are generated
    answers, None where a model wrote none or where they are not disclosed.
    Raises ValueError when shapes or values do not fit together.
    """

    benchmark: str
    models: tuple[str, ...]
    questions: tuple[str, ...]
    subjects: tuple[str | None, ...]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    reasons: NDArray[np.int8]
    choices: NDArray[np.int16]
    logprobs: NDArray[np.float64] | None
    missing: MissingRule
    strata: bool = False
    clusters: tuple[str, ...] = ()
    flags: tuple[tuple[str, ...], ...] = ()
    sample: SampleMethod = "all"
    pool: Pool | None = None
    distributions: AnswerTokens | None = None
    score: Score | None = None
    texts: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        m, q = len(self.models), len(self.questions)
        if len(set(self.models)) != m or len(set(self.questions)) != q:
            raise ValueError("model ids and question ids must each be distinct")
        _check_shapes(self, m, q)
        if self.distributions is not None and self.distributions.tokens.shape[:2] != (m, q):
            raise ValueError(f"answer distributions must be ({m}, {q}, K); got {self.distributions.tokens.shape}")
        present = ~np.isnan(self.scores)
        if not np.array_equal(present, self.reasons == Reason.NONE):
            raise ValueError("a score must be missing exactly where a reason is given")
        if np.any((self.scores[present] < 0) | (self.scores[present] > 1)):
            raise ValueError("scores must lie in [0, 1]")
        for array in (self.weights, self.scores, self.reasons, self.choices, self.logprobs, self.texts):
            if array is not None:
                array.setflags(write=False)

    def settled(self) -> NDArray[np.float64]:
        """Return scores (M, Q) averaged over repeats, with missing ones settled by the declared rule.

        `wrong` counts a missing score as the worst; `complete_case` leaves NaN for the analysis to drop; `error` has been refused before.
        """
        scores = np.where(np.isnan(self.scores), self.worst, self.scores) if self.missing == "wrong" else self.scores
        return np.asarray(scores.mean(axis=2), dtype=np.float64)

    @property
    def lower_is_better(self) -> bool:
        """Whether less of the score is better."""
        return self.score is not None and self.score.lower_is_better

    @property
    def worst(self) -> float:
        """The worst score that there can be."""
        return 1.0 if self.lower_is_better else 0.0

    def merits(self) -> NDArray[np.float64]:
        """Return settled scores (M, Q) counted so that more is better: as they are, or what they are short of 1."""
        return 1.0 - self.settled() if self.lower_is_better else self.settled()

    def at(self, places: Sequence[int]) -> BenchmarkResponses:
        """Return the responses to the questions at these places, in this order."""
        chosen = list(places)
        return replace(
            self,
            questions=tuple(self.questions[place] for place in chosen),
            subjects=tuple(self.subjects[place] for place in chosen),
            clusters=tuple(self.clusters[place] for place in chosen) if self.clusters else (),
            flags=tuple(self.flags[place] for place in chosen) if self.flags else (),
            weights=self.weights[chosen],
            scores=self.scores[:, chosen],
            reasons=self.reasons[:, chosen],
            choices=self.choices[:, chosen],
            logprobs=None if self.logprobs is None else self.logprobs[:, chosen],
            distributions=None if self.distributions is None else self.distributions.at(chosen),
            texts=None if self.texts is None else self.texts[:, chosen],
        )

    def missing_counts(self) -> dict[str, dict[str, int]]:
        """Return, per model, how many scores are missing for which reason (lower-case name of `Reason`)."""
        return {
            model: {reason.name.lower(): count for reason in Reason if reason and (count := int(np.sum(self.reasons[row] == reason)))}
            for row, model in enumerate(self.models)
        }


def _check_shapes(responses: BenchmarkResponses, m: int, q: int) -> None:
    if responses.scores.ndim != 3 or responses.scores.shape[:2] != (m, q) or responses.scores.shape[2] < 1:
        raise ValueError(f"scores must be ({m}, {q}, K); got {responses.scores.shape}")
    for name in ("reasons", "choices"):
        if getattr(responses, name).shape != responses.scores.shape:
            raise ValueError(f"{name} must be {responses.scores.shape}; got {getattr(responses, name).shape}")
    if responses.logprobs is not None and (responses.logprobs.ndim != 3 or responses.logprobs.shape[:2] != (m, q)):
        raise ValueError(f"logprobs must be ({m}, {q}, C); got {responses.logprobs.shape}")
    if responses.texts is not None and responses.texts.shape != responses.scores.shape:
        raise ValueError(f"texts must be {responses.scores.shape}; got {responses.texts.shape}")
    if responses.weights.shape != (q,) or len(responses.subjects) != q:
        raise ValueError(f"weights and subjects must have one entry for each of {q} questions")
    if len(responses.clusters) not in (0, q) or len(responses.flags) not in (0, q):
        raise ValueError(f"clusters and flags must be empty or have one entry for each of {q} questions")


@dataclass(frozen=True, slots=True)
class Responses:
    """Responses to every benchmark of a study, with how each came about."""

    benchmarks: tuple[BenchmarkResponses, ...]
    origins: tuple[Origin, ...]
    protocol_sha256: str

    def benchmark(self, identifier: str) -> BenchmarkResponses:
        """Return the responses to one benchmark; raises KeyError when there is none of that id."""
        return {entry.benchmark: entry for entry in self.benchmarks}[identifier]

    def origin(self, model: str, benchmark: str) -> Origin:
        """Return how that model's responses to that benchmark came about; raises KeyError when there are none."""
        return {(origin.model, origin.benchmark): origin for origin in self.origins}[model, benchmark]
