"""What can be typed?  The verbs of `evalspec`; with `console`, the only modules that print, and the only one that exits.

Heavy stages are imported inside the verb that needs them, so that `evalspec --help` and `evalspec validate` start fast.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalspec.arguments import parser
from evalspec.choices import seal_of, settings_of, study_of, trust_of
from evalspec.console import Console, close_streams, open_streams
from evalspec.errors import EvalspecError, Interrupted, StoreError, UsageError, counted

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.further_checks import Answer
    from evalspec.signing.verification import Verification

REPORTS = Path("reports")
COULD_NOT_BE_DONE = 3
GOES_ON = "every finished batch of a run is kept; the same command goes on from there"


def run_and_exit() -> NoReturn:
    """Run the command line and exit with its code; a bug shows its traceback and is never taken for a failed check, which is 1."""
    open_streams()
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # once more, while the first one was told
        code = Interrupted.exit_code
    except Exception:  # noqa: BLE001 - shown whole below
        Console().note(f"{traceback.format_exc()}this is a bug in evalspec; please report it with the lines above")
        code = COULD_NOT_BE_DONE
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said; Ctrl-C once more changes nothing
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return its exit code; what a user can mend is printed, anything else is a bug and is raised."""
    console = Console(json="--json" in arguments, quiet="--quiet" in arguments)
    kept = GOES_ON if "run" in arguments[:1] else None
    try:
        code = _run_verb(arguments, console)
        close_streams()
    except EvalspecError as error:
        return _fail(console, error)
    except OSError as error:
        told = f"{error.filename}: {error.strerror or error}" if error.filename else str(error)
        return _fail(console, StoreError(told, hint=kept))
    except KeyboardInterrupt:
        return _fail(console, Interrupted("stopped", hint=kept))
    return code


def _run_verb(arguments: Sequence[str], console: Console) -> int:
    try:
        options = parser(VERBS).parse_args(arguments)
    except SystemExit as shown:  # a help text, the version, a completion script
        return int(shown.code or 0)
    return int(options.verb(options, console))


def init(options: argparse.Namespace, console: Console) -> int:
    """Write a commented study that validates and runs."""
    from evalspec.analyses.catalogue import catalogue
    from evalspec.language.scaffold import STUDY, checkpoints_seen_from, starter_files, write_new

    folder: Path = options.folder
    files = starter_files(checkpoints_seen_from(folder, options.model), catalogue())
    write_new(folder, files)
    study, written = folder / STUDY, [str(folder / name) for name in files]
    listed = "\n".join(f"  {name}" for name in written)
    console.result({"written": list(written)}, f"written:\n{listed}\nnext:\n  evalspec validate {study}\n  evalspec run {study}")
    return 0


def validate(options: argparse.Namespace, console: Console) -> int:
    """Say whether a study can be run, or every fault of it."""
    from evalspec.checking import check, check_models

    settings = settings_of(options)
    sound = check(study_of(options), settings)
    seen = check_models(sound, settings)
    absent = (*sound.absent, *seen.absent)
    study = sound.compiled.study
    checks = study.thresholds.checks if study.thresholds else ()
    counts = {"models": len(study.models), "benchmarks": len(study.benchmarks), "analyses": len(study.analyses), "checks": len(checks)}
    for error in absent:
        console.note(f"not looked at: {error}")
    _warn(seen.left_out, console)
    content: dict[str, JsonValue] = {
        "study": str(options.study),
        "valid": True,
        "study_sha256": study.source_sha256,
        "not_looked_at": [error.diagnostics[0].message for error in absent],
        "warnings": list(seen.left_out),
        **counts,
    }
    singular = ("model", "benchmark", "analysis", "check")
    parts = ", ".join(counted(number, one, many) for one, (many, number) in zip(singular, counts.items(), strict=True))
    console.result(content, f"{options.study}: valid ({parts})")
    return 0


def plan(options: argparse.Namespace, console: Console) -> int:
    """Print what will be scored, on what, for how long, and which gaps the sample can find."""
    from evalspec.pipeline import calibrate, prepare
    from evalspec.planning.describe import describe

    study, settings = study_of(options), settings_of(options)
    prepared = calibrate(study, settings, progress=console.progress) if options.calibrate else prepare(study, settings)
    _warn(prepared.warnings, console)
    content = {
        "protocol_sha256": prepared.protocol.digest(),
        "protocol": json.loads(prepared.protocol.to_json()),
        "schedule": json.loads(prepared.schedule.to_json()),
        "warnings": list(prepared.warnings),
    }
    console.result(content, describe(prepared.schedule, prepared.protocol))
    return 0


def lock(options: argparse.Namespace, console: Console) -> int:
    """Sign the plan of a study before anything is scored."""
    from evalspec import pipeline
    from evalspec.conclusion import conclude_lock
    from evalspec.preregistration import lock_beside

    study, settings = study_of(options), settings_of(options)
    file = lock_beside(study)
    seal = seal_of(options, settings, console, file.with_name(file.name.removesuffix(".dsse.json")))
    return conclude_lock(pipeline.lock(study, settings, seal_with=seal, replace=options.replace, progress=console.progress), seal, console)


def run(options: argparse.Namespace, console: Console) -> int:
    """Score, analyse, check, report and sign."""
    from evalspec import pipeline
    from evalspec.conclusion import conclude
    from evalspec.preregistration import LockChoice

    study, settings, out = study_of(options), settings_of(options), options.out or REPORTS / options.study.stem
    seal = seal_of(options, settings, console, out)
    budget = [] if options.token_budget is None else ["--token-budget", str(options.token_budget)]
    held = LockChoice(options.lock, allow_deviations=options.allow_deviations)
    departing = ["--allow-deviations"] if options.allow_deviations else []
    command = shlex.join(["evalspec", "run", str(study), *budget, *departing])
    return conclude(pipeline.run(study, out, settings, seal_with=seal, command=command, held=held, progress=console.progress), seal, console)


def report(options: argparse.Namespace, console: Console) -> int:
    """Compose and sign the report of a finished run once more."""
    from evalspec import pipeline
    from evalspec.conclusion import conclude
    from evalspec.store import STUDY

    settings, target = settings_of(options), options.study
    folder = options.out or (target if target.is_dir() else REPORTS / target.stem)
    if not (folder / STUDY).is_file():
        raise UsageError(f"there is no finished run in {folder}", hint=f"run the study first: evalspec run {'STUDY' if target.is_dir() else target}")
    seal = seal_of(options, settings, console, folder)
    return conclude(pipeline.report(folder, settings, seal_with=seal), seal, console)


def verify(options: argparse.Namespace, console: Console) -> int:
    """Say whether a report is intact and who signed it; if asked, whether numbers follow from responses, and responses from weights."""
    from evalspec.signing.verification import Expected
    from evalspec.signing.verify import verify as verify_folder
    from evalspec.signing.verify import verify_pdf

    target, trust = options.target, trust_of(options)
    if target.is_file() and (options.recompute or options.render or options.earlier or options.rescore):
        raise UsageError("--recompute, --render, --earlier and --rescore need the run directory; a PDF alone does not hold its files")
    if not options.rescore and any(getattr(options, name) is not None for name in ("seed", "models", "study", "devices", "threads")):
        raise UsageError("--seed, --models, --study, --devices and --threads say how questions are scored again", hint="give --rescore N with them")
    if target.is_file() and options.expect_run:
        raise UsageError("--expect-run needs the run directory; a PDF alone does not name its run", hint="give --expect-study")
    if options.earlier and not options.earlier.is_dir():
        raise UsageError(f"there is no folder {options.earlier}", hint="name the directory of the earlier run with --earlier")
    expected = Expected(study_sha256=options.expect_study, run_id=options.expect_run)
    checked = (verify_pdf if target.is_file() else verify_folder)(target, trust, expected=expected)
    lines, code, content = [checked.describe()], int(checked.exit_code), json.loads(checked.model_dump_json(exclude={"statement"}))
    asked = options.recompute or options.render or options.earlier or options.rescore
    if asked or (target.is_file() and checked.outcome == "intact"):
        from evalspec.further_checks import combined

        found = _further(options, checked, console)
        lines += [one.text for one in found]
        content |= {one.name: {"state": one.state, "text": one.text} for one in found}
        code = combined(code, found)
    console.result({**content, "exit_code": code}, "\n".join(lines))
    return code


def _further(options: argparse.Namespace, checked: Verification, console: Console) -> list[Answer]:
    """Ask what is asked beyond the signature."""
    from evalspec.further_checks import Draw, check_derived, check_earlier_rows, check_recomputed, check_rendered, check_rescored

    if options.target.is_file():
        return [check_derived(options.target, checked)]
    found = list(check_recomputed(options.target, checked)) if options.recompute else []
    if options.render:
        found.append(check_rendered(options.target, checked))
    if options.earlier:
        found.append(check_earlier_rows(options.target, checked, options.earlier))
    if options.rescore:
        draw = Draw(options.rescore, options.seed, options.study, options.models)
        found.append(check_rescored(options.target, checked, draw, settings_of(options), console.progress))
    return found


def diff(options: argparse.Namespace, console: Console) -> int:
    """Compare two runs."""
    from evalspec.comparison import compare_runs
    from evalspec.comparison_text import describe

    found = compare_runs(options.first, options.second)
    console.result(json.loads(found.to_json()), describe(found))
    return 0


def keygen(options: argparse.Namespace, console: Console) -> int:
    """Make a signing key."""
    from evalspec.sealing import new_passphrase
    from evalspec.signing.keys import make_key, write_key
    from evalspec.signing.trust import TrustedSigner, read_trust, write_trust

    if options.out.exists():
        raise UsageError(f"{options.out} exists; a key is never overwritten", hint="name another file with --out")
    if options.trust and options.trust.exists():
        read_trust(options.trust)  # what is wrong with it is told before there is a key
    passphrase = None if options.no_passphrase else new_passphrase()
    key = make_key(options.organisation, years=options.years)
    write_key(options.out, key, passphrase)
    if options.trust:
        write_trust(options.trust, (TrustedSigner.of(key.certificate),))
    text = (
        f"key: {options.out} (keep it secret)\nfingerprint: {key.fingerprint}\n"
        + (f"trust file: {options.trust} (give it to those who verify)\n" if options.trust else "")
        + f"sign with it: evalspec run STUDY --key {options.out}"
    )
    console.result({"key": str(options.out), "fingerprint": key.fingerprint, "trust": str(options.trust) if options.trust else None}, text)
    return 0


def schema(_options: argparse.Namespace, console: Console) -> int:
    """Print the JSON Schema of the study language, for editors."""
    from evalspec.analyses.catalogue import catalogue
    from evalspec.language.grammar import build_grammar

    content = build_grammar(catalogue()).schema()
    console.result(content, json.dumps(content, indent=2, ensure_ascii=False))
    return 0


def doctor(options: argparse.Namespace, console: Console) -> int:
    """Say what is installed, what is missing and how to get it."""
    from evalspec.doctor import describe, examine

    settings = settings_of(options)
    found = examine(cache=settings.cache, key=settings.key)
    complete = all(entry.present or entry.optional for entry in found)
    console.result({"complete": complete, "examined": [entry.to_json() for entry in found]}, describe(found))
    return 0 if complete else COULD_NOT_BE_DONE


VERBS = {verb.__name__: verb for verb in (init, validate, plan, lock, run, report, verify, diff, keygen, schema, doctor)}


def _warn(told: Sequence[str], console: Console) -> None:
    for text in told:
        console.note(f"warning: {text}")


def _fail(console: Console, error: EvalspecError) -> int:
    console.error(error)
    return error.exit_code
