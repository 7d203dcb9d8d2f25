"""What do the responses say to each request of the study?  One pass over the requests, in order, each with its own random stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import BaseModel

from evalspec.analyses.worst_cases import Examined, settled_estimates
from evalspec.artifacts.findings import Estimate, Finding, Findings, ModelSummary, StricterBounds, TextSummary
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.responses import GeneratedFacts, Reason, Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Thresholds
from evalspec.artifacts.verdict import CheckResult, Verdict
from evalspec.errors import AnalysisError
from evalspec.protocols import AnyAnalysis, Background, Catalogue, Context, Judge, Progress, ProgressSink, ignore_progress

DEGENERATE_SHARE = 0.9

Gate = Callable[[Findings, Thresholds | None], Verdict]


def analyse(
    responses: Responses,
    protocol: Protocol,
    catalogue: Catalogue,
    *,
    responses_sha256: str,
    gate: Gate | None = None,
    background: Background | None = None,
    unplanned: Container[str] = (),
    progress: ProgressSink = ignore_progress,
) -> Findings:
    """Return findings for every analysis of the protocol; pure, and the same for the same responses.

    With `gate`, analyses can ask what the checks would come to on other responses. `unplanned` are those that a locked plan does not hold as
    they are, whatever the study calls them. Raises AnalysisError when a kind is not installed.
    """
    findings, known = [], background or Background()
    requests = [request.model_copy(update={"planned": request.planned and request.id not in unplanned}) for request in protocol.analyses]
    for done, request in enumerate(requests):
        progress(Progress("analyse", done, len(protocol.analyses), "analyses", request.id))
        context = Context(
            rng=random_stream(protocol.seed, request.id),
            planned=request.planned,
            tables=known.tables,
            checks=protocol.thresholds.checks if protocol.thresholds else (),
            judge=_judge(responses, protocol, catalogue, gate, known) if gate and protocol.thresholds else None,
            unordered=_unordered(protocol, catalogue),
            background=known,
        )
        findings.append(_finding(responses, protocol, request, _installed(request, catalogue), context))
    progress(Progress("analyse", len(protocol.analyses), len(protocol.analyses), "analyses"))
    return Findings(
        protocol_sha256=responses.protocol_sha256,
        responses_sha256=responses_sha256,
        summaries=tuple(_summaries(responses)),
        findings=tuple(findings),
    )


def random_stream(seed: int, analysis_id: str) -> np.random.Generator:
    """Return the random stream of one analysis, which no other analysis of the study can move."""
    key = np.frombuffer(hashlib.sha256(analysis_id.encode()).digest(), dtype=np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(int(word) for word in key))))


def _installed(request: AnalysisRequest, catalogue: Catalogue) -> AnyAnalysis:
    if request.kind not in catalogue:
        known = ", ".join(sorted(catalogue))
        raise AnalysisError(f"analysis {request.id!r} is of the kind {request.kind!r}, which is not installed; installed are: {known}")
    return catalogue[request.kind]


def _judge(responses: Responses, protocol: Protocol, catalogue: Catalogue, gate: Gate, known: Background) -> Judge:
    """Return what tells the outcome of the checks on other responses: the analyses that they name, run again, and the same gate."""
    named = {check.analysis for check in protocol.thresholds.checks} if protocol.thresholds else set()
    needed = protocol.model_copy(update={"analyses": tuple(request for request in protocol.analyses if request.id in named)})

    def judge(changed: Responses) -> tuple[CheckResult, ...]:
        others = {entry.benchmark: entry for entry in changed.benchmarks}
        benchmarks = tuple(others.get(entry.benchmark, entry) for entry in responses.benchmarks)
        findings = analyse(replace(responses, benchmarks=benchmarks), needed, catalogue, responses_sha256="0" * 64, background=known)
        return gate(findings, protocol.thresholds).checks

    return judge


def _unordered(protocol: Protocol, catalogue: Catalogue) -> frozenset[str]:
    """Return the ids of the checks for whose metric no one way of counting uncertain answers is known to be the worst."""
    kinds = {request.id: request.kind for request in protocol.analyses}
    checks = protocol.thresholds.checks if protocol.thresholds else ()
    known = ((check, catalogue.get(kinds.get(check.analysis, ""))) for check in checks)
    return frozenset(check.id for check, analysis in known if analysis is None or check.metric not in analysis.ordered)


def _finding(responses: Responses, protocol: Protocol, request: AnalysisRequest, analysis: AnyAnalysis, context: Context) -> Finding:
    options = analysis.options.model_validate_json(json.dumps(request.options))
    part = Responses(
        benchmarks=tuple(entry for entry in responses.benchmarks if entry.benchmark in request.benchmarks),
        origins=responses.origins,
        protocol_sha256=responses.protocol_sha256,
    )
    checks = context.checks
    held = tuple(check for check in checks if check.analysis == request.id)
    corrected = bool(held) and protocol.thresholds is not None and protocol.thresholds.require == "any"
    asked = _Asked(request, analysis, context, protocol.seed, divisors=range(1, len(checks) + 1) if corrected else range(0))
    result = analysis.compute(part, options, context)
    found = asked.estimates(part, result)
    settled = settled_estimates(Examined(analysis, part, found, asked.estimates_again), held)
    return Finding(request=request, estimates=found, result=result.model_dump(mode="json"), settled=tuple(settled))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request with what answering it on any responses takes; `divisors` of its error rates are asked for where checks are corrected."""

    request: AnalysisRequest
    analysis: AnyAnalysis
    context: Context
    seed: int
    divisors: range

    def estimates(self, responses: Responses, result: BaseModel) -> tuple[Estimate, ...]:
        """Return the estimates of a result on these responses, with their bounds at divided error rates."""
        routes = {(origin.model, origin.benchmark): origin.route for origin in responses.origins}
        turned = {benchmark.benchmark for benchmark in responses.benchmarks if benchmark.lower_is_better}
        found = [_turned(_placed(estimate, self.request, routes), turned) for estimate in self.analysis.estimates(result)]
        stricter = self.analysis.stricter
        if stricter is None or not self.divisors:
            return tuple(found)
        again = [self.analysis.estimates(self._computed(responses, stricter(self._options(), divisor))) for divisor in self.divisors]
        return tuple(_with_stricter(estimate, [estimates[place] for estimates in again]) for place, estimate in enumerate(found))

    def estimates_again(self, responses: Responses) -> tuple[Estimate, ...]:
        """Return the estimates on other responses, at the same error rates."""
        return self.estimates(responses, self._computed(responses, self._options()))

    def _options(self) -> BaseModel:
        options: BaseModel = self.analysis.options.model_validate_json(json.dumps(self.request.options))
        return options

    def _computed(self, responses: Responses, options: BaseModel) -> BaseModel:
        """Compute with the same random stream again, so that only error rates or answers tell two sets of bounds apart."""
        context = replace(self.context, rng=random_stream(self.seed, self.request.id))
        result: BaseModel = self.analysis.compute(responses, options, context)
        return result


def _turned(estimate: Estimate, turned: Container[str]) -> Estimate:
    """Say of a mean score, or a difference of two, that less of it is better where the study declares so of the benchmark's scores."""
    if estimate.benchmark not in turned or estimate.unit not in {"proportion", "difference"} or estimate.basis == "predicted":
        return estimate
    return estimate.model_copy(update={"polarity": "lower_is_better"})


def _with_stricter(estimate: Estimate, others: Sequence[Estimate]) -> Estimate:
    """Add the bounds at the error rates divided by 1, 2, 3 and so on, which a correction for the number of checks asks for."""
    bounds = tuple(
        StricterBounds(divisor=divisor, low=other.low, high=other.high, separated=other.separated) for divisor, other in enumerate(others, start=1)
    )
    return estimate.model_copy(update={"stricter": bounds})


def _placed(estimate: Estimate, request: AnalysisRequest, routes: Mapping[tuple[str, str], str]) -> Estimate:
    """Put the study's own analysis id, the basis of the numbers and the planned flag into an estimate."""
    basis = "predicted"
    if estimate.basis != basis:
        taken = {routes[model, estimate.benchmark] for model in estimate.models}
        measured = {"scored_here": "measured", "server": "served", "recorded": "replayed", "earlier_run": "replayed"}
        basis = measured[taken.pop()] if len(taken) == 1 else "mixed"
    return estimate.model_copy(update={"analysis": request.id, "basis": basis, "planned": request.planned})


def _summaries(responses: Responses) -> Iterable[ModelSummary]:
    for benchmark in responses.benchmarks:
        missing = benchmark.missing_counts()
        for row, model in enumerate(benchmark.models):
            origin = responses.origin(model, benchmark.benchmark)
            check, written = origin.self_check, origin.generated.check if origin.generated else None
            yield ModelSummary(
                model=model,
                benchmark=benchmark.benchmark,
                route=origin.route,
                answered=int(np.sum(benchmark.reasons[row] == Reason.NONE)),
                missing=missing[model],
                chosen=origin.chosen,
                degenerate=_degenerate(origin.chosen),
                fragile=origin.fragile,
                fragile_gap=origin.fragile_gap,
                self_check_questions=check.questions if check else written.texts if written else None,
                self_check_flips=check.flips if check else written.flips if written else None,
                letter_mass=origin.letter_mass,
                censored=origin.server.censored if origin.server and origin.server.listed else None,
                generated=_texts(origin.generated) if origin.generated else None,
            )


def _texts(facts: GeneratedFacts) -> TextSummary:
    return TextSummary(
        texts=facts.texts,
        found=facts.texts - facts.refused - facts.unparseable,
        refused=facts.refused,
        unparseable=facts.unparseable,
        at_limit=facts.at_limit,
        mean_tokens=facts.tokens / facts.texts,
        checked=facts.check.texts if facts.check else 0,
        rewritten=facts.check.rewritten if facts.check else None,
    )


def _degenerate(chosen: dict[str, int]) -> bool:
    total = sum(chosen.values())
    return total > 0 and max(chosen.values()) > DEGENERATE_SHARE * total
