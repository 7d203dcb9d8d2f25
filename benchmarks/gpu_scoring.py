"""How fast are models of three and four billion parameters scored, and how near to what the device can do?

`python -m benchmarks.gpu_scoring --device cuda:0` builds the eight architectures of specs/mmlu-2000.yaml from their published sizes, with random
weights, and scores 2,000 questions by letter; `--device cpu`, the default where there is no GPU, builds two of them two layers deep and scores
24 questions. No checkpoint, no tokenizer and no network is needed. Random weights answer at random and read exactly as fast as trained ones;
the lengths of the prompts are drawn, log-normal as those of MMLU are, with a mean of about 116 tokens. Where a model keeps rows apart that are laid
end to end, on a GPU in 16 bits, both ways stand beside each other, `padded` and `packed`, each scored twice by turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measuring import conclude
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.work import Answer, EncodedQuestion

SEED = 20261129
CHOICES = 4
CHECKED = 64
"""Questions that are scored in float32 as well."""

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "A10": 125e12}
"""Dense bfloat16 operations per second by the makers' data sheets."""

AIM = 0.5
"""Share of the peak that is aimed at from three billion parameters on."""

WORD = "w{}"
PEER_BATCH = {"cuda": 64, "cpu": 8}


@dataclass(frozen=True, slots=True)
class Built:
    """An architecture by transformers' name for it, with the sizes of the published config.json; what is not named keeps its default."""

    name: str
    kind: str
    sizes: dict[str, Any]


MODELS = (
    Built("Qwen3-4B-Base", "qwen3", {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
          "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True}),
    Built("Phi-3.5-mini-instruct", "phi3", {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 32, "vocab_size": 32064, "tie_word_embeddings": False}),
    Built("Qwen2.5-3B", "qwen2", {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
          "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    Built("Qwen3-1.7B-Base", "qwen3", {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
          "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True}),
    Built("Qwen2.5-1.5B", "qwen2", {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
          "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    Built("SmolLM3-3B-Base", "smollm3", {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
          "num_key_value_heads": 4, "vocab_size": 128256, "tie_word_embeddings": True}),
    Built("Llama-3.2-3B", "llama", {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
          "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": True}),
    Built("Gemma-2-2B", "gemma2", {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "tie_word_embeddings": True}),
)  # fmt: skip

ON_CPU = ("Qwen3-1.7B-Base", "Gemma-2-2B")
LAYERS_ON_CPU = 2
QUESTIONS = {"cuda": 2000, "cpu": 24}
TURNS = {"cuda": 2, "cpu": 1}
BUDGET = {"cuda": 16384, "cpu": 4096}


@dataclass(frozen=True, slots=True)
class Run:
    """Where and how much: torch's name for the device, the dtype of the body, layers where they are fewer, questions, tokens per batch."""

    device: str
    dtype: str
    layers: int | None
    questions: int
    budget: int
    peer: bool

    @property
    def kind(self) -> str:
        """`cuda` or `cpu`."""
        return self.device.split(":")[0]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Log-probabilities (Q, C), the tokens that were computed, padding included, and in how many batches."""

    values: np.ndarray
    computed: int
    batches: int


def main() -> None:
    """Score with every model in turn, a line for each on standard error, and print the one line."""
    run, names = _arguments()
    from evalspec.scoring.arithmetic import settle_arithmetic
    from evalspec.scoring.worker import ENVIRONMENT

    os.environ.update(ENVIRONMENT)  # before the device is first used
    settle_arithmetic(int(os.environ.get("OMP_NUM_THREADS", "0")) or None)
    rate = _product_rate(run)
    models = {}
    for built in MODELS:
        if built.name in names:
            models[built.name] = _one_model(built, run, rate)
            print(f"{built.name}: {models[built.name]}", file=sys.stderr, flush=True)
    work = f"{run.questions} drawn prompts by letter, random weights, {run.dtype}, {run.layers or 'all'} layers, {run.budget} tokens per batch"
    figures = {
        "device": _device_name(run),
        "product_tflops": round(rate / 1e12, 3),
        "peer": "lm-evaluation-harness, HF backend" if run.peer else "not asked for, or not installed",
        "models": models,
        "aim": {"mfu": AIM, "from_parameters": 3_000_000_000},
        "agree": all(one["agree"] for one in models.values()),
    }
    conclude("gpu_scoring", work, figures)


def _arguments() -> tuple[Run, Sequence[str]]:
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_scoring", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu", help="torch's name (default: a GPU where there is one)")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="of the body (default: bfloat16 on a GPU, float32 on a processor)")
    parser.add_argument("--layers", type=int, help="fewer layers than the model has (default: all on a GPU, 2 on a processor)")
    parser.add_argument("--questions", type=int, help="how many prompts (default: 2000 on a GPU, 24 on a processor)")
    parser.add_argument("--budget", type=int, help="tokens per batch (default: 16384 on a GPU, 4096 on a processor)")
    parser.add_argument("--models", nargs="+", choices=[built.name for built in MODELS], help="some of the eight (default: all on a GPU, two else)")
    parser.add_argument("--no-peer", action="store_true", help="leave out lm-evaluation-harness, also where it is installed")
    given = parser.parse_args()
    kind = given.device.split(":")[0]
    run = Run(
        device=given.device,
        dtype=given.dtype or ("bfloat16" if kind == "cuda" else "float32"),
        layers=given.layers or (LAYERS_ON_CPU if kind == "cpu" else None),
        questions=given.questions or QUESTIONS[kind],
        budget=given.budget or BUDGET[kind],
        peer=not given.no_peer and importlib.util.find_spec("lm_eval") is not None,
    )
    return run, given.models or ([built.name for built in MODELS] if kind == "cuda" else ON_CPU)


def _one_model(built: Built, run: Run, rate: float) -> dict[str, Any]:
    """Return the figures of one architecture: first in float32 on some questions, then the same weights in the run's dtype on all."""
    import torch

    from evalspec.scoring.causal_lm import scorer_of

    model = _random_model(built, run)
    questions = _questions(model.config.vocab_size, run.questions)
    wide = _score(scorer_of(model, _no_vocabulary(), packing=False), questions[:CHECKED], BatchRule(token_budget=run.budget))
    model.to(getattr(torch, run.dtype))
    if run.dtype != "float32":
        model.set_output_embeddings(_plain_head(model))
    narrow = scorer_of(model, _no_vocabulary())
    tokens, body = sum(question.longest for question in questions), _body_parameters(model)
    rules = {"padded": BatchRule(token_budget=run.budget, packing=False)}
    if narrow.abilities.packing:
        rules["packed"] = BatchRule(token_budget=run.budget)
    for rule in rules.values():
        _score(narrow, questions[:CHECKED], rule)  # warms up
    turns = [
        (name, _timed(partial(_score, narrow, questions, rules[name]), run)) for name in (*rules, *reversed(rules))[: len(rules) * TURNS[run.kind]]
    ]
    found = {name: [timed for turn, timed in turns if turn == name] for name in rules}
    seconds = {name: statistics.mean(taken for taken, _ in timed) for name, timed in found.items()}
    scored = {name: timed[-1][1] for name, timed in found.items()}
    figures = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "layers": model.config.num_hidden_layers,
        "attention": narrow.attention,
        "rows_kept_apart_by": narrow.keeper if "packed" in rules else None,
        **{name: _figures(seconds[name], scored[name], (wide, tokens, body), run, rate) for name in rules},
        **(_between(seconds, scored) if "packed" in rules else {}),
        "peak_gib": _peak_gib(run),
        **(_beside(model, questions, scored["padded"].values, seconds["padded"], run) if run.peer else {}),
    }
    figures["agree"] = _agrees(figures, run)
    del model, narrow
    if run.kind == "cuda":
        torch.cuda.empty_cache()
    return figures


def _figures(seconds: float, scored: Scored, work: tuple[Scored, int, int], run: Run, rate: float) -> dict[str, Any]:
    """Return the figures of one way to lay rows; `work` is what float32 gave, the tokens of the prompts, and the body's numbers."""
    wide, tokens, body = work
    few = scored.values[: len(wide.values)]
    operations = 2.0 * body * tokens
    peak = next((peak for name, peak in PEAKS.items() if name in _device_name(run)), None) if run.dtype == "bfloat16" else None
    return {
        "ours_s": round(seconds, 3),
        "tokens_per_s": round(tokens / seconds),
        "questions_per_s": round(len(scored.values) / seconds, 1),
        "batches": scored.batches,
        "padding_waste": round(scored.computed / tokens - 1, 4),
        "of_product_rate": round(operations / seconds / rate, 3),
        "mfu": None if peak is None else round(operations / seconds / peak, 3),
        "largest_difference_from_float32": float(np.abs(few - wide.values).max()),
        "choices_that_differ_from_float32": int(np.sum(few.argmax(axis=1) != wide.values.argmax(axis=1))),
    }


def _between(seconds: dict[str, float], scored: dict[str, Scored]) -> dict[str, Any]:
    """Return how packed and padded rows compare."""
    one, other = scored["packed"].values, scored["padded"].values
    return {
        "packed_is_faster_by": round(seconds["padded"] / seconds["packed"], 3),
        "largest_difference_packed_from_padded": float(np.abs(one - other).max()),
        "choices_that_differ_packed_from_padded": int(np.sum(one.argmax(axis=1) != other.argmax(axis=1))),
    }


def _agrees(figures: dict[str, Any], run: Run) -> bool:
    """Log-probabilities of random weights lie near one another: in 16 bits they may move by hundredths, in float32 by sums in another order."""
    bound = 1e-3 if run.dtype == "float32" else 0.1
    ways = [figures[name] for name in ("padded", "packed") if name in figures]
    others = [figures.get(name, 0.0) for name in ("largest_difference_from_peer", "largest_difference_packed_from_padded")]
    return all(value <= bound for value in (*others, *(way["largest_difference_from_float32"] for way in ways)))


def _random_model(built: Built, run: Run) -> Any:
    """Build a model on the device, in float32, from its sizes; the same weights in every run."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(SEED)
    sizes = dict(built.sizes)
    if run.layers is not None:
        sizes["num_hidden_layers"] = min(run.layers, sizes["num_hidden_layers"])
    config = AutoConfig.for_model(built.kind, **sizes)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, name, 0)
    with torch.device(run.device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def _plain_head(model: Any) -> Any:
    """Return a head of torch's own kind over the model's weights in the run's dtype, as a loaded checkpoint has it."""
    import torch

    weight = model.get_output_embeddings().weight
    head = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device=weight.device, dtype=weight.dtype)
    head.weight = weight
    return head


def _no_vocabulary() -> Any:
    """Prompts are ids from the start: what a vocabulary is asked for never happens here."""
    from evalspec.scoring.tokens import Vocabulary

    def none(_texts: list[str]) -> list[list[int]]:
        raise AssertionError("no text is encoded in this benchmark")

    return Vocabulary("random", none, (), None, None)


def _questions(vocabulary: int, count: int) -> tuple[EncodedQuestion, ...]:
    """Draw prompts of log-normal length, 40 to 900 tokens, and four answers of one id each."""
    random = np.random.default_rng(SEED)
    lengths = np.clip(np.exp(random.normal(4.6, 0.52, count)), 40, 900).astype(int)
    answers = tuple(Answer(row=0, start=0, ids=(number,)) for number in range(10, 10 + CHOICES))
    questions = []
    for length in lengths.tolist():
        row = tuple(random.integers(100, vocabulary, length).tolist())
        questions.append(EncodedQuestion(rows=(row,), answers=tuple(Answer(0, length - 1, answer.ids) for answer in answers)))
    return tuple(questions)


def _score(scorer: Any, questions: Sequence[EncodedQuestion], rule: BatchRule) -> Scored:
    """Score questions batch by batch, as a worker does."""
    from evalspec.scoring.batching import plan_questions

    values = np.zeros((len(questions), CHOICES))
    computed, reading = 0, None
    plan = plan_questions(questions, scorer.abilities, rule)
    for batch in plan:
        if reading is None or reading.sharing != batch.sharing:
            reading = scorer.reading(batch.sharing)
        some = [questions[place] for place in batch.questions]
        values[list(batch.questions)] = scorer.logprobs(some, reading)
        computed += batch.sharing.computed([batch.sharing.shape(question) for question in some])
    return Scored(values, computed, len(plan))


def _timed(work: Callable[[], Any], run: Run) -> tuple[float, Any]:
    """Return seconds and result: by the wall on a GPU, which works while Python waits, else of this process."""
    import torch

    if run.kind == "cuda":
        torch.cuda.synchronize()
        started = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        return time.perf_counter() - started, result
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _beside(model: Any, questions: Sequence[EncodedQuestion], ours: np.ndarray, seconds: float, run: Run) -> dict[str, Any]:
    """Return what lm-evaluation-harness takes on the same model and ids, written as words of a vocabulary made for that."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    harness = HFLM(pretrained=model, tokenizer=_words(model.config.vocab_size), batch_size=PEER_BATCH[run.kind], device=run.device)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(_written(question.rows[0]), " " + _written(answer.ids)), idx=number)
        for question in questions
        for number, answer in enumerate(question.answers)
    ]
    taken, found = _timed(lambda: harness.loglikelihood(requests, disable_tqdm=True), run)
    theirs = np.array([value for value, _ in found]).reshape(len(questions), CHOICES)
    return {"peer_s": round(taken, 3), "ratio": round(taken / seconds, 2), "largest_difference_from_peer": float(np.abs(theirs - ours).max())}


def _words(vocabulary: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({WORD.format(number): number for number in range(vocabulary)}, unk_token=WORD.format(0)))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = WORD.format(0)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special, pad_token=special, unk_token=special)


def _written(ids: Sequence[int]) -> str:
    return " ".join(map(WORD.format, ids))


def _body_parameters(model: Any) -> int:
    """Return the numbers of the body's matrices, which every token is multiplied by; the head reads one position of each row."""
    import torch

    linear = (module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and "head" not in name)
    return sum(module.weight.numel() for module in linear)


def _product_rate(run: Run) -> float:
    """Return the operations per second of a large matrix product on the device, in the run's dtype, as measured now."""
    import torch

    size = 8192 if run.kind == "cuda" else 1536
    one, other = (torch.randn(size, size, device=run.device, dtype=getattr(torch, run.dtype)) for _ in range(2))
    seconds = [_timed(lambda: torch.matmul(one, other), run)[0] for _ in range(8)]
    return 2.0 * size**3 / statistics.median(seconds[2:])


def _device_name(run: Run) -> str:
    import torch

    if run.kind == "cuda":
        return str(torch.cuda.get_device_name(run.device))
    return f"processor, {torch.get_num_threads()} threads"


def _peak_gib(run: Run) -> float:
    import torch

    from benchmarks.measuring import peak_mib

    return round(torch.cuda.max_memory_allocated(run.device) / 2**30 if run.kind == "cuda" else peak_mib() / 1024, 2)


if __name__ == "__main__":
    main()
