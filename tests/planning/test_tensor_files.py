"""Headers of safetensors files are read without the tensors, and hostile ones are refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from evalspec.errors import InputError
from evalspec.planning.tensor_files import read_tensors


def header_file(path: Path, header: Any, data: bytes = b"", *, length: int | None = None) -> Path:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(written) if length is None else length) + written + data)
    return path


def tensor(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_a_file_of_the_library_is_read(tmp_path: Path) -> None:
    save_file({"b": np.zeros((3, 5), np.float16), "a": np.zeros(7, np.float32)}, tmp_path / "w.safetensors")
    found = {entry.name: (entry.dtype, entry.numbers) for entry in read_tensors(tmp_path / "w.safetensors", label="w")}
    assert found == {"a": ("F32", 7), "b": ("F16", 15)}


@pytest.mark.parametrize(
    ("header", "data", "why"),
    [
        (b"[]", b"", "not a JSON object"),
        (b"{", b"", "not JSON"),
        (b'{"a": ' + b"[" * 100_000, b"", "not JSON"),
        (b'{"\xff": 1}', b"", "not JSON"),
        (b'{"a": {}, "a": {}}', b"", "one thing twice"),
        ({"a": 1}, b"", "no dtype, shape and data_offsets"),
        ({"a": {**tensor(), "extra": 1}}, bytes(8), "no dtype, shape and data_offsets"),
        ({"a": tensor("F33")}, bytes(8), "unknown dtype"),
        ({"a": tensor(shape=[-2])}, bytes(8), "outside 0 to"),
        ({"a": tensor(shape=[2**63])}, bytes(8), "outside 0 to"),
        ({"a": tensor(shape=[2**40, 2**40])}, bytes(8), "cannot have 8 bytes"),
        ({"a": tensor(shape=[2.0])}, bytes(8), "no list of whole numbers"),
        ({"a": tensor(shape=[True])}, bytes(8), "no list of whole numbers"),
        ({"a": tensor(shape=[1] * 33)}, bytes(4), "no list of whole numbers"),
        ({"a": tensor(offsets=[0])}, bytes(8), "1 offsets"),
        ({"a": tensor(offsets=[8, 0])}, bytes(8), "cannot have -8 bytes"),
        ({"a": tensor(), "b": tensor(offsets=[4, 12])}, bytes(12), "begins at byte 4; the one before it ends at 8"),
        ({"a": tensor(), "b": tensor(offsets=[12, 20])}, bytes(20), "begins at byte 12"),
        ({"a": tensor()}, bytes(9), "the file holds 9 for them"),
        ({"a": tensor()}, bytes(7), "the file holds 7 for them"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_refused(tmp_path: Path, header: Any, data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_tensors(header_file(tmp_path / "w", header, data), label="w")


@pytest.mark.parametrize("length", [1 << 62, 100_000_001, 3])
def test_a_length_that_the_file_cannot_hold_is_refused_without_reading_so_much(tmp_path: Path, length: int) -> None:
    with pytest.raises(InputError, match="not a sound safetensors file"):
        read_tensors(header_file(tmp_path / "w", {}, length=length), label="w")


def test_an_empty_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for name in ("empty", "absent"):
        with pytest.raises(InputError, match="label of it"):
            read_tensors(tmp_path / name, label="label of it")
