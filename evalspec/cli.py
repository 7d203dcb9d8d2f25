"""What can be typed?  The verbs of `evalspec`; with `console`, the only modules that print, and the only one that exits.

Heavy stages are imported inside the verb that needs them, so that `evalspec --help` and `evalspec validate` start fast.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evalspec.arguments import parser
from evalspec.console import Console
from evalspec.errors import Diagnostic, EvalspecError, SigningError, StudyError, UsageError

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.pipeline import Outcome
    from evalspec.settings import Settings
    from evalspec.signing.keys import FileSigner
    from evalspec.signing.trust import Trust
    from evalspec.tools import Seal

PASSPHRASE_VARIABLE = "EVALSPEC_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable, not a secret
CHECKED_OUT = {"passed": 0, "failed": 1, None: 0}
INTERRUPTED = 130


def run_and_exit() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return its exit code; what a user can mend is printed, anything else is a bug and shows its traceback."""
    options = parser(VERBS).parse_args(arguments)
    console = Console(json=options.json, quiet=getattr(options, "quiet", False))
    try:
        return int(options.verb(options, console))
    except EvalspecError as error:
        console.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        console.note("stopped; every finished batch is kept, and the same command goes on from there")
        return INTERRUPTED


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
    written = "\n".join(f"  {folder / name}" for name in files)
    console.result(
        {"written": [str(folder / name) for name in files]}, f"written:\n{written}\nnext:\n  evalspec validate {study}\n  evalspec run {study}"
    )
    return 0


def validate(options: argparse.Namespace, console: Console) -> int:
    """Say whether a study can be run, or every fault of it."""
    from evalspec.checking import check

    sound = check(_study(options), _settings(options))
    study = sound.compiled.study
    facts = {
        "models": len(study.models),
        "benchmarks": len(study.benchmarks),
        "analyses": len(study.analyses),
        "checks": len(study.thresholds.checks) if study.thresholds else 0,
    }
    for error in sound.absent:
        console.note(f"not looked at: {error}")
    counted = ", ".join(f"{count} {name}" for name, count in facts.items())
    absent: list[JsonValue] = [error.diagnostics[0].message for error in sound.absent]
    content: dict[str, JsonValue] = {
        "study": str(options.study),
        "valid": True,
        "study_sha256": study.source_sha256,
        "not_looked_at": absent,
        **facts,
    }
    console.result(content, f"{options.study}: valid ({counted})")
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
    command = shlex.join(["evalspec", "run", str(options.study)])
    outcome = pipeline.run(study, out, settings, seal_with=seal, command=command, progress=console.progress)
    return _conclude(outcome, console)


def report(options: argparse.Namespace, console: Console) -> int:
    """Compose and sign the report of a finished run once more."""
    from evalspec import pipeline

    settings, target = _settings(options), options.study
    folder = options.out or (target if target.is_dir() else _default_folder(target))
    if not folder.is_dir():
        raise UsageError(f"there is no run directory {folder}", hint=f"run the study first: evalspec run {target}")
    return _conclude(pipeline.report(folder, settings, seal_with=_seal(options, settings, console, folder)), console)


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
        recomputed, recomputed_code = _recompute(options, checked.outcome)
        lines.append(recomputed["text"])
        content["recomputation"] = recomputed
        code = recomputed_code if code in {0, 4} and recomputed_code else code
    console.result({**content, "exit_code": code}, "\n".join(lines))
    return code


def keygen(options: argparse.Namespace, console: Console) -> int:
    """Make a signing key."""
    from evalspec.signing.keys import make_key, write_key
    from evalspec.signing.trust import TrustedSigner, write_trust

    if options.out.exists():
        raise UsageError(f"{options.out} exists; a key is never overwritten", hint="name another file with --out")
    passphrase = None if options.no_passphrase else _new_passphrase()
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
    from evalspec.doctor import examine

    settings = _settings(options)
    found = examine(cache=settings.cache, key=settings.key)
    rows = []
    for entry in found:
        rows.append(f"{'ok' if entry.present else 'MISSING':<8}{entry.name:<14}{entry.found}")
        if not entry.present:
            rows.append(f"{'':<8}{'':<14}needed to {entry.needed_for}" + (f": {entry.remedy}" if entry.remedy else ""))
    present = all(entry.present for entry in found)
    console.result({"complete": present, "examined": [entry.to_json() for entry in found]}, "\n".join(rows))
    return 0 if present else 3


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
    """Return options over evalspec.toml over defaults; the environment is read here and nowhere else."""
    from evalspec.language.paths import find_root
    from evalspec.settings import Settings, find_file, read_settings

    study: Path = getattr(options, "study", None) or Path("study.yaml")
    hub = os.environ.get("HF_HUB_CACHE") or str(Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub")
    anchor = study if study.is_dir() else study.parent
    defaults = Settings(cache=find_root(anchor) / ".evalspec", hub_cache=Path(hub), passphrase=os.environ.get(PASSPHRASE_VARIABLE))
    given = {name: getattr(options, name, None) for name in ("cache", "key", "trust_out", "token_budget", "threads")}
    return read_settings(find_file(study), defaults).updated({**given, "pdf": False if getattr(options, "no_pdf", False) else None})


def _seal(options: argparse.Namespace, settings: Settings, console: Console, out: Path) -> Seal:
    """Return the key to sign with; without one, a throw-away key whose public part is written beside the run directory."""
    from evalspec.signing.keys import FileSigner, make_key
    from evalspec.signing.trust import TrustedSigner, write_trust
    from evalspec.tools import Seal

    if settings.key is not None and not options.throwaway_key:
        signer = _load_key(settings.key, settings.passphrase)
        if signer.note:
            console.note(f"warning: {signer.note}")
        return Seal(signer, TrustedSigner.of(signer.certificate).name)
    key = make_key("evalspec throw-away key", years=1)
    trust = settings.trust_out or out.with_name(f"{out.name}.trust.yaml")
    trust.parent.mkdir(parents=True, exist_ok=True)
    trust.unlink(missing_ok=True)
    write_trust(trust, (TrustedSigner.of(key.certificate),))
    console.note(f"signing with a throw-away key; its public part is in {trust}. For a key of your own: evalspec keygen --help")
    return Seal(FileSigner(key.private, key.certificate), "evalspec throw-away key", throw_away=True)


def _load_key(path: Path, passphrase: str | None) -> FileSigner:
    """Read the signing key; ask for the passphrase where one is needed, none was given and there is somebody to ask."""
    from evalspec.signing.keys import load_signer

    try:
        return load_signer(path, passphrase)
    except SigningError:
        if passphrase is not None or not path.is_file() or not sys.stdin.isatty():
            raise
    return load_signer(path, getpass.getpass(f"passphrase of {path}: "))


def _new_passphrase() -> str:
    if given := os.environ.get(PASSPHRASE_VARIABLE):
        return given
    if not sys.stdin.isatty():
        raise UsageError("a key needs a passphrase", hint=f"set {PASSPHRASE_VARIABLE}, or give --no-passphrase for a key that is protected otherwise")
    first = getpass.getpass("passphrase for the new key: ")
    if not first or first != getpass.getpass("once more: "):
        raise UsageError("the two passphrases differ or are empty", hint="nothing was written; try again")
    return first


def _trust(options: argparse.Namespace) -> Trust:
    from evalspec.signing.trust import Trust

    if options.trust:
        return Trust.from_file(options.trust)
    if options.fingerprint:
        return Trust.in_fingerprint(options.fingerprint)
    if options.tofu:
        return Trust.on_first_use(Path.home() / ".config" / "evalspec" / "known_signers.yaml")
    return Trust()


def _recompute(options: argparse.Namespace, outcome: str) -> tuple[dict[str, object], int]:
    from evalspec import pipeline
    from evalspec.signing.verify import verify as verify_folder

    if outcome != "intact":
        return {"state": "not_recomputable", "text": "not recomputed: the content is not as it was signed"}, 3
    found = pipeline.recompute(options.target, verify_folder(options.target, _trust(options)))
    texts = {
        "recomputed": "recomputed: findings and verdict follow from the recorded responses",
        "differs": "\n".join(map(str, found.divergences)),
        "not_recomputable": f"not recomputable: {found.why}",
    }
    return {"state": found.state, "text": texts[found.state]}, {"recomputed": 0, "differs": 1, "not_recomputable": 3}[found.state]


def _conclude(outcome: Outcome, console: Console) -> int:
    """Print the outcome of every check and where the report is; return the exit code of DESIGN."""
    verdict, folder = outcome.verdict, outcome.folder
    rows = [f"{result.outcome:<13}{result.check.id} ({result.benchmark}): {result.why}" for result in verdict.checks]
    overall = f"verdict: {verdict.overall}" if verdict.overall else "verdict: none (the study sets no thresholds)"
    pages = f"report: {folder / 'report.html'}" + (f" and {folder / 'report.pdf'}" if (folder / "report.pdf").is_file() else "")
    content = {"verdict": verdict.overall, "folder": str(folder), "checks": [json.loads(result.model_dump_json()) for result in verdict.checks]}
    if outcome.fault is not None:
        console.error(outcome.fault)
        console.note(f"everything but the PDF was written to {folder} and signed; run `evalspec report {folder}` after installing it")
        return outcome.fault.exit_code
    console.result(content, "\n".join([*rows, overall, pages, f"verify it: evalspec verify {folder} --trust TRUST_FILE"]))
    if verdict.overall == "inconclusive":
        return 0 if verdict.inconclusive == "warn" else 4
    return CHECKED_OUT[verdict.overall]
