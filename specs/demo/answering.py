"""How does a demonstration checkpoint answer a question, and how often is it right?

A prompt and its continuation are encoded together. Rows are padded on the right and no mask is passed: a causal model
never looks at what follows. Scores are summed log-probabilities, computed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from make_questions import BENCHMARKS, benchmark_questions
from subjects import LETTERS, letter_prompt, option_prompt
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

PAD, BOS, EOS = range(3)


@dataclass(frozen=True, slots=True)
class Batch:
    """Right-padded token ids, and where the answer tokens are predicted: at (row, column) comes `target`."""

    ids: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    targets: torch.Tensor


def as_batch(tokenizer: PreTrainedTokenizerFast, pairs: list[tuple[str, str]]) -> Batch:
    """Encode prompts with their continuations, each ended by the end-of-text token."""
    starts = [len(ids) for ids in tokenizer([prompt for prompt, _ in pairs])["input_ids"]]
    whole = [[*ids, EOS] for ids in tokenizer([prompt + continuation for prompt, continuation in pairs])["input_ids"]]
    longest = max(map(len, whole))
    places = [(row, column) for row, start in enumerate(starts) for column in range(start - 1, len(whole[row]) - 1)]
    return Batch(
        ids=torch.tensor([ids + [PAD] * (longest - len(ids)) for ids in whole]),
        rows=torch.tensor([row for row, _ in places]),
        columns=torch.tensor([column for _, column in places]),
        targets=torch.tensor([whole[row][column + 1] for row, column in places]),
    )


def log_probabilities(model: Any, batch: Batch) -> torch.Tensor:
    """Give the log-probabilities over the vocabulary at the places of the batch alone."""
    hidden = model.base_model(batch.ids, use_cache=False).last_hidden_state[batch.rows, batch.columns]
    return torch.log_softmax(model.lm_head(hidden).float(), dim=-1)


@torch.inference_mode()
def accuracies(folder: Path) -> dict[str, Any]:
    """Score a saved checkpoint, computed in float32, on every benchmark and subject, by letter and by option text."""
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    scores: dict[str, Any] = {}
    for name in BENCHMARKS:
        right: dict[str, list[tuple[bool, bool]]] = {}
        for question in benchmark_questions(name):
            letters = [f" {letter}" for letter in LETTERS[: len(question.choices)]]
            options = [f" {choice}" for choice in question.choices]
            outcome = (
                best(model, tokenizer, letter_prompt(question), letters) == question.answer,
                best(model, tokenizer, option_prompt(question), options) == question.answer,
            )
            right.setdefault(question.subject, []).append(outcome)
        everything = [outcome for outcomes in right.values() for outcome in outcomes]
        scores[name] = summary(everything) | {"subjects": {subject: summary(rows) for subject, rows in right.items()}}
    return scores


def best(model: Any, tokenizer: PreTrainedTokenizerFast, prompt: str, continuations: list[str]) -> int:
    """Give the index of the continuation with the largest summed log-probability, the end of text left out."""
    batch = as_batch(tokenizer, [(prompt, continuation) for continuation in continuations])
    gains = log_probabilities(model, batch)[torch.arange(len(batch.targets)), batch.targets]
    sums = torch.zeros(len(continuations)).index_add_(0, batch.rows, gains * (batch.targets != EOS))
    return int(sums.argmax())


def summary(outcomes: list[tuple[bool, bool]]) -> dict[str, Any]:
    """Count the questions and give the share right by letter and by option."""
    count = len(outcomes)
    letters, options = (sum(column) / count for column in zip(*outcomes, strict=True))
    return {"questions": count, "letters": round(letters, 4), "options": round(options, 4)}
