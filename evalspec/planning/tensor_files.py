"""What does a safetensors file hold?  Read from its header alone, and nothing in the header is believed.

Format: 8 bytes, little endian, give the length of a JSON object; it names each tensor's dtype, shape and place in the bytes that follow.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError

LONGEST_HEADER = 100_000_000
"""The format's own limit."""

LARGEST_DIMENSION = 1 << 62

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: the dtype by the format's name, how many numbers it has, and its place in the file's data."""

    name: str
    dtype: str
    numbers: int
    begin: int
    end: int


def read_tensors(path: Path, *, label: str) -> tuple[Tensor, ...]:
    """Return the tensors of a file in the order of their bytes; raises InputError, naming the file `label`, when the header is not sound."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            header = _header(stream, size)
            data_bytes = size - stream.tell()
        named = (_tensor(name, entry) for name, entry in header.items() if name != "__metadata__")
        tensors = sorted(named, key=lambda tensor: (tensor.begin, tensor.end))
        _check_cover(tensors, data_bytes)
    except OSError as error:
        raise InputError(f"{label} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{label} is not a sound safetensors file: {error}", hint="copy or download the file again") from error
    return tuple(tensors)


def _header(stream: BinaryIO, size: int) -> dict[str, JsonValue]:
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(LONGEST_HEADER, size - 8):
        raise ValueError(f"it has {size:,} bytes and says that its header has {length:,}")
    written = stream.read(length)
    if not written.startswith(b"{"):
        raise ValueError("its header is not a JSON object")
    try:
        header = json.loads(written.decode(), object_pairs_hook=_distinct)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("its header is not JSON") from error
    assert isinstance(header, dict)
    return header


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("its header names one thing twice")
    return entries


def _tensor(name: str, entry: JsonValue) -> Tensor:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name[:80]!r} has no dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise ValueError(f"tensor {name[:80]!r} has an unknown dtype {dtype!r}")
    numbers = math.prod(_naturals(shape, name))
    begin, end = _pair(_naturals(offsets, name), name)
    if numbers * BITS[dtype] != (end - begin) * 8:
        raise ValueError(f"tensor {name[:80]!r} of {numbers:,} numbers in {dtype} cannot have {end - begin:,} bytes")
    return Tensor(name, dtype, numbers, begin, end)


def _naturals(value: JsonValue, name: str) -> list[int]:
    numbers = [number for number in value if isinstance(number, int) and not isinstance(number, bool)] if isinstance(value, list) else None
    if numbers is None or not isinstance(value, list) or len(numbers) != len(value) or len(numbers) > 32:
        raise ValueError(f"tensor {name[:80]!r} has a shape or offsets that are no list of whole numbers")
    if any(not 0 <= number <= LARGEST_DIMENSION for number in numbers):
        raise ValueError(f"tensor {name[:80]!r} has a shape or offsets outside 0 to 2**62")
    return numbers


def _pair(numbers: list[int], name: str) -> tuple[int, int]:
    if len(numbers) != 2:
        raise ValueError(f"tensor {name[:80]!r} has {len(numbers)} offsets; it needs 2")
    return numbers[0], numbers[1]


def _check_cover(tensors: list[Tensor], data_bytes: int) -> None:
    """Hold the tensors to follow each other without hole or overlap to the end of the file."""
    end = 0
    for tensor in tensors:
        if tensor.begin != end:
            raise ValueError(f"tensor {tensor.name[:80]!r} begins at byte {tensor.begin:,}; the one before it ends at {end:,}")
        end = tensor.end
    if end != data_bytes:
        raise ValueError(f"its tensors have {end:,} bytes; the file holds {data_bytes:,} for them")
