"""The header of a GGUF file is read by hand, without its library, and a file that is torn or lies is refused in plain words."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.artifacts.sources import GgufFile
from evalspec.errors import InputError
from evalspec.planning.checkpoints import CheckpointFolder, find_checkpoint, identify
from evalspec.planning.gguf_files import read_gguf
from evalspec.planning.memory import RUNTIME_BYTES, memory_need

SETTINGS: dict[str, object] = {
    "general.architecture": "llama", "llama.embedding_length": 64, "llama.block_count": 2, "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2, "tokenizer.ggml.tokens": ["a", "b", "c"],
}  # fmt: skip
TENSORS = {"token_embd.weight": ([64, 3], 8, 204), "blk.0.ffn_up.weight": ([64, 128], 2, 4608), "output_norm.weight": ([64], 0, 256)}
"""Shape, type (Q8_0, Q4_0, F32) and bytes: blocks of 32 numbers take 34 bytes in Q8_0 and 18 in Q4_0."""


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def written(settings: dict[str, object] = SETTINGS, tensors: dict[str, tuple[list[int], int, int]] = TENSORS, *, version: int = 3) -> bytes:
    content = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(settings))
    for name, value in settings.items():
        content += text(name)
        if isinstance(value, list):
            content += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        else:
            content += struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value)
    offset, held = 0, b""
    for name, (shape, kind, size) in tensors.items():
        content += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", one) for one in shape)
        content += struct.pack("<IQ", kind, offset)
        padded = -(-size // 32) * 32
        held += bytes(padded)
        offset += padded
    return content + bytes(-len(content) % 32) + held


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], CheckpointFolder]:
    def write(content: bytes) -> CheckpointFolder:
        (tmp_path / "model.gguf").write_bytes(content)
        return find_checkpoint(GgufFile(gguf="model.gguf"), folder=tmp_path, root=tmp_path, hub_cache=tmp_path)

    return write


def test_parameters_and_quantisation_are_told_from_the_header(file: Callable[[bytes], CheckpointFolder]) -> None:
    identity = identify(file(written()))
    assert identity.parameters == 64 * 3 + 64 * 128 + 64
    assert identity.stored_dtype == "Q4_0, Q8_0, F32"
    assert (identity.architecture, identity.gguf, identity.origin) == ("llama (GGUF)", "model.gguf", "model.gguf")
    assert identity.tokenizer_sha256 == identity.weights_sha256


def test_the_file_alone_is_the_identity_whatever_lies_beside_it(file: Callable[[bytes], CheckpointFolder], tmp_path: Path) -> None:
    before = identify(file(written()))
    (tmp_path / "config.json").write_text('{"auto_map": {}}', encoding="utf-8")
    (tmp_path / "other.safetensors").write_bytes(b"")
    assert identify(file(written())) == before
    assert identify(file(written({**SETTINGS, "llama.block_count": 3}))).weights_sha256 != before.weights_sha256


def test_memory_is_that_of_the_dequantised_weights(file: Callable[[bytes], CheckpointFolder]) -> None:
    parameters = 64 * 3 + 64 * 128 + 64
    wide, narrow = (memory_need(file(written()), model="m", precision=one, token_budget=1024) for one in ("float32", "bfloat16"))
    assert (wide.weights_bytes, narrow.weights_bytes) == (4 * parameters, 2 * parameters)
    activations = 1024 * 4 * (4 * 64 + 3 * 128 + 2 * (4 + 2 * 2) * 16)
    assert wide.working_bytes == int((4 * parameters + activations + 16 * 3 * 8) * 1.1) - 4 * parameters + RUNTIME_BYTES


@pytest.mark.parametrize("keep", [0, 3, 4, 20, 60, 200, 700, 1500, 5000])
def test_a_torn_file_is_refused_wherever_it_is_torn(file: Callable[[bytes], CheckpointFolder], keep: int) -> None:
    content = written()
    assert keep < len(content)
    with pytest.raises(InputError, match=r"model\.gguf (is not a sound GGUF file|cannot be read)"):
        identify(file(content[:keep]))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"GGML" + written()[4:], "does not begin with the letters GGUF"),
        (written(version=1), "its version is 1; 2 and 3 are read"),
        (written(tensors={"a": ([64], 99, 0)}), "is of an unknown type 99"),
        (written(tensors={"a": ([33], 8, 34)}), "of 33 numbers cannot be in blocks of 32"),
        (written(tensors={}), "holds no tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 1), "says that it has 1,099,511,627,776 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1 << 60), "a text in its header says"),
    ],
)
def test_what_is_wrong_is_said(file: Callable[[bytes], CheckpointFolder], content: bytes, told: str) -> None:
    with pytest.raises(InputError) as caught:
        identify(file(content))
    assert told in str(caught.value)


def test_every_byte_of_a_header_may_be_altered_and_no_other_error_comes_of_it(tmp_path: Path) -> None:
    content = written()
    for place in range(0, 620, 3):
        path = tmp_path / "model.gguf"
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            read_gguf(path, label="model.gguf")
        except InputError as error:
            assert "model.gguf is not a sound GGUF file" in str(error)  # noqa: PT017 - most alterations are faults, some are other names


def test_files_without_architecture_or_tokenizer_are_refused(file: Callable[[bytes], CheckpointFolder]) -> None:
    for missing, told in (("general.architecture", "does not say which architecture"), ("tokenizer.ggml.tokens", "does not hold a tokenizer")):
        with pytest.raises(InputError, match=told):
            identify(file(written({name: value for name, value in SETTINGS.items() if name != missing})))


def test_a_gguf_source_names_a_file_of_that_kind(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"")
    for name, told in (("absent.gguf", "there is no file"), ("weights.bin", "is no file that ends in .gguf"), ("../x.gguf", "leads outside")):
        with pytest.raises(InputError, match=told):
            find_checkpoint(GgufFile(gguf=name), folder=tmp_path, root=tmp_path, hub_cache=tmp_path)


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.gguf").write_bytes(written())
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "model.gguf").symlink_to(tmp_path / "outside.gguf")
    with pytest.raises(InputError, match="leads outside"):
        find_checkpoint(GgufFile(gguf="model.gguf"), folder=tmp_path / "inside", root=tmp_path / "inside", hub_cache=tmp_path)
