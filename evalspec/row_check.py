"""Do the recorded rows of scored models fit in themselves?  Choices follow from log-probabilities or texts, scores from choices and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.recomputation import Divergence
from evalspec.artifacts.protocol import CheckpointIdentity, Protocol, ProtocolBenchmark, ProtocolModel, system_of
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import BenchmarkResponses, Reason, Responses
from evalspec.artifacts.study import SampledScoring
from evalspec.extraction import read_answers

FILE = "responses.parquet"


def row_faults(responses: Responses, protocol: Protocol, questions: Mapping[str, Sequence[Question]]) -> tuple[Divergence, ...]:
    """Return every row of a model scored from weights that does not fit in itself; `questions` are those with known keys, by benchmark."""
    scored = {model.id: model for model in protocol.models if isinstance(system_of(model.identity), CheckpointIdentity)}
    return tuple(
        fault
        for entry in responses.benchmarks
        for row, model in enumerate(entry.models)
        if model in scored
        for fault in _faults(entry, (row, scored[model]), protocol.benchmark(entry.benchmark), questions.get(entry.benchmark))
    )


def best_choices(logprobs: NDArray[np.float64]) -> NDArray[np.int16]:
    """Return the likeliest choice of each row (Q, C), -1 on an exact tie; NaN stands beyond a question's choices."""
    values = np.where(np.isnan(logprobs), -np.inf, logprobs)
    return np.where(choice_gaps(logprobs) > 0, values.argmax(axis=1), -1).astype(np.int16)


def choice_gaps(logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the two likeliest choices of each row (Q, C) lie apart."""
    if logprobs.shape[1] < 2:
        return np.full(len(logprobs), np.inf)
    ranked = np.sort(np.where(np.isnan(logprobs), -np.inf, logprobs), axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2], dtype=np.float64)


def letter(choice: int) -> str:
    """Name a choice; -1 is none."""
    return LETTERS[choice] if 0 <= choice < len(LETTERS) else "none"


def _faults(
    entry: BenchmarkResponses, which: tuple[int, ProtocolModel], benchmark: ProtocolBenchmark, questions: Sequence[Question] | None
) -> Iterator[Divergence]:
    row, model = which
    if benchmark.scoring.method != "sampled":
        if benchmark.disclosure != "none" and _logprobs(entry, row) is None:
            path = f"/{entry.benchmark}/{entry.models[row]}/logprobs"
            yield Divergence(FILE, path, None, "the log-probabilities that its choices follow from")
        yield from _of_model(entry, row, questions)
    elif benchmark.disclosure == "full" and questions is not None and (isinstance(model.identity, CheckpointIdentity) or _has_texts(entry, row)):
        yield from _of_texts(entry, row, benchmark.scoring, questions)


def _has_texts(entry: BenchmarkResponses, row: int) -> bool:
    """Return whether a model's texts are there: those of an earlier run need not have been disclosed in it."""
    return entry.texts is not None and any(text is not None for text in entry.texts[row].ravel())


def _logprobs(entry: BenchmarkResponses, row: int) -> NDArray[np.float64] | None:
    """Return a model's log-probabilities, (Q, C); None where they are not disclosed, and neither are choices then."""
    return None if entry.logprobs is None or np.isnan(entry.logprobs[row]).all() else entry.logprobs[row]


def _of_texts(entry: BenchmarkResponses, row: int, scoring: SampledScoring, questions: Sequence[Question]) -> Iterator[Divergence]:
    """Yield every answer that is not what the declared rules read off its text, and every one without a text."""
    places, repeats = entry.scores.shape[1:]
    texts = np.full((places, repeats), None, dtype=object) if entry.texts is None else entry.texts[row]
    choices = [question.choices for question in questions for _ in range(repeats)]
    found = read_answers(["" if text is None else str(text) for text in texts.ravel()], choices, scoring)
    keys = np.repeat([question.answer for question in questions], repeats)
    scores = np.where(found.choices >= 0, (found.choices == keys).astype(np.float64), np.nan)
    for flat in range(places * repeats):
        index, repeat = divmod(flat, repeats)
        at = _path(entry, row, index, f"{repeat}")
        recorded, follows = int(entry.choices[row, index, repeat]), int(found.choices[flat])
        score, reason = float(entry.scores[row, index, repeat]), Reason(int(entry.reasons[row, index, repeat]))
        if texts[index, repeat] is None:
            yield Divergence(FILE, f"{at}/text", None, "a text")
        elif recorded != follows:
            yield Divergence(FILE, f"{at}/choice", letter(recorded), f"{letter(follows)}, by its text")
        elif reason != found.reasons[flat]:
            yield Divergence(FILE, f"{at}/reason", reason.name.lower(), f"{Reason(int(found.reasons[flat])).name.lower()}, by its text")
        elif not np.array_equal(score, scores[flat], equal_nan=True):
            follow = "none" if np.isnan(scores[flat]) else f"{scores[flat]:g}"
            yield Divergence(FILE, f"{at}/score", None if np.isnan(score) else score, f"{follow}, by its choice")


def _of_model(entry: BenchmarkResponses, row: int, questions: Sequence[Question] | None) -> Iterator[Divergence]:
    choices, scores, reasons = entry.choices[row], entry.scores[row], entry.reasons[row]
    logprobs = _logprobs(entry, row)
    if logprobs is None:
        return
    best = best_choices(logprobs)
    for index in np.flatnonzero((choices != best[:, None]).any(axis=1)).tolist():
        recorded = next(int(choice) for choice in choices[index] if choice != best[index])
        yield Divergence(FILE, _path(entry, row, index, "choice"), letter(recorded), f"{letter(int(best[index]))}, by its log-probabilities")
    undetermined = choices < 0
    wrong = np.where(undetermined, reasons != Reason.UNDETERMINED, reasons != Reason.NONE)
    if questions is not None:
        right = (choices == np.array([question.answer for question in questions])[:, None]).astype(np.float64)
        wrong |= ~undetermined & (scores != right)
    for index in np.flatnonzero(wrong.any(axis=1)).tolist():
        repeat = int(np.flatnonzero(wrong[index])[0])
        follows = "none" if undetermined[index, repeat] else f"{right[index, repeat]:g}" if questions is not None else "a score"
        recorded_score = scores[index, repeat]
        yield Divergence(
            FILE, _path(entry, row, index, "score"), None if np.isnan(recorded_score) else float(recorded_score), f"{follows}, by its choice"
        )


def _path(entry: BenchmarkResponses, row: int, index: int, part: str) -> str:
    return f"/{entry.benchmark}/{entry.models[row]}/{entry.questions[index]}/{part}"
