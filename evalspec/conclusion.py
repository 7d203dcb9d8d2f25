"""What is said at the end of a run, or of locking one?  The outcome of every check, where the report is, and how it is verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalspec.console import Console, error_content
from evalspec.errors import counted
from evalspec.gating import UNDEFINED, planned_divisor
from evalspec.pipeline import Outcome
from evalspec.planning.describe import percent
from evalspec.preregistration import Locked
from evalspec.sealing import Seal

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.artifacts.lock import LockedPlan
    from evalspec.artifacts.schedule import GateForecast
    from evalspec.artifacts.verdict import CheckResult, Verdict


def conclude(outcome: Outcome, seal: Seal, console: Console) -> int:
    """Print the outcome of every check, where the report is and how it is verified; return the exit code of DESIGN."""
    verdict, folder, fault = outcome.verdict, outcome.folder, outcome.fault
    trust = seal.public.file if seal.public else None
    pages = " and ".join(str(folder / name) for name in ("report.html", "report.pdf") if (folder / name).is_file())
    content: dict[str, JsonValue] = {
        "verdict": verdict.overall,
        "checks": [json.loads(result.model_dump_json()) for result in verdict.checks],
        "folder": str(folder),
        "trust": str(trust) if trust else None,
        "plan": _plan(outcome.plan) if outcome.plan else None,
    }
    if fault is not None:
        content.update(error_content(fault))
    plan = "".join(f"{line}\n" for line in outcome.plan.describe()) if outcome.plan else ""
    console.result(content, f"{describe(verdict)}\n{plan}report: {pages}\nverify it: evalspec verify {folder} --trust {trust or 'TRUST_FILE'}")
    if trust is not None:
        console.note(f"signed with a throw-away key; its public part is in {trust}. For a key of your own: evalspec keygen --help")
    if fault is not None:
        if not console.json:
            console.error(fault)
        console.note(f"everything but the PDF was written to {folder} and signed; `evalspec report {folder}` makes the rest once that is mended")
        return fault.exit_code
    return verdict.exit_code


def describe(verdict: Verdict) -> str:
    """Return the outcome of every check, and the verdict last, in plain lines."""
    rows = [line for result in verdict.checks for line in _described(result, planned_divisor(verdict))]
    return "\n".join([*rows, f"verdict: {verdict.overall}" if verdict.overall else "verdict: none, because the study sets no thresholds"])


def conclude_lock(locked: Locked, seal: Seal, console: Console) -> int:
    """Print what was locked and what was known by then."""
    lock, trust = locked.lock, seal.public.file if seal.public else None
    before, earlier = lock.before, lock.earlier
    lines = [
        f"locked: {locked.file}",
        f"protocol: SHA-256 {lock.protocol_sha256}",
        f"at {lock.locked_at} ({lock.time_authority})",
        (f"answers known before: {before.answers:,} of {before.asked:,} in the journal" if before.asked else "answers known before: nothing to score")
        + (f"; recorded earlier: {', '.join(before.replayed)}" if before.replayed else "")
        + (f"; {counted(before.looks, 'set')} of answers judged" if before.looks else ""),
        f"earlier attempts: {counted(earlier.locks, 'lock')}, {counted(earlier.runs, 'run')}"
        + (f", seeds {', '.join(map(str, earlier.seeds))}" if earlier.seeds else ""),
        "keep the file under version control; `evalspec run` holds the study against it",
    ]
    content: dict[str, JsonValue] = {
        "lock": str(locked.file),
        "trust": str(trust) if trust else None,
        **json.loads(lock.model_dump_json(exclude={"study", "protocol", "signer_certificate"})),
    }
    console.result(content, "\n".join(lines))
    if trust is not None:
        console.note(f"signed with a throw-away key; its public part is in {trust}. For a key of your own: evalspec keygen --help")
    return 0


def _plan(plan: LockedPlan) -> JsonValue:
    return {
        "locked_at": plan.lock.locked_at,
        "signer": plan.signer,
        "fingerprint": plan.fingerprint,
        "as_locked": plan.as_locked,
        "deviations": [
            {"file": deviation.file, "path": deviation.path, "locked": deviation.locked, "run": deviation.run} for deviation in plan.deviations
        ],
        "exploratory": [*sorted(plan.unplanned)],
    }


def _described(result: CheckResult, planned: int) -> Iterator[str]:
    reason = result.observed.undefined if result.observed is not None and result.why == UNDEFINED else None
    yield f"{result.outcome:<13}{result.check.id} ({result.benchmark}): {result.why}{f': {reason}' if reason else ''}"
    if result.missing:
        yield f"{'':<13}{_with_missing(result)}"
    if result.divisor > 1 and result.outcome != "failed":
        yield f"{'':<13}corrected by Holm's method for the number of checks: decided at its error rate / {result.divisor}"
    if result.outcome != "inconclusive":
        return
    yield f"{'':<13}{_needed(result.forecast)}"
    stated = result.forecast is not None and result.forecast.states_need
    if result.missing and stated:
        yield f"{'':<13}that takes no answer as missing: those that are count against this check until they are given"
    if planned > 1 and stated:
        yield f"{'':<13}that alpha is planned: its error rate / {planned}, for {planned} checks, the smallest that Holm's method may ask for"
    if result.advice:
        yield f"{'':<13}{result.advice}"


def _needed(told: GateForecast | None) -> str:
    """Say how many questions the wanted power needs, under which truth and at which alpha: that of the last look where several are planned."""
    if told is None or told.needed is None:
        return _not_needed(told)
    truth = f"a true value of {told.truth:g} ({_known(declared=told.truth_declared)})"
    if told.discordance is not None:
        truth += f" and {told.discordance * 100:.3g} % discordant questions ({_known(declared=told.discordance_declared)})"
    last = told.last
    if last is not None and last.power is not None and told.needed <= last.n:
        look = f"look {last.look}, the last one planned, of {last.n:,} questions at alpha {last.alpha:.4g}"
        return f"with {truth}, {look}, passes with a chance of {percent(last.power)}"
    beyond = f", more than the {told.source_size:,} of this source" if told.needed > told.source_size else ""
    of = "" if told.subject is None else " of this subject"
    enough = told.last is None and told.needed <= told.n
    asked = f"; the {told.n:,} asked have {percent(told.power)}" if enough and told.power is not None else ""
    return f"with {truth}, {told.wanted * 100:.3g} % power at {_alpha(told)} needs {told.needed:,} questions{of}{beyond}{asked}"


def _not_needed(told: GateForecast | None) -> str:
    reason = None if told is None else told.undefined or told.why_not
    if told is not None and told.undefined and told.why_not:
        return f"this sample is too small for it: {told.why_not}; the questions needed cannot be stated: {told.undefined}"
    if reason is not None:
        return f"the questions needed cannot be stated: {reason}"
    if told is None or told.smallest is None:
        return "the questions needed cannot be stated: nothing was forecast for this check"
    n = told.n if told.last is None else told.last.n
    passing = f"{n:,} questions pass it with a chance of {told.wanted * 100:.3g} % at {_alpha(told)} if the true value is {told.smallest:.3g}"
    return f"{passing}; for the number of questions needed, declare the true value that you expect (assume)"


def _alpha(told: GateForecast) -> str:
    return f"alpha {told.alpha:.4g}" if told.last is None else f"the alpha of look {told.last.look}, the last one planned, {told.last.alpha:.4g},"


def _with_missing(result: CheckResult) -> str:
    counted = "1 missing answer" if result.missing == 1 else f"{result.missing:,} missing answers"
    settled = result.settled
    if settled is None or settled.value is None:
        return f"{counted} bearing on it"
    bounds = "" if settled.low is None or settled.high is None else f", interval {settled.low:.4g} to {settled.high:.4g}"
    return f"with the {counted} counted against it: {settled.value:.4g}{bounds}"


def _known(*, declared: bool) -> str:
    return "declared" if declared else "assumed"
