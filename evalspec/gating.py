"""Do the estimates clear the limits that were set before?

A bound against a limit has three outcomes: passed when the whole interval is on the right side, failed when the whole interval is on
the wrong side, inconclusive between. A point value has two, and no error control. At a limit of 0 on a difference, the analysis's own
family-adjusted test decides, so that gate and report can never say different things.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalspec.artifacts.findings import Estimate, Findings
from evalspec.artifacts.study import AnalysisRequest, Check, Thresholds
from evalspec.artifacts.verdict import CheckResult, Outcome, Verdict

RULE_ALL = (
    "Every check must pass. Each check is held at its own error rate, and the chance that all pass wrongly is at most that of a single one "
    "(intersection-union), so no further correction is made."
)
RULE_NONE = "The study sets no thresholds: nothing is passed or failed."

NOT_COMPARED = "the analysis gives no such estimate; its declared family did not compare these models"
UNDEFINED = "the estimate is undefined"
RIGHT_SIDE = "the whole interval is on the required side of the limit"
WRONG_SIDE = "the whole interval is on the other side of the limit"
STRADDLES = "the interval lies on both sides of the limit: this sample cannot tell"
VALUE_RIGHT = "the value is on the required side; a value alone has no error control"
VALUE_WRONG = "the value is on the other side; a value alone has no error control"
TEST_RIGHT = "the adjusted test separates the two models in the required direction"
TEST_WRONG = "the adjusted test separates the two models in the other direction"
TEST_OPEN = "the adjusted test does not separate the two models"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit with its direction; `strict` excludes the limit itself."""

    value: float
    lower: bool
    strict: bool

    def clears(self, number: float) -> bool:
        """Return whether a number is on the required side."""
        if self.lower:
            return number > self.value if self.strict else number >= self.value
        return number < self.value if self.strict else number <= self.value


def gate(findings: Findings, thresholds: Thresholds | None) -> Verdict:
    """Return the verdict on every check, per benchmark where a check names none."""
    if thresholds is None:
        return Verdict(findings_sha256=findings.digest(), checks=(), overall=None, rule=RULE_NONE)
    requests = {finding.request.id: finding.request for finding in findings.findings}
    results = tuple(_check(check, benchmark, findings) for check in thresholds.checks for benchmark in _benchmarks(check, requests[check.analysis]))
    return Verdict(
        findings_sha256=findings.digest(),
        checks=results,
        overall=_overall([result.outcome for result in results]),
        inconclusive=thresholds.inconclusive,
        rule=RULE_ALL,
    )


def limit_of(check: Check) -> Limit:
    """Return the one limit that a check sets; raises ValueError when it sets none."""
    limits = (
        (check.at_least, True, False),
        (check.above, True, True),
        (check.at_most, False, False),
        (check.below, False, True),
    )
    for value, lower, strict in limits:
        if value is not None:
            return Limit(value, lower, strict)
    raise ValueError(f"check {check.id!r} sets no limit")


def describe(verdict: Verdict) -> str:
    """Return the outcome of every check, and the verdict last, in plain lines."""
    rows = [f"{result.outcome:<13}{result.check.id} ({result.benchmark}): {result.why}" for result in verdict.checks]
    return "\n".join([*rows, f"verdict: {verdict.overall}" if verdict.overall else "verdict: none, because the study sets no thresholds"])


def _benchmarks(check: Check, request: AnalysisRequest) -> tuple[str, ...]:
    return (check.benchmark,) if check.benchmark else request.benchmarks


def _overall(outcomes: list[Outcome]) -> Outcome:
    if "failed" in outcomes:
        return "failed"
    return "inconclusive" if "inconclusive" in outcomes else "passed"


def _check(check: Check, benchmark: str, findings: Findings) -> CheckResult:
    estimate = _find(check, benchmark, findings)
    if estimate is None:
        return CheckResult(check=check, benchmark=benchmark, observed=None, outcome="inconclusive", why=NOT_COMPARED, error_control=True)
    outcome, why = _decide(estimate, check)
    return CheckResult(check=check, benchmark=benchmark, observed=estimate, outcome=outcome, why=why, error_control=check.bound != "value")


def _find(check: Check, benchmark: str, findings: Findings) -> Estimate | None:
    """Find the estimate that a check speaks of, turned round where the analysis compared the models the other way."""
    wanted = (check.model,) if check.baseline is None else (check.model, check.baseline)
    for estimate in findings.estimates():
        if (estimate.analysis, estimate.metric, estimate.benchmark, estimate.subject) != (check.analysis, check.metric, benchmark, check.subject):
            continue
        if estimate.models == wanted:
            return estimate
        if estimate.unit == "difference" and estimate.models[::-1] == wanted:
            return estimate.reversed()
    return None


def _decide(estimate: Estimate, check: Check) -> tuple[Outcome, str]:
    limit = limit_of(check)
    if estimate.value is None:
        return "inconclusive", UNDEFINED
    if check.bound == "value":
        return ("passed", VALUE_RIGHT) if limit.clears(estimate.value) else ("failed", VALUE_WRONG)
    if estimate.separated is not None and limit.value == 0:
        return _decide_by_test(estimate, limit)
    if estimate.low is None or estimate.high is None:
        return "inconclusive", UNDEFINED
    worst, best = (estimate.low, estimate.high) if limit.lower else (estimate.high, estimate.low)
    if limit.clears(worst):
        return "passed", RIGHT_SIDE
    return ("inconclusive", STRADDLES) if limit.clears(best) else ("failed", WRONG_SIDE)


def _decide_by_test(estimate: Estimate, limit: Limit) -> tuple[Outcome, str]:
    if not estimate.separated or not estimate.value:
        return "inconclusive", TEST_OPEN
    return ("passed", TEST_RIGHT) if (estimate.value > 0) == limit.lower else ("failed", TEST_WRONG)
