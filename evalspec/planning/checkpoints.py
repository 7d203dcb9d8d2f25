"""Which weights and which tokenizer does a model id stand for?  Told from files alone; no model is loaded and no code of a model is run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evalspec.artifacts.protocol import CheckpointIdentity, FileDigest
from evalspec.artifacts.sources import CheckpointSource, GgufFile, HubCheckpoint
from evalspec.errors import InputError
from evalspec.foreign import read_object
from evalspec.places import hub_repository, hub_snapshot, resolve_inside
from evalspec.planning.checkpoint_config import architecture, text_settings
from evalspec.planning.digests import FileDigester, file_sha256
from evalspec.planning.gguf_files import read_gguf
from evalspec.planning.tensor_files import Tensor, read_tensors

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG_FILES = ("config.json", "generation_config.json", INDEX)
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")
TOKENIZER_FILES = (
    *TOKENIZERS, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt", "chat_template.jinja", "chat_template.json",
)  # fmt: skip
ADAPTER = "adapter_config.json"
REDIRECTIONS = {"config.json": "transformers_weights", "tokenizer_config.json": "fast_tokenizer_files"}
"""Entries that send transformers to other files than those that a checkpoint has by their names."""

SAVE_WEIGHTS = "load the model once in a place that you trust and save it again: model.save_pretrained(folder)"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """A checkpoint's folder, how the study names it, and the folder that its files, also through links, may not leave.

    `gguf` is the name of the one file of the folder that matters, where weights and tokenizer are in a GGUF file; `fetch` is the command that
    completes the folder, where it is one of the hub's cache.
    """

    path: Path
    origin: str
    boundary: Path
    gguf: str | None = None
    fetch: str | None = None

    def hint(self, otherwise: str) -> str:
        """Return what to do about a file that is not there."""
        return otherwise if self.fetch is None else f"the copy in the hub's cache is not complete; fetch what it lacks: {self.fetch}"


def find_checkpoint(source: CheckpointSource, *, folder: Path, root: Path, hub_cache: Path) -> CheckpointFolder:
    """Return where a model source lies; raises InputError, for a hub model with the command that fetches it, when it is not there."""
    if isinstance(source, HubCheckpoint):
        snapshot = hub_snapshot(hub_cache, kind="model", name=source.hub, revision=source.revision)
        fetch = f"hf download {source.hub} --revision {source.revision}"
        # Files of a snapshot are links into the repository's own folder of blobs.
        return CheckpointFolder(snapshot, f"{source.hub}@{source.revision}", hub_repository(hub_cache, kind="model", name=source.hub), None, fetch)
    if isinstance(source, GgufFile):
        return _find_gguf(source.gguf, resolve_inside(source.gguf, folder=folder, root=root), root)
    path = resolve_inside(source.path, folder=folder, root=root)
    if not path.is_dir():
        raise InputError(f"there is no folder '{source.path}'", hint="paths of models are read from the folder of the study file")
    return CheckpointFolder(path, source.path, root)


def identify(checkpoint: CheckpointFolder, *, digest: FileDigester = file_sha256) -> CheckpointIdentity:
    """Return the digests of every file that decides what the model answers; raises InputError when the folder is no usable checkpoint."""
    if checkpoint.gguf is not None:
        return _identify_gguf(checkpoint, checkpoint.gguf, digest)
    known = {name for name in (*CONFIG_FILES, *TOKENIZER_FILES) if os.path.lexists(checkpoint.path / name)}
    names = known | {path.name for path in checkpoint.path.glob("*.safetensors")}
    _check_places(checkpoint, names)
    weights = weight_files(checkpoint)
    config = read_object(checkpoint.path / "config.json", name=f"{checkpoint.origin}/config.json")
    text_settings(config, name=f"{checkpoint.origin}/config.json")
    _refuse_adapter(checkpoint)
    _refuse_settings(checkpoint, names)
    tensors = read_weights(checkpoint, weights)
    files = tuple(_file_digest(checkpoint, name, digest) for name in sorted(names))
    return CheckpointIdentity(
        files=files,
        weights_sha256=_combined(files),
        tokenizer_sha256=_combined(file for file in files if file.name in TOKENIZER_FILES),
        architecture=architecture(config, name=f"{checkpoint.origin}/config.json"),
        parameters=sum(tensor.numbers for tensor in tensors),
        stored_dtype=stored_dtype(tensors),
        origin=checkpoint.origin,
    )


def weight_files(checkpoint: CheckpointFolder) -> tuple[str, ...]:
    """Return the names of the files that the weights are loaded from; raises InputError when the folder has none that may be read."""
    if not (checkpoint.path / "config.json").is_file():
        raise InputError(
            f"'{checkpoint.origin}' has no config.json", hint=checkpoint.hint("a checkpoint is a folder as transformers' save_pretrained writes it")
        )
    if not _present(checkpoint, TOKENIZERS):
        raise InputError(
            f"'{checkpoint.origin}' has no tokenizer", hint=checkpoint.hint("save it beside the weights: tokenizer.save_pretrained(folder)")
        )
    if (checkpoint.path / ONE_FILE).is_file():
        return (ONE_FILE,)
    if (checkpoint.path / INDEX).is_file():
        return _indexed(checkpoint)
    pickled = any(path.suffix in PICKLES for path in checkpoint.path.iterdir())
    raise InputError(
        f"'{checkpoint.origin}' has neither {ONE_FILE} nor {INDEX}" + ("; its weights are in pickle files, which can run code" if pickled else ""),
        hint=SAVE_WEIGHTS if pickled else checkpoint.hint(SAVE_WEIGHTS),
    )


def read_weights(checkpoint: CheckpointFolder, names: Iterable[str]) -> tuple[Tensor, ...]:
    """Return the tensors of the weight files from their headers; raises InputError when two files hold a tensor of one name."""
    tensors: dict[str, Tensor] = {}
    for name in names:
        for tensor in read_tensors(checkpoint.path / name, label=f"{checkpoint.origin}/{name}"):
            if tensor.name in tensors:
                raise InputError(f"'{checkpoint.origin}': tensor '{tensor.name[:80]}' is in two files, the second is {name}")
            tensors[tensor.name] = tensor
    return tuple(tensors.values())


def stored_dtype(tensors: Iterable[Tensor]) -> str:
    """Return the dtype that most of the numbers have, by torch's name; raises InputError when there are none."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.numbers
    if not any(counts.values()):
        raise InputError("the checkpoint's files hold no numbers")
    most = max(sorted(counts), key=counts.__getitem__)
    return DTYPES.get(most, most.lower())


def _find_gguf(written: str, path: Path, root: Path) -> CheckpointFolder:
    if not path.is_file():
        raise InputError(f"there is no file '{written}'", hint="paths of models are read from the folder of the study file")
    if path.suffix != ".gguf":
        raise InputError(f"'{written}' is no file that ends in .gguf", hint="a folder with config.json and *.safetensors is named with `path:`")
    return CheckpointFolder(path.parent, written, root, path.name)


def _identify_gguf(checkpoint: CheckpointFolder, name: str, digest: FileDigester) -> CheckpointIdentity:
    """Return what a GGUF file is: one file that holds weights, settings and tokenizer."""
    _check_places(checkpoint, {name})
    header = read_gguf(checkpoint.path / name, label=checkpoint.origin)
    kind = header.settings.get("general.architecture")
    if not isinstance(kind, str) or "tokenizer.ggml.tokens" not in header.lengths:
        lacks = "say which architecture the model has" if not isinstance(kind, str) else "hold a tokenizer"
        raise InputError(f"'{checkpoint.origin}' does not {lacks}", hint="convert the model again: convert_hf_to_gguf.py writes both")
    files = (_file_digest(checkpoint, name, digest),)
    return CheckpointIdentity(
        files=files,
        weights_sha256=_combined(files),
        tokenizer_sha256=_combined(files),
        architecture=f"{kind} (GGUF)",
        parameters=header.parameters,
        stored_dtype=header.stored_as,
        origin=checkpoint.origin,
    )


def _indexed(checkpoint: CheckpointFolder) -> tuple[str, ...]:
    index = read_object(checkpoint.path / INDEX, name=f"{checkpoint.origin}/{INDEX}")
    places = index.get("weight_map")
    named = sorted({str(name) for name in places.values()}) if isinstance(places, dict) else []
    for name in named or [""]:
        if "/" in name or "\\" in name or not name.endswith(".safetensors"):
            raise InputError(f"'{checkpoint.origin}': {INDEX} names {name[:80]!r}, which is no safetensors file of this folder")
        if not (checkpoint.path / name).is_file():
            raise InputError(f"'{checkpoint.origin}' lacks {name}, which {INDEX} names", hint=checkpoint.hint("copy or download the missing file"))
    return tuple(named)


def _present(checkpoint: CheckpointFolder, names: Iterable[str]) -> set[str]:
    return {name for name in names if (checkpoint.path / name).is_file()}


def _check_places(checkpoint: CheckpointFolder, names: Iterable[str]) -> None:
    boundary = checkpoint.boundary.resolve()
    for name in sorted(names):
        if not (checkpoint.path / name).is_file():
            raise InputError(
                f"'{checkpoint.origin}': {name} is no file that can be read", hint=checkpoint.hint("put the file itself there, or take it out")
            )
        if not (checkpoint.path / name).resolve().is_relative_to(boundary):
            problem = f"'{checkpoint.origin}': {name} is a link that leads outside the folder that may be read"
            raise InputError(problem, hint="put the file itself there")


def _refuse_adapter(checkpoint: CheckpointFolder) -> None:
    """Refuse a folder whose answers would depend on whether the library peft is installed, which adds the adapter to the weights unasked."""
    if os.path.lexists(checkpoint.path / ADAPTER):
        raise InputError(
            f"'{checkpoint.origin}': {ADAPTER} belongs to an adapter, which has no digest here",
            hint="merge it into the weights and save them again (merge_and_unload), or take it out to score the model without it",
        )


def _refuse_settings(checkpoint: CheckpointFolder, names: Iterable[str]) -> None:
    """Refuse settings that ask for code of the model, or for files that no digest covers."""
    for name in sorted(set(REDIRECTIONS).intersection(names)):
        content = read_object(checkpoint.path / name, name=f"{checkpoint.origin}/{name}")
        nested = [value for value in content.values() if isinstance(value, dict)]
        if any("auto_map" in part for part in (content, *nested)):
            raise InputError(
                f"'{checkpoint.origin}': {name} asks to run code that comes with the model ('auto_map')",
                hint="code of models is never run; where transformers itself knows the architecture, use a copy of the folder without this entry",
            )
        if REDIRECTIONS[name] in content:
            raise InputError(
                f"'{checkpoint.origin}': {name} names other files to read ('{REDIRECTIONS[name]}')",
                hint=f"give them their usual names ({ONE_FILE}, tokenizer.json), in a copy of the folder without this entry",
            )


def _file_digest(checkpoint: CheckpointFolder, name: str, digest: FileDigester) -> FileDigest:
    path = checkpoint.path / name
    try:
        return FileDigest(name=name, sha256=digest(path), size=path.stat().st_size)
    except OSError as error:
        raise InputError(f"{checkpoint.origin}/{name} cannot be read: {error.strerror}") from error


def _combined(files: Iterable[FileDigest]) -> str:
    return hashlib.sha256(b"".join(bytes.fromhex(file.sha256) for file in files)).hexdigest()
