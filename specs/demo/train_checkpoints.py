"""How were the demonstration checkpoints made, and how well do they answer the demonstration questions?

Run `python specs/demo/train_checkpoints.py` (about ten minutes of one core; `--only NAME` for one checkpoint). It trains
each `Recipe` on an endless seeded stream of questions that are not held out, saves it as bfloat16 safetensors with its
tokenizer, scores both benchmarks with it, and records seeds, versions, digests and accuracies in
`checkpoints/MANIFEST.json`. All seeds are fixed and one thread is used; other CPUs or library versions may still give
other weights, which is why the checkpoints themselves are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Literal

import tokenizers
import torch
import transformers
from answering import BOS, EOS, Batch, accuracies, as_batch, log_probabilities
from make_questions import BENCHMARKS, benchmark_questions
from subjects import LETTERS, Question, letter_prompt, option_prompt, training_questions
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

CHECKPOINTS = Path(__file__).resolve().parent / "checkpoints"
MANIFEST = CHECKPOINTS / "MANIFEST.json"
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")
VOCABULARY = 900
TOKENIZER_SEED = 11
TOKENIZER_QUESTIONS = 12_000
POSITIONS = 192
BATCH = 32
LETTER_SHARE = 0.7
WARM_UP_STEPS = 60


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that sets one checkpoint apart from another."""

    name: str
    architecture: Literal["llama", "gpt2"]
    width: int
    layers: int
    heads: int
    seed: int
    steps: int
    learning_rate: float
    begins_with_bos: bool = False


RECIPES = (
    Recipe("demo-small", "llama", 32, 1, 4, seed=101, steps=800, learning_rate=6e-3),
    Recipe("demo-mid", "llama", 64, 2, 4, seed=102, steps=2200, learning_rate=3e-3),
    Recipe("demo-mid-b", "llama", 64, 2, 4, seed=103, steps=2200, learning_rate=3e-3),
    Recipe("demo-large", "llama", 128, 3, 8, seed=104, steps=1000, learning_rate=2e-3),
    Recipe("demo-gpt2", "gpt2", 64, 2, 4, seed=105, steps=1500, learning_rate=3e-3),
    Recipe("demo-bos", "llama", 64, 2, 4, seed=106, steps=1500, learning_rate=3e-3, begins_with_bos=True),
)


def build_tokenizer(*, begins_with_bos: bool) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE tokenizer from training questions; the same one for all but its first token."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    questions = islice(training_questions(TOKENIZER_SEED), TOKENIZER_QUESTIONS)
    core.train_from_iterator((letter_prompt(question) + answer for question in questions for answer in answers(question)), trainer)
    if begins_with_bos:
        core.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", BOS)])
    pad, bos, eos = SPECIAL_TOKENS
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token=pad, bos_token=bos, eos_token=eos, model_max_length=POSITIONS)


def answers(question: Question) -> tuple[str, str]:
    """Give the right continuation of the letter prompt and that of the option prompt."""
    return f" {LETTERS[question.answer]}", f" {question.choices[question.answer]}"


def build_model(recipe: Recipe, vocabulary: int) -> LlamaForCausalLM | GPT2LMHeadModel:
    """Make the untrained model of a recipe, from its seed."""
    torch.manual_seed(recipe.seed)
    special = {"bos_token_id": BOS, "eos_token_id": EOS, "tie_word_embeddings": True}
    if recipe.architecture == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_embd=recipe.width,
                n_layer=recipe.layers,
                n_head=recipe.heads,
                n_positions=POSITIONS,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                **special,
            )
        )
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=recipe.width,
            intermediate_size=3 * recipe.width,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            max_position_embeddings=POSITIONS,
            **special,
        )
    )


def batches(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Iterator[Batch]:
    """Yield training batches, each all letter prompts or all option prompts."""
    questions, random = training_questions(recipe.seed), Random(recipe.seed)
    while True:
        drawn = list(islice(questions, BATCH))
        if random.random() < LETTER_SHARE:
            yield as_batch(tokenizer, [(letter_prompt(question), answers(question)[0]) for question in drawn])
        else:
            yield as_batch(tokenizer, [(option_prompt(question), answers(question)[1]) for question in drawn])


def train(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM | GPT2LMHeadModel:
    """Train the model of a recipe on the answers to its stream of questions."""
    model = build_model(recipe, len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_then_cosine(step, recipe.steps))
    model.train()
    for step, batch in enumerate(islice(batches(recipe, tokenizer), recipe.steps), start=1):
        loss = torch.nn.functional.nll_loss(log_probabilities(model, batch), batch.targets)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"{recipe.name}: step {step} of {recipe.steps}, loss {loss.item():.3f}", flush=True)
    return model.eval()


def warm_up_then_cosine(step: int, steps: int) -> float:
    """Give the factor on the learning rate: up in a line, then down along a cosine."""
    if step < WARM_UP_STEPS:
        return (step + 1) / WARM_UP_STEPS
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP_STEPS) / (steps - WARM_UP_STEPS)))


def save(folder: Path, model: LlamaForCausalLM | GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write a checkpoint as bfloat16, with a tokenizer that transformers 4 and 5 both load."""
    if folder.exists():
        shutil.rmtree(folder)
    model.to(torch.bfloat16).save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"
    content = json.loads(settings.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def record(recipe: Recipe, folder: Path, cpu_seconds: float) -> dict[str, Any]:
    """Describe a finished checkpoint: how it was made, its files and how well it answers."""
    return {
        "recipe": asdict(recipe),
        "training_cpu_seconds": round(cpu_seconds, 1),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
        },
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())},
        "accuracy": accuracies(folder),
    }


def assert_disjoint(recipe: Recipe) -> None:
    """Refuse to train when the stream of questions holds one of a benchmark."""
    kept = {question.text for name in BENCHMARKS for question in benchmark_questions(name)}
    for question in islice(training_questions(recipe.seed), recipe.steps * BATCH):
        if question.text in kept:
            raise ValueError(f'"{question.text}" is in a benchmark and in the training of "{recipe.name}"')


def make(recipe: Recipe) -> dict[str, Any]:
    """Train, save, score and describe one checkpoint."""
    assert_disjoint(recipe)
    tokenizer = build_tokenizer(begins_with_bos=recipe.begins_with_bos)
    started = time.process_time()
    model = train(recipe, tokenizer)
    cpu_seconds = time.process_time() - started
    save(CHECKPOINTS / recipe.name, model, tokenizer)
    return record(recipe, CHECKPOINTS / recipe.name, cpu_seconds)


def print_table(entries: dict[str, Any]) -> None:
    """Print letter accuracy per subject, and both methods over all questions."""
    for name in BENCHMARKS:
        print(f"\n{name:<16}" + "".join(f"{model:>12}" for model in entries))
        scores = [entry["accuracy"][name] for entry in entries.values()]
        for subject in scores[0]["subjects"]:
            print(f"{subject:<16}" + "".join(f"{score['subjects'][subject]['letters']:>12.3f}" for score in scores))
        for method in ("letters", "options"):
            print(f"{'all, ' + method:<16}" + "".join(f"{score[method]:>12.3f}" for score in scores))


def main() -> None:
    """Make the checkpoints asked for and bring the manifest up to date."""
    parser = argparse.ArgumentParser(description="Train the demonstration checkpoints.")
    parser.add_argument("--only", choices=[recipe.name for recipe in RECIPES], help="make this checkpoint alone")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for recipe in RECIPES:
        if only in (None, recipe.name):
            add_to_manifest(recipe.name, make(recipe))
    print_table(read_manifest())


def read_manifest() -> dict[str, Any]:
    """Give what is recorded so far."""
    entries: dict[str, Any] = json.loads(MANIFEST.read_text(encoding="utf-8")) if MANIFEST.exists() else {}
    return entries


def add_to_manifest(name: str, entry: dict[str, Any]) -> None:
    """Put one checkpoint into the manifest, keep the others, and write all in the order of the recipes."""
    entries = read_manifest() | {name: entry}
    ordered = {recipe.name: entries[recipe.name] for recipe in RECIPES if recipe.name in entries}
    MANIFEST.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
