"""What did a model answer in an earlier signed run?  Its signature, its questions and its settings are held against the study that asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from evalspec.artifacts.base import JsonValue, sha256_hex
from evalspec.artifacts.journal import TopTokens
from evalspec.artifacts.protocol import EarlierIdentity, Protocol, ProtocolBenchmark
from evalspec.artifacts.responses import BenchmarkResponses, Origin
from evalspec.artifacts.sources import EarlierRun
from evalspec.artifacts.study import Study
from evalspec.errors import Diagnostic, EvalspecError, InputError
from evalspec.places import resolve_inside
from evalspec.scoring.assemble import ModelRows
from evalspec.signing.files import read_regular
from evalspec.signing.statement import MANIFEST, Statement
from evalspec.signing.trust import Trust
from evalspec.signing.verify import verify
from evalspec.store import PROTOCOL, RESPONSES, SIGNER
from evalspec.verified_run import VerifiedRun

MOST_NAMED = 3
ELSEWHERE = frozenset({"prompt", "examples"})
"""Parts of a benchmark's scoring that are compared as they were used: the template, and the worked examples themselves."""


@dataclass(frozen=True, slots=True)
class EarlierModel:
    """A model whose answers come from an earlier signed run: what it is, that run, and its manifest, which travels along."""

    model: str
    identity: EarlierIdentity
    run: VerifiedRun
    manifest: bytes

    def rows(self, benchmark: ProtocolBenchmark) -> ModelRows:
        """Return the model's answers to the drawn questions, in their order; `differences` must have found none."""
        then, origin = self.run.responses.benchmark(benchmark.id), self.run.responses.origin(self.identity.model, benchmark.id)
        places = {question: place for place, question in enumerate(then.questions)}
        asked = [places[question.id] for question in benchmark.questions]
        entry, row = then.at(asked), then.models.index(self.identity.model)
        return ModelRows(
            scores=entry.scores[row],
            reasons=entry.reasons[row],
            choices=entry.choices[row],
            logprobs=_logprobs(entry, row),
            origin=_taken_over(origin, self.model, whole=len(asked) == len(then.questions)),
            distributions=_distributions(entry, row),
            texts=None if entry.texts is None else entry.texts[row],
        )

    def differences(self, protocol: Protocol) -> Iterator[str]:
        """Yield, by name, everything in which the earlier run asked otherwise than this protocol does."""
        then = {benchmark.id: benchmark for benchmark in self.run.protocol.benchmarks}
        for benchmark in protocol.benchmarks:
            if benchmark.id not in then:
                yield f"it has no benchmark '{benchmark.id}'; it has {', '.join(then)}"
            else:
                yield from _differences(then[benchmark.id], benchmark)


def read_earlier(study: Study, *, folder: Path, root: Path) -> tuple[EarlierModel, ...]:
    """Return every model that is taken from an earlier run; raises InputError with every fault, each once."""
    found: list[EarlierModel] = []
    faults: dict[Diagnostic, None] = {}
    read = cache(_read)
    for model in study.models:
        if isinstance(model.source, EarlierRun):
            try:
                path = resolve_inside(model.source.run, folder=folder, root=root)
                found.append(_model(model.id, model.source, *read(path, model.source.run, model.source.signer)))
            except InputError as error:
                faults |= dict.fromkeys(error.diagnostics)
    if faults:
        raise InputError(faults)
    return tuple(found)


def check_earlier(models: Sequence[EarlierModel], protocol: Protocol) -> None:
    """Raise InputError with everything that the earlier runs asked otherwise than `protocol` does."""
    hint = "ask the same questions in the same way, or name the model's weights so that it is scored here"
    faults = [
        Diagnostic(f"model '{model.model}' cannot be taken from the run {model.identity.origin}: {difference}", hint)
        for model in models
        for difference in model.differences(protocol)
    ]
    if faults:
        raise InputError(faults)


def earlier_rows(models: Sequence[EarlierModel], protocol: Protocol) -> dict[tuple[str, str], ModelRows]:
    """Return the answers that are taken from earlier runs, by model and benchmark."""
    return {(model.model, benchmark.id): model.rows(benchmark) for model in models for benchmark in protocol.benchmarks}


def _read(path: Path, written: str, signer: str) -> tuple[VerifiedRun, Statement, bytes]:
    """Return a run as it was signed by the key that the study names; raises InputError where it was not."""
    try:
        found = verify(path, Trust.in_fingerprint(signer))
        manifest = read_regular(path, MANIFEST)
    except EvalspecError as error:
        raise InputError(f"the run {written} cannot be read: {error.diagnostics[0].message}") from error
    if found.outcome == "altered" or found.statement is None or found.signer is None:
        raise InputError(f"the run {written} is not as it was signed: {found.problems[0]}", hint=f"see evalspec verify {written}")
    if found.signer.fingerprint != signer:
        raise InputError(
            f"the run {written} is signed with the key {found.signer.fingerprint}, and the study names {signer}",
            hint="ask the signer for the fingerprint over another channel than these files",
        )
    if not found.trusted:
        raise InputError(f"the signature of the run {written} does not count: {'; '.join(found.reasons)}")
    return VerifiedRun(path, found), found.statement, manifest


def _model(identifier: str, source: EarlierRun, run: VerifiedRun, statement: Statement, manifest: bytes) -> EarlierModel:
    name = source.model or identifier
    try:
        known = {model.id: model for model in run.protocol.models}
        certificate = run.content(SIGNER).decode()
        other = run.responses.protocol_sha256 != run.protocol.digest()
    except (EvalspecError, UnicodeDecodeError) as error:
        raise InputError(f"the run {source.run} cannot be used: {error}", hint="it was written by another version of evalspec") from error
    if other:
        raise InputError(f"the run {source.run} is not of one piece: its responses answer another protocol than its own", hint="ask its signer")
    if name not in known:
        raise InputError(f"the run {source.run} has no model '{name}'; it has {', '.join(known)}", hint="name one with model: ID")
    then = known[name]
    if isinstance(then.identity, EarlierIdentity):
        raise InputError(
            f"the run {source.run} took model '{name}' from another run itself, {then.identity.origin}", hint="name the run that it comes from"
        )
    identity = EarlierIdentity(
        run_id=statement.predicate.run_id,
        signed_at=statement.predicate.created_at,
        model=name,
        signer=source.signer,
        signer_certificate=certificate,
        manifest_sha256=sha256_hex(manifest),
        protocol_sha256=statement.digests[PROTOCOL],
        responses_sha256=statement.digests[RESPONSES],
        precision=then.precision,
        system=then.identity,
        origin=source.run,
    )
    return EarlierModel(identifier, identity, run, manifest)


def _differences(then: ProtocolBenchmark, now: ProtocolBenchmark) -> Iterator[str]:
    place = f"benchmark '{now.id}'"
    for name in sorted(_settings(now).keys() | _settings(then).keys()):
        before, after = _settings(then).get(name), _settings(now).get(name)
        if before != after:
            yield f"{place} was scored with {name}: {before}, and is now with {name}: {after}"
    if then.prompt != now.prompt:
        yield f"{place} had another prompt template (SHA-256 {_short(then.prompt)}; now {_short(now.prompt)})"
    if then.score != now.score:
        yield f"{place} declares its scores otherwise than there, by unit or by whether more of it is better"
    if _shown(then) != _shown(now):
        yield f"{place} showed other worked examples"
    if "none" in {then.disclosure, now.disclosure} and then.disclosure != now.disclosure:
        yield f"{place} was disclosed as {then.disclosure} and is now as {now.disclosure}, so that questions cannot be told to be the same"
        return
    known = {question.id: question.sha256 for question in then.questions}
    absent = [question.id for question in now.questions if question.id not in known]
    other = [question.id for question in now.questions if known.get(question.id, question.sha256) != question.sha256]
    if absent:
        yield f"{place}: {_questions(absent)} not asked there"
    if other:
        yield f"{place}: {_questions(other)} asked there with another text, key or other choices"


def _settings(benchmark: ProtocolBenchmark) -> Mapping[str, JsonValue]:
    return {name: value for name, value in benchmark.scoring.model_dump(mode="json").items() if name not in ELSEWHERE}


def _shown(benchmark: ProtocolBenchmark) -> list[tuple[str | None, list[str]]]:
    return [(preamble.subject, [example.sha256 for example in preamble.examples]) for preamble in benchmark.preambles]


def _short(text: str) -> str:
    return f"{sha256_hex(text.encode())[:12]}…"


def _questions(ids: Sequence[str]) -> str:
    named = ", ".join(identifier if len(identifier) < 32 else f"{identifier[:12]}…" for identifier in ids[:MOST_NAMED])
    more = f" and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
    return f"{'question' if len(ids) == 1 else 'questions'} {named}{more} {'was' if len(ids) == 1 else 'were'}"


def _taken_over(origin: Origin, model: str, *, whole: bool) -> Origin:
    """Return how the answers came about there; what counts over all of its questions is left out where only some are taken."""
    counted = {} if whole else {"letter_mass": None, "fragile": None, "server": None, "generated": None}
    return origin.model_copy(update={"model": model, "route": "earlier_run", "earlier_route": origin.route, **counted})


def _logprobs(entry: BenchmarkResponses, row: int) -> np.ndarray | None:
    return None if entry.logprobs is None or np.isnan(entry.logprobs[row]).all() else entry.logprobs[row]


def _distributions(entry: BenchmarkResponses, row: int) -> tuple[TopTokens, ...]:
    """Return an answer distribution for every question; none where one of them lacks it."""
    if entry.distributions is None or not (entry.distributions.tokens[row, :, 0] >= 0).all():
        return ()
    tops = []
    for tokens, probabilities in zip(entry.distributions.tokens[row], entry.distributions.probabilities[row], strict=True):
        kept = tokens >= 0
        tops.append(TopTokens(tokens=tuple(tokens[kept].tolist()), probabilities=tuple(probabilities[kept].tolist())))
    return tuple(tops)
