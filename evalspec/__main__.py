"""What do `evalspec` and `python -m evalspec` do?  The same; Ctrl-C before there is a command line to catch it ends quietly as well."""

from __future__ import annotations

import sys
from typing import NoReturn

INTERRUPTED = 130
"""The exit code of `evalspec.errors.Interrupted`, which is not imported yet."""


def start() -> NoReturn:
    """Run the command line and exit with its code."""
    try:
        from evalspec.cli import run_and_exit  # noqa: PLC0415 - what takes time stands inside the try
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run_and_exit()


if __name__ == "__main__":
    start()
