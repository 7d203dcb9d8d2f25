"""What does `python -m evalspec` do?  The same as the command."""

from evalspec.cli import run_and_exit

run_and_exit()
