"""What do a checkpoint's config.json, or the settings of a GGUF file, say?  Read as plain values; nothing in them is run or imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError

GGUF_SIZES = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
}
"""What GGUF files call the sizes, behind the architecture's name, and what config.json does."""


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


def architecture(config: dict[str, JsonValue], *, name: str) -> str:
    """Return the model class that the checkpoint was saved from; raises InputError when config.json does not say."""
    named = config.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str) and named[0].isidentifier():
        return named[0]
    raise InputError(f"{name} does not say which architecture the model has", hint='it needs "architectures": ["..."], as save_pretrained writes it')


def text_settings(config: dict[str, JsonValue], *, name: str) -> dict[str, JsonValue]:
    """Return the settings of the (text) model, which those of a model with several parts keep apart; raises InputError when they are no object."""
    nested = config.get("text_config")
    if nested is not None and not isinstance(nested, dict):
        raise InputError(f"{name}: text_config is not a JSON object", hint="it holds the settings of the text model, as save_pretrained writes them")
    return {**config, **nested} if nested else config


def shape(config: dict[str, JsonValue], *, name: str) -> Shape:
    """Return the sizes of the (text) model; raises InputError when config.json lacks one that memory depends on."""
    sizes = text_settings(config, name=name)
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


def gguf_shape(settings: Mapping[str, JsonValue], lengths: Mapping[str, int], *, name: str) -> Shape:
    """Return the sizes of a model in a GGUF file, from its settings and the lengths of its lists; raises InputError as `shape` does."""
    kind = settings.get("general.architecture")
    said = {known: settings[f"{kind}.{key}"] for key, known in GGUF_SIZES.items() if f"{kind}.{key}" in settings}
    return shape({"vocab_size": lengths.get("tokenizer.ggml.tokens"), **said}, name=name)


def _size(sizes: dict[str, JsonValue], names: tuple[str, ...], file: str, *, default: int | None = None) -> int:
    given = next((sizes[name] for name in names if sizes.get(name) is not None), default)
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 31:
        return given
    problem = "has no" if given is None else "has an impossible"
    raise InputError(f"{file} {problem} {names[0]}", hint="planning reads the sizes of the model from config.json")
