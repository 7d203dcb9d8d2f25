"""Real small checkpoints and studies for the scoring tests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalspec.artifacts.prompts import prompt_template
from evalspec.artifacts.protocol import (
    BatchRule,
    CheckpointIdentity,
    DrawnQuestion,
    FileDigest,
    Protocol,
    ProtocolBenchmark,
    ProtocolModel,
    RecordIdentity,
)
from evalspec.artifacts.questions import Question
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.schedule import Device
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import WorkerEvent, WorkOrder
from evalspec.scoring.dispatch import Dispatch
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.model_run import Place
from evalspec.scoring.queue import Estimates, Queue
from evalspec.scoring.worker import Worker

WORDS = ("red", "green", "blue", "stone", "river", "seven", "cloud", "iron", "north", "quick")


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = Path(os.environ.get("EVALSPEC_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("the shared response matrices are not beside the repository")
    return folder


def make_questions(count: int, *, choices: int = 4) -> tuple[Question, ...]:
    """Return questions of varied length whose choices have one to three words."""
    made = []
    for number in range(count):
        stem = f"Question {number}: " + " ".join(WORDS[(number * 7 + step) % 10] for step in range(3 + number % 17)) + "?"
        texts = tuple(" ".join(WORDS[(number + 3 * choice + step) % 10] for step in range(1 + (number + choice) % 3)) for choice in range(choices))
        made.append(Question(f"q{number:03d}", stem, texts, number % choices, f"subject {number % 2}"))
    return tuple(made)


def make_tokenizer(folder: Path, *, bos: bool) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [" ".join(WORDS)] * 5 + [f"{question.stem}\nA. B. C. D.\nAnswer: A B C D E" for question in make_questions(30)]
    specials = ["<pad>", "<bos>", "<eos>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")
    wrapped.save_pretrained(folder)
    return wrapped


def make_checkpoint(folder: Path, *, architecture: str = "llama", bos: bool = False, seed: int = 1, dtype: str = "bfloat16", **config: Any) -> Path:
    """Save a random model with its tokenizer."""
    import torch
    import transformers

    folder.mkdir(parents=True)
    vocabulary = len(make_tokenizer(folder, bos=bos))
    torch.manual_seed(seed)
    common = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    if architecture == "gpt2":
        settings = transformers.GPT2Config(**common, n_embd=32, n_layer=2, n_head=2, n_positions=config.pop("positions", 256), **config)
        model = transformers.GPT2LMHeadModel(settings)
    else:
        shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        shape |= {"max_position_embeddings": config.pop("positions", 256), "initializer_range": 0.3}
        if architecture == "gemma2":
            shape |= {"head_dim": 16}
            model = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**common, **shape, **config))
        else:
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common, **{**shape, **config}, tie_word_embeddings=True))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return folder


def identity_of(folder: Path) -> CheckpointIdentity:
    files = tuple(
        FileDigest(name=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), size=path.stat().st_size)
        for path in sorted(folder.iterdir())
    )
    root = hashlib.sha256(b"".join(bytes.fromhex(file.sha256) for file in files)).hexdigest()
    tokens = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    return CheckpointIdentity(
        files=files, weights_sha256=root, tokenizer_sha256=tokens, architecture="any", parameters=30_000, stored_dtype="bfloat16", origin=folder.name
    )


def benchmark_of(
    identifier: str,
    questions: Sequence[Question],
    scoring: LetterScoring | OptionScoring,
    *,
    missing: Any = "wrong",
    public: Callable[[str], str] = str,
) -> ProtocolBenchmark:
    return ProtocolBenchmark(
        id=identifier,
        source=f"{identifier}.jsonl",
        source_sha256="0" * 64,
        source_size=len(questions),
        sample=SampleAll(),
        questions=tuple(DrawnQuestion(id=public(one.id), sha256=one.digest(), subject=one.subject) for one in questions),
        missing=missing,
        scoring=scoring,
        prompt=prompt_template(scoring),
        disclosure="full",
    )


def protocol_of(
    identities: dict[str, CheckpointIdentity | RecordIdentity],
    benchmarks: Sequence[ProtocolBenchmark],
    *,
    rule: BatchRule | None = None,
    precision: Any = "as_shipped",
) -> Protocol:
    return Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=tuple(ProtocolModel(id=model, precision=precision, identity=identity) for model, identity in identities.items()),
        benchmarks=tuple(benchmarks),
        analyses=(),
        thresholds=None,
        batch_rule=rule or BatchRule(token_budget=512, overhead_tokens=16),
    )


class InlineExecutor:
    """Runs the worker in this process: the same work orders, the same journal, no second import of torch."""

    def __init__(self, estimates: Estimates | None = None) -> None:
        self.estimates = estimates or Estimates()

    def devices(self) -> tuple[Device, ...]:
        return (Device(id="cpu", kind="cpu", name="this process"),)

    def run(self, orders: Sequence[WorkOrder], journal: FileJournal, tell: Callable[[WorkerEvent], None]) -> None:
        dispatch = Dispatch(Queue(orders, journal, self.estimates), ["cpu"], tell)
        worker = Worker(lambda _assignment: journal, Place("cpu", 1), lambda event: dispatch.heard("cpu", event))
        while (assignment := dispatch.assign("cpu")) is not None:
            worker.score(assignment)
        dispatch.conclude()


class NoExecutor(InlineExecutor):
    """Refuses to run anything: what is asked of it must be in the journal already."""

    def run(self, orders: Sequence[WorkOrder], journal: FileJournal, tell: Callable[[WorkerEvent], None]) -> None:
        raise AssertionError(f"nothing should have been scored, but {[order.model for order in orders]} in {journal.folder} was, for {tell}")


def journal_in(folder: Path) -> FileJournal:
    """A journal under the secret of the user who runs the tests."""
    return FileJournal(folder, Path(os.environ["XDG_CONFIG_HOME"]) / "journal.secret")


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """The builders above, for tests that cannot import this file."""
    return SimpleNamespace(
        questions=make_questions,
        checkpoint=make_checkpoint,
        identity=identity_of,
        benchmark=benchmark_of,
        protocol=protocol_of,
        executor=InlineExecutor,
        no_executor=NoExecutor,
        journal=journal_in,
    )


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random bfloat16 llama whose tokenizer adds no BOS."""
    pytest.importorskip("transformers")
    return make_checkpoint(tmp_path_factory.mktemp("models") / "llama")
