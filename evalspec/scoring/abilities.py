"""What can a loaded model be asked for?  Each answer is tried out on it, because no attribute says it reliably.

A model that cannot share is scored all the same, with every row whole and alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from evalspec.artifacts.work import Answer, EncodedQuestion
from evalspec.scoring.forward_pass import Positions, cache_for, cache_name, logits_at, position_style, read_into_cache, row_of, tree_mask
from evalspec.scoring.packing import END_TO_END, WITHOUT_WINDOW, attending, boundaries, told_of
from evalspec.scoring.sharing import Abilities, Packing, Sharing, lay_out

COMMON = (1, 2, 3, 4, 5, 6)
BRANCH, OTHER = (7, 8, 9), (10, 11, 12)
"""Ids of the rows that are tried; every vocabulary has them."""

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
COARSE = 0.1
"""How far logits may be off, in standard deviations, where only rounding differs."""

WIDEST_TRIED = 1024
"""Ids of the widest window beyond which rows are tried: on a processor, longer rows would take minutes to read, and fill a batch alone."""

WINDOWS = ("sliding_window", "attention_chunk_size")
"""What configurations call the ids that a layer sees at most, its own included; no row may be longer where anything is shared."""

STRETCHED = ("dynamic", "longrope")
"""Kinds of rotary positions that move in all rows when one of them is longer than the model was first trained for."""


def learn_abilities(model: Any, packing: Packing | None) -> Abilities:  # Any: a transformers model
    """Try out whether the model keeps branches apart and goes on from its cache; and, where `packing` is given, rows apart end to end by it."""
    parameters = inspect.signature(model.forward).parameters
    if "position_ids" not in parameters or "attention_mask" not in parameters:
        return Abilities()
    with torch.inference_mode():
        branches = _passes(_keeps_branches_apart, model)
        cache = cache_name(model) is not None and _passes(_goes_on_from_its_cache, model)
        gaps = cache and _passes(_goes_on_behind_gaps, model)
        apart = packing if packing is not None and _passes(_keeps_rows_apart, model) else None
        if apart is not None and apart.branches:
            apart = replace(apart, branches=branches and _passes(_keeps_trees_apart, model))
    window = _window(model)
    longest_packed = window if apart is not None and window is not None and window > WIDEST_TRIED else None
    return Abilities(branches, cache, window, gaps, apart, longest_packed, _stretched_from(model))


def sees_what_follows(model: Any) -> bool:  # Any: a transformers model
    """Return whether ids move the logits of those before them: an encoder, which predicts no next token; False where it cannot be tried."""
    with torch.inference_mode():
        return _passes(_moves_what_stands_before, model)


def _passes(trial: Callable[[Any], bool], model: Any) -> bool:  # Any: a transformers model
    """Return what a trial finds; a model that fails in it, for want of memory too, cannot do what was tried."""
    try:
        return trial(model)
    except Exception:  # noqa: BLE001 - architectures fail in ways of their own, and such a model's rows can be read whole and alone
        return False


def _last_of(model: Any, rows: Sequence[Sequence[int]], last: int = 1, **told: Any) -> Tensor:  # Any: a transformers model and its arguments
    """Return float32 logits (R x last, V) of the `last` ids at the end of R rows of one length."""
    ids = torch.tensor([list(row) for row in rows], device=model.device)
    kept = torch.zeros(ids.shape, dtype=torch.bool, device=model.device)
    kept[:, -last:] = True
    return logits_at(model, position_style(model), kept, {"input_ids": ids, "use_cache": False, **told})


def _alone(model: Any, rows: Sequence[Sequence[int]], last: int = 1) -> Tensor:  # Any: a transformers model
    """Return the same of rows that are each read whole and alone."""
    return torch.cat([_last_of(model, [row], last) for row in rows])


def _moves_what_stands_before(model: Any) -> bool:  # Any: a transformers model
    """Other ids must move earlier logits by more than rounding, on average, as one of a mixture's experts may change by rounding alone."""
    ids = torch.tensor([COMMON + BRANCH * 2, COMMON + OTHER * 2], device=model.device)
    kept = (torch.arange(ids.shape[1], device=model.device) < len(COMMON)).expand(2, -1)
    one, other = logits_at(model, position_style(model), kept, {"input_ids": ids, "use_cache": False}).chunk(2)
    return bool((one - other).square().mean().sqrt() > TOLERANCE.get(model.dtype, COARSE) * other.std())


def _keeps_branches_apart(model: Any) -> bool:  # Any: a transformers model
    """Changing one branch must not move a bit of another, and a branch must be read as if it stood alone, however far its beginning is away."""

    def second(first: Sequence[int]) -> Tensor:
        branches = torch.tensor([[0] * len(COMMON) + [1] * len(first) + [2] * len(BRANCH)], device=model.device)
        places = [*range(len(COMMON)), *(len(COMMON) + step for step in range(len(first))), *(len(COMMON) + step for step in range(len(BRANCH)))]
        told = {"attention_mask": tree_mask(branches, 0, model.dtype), "position_ids": row_of(model, places)}
        return _last_of(model, [(*COMMON, *first, *BRANCH)], len(BRANCH), **told)

    between = OTHER * _reach(model)
    one, other = second(between), second(between[::-1])
    return torch.equal(one, other) and _close(one, _alone(model, [COMMON + BRANCH], len(BRANCH)), model.dtype)


def _goes_on_from_its_cache(model: Any) -> bool:  # Any: a transformers model
    layers = read_into_cache(model, COMMON)
    places = torch.arange(len(COMMON), len(COMMON) + len(BRANCH), device=model.device)[None].expand(2, -1)
    going_on = _last_of(model, (BRANCH, OTHER), len(BRANCH), position_ids=places, **{"use_cache": True, **cache_for(model, layers, 2)})
    return _all_close(going_on, _alone(model, (COMMON + BRANCH, COMMON + OTHER), len(BRANCH)), model.dtype)


def _goes_on_behind_gaps(model: Any) -> bool:  # Any: a transformers model
    """What stands in the cache behind the end of a shorter row must change nothing, and be no more than if it were not there."""
    rows, name = (COMMON, COMMON[:4]), str(cache_name(model))
    given = {name: DynamicCache(config=model.config)}
    ids = torch.tensor([rows[0], (*rows[1], 0, 0)], device=model.device)
    model(input_ids=ids, use_cache=True, **given)
    mask = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 1]], device=model.device)
    places = torch.tensor([[len(row)] for row in rows], device=model.device)
    told = {"position_ids": places, "attention_mask": mask, "use_cache": True, **given}
    going_on = _last_of(model, (BRANCH[:1], BRANCH[:1]), **told)
    return _all_close(going_on, _alone(model, [(*row, BRANCH[0]) for row in rows]), model.dtype)


def _keeps_rows_apart(model: Any) -> bool:  # Any: a transformers model
    """Rows end to end must be read as if each stood alone, its window included, and changing one must move no bit of the others."""
    layers = set(getattr(model.config.get_text_config(decoder=True), "layer_types", None) or ())
    if not layers <= {"full_attention", "sliding_attention"}:
        return False
    rows, others = _rows_to_try(model, 1), _rows_to_try(model, 2)
    together, style = _end_to_end(model, rows), position_style(model)
    alone = [_few_of(model, style, [row]) for row in rows]
    return (
        _all_close(together, alone, model.dtype)
        and _sees_no_further_than_its_window(model, rows[1], together[1], alone[1])
        and all(_moves_itself_alone(model, (rows, others), place, together) for place in range(len(rows)))
    )


def _keeps_trees_apart(model: Any) -> bool:  # Any: a transformers model
    """Rows with branches, end to end, must be read as if each text stood alone; changing one text must move no bit of the others."""
    texts = (BRANCH, OTHER, OTHER[::-1], BRANCH[::-1])
    together = _trees_of(model, texts)
    changed = (_trees_of(model, (*texts[:place], (text[1], text[0], text[2]), *texts[place + 1 :])) for place, text in enumerate(texts))
    moved = [[not torch.equal(one, other) for one, other in zip(after, together, strict=True)] for after in changed]
    alone = _alone(model, [COMMON + text for text in texts])
    return _all_close(together, alone, model.dtype) and moved == [[row == place for row in range(len(texts))] for place in range(len(texts))]


def _trees_of(model: Any, texts: Sequence[tuple[int, ...]]) -> Tensor:  # Any: a transformers model
    """Return the logits (texts, V) of the last id of each text, which are branches of rows that stand end to end, two in each."""
    pairs = [(COMMON + one, COMMON + other) for one, other in zip(texts[::2], texts[1::2], strict=True)]
    trees = [EncodedQuestion(rows, tuple(Answer(number, len(row) - 1, (1,)) for number, row in enumerate(rows))) for rows in pairs]
    layout = lay_out(trees, Sharing(branches=True, packing=True))
    given = {"input_ids": torch.from_numpy(layout.ids).to(model.device), "use_cache": False, **told_of(layout, model)}
    style = position_style(model)
    with attending(model, END_TO_END):
        return logits_at(model, style, torch.from_numpy(layout.kept).to(model.device), given)


def _moves_itself_alone(model: Any, rows: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]], place: int, before: Sequence[Tensor]) -> bool:
    changed = [other if number == place else row for number, (row, other) in enumerate(zip(*rows, strict=True))]
    after = _end_to_end(model, changed)
    return all(torch.equal(one, other) == (number != place) for number, (one, other) in enumerate(zip(before, after, strict=True)))


def _sees_no_further_than_its_window(model: Any, row: Sequence[int], packed: Tensor, alone: Tensor) -> bool:
    """What rounding leaves between the row alone and among others must be little beside what it is to see beyond the window."""
    window = _window(model)
    if window is None or len(row) <= window:
        return True
    with attending(model, WITHOUT_WINDOW):
        further = _few_of(model, position_style(model), [row])
    return bool((packed - alone).abs().max() < (further - alone).abs().max() / 2)


def _rows_to_try(model: Any, seed: int) -> list[tuple[int, ...]]:  # Any: a transformers model
    """Return three rows, the middle one half as long again as the window where there is one that is tried and positions allow it."""
    config, window = model.config.get_text_config(decoder=True), _window(model)
    positions = getattr(config, "max_position_embeddings", None) or len(COMMON + BRANCH)
    long = min(positions, window + window // 2 + 2) if window is not None and window <= WIDEST_TRIED else 0
    random, numbers = np.random.default_rng(seed), min(1000, model.get_input_embeddings().weight.shape[0])
    return [tuple(random.integers(1, numbers, length).tolist()) for length in (len(COMMON), max(long, len(COMMON + BRANCH)), len(COMMON) + 1)]


def _end_to_end(model: Any, rows: Sequence[Sequence[int]]) -> tuple[Tensor, ...]:
    """Return the logits (3, V) of each of the rows, which stand end to end."""
    lengths = [len(row) for row in rows]
    told = {"position_ids": row_of(model, [place for length in lengths for place in range(length)]), **boundaries(lengths, model.device)}
    style = position_style(model)
    with attending(model, END_TO_END):
        logits = _few_of(model, style, rows, told)
    return tuple(logits[3 * number : 3 * number + 3] for number in range(len(rows)))


def _few_of(model: Any, style: Positions, rows: Sequence[Sequence[int]], told: dict[str, Any] | None = None) -> Tensor:
    """Return the logits (3 R, V) of the first, a middle and the last id of each of R rows in one."""
    ids = row_of(model, [number for row in rows for number in row])
    kept = torch.zeros(ids.shape, dtype=torch.bool, device=model.device)
    start = 0
    for row in rows:
        kept[0, [start, start + len(row) // 2, start + len(row) - 1]] = True
        start += len(row)
    return logits_at(model, style, kept, {"input_ids": ids, "use_cache": False, **(told or {})})


def _window(model: Any) -> int | None:  # Any: a transformers model
    config = model.config.get_text_config(decoder=True)
    return min((window for name in WINDOWS if isinstance(window := getattr(config, name, None), int)), default=None)


def _reach(model: Any) -> int:  # Any: a transformers model
    """Return how many times OTHER stands between a branch and its beginning: so often that a window by columns, as GPT-Neo's, is left behind."""
    config = model.config.get_text_config(decoder=True)
    windows = [window for window in (_window(model), getattr(config, "window_size", None)) if isinstance(window, int) and window <= WIDEST_TRIED]
    positions = getattr(config, "max_position_embeddings", None) or len(COMMON + OTHER)
    return max(1, min(min(windows, default=1), positions - len(COMMON)) // len(OTHER))


def _stretched_from(model: Any) -> int | None:  # Any: a transformers model
    """Return the length up to which rows may be for positions not to stretch; None where they never do."""
    config = model.config.get_text_config(decoder=True)
    told = getattr(config, "rope_parameters", None) or {}
    kinds = [told, *(kind for kind in told.values() if isinstance(kind, dict))]
    limits = [kind.get("original_max_position_embeddings") or config.max_position_embeddings for kind in kinds if kind.get("rope_type") in STRETCHED]
    return min(limits, default=None)


def _close(one: Tensor, other: Tensor, dtype: torch.dtype) -> bool:
    return bool((one - other).abs().max() <= TOLERANCE.get(dtype, COARSE) * other.std())


def _all_close(some: Sequence[Tensor] | Tensor, others: Sequence[Tensor] | Tensor, dtype: torch.dtype) -> bool:
    return all(_close(one, other, dtype) for one, other in zip(some, others, strict=True))
