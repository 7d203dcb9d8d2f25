"""What can a loaded model be asked for?  Each answer is tried out on it, because no attribute says it reliably.

A model that cannot share is scored all the same, with every row whole and alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from evalspec.scoring.sharing import Abilities

COMMON = (1, 2, 3, 4, 5, 6)
BRANCH, OTHER = (7, 8, 9), (10, 11, 12)
"""Ids of the rows that are tried; every vocabulary has them."""

Positions = Literal["marked", "shared", "all"]
"""Logits where a mask marks them, in the same columns of every row, or everywhere."""

TOLERANCE = {torch.float32: 1e-3}
COARSE = 0.1
"""How far logits may be off, in standard deviations, where only rounding differs."""


def position_style(model: Any) -> Positions:  # Any: a transformers model
    """Find out how the model can be asked for few positions."""
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        return "all"
    mark = torch.tensor([[False, True]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=_row(model, COMMON[:2]), use_cache=False, logits_to_keep=mark).logits
    return "marked" if logits.ndim == 2 else "shared"


def learn_abilities(model: Any) -> Abilities:  # Any: a transformers model
    """Try out whether the model keeps branches apart and goes on from its cache."""
    parameters = inspect.signature(model.forward).parameters
    if "position_ids" not in parameters or "attention_mask" not in parameters:
        return Abilities()
    with torch.inference_mode():
        branches = _keeps_branches_apart(model)
        cache = cache_name(model) is not None and _goes_on_from_its_cache(model)
        gaps = cache and _goes_on_behind_gaps(model)
    window = getattr(model.config.get_text_config(decoder=True), "sliding_window", None)
    return Abilities(branches, cache, window if isinstance(window, int) else None, gaps)


def cache_name(model: Any) -> Literal["cache", "past_key_values"] | None:  # Any: a transformers model
    """Return what the model's forward pass calls its cache; transformers renamed it in 5.24."""
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values" if "past_key_values" in parameters else None


def read_into_cache(model: Any, ids: Sequence[int]) -> list[tuple[Tensor, Tensor]]:  # Any: a transformers model
    """Return keys and values (1, heads, ids, width) of every layer after `ids`; raises ValueError when a layer keeps anything else."""
    name = cache_name(model)
    given = {str(name): DynamicCache(config=model.config)}
    model(input_ids=_row(model, ids), use_cache=True, **given)
    layers = given[str(name)].layers
    if not all(isinstance(layer, DynamicLayer) and isinstance(layer.keys, Tensor) and layer.keys.shape[2] == len(ids) for layer in layers):
        raise ValueError("the model keeps something else than the keys and values of every id")
    return [(layer.keys, layer.values) for layer in layers]


def cache_for(model: Any, layers: Sequence[tuple[Tensor, Tensor]], rows: int) -> dict[str, DynamicCache]:  # Any: a transformers model
    """Return the argument that lets `rows` rows go on from what `read_into_cache` gave."""
    wide = [(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1)) for keys, values in layers]
    return {str(cache_name(model)): DynamicCache(wide, config=model.config)}


def tree_mask(branches: Tensor, prefix: int, dtype: torch.dtype) -> Tensor:
    """Return the additive attention mask (R, 1, T, prefix + T) of rows with these branches (R, T): an id sees what is common and its own branch."""
    same = (branches[:, :, None] == branches[:, None, :]) | (branches[:, None, :] == 0)
    seen = same & torch.ones(same.shape[1:], dtype=torch.bool, device=branches.device).tril()
    mask = torch.zeros(seen.shape, dtype=dtype, device=branches.device).masked_fill(~seen, torch.finfo(dtype).min)
    return torch.nn.functional.pad(mask, (prefix, 0))[:, None]


def _row(model: Any, ids: Sequence[int]) -> Tensor:  # Any: a transformers model
    return torch.tensor([list(ids)], device=model.device)


def _keeps_branches_apart(model: Any) -> bool:  # Any: a transformers model
    """Changing one branch must not move a bit of another, and a branch must be read as if it stood alone."""

    def last_of_second(first: Sequence[int]) -> Tensor:
        branches = torch.tensor([[0] * len(COMMON) + [1] * len(first) + [2] * len(BRANCH)], device=model.device)
        places = [*range(len(COMMON)), *(len(COMMON) + step for step in range(len(first))), *(len(COMMON) + step for step in range(len(BRANCH)))]
        mask = tree_mask(branches, 0, model.dtype)
        ids = _row(model, (*COMMON, *first, *BRANCH))
        logits: Tensor = model(input_ids=ids, attention_mask=mask, position_ids=_row(model, places), use_cache=False).logits
        return logits[0, -1].float()

    alone = model(input_ids=_row(model, COMMON + BRANCH), use_cache=False).logits[0, -1].float()
    one, other = last_of_second(OTHER), last_of_second(OTHER[::-1])
    return torch.equal(one, other) and _close(one, alone, model.dtype)


def _goes_on_from_its_cache(model: Any) -> bool:  # Any: a transformers model
    try:
        layers = read_into_cache(model, COMMON)
    except ValueError:
        return False
    rows = torch.tensor([BRANCH, OTHER], device=model.device)
    places = torch.arange(len(COMMON), len(COMMON) + len(BRANCH), device=model.device)[None].expand(2, -1)
    going_on = model(input_ids=rows, position_ids=places, use_cache=True, **cache_for(model, layers, 2)).logits[:, -1].float()
    alone = [model(input_ids=_row(model, COMMON + ids), use_cache=False).logits[0, -1].float() for ids in (BRANCH, OTHER)]
    return all(_close(one, other, model.dtype) for one, other in zip(going_on, alone, strict=True))


def _goes_on_behind_gaps(model: Any) -> bool:  # Any: a transformers model
    """What stands in the cache behind the end of a shorter row must change nothing, and be no more than if it were not there."""
    rows, name = (COMMON, COMMON[:4]), str(cache_name(model))
    given = {name: DynamicCache(config=model.config)}
    ids = torch.tensor([rows[0], (*rows[1], 0, 0)], device=model.device)
    model(input_ids=ids, use_cache=True, **given)
    mask = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 1]], device=model.device)
    places = torch.tensor([[len(row)] for row in rows], device=model.device)
    try:
        going_on = (
            model(input_ids=_row(model, BRANCH[:1]).expand(2, -1), position_ids=places, attention_mask=mask, use_cache=True, **given)
            .logits[:, -1]
            .float()
        )
    except (RuntimeError, TypeError, ValueError):
        return False
    alone = [model(input_ids=_row(model, (*row, BRANCH[0])), use_cache=False).logits[0, -1].float() for row in rows]
    return all(_close(one, other, model.dtype) for one, other in zip(going_on, alone, strict=True))


def _close(one: Tensor, other: Tensor, dtype: torch.dtype) -> bool:
    return bool((one - other).abs().max() <= TOLERANCE.get(dtype, COARSE) * other.std())
