"""What follows for the release?  Checks with three outcomes, and the overall one."""

from __future__ import annotations

from typing import Literal

from evalspec.artifacts.base import Artifact, Digest, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.thresholds import Check

Outcome = Literal["passed", "failed", "inconclusive"]


class CheckResult(Artifact):
    """One check on one estimate: what was required, what was observed, and why the outcome follows.

    `settled` is the estimate with the `missing` answers counted against the check, where some are and that can be told: a check passes only if
    that passes too. `divisor` is what the check's error rate was divided by, so that several checks together keep it. `forecast` holds the questions
    that the check needs under its declared or assumed truth, and `advice` what an undecided check leaves to do.
    """

    check: Check
    benchmark: Identifier
    observed: Estimate | None
    outcome: Outcome
    why: str
    error_control: bool
    missing: int = 0
    settled: Estimate | None = None
    divisor: int = 1
    forecast: GateForecast | None = None
    advice: str | None = None


class Verdict(Artifact):
    """The outcome of all checks; `overall` is None when the study sets no thresholds."""

    findings_sha256: Digest
    checks: tuple[CheckResult, ...]
    overall: Outcome | None
    inconclusive: Literal["block", "warn"] = "block"
    rule: str

    @property
    def exit_code(self) -> Literal[0, 1, 4]:
        """0 every check passed or there is none, 1 a check failed, 4 it cannot be told and the study does not let that pass."""
        if self.overall == "failed":
            return 1
        return 4 if self.overall == "inconclusive" and self.inconclusive == "block" else 0
