"""Is this folder a checkpoint that may be loaded, and is it still the one that the protocol names?

Only safetensors and tokenizer files are read, never code; this module itself loads no model.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from evalspec.artifacts.protocol import CheckpointIdentity
from evalspec.artifacts.work import BenchmarkWork
from evalspec.errors import InputError, MissingLibrary, ScoringError
from evalspec.scoring.tokens import EncodedWork, Vocabulary, encode_work, learn_prefix

_BLOCK = 1 << 22


def read_config(folder: Path) -> dict[str, Any]:  # Any: the schema belongs to each architecture
    """Return config.json; raises ScoringError when the folder is no checkpoint, asks for code of its own or has no safetensors."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ScoringError(f"'{folder.name}' has no readable config.json", hint="a checkpoint is a folder as transformers saves it") from error
    for name in ("config.json", "tokenizer_config.json"):
        if (folder / name).is_file() and "auto_map" in json.loads((folder / name).read_bytes()):
            raise ScoringError(
                f"'{folder.name}': {name} asks to run code that comes with the model ('auto_map')",
                hint="code from model folders is never run; use a checkpoint of an architecture that transformers itself has",
            )
    if not any(folder.glob("*.safetensors")):
        raise ScoringError(
            f"'{folder.name}' holds no *.safetensors file", hint="pickle files (.bin, .pt) can run code and are not read; convert them to safetensors"
        )
    return dict(config)


def context_length(config: dict[str, Any]) -> int | None:  # Any: as above
    """Return how many positions the model was built for, or None when its configuration sets no limit."""
    text = config.get("text_config") or config
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len"):
        if isinstance(text.get(name), int) and text[name] > 0:
            return int(text[name])
    return None


def verify_files(folder: Path, identity: CheckpointIdentity) -> None:
    """Compare every file with the digest in the protocol; raises ScoringError naming the first that differs or that nobody vouches for."""
    for file in identity.files:
        path = folder / file.name
        if not path.is_file() or path.stat().st_size != file.size or _sha256(path) != file.sha256:
            raise ScoringError(f"'{folder.name}': {file.name} is not the file that the protocol names", hint="plan again, or put the file back")
    unknown = sorted({path.name for path in folder.glob("*.safetensors")} - {file.name for file in identity.files})
    if unknown:
        raise ScoringError(f"'{folder.name}': {unknown[0]} is not among the files that the protocol names", hint="plan again, or take the file out")


def plan_tokens(folder: Path, work: BenchmarkWork, *, model: str) -> EncodedWork:
    """Return the ids of every question without loading the model, for token counts before a run.

    Raises ScoringError for what would stop the run, MissingLibrary when `tokenizers` is not installed, InputError without tokenizer.json.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - belongs to the extra `score`
    except ImportError as error:
        raise MissingLibrary("the library 'tokenizers' is not installed", hint="install the extra `score`") from error
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"'{folder.name}' has no tokenizer.json", hint="save the tokenizer again with a current transformers")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception for a file that it cannot read
        raise InputError(
            f"'{folder.name}': tokenizer.json cannot be read: {error}", hint="save the tokenizer again with a current transformers"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokenize(texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]

    prefix = learn_prefix(tokenize(["x"])[0], tokenizer.encode("x").ids)
    return encode_work(work, Vocabulary(model, tokenize, prefix, context_length(read_config(folder))))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
