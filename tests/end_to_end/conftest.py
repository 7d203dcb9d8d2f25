"""The command line as its users meet it, tiny real checkpoints, a key, and one scored run that many tests look at."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalspec.cli import main

WORDS = ("red", "green", "blue", "stone", "river", "seven", "cloud", "iron", "north", "quick")
TOKEN_BUDGET = 160  # small, so that a run has many batches
CANARY = "kanarie"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:  # Any: whatever JSON the command printed
        return json.loads(self.out)


Command = Callable[..., Spoken]


def spawn(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Spoken:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "evalspec", *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Spoken(done.returncode, done.stdout, done.stderr)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment with `more` in it, without a key's passphrase and without colours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EVALSPEC_")} | {"OMP_NUM_THREADS": "1"} | dict(more or {})


def say(*arguments: str | Path, cwd: Path) -> Spoken:
    """Run a command in this process: the same `main`, without a new interpreter for each of many small questions."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    return Spoken(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def evalspec() -> Command:
    """The command in this process."""
    return say


@pytest.fixture(scope="session")
def process() -> Command:
    """The command as a process of its own."""
    return spawn


def make_checkpoint(folder: Path, *, seed: int, damaged: bool = False) -> Path:
    """Write a random llama of some thousand parameters with a byte-level tokenizer; `damaged` puts NaN into its weights."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<pad>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 5 + ["A. B. C. D.\nAnswer: A B C D"] * 5, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>"}))
    width, inner, layers, vocabulary = 32, 64, 2, tokenizer.get_vocab_size()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
        "tie_word_embeddings": True,
        "dtype": "float32",
        "bos_token_id": None,
        "eos_token_id": None,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (vocabulary, width), "model.norm.weight": (width,)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{name}_proj.weight": (width, width) for name in "qkvo"}
        shapes |= {f"{at}.mlp.{name}_proj.weight": (inner, width) for name in ("gate", "up")} | {f"{at}.mlp.down_proj.weight": (width, inner)}
        shapes |= {f"{at}.input_layernorm.weight": (width,), f"{at}.post_attention_layernorm.weight": (width,)}
    rng = np.random.default_rng(seed)
    weights = {name: (np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)).astype(np.float32) for name, shape in shapes.items()}
    if damaged:
        weights["model.norm.weight"][3] = np.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def question_lines(count: int, *, mark: str, choices: int = 4) -> Iterable[dict[str, Any]]:
    """Yield questions of varied length; `mark` stands in every id, stem, choice and answer."""
    for number in range(count):
        stem = " ".join(WORDS[(number * 7 + step) % 10] for step in range(2 + number % 9))
        texts = [f"{WORDS[(number + 3 * choice) % 10]} {mark}wahl{number}x{choice}" for choice in range(choices)]
        yield {
            "id": f"{mark}nummer{number:03}",
            "subject": f"subject {number % 2}",
            "question": f"{mark}frage{number} {stem}?",
            "choices": texts,
            "answer": texts[number % choices],  # by text, so that the key itself can be looked for
        }


def write_questions(path: Path, count: int, *, mark: str, choices: int = 4) -> Path:
    """Write `question_lines` as JSONL."""
    path.write_text("".join(json.dumps(line) + "\n" for line in question_lines(count, mark=mark, choices=choices)))
    return path


SCORED = """apiVersion: evalspec/v1
title: What do tiny random models know?
owner: {{organisation: Example Lab}}
purpose: {{decision: None}}
seed: 7
models:
{models}
benchmarks:
  - {{id: open, source: {{file: open.jsonl}}, groups: {{subject: strata}}, scoring: {{method: letter}}, disclosure: full}}
  - {{id: named, source: {{file: named.jsonl}}, scoring: {{method: option}}, disclosure: ids}}
  - {{id: secret, source: {{file: secret.jsonl}}, sample: {{method: simple, size: 30}}, scoring: {{method: option}}, disclosure: none}}
analyses:
  - {{id: accuracy, kind: intervals, method: wilson, level: 0.95}}
  - {{id: pairs, kind: mcnemar, family: all_pairs, correction: holm, alpha: 0.05}}
thresholds:
  checks:
    - {{id: not-perfect, analysis: accuracy, metric: accuracy, model: tiny-a, at_most: 0.99}}
"""


def write_study(folder: Path, *models: str) -> Path:
    """Write the study that is scored, over some of the checkpoints beside it."""
    lines = "\n".join(f"  - {{id: {model}, source: {{path: checkpoints/{model}}}}}" for model in models)
    study = folder / "study.yaml"
    study.write_text(SCORED.format(models=lines))
    return study


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with checkpoints, questions, a study of two models, and a key with its trust file."""
    folder = tmp_path_factory.mktemp("workplace")
    for seed, name in enumerate(("tiny-a", "tiny-b", "tiny-c"), start=1):
        make_checkpoint(folder / "checkpoints" / name, seed=seed)
    make_checkpoint(folder / "checkpoints" / "damaged", seed=9, damaged=True)
    write_questions(folder / "open.jsonl", 90, mark="offen")
    write_questions(folder / "named.jsonl", 12, mark=f"{CANARY}teil", choices=3)
    write_questions(folder / "secret.jsonl", 40, mark=f"{CANARY}ganz", choices=3)
    write_study(folder, "tiny-a", "tiny-b")
    made = say("keygen", "--organisation", "Example Lab", "--out", "signer.p12", "--trust", "team.yaml", "--no-passphrase", cwd=folder)
    assert made.code == 0, made.err
    return folder


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run, where it was made, and what the command said."""

    workplace: Path
    folder: Path
    cache: Path
    spoken: Spoken

    @property
    def trust(self) -> Path:
        return self.workplace / "team.yaml"

    @property
    def key(self) -> Path:
        return self.workplace / "signer.p12"


@pytest.fixture(scope="session")
def scored(workplace: Path) -> Run:
    """A run of two checkpoints on three benchmarks, one of each disclosure, never interrupted."""
    budget = ("--token-budget", str(TOKEN_BUDGET))
    spoken = spawn("run", "study.yaml", "--key", "signer.p12", "--cache", "whole", *budget, cwd=workplace)
    assert spoken.code == 0, spoken.err
    return Run(workplace, workplace / "reports" / "study", workplace / "whole", spoken)


@pytest.fixture
def copied(scored: Run, tmp_path: Path) -> Path:
    """A copy of the scored run's directory, to be spoilt."""
    return Path(shutil.copytree(scored.folder, tmp_path / "copy"))


RECORDED = """apiVersion: evalspec/v1
title: Which of two recorded systems is better?
seed: 1
models:
  - {{id: good, source: {{responses: recorded.csv}}}}
  - {{id: poor, source: {{responses: recorded.csv}}}}
benchmarks:
  - {{id: small, source: {{file: questions.jsonl}}, scoring: {{method: letter}}}}
analyses:
  - {{id: accuracy, kind: intervals, method: wilson, level: 0.95}}
thresholds:
  inconclusive: {inconclusive}
  checks:
    - {{id: floor, analysis: accuracy, metric: accuracy, model: good, at_least: {floor}}}
"""


def write_recorded(folder: Path, *, floor: float = 0.5, inconclusive: str = "block") -> Path:
    """Write a study of recorded answers: of 40 questions, `good` answers 36 and `poor` 20."""
    folder.mkdir(parents=True, exist_ok=True)
    write_questions(folder / "questions.jsonl", 40, mark="klein")
    right = {"good": 36, "poor": 20}
    with (folder / "recorded.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["question_id", "model", "score"])
        table.writerows([f"kleinnummer{number:03}", model, int(number < count)] for model, count in right.items() for number in range(40))
    study = folder / "study.yaml"
    study.write_text(RECORDED.format(floor=floor, inconclusive=inconclusive))
    return study


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, workplace: Path) -> Run:
    """A run of recorded answers, without a PDF, signed with the key of the workplace."""
    folder = tmp_path_factory.mktemp("recorded")
    for name in ("signer.p12", "team.yaml"):
        shutil.copy2(workplace / name, folder / name)
    write_recorded(folder)
    spoken = spawn("run", "study.yaml", "--key", "signer.p12", "--no-pdf", cwd=folder)
    assert spoken.code == 0, spoken.err
    return Run(folder, folder / "reports" / "study", folder / ".evalspec", spoken)


@pytest.fixture(scope="session")
def make() -> Any:  # Any: a bag of the builders above, for tests that cannot import this file
    """The builders above."""
    from types import SimpleNamespace

    return SimpleNamespace(study=write_study, recorded=write_recorded, questions=write_questions, environment=environment, budget=TOKEN_BUDGET)


def journal_batches(cache: Path) -> dict[str, list[int]]:
    """Return the batch indices in each journal file, in the order in which they were written."""
    return {path.stem: list(_indices(path)) for path in sorted((cache / "journal").glob("*.jsonl"))}


def _indices(path: Path) -> Iterable[int]:
    for line in path.read_bytes().split(b"\n")[:-1]:
        body = json.loads(line)["body"]
        if body["kind"] == "batch":
            yield body["index"]


@pytest.fixture(scope="session")
def batches() -> Callable[[Path], dict[str, list[int]]]:
    """`journal_batches`."""
    return journal_batches


@pytest.fixture(scope="session")
def canaries() -> Sequence[str]:
    """Texts that may stand in no file and on no line: the first of the benchmark of which nothing is disclosed, then the other's."""
    return (f"{CANARY}ganz", f"{CANARY}teil")
