"""What was found?  Estimates are the narrow waist that the gate and the summary read; results are for an analysis's own section."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Identifier, JsonValue
from evalspec.artifacts.columns import Rows, lined_json
from evalspec.artifacts.protocol import Route
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check


class StricterBounds(Artifact):
    """The bounds and the test of an estimate at an error rate divided by `divisor`, where nothing else corrects for a number of comparisons."""

    divisor: int
    low: float | None = None
    high: float | None = None
    separated: bool | None = None


class Estimate(Artifact):
    """One number with its uncertainty, in one comparable form.

    `models` holds one model, or (first, second) for a difference first - second. `value` is None exactly when `undefined` says why.
    `separated` is the decision of the analysis's own, family-adjusted test; None when there is no test. `sides` says for what
    `confidence_level` holds: `two` for the interval, `lower` or `upper` for each bound by itself, the named one being the claim.
    `look` of `looks` planned ones is set where an analysis can spend alpha over several; `anytime` marks bounds that hold however often one
    looks.
    `stricter` holds the bounds at error rates divided by 1, 2, 3 and so on, where checks are corrected for their number; they are unadjusted for
    the analysis's own family, so that nothing is corrected twice. `jointly` says that the bounds hold for all estimates of this metric of the
    analysis together.
    """

    analysis: Identifier
    metric: Identifier
    benchmark: Identifier
    models: tuple[Identifier, ...]
    subject: str | None = None
    value: float | None
    low: float | None = None
    high: float | None = None
    confidence_level: float | None = None
    sides: Literal["two", "lower", "upper"] = "two"
    method: str
    p_value: float | None = None
    p_adjusted: float | None = None
    family_size: int | None = None
    separated: bool | None = None
    look: int | None = None
    looks: int | None = None
    anytime: bool = False
    jointly: bool = False
    stricter: tuple[StricterBounds, ...] = ()
    n: int = Field(description="Questions that the value rests on; for a prediction, scores.")
    unit: Literal["proportion", "difference", "rank", "index", "score"] = "proportion"
    polarity: Literal["higher_is_better", "lower_is_better"] = "higher_is_better"
    basis: Literal["measured", "served", "replayed", "mixed", "predicted"] = "measured"
    planned: bool = True
    undefined: str | None = None

    def reversed(self) -> Estimate:
        """Return the same difference seen from the other model; raises ValueError for anything but a difference."""
        if self.unit != "difference":
            raise ValueError(f"only a difference can be reversed; {self.metric!r} is a {self.unit}")
        negated = {name: None if bound is None else -bound for name, bound in (("value", self.value), ("low", self.high), ("high", self.low))}
        sides = {"two": "two", "lower": "upper", "upper": "lower"}[self.sides]
        stricter = tuple(
            bounds.model_copy(
                update={"low": None if bounds.high is None else -bounds.high, "high": None if bounds.low is None else -bounds.low},
            )
            for bounds in self.stricter
        )
        return self.model_copy(update={**negated, "models": self.models[::-1], "sides": sides, "stricter": stricter})


def estimate_of(check: Check, benchmark: str, estimates: Iterable[Estimate]) -> Estimate | None:
    """Return the estimate that a check speaks of, turned round where the analysis compared the models the other way; None where there is none."""
    wanted = (check.model,) if check.baseline is None else (check.model, check.baseline)
    for estimate in estimates:
        if (estimate.analysis, estimate.metric, estimate.benchmark, estimate.subject) != (check.analysis, check.metric, benchmark, check.subject):
            continue
        if estimate.models == wanted:
            return estimate
        if estimate.models[::-1] == wanted:
            return estimate.reversed() if estimate.unit == "difference" else estimate
    return None


class SettledEstimate(Artifact):
    """The estimate of one check once more, with every missing answer that bears on it counted worst for what the check claims.

    `missing` is how many answers that are. Without an `estimate`, `undefined` says why there is none.
    """

    check: Identifier
    benchmark: Identifier
    missing: int
    estimate: Estimate | None = None
    undefined: str | None = None


class Finding(Artifact):
    """The answer to one request: estimates for everybody, and the typed result, as plain JSON, for its own section.

    `settled` holds the estimates of checks on answers of which some are missing, with those counted against the check.
    """

    request: AnalysisRequest
    estimates: Rows[Estimate]
    result: dict[str, JsonValue]
    settled: tuple[SettledEstimate, ...] = ()


class TextSummary(Artifact):
    """Facts about the texts that a model wrote: how many, in how many a choice was found, how many refuse or say nothing that a rule finds.

    `rewritten` of `checked` were another text when they were written again alone; None where no texts are kept.
    """

    texts: int
    found: int
    refused: int
    unparseable: int
    at_limit: int
    mean_tokens: float
    checked: int = 0
    rewritten: int | None = None


class ModelSummary(Artifact):
    """Facts about one model's responses to one benchmark that every report states."""

    model: Identifier
    benchmark: Identifier
    route: Route
    answered: int
    missing: dict[str, int]
    chosen: dict[str, int] = Field(description="How often each letter was chosen; empty when choices were not recorded.")
    degenerate: bool = Field(description="Whether one letter takes more than 90 % of the choices.")
    fragile: int | None = None
    fragile_gap: float | None = None
    self_check_questions: int | None = None
    self_check_flips: int | None = None
    letter_mass: float | None = None
    censored: int | None = Field(default=None, description="Questions of which a letter was not among the tokens that the server lists.")
    generated: TextSummary | None = None


class Findings(Artifact):
    """Everything that was computed from one set of responses."""

    protocol_sha256: Digest
    responses_sha256: Digest
    summaries: tuple[ModelSummary, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> bytes:
        """Return the one byte form: as of every artifact, with each list of numbers on one line, for there can be hundreds of thousands."""
        return lined_json(self.model_dump(mode="json", by_alias=True))

    def estimates(self) -> tuple[Estimate, ...]:
        """Return the estimates of all findings, in order."""
        return tuple(estimate for finding in self.findings for estimate in finding.estimates)

    def settled(self) -> dict[tuple[str, str], SettledEstimate]:
        """Return what checks rest on once missing answers are counted against them, by check and benchmark."""
        return {(entry.check, entry.benchmark): entry for finding in self.findings for entry in finding.settled}
