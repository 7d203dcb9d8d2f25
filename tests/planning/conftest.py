"""Questions, studies and checkpoints to plan with."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalspec.artifacts.protocol import CheckpointIdentity, FileDigest
from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.sources import LocalCheckpoint, QuestionFile
from evalspec.artifacts.study import AnalysisRequest, Benchmark, LetterScoring, Model, Study

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 32,
}


@pytest.fixture
def questions() -> Callable[..., QuestionSet]:
    """Make a set with so many questions per subject."""

    def make(benchmark: str = "b", **subjects: int) -> QuestionSet:
        made = (
            Question(f"{subject}-{number:04}", f"stem {subject} {number}", ("w", "x", "y", "z"), number % 4, subject)
            for subject, count in subjects.items()
            for number in range(count)
        )
        return QuestionSet(benchmark, tuple(made), f"{benchmark}.jsonl", "a" * 64, "CC0-1.0")

    return make


@pytest.fixture
def study() -> Callable[..., Study]:
    """Make a study with two local models and the benchmarks given."""

    def make(*benchmarks: Benchmark, options: dict[str, Any] | None = None) -> Study:
        return Study(
            apiVersion="evalspec/v1",
            title="A study",
            seed=7,
            models=tuple(Model(id=name, source=LocalCheckpoint(path=f"models/{name}")) for name in ("first", "second")),
            benchmarks=benchmarks,
            analyses=(AnalysisRequest(id="pairs", kind="mcnemar", benchmarks=tuple(b.id for b in benchmarks), options=options or {}),),
            source_sha256="b" * 64,
        )

    return make


@pytest.fixture
def benchmark() -> Callable[..., Benchmark]:
    """Make a benchmark scored by letter."""

    def make(identifier: str = "b", **fields: Any) -> Benchmark:
        return Benchmark(id=identifier, source=QuestionFile(file=f"{identifier}.jsonl"), scoring=LetterScoring(method="letter"), **fields)

    return make


@pytest.fixture
def identity() -> Callable[[str, int], CheckpointIdentity]:
    """Make the identity of a checkpoint with so many parameters."""

    def make(origin: str, parameters: int) -> CheckpointIdentity:
        digest = f"{sum(origin.encode()):064x}"
        return CheckpointIdentity(
            files=(FileDigest(name="config.json", sha256=digest, size=1),),
            weights_sha256=digest,
            tokenizer_sha256=digest,
            architecture="LlamaForCausalLM",
            parameters=parameters,
            stored_dtype="bfloat16",
            origin=origin,
        )

    return make


def tensor_file(tensors: dict[str, tuple[str, list[int], int]]) -> bytes:
    """Return a safetensors file of zeros; each tensor has a dtype, a shape and its size in bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + bytes(end)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder that has everything a checkpoint needs: 32 x 8 + 8 x 16 = 384 parameters in bfloat16."""
    folder = tmp_path / "root" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "README.md").write_text("not part of the identity")
    (folder / "model.safetensors").write_bytes(tensor_file({"embed": ("BF16", [32, 8], 512), "up": ("BF16", [8, 16], 256)}))
    return folder


@pytest.fixture
def tensors() -> Callable[..., bytes]:
    """Make a safetensors file of the tensors given by name."""

    def make(**named: tuple[str, list[int], int]) -> bytes:
        return tensor_file(named)

    return make


@pytest.fixture
def golden() -> Callable[[str, str], str]:
    """Give the stored text of that name, after writing it anew under EVALSPEC_UPDATE_GOLDEN=1."""

    def stored(name: str, text: str) -> str:
        file = Path(__file__).parent / "golden" / name
        if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return file.read_text(encoding="utf-8")

    return stored
