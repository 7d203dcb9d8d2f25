"""How is a model's forward pass asked: for the logits of few ids, and to go on from what it has read?  As each architecture takes it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from evalspec.scoring.packing import branch_mask

Positions = Literal["marked", "shared", "all"]
"""Logits where a mask marks them, in the same columns of every row, or everywhere."""


def position_style(model: Any) -> Positions:  # Any: a transformers model
    """Find out how the model can be asked for few positions."""
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        return "all"
    mark = torch.tensor([[False, True]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=row_of(model, (1, 2)), use_cache=False, logits_to_keep=mark).logits
    return "marked" if logits.ndim == 2 else "shared"


def logits_at(model: Any, style: Positions, kept: Tensor, given: dict[str, Any]) -> Tensor:  # Any: a transformers model and its arguments
    """Return float32 logits (marks, vocabulary) where `kept` (R, T) marks the rows that the model is given, along them."""
    logits: Tensor
    if style == "marked":
        logits = model(**given, logits_to_keep=kept).logits
    elif style == "shared":
        columns = torch.nonzero(kept.any(dim=0)).flatten()
        logits = model(**given, logits_to_keep=columns).logits[kept[:, columns]]
    else:
        logits = model(**given).logits[kept]
    return logits.float()


def cache_name(model: Any) -> Literal["cache", "past_key_values"] | None:  # Any: a transformers model
    """Return what the model's forward pass calls its cache; transformers renamed it in 5.24."""
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values" if "past_key_values" in parameters else None


def read_into_cache(model: Any, ids: Sequence[int]) -> list[tuple[Tensor, Tensor]]:  # Any: a transformers model
    """Return keys and values (1, heads, ids, width) of every layer after `ids`; raises ValueError when a layer keeps anything else."""
    name = cache_name(model)
    given: dict[str, Any] = {str(name): DynamicCache(config=model.config)}
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        given["logits_to_keep"] = 1  # those of every id would take more memory than all that is kept
    model(input_ids=row_of(model, ids), use_cache=True, **given)
    layers = given[str(name)].layers
    if not all(isinstance(layer, DynamicLayer) and isinstance(layer.keys, Tensor) and layer.keys.shape[2] == len(ids) for layer in layers):
        raise ValueError("the model keeps something else than the keys and values of every id")
    return [(layer.keys, layer.values) for layer in layers]


def cache_for(model: Any, layers: Sequence[tuple[Tensor, Tensor]], rows: int) -> dict[str, DynamicCache]:  # Any: a transformers model
    """Return the argument that lets `rows` rows go on from what `read_into_cache` gave."""
    wide = [(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1)) for keys, values in layers]
    return {str(cache_name(model)): DynamicCache(wide, config=model.config)}


def row_of(model: Any, ids: Sequence[int]) -> Tensor:  # Any: a transformers model
    """Return these ids as one row, (1, ids), where the model is."""
    return torch.tensor([list(ids)], device=model.device)


def tree_mask(branches: Tensor, prefix: int, dtype: torch.dtype) -> Tensor:
    """Return the additive attention mask (R, 1, T, prefix + T) of rows with these branches (R, T): an id sees what is common and its own branch."""
    return torch.nn.functional.pad(branch_mask(branches, dtype), (prefix, 0))[:, None]
