from __future__ import annotations

import json
import os
import subprocess
import sys
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
