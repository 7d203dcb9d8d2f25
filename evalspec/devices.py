"""Which devices are asked for?  `auto`, or names such as `cpu,cpu` and `cuda:0,cuda:1`."""

from __future__ import annotations

import re

AUTO = "auto"
ALLOWED = "'auto', 'cpu' (once or several times), or accelerators such as 'cuda:0,cuda:1'"
_NAME = re.compile(r"cpu|cuda:(0|[1-9][0-9]{0,3})")


def read_devices(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas; raises ValueError for anything else than devices of one kind, each accelerator once.

    Devices of two kinds do not compute the same last bits, and which of them scores what is settled only while they run.

    >>> read_devices("cpu, cpu")
    ('cpu', 'cpu')
    """
    names = tuple(part.strip() for part in text.split(","))
    if names == (AUTO,):
        return names
    if not all(map(_NAME.fullmatch, names)):
        raise ValueError(f"{text!r} names no devices; allowed are {ALLOWED}")
    if len({name.partition(":")[0] for name in names}) > 1:
        raise ValueError(f"{text!r} names devices of two kinds, which round differently; allowed are {ALLOWED}")
    accelerators = [name for name in names if name != "cpu"]
    if len(set(accelerators)) < len(accelerators):
        raise ValueError(f"{text!r} names an accelerator twice; allowed are {ALLOWED}")
    return names
