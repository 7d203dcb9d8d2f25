"""What is said at the end of a run, or of locking one?  The outcome of every check, where the report is, and how it is verified."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalspec.console import Console, counted, error_content
from evalspec.gating import describe
from evalspec.pipeline import Outcome
from evalspec.preregistration import Locked
from evalspec.sealing import Seal

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.artifacts.lock import LockedPlan


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
