"""How does scoring compare with lm-evaluation-harness?  The same model object, the same prompts, float32, one thread, interleaved."""

from __future__ import annotations

import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import ROOT, conclude, peak_mib, seconds, shared_data
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.work import BenchmarkWork, EncodedQuestion
from evalspec.scoring.sharing import SEPARATE, Sharing

MODELS = Path(os.environ.get("EVALSPEC_MODELS", ROOT / ".cache" / "public-models"))
"""Where `specs/public/fetch_models.py` puts the public models."""

TURNS = 3
PEER_BATCH = 8


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared and what is asked of it."""

    name: str
    method: str
    questions: int
    ratio_bars: dict[str, float]
    tolerance: float
    shots: int = 0
    models: tuple[str, ...] = field(default=("smollm2-135m-instruct", "gemma-3-270m"))


def compare(comparison: Comparison) -> None:
    """Score with both on every model that is there, and print one line."""
    folders = [MODELS / model for model in comparison.models if (MODELS / model / "config.json").is_file()]
    if not folders:
        sys.exit(f"needs a public model in {MODELS}: run specs/public/fetch_models.py, or set EVALSPEC_MODELS")
    results = {folder.name: _on_one_model(comparison, folder) for folder in folders}
    first = results[folders[0].name]
    figures = {
        **first,
        "models": {name: result for name, result in results.items() if name != folders[0].name},
        "ratio_bars": comparison.ratio_bars,
        "peer": f"lm-evaluation-harness {_peer_version()}, HF backend, batch size {PEER_BATCH}",
        "agree": all(result["agree"] for result in results.values()),
    }
    conclude(comparison.name, f"{comparison.questions} MMLU questions by {comparison.method}, {comparison.shots} shots, float32, one thread", figures)


def _on_one_model(comparison: Comparison, folder: Path) -> dict[str, Any]:
    from evalspec.scoring.arithmetic import settle_arithmetic
    from evalspec.scoring.causal_lm import load
    from evalspec.scoring.tokens import encode_work

    settle_arithmetic(1)
    scorer = load(folder, model=folder.name, precision="float32")
    work = mmlu_work(comparison.method, comparison.questions, comparison.shots)
    loaded_mib = peak_mib()
    ours = _ours(scorer, encode_work(work, scorer.vocabulary).questions)
    our_values = ours()
    our_mib = peak_mib()
    theirs = _theirs(scorer.model, folder, work)
    their_values = theirs()
    alternatives: dict[str, Callable[[], object]] = {"ours": ours, "peer": theirs}
    if comparison.shots:
        alternatives["without_reuse"] = _ours(scorer, encode_work(work, scorer.vocabulary).questions, reuse=False)
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for turn in range(TURNS):
        for name in sorted(alternatives, reverse=bool(turn % 2)):
            times[name].append(seconds(alternatives[name]))
    median = {name: statistics.median(values) for name, values in times.items()}
    furthest = float(np.max(np.abs(our_values - their_values)))
    differ = int(np.sum(our_values.argmax(axis=1) != their_values.argmax(axis=1)))
    questions = encode_work(work, scorer.vocabulary).questions
    floor = _gemm_floor(scorer, questions)
    our_error, their_error = _errors(scorer.model, questions, (our_values, their_values), comparison.tolerance)
    return {
        "ours_s": round(median["ours"], 2),
        "peer_s": round(median["peer"], 2),
        "ratio": round(median["peer"] / median["ours"], 2),
        **({"ratio_without_reuse": round(median["without_reuse"] / median["ours"], 2)} if comparison.shots else {}),
        "limit_s": round(floor, 2),
        "of_limit": round(floor / median["ours"], 2),
        "limit": "the body's matrix products on the real tokens, at the rate measured now",
        "largest_logprob_difference": furthest,
        "float64_decides": {"answers": int(np.sum(np.abs(our_values - their_values) > comparison.tolerance)), "ours": our_error, "peer": their_error},
        "choices_that_differ": differ,
        "peak_mib": our_mib,
        "peak_after_loading_mib": loaded_mib,
        "peer_peak_mib": peak_mib(),
        "agree": our_error <= comparison.tolerance and differ == 0,
    }


def mmlu_work(method: str, count: int, shots: int) -> BenchmarkWork:
    """Return real MMLU questions, spread over the subjects, as models meet them; `shots` solved ones come first."""
    from evalspec.artifacts.prompts import prompt_template, render_prompt
    from evalspec.artifacts.questions import LETTERS, Question
    from evalspec.artifacts.study import LetterScoring, OptionScoring
    from evalspec.artifacts.work import AskedQuestion

    lines = shared_data("mmlu_500_subject_balanced.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    chosen = [rows[place * len(rows) // count] for place in range(count)]
    scoring = LetterScoring(method="letter") if method == "letter" else OptionScoring(method="option")
    template = prompt_template(scoring)

    def asked(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        question = Question(row["id"], row["question"], tuple(row["choices"]), LETTERS.index(row["answer"]), row["subject"])
        return render_prompt(template, question), tuple(LETTERS[: len(question.choices)]) if method == "letter" else question.choices

    shown = [row for row in rows if row not in chosen][: shots * 7 : 7]
    before = ""
    for row in shown:
        prompt, answers = asked(row)
        before += f"{prompt} {answers[LETTERS.index(row['answer'])]}\n\n"
    questions = []
    for number, row in enumerate(chosen):
        prompt, answers = asked(row)
        questions.append(AskedQuestion(name=row["id"], sha256=f"{number:064x}", prompt=before + prompt, answers=answers))
    return BenchmarkWork(benchmark="mmlu", scoring=scoring, prompt=template, questions=tuple(questions))


def _ours(scorer: Any, questions: Sequence[EncodedQuestion], *, reuse: bool = True) -> Callable[[], NDArray[np.float64]]:
    from evalspec.scoring.batching import plan_questions

    rule = BatchRule() if reuse else BatchRule(shortest_prefix=1_000_000)

    def score() -> NDArray[np.float64]:
        values = np.zeros((len(questions), 4))
        reading = None
        for batch in plan_questions(questions, scorer.abilities, rule):
            if reading is None or reading.sharing != batch.sharing:
                reading = scorer.reading(batch.sharing)
            values[list(batch.questions)] = scorer.logprobs([questions[place] for place in batch.questions], reading)
        return values

    return score


def _theirs(model: Any, folder: Path, work: BenchmarkWork) -> Callable[[], NDArray[np.float64]]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoTokenizer

    logging.disable(logging.WARNING)
    harness = HFLM(pretrained=model, tokenizer=AutoTokenizer.from_pretrained(folder), batch_size=PEER_BATCH, device="cpu")
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(question.prompt, f" {answer}"), idx=number)
        for question in work.questions
        for number, answer in enumerate(question.answers)
    ]

    def score() -> NDArray[np.float64]:
        values = harness.loglikelihood(requests, disable_tqdm=True)
        return np.array([value for value, _ in values]).reshape(len(work.questions), -1)

    return score


def _errors(
    model: Any, questions: Sequence[EncodedQuestion], values: tuple[NDArray[np.float64], NDArray[np.float64]], tolerance: float
) -> tuple[float, float]:
    """Return the largest distances of both from the model in float64, in nats, on answers where they are further apart than `tolerance`."""
    import torch

    apart = np.argwhere(np.abs(values[0] - values[1]) > tolerance)
    if not len(apart):
        return 0.0, 0.0
    model.double()
    distances = []
    for number, place in apart:
        answer = questions[number].answers[place]
        with torch.inference_mode():
            logits = torch.log_softmax(model(input_ids=torch.tensor([questions[number].rows[answer.row]])).logits[0].double(), dim=-1)
        exact = sum(float(logits[answer.start + step, token]) for step, token in enumerate(answer.ids))
        distances.append([abs(of[number, place] - exact) for of in values])
    ours, theirs = np.max(distances, axis=0).tolist()
    return ours, theirs


def _gemm_floor(scorer: Any, questions: Sequence[EncodedQuestion]) -> float:
    """Return the CPU seconds that the matrix products of the body alone take, at the rate this core reaches now on products of that shape."""
    import torch

    sharing = SEPARATE if all(len(one.rows) == 1 for one in questions) else Sharing((), branches=True)
    tokens = sum(sharing.shape(one).tokens for one in questions)
    linear = [module.weight for name, module in scorer.model.named_modules() if isinstance(module, torch.nn.Linear) and "head" not in name]
    work = 2.0 * tokens * sum(weight.numel() for weight in linear)
    widest = max(linear, key=lambda weight: weight.numel())
    batch = torch.randn(2048, widest.shape[1])
    rates = []
    for _ in range(8):
        started = time.process_time()
        with torch.inference_mode():
            torch.nn.functional.linear(batch, widest)
        rates.append(2.0 * batch.shape[0] * widest.numel() / (time.process_time() - started))
    return work / statistics.median(rates)


def _peer_version() -> str:
    from importlib.metadata import version

    return version("lm-eval")
