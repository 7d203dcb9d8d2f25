"""Is this folder a checkpoint that may be loaded, and is it still the one that the protocol names?

Only safetensors and tokenizer files are read, never code; this module itself loads no model.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import Any

from evalspec.artifacts.protocol import CheckpointIdentity
from evalspec.artifacts.work import BenchmarkWork
from evalspec.errors import EvalspecError, InputError, MissingLibrary, ScoringError
from evalspec.foreign import read_object
from evalspec.scoring.gguf_source import gguf_config, gguf_tokenizer, is_gguf
from evalspec.scoring.tokens import Chat, EncodedWork, Vocabulary, encode_work, learn_prefix

SAVE_AGAIN = "save the tokenizer again with a current transformers"
OTHER_TEMPLATE = "mend it (chat_template.jinja or tokenizer_config.json), or write `chat: false`"
CONFIGS = ("config.json", "tokenizer_config.json")
LONGEST_REASON = 240
"""Characters that are shown of what a library says, whose advice is about the library and not about evalspec."""

_BLOCK = 1 << 22


def read_config(folder: Path) -> dict[str, Any]:  # Any: the schema belongs to each architecture
    """Return config.json; raises ScoringError when the folder is no checkpoint, asks for code of its own or has no safetensors."""
    try:
        settings = {
            name: read_object(folder / name, name=f"{folder.name}/{name}") for name in CONFIGS if name in CONFIGS[:1] or (folder / name).exists()
        }
    except InputError as error:
        raise ScoringError(error.diagnostics) from error
    for name, content in settings.items():
        if "auto_map" in content:
            raise ScoringError(
                f"'{folder.name}': {name} asks to run code that comes with the model ('auto_map')",
                hint="code from model folders is never run; use a checkpoint of an architecture that transformers itself has",
            )
    if not any(folder.glob("*.safetensors")):
        raise ScoringError(
            f"'{folder.name}' holds no *.safetensors file", hint="pickle files (.bin, .pt) can run code and are not read; convert them to safetensors"
        )
    return settings[CONFIGS[0]]


def context_length(config: dict[str, Any]) -> int | None:  # Any: as above
    """Return how many positions the model was built for, or None when its configuration sets no limit."""
    nested = config.get("text_config")
    settings = {**config, **nested} if isinstance(nested, dict) else config
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len"):
        length = settings.get(name)
        if isinstance(length, int) and not isinstance(length, bool) and length > 0:
            return length
    return None


def verify_files(folder: Path, identity: CheckpointIdentity) -> None:
    """Compare every file with the digest in the protocol; raises ScoringError naming the first that differs or that nobody vouches for."""
    for file in identity.files:
        path = folder / file.name
        if not path.is_file() or path.stat().st_size != file.size or _sha256(path) != file.sha256:
            raise ScoringError(f"'{folder.name}': {file.name} is not the file that the protocol names", hint="plan again, or put the file back")
    if identity.gguf is not None:
        return  # nothing beside that file is read
    unknown = sorted({path.name for path in folder.glob("*.safetensors")} - {file.name for file in identity.files})
    if unknown:
        raise ScoringError(f"'{folder.name}': {unknown[0]} is not among the files that the protocol names", hint="plan again, or take the file out")


@contextmanager
def named_alone(place: Path, identity: CheckpointIdentity) -> Iterator[Path]:
    """Give a checkpoint as a folder of its name with the files that the protocol names and no other.

    A library looks for more by itself: adapters, further templates, lists of added tokens. A GGUF file, which is read alone anyway, stays as it is.
    """
    if identity.gguf is not None:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="evalspec-model-") as outside:
        folder = Path(outside) / place.name
        folder.mkdir()
        for file in identity.files:
            if PurePosixPath(file.name).name != file.name or file.name in {"", ".", ".."}:
                raise ScoringError(f"the protocol names {file.name!r}, which is no name of a file in a model's folder")
            (folder / file.name).symlink_to((place / file.name).resolve())
        yield folder


def plan_tokens(place: Path, work: BenchmarkWork, *, model: str) -> EncodedWork:
    """Return the ids of every question without loading the model, for token counts before a run.

    Raises ScoringError for what would stop the run, MissingLibrary when `tokenizers` is not installed, InputError without tokenizer.json.
    """

    def unusable() -> AbstractContextManager[None]:
        return foreign_errors(f"'{place.name}': the tokenizer cannot be used", hint=SAVE_AGAIN)

    with unusable():
        tokenizer = _tokenizer(place)
        tokenizer.no_truncation()
        tokenizer.no_padding()

    def tokenize(texts: list[str]) -> list[list[int]]:
        with unusable():
            return [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]

    with unusable():
        prefix = learn_prefix(tokenize(["x"])[0], tokenizer.encode("x").ids)
        chat = _chat(place, model) if work.scoring.chat else None
        config = gguf_config(place) if is_gguf(place) else read_config(place)
    return encode_work(work, Vocabulary(model, tokenize, prefix, context_length(config), chat))


def added_tokens(place: Path) -> tuple[str, ...]:
    """Return the texts that the tokenizer takes for special tokens wherever they stand; raises as `plan_tokens` does."""
    with foreign_errors(f"'{place.name}': the tokenizer cannot be used", hint=SAVE_AGAIN):
        return tuple(sorted(token.content for token in _tokenizer(place).get_added_tokens_decoder().values() if token.special and token.content))


def _tokenizer(folder: Path) -> Any:  # Any: a tokenizer of a library that may be missing
    if is_gguf(folder):
        return gguf_tokenizer(folder).backend_tokenizer
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - belongs to the extra `score`
    except ImportError as error:
        raise MissingLibrary("the library 'tokenizers' is not installed", hint="install the extra `score`") from error
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"'{folder.name}' has no tokenizer.json", hint=SAVE_AGAIN)
    return Tokenizer.from_file(str(path))


@contextmanager
def foreign_errors(problem: str, *, hint: str | None = None) -> Iterator[None]:
    """Turn whatever a library raises over files that it does not understand, also a panic that is no Exception, into a ScoringError."""
    try:
        yield
    except (EvalspecError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = shorten(" ".join(lines[:2]), LONGEST_REASON, placeholder=" ...")
        raise ScoringError(f"{problem}: {told or type(error).__name__}", hint=hint) from error


def chat_of(tokenizer: Any, model: str) -> Chat | None:  # Any: a transformers tokenizer
    """Return how the tokenizer's chat template takes a user's message, or None when it has no template; what it returns raises ScoringError."""
    if not tokenizer.chat_template:
        return None
    template = f"the chat template of model '{model}'"

    def chat(message: str) -> str:
        with foreign_errors(f"{template} cannot be used", hint=OTHER_TEMPLATE):
            filled = str(tokenizer.apply_chat_template([{"role": "user", "content": message}], add_generation_prompt=True, tokenize=False))
        if message.strip() not in filled:
            raise ScoringError(f"{template} does not hand on the user's message as it is", hint=OTHER_TEMPLATE)
        return filled

    return chat


def _chat(place: Path, model: str) -> Chat | None:
    if is_gguf(place):
        return chat_of(gguf_tokenizer(place), model)
    try:
        from transformers import AutoTokenizer  # noqa: PLC0415 - seconds to import, and only chat templates need it
    except ImportError as error:
        raise MissingLibrary("the library 'transformers' is not installed", hint="install the extra `score`") from error
    return chat_of(AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False), model)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
