"""Whatever is altered in a finished journal is found, is not used, and is scored again to the same bits: every field of every line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalspec.artifacts.journal import BatchRecord, SessionRecord, read_lines
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import Assignment
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import Scored, ScoringTask, score
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.model_run import ModelRun, Place
from evalspec.scoring.preparation import Checkpoints

pytest.importorskip("torch")
pytest.importorskip("transformers")

Steps = tuple[str | int, ...]
"""The keys and places that lead to a value of a document."""


@pytest.fixture(scope="module")
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    """Letters, and texts with answer distributions."""
    questions = make.questions(70)
    texts = OptionScoring(method="option", distribution=4)
    benchmarks = [make.benchmark("letters", questions, LetterScoring(method="letter")), make.benchmark("texts", questions, texts)]
    protocol = make.protocol({"m": make.identity(llama)}, benchmarks, precision="float32")
    return ScoringTask(protocol, dict.fromkeys(("letters", "texts"), questions), {"m": llama}, {})


@pytest.fixture(scope="module")
def finished(make: SimpleNamespace, task: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> tuple[Scored, FileJournal]:
    journal = make.journal(tmp_path_factory.mktemp("finished"))
    return score(task, make.executor(), journal, ignore_progress), journal


@pytest.fixture(scope="module")
def packed(make: SimpleNamespace, task: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> FileJournal:
    """A journal of rows that were laid end to end."""
    journal: FileJournal = make.journal(tmp_path_factory.mktemp("packed"))
    (order,) = task.orders()
    run = ModelRun(order, Place("cpu", 1, packing=True), Checkpoints(), lambda _event: None)
    for work in order.works:
        run.score(Assignment(order=order.part(work, work.questions)), journal)
    return journal


def leaves(value: object, path: Steps = ()) -> Iterator[Steps]:
    """Yield where the values of a document stand, of lists the first and the last."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for place in sorted({0, len(value) - 1}):
            yield from leaves(value[place], (*path, place))
    else:
        yield path


def altered(line: bytes, path: Steps) -> bytes:
    """Return the line with another value of the same sort in one place."""
    document = json.loads(line)
    *before, last = path
    holder: Any = document
    for step in before:
        holder = holder[step]
    holder[last] = another(holder[last])
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def another(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 - 1e-9
    return f"{value}x" if isinstance(value, str) else [0]


def secret_of(journal: FileJournal) -> bytes:
    assert journal.secret_file is not None
    return journal.secret_file.read_bytes()


def unread(journal: FileJournal, content: bytes, job: str) -> bool:
    """Return whether nothing at all is taken from a journal file of this content."""
    try:
        return not read_lines(content, job, secret_of(journal)).size
    except ValueError:
        return True


@pytest.mark.parametrize("kind", ["finished", "packed"])
def test_no_value_of_any_line_can_be_altered_unseen(request: pytest.FixtureRequest, kind: str) -> None:
    found = request.getfixturevalue(kind)
    journal: FileJournal = found[1] if kind == "finished" else found
    fields: set[str] = set()
    for file in sorted(journal.folder.glob("*.jsonl")):
        lines = file.read_bytes().splitlines()
        assert not unread(journal, file.read_bytes(), file.stem)
        for number in (0, 1, len(lines) - 1):
            for path in leaves(json.loads(lines[number])):
                fields.add(str(path[1]) if path[0] == "body" else str(path[0]))
                poisoned = [*lines[:number], altered(lines[number], path), *lines[number + 1 :]]
                assert unread(journal, b"".join(line + b"\n" for line in poisoned), file.stem), f"{path} of line {number + 1}"
    assert {"key", "mac", "previous", *SessionRecord.model_fields, *BatchRecord.model_fields} == fields


def swap(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def double(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


def leave_out(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def value(lines: list[bytes]) -> list[bytes]:
    return [lines[0], altered(lines[1], ("body", "logprobs", 0, 0)), *lines[2:]]


def question(lines: list[bytes]) -> list[bytes]:
    return [lines[0], altered(lines[1], ("body", "questions", 0)), *lines[2:]]


def attention(lines: list[bytes]) -> list[bytes]:
    return [altered(lines[0], ("body", "attention")), *lines[1:]]


def end_to_end(lines: list[bytes]) -> list[bytes]:
    return [lines[0], altered(lines[1], ("body", "packed")), *lines[2:]]


def not_a_number(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"logprobs":[[-', b'"logprobs":[[NaN,-'), *lines[2:]]


@pytest.mark.parametrize("poison", [swap, double, leave_out, value, question, attention, end_to_end, not_a_number])
def test_the_next_run_puts_a_poisoned_file_aside_says_so_and_comes_to_the_same_bits(
    make: SimpleNamespace,
    task: ScoringTask,
    finished: tuple[Scored, FileJournal],
    tmp_path: Path,
    poison: Callable[[list[bytes]], list[bytes]],
) -> None:
    whole, journal = finished[0], make.journal(tmp_path / "journal")
    shutil.copytree(finished[1].folder, journal.folder)
    job = task.orders()[0].key(task.orders()[0].works[0], task.orders()[0].works[0].questions).digest()
    file = journal.folder / f"{job}.jsonl"
    lines = file.read_bytes().splitlines()
    poisoned = poison(lines)
    assert poisoned != lines
    file.write_bytes(b"".join(line + b"\n" for line in poisoned))
    told: list[Progress] = []
    again = score(task, make.executor(), journal, told.append)
    assert [one.warning for one in told if one.warning] == [
        f"a journal file was altered; the file was put aside as {job}.rejected-1 and is scored again"
    ]
    assert again.responses.origins == whole.responses.origins
    for one, other in zip(again.responses.benchmarks, whole.responses.benchmarks, strict=True):
        assert one.logprobs is not None
        assert other.logprobs is not None
        assert one.logprobs.tobytes() == other.logprobs.tobytes()
    assert (journal.folder / f"{job}.rejected-1").read_bytes() == b"".join(line + b"\n" for line in poisoned)
