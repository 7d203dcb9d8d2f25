"""What can be typed?  The verbs of `evalspec`; the only module that prints or exits.

Heavy stages are imported inside the verb that needs them, so that `evalspec --help` and `evalspec validate` start fast.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from evalspec import __version__
from evalspec.artifacts.base import JsonValue
from evalspec.console import Console
from evalspec.errors import EvalspecError, UsageError
from evalspec.settings import Settings, find_file, read_settings

PASSPHRASE_VARIABLE = "EVALSPEC_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable, not a secret
Verb = Callable[[argparse.Namespace, Console], int]


def run_and_exit() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return its exit code; every fault that a user can mend is printed, anything else is a bug and shows its traceback."""
    options = _parser().parse_args(arguments)
    console = Console(json=options.json, quiet=options.quiet)
    verb: Verb = options.verb
    try:
        return verb(options, console)
    except EvalspecError as error:
        console.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        console.note("stopped; every finished batch is kept, and the same command goes on from there")
        return 130


def _validate(options: argparse.Namespace, console: Console) -> int:
    from evalspec import pipeline

    compiled = pipeline.validate(options.study, _settings(options))
    study = compiled.study
    facts = {"models": len(study.models), "benchmarks": len(study.benchmarks), "analyses": len(study.analyses)}
    checks = len(study.thresholds.checks) if study.thresholds else 0
    counted = ", ".join(f"{count} {name}" for name, count in {**facts, "checks": checks}.items())
    console.result({"study": str(options.study), "valid": True, "study_sha256": study.source_sha256, **facts, "checks": checks}, f"{options.study}: valid ({counted})")
    return 0
