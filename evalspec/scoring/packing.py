"""How are rows kept apart that are laid end to end in one?  By an attention that is told where each begins, and looks at nothing before.

Nothing is padded, so that nothing is computed in vain. On an accelerator, in 16 bits, torch's kernel for rows of varying length computes it;
elsewhere torch's attention computes one row after the other, which is what that kernel is to give. transformers would find out by itself where
rows begin, from positions, but silently does not where it is given a mask: here it is told, and no mask is ever given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from evalspec.scoring.sharing import BY_KERNEL, ROW_BY_ROW, Layout, Packing

END_TO_END = "evalspec_end_to_end"
WITHOUT_WINDOW = "evalspec_without_window"
"""What transformers calls attentions: `attend`, and torch's own, which sees all that came before. It makes no mask for names of ours."""

HALF = (torch.bfloat16, torch.float16)

CHANGES_NOTHING = frozenset({"position_ids", "cache_position", "position_embeddings", "use_cache", "output_attentions", "output_hidden_states",
                             "output_router_logits", "cu_seq_lens_k", "max_length_k"})  # fmt: skip
"""What a layer may hand on beside what `attend` names, and which says nothing of what may be seen."""


def has_kernel(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether rows are kept apart by the kernel; else one after the other."""
    return device.type == "cuda" and dtype in HALF


def packing_for(device: torch.device, dtype: torch.dtype) -> Packing:
    """Return what keeps rows apart."""
    return BY_KERNEL if has_kernel(device, dtype) else ROW_BY_ROW


def worth_while(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether rows end to end are faster than padded ones: by the kernel, and on a processor; an accelerator is too fast for row by row."""
    return has_kernel(device, dtype) or device.type == "cpu"


def boundaries(lengths: Sequence[int], device: torch.device) -> dict[str, Any]:  # Any: arguments of a transformers model
    """Return what a model is told of rows of these lengths, by transformers' own names."""
    ends = torch.tensor([0, *lengths], device="cpu").cumsum(0).to(device=device, dtype=torch.int32)
    longest = max(lengths)
    return {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends, "max_length_q": longest, "max_length_k": longest}


def told_of(layout: Layout, model: Any) -> dict[str, Any]:  # Any: a transformers model and its arguments
    """Return what a model is told of rows that are laid end to end, with branches or without."""
    told = {"position_ids": torch.from_numpy(layout.positions).to(model.device), **boundaries(layout.lengths, model.device)}
    if layout.branches is not None:
        rows = torch.split(torch.from_numpy(layout.branches[0]).to(model.device), list(layout.lengths))
        told["branch_masks"] = [branch_mask(row[None], model.dtype)[None] if row.any() else None for row in rows]
    return told


def branch_mask(branches: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the additive mask (R, T, T) of rows with these branches (R, T): an id sees what is common and its own branch, up to itself."""
    same = (branches[:, :, None] == branches[:, None, :]) | (branches[:, None, :] == 0)
    seen = same & torch.ones(same.shape[1:], dtype=torch.bool, device=branches.device).tril()
    return torch.zeros(seen.shape, dtype=dtype, device=branches.device).masked_fill(~seen, torch.finfo(dtype).min)


@contextmanager
def attending(model: Any, name: str) -> Iterator[None]:  # Any: a transformers model
    """Within it, the model attends by what is registered under a name of this module; no mask is made there, so that padded rows must stay outside.

    Raises ValueError for a model whose attention cannot be chosen.
    """
    before = {"": model.config._attn_implementation}  # noqa: SLF001 - what set_attn_implementation sets has no public name
    before |= {part: getattr(model.config, part)._attn_implementation for part in model.config.sub_configs}  # noqa: SLF001
    if not model._can_set_attn_implementation():  # noqa: SLF001 - asked first, as transformers only warns
        raise ValueError("the model's attention cannot be chosen")
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    branch_masks: Sequence[Tensor | None] | None = None,
    **others: Any,  # Any, and whatever an architecture hands on: what is not known to change nothing is refused
) -> tuple[Tensor, None]:
    """Return the attention (1, T, heads, width) of queries, keys and values (1, heads, T, width) of rows that end at `cu_seq_lens_q`.

    An id sees its own row up to itself, or as many of its last ids as the window has; with branches, what its mask leaves of its row, which no
    window may cut. Raises ValueError for whatever else a model asks for: a mask, a soft-cap, sinks, a bias, dropout, both directions, values that
    are not as wide as keys, or no word of where rows end.
    """
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    asked = sorted(name for name, given in others.items() if name not in CHANGES_NOTHING and given is not None)
    if cu_seq_lens_q is None or max_length_q is None:
        raise ValueError("nothing says where the rows end")
    if asked or attention_mask is not None or dropout or not causal:
        raise ValueError(f"rows laid end to end cannot have this: {', '.join(asked) or 'a mask, dropout or both directions'}")
    if len(query) != 1 or query.shape[2] != key.shape[2] or query.shape[3] != value.shape[3]:
        raise ValueError(f"one row of queries, keys and values alike is needed; got {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}")
    if has_kernel(query.device, query.dtype):
        if branch_masks is not None:
            raise ValueError("the kernel for rows laid end to end takes no branches")
        return _by_kernel(query, key, value, (cu_seq_lens_q, max_length_q), scaling, sliding_window), None
    runs = list(pairwise(cu_seq_lens_q.tolist()))
    masks = [_window_mask(end - start, sliding_window, query.device) for start, end in runs] if branch_masks is None else branch_masks
    return _row_by_row((query, key, value), runs, masks, scaling), None


def _by_kernel(query: Tensor, key: Tensor, value: Tensor, rows: tuple[Tensor, int], scaling: float | None, window: int | None) -> Tensor:
    ends, longest = rows
    queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    attended = varlen_attn(
        queries,
        keys,
        values,
        ends,
        ends,
        longest,
        longest,
        scale=scaling,
        window_size=(-1 if window is None else window - 1, 0),  # (left, right), beside the id itself
        enable_gqa=query.shape[1] != key.shape[1],
        num_splits=1,  # so that, by torch's documentation, a row's bits do not depend on the other rows
    )
    assert isinstance(attended, Tensor)
    return attended[None]


def _row_by_row(
    states: tuple[Tensor, Tensor, Tensor], runs: Sequence[tuple[int, int]], masks: Sequence[Tensor | None], scaling: float | None
) -> Tensor:
    grouped = states[0].shape[1] != states[1].shape[1]
    attended = []
    for (start, end), mask in zip(runs, masks, strict=True):
        query, key, value = (each[:, :, start:end] for each in states)
        attended.append(
            nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=grouped)
        )
    return torch.cat(attended, dim=2).transpose(1, 2).contiguous()


def _window_mask(length: int, window: int | None, device: torch.device) -> Tensor | None:
    if window is None or length <= window:
        return None
    ones = torch.ones(length, length, dtype=torch.bool, device=device)
    return ones.tril() & ones.triu(1 - window)


AttentionInterface.register(END_TO_END, attend)
AttentionInterface.register(WITHOUT_WINDOW, ALL_ATTENTION_FUNCTIONS["sdpa"])
