"""What can be typed?  The verbs of `evalspec`; with `console`, the only modules that print, and the only one that exits.

Heavy stages are imported inside the verb that needs them, so that `evalspec --help` and `evalspec validate` start fast.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalspec.arguments import parser
from evalspec.console import Console, counted, error_content
from evalspec.errors import Diagnostic, EvalspecError, Interrupted, StoreError, StudyError, UsageError

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.pipeline import Outcome
    from evalspec.sealing import Seal
    from evalspec.settings import Settings
    from evalspec.signing.trust import Trust
    from evalspec.signing.verification import Verification

CODES = {"passed": 0, "failed": 1, "inconclusive": 4, None: 0}
COULD_NOT_BE_DONE = 3


def run_and_exit() -> NoReturn:
    """Run the command line and exit with its code; a bug shows its traceback and is never taken for a failed check, which is 1."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # the standard streams are text files
    try:
        code = main(sys.argv[1:])
    except Exception:  # noqa: BLE001 - shown whole below
        traceback.print_exc()
        print("this is a bug in evalspec; please report it with the lines above", file=sys.stderr)  # noqa: T201
        code = COULD_NOT_BE_DONE
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return its exit code; what a user can mend is printed, anything else is a bug and is raised."""
    console = Console(json="--json" in arguments, quiet="--quiet" in arguments)
    try:
        options = parser(VERBS).parse_args(arguments)
        return int(options.verb(options, console))
    except EvalspecError as error:
        return _fail(console, error)
    except OSError as error:
        return _fail(console, StoreError(f"{error.filename or 'a file'}: {error.strerror or error}"))
    except KeyboardInterrupt:
        return _fail(console, Interrupted("stopped", hint="every finished batch of a run is kept; the same command goes on from there"))


def init(options: argparse.Namespace, console: Console) -> int:
    """Write a commented study that validates and runs."""
    from evalspec.analyses.catalogue import catalogue
    from evalspec.language.scaffold import starter_files

    folder: Path = options.folder
    files = starter_files([os.path.relpath(model, folder) for model in options.model], catalogue())
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(f"{folder} already holds {', '.join(taken)}", hint="name another folder; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    study = folder / "study.yaml"
    written: list[JsonValue] = [str(folder / name) for name in files]
    listed = "\n".join(f"  {name}" for name in written)
    console.result({"written": written}, f"written:\n{listed}\nnext:\n  evalspec validate {study}\n  evalspec run {study}")
    return 0


def validate(options: argparse.Namespace, console: Console) -> int:
    """Say whether a study can be run, or every fault of it."""
    from evalspec.checking import check, check_models

    settings = _settings(options)
    sound = check(_study(options), settings)
    absent = (*sound.absent, *check_models(sound.compiled, settings))
    study = sound.compiled.study
    checks = study.thresholds.checks if study.thresholds else ()
    for error in absent:
        console.note(f"not looked at: {error}")
    content: dict[str, JsonValue] = {
        "study": str(options.study),
        "valid": True,
        "study_sha256": study.source_sha256,
        "not_looked_at": [error.diagnostics[0].message for error in absent],
        "models": len(study.models),
        "benchmarks": len(study.benchmarks),
        "analyses": len(study.analyses),
        "checks": len(checks),
    }
    parts = (
        counted(len(study.models), "model"),
        counted(len(study.benchmarks), "benchmark"),
        counted(len(study.analyses), "analysis", "analyses"),
        counted(len(checks), "check"),
    )
    console.result(content, f"{options.study}: valid ({', '.join(parts)})")
    return 0


def plan(options: argparse.Namespace, console: Console) -> int:
    """Print what will be scored, on what, for how long, and which gaps the sample can find."""
    from evalspec.pipeline import prepare
    from evalspec.planning.describe import describe

    prepared = prepare(_study(options), _settings(options))
    content = {
        "protocol_sha256": prepared.protocol.digest(),
        "protocol": json.loads(prepared.protocol.to_json()),
        "schedule": json.loads(prepared.schedule.to_json()),
    }
    console.result(content, describe(prepared.schedule, prepared.protocol))
    return 0


def run(options: argparse.Namespace, console: Console) -> int:
    """Score, analyse, check, report and sign."""
    from evalspec import pipeline

    study, settings, out = _study(options), _settings(options), options.out or _default_folder(options.study)
    seal = _seal(options, settings, console, out)
    budget = [] if options.token_budget is None else ["--token-budget", str(options.token_budget)]
    command = shlex.join(["evalspec", "run", str(study), *budget])
    return _conclude(pipeline.run(study, out, settings, seal_with=seal, command=command, progress=console.progress), seal, console)


def report(options: argparse.Namespace, console: Console) -> int:
    """Compose and sign the report of a finished run once more."""
    from evalspec import pipeline

    settings, target = _settings(options), options.study
    folder = options.out or (target if target.is_dir() else _default_folder(target))
    if not folder.is_dir():
        raise UsageError(f"there is no run directory {folder}", hint=f"run the study first: evalspec run {target}")
    seal = _seal(options, settings, console, folder)
    return _conclude(pipeline.report(folder, settings, seal_with=seal), seal, console)


def verify(options: argparse.Namespace, console: Console) -> int:
    """Say whether a report is intact and who signed it; with --recompute, whether its numbers follow from its responses."""
    from evalspec.signing.verify import verify as verify_folder
    from evalspec.signing.verify import verify_pdf

    target, trust = options.target, _trust(options)
    if target.is_file() and options.recompute:
        raise UsageError("--recompute needs the run directory; a PDF alone does not hold the responses")
    checked = verify_pdf(target, trust) if target.is_file() else verify_folder(target, trust)
    lines, code, content = [checked.describe()], int(checked.exit_code), json.loads(checked.model_dump_json(exclude={"statement"}))
    if options.recompute:
        state, text, recomputed_code = _recompute(target, checked)
        lines.append(text)
        content["recomputation"] = {"state": state, "text": text}
        code = recomputed_code if code in {0, 4} and recomputed_code else code
    console.result({**content, "exit_code": code}, "\n".join(lines))
    return code


def keygen(options: argparse.Namespace, console: Console) -> int:
    """Make a signing key."""
    from evalspec.sealing import new_passphrase
    from evalspec.signing.keys import make_key, write_key
    from evalspec.signing.trust import TrustedSigner, write_trust

    if options.out.exists():
        raise UsageError(f"{options.out} exists; a key is never overwritten", hint="name another file with --out")
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


VERBS = {
    "init": init,
    "validate": validate,
    "plan": plan,
    "run": run,
    "report": report,
    "verify": verify,
    "keygen": keygen,
    "schema": schema,
    "doctor": doctor,
}


def _study(options: argparse.Namespace) -> Path:
    path: Path = options.study
    if path.is_dir():
        raise StudyError(Diagnostic(f"{path} is a folder; a study is one YAML file", hint=f"name the file, such as {path / 'study.yaml'}"))
    return path


def _default_folder(study: Path) -> Path:
    return Path("reports") / study.stem


def _settings(options: argparse.Namespace) -> Settings:
    """Return options over evalspec.toml over defaults; the environment is read here, and for a new key's passphrase, and nowhere else."""
    from evalspec.language.paths import find_root
    from evalspec.settings import PASSPHRASE_VARIABLE, Settings, find_file, read_settings

    study: Path = getattr(options, "study", None) or Path("study.yaml")
    hub = os.environ.get("HF_HUB_CACHE") or str(Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub")
    anchor = study if study.is_dir() else study.parent
    defaults = Settings(cache=find_root(anchor) / ".evalspec", hub_cache=Path(hub), passphrase=os.environ.get(PASSPHRASE_VARIABLE))
    given = {name: getattr(options, name, None) for name in ("cache", "key", "trust_out", "token_budget", "threads")}
    return read_settings(find_file(study), defaults).updated({**given, "pdf": False if getattr(options, "no_pdf", False) else None})


def _seal(options: argparse.Namespace, settings: Settings, console: Console, out: Path) -> Seal:
    from evalspec.sealing import seal_from

    chosen = replace(settings, key=None) if options.throwaway_key else settings
    return seal_from(chosen, out, warn=lambda text: console.note(f"warning: {text}"))


def _trust(options: argparse.Namespace) -> Trust:
    from evalspec.signing.trust import Trust

    if options.trust:
        return Trust.from_file(options.trust)
    if options.fingerprint:
        return Trust.in_fingerprint(options.fingerprint)
    if options.tofu:
        return Trust.on_first_use(Path.home() / ".config" / "evalspec" / "known_signers.yaml")
    return Trust()


def _recompute(folder: Path, checked: Verification) -> tuple[str, str, int]:
    """Return what came of recomputing, in a word and in lines, and the exit code that follows from it."""
    if checked.outcome == "altered":
        return "not_recomputable", "not recomputed: the content is not as it was signed", COULD_NOT_BE_DONE
    from evalspec import pipeline

    found = pipeline.recompute(folder, checked)
    texts = {
        "recomputed": "recomputed: findings and verdict follow from the recorded responses",
        "differs": "\n".join(map(str, found.divergences)),
        "not_recomputable": f"not recomputable: {found.why}",
    }
    return found.state, texts[found.state], {"recomputed": 0, "differs": 1, "not_recomputable": COULD_NOT_BE_DONE}[found.state]


def _conclude(outcome: Outcome, seal: Seal, console: Console) -> int:
    """Print the outcome of every check, where the report is and how it is verified; return the exit code of DESIGN."""
    from evalspec.gating import describe

    verdict, folder, fault = outcome.verdict, outcome.folder, outcome.fault
    trust = seal.public.file if seal.public else None
    pages = " and ".join(str(folder / name) for name in ("report.html", "report.pdf") if (folder / name).is_file())
    content: dict[str, JsonValue] = {
        "verdict": verdict.overall,
        "checks": [json.loads(result.model_dump_json()) for result in verdict.checks],
        "folder": str(folder),
        "trust": str(trust) if trust else None,
    }
    if fault is not None:
        content.update(error_content(fault))
    console.result(content, f"{describe(verdict)}\nreport: {pages}\nverify it: evalspec verify {folder} --trust {trust or 'TRUST_FILE'}")
    if trust is not None:
        console.note(f"signed with a throw-away key; its public part is in {trust}. For a key of your own: evalspec keygen --help")
    if fault is not None:
        if not console.json:
            console.error(fault)
        console.note(f"everything but the PDF was written to {folder} and signed; `evalspec report {folder}` makes the rest once that is mended")
        return fault.exit_code
    return 0 if verdict.overall == "inconclusive" and verdict.inconclusive == "warn" else CODES[verdict.overall]


def _fail(console: Console, error: EvalspecError) -> int:
    console.error(error)
    return error.exit_code
