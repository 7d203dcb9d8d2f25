"""Do the estimates clear the limits that were set before?

The error that is controlled is a false pass. A bound against a limit has three outcomes: passed when the whole interval is on the right side,
failed when the whole interval is on the wrong side, inconclusive between. A point value has two, and no error control. At a limit of 0 on a
difference, the analysis's own test decides, adjusted for its family where the study asks for it; where any of several checks is enough, they are
corrected for their own number instead. Nothing passes that would not with every missing answer counted against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from evalspec.artifacts.findings import Estimate, Findings, SettledEstimate, estimate_of
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.artifacts.verdict import CheckResult, Outcome, Verdict

RULE_ALL = (
    "Every check must pass, each at its own error rate. A pass of the whole is wrong only if some check passes whose claim is false, and the "
    "chance of that is at most the error rate of that check (intersection-union), so there is no correction for the number of checks."
)
RULE_ANY = (
    "One passed check is enough. Several chances to pass would add up, so Holm's step-down method corrects for the number of checks: bounds and "
    "tests are computed again at divided error rates, and the chance that any check passes whose claim is false is at most the largest error "
    "rate of a single check, however the checks depend on each other. This is the only correction: a test that its analysis adjusts for a family "
    "is taken unadjusted here, since the checks alone can pass, and ranks of one analysis, which hold all together, count as one check."
)
RULE_MISSING = (
    "Answers are missing that bear on some checks: such a check passes only if it also passes with every one of them counted worst for it, "
    "whatever rule the study declares for its numbers."
)
RULE_VALUE = "A check of a value alone has no error control, so for the whole none can be stated."
RULE_NONE = "The study sets no thresholds: nothing is passed or failed."

NOT_COMPARED = "the analysis gives no such estimate; its declared family did not compare these models"
UNDEFINED = "the estimate is undefined"
MEANS = ("t", "stratified_t", "cr2_t", "cluster_means_t", "gaffke", "gaffke_clustered", "gaffke_cluster_means", "gaffke_weighted")
"""Intervals of mean scores and of clusters, on which forecasts for right and wrong answers have no bearing."""
FRACTIONAL = "the plan took answers as right or wrong, and these scores are fractional or averages over repeats"
NO_BOUND = "the value has no bound to hold against the limit, so nothing says how sure it is"
PREDICTED = "the value is predicted and not measured, and a prediction decides nothing"
RIGHT_SIDE = "the whole interval is on the required side of the limit"
WRONG_SIDE = "the whole interval is on the other side of the limit"
STRADDLES = "the interval lies on both sides of the limit: this sample cannot tell"
VALUE_RIGHT = "the value is on the required side; a value alone has no error control"
VALUE_WRONG = "the value is on the other side; a value alone has no error control"
TEST_RIGHT = "the test separates the two models in the required direction"
TEST_WRONG = "the test separates the two models in the other direction"
TEST_OPEN = "the test does not separate the two models"
TEST_RIGHT_ALONE = (
    "the test separates the two models in the required direction; it is corrected for the number of checks, and not for its family as well"
)
ALSO_MISSING = ", also with every missing answer counted against it"
MISSING_OPEN = "it passes on the answers given; with every missing one counted against it, it does not, because "
MISSING_UNKNOWN = "it passes on the answers given; whether it does with every missing one counted against it is not known, since "
CORRECTED = "it would pass as the only check, and does not after the correction for the number of checks"

ONE_LOOK = (
    "asking more questions and deciding again is another look, which raises the chance of a false pass; nothing holds it down for this check: "
    "alpha spending and e-values, declared before the first look, are there for differences in noninferiority only"
)
SINGLE_LOOK = (
    "asking more questions and deciding again is another look, which raises the chance of a false pass; nothing holds it down for this check: "
    "alpha spending (looks) or an e-value (method: e_value), declared before the first look, covers checks of its own noninferiority analysis alone"
)
PLANNED_LOOK = (
    "the looks that the study plans after this one may decide, each at the part of alpha that the declared spending leaves it; a look beyond them is "
    "not covered"
)
LAST_LOOK = "this was the last look of the declared alpha spending; another one is not covered, since nothing of alpha is left for it"
ANY_LOOK = "further looks at these two models on more questions are covered by the declared e-value"
NO_E_VALUE = "the declared e-value covers further looks only where it can be computed, and here it could not be"


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


def gate(findings: Findings, thresholds: Thresholds | None, forecasts: Sequence[GateForecast] = (), *, findings_sha256: str | None = None) -> Verdict:
    """Return the verdict on every check, per benchmark where a check names none; `forecasts` say what an undecided check would need.

    `findings_sha256` is the digest of the findings, for those who know it already.
    """
    digest = findings_sha256 or findings.digest()
    if thresholds is None:
        return Verdict(findings_sha256=digest, checks=(), overall=None, rule=RULE_NONE)
    requests = {finding.request.id: finding.request for finding in findings.findings}
    settled = findings.settled()
    results = [
        _check(check, benchmark, findings, settled.get((check.id, benchmark)))
        for check in thresholds.checks
        for benchmark in _benchmarks(check, requests[check.analysis])
    ]
    if thresholds.require == "any":
        results = _corrected(results)
    told = {(forecast.check, forecast.benchmark): forecast for forecast in forecasts}
    results = [_advised(result, told.get((result.check.id, result.benchmark))) for result in results]
    return Verdict(
        findings_sha256=digest,
        checks=tuple(results),
        overall=_overall_any(results) if thresholds.require == "any" else _overall([result.outcome for result in results]),
        inconclusive=thresholds.inconclusive,
        rule=" ".join(_rules(thresholds, results)),
    )


def limit_of(check: Check) -> Limit:
    """Return the one limit that a check sets, with its direction; raises ValueError when it sets none."""
    return Limit(check.limit, lower=check.lower, strict=check.above is not None or check.below is not None)


def planned_divisor(verdict: Verdict) -> int:
    """Return what the plan divided the error rate of each check by: the number of checks where one is enough, the most that Holm may ask for."""
    return len({result.check.id for result in verdict.checks}) if verdict.rule.startswith(RULE_ANY) else 1


def _rules(thresholds: Thresholds, results: list[CheckResult]) -> Iterator[str]:
    yield RULE_ANY if thresholds.require == "any" else RULE_ALL
    if any(result.missing for result in results):
        yield RULE_MISSING
    if not all(result.error_control for result in results):
        yield RULE_VALUE


def _benchmarks(check: Check, request: AnalysisRequest) -> tuple[str, ...]:
    return (check.benchmark,) if check.benchmark else request.benchmarks


def _overall(outcomes: list[Outcome]) -> Outcome:
    if "failed" in outcomes:
        return "failed"
    return "inconclusive" if "inconclusive" in outcomes else "passed"


def _overall_any(results: list[CheckResult]) -> Outcome:
    """A check passes when it passes on all of its benchmarks; one such check is enough, and only if all fail the whole fails."""
    of_checks = {_overall([result.outcome for result in group]) for _, group in groupby(results, key=lambda result: result.check.id)}
    if "passed" in of_checks:
        return "passed"
    return "failed" if of_checks == {"failed"} else "inconclusive"


def _check(check: Check, benchmark: str, findings: Findings, settled: SettledEstimate | None) -> CheckResult:
    estimate = estimate_of(check, benchmark, findings.estimates())
    if estimate is None:
        return CheckResult(check=check, benchmark=benchmark, observed=None, outcome="inconclusive", why=NOT_COMPARED, error_control=True)
    outcome, why = _decide(estimate, check)
    result = CheckResult(check=check, benchmark=benchmark, observed=estimate, outcome=outcome, why=why, error_control=check.bound != "value")
    return result if settled is None else _against_missing(result, settled)


def _against_missing(result: CheckResult, settled: SettledEstimate) -> CheckResult:
    """Leave passed what passes also with every missing answer counted against it."""
    result = result.model_copy(update={"missing": settled.missing, "settled": settled.estimate})
    if result.outcome != "passed":
        return result
    if settled.estimate is None:
        return result.model_copy(update={"outcome": "inconclusive", "why": f"{MISSING_UNKNOWN}{settled.undefined}"})
    outcome, why = _decide(settled.estimate, result.check)
    if outcome == "passed":
        return result.model_copy(update={"why": result.why + ALSO_MISSING})
    return result.model_copy(update={"outcome": "inconclusive", "why": MISSING_OPEN + why})


def _corrected(results: list[CheckResult]) -> list[CheckResult]:
    """Leave passed what Holm's method lets pass.

    With k checks of which r pass, the s-th smallest p-value is at most its error rate / (k - s + 1) for every s up to r. That is the same as:
    at the error rates divided by k - s + 1 at least s checks pass, which bounds at those rates tell without p-values. Checks that differ in
    their error rates are compared by p-value over error rate. Of t checks whose claims are false, the first to pass wrongly does so while at
    least t checks are left, so at its rate / t or less; over all t that sums to at most the largest of their rates. Checks whose bounds hold all
    together err, together, no more often than one: they count as one, which has passed when all of them have.

    References: Holm (1979), Scand. J. Stat. 6, 65-70.
    """
    units: dict[str, list[CheckResult]] = {}
    for result in results:
        units.setdefault(_unit(result), []).append(result)

    def passing(divisor: int) -> int:
        return sum(all(_passes_at(result, divisor) for result in unit) for unit in units.values())

    passed = 0
    while passed < len(units) and passing(len(units) - passed) > passed:
        passed += 1
    divisor = max(1, len(units) - passed)
    return [_at(result, divisor) for result in results]


def _unit(result: CheckResult) -> str:
    """Name what counts as one in the correction: a check, or all checks of an analysis whose bounds hold all together."""
    jointly = result.observed is not None and result.observed.jointly
    return f"analysis {result.check.analysis}" if jointly else f"check {result.check.id}"


def _at(result: CheckResult, divisor: int) -> CheckResult:
    if _passes_at(result, divisor):
        why = result.why if result.outcome == "passed" else TEST_RIGHT_ALONE + (ALSO_MISSING if result.missing else "")
        return result.model_copy(update={"outcome": "passed", "why": why, "divisor": divisor})
    if result.outcome == "passed" or _passes_at(result, 1):
        return result.model_copy(update={"outcome": "inconclusive", "why": CORRECTED, "divisor": divisor})
    return result.model_copy(update={"divisor": divisor})


def _passes_at(result: CheckResult, divisor: int) -> bool:
    """Return whether a check passes at its error rate divided, with missing answers against it too; without bounds at that rate it does not."""
    held = (result.observed, result.settled) if result.missing else (result.observed,)
    return all(estimate is not None and _clears(estimate, result.check, divisor) for estimate in held)


def _clears(estimate: Estimate, check: Check, divisor: int) -> bool:
    bounds = next((bounds for bounds in estimate.stricter if bounds.divisor == divisor), None)
    if bounds is None:
        return divisor == 1 and _decide(estimate, check)[0] == "passed"
    return _decide(estimate.model_copy(update={"low": bounds.low, "high": bounds.high, "separated": bounds.separated}), check)[0] == "passed"


def _advised(result: CheckResult, forecast: GateForecast | None) -> CheckResult:
    told = _fitting(forecast, result.observed)
    if result.outcome != "inconclusive":
        return result.model_copy(update={"forecast": told})
    return result.model_copy(update={"forecast": told, "advice": _advice(result)})


def _fitting(forecast: GateForecast | None, observed: Estimate | None) -> GateForecast | None:
    """Return a forecast without its numbers where what came out is no count of right and wrong answers, which nobody knew before scoring."""
    if forecast is None or forecast.undefined is not None or observed is None or observed.method not in MEANS:
        return forecast
    return forecast.model_copy(update={"power": None, "needed": None, "smallest": None, "why_not": None, "undefined": FRACTIONAL})


def _advice(result: CheckResult) -> str:
    """Return what another look costs: planned looks and the e-value exist for differences only."""
    observed = result.observed
    if observed is not None and observed.anytime:
        return NO_E_VALUE if observed.value is None else ANY_LOOK
    looks = None if observed is None else observed.looks
    if observed is None or looks is None or looks == 1:
        return SINGLE_LOOK if result.check.metric == "difference" else ONE_LOOK
    return LAST_LOOK if observed.look == looks else PLANNED_LOOK


def _decide(estimate: Estimate, check: Check) -> tuple[Outcome, str]:
    limit = limit_of(check)
    if estimate.basis == "predicted" or estimate.value is None:
        return "inconclusive", UNDEFINED if estimate.value is None else PREDICTED
    if check.bound == "value":
        return ("passed", VALUE_RIGHT) if limit.clears(estimate.value) else ("failed", VALUE_WRONG)
    if estimate.separated is not None and limit.value == 0:
        return _decide_by_test(estimate, limit)
    worst, best = (estimate.low, estimate.high) if limit.lower else (estimate.high, estimate.low)
    if worst is None:
        return "inconclusive", NO_BOUND
    if limit.clears(worst):
        return "passed", RIGHT_SIDE
    return ("inconclusive", STRADDLES) if best is None or limit.clears(best) else ("failed", WRONG_SIDE)


def _decide_by_test(estimate: Estimate, limit: Limit) -> tuple[Outcome, str]:
    if not estimate.separated or not estimate.value:
        return "inconclusive", TEST_OPEN
    return ("passed", TEST_RIGHT) if (estimate.value > 0) == limit.lower else ("failed", TEST_WRONG)
