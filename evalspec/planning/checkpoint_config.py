"""What does a checkpoint's config.json say?  Read as plain JSON; nothing in it is run or imported."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError

LARGEST_CONFIG = 1 << 24


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that decide how much memory one batch needs."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int


def read_json(path: Path, *, name: str) -> dict[str, JsonValue]:
    """Return a JSON object of a checkpoint; raises InputError when it is none."""
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise InputError(f"{name} has {path.stat().st_size:,} bytes; at most {LARGEST_CONFIG:,} are read")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON", hint="copy or download the file again") from error
    if not isinstance(value, dict):
        raise InputError(f"{name} is not a JSON object")
    return value


def architecture(config: dict[str, JsonValue], *, name: str) -> str:
    """Return the model class that the checkpoint was saved from; raises InputError when config.json does not say."""
    named = config.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str) and named[0].isidentifier():
        return named[0]
    raise InputError(f"{name} does not say which architecture the model has", hint='it needs "architectures": ["..."], as save_pretrained writes it')


def shape(config: dict[str, JsonValue], *, name: str) -> Shape:
    """Return the sizes of the (text) model; raises InputError when config.json lacks one that memory depends on."""
    nested = config.get("text_config")
    sizes = {**config, **nested} if isinstance(nested, dict) else config
    hidden, heads = _size(sizes, ("hidden_size", "n_embd", "d_model"), name), _size(sizes, ("num_attention_heads", "n_head"), name)
    return Shape(
        hidden=hidden,
        intermediate=_size(sizes, ("intermediate_size", "n_inner", "ffn_dim"), name, default=4 * hidden),
        layers=_size(sizes, ("num_hidden_layers", "n_layer"), name),
        heads=heads,
        kv_heads=_size(sizes, ("num_key_value_heads",), name, default=heads),
        head_dim=_size(sizes, ("head_dim",), name, default=-(-hidden // heads)),
        vocabulary=_size(sizes, ("vocab_size",), name),
    )


def _size(sizes: dict[str, JsonValue], names: tuple[str, ...], file: str, *, default: int | None = None) -> int:
    given = next((sizes[name] for name in names if sizes.get(name) is not None), default)
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 31:
        return given
    problem = "has no" if given is None else "has an impossible"
    raise InputError(f"{file} {problem} {names[0]}", hint="planning reads the sizes of the model from config.json")
