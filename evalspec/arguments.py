"""Which verbs, options and examples does the command line have?"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from evalspec import __version__
from evalspec.devices import read_devices
from evalspec.errors import UsageError

DESCRIPTION = """Compile, run, sign and verify statistical studies of language models.

A study is one YAML file: models, questions, analyses, thresholds. `evalspec run` takes it to a signed report."""
EPILOG = """examples:
  evalspec init my-study                          a first study, commented, ready to run
  evalspec validate study.yaml                    every fault at once, with its place and a hint
  evalspec plan study.yaml                        what will be scored, how long, which gaps the sample can find
  evalspec lock study.yaml --key signer.p12       sign the plan before anything is scored
  evalspec run study.yaml --key signer.p12        score, analyse, check, report, sign
  evalspec verify reports/study --trust team.yaml --recompute

exit codes of run: 0 passed, 1 a check failed, 2 study or usage wrong, 3 could not be done, 4 inconclusive"""
VERIFY_EPILOG = """exit codes: 0 intact and signer trusted, 1 altered, 2 usage, 3 could not be checked, 4 intact, signer not trusted

examples:
  evalspec verify reports/study --trust team.yaml
  evalspec verify report.pdf --fingerprint SHA256:...
  evalspec verify reports/study --trust team.yaml --recompute
  evalspec verify reports/study --trust team.yaml --rescore 50 --models checkpoints"""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others, so that they too come as JSON where that is asked for."""

    verbs: Mapping[str, Parser] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(message, hint=f"see {self.prog} --help")

    def parse_known_args(  # type: ignore[override] # the overloads of the library speak of namespaces of other types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse everything; what is not known is an error of the verb that was typed, with the option that may have been meant."""
        known, strangers = super().parse_known_args(args, namespace)
        if strangers:
            raise UsageError(f"unrecognized arguments: {' '.join(strangers)}", hint=self._meant(strangers[0].partition("=")[0], known))
        return known, strangers

    def knows(self, option: str) -> bool:
        """Return whether it has an option of exactly this name."""
        return option in self._option_string_actions

    def _meant(self, stranger: str, known: argparse.Namespace) -> str:
        from difflib import get_close_matches  # noqa: PLC0415 - only for this error

        verb = self.verbs.get(str(getattr(known, "command", "")))
        if verb is not None and verb.knows(stranger):
            return f"{stranger} stands behind the verb: {verb.prog} {stranger}"
        close = get_close_matches(stranger, self._option_string_actions, n=1)
        return f"see {self.prog} --help" + (f"; did you mean {close[0]}?" if close else "")


def parser(verbs: Mapping[str, Callable[..., int]]) -> argparse.ArgumentParser:
    """Return the parser of the command line; `verbs` are called with the options and the console."""
    shape = argparse.RawDescriptionHelpFormatter
    top = Parser(prog="evalspec", description=DESCRIPTION, epilog=EPILOG, formatter_class=shape, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"evalspec {__version__}")
    _add_completion(top)
    commands = top.add_subparsers(dest="command", required=True, metavar="VERB")

    def add(name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary, epilog=epilog, formatter_class=shape, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print one JSON object for machines")
        command.set_defaults(verb=verbs[name])
        return command

    _init(add("init", "write a first study, commented, that validates and runs", "example: evalspec init my-study --model checkpoints/step-9000"))
    _study(add("validate", "check a study and name every fault at once", "example: evalspec validate study.yaml"))
    told = "print what will be scored, how long it takes and which gaps can be found"
    _calibrating(_machine(_study(add("plan", told, "example: evalspec plan study.yaml --json"))))
    _locking(
        _machine(_study(add("lock", "sign the plan of a study before anything is scored", "example: evalspec lock study.yaml --key signer.p12")))
    )
    _held(_sealing(_machine(_study(add("run", "score, analyse, check, report and sign", "example: evalspec run study.yaml --key signer.p12")))))
    _sealing(_target(add("report", "compose and sign the report of a finished run again", "example: evalspec report reports/study")))
    _verify(add("verify", "check that a report is intact and who signed it, offline", VERIFY_EPILOG))
    _pair(add("diff", "compare two runs: what was changed, and what it changed", "example: evalspec diff reports/release-1.3 reports/release-1.4"))
    _keygen(add("keygen", "make a signing key", "example: evalspec keygen --organisation 'Example Lab' --out signer.p12 --trust team.yaml"))
    add("schema", "print the JSON Schema of the study language", "example: evalspec schema > evalspec.schema.json")
    _machine(add("doctor", "say what is installed, what is missing and how to get it", "example: evalspec doctor --json"))
    top.verbs = commands.choices
    return top


def _add_completion(top: argparse.ArgumentParser) -> None:
    class Completion(argparse.Action):
        """Print a completion script; the library for it is imported only then."""

        def __call__(self, parser: argparse.ArgumentParser, _namespace: object, values: object, _option: object = None) -> None:
            import shtab  # noqa: PLC0415 - only for this one option

            sys.stdout.write(shtab.complete(parser, shell=str(values)) + "\n")
            parser.exit()

    top.add_argument("--print-completion", action=Completion, choices=("bash", "zsh", "tcsh"), help="print a completion script for your shell")


def _init(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=_path, help="the folder to write into")
    command.add_argument("--model", type=_path, action="append", default=[], metavar="DIR", help="a checkpoint folder; may be given several times")


def _study(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("study", type=_path, metavar="STUDY", help="the study file")
    return command


def _target(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("study", type=_path, metavar="STUDY|DIR", help="the study file, or the directory of its run")
    return command


def _machine(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--cache", type=_path, metavar="DIR", help="where finished batches are kept (default: .evalspec in the study's root)")
    command.add_argument("--token-budget", type=_positive, metavar="N", help="tokens per batch; part of the protocol")
    command.add_argument("--devices", type=_devices, metavar="LIST", help="what scores, such as cpu,cpu or cuda:0,cuda:1 (default: all)")
    command.add_argument("--threads", type=_positive, metavar="N", help="processor threads for scoring")
    command.add_argument("--executor", choices=("local", "ray"), help="score on this machine, or on those of a Ray cluster (default: local)")
    command.add_argument("--ray-address", metavar="ADDRESS", help="the Ray cluster (default: the one that this machine belongs to)")
    return command


def _calibrating(command: argparse.ArgumentParser) -> None:
    told = "score a fiftieth of every job first, which the run then need not do again, and tell time and memory from that"
    command.add_argument("--calibrate", action="store_true", help=told)


def _sealing(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--out", type=_path, metavar="DIR", help="the run directory (default: reports/NAME OF THE STUDY)")
    command.add_argument("--no-pdf", action="store_true", help="make no PDF")
    return _keyed(command)


def _locking(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--replace", action="store_true", help="put the lock in the place of an earlier one, which it names and counts")
    return _keyed(command)


def _held(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--lock", type=_path, metavar="FILE", help="the lock to hold the run against (default: the one beside the study, if any)")
    command.add_argument("--allow-deviations", action="store_true", help="run although the study is not as locked; the report lists every deviation")
    return command


def _keyed(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--key", type=_path, metavar="FILE", help="the signing key, as `evalspec keygen` makes it")
    command.add_argument("--throwaway-key", action="store_true", help="sign with a key made for this run alone, even where a key is configured")
    command.add_argument("--trust-out", type=_path, metavar="FILE", help="where the public part of a throw-away key is written")
    command.add_argument("--quiet", action="store_true", help="no progress and no remarks")
    return command


def _verify(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", type=_path, metavar="DIR|report.pdf", help="the run directory, or a PDF that left it")
    anchor = command.add_mutually_exclusive_group()
    anchor.add_argument("--trust", type=_path, metavar="FILE", help="the keys that you trust")
    anchor.add_argument("--fingerprint", metavar="FP", help="the fingerprint of the one key that you trust")
    anchor.add_argument("--tofu", action="store_true", help="trust this signer's key on first use and remember it")
    command.add_argument("--expect-study", type=_digest, metavar="SHA256", help="the SHA-256 of the study.yaml that this must be a report of")
    command.add_argument("--expect-run", metavar="ID", help="the run that this must be the report of, so that no older genuine one can stand in")
    command.add_argument("--recompute", action="store_true", help="rebuild findings, verdict and page from the recorded responses and compare")
    command.add_argument("--render", action="store_true", help="render report.html again and hold report.pdf against it; needs the extra report")
    command.add_argument("--earlier", type=_path, metavar="DIR", help="hold answers that are taken from an earlier run against that run's directory")
    command.add_argument("--rescore", type=_positive, metavar="N", help="score N questions again from the weights and compare; needs the models")
    command.add_argument("--models", type=_path, metavar="DIR", help="where the weights lie (default: where the study has them)")
    command.add_argument("--study", type=_path, metavar="FILE", help="the study's own file, where it does not lie here or above the run directory")
    command.add_argument("--seed", type=_seed, metavar="S", help="the seed that draws the questions, to repeat a check (default: a random one)")
    command.add_argument("--devices", type=_devices, metavar="LIST", help="what scores, such as cpu or cuda:0 (default: all)")
    command.add_argument("--threads", type=_positive, metavar="N", help="processor threads for scoring")


def _pair(command: argparse.ArgumentParser) -> None:
    command.add_argument("first", type=_path, metavar="RUN_A", help="the run directory to compare with")
    command.add_argument("second", type=_path, metavar="RUN_B", help="the run directory that may have changed")


def _keygen(command: argparse.ArgumentParser) -> None:
    command.add_argument("--organisation", required=True, metavar="NAME", help="whose key it is")
    command.add_argument("--out", type=_path, required=True, metavar="FILE", help="the key file to write")
    command.add_argument("--trust", type=_path, metavar="FILE", help="a trust file to add the public part to")
    command.add_argument("--years", type=_positive, default=5, metavar="N", help="how long the certificate is valid (default: 5)")
    command.add_argument("--no-passphrase", action="store_true", help="do not encrypt the key file")


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("an empty text names no file and no folder")
    return Path(text)


def _devices(text: str) -> tuple[str, ...]:
    try:
        return read_devices(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def _digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no SHA-256: 64 hexadecimal digits in lower case, as sha256sum prints it")
    return text


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
