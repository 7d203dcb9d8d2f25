"""What does a causal language model write?  Token by token, from a cache of what was read, each text by random numbers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from evalspec.artifacts.journal import Generated
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, EncodedQuestion
from evalspec.scoring.arithmetic import products
from evalspec.scoring.causal_lm import CausalLM, Reading
from evalspec.scoring.draws import uniforms
from evalspec.scoring.forward_pass import cache_for, cache_name
from evalspec.scoring.tokens import Decode, not_finite

BLOCK = 512
"""Probabilities that are summed together before a drawn number is looked up among the sums."""

LOOK_BACK = 4
"""Tokens, beyond one for each byte of the longest stop text, in which a stop text is looked for after each step."""


class NotFiniteError(ValueError):
    """A model gives no finite probability; `place` is the text of the batch."""

    def __init__(self, place: int) -> None:
        super().__init__(f"text {place} has no finite probability")
        self.place = place


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """What is read, and the random numbers (T,) that decide the text behind it, one a token."""

    question: EncodedQuestion
    uniforms: NDArray[np.float64]


def texts_of(
    lm: CausalLM, batch: Sequence[tuple[AskedQuestion, EncodedQuestion]], *, work: BenchmarkWork, weights: str, reading: Reading | None = None
) -> list[Generated]:
    """Return the text that a model with these weights writes for each question; raises ScoringError."""
    scoring = work.scoring
    assert scoring.method == "sampled"
    prompts = [
        Prompt(encoded, uniforms(seed=work.seed, weights=weights, question=asked.sha256, repeat=asked.repeat, count=scoring.max_tokens))
        for asked, encoded in batch
    ]
    try:
        return write(lm, prompts, scoring, reading)
    except NotFiniteError as error:
        raise not_finite(lm.vocabulary.model, batch[error.place][0].name) from error


def write(lm: CausalLM, batch: Sequence[Prompt], scoring: SampledScoring, reading: Reading | None = None) -> list[Generated]:
    """Return a text for each prompt; raises NotFiniteError."""
    drafts = [_Draft() for _ in batch]
    with torch.inference_mode(), products(lm.model, lm.model.dtype):
        rows = _rows_of(lm, [prompt.question for prompt in batch], reading or Reading())
        logits, active = rows.first(), list(range(len(batch)))
        for step in range(scoring.max_tokens):
            drawn = np.array([batch[place].uniforms[step] for place in active])
            tokens = choose(logits, drawn, scoring.temperature, active)
            for place, token in zip(active, tokens, strict=True):
                drafts[place].add(token, lm, scoring.stop)
            left = [number for number, place in enumerate(active) if drafts[place].ended is None]
            if not left or step + 1 == scoring.max_tokens:
                break
            if len(left) <= len(active) // 2:  # rows that are at their end are computed along until they are as many as the others
                rows.keep(left)
                active, tokens = [active[number] for number in left], [tokens[number] for number in left]
            logits = rows.next(tokens)
    return [draft.written(lm) for draft in drafts]


def choose(logits: Tensor, uniforms: NDArray[np.float64], temperature: float, places: Sequence[int]) -> list[int]:
    """Return a token for each row of float32 logits (R, V): at temperature 0 the likeliest, else one drawn by the row's number.

    That is the token at which the number is passed when the probabilities, raised to 1/temperature and scaled to sum to 1, are summed in float64
    in the order of the vocabulary. Raises NotFiniteError naming one of `places`, those of the rows.
    """
    best = logits.max(dim=-1).values
    bad = torch.nonzero(~torch.isfinite(best)).flatten().tolist()
    if bad:
        raise NotFiniteError(places[bad[0]])
    if not temperature:
        numbers = torch.arange(logits.shape[1], device=logits.device)
        return [int(token) for token in torch.where(logits == best[:, None], numbers, logits.shape[1]).min(dim=-1).values.tolist()]
    weights = torch.exp((logits.double() - best.double()[:, None]) / temperature)
    blocks = torch.nn.functional.pad(weights, (0, -logits.shape[1] % BLOCK)).reshape(len(weights), -1, BLOCK)
    sums = blocks.sum(dim=-1).cpu().numpy()  # sums and not a running sum, which accelerators do not give the same way twice
    rest = uniforms * sums.sum(axis=1)
    block, rest = _passed(sums, rest)
    inner, _ = _passed(blocks[torch.arange(len(block)), torch.from_numpy(block)].cpu().numpy(), rest)
    return [int(token) for token in block * BLOCK + inner]


def _passed(weights: NDArray[np.float64], rest: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return per row (R, N) the first place at which the running sum passes `rest` (R,), and what is left of it there."""
    running = np.cumsum(weights, axis=1)
    last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)  # rounding may leave a rest that nothing passes
    place = np.minimum((running <= rest[:, None]).sum(axis=1), last)
    rows = np.arange(len(place))
    return place, np.maximum(rest - (running[rows, place] - weights[rows, place]), 0.0)


@dataclass(slots=True)
class _Draft:
    """A text under way."""

    ids: list[int] = field(default_factory=list)
    ended: Literal["end", "stop"] | None = None
    text: str | None = None

    def add(self, token: int, lm: CausalLM, stop: Sequence[str]) -> None:
        if self.ended is not None:
            return
        self.ids.append(token)
        if token in lm.vocabulary.ends:
            self.ended = "end"
        elif stop:
            self._look_for(stop, _decoder(lm))

    def _look_for(self, stop: Sequence[str], decode: Decode) -> None:
        tail = decode(self.ids[-(max(len(one.encode()) for one in stop) + LOOK_BACK) :])
        if any(one in tail for one in stop):
            text = decode(self.ids)
            found = [place for one in stop if (place := text.find(one)) >= 0]
            if found:
                self.ended, self.text = "stop", text[: min(found)]

    def written(self, lm: CausalLM) -> Generated:
        ids = self.ids[:-1] if self.ended == "end" else self.ids
        text = _decoder(lm)(ids) if self.text is None else self.text
        return Generated(text=text, ended=self.ended or "limit", tokens=len(self.ids))


def _decoder(lm: CausalLM) -> Decode:
    assert lm.vocabulary.decode is not None
    return lm.vocabulary.decode


def _rows_of(lm: CausalLM, questions: Sequence[EncodedQuestion], reading: Reading) -> _Cached | _Whole:
    return _Cached(lm, questions, reading) if lm.abilities.cache else _Whole(lm, [question.rows[0] for question in questions])


def _padded(lm: CausalLM, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return the rows as ids (R, T), padded on the right, and their lengths (R,)."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=lm.model.device)
    return ids, torch.tensor([len(row) for row in rows], device=lm.model.device)


class _Cached:
    """Rows that go on from the model's cache; behind the end of a shorter one is a gap, which no later token sees."""

    def __init__(self, lm: CausalLM, questions: Sequence[EncodedQuestion], reading: Reading) -> None:
        self._lm = lm
        self._before = len(reading.sharing.prefix)
        self._ids, self._lengths = _padded(lm, [question.rows[0][self._before :] for question in questions])
        columns = torch.arange(self._ids.shape[1], device=lm.model.device)
        self._seen = torch.nn.functional.pad((columns < self._lengths[:, None]).long(), (self._before, 0), value=1)
        self._name = str(cache_name(lm.model))
        rows = len(questions)
        self._cache = cache_for(lm.model, reading.layers, rows)[self._name] if reading.layers else DynamicCache(config=lm.model.config)

    def first(self) -> Tensor:
        """Read the rows; returns the logits (R, V) behind each."""
        rows, width = self._ids.shape
        columns = torch.arange(width, device=self._ids.device)
        given: dict[str, Any] = {"input_ids": self._ids, "use_cache": True, self._name: self._cache}
        if self._before:
            given["position_ids"] = (self._before + columns).expand(rows, -1)
        return self._lm.logits_at(columns == self._lengths[:, None] - 1, given)

    def next(self, tokens: Sequence[int]) -> Tensor:
        """Read a token of each row; returns the logits (R, V) behind it."""
        self._seen = torch.nn.functional.pad(self._seen, (0, 1), value=1)
        given: dict[str, Any] = {
            "input_ids": torch.tensor(tokens, device=self._ids.device)[:, None],
            "position_ids": (self._before + self._lengths)[:, None],
            "use_cache": True,
            self._name: self._cache,
        }
        if not bool(self._seen.all()):
            given["attention_mask"] = self._seen
        self._lengths = self._lengths + 1
        logits: Tensor = self._lm.model(**given).logits[:, -1].float()
        return logits

    def keep(self, places: Sequence[int]) -> None:
        """Go on with these rows alone."""
        chosen = torch.tensor(places, device=self._ids.device)
        self._cache.batch_select_indices(chosen)
        self._ids, self._lengths, self._seen = self._ids[chosen], self._lengths[chosen], self._seen[chosen]


class _Whole:
    """Rows that a model without a cache reads from their beginning for every token."""

    def __init__(self, lm: CausalLM, rows: Sequence[tuple[int, ...]]) -> None:
        self._lm = lm
        self._rows = list(rows)

    def first(self) -> Tensor:
        """Read the rows; returns the logits (R, V) behind each."""
        ids, lengths = _padded(self._lm, self._rows)
        kept = torch.arange(ids.shape[1], device=ids.device) == lengths[:, None] - 1
        return self._lm.logits_at(kept, {"input_ids": ids, "use_cache": False})

    def next(self, tokens: Sequence[int]) -> Tensor:
        """Read a token of each row; returns the logits (R, V) behind it."""
        self._rows = [(*row, token) for row, token in zip(self._rows, tokens, strict=True)]
        return self.first()

    def keep(self, places: Sequence[int]) -> None:
        """Go on with these rows alone."""
        self._rows = [self._rows[place] for place in places]
