"""What does a GGUF file hold?  Read from its header alone, and nothing in the header is believed.

Format: the magic `GGUF`, a version, how many tensors and settings there are; then the settings, each a name, a type and a value; then each
tensor's name, shape, type and place in the bytes that follow, which begin at the next multiple of the alignment.
Reference: GGUF specification, versions 2 and 3 (ggml, docs/gguf.md).
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evalspec.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ENTRIES = 1 << 20
LONGEST_TEXT = 1 << 24
LARGEST_DIMENSION = 1 << 62
ALIGNMENT = "general.alignment"

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of settings, by the format's number, as `struct` writes them."""

TEXT, LIST = 8, 9

TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2),
    26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
"""Types of tensors by the format's number: the name, how many numbers a block holds, and its bytes."""

Setting = str | int | float | bool


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor: the type by the format's name, how many numbers it has, and its bytes."""

    name: str
    dtype: str
    numbers: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The settings of a file that are single values, the lengths of those that are lists, and the tensors in their order."""

    settings: Mapping[str, Setting]
    lengths: Mapping[str, int]
    tensors: tuple[GgufTensor, ...]

    @property
    def parameters(self) -> int:
        """How many numbers the tensors hold."""
        return sum(tensor.numbers for tensor in self.tensors)

    @property
    def stored_as(self) -> str:
        """The types of the tensors, that of most numbers first."""
        counts: dict[str, int] = {}
        for tensor in self.tensors:
            counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.numbers
        return ", ".join(sorted(counts, key=lambda name: (-counts[name], name)))


def read_gguf(path: Path, *, label: str) -> GgufHeader:
    """Return the header of a file; raises InputError, naming the file `label`, when it is not sound or its tensors are not all there."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(content).header()
    except OSError as error:
        raise InputError(f"{label} cannot be read: {error.strerror}") from error
    except (ValueError, struct.error, UnicodeDecodeError) as error:
        reason = "its header is torn" if isinstance(error, struct.error) else "it holds text that is not UTF-8" if _is_text(error) else str(error)
        raise InputError(f"{label} is not a sound GGUF file: {reason}", hint="copy or download the file again") from error


class _Reader:
    """Goes through the bytes of a header; struct.error where they end too early, ValueError where they are not as the format says."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._at = 0

    def header(self) -> GgufHeader:
        if self._content[: len(MAGIC)] != MAGIC:
            raise ValueError("it does not begin with the letters GGUF")
        self._at = len(MAGIC)
        version = self._number("I")
        if version not in VERSIONS:
            raise ValueError(f"its version is {version}; {' and '.join(map(str, VERSIONS))} are read, with the lowest byte first")
        tensors, entries = self._count("tensors"), self._count("settings")
        settings: dict[str, Setting] = {}
        lengths: dict[str, int] = {}
        for _ in range(entries):
            name, kind = self._text(), self._number("I")
            if name in settings or name in lengths:
                raise ValueError(f"its header has the setting {name[:80]!r} twice")
            if kind == LIST:
                lengths[name] = self._skip_list(name)
            else:
                settings[name] = self._value(int(kind), name)
        places = [self._tensor() for _ in range(tensors)]
        self._check_cover(places, settings.get(ALIGNMENT, 32))
        return GgufHeader(settings, lengths, tuple(tensor for tensor, _ in places))

    def _number(self, code: str) -> int | float | bool:
        (value,) = struct.unpack_from(f"<{code}", self._content, self._at)
        self._at += struct.calcsize(f"<{code}")
        number: int | float | bool = value
        return number

    def _count(self, what: str) -> int:
        count = int(self._number("Q"))
        if count > MOST_ENTRIES:
            raise ValueError(f"its header says that it has {count:,} {what}")
        return count

    def _text(self) -> str:
        length = int(self._number("Q"))
        if length > min(LONGEST_TEXT, len(self._content) - self._at):
            raise ValueError(f"a text in its header says that it has {length:,} bytes")
        self._at += length
        return self._content[self._at - length : self._at].decode()

    def _value(self, kind: int, name: str) -> Setting:
        if kind == TEXT:
            return self._text()
        if kind not in NUMBERS:
            raise ValueError(f"its setting {name[:80]!r} is of an unknown type {kind}")
        return self._number(NUMBERS[kind])

    def _skip_list(self, name: str) -> int:
        kind, length = int(self._number("I")), int(self._number("Q"))
        if length > len(self._content):
            raise ValueError(f"its setting {name[:80]!r} says that it has {length:,} values")
        if kind == TEXT:
            for _ in range(length):
                self._at += 8 + int(*struct.unpack_from("<Q", self._content, self._at))
        elif kind in NUMBERS:
            self._at += length * struct.calcsize(NUMBERS[kind])
        else:
            raise ValueError(f"its setting {name[:80]!r} is a list of an unknown type {kind}")
        if self._at > len(self._content):
            raise ValueError("its header is torn")
        return length

    def _tensor(self) -> tuple[GgufTensor, int]:
        name, dimensions = self._text(), int(self._number("I"))
        if dimensions > 4:
            raise ValueError(f"tensor {name[:80]!r} has {dimensions} dimensions; at most 4 are read")
        shape = [int(self._number("Q")) for _ in range(dimensions)]
        kind, offset = int(self._number("I")), int(self._number("Q"))
        if kind not in TYPES:
            raise ValueError(f"tensor {name[:80]!r} is of an unknown type {kind}")
        dtype, block, size = TYPES[kind]
        numbers = math.prod(shape)
        if numbers > LARGEST_DIMENSION or numbers % block:
            raise ValueError(f"tensor {name[:80]!r} of {numbers:,} numbers cannot be in blocks of {block}")
        return GgufTensor(name, dtype, numbers, numbers // block * size), offset

    def _check_cover(self, places: list[tuple[GgufTensor, int]], alignment: Setting) -> None:
        """Hold every tensor to lie inside the file, and no two to share a name."""
        if not isinstance(alignment, int) or isinstance(alignment, bool) or not 0 < alignment <= 1 << 20:
            raise ValueError(f"its alignment is {alignment!r}")
        if not places:
            raise ValueError("it holds no tensors")
        if len({tensor.name for tensor, _ in places}) < len(places):
            raise ValueError("its header names one tensor twice")
        begin = -(-self._at // alignment) * alignment
        for tensor, offset in places:
            if begin + offset + tensor.size > len(self._content):
                there = max(0, len(self._content) - begin - offset)
                raise ValueError(f"it is torn: tensor {tensor.name[:80]!r} needs {tensor.size:,} bytes, of which {there:,} are there")


def _is_text(error: Exception) -> bool:
    return isinstance(error, UnicodeDecodeError)
