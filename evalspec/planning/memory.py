"""How much memory will a model need?  From the headers of its weight files and config.json; nothing is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from evalspec.artifacts.base import Precision
from evalspec.artifacts.schedule import MemoryNeed
from evalspec.foreign import read_object
from evalspec.planning.checkpoint_config import Shape, gguf_shape, shape
from evalspec.planning.checkpoints import CheckpointFolder, read_weights, stored_dtype, weight_files
from evalspec.planning.gguf_files import read_gguf
from evalspec.planning.tensor_files import BITS

ALLOWANCE = 1.1
"""What allocators waste on top."""

RUNTIME_BYTES = int(0.6 * 2**30)
"""What the libraries take on a device before the first weight."""

TOKENS_PER_ROW = 64
"""A batch is taken to hold one prompt for so many tokens: fewer rows, and so fewer rows of logits, in truth."""

COMPUTE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def memory_need(checkpoint: CheckpointFolder, *, model: str, precision: Precision, token_budget: int, cached_tokens: int = 0) -> MemoryNeed:
    """Return the memory of a model in the precision of the run, with one batch of `token_budget` tokens under way; raises InputError.

    Weights as stored, or widened, or dequantised; then the activations of one live layer and the logits of one position per row, with their float32
    copy: T bytes (4 H + 3 I + 2 (h + 2 kv) d) + rows V (bytes + 4), where T is the token budget, H and I the hidden and intermediate sizes,
    h and kv the heads, d their size and V the vocabulary. Beside 16-bit weights, the float32 copy of the head: 4 V H bytes. Where texts are
    generated, keys and values of `cached_tokens`: 2 L kv d bytes each in L layers; no cached prefix. A tenth on top for the allocator, and the
    runtime itself.
    """
    held = _held(checkpoint) if checkpoint.gguf is None else _held_in_gguf(checkpoint, checkpoint.gguf)
    number = COMPUTE_BYTES.get(held.dtype if precision == "as_shipped" else precision, 2)
    weights = held.stored_bytes if precision == "as_shipped" else number * held.parameters
    head = 4 * held.sizes.vocabulary * held.sizes.hidden if number < 4 else 0
    cache = cached_tokens * 2 * held.sizes.layers * held.sizes.kv_heads * held.sizes.head_dim * number
    batch = _activations(held.sizes, token_budget, number) + _logits(held.sizes, token_budget, number) + cache
    working = int((weights + head + batch) * ALLOWANCE) - weights + RUNTIME_BYTES
    return MemoryNeed(model=model, parameters=held.parameters, stored_dtype=held.dtype, weights_bytes=weights, working_bytes=working)


@dataclass(frozen=True, slots=True)
class _Held:
    """What the files of a checkpoint hold."""

    parameters: int
    dtype: str
    stored_bytes: int
    sizes: Shape


def _held(checkpoint: CheckpointFolder) -> _Held:
    tensors = read_weights(checkpoint, weight_files(checkpoint))
    name = f"{checkpoint.origin}/config.json"
    return _Held(
        parameters=sum(tensor.numbers for tensor in tensors),
        dtype=stored_dtype(tensors),
        stored_bytes=sum(tensor.numbers * BITS[tensor.dtype] // 8 for tensor in tensors),
        sizes=shape(read_object(checkpoint.path / "config.json", name=name), name=name),
    )


def _held_in_gguf(checkpoint: CheckpointFolder, file: str) -> _Held:
    header = read_gguf(checkpoint.path / file, label=checkpoint.origin)
    stored = sum(tensor.size for tensor in header.tensors)
    return _Held(header.parameters, header.stored_as, stored, gguf_shape(header.settings, header.lengths, name=checkpoint.origin))


def _activations(sizes: Shape, tokens: int, number: int) -> int:
    heads = 2 * (sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim
    return tokens * number * (4 * sizes.hidden + 3 * sizes.intermediate + heads)


def _logits(sizes: Shape, tokens: int, number: int) -> int:
    return -(-tokens // TOKENS_PER_ROW) * sizes.vocabulary * (number + 4)
