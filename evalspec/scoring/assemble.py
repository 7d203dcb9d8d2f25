"""How do each model's rows become the responses to a benchmark?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.journal import BatchRecord, JobRecord, SessionRecord, TopTokens
from evalspec.artifacts.protocol import Protocol, ProtocolBenchmark
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import AnswerTokens, BenchmarkResponses, Origin, Reason, Responses
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.work import BenchmarkWork, WorkOrder
from evalspec.errors import Diagnostic, InputError, ScoringError
from evalspec.scoring.decisions import chosen_for_check, compare, decide, joined_batches
from evalspec.scoring.generated import chosen_texts, compare_texts, facts, read_all, texts_of, written_answers
from evalspec.scoring.served_records import facts_of


@dataclass(frozen=True, slots=True)
class ModelRows:
    """One model's responses to one benchmark: `scores`, `reasons`, `choices` (Q, K), `logprobs` (Q, C) or None, and how they came about.

    `distributions` has one for every question where the study asks for them; `texts` (Q, K) are generated answers where they were kept.
    """

    scores: NDArray[np.float64]
    reasons: NDArray[np.int8]
    choices: NDArray[np.int16]
    logprobs: NDArray[np.float64] | None
    origin: Origin
    distributions: tuple[TopTokens, ...] = ()
    texts: NDArray[np.object_] | None = None


def scored_rows(
    order: WorkOrder | ServedOrder, work: BenchmarkWork, shards: Sequence[JobRecord], check: JobRecord, questions: Sequence[Question]
) -> ModelRows:
    """Return the rows of a model that was scored here or asked at its server; a question whose best choices tie exactly is undetermined."""
    batches = joined_batches(shards)
    if work.scoring.method == "sampled":
        origin = _origin(order, work, (*shards, check))
        return _generated_rows(work, work.scoring, (batches, check), origin, [question.answer for question in questions])
    decisions = decide(batches, len(questions), work.scoring)
    chosen = chosen_for_check(decisions, [question.sha256 for question in work.questions])
    self_check = compare(decisions, decide(list(check.batches.values()), len(chosen), work.scoring), chosen)
    settled = decisions.choices >= 0
    right = decisions.choices == np.array([question.answer for question in questions])
    origin = _origin(order, work, (*shards, check)).model_copy(
        update={
            "letter_mass": decisions.letter_mass,
            "fragile": int(np.sum(decisions.gaps < self_check.p999_difference)) if self_check else None,
            "fragile_gap": self_check.p999_difference if self_check else None,
            "self_check": self_check,
        }
    )
    open_reason = np.where(decisions.unlisted, Reason.CENSORED, Reason.UNDETERMINED)
    return ModelRows(
        scores=np.where(settled, right.astype(np.float64), np.nan)[:, None],
        reasons=np.where(settled, Reason.NONE, open_reason).astype(np.int8)[:, None],
        choices=decisions.choices[:, None],
        logprobs=decisions.values,
        origin=origin,
        distributions=_distributions(batches, len(questions)),
    )


def _generated_rows(
    work: BenchmarkWork, scoring: SampledScoring, records: tuple[Sequence[BatchRecord], JobRecord], origin: Origin, keys: Sequence[int]
) -> ModelRows:
    """Return the rows of a model that wrote its answers, which its records have repeat by repeat; where a text has none, the score is missing."""
    batches, check = records
    written, again = written_answers(batches), written_answers(list(check.batches.values()))
    found, chosen = read_all(written, work.questions, scoring), chosen_texts(work.questions)
    alone = read_all(again, [work.questions[place] for place in chosen], scoring)
    compared = compare_texts([written[place] for place in chosen], again, (found.choices[list(chosen)].tolist(), alone.choices.tolist()))
    ends = sorted({end for session in check.sessions for end in session.ends})
    texts = texts_of(written)
    choices, reasons = (values.reshape(scoring.repeats, -1).T for values in (found.choices, found.reasons))
    right = (choices == np.array(keys)[:, None]).astype(np.float64)
    return ModelRows(
        scores=np.where(choices >= 0, right, np.nan),
        reasons=np.ascontiguousarray(reasons),
        choices=np.ascontiguousarray(choices),
        logprobs=None,
        origin=origin.model_copy(update={"generated": facts(written, found.reasons, ends).model_copy(update={"check": compared})}),
        texts=None if texts is None else texts.reshape(scoring.repeats, -1).T,
    )


def _origin(order: WorkOrder | ServedOrder, work: BenchmarkWork, records: Sequence[JobRecord]) -> Origin:
    """Return how a model's answers to a benchmark came about; of the records, the last is the self-check's."""
    sessions = [session for record in records for session in record.sessions]
    content = sha256_hex(canonical_json([record.content_sha256() for record in records]))
    if isinstance(order, ServedOrder):
        return Origin(
            model=order.model,
            benchmark=work.benchmark,
            route="server",
            precision="not observed",
            journal_sha256=content,
            server=facts_of(order, work, records),
            versions=_versions([session.versions for session in sessions]),
        )
    return Origin(
        model=order.model,
        benchmark=work.benchmark,
        route="scored_here",
        precision=order.precision,
        letters=tuple(sorted({letter for session in sessions for letter in session.letters})),
        first_ids=sessions[0].first_ids,
        journal_sha256=content,
        versions=_versions([_computed_by(session) for session in sessions]),
    )


def _computed_by(session: SessionRecord) -> dict[str, str]:
    """Return the versions of a session, and what else may move last bits: the dtype, the head and what attended."""
    return {**session.versions, "dtype": session.dtype, "head": session.head, "attention": session.packing or session.attention}


def assemble(protocol: Protocol, questions: Mapping[str, Sequence[Question]], rows: Mapping[tuple[str, str], ModelRows]) -> Responses:
    """Return the responses in the protocol's order; raises ScoringError when answers are missing where the study allows none."""
    models = tuple(model.id for model in protocol.models)
    benchmarks = []
    for benchmark in protocol.benchmarks:
        of_benchmark = [rows[model, benchmark.id] for model in models]
        _refuse_missing(benchmark, models, of_benchmark)
        repeats = _repeats(benchmark, models, of_benchmark)
        widest = max(len(question.choices) for question in questions[benchmark.id])
        benchmarks.append(
            BenchmarkResponses(
                benchmark=benchmark.id,
                models=models,
                questions=tuple(drawn.id for drawn in benchmark.questions),
                subjects=tuple(drawn.subject for drawn in benchmark.questions),
                weights=np.array([drawn.weight for drawn in benchmark.questions]),
                scores=np.stack([_tiled(one.scores, repeats) for one in of_benchmark]),
                reasons=np.stack([_tiled(one.reasons, repeats) for one in of_benchmark]),
                choices=np.stack([_tiled(one.choices, repeats) for one in of_benchmark]),
                logprobs=_stacked_logprobs(of_benchmark, widest),
                missing=benchmark.missing,
                score=benchmark.score,
                strata=benchmark.strata is not None,
                clusters=benchmark.cluster_labels(),
                flags=_flags(benchmark),
                sample=benchmark.sample.method,
                pool=benchmark.pool,
                distributions=_stacked_distributions(of_benchmark),
                texts=_stacked_texts(of_benchmark, repeats),
            )
        )
    origins = tuple(_with_histogram(rows[model, benchmark.id]) for benchmark in protocol.benchmarks for model in models)
    return Responses(benchmarks=tuple(benchmarks), origins=origins, protocol_sha256=protocol.digest())


def _distributions(batches: Sequence[BatchRecord], count: int) -> tuple[TopTokens, ...]:
    """Return the answer distributions in the order of the questions; none where the study asks for none."""
    found = {place: top for batch in batches for place, top in zip(batch.questions, batch.distributions, strict=False)}
    return tuple(found[place] for place in range(count)) if found else ()


def _stacked_distributions(rows: Sequence[ModelRows]) -> AnswerTokens | None:
    widest = max((len(top.tokens) for one in rows for top in one.distributions), default=0)
    if not widest:
        return None
    shape = (len(rows), len(rows[0].scores), widest)
    tokens, probabilities = np.full(shape, -1, dtype=np.int32), np.full(shape, np.nan)
    for number, one in enumerate(rows):
        for place, top in enumerate(one.distributions):
            tokens[number, place, : len(top.tokens)] = top.tokens
            probabilities[number, place, : len(top.tokens)] = top.probabilities
    return AnswerTokens(tokens, probabilities)


def _stacked_texts(rows: Sequence[ModelRows], repeats: int) -> NDArray[np.object_] | None:
    if all(one.texts is None for one in rows):
        return None
    nothing = np.full((len(rows[0].scores), repeats), None, dtype=object)
    return np.stack([nothing if one.texts is None else _tiled(one.texts, repeats) for one in rows])


def _flags(benchmark: ProtocolBenchmark) -> tuple[tuple[str, ...], ...]:
    """Return each question's flags; empty where no question has any."""
    flags = tuple(drawn.flags for drawn in benchmark.questions)
    return flags if any(flags) else ()


def _with_histogram(rows: ModelRows) -> Origin:
    """Return the origin with how often each letter was chosen; empty when choices are not known."""
    counts = np.bincount(rows.choices[rows.choices >= 0].ravel())
    return rows.origin.model_copy(update={"chosen": dict(zip(LETTERS, counts.tolist(), strict=False))})


def _versions(sessions: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return every version that took part, so that a journal written by two of them says so."""
    return {name: " and ".join(sorted({session[name] for session in sessions})) for name in sorted(sessions[0])}


def _refuse_missing(benchmark: ProtocolBenchmark, models: Sequence[str], rows: Sequence[ModelRows]) -> None:
    if benchmark.missing != "error":
        return
    faults = []
    for model, one in zip(models, rows, strict=True):
        counts = {reason: int(np.sum(one.reasons == reason)) for reason in Reason if reason}
        if any(counts.values()):
            listed = ", ".join(f"{count} {reason.name.lower().replace('_', ' ')}" for reason, count in counts.items() if count)
            faults.append(
                Diagnostic(
                    f"model '{model}' has missing answers on benchmark '{benchmark.id}' ({listed}), and the study says `missing: error`",
                    hint="declare how missing answers count: `missing: wrong` or `missing: complete_case`",
                )
            )
    if faults:
        raise ScoringError(faults)


def _repeats(benchmark: ProtocolBenchmark, models: Sequence[str], rows: Sequence[ModelRows]) -> int:
    """Return the number of repeats; a model asked once answers the same every time, but two different numbers do not fit together."""
    repeats = {one.scores.shape[1]: model for model, one in zip(models, rows, strict=True) if one.scores.shape[1] > 1}
    if len(repeats) > 1:
        listed = ", ".join(f"'{model}' has {count}" for count, model in sorted(repeats.items()))
        raise InputError(
            f"benchmark '{benchmark.id}': the models were repeated differently often: {listed}", hint="record the same number of repeats for each"
        )
    return next(iter(repeats), 1)


def _tiled(values: NDArray[np.generic], repeats: int) -> NDArray[np.generic]:
    return np.repeat(values, repeats, axis=1) if values.shape[1] < repeats else values


def _stacked_logprobs(rows: Sequence[ModelRows], widest: int) -> NDArray[np.float64] | None:
    if all(one.logprobs is None for one in rows):
        return None
    stacked = np.full((len(rows), len(rows[0].scores), widest), np.nan)
    for number, one in enumerate(rows):
        if one.logprobs is not None:
            stacked[number, :, : one.logprobs.shape[1]] = one.logprobs
    return stacked
