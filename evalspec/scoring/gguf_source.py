"""How is a GGUF file read?  By transformers itself, from a folder where it lies alone, so that no file beside it has a say."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalspec.errors import MissingLibrary, how_to_install

NEEDED = ("transformers", "gguf", "accelerate")
"""Without the last two, transformers refuses GGUF files."""


def is_gguf(place: Path) -> bool:
    """Return whether a checkpoint is a GGUF file and no folder."""
    return place.suffix == ".gguf" and place.is_file()


@contextmanager
def alone(file: Path) -> Iterator[dict[str, Any]]:  # Any: arguments of a foreign function
    """Give what a `from_pretrained` is to be told of the file; raises MissingLibrary where transformers would refuse it."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingLibrary(f"reading '{file.name}' needs the library '{missing[0]}', which is not installed", hint=how_to_install("gguf"))
    with tempfile.TemporaryDirectory(prefix="evalspec-gguf-") as folder:
        (Path(folder) / file.name).symlink_to(file.resolve())
        yield {"pretrained_model_name_or_path": folder, "gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}


def gguf_config(file: Path) -> dict[str, Any]:  # Any: the schema belongs to each architecture
    """Return the settings of the model as transformers' config.json would have them; raises what it raises over files that it does not know."""
    with alone(file) as source:
        from transformers import AutoConfig  # noqa: PLC0415 - seconds to import

        settings: dict[str, Any] = AutoConfig.from_pretrained(**source).to_dict()
    return settings


def gguf_tokenizer(file: Path) -> Any:  # Any: a transformers tokenizer
    """Return the tokenizer of the file; raises as `gguf_config` does."""
    with alone(file) as source:
        from transformers import AutoTokenizer  # noqa: PLC0415 - seconds to import

        return AutoTokenizer.from_pretrained(**source)
