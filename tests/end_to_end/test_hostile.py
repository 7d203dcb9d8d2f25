from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

ESCAPE = "\x1b]0;owned\x07\x9b31m\u202e"


@pytest.mark.parametrize("verb", ["validate", "plan", "run"])
@pytest.mark.parametrize("content", [None, b"\x00\xff\xfe\x01" * 50, b"\x7fELF", b"", b"- [" * 3000])
def test_a_study_that_is_a_folder_binary_empty_or_deep_is_2(tmp_path: Path, evalspec: Command, verb: str, content: bytes | None) -> None:
    if content is None:
        (tmp_path / "study.yaml").mkdir()
    else:
        (tmp_path / "study.yaml").write_bytes(content)
    spoken = evalspec(verb, "study.yaml", cwd=tmp_path)
    assert (spoken.code, bool(spoken.err)) == (2, True)


def test_a_study_that_may_not_be_read_or_is_not_there_is_2(tmp_path: Path, evalspec: Command) -> None:
    spoken = evalspec("validate", "absent.yaml", cwd=tmp_path)
    assert (spoken.code, "evalspec init" in spoken.err) == (2, True)
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert evalspec("validate", "loop.yaml", cwd=tmp_path).code == 2


def test_no_control_character_of_a_study_or_a_question_reaches_the_console(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    for line in lines:
        line["subject"] = f"sub{ESCAPE}ject"
    lines[0]["id"] = f"id{ESCAPE}"
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = study.read_text()
    spoken = [evalspec(verb, "study.yaml", cwd=tmp_path) for verb in ("validate", "plan", "run")]
    assert {said.code for said in spoken} == {3}
    study.write_text(text.replace("model: good", f'model: "go{ESCAPE}od"'.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\x9b", "\\x9b")))
    spoken.append(evalspec("validate", "study.yaml", cwd=tmp_path))
    spoken.append(evalspec("validate", f"{ESCAPE}.yaml", cwd=tmp_path))
    spoken.append(evalspec("verify", f"{ESCAPE}", cwd=tmp_path))
    spoken.append(evalspec(f"{ESCAPE}", cwd=tmp_path))
    spoken.append(evalspec("validate", f"{ESCAPE}.yaml", "--json", cwd=tmp_path))
    for said in spoken:
        assert said.code in {2, 3}
        assert not set("\x1b\x07\x9b\u202e") & set(said.out + said.err)


def test_a_hostile_file_name_in_a_run_directory_is_named_without_its_escapes(copied: Path, evalspec: Command, tmp_path: Path) -> None:
    (copied / f"x{ESCAPE}").write_text("")
    spoken = evalspec("verify", copied, cwd=tmp_path)
    assert (spoken.code, "UNLISTED x" in spoken.out, "\x1b" in spoken.out) == (1, True, False)


def test_a_reader_who_stops_listening_is_no_error(tmp_path: Path, make: SimpleNamespace) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "evalspec", "schema"], cwd=tmp_path, env=make.environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_console_that_knows_only_ascii_gets_ascii(recorded: Run, process: Command) -> None:
    spoken = process("plan", "study.yaml", cwd=recorded.workplace, env={"PYTHONIOENCODING": "ascii"})
    assert (spoken.code, spoken.out.isascii()) == (0, True)


def test_a_cache_that_cannot_be_written_is_3(tmp_path: Path, workplace: Path, evalspec: Command) -> None:
    (tmp_path / "cache").write_text("a file where the cache should be")
    spoken = evalspec("plan", "study.yaml", "--cache", tmp_path / "cache", cwd=workplace)
    assert (spoken.code, "cache" in spoken.err) == (3, True)


@pytest.mark.parametrize("table", [b"", b"\x00\x01\x02", b"question_id,good\n", b"nothing\n1\n", b"question_id,model,score\nx,good,0.5\n"])
def test_a_recorded_table_that_is_none_is_3(tmp_path: Path, evalspec: Command, make: SimpleNamespace, table: bytes) -> None:
    make.recorded(tmp_path)
    (tmp_path / "recorded.csv").write_bytes(table)
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path)
    assert (spoken.code, "recorded.csv" in spoken.err) == (3, True)


def test_an_out_path_that_is_a_file_is_3_and_the_file_stays(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    spoken = evalspec("run", "study.yaml", "--out", "study.yaml", "--no-pdf", cwd=tmp_path)
    assert (spoken.code, study.read_text().startswith("apiVersion")) == (3, True)


VERBS = (("validate",), ("plan",), ("run", "--no-pdf"))


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize(
    "table",
    [
        "question_id,model,score\nelsewhere,good,1\nelsewhere,poor,1\n",
        "question_id;model;score\nkleinnummer000;good;1\n",
        "question_id,model,choice\nkleinnummer000,good,A\nkleinnummer001,good,1\nkleinnummer000,poor,A\n",
        "question_id,model,score,score\nkleinnummer000,good,1,1\n",
    ],
)
def test_a_table_that_fits_nothing_is_3_before_anything_is_scored(
    tmp_path: Path, evalspec: Command, make: SimpleNamespace, table: str, verb: Sequence[str]
) -> None:
    make.recorded(tmp_path)
    (tmp_path / "recorded.csv").write_text(table)
    spoken = evalspec(verb[0], "study.yaml", *verb[1:], cwd=tmp_path)
    assert (spoken.code, "recorded.csv" in spoken.err) == (3, True)
    assert not list((tmp_path / "reports").glob("study/*"))


def test_rows_that_are_left_out_are_counted_by_every_verb(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    make.recorded(tmp_path)
    with (tmp_path / "recorded.csv").open("a") as table:
        table.write("elsewhere,good,1\r\nkleinnummer000,third,1\r\n")
    counted = (
        "'recorded.csv': 1 row of questions that the source does not have left out, the first in line 82",
        "'recorded.csv': 1 row of 1 model that the study does not name left out",
    )
    for verb in VERBS:
        spoken = evalspec(verb[0], "study.yaml", *verb[1:], cwd=tmp_path)
        assert [line.removeprefix("warning: ") for line in spoken.err.splitlines() if "left out" in line] == list(counted)
    for verb in ("validate", "plan"):
        assert evalspec(verb, "study.yaml", "--json", cwd=tmp_path).content["warnings"][:2] == list(counted)


@pytest.mark.parametrize("name", ["questions.jsonl", "recorded.csv"])
@pytest.mark.parametrize("sort", ["folder", "pipe", "loop", "dangling", "large"])
def test_what_is_no_file_or_a_very_large_one_is_refused_and_never_waited_for(
    tmp_path: Path, evalspec: Command, make: SimpleNamespace, name: str, sort: str
) -> None:
    make.recorded(tmp_path)
    (tmp_path / name).unlink()
    if sort == "large":
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(1 << 40)
    else:
        makers = {
            "folder": os.mkdir,
            "pipe": os.mkfifo,
            "loop": lambda path: path.symlink_to(path.name),
            "dangling": lambda path: path.symlink_to("no"),
        }
        makers[sort](tmp_path / name)
    for verb in VERBS:
        spoken = evalspec(verb[0], "study.yaml", *verb[1:], cwd=tmp_path)
        assert (spoken.code, name in spoken.err) == (3 if sort == "large" else 2, True)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"1", b"[" * 50_000, b"{" + b'"a":{' * 900, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\0", b'{"a": NaN}']
)
def test_what_is_remembered_in_the_cache_may_hold_anything(tmp_path: Path, evalspec: Command, make: SimpleNamespace, content: bytes) -> None:
    make.recorded(tmp_path)
    for name in ("digests.json", "looks.json", "journal/speeds.json"):
        (tmp_path / ".evalspec" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".evalspec" / name).write_bytes(content)
    assert evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path).code == 0


@pytest.mark.parametrize("name", ["digests.json", "looks.json", "attempts.json", "journal/speeds.json"])
def test_what_is_no_file_in_the_cache_is_not_waited_for(tmp_path: Path, evalspec: Command, make: SimpleNamespace, name: str) -> None:
    make.recorded(tmp_path)
    (tmp_path / ".evalspec" / name).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / ".evalspec" / name)
    assert evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("name", "change"), [("config.json", {"text_config": "x"}), ("config.json", {"vocab_size": []}), ("tokenizer_config.json", None)]
)
def test_settings_of_a_model_that_are_of_another_sort_are_a_fault_of_their_file(
    place: Path, evalspec: Command, name: str, change: dict[str, object] | None
) -> None:
    file = place / "checkpoints" / "tiny-a" / name
    settings = json.loads(file.read_text())
    file.write_text(json.dumps([settings] if change is None else {**settings, **change}))
    spoken = evalspec("plan", "study.yaml", cwd=place)
    assert (spoken.code, f"checkpoints/tiny-a/{name}" in spoken.err) == (3, True)


@pytest.fixture
def place(workplace: Path, tmp_path: Path) -> Path:
    """A copy of the workplace, to be spoilt."""
    return Path(shutil.copytree(workplace, tmp_path / "place", ignore=shutil.ignore_patterns("whole", "reports", "second")))


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize(("most", "kept"), [(4_000, 0), (60_000, 1)])
def test_a_disk_that_is_full_names_the_file_and_says_what_is_kept(place: Path, scored: Run, make: SimpleNamespace, most: int, kept: int) -> None:
    import resource

    if kept:
        shutil.copytree(scored.cache, place / ".evalspec")
    study = (place / "study.yaml").read_text()
    only_open = [line for line in study.splitlines() if not line.startswith(("  - {id: named", "  - {id: secret"))]
    (place / "study.yaml").write_text("\n".join(only_open))
    done = subprocess.run(
        [sys.executable, "-m", "evalspec", "run", "study.yaml", "--key", "signer.p12", "--no-pdf", "--token-budget", str(make.budget)],
        cwd=place,
        env=make.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    assert "File too large" in done.stderr
    assert ("journal/" in done.stderr, "reports/study/" in done.stderr) == (not kept, bool(kept)), done.stderr
    assert "what was scored is kept" in done.stderr
