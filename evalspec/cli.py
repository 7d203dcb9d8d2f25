"""What can be typed?  The verbs of `evalspec`; with `console`, the only modules that print, and the only one that exits.

Heavy stages are imported inside the verb that needs them, so that `evalspec --help` and `evalspec validate` start fast.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalspec.arguments import parser
from evalspec.console import Console, close_streams, counted, open_streams
from evalspec.errors import Diagnostic, EvalspecError, Interrupted, StoreError, StudyError, UsageError

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.further_checks import Answer
    from evalspec.sealing import Seal
    from evalspec.settings import Settings
    from evalspec.signing.trust import Trust
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

    settings = _settings(options)
    sound = check(_study(options), settings)
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
    from evalspec.pipeline import prepare
    from evalspec.planning.describe import describe

    prepared = prepare(_study(options), _settings(options))
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

    study, settings = _study(options), _settings(options)
    file = lock_beside(study)
    seal = _seal(options, settings, console, file.with_name(file.name.removesuffix(".dsse.json")))
    return conclude_lock(pipeline.lock(study, settings, seal_with=seal, replace=options.replace, progress=console.progress), seal, console)


def run(options: argparse.Namespace, console: Console) -> int:
    """Score, analyse, check, report and sign."""
    from evalspec import pipeline
    from evalspec.conclusion import conclude
    from evalspec.preregistration import LockChoice

    study, settings, out = _study(options), _settings(options), options.out or REPORTS / options.study.stem
    seal = _seal(options, settings, console, out)
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

    settings, target = _settings(options), options.study
    folder = options.out or (target if target.is_dir() else REPORTS / target.stem)
    if not (folder / STUDY).is_file():
        raise UsageError(f"there is no finished run in {folder}", hint=f"run the study first: evalspec run {'STUDY' if target.is_dir() else target}")
    seal = _seal(options, settings, console, folder)
    return conclude(pipeline.report(folder, settings, seal_with=seal), seal, console)


def verify(options: argparse.Namespace, console: Console) -> int:
    """Say whether a report is intact and who signed it; if asked, whether numbers follow from responses, and responses from weights."""
    from evalspec.signing.verify import verify as verify_folder
    from evalspec.signing.verify import verify_pdf

    target, trust = options.target, _trust(options)
    if target.is_file() and (options.recompute or options.rescore):
        raise UsageError("--recompute and --rescore need the run directory; a PDF alone does not hold the responses")
    if not options.rescore and any(getattr(options, name) is not None for name in ("seed", "models", "study", "devices", "threads")):
        raise UsageError("--seed, --models, --study, --devices and --threads say how questions are scored again", hint="give --rescore N with them")
    checked = verify_pdf(target, trust) if target.is_file() else verify_folder(target, trust)
    lines, code, content = [checked.describe()], int(checked.exit_code), json.loads(checked.model_dump_json(exclude={"statement"}))
    if options.recompute or options.rescore:
        from evalspec.further_checks import combined

        found = _further(options, checked, console)
        lines += [one.text for one in found]
        content |= {one.name: {"state": one.state, "text": one.text} for one in found}
        code = combined(code, found)
    console.result({**content, "exit_code": code}, "\n".join(lines))
    return code


def _further(options: argparse.Namespace, checked: Verification, console: Console) -> list[Answer]:
    """Ask what is asked beyond the signature."""
    from evalspec.further_checks import Draw, check_recomputed, check_rescored

    found = list(check_recomputed(options.target, checked)) if options.recompute else []
    if options.rescore:
        draw = Draw(options.rescore, options.seed, options.study, options.models)
        found.append(check_rescored(options.target, checked, draw, _settings(options), console.progress))
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

    settings = _settings(options)
    found = examine(cache=settings.cache, key=settings.key)
    complete = all(entry.present or entry.optional for entry in found)
    console.result({"complete": complete, "examined": [entry.to_json() for entry in found]}, describe(found))
    return 0 if complete else COULD_NOT_BE_DONE


VERBS = {verb.__name__: verb for verb in (init, validate, plan, lock, run, report, verify, diff, keygen, schema, doctor)}


def _study(options: argparse.Namespace) -> Path:
    path: Path = options.study
    if path.is_dir():
        raise StudyError(Diagnostic(f"{path} is a folder; a study is one YAML file", hint=f"name the file, such as {path / 'study.yaml'}"))
    return path


def _settings(options: argparse.Namespace) -> Settings:
    """Return options over evalspec.toml over defaults; the environment is read here, and for a new key's passphrase, and nowhere else."""
    from evalspec.settings import settings_for

    given = {
        name: getattr(options, name, None) for name in ("cache", "key", "trust_out", "token_budget", "devices", "threads", "executor", "ray_address")
    }
    pdf = False if getattr(options, "no_pdf", False) else None
    return settings_for(getattr(options, "study", None) or Path("study.yaml"), {**given, "pdf": pdf}, os.environ)


def _seal(options: argparse.Namespace, settings: Settings, console: Console, out: Path) -> Seal:
    from evalspec.sealing import seal_from

    chosen = replace(settings, key=None) if options.throwaway_key else settings
    return seal_from(chosen, out, warn=lambda text: console.note(f"warning: {text}"))


def _trust(options: argparse.Namespace) -> Trust:
    from evalspec.settings import user_folder
    from evalspec.signing.trust import Trust

    if options.trust:
        return Trust.from_file(options.trust)
    if options.fingerprint is not None:
        return Trust.in_fingerprint(options.fingerprint)
    if not options.tofu:
        return Trust()
    folder = user_folder(os.environ)
    if folder is None:
        raise UsageError("there is no home folder to remember a key in", hint="give --trust or --fingerprint")
    return Trust.on_first_use(folder / "known_signers.yaml")


def _warn(told: Sequence[str], console: Console) -> None:
    for text in told:
        console.note(f"warning: {text}")


def _fail(console: Console, error: EvalspecError) -> int:
    console.error(error)
    return error.exit_code
