from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import jobs_of
from evalspec.errors import ScoringError
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import Scored, ScoringTask, score
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.speeds import expected_pace, read_speeds

pytest.importorskip("torch")
pytest.importorskip("transformers")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

LETTERS = LetterScoring(method="letter")
OPTIONS = OptionScoring(method="option", normalise="per_byte")


@pytest.fixture(scope="module")
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    """One model on two benchmarks with different numbers of choices."""
    four, three = make.questions(90), make.questions(50, choices=3)
    benchmarks = [make.benchmark("four", four, LETTERS), make.benchmark("three", three, OPTIONS)]
    protocol = make.protocol({"m": make.identity(llama)}, benchmarks)
    return ScoringTask(protocol, {"four": four, "three": three}, {"m": llama}, {})


@pytest.fixture(scope="module")
def uninterrupted(make: SimpleNamespace, task: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> tuple[Scored, FileJournal]:
    journal = make.journal(tmp_path_factory.mktemp("uninterrupted"))
    return score(task, make.executor(), journal, ignore_progress), journal


def same_bytes(first: Responses, second: Responses) -> bool:
    arrays = [
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for one, other in zip(first.benchmarks, second.benchmarks, strict=True)
        for name in ("scores", "reasons", "choices", "logprobs", "weights")
    ]
    return all(arrays) and first.origins == second.origins


def batches_in(journal: FileJournal) -> Counter[tuple[str, int]]:
    """How often each batch of each job was written; a last line that a kill has torn is none."""
    found: Counter[tuple[str, int]] = Counter()
    for path in journal.folder.glob("*.jsonl"):
        for line in path.read_text().split("\n")[:-1]:
            if '"kind":"batch"' in line:
                index = BatchRecord.model_validate_json(line.split('"body":', 1)[1].rsplit(',"key"', 1)[0]).index
                found[path.stem, index] += 1
    return found


def test_responses_stand_in_the_order_of_the_protocol(task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    responses = uninterrupted[0].responses
    assert responses.protocol_sha256 == task.protocol.digest()
    assert [(one.benchmark, one.logprobs.shape) for one in responses.benchmarks if one.logprobs is not None] == [
        ("four", (1, 90, 4)),
        ("three", (1, 50, 3)),
    ]
    four = responses.benchmark("four")
    assert four.questions == tuple(question.id for question in task.questions["four"])
    np.testing.assert_array_equal(four.choices[0, :, 0], np.argmax(four.logprobs[0], axis=1))
    np.testing.assert_array_equal(four.scores[0, :, 0], four.choices[0, :, 0] == [question.answer for question in task.questions["four"]])


def test_the_origin_says_what_a_referee_asks(uninterrupted: tuple[Scored, FileJournal]) -> None:
    origin = uninterrupted[0].responses.origin("m", "four")
    assert [letter for letter, _ in origin.letters] == ["A", "B", "C", "D"]
    assert len({identifier for _, identifier in origin.letters}) == 4
    assert origin.self_check is not None
    assert (origin.self_check.questions, len(origin.first_ids), origin.route) == (64, 4, "scored_here")
    assert origin.letter_mass is not None
    assert 0 < origin.letter_mass < 1
    assert sum(origin.chosen.values()) == 90
    assert {"torch", "transformers", "tokenizers", "dtype", "head", "attention"} == set(origin.versions)


def test_what_is_in_the_journal_is_not_scored_again(make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    first, journal = uninterrupted
    told: list[Progress] = []
    again = score(task, make.no_executor(), journal, told.append)
    assert same_bytes(again.responses, first.responses)
    assert [(entry.questions, entry.reused) for entry in again.jobs] == [(90, 90), (50, 50)]
    assert [(one.done, one.total) for one in told] == [(90 + 64 + 50 + 50, 90 + 64 + 50 + 50)]


def test_the_jobs_of_a_plan_are_those_of_the_journal(task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    jobs = jobs_of(task.orders())
    assert [(job.model, job.benchmark, job.questions, job.shards) for job in jobs] == [("m", "four", 90, 1), ("m", "three", 50, 1)]
    assert [uninterrupted[1].read(job.id).answered for job in jobs] == [90, 50]


def test_another_rule_to_normalise_needs_no_scoring(make: SimpleNamespace, task: ScoringTask) -> None:
    by_byte, by_sum = (
        jobs_of(
            ScoringTask(
                make.protocol({"m": task.protocol.models[0].identity}, [make.benchmark("three", task.questions["three"], scoring)]),
                task.questions,
                task.folders,
                {},
            ).orders()
        )
        for scoring in (OPTIONS, OptionScoring(method="option"))
    )
    assert [job.id for job in by_byte] == [job.id for job in by_sum]


def test_a_speed_is_seen_and_scaled_to_other_models(task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    speeds, order = read_speeds(uninterrupted[1].folder), task.orders()[0]
    pace = expected_pace(speeds, order, "this process")
    assert pace is not None
    assert (pace.tokens_per_second > 0, pace.measured) == (True, True)
    larger = order.model_copy(
        update={"identity": order.identity.model_copy(update={"weights_sha256": "f" * 64, "parameters": 10 * order.identity.parameters})}
    )
    scaled = expected_pace(speeds, larger, "this process")
    assert scaled is not None
    assert scaled.tokens_per_second == pytest.approx(pace.tokens_per_second / 10)
    assert expected_pace(speeds, order, "another device") is None


def test_shards_change_no_choice(make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal], tmp_path: Path) -> None:
    rule = BatchRule(token_budget=512, overhead_tokens=16, shard_questions=40)
    sharded = ScoringTask(task.protocol.model_copy(update={"batch_rule": rule}), task.questions, task.folders, {})
    responses = score(sharded, make.executor(), make.journal(tmp_path), ignore_progress).responses
    assert [job.shards for job in jobs_of(sharded.orders())] == [3, 3, 3, 2, 2]
    np.testing.assert_allclose(responses.benchmark("four").logprobs, uninterrupted[0].responses.benchmark("four").logprobs, atol=0.2)  # bfloat16


def test_public_ids_may_be_commitments(make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    def commit(text: str) -> str:
        return hmac.new(b"secret", text.encode(), hashlib.sha256).hexdigest()

    four = task.questions["four"]
    benchmark = make.benchmark("four", four, LETTERS, public=commit)
    hidden = ScoringTask(make.protocol({"m": task.protocol.models[0].identity}, [benchmark]), task.questions, task.folders, {})
    responses = score(hidden, make.no_executor(), uninterrupted[1], ignore_progress).responses
    assert responses.benchmark("four").questions == tuple(commit(question.id) for question in four)
    np.testing.assert_array_equal(responses.benchmark("four").scores, uninterrupted[0].responses.benchmark("four").scores)


def test_no_text_of_a_question_is_in_the_journal(task: ScoringTask, uninterrupted: tuple[Scored, FileJournal]) -> None:
    kept = b"".join(path.read_bytes() for path in uninterrupted[1].folder.iterdir())
    assert not any(question.stem.encode() in kept or question.id.encode() in kept for question in task.questions["four"])


def flattened(make: SimpleNamespace, folder: Path, value: float) -> Path:
    """Save a model whose weights all have one value: 0 makes every logit equal."""
    from safetensors.torch import load_file, save_file

    make.checkpoint(folder)
    path = folder / "model.safetensors"
    save_file({name: weight.fill_(value) for name, weight in load_file(path).items()}, path, metadata={"format": "pt"})
    return folder


def one_model(make: SimpleNamespace, folder: Path, *, missing: str = "wrong") -> ScoringTask:
    questions = make.questions(12)
    protocol = make.protocol({"m": make.identity(folder)}, [make.benchmark("b", questions, LETTERS, missing=missing)])
    return ScoringTask(protocol, {"b": questions}, {"m": folder}, {})


def test_exact_ties_are_undetermined_and_handled_as_declared(make: SimpleNamespace, tmp_path: Path) -> None:
    folder, journal = flattened(make, tmp_path / "flat", 0.0), make.journal(tmp_path / "journal")
    answers = score(one_model(make, folder), make.executor(), journal, ignore_progress).responses.benchmark("b")
    assert answers.missing_counts() == {"m": {"undetermined": 12}}
    assert (answers.choices == -1).all()
    assert answers.settled().tolist() == [[0.0] * 12]
    with pytest.raises(ScoringError, match=r"model 'm' has missing answers on benchmark 'b' \(12 undetermined\)"):
        score(one_model(make, folder, missing="error"), make.executor(), journal, ignore_progress)


def test_a_model_that_gives_no_number_is_named_with_the_question(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = flattened(make, tmp_path / "broken", float("nan"))
    with pytest.raises(ScoringError, match=r"model 'm' gives no finite probability at question 'q0\d\d'"):
        score(one_model(make, folder), make.executor(), make.journal(tmp_path / "journal"), ignore_progress)


def test_a_journal_made_for_other_batches_is_put_aside_with_a_warning(
    make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal], tmp_path: Path
) -> None:
    first, source = uninterrupted
    job = jobs_of(task.orders())[0].id
    content = (source.folder / f"{job}.jsonl").read_bytes()
    (tmp_path / f"{job}.jsonl").write_bytes(content.replace(b'"logprobs":[[-', b'"logprobs":[[-1', 1))
    told: list[Progress] = []
    again = score(task, make.executor(), make.journal(tmp_path), told.append)
    assert same_bytes(again.responses, first.responses)
    assert [one.warning for one in told if one.warning] == [
        f"a journal file was altered; the file was put aside as {job}.rejected-1 and is scored again"
    ]


def test_a_journal_from_elsewhere_is_scored_again_to_the_same_bytes_and_the_user_is_told(
    make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal], tmp_path: Path
) -> None:
    first, source = uninterrupted
    received = FileJournal(Path(shutil.copytree(source.folder, tmp_path / "received")), tmp_path / "own.secret")
    told: list[Progress] = []
    again = score(task, make.executor(), received, told.append)
    assert (again.responses.origins, same_bytes(again.responses, first.responses)) == (first.responses.origins, True)
    warnings = [one.warning for one in told if one.warning]
    assert len(warnings) == len(list(source.folder.glob("*.jsonl")))
    assert all("lines of a journal file are not under this user's secret" in warning and "is scored again" in warning for warning in warnings)
    assert told[0].done == 0


def test_two_runs_at_once_score_every_batch_once(
    make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal], tmp_path: Path
) -> None:
    children = [fork(make, task, tmp_path) for _ in range(2)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert set(batches_in(make.journal(tmp_path)).values()) == {1}
    assert same_bytes(score(task, make.no_executor(), make.journal(tmp_path), ignore_progress).responses, uninterrupted[0].responses)


def test_twenty_kills_lose_nothing_and_change_no_bit(
    make: SimpleNamespace, task: ScoringTask, uninterrupted: tuple[Scored, FileJournal], tmp_path: Path
) -> None:
    random, journal = Random(20261129), make.journal(tmp_path)
    sizes = []
    for number in range(21):
        child = fork(make, task, tmp_path)
        if number < 20:
            kill_at_random(child, journal, random)
        os.waitpid(child, 0)
        written = batches_in(journal)
        assert set(written.values()) <= {1}
        sizes.append(len(written))
    assert sizes == sorted(sizes)
    assert len(set(sizes)) >= 5, "most kills must fall into the scoring itself"
    assert set(written) == set(batches_in(uninterrupted[1]))
    assert same_bytes(score(task, make.no_executor(), journal, ignore_progress).responses, uninterrupted[0].responses)


def kill_at_random(child: int, journal: FileJournal, random: Random) -> None:
    """Kill when the child has written some more bytes, anywhere in a line or a batch, or, one time in four, soon after its start."""
    before = written_bytes(journal)
    wanted, deadline = random.randint(1, 8000), time.monotonic() + (random.uniform(0.01, 0.2) if random.random() < 0.25 else 60)
    while written_bytes(journal) < before + wanted and time.monotonic() < deadline:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)


def written_bytes(journal: FileJournal) -> int:
    return sum(path.stat().st_size for path in journal.folder.glob("*.jsonl"))


def fork(make: SimpleNamespace, task: ScoringTask, folder: Path) -> int:
    """Score in a child process that has torch already; a real process that can really be killed."""
    child = os.fork()
    if child == 0:
        try:
            score(task, make.executor(), make.journal(folder), ignore_progress)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_worked_examples_come_before_every_prompt_and_are_part_of_what_is_scored(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    examples = {"four": {None: "red green blue\nAnswer: A\n\n" * 4}}
    shown = replace(task, preambles=examples)
    assert all(question.prompt.startswith(examples["four"][None]) for question in shown.orders()[0].works[0].questions)
    without, with_them = ({job.id for job in jobs_of(one.orders())} for one in (task, shown))
    assert len(without & with_them) == 1, "the other benchmark, which shows none, is not scored again"
    journal = make.journal(tmp_path / "journal")
    plain = score(task, make.executor(), journal, ignore_progress).responses.benchmark("four").logprobs
    after = score(shown, make.executor(), journal, ignore_progress).responses.benchmark("four").logprobs
    assert plain is not None
    assert after is not None
    assert not np.allclose(plain, after)


def test_an_answer_distribution_is_the_mean_along_the_right_answer_over_the_whole_vocabulary(
    make: SimpleNamespace, llama: Path, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    questions = make.questions(12)
    scoring = OptionScoring(method="option", distribution=8)
    protocol = make.protocol({"m": make.identity(llama)}, [make.benchmark("b", questions, scoring)], precision="float32")
    task = ScoringTask(protocol, {"b": questions}, {"m": llama}, {})
    responses = score(task, make.executor(), make.journal(tmp_path / "journal"), ignore_progress).responses
    recorded = responses.benchmark("b").distributions
    assert recorded is not None
    assert recorded.tokens.shape == (1, 12, 8)

    tokenizer, model = AutoTokenizer.from_pretrained(llama), AutoModelForCausalLM.from_pretrained(llama, dtype=torch.float32).eval()
    for place, asked in enumerate(task.orders()[0].works[0].questions):
        context = len(tokenizer(asked.prompt)["input_ids"])
        ids = torch.tensor([tokenizer(f"{asked.prompt} {asked.answers[questions[place].answer]}")["input_ids"]])
        with torch.inference_mode():
            logprobs = torch.log_softmax(model(input_ids=ids).logits[0, context - 1 : -1], dim=-1)
        expected = torch.softmax(logprobs.mean(dim=0), dim=-1).topk(8)
        np.testing.assert_allclose(recorded.probabilities[0, place], expected.values.numpy(), rtol=1e-4)
        assert recorded.tokens[0, place].tolist() == expected.indices.tolist()


def test_without_being_asked_for_no_answer_distribution_and_no_right_answer_reaches_the_scorer(task: ScoringTask) -> None:
    assert all(question.reference is None for work in task.orders()[0].works for question in work.questions)
