"""What log-probabilities does a causal language model give to answers?  The only module that computes with torch and transformers.

Rows are padded on the right and no attention mask is passed: causality makes padding harmless, and positions are right by default.
The model's own forward pass does head, scale and soft-cap, at the few positions that are needed; a linear head computes in float32.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tokenizers
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from evalspec.artifacts.work import EncodedQuestion
from evalspec.errors import ScoringError
from evalspec.scoring.arithmetic import Float32Head, describe, products
from evalspec.scoring.checkpoint import context_length, read_config
from evalspec.scoring.tokens import Vocabulary, learn_prefix

OLDEST_TRANSFORMERS = (5, 3)


@dataclass(frozen=True, slots=True)
class CausalLM:
    """A loaded model with its vocabulary; `head` and `dtype` say in which arithmetic it computes."""

    vocabulary: Vocabulary
    model: Any  # a transformers model: the library has no usable static types
    head: str
    dtype: str
    positions: Literal["per_row", "shared", "all"]

    def logprobs(self, batch: Sequence[EncodedQuestion]) -> list[tuple[float, ...]]:
        """Return, per question, the sum of each answer's token log-probabilities in nats; not finite where the model's are not."""
        rows = [row for question in batch for row in question.rows]
        targets = _targets(batch)
        width = int(targets.step.max()) + 1
        last = torch.tensor([len(row) - 1 for row in rows])[:, None]
        kept = torch.minimum(torch.from_numpy(targets.start)[:, None] + torch.arange(width), last)
        with torch.inference_mode(), products(self.model, self.model.dtype):
            logits = self._logits(_padded(rows), kept)
            normaliser = torch.logsumexp(logits, dim=-1)
            row, step, ids = (torch.from_numpy(index).to(logits.device) for index in (targets.row, targets.step, targets.ids))
            values = (logits[row, step, ids] - normaliser[row, step]).double().cpu().numpy()
        sums = np.add.reduceat(values, targets.first).tolist()
        ends = np.cumsum([len(question.answers) for question in batch]).tolist()
        return [tuple(sums[end - len(question.answers) : end]) for question, end in zip(batch, ends, strict=True)]

    def _logits(self, ids: Tensor, kept: Tensor) -> Tensor:
        """Return float32 logits (rows, kept, vocabulary) at the positions `kept` (rows, kept)."""
        device = self.model.device
        ids, kept = ids.to(device), kept.to(device)
        if self.positions == "per_row":
            of_rows: Tensor = self.model(input_ids=ids, use_cache=False, logits_to_keep=kept).logits
            return of_rows.float()
        if self.positions == "shared":
            distinct, kept = torch.unique(kept, return_inverse=True)
            logits: Tensor = self.model(input_ids=ids, use_cache=False, logits_to_keep=distinct).logits
        else:
            logits = self.model(input_ids=ids, use_cache=False).logits
        return logits[torch.arange(len(kept), device=device)[:, None], kept].float()


@dataclass(frozen=True, slots=True)
class _Targets:
    """Every predicted id of a batch: its row, its step after the row's `start`, the id; `first` marks where each answer begins."""

    row: NDArray[np.int64]
    step: NDArray[np.int64]
    ids: NDArray[np.int64]
    first: NDArray[np.int64]
    start: NDArray[np.int64]


def load(folder: Path, *, model: str, precision: Literal["as_shipped", "float32"], device: str = "cpu") -> CausalLM:
    """Load a checkpoint for scoring; raises ScoringError when it cannot be loaded whole and without foreign code."""
    _refuse_old_transformers()
    config = read_config(folder)
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        loaded, report = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32 if precision == "float32" else "auto",
            output_loading_info=True,
        )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise ScoringError(
            f"model '{model}' cannot be loaded from '{folder.name}': {(str(error).strip() or type(error).__name__).splitlines()[0]}"
        ) from error
    wrong = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if wrong:
        raise ScoringError(
            f"model '{model}': the checkpoint '{folder.name}' lacks the weight '{wrong[0]}'"
            + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""),
            hint="a missing weight would be filled with random numbers; take the complete checkpoint",
        )
    loaded.eval().to(device)
    head = _use_float32_head(loaded)
    return CausalLM(_vocabulary(tokenizer, model, config), loaded, head, describe(loaded, loaded.dtype), _position_style(loaded))


def _refuse_old_transformers() -> None:
    """Before 5.3 a nested configuration could run code of its own (CVE-2026-5241), and 4.x reads the rope settings of 5.x checkpoints wrongly."""
    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < OLDEST_TRANSFORMERS:
        raise ScoringError(f"transformers {transformers.__version__} is too old; 5.3 or newer is needed", hint="install the extra `score` again")


def versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {"torch": torch.__version__, "transformers": transformers.__version__, "tokenizers": tokenizers.__version__}


def _use_float32_head(model: Any) -> str:  # Any: a transformers model
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        return "the model's own"
    if head.weight.dtype == torch.float32:
        return "the model's own, float32"
    model.set_output_embeddings(Float32Head(head))
    return "float32 copy"


def _position_style(model: Any) -> Literal["per_row", "shared", "all"]:  # Any: a transformers model
    """Find out how the model can be asked for few positions: one list per row, one list for all rows, or not at all."""
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        return "all"
    two_ids = torch.zeros((1, 2), dtype=torch.long, device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=two_ids, use_cache=False, logits_to_keep=torch.ones((1, 1), dtype=torch.long, device=model.device)).logits
    return "per_row" if logits.ndim == 3 else "shared"


def _vocabulary(tokenizer: Any, model: str, config: dict[str, Any]) -> Vocabulary:  # Any: a transformers tokenizer; the schema of each architecture
    def tokenize(texts: list[str]) -> list[list[int]]:
        ids = tokenizer(texts, add_special_tokens=False, verbose=False, return_attention_mask=False, return_token_type_ids=False)["input_ids"]
        return [list(row) for row in ids]

    try:
        prefix = learn_prefix(tokenize(["x"])[0], tokenizer("x")["input_ids"])
    except ValueError as error:
        raise ScoringError(
            f"model '{model}': {error}", hint="the tokenizer changes a text when special tokens are added; it cannot be scored"
        ) from error
    return Vocabulary(model, tokenize, prefix, context_length(config))


def _targets(batch: Sequence[EncodedQuestion]) -> _Targets:
    row: list[int] = []
    step: list[int] = []
    ids: list[int] = []
    first: list[int] = []
    start: list[int] = []
    rows_before = 0
    for question in batch:
        start.extend([0] * len(question.rows))
        for answer in question.answers:
            first.append(len(ids))
            start[rows_before + answer.row] = answer.start
            row.extend([rows_before + answer.row] * len(answer.ids))
            step.extend(range(len(answer.ids)))
            ids.extend(answer.ids)
        rows_before += len(question.rows)
    return _Targets(*(np.asarray(column, dtype=np.int64) for column in (row, step, ids, first, start)))


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    padded = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return torch.from_numpy(padded)
