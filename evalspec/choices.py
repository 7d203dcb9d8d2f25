"""What do the options of a verb come to, with `evalspec.toml` and the environment: which study, settings and key, and whose key is trusted?"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalspec.errors import Diagnostic, StudyError, UsageError

if TYPE_CHECKING:
    from evalspec.console import Console
    from evalspec.sealing import Seal
    from evalspec.settings import Settings
    from evalspec.signing.trust import Trust


def study_of(options: argparse.Namespace) -> Path:
    """Return the study file that is named; raises StudyError for a folder."""
    path: Path = options.study
    if path.is_dir():
        raise StudyError(Diagnostic(f"{path} is a folder; a study is one YAML file", hint=f"name the file, such as {path / 'study.yaml'}"))
    return path


def settings_of(options: argparse.Namespace) -> Settings:
    """Return options over evalspec.toml over defaults; the environment is read here, and for a new key's passphrase, and nowhere else."""
    from evalspec.settings import settings_for

    given = {
        name: getattr(options, name, None) for name in ("cache", "key", "trust_out", "token_budget", "devices", "threads", "executor", "ray_address")
    }
    pdf = False if getattr(options, "no_pdf", False) else None
    return settings_for(getattr(options, "study", None) or Path("study.yaml"), {**given, "pdf": pdf}, os.environ)


def seal_of(options: argparse.Namespace, settings: Settings, console: Console, out: Path) -> Seal:
    """Return the key that signs what is written to `out`: the configured one, or one made for this run alone."""
    from evalspec.sealing import seal_from

    chosen = replace(settings, key=None) if options.throwaway_key else settings
    return seal_from(chosen, out, warn=lambda text: console.note(f"warning: {text}"))


def trust_of(options: argparse.Namespace) -> Trust:
    """Return whom the verifier trusts: the keys of a file, one fingerprint, a key seen before, or nobody."""
    from evalspec.settings import user_folder
    from evalspec.signing.trust import Trust

    if options.trust:
        if options.target.is_dir() and options.trust.resolve().is_relative_to(options.target.resolve()):
            told = f"the trust file {options.trust} lies in the report itself, where whoever made the report can have put it"
            raise UsageError(told, hint="give one that came to you by another way than the report")
        return Trust.from_file(options.trust)
    if options.fingerprint is not None:
        return Trust.in_fingerprint(options.fingerprint)
    if not options.tofu:
        return Trust()
    folder = user_folder(os.environ)
    if folder is None:
        raise UsageError("there is no home folder to remember a key in", hint="give --trust or --fingerprint")
    return Trust.on_first_use(folder / "known_signers.yaml")
