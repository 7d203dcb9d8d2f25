"""How much memory will a model need?  From the headers of its weight files and config.json; nothing is loaded."""

from __future__ import annotations

from typing import Literal

from evalspec.artifacts.schedule import MemoryNeed
from evalspec.foreign import read_object
from evalspec.planning.checkpoint_config import Shape, shape
from evalspec.planning.checkpoints import CheckpointFolder, read_weights, stored_dtype, weight_files
from evalspec.planning.tensor_files import BITS

ALLOWANCE = 1.1
"""What allocators waste on top."""

RUNTIME_BYTES = int(0.6 * 2**30)
"""What the libraries take on a device before the first weight."""

TOKENS_PER_ROW = 64
"""A batch is taken to hold one prompt for so many tokens: fewer rows, and so fewer rows of logits, in truth."""

COMPUTE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def memory_need(checkpoint: CheckpointFolder, *, model: str, precision: Literal["as_shipped", "float32"], token_budget: int) -> MemoryNeed:
    """Return the memory of a model in the precision of the run, with one batch of `token_budget` tokens under way; raises InputError.

    Weights as stored, or 4 bytes for each; then the activations of one live layer and the logits of one position per row, with their float32
    copy: T bytes (4 H + 3 I + 2 (h + 2 kv) d) + rows V (bytes + 4), where T is the token budget, H and I the hidden and intermediate sizes,
    h and kv the heads, d their size and V the vocabulary. No cached prefix. A tenth on top for the allocator, and the runtime itself.
    """
    tensors = read_weights(checkpoint, weight_files(checkpoint))
    sizes = shape(read_object(checkpoint.path / "config.json", name=f"{checkpoint.origin}/config.json"), name=f"{checkpoint.origin}/config.json")
    parameters = sum(tensor.numbers for tensor in tensors)
    dtype = stored_dtype(tensors)
    stored = sum(tensor.numbers * BITS[tensor.dtype] // 8 for tensor in tensors)
    weights = stored if precision == "as_shipped" else 4 * parameters
    number = COMPUTE_BYTES.get(dtype, 2) if precision == "as_shipped" else 4
    batch = _activations(sizes, token_budget, number) + _logits(sizes, token_budget, number)
    working = int((weights + batch) * ALLOWANCE) - weights + RUNTIME_BYTES
    return MemoryNeed(model=model, parameters=parameters, stored_dtype=dtype, weights_bytes=weights, working_bytes=working)


def _activations(sizes: Shape, tokens: int, number: int) -> int:
    heads = 2 * (sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim
    return tokens * number * (4 * sizes.hidden + 3 * sizes.intermediate + heads)


def _logits(sizes: Shape, tokens: int, number: int) -> int:
    return -(-tokens // TOKENS_PER_ROW) * sizes.vocabulary * (number + 4)
