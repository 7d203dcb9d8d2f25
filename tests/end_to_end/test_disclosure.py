from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pypdf
import pytest

from evalspec.artifacts.base import canonical_json
from evalspec.signing.commitments import check_opening, opening

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run


@pytest.fixture(scope="module")
def leaves(scored: Run, evalspec: Command) -> dict[str, bytes]:
    """Every place in which a text could stand: files, decompressed streams and attachments, table values, console lines."""
    places = {path.name: path.read_bytes() for path in scored.folder.iterdir()}
    places["manifest payload"] = base64.b64decode(json.loads(places["manifest.dsse.json"])["payload"])
    places |= dict(_inside_pdf(scored.folder / "report.pdf"))
    for name in ("questions.parquet", "responses.parquet"):
        table = pq.read_table(scored.folder / name)
        places[f"{name} values"] = repr((table.to_pydict(), table.schema.metadata)).encode()
    spoken = {"run": scored.spoken}
    options = ("--cache", "whole", "--token-budget", "160")
    for name, arguments in {
        "run --json": ("run", "study.yaml", "--key", "signer.p12", "--no-pdf", "--out", "second", "--json", *options),
        "plan": ("plan", "study.yaml", *options),
        "plan --json": ("plan", "study.yaml", "--json", *options),
        "validate": ("validate", "study.yaml"),
        "verify": ("verify", "second", "--recompute"),
        "verify --json": ("verify", "reports/study", "--json"),
        "report": ("report", "second", "--key", "signer.p12", "--no-pdf"),
    }.items():
        spoken[name] = evalspec(*arguments, cwd=scored.workplace)
        assert spoken[name].code in {0, 4}, (name, spoken[name].err)
    return places | {name: (said.out + said.err).encode() for name, said in spoken.items()}


def _inside_pdf(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every object of the PDF with its streams unpacked, the text of every page, and every attachment."""
    reader = pypdf.PdfReader(path)
    for number in range(1, reader.trailer["/Size"]):
        found = reader.get_object(number)
        data = found.get_data() if isinstance(found, pypdf.generic.StreamObject) else b""
        yield f"PDF object {number}", repr(found).encode() + data
    for number, page in enumerate(reader.pages):
        yield f"PDF page {number}", re.sub(r"\s+", "", page.extract_text()).encode()  # a line may break inside a word
    for name, contents in reader.attachments.items():
        for content in contents:
            yield f"PDF attachment {name}", content


def test_with_none_disclosed_no_text_id_choice_or_key_stands_anywhere(leaves: dict[str, bytes], canaries: Sequence[str]) -> None:
    assert len(leaves) > 100
    assert [place for place, content in leaves.items() if canaries[0].encode() in content] == []


def test_with_ids_disclosed_ids_are_there_and_texts_are_not(leaves: dict[str, bytes], canaries: Sequence[str]) -> None:
    found = {place for place, content in leaves.items() if f"{canaries[1]}nummer003".encode() in content}
    assert {"protocol.json", "responses.parquet values", "questions.parquet values"} <= found
    for part in ("frage", "wahl"):
        assert [place for place, content in leaves.items() if f"{canaries[1]}{part}".encode() in content] == []


def test_with_everything_disclosed_the_same_search_finds_text_on_the_pages(leaves: dict[str, bytes]) -> None:
    found = {place for place, content in leaves.items() if b"offenfrage" in content}
    assert "report.html" in found
    assert any(place.startswith("PDF page") for place in found)


def rows(run: Run, benchmark: str) -> list[dict[str, Any]]:
    return [row for row in pq.read_table(run.folder / "responses.parquet").to_pylist() if row["benchmark"] == benchmark]


def test_with_none_disclosed_the_responses_do_not_tell_the_key(scored: Run) -> None:
    secret, shown = rows(scored, "secret"), rows(scored, "open")
    assert len(secret) == 60
    assert {(row["choice"], row["logprobs"]) for row in secret} == {(None, None)}
    assert all(row["choice"] is not None and row["logprobs"] for row in shown if row["score"] is not None)


def test_how_often_each_letter_was_chosen_and_the_first_token_ids_are_withheld_too(scored: Run) -> None:
    header = next(iter(pq.read_schema(scored.folder / "responses.parquet").metadata.values()))
    origins = {(origin["model"], origin["benchmark"]): origin for origin in json.loads(header)["origins"]}
    assert origins["tiny-a", "open"]["chosen"]
    assert origins["tiny-a", "open"]["first_ids"]
    assert origins["tiny-a", "secret"]["chosen"] == {}
    assert [origins["tiny-a", name]["first_ids"] for name in ("named", "secret")] == [[], []]


def test_a_commitment_can_be_opened_alone_and_only_for_its_own_question(scored: Run) -> None:
    secret = (scored.cache / "commitments.secret").read_bytes()
    assert (scored.cache / "commitments.secret").stat().st_mode & 0o077 == 0
    protocol = json.loads((scored.folder / "protocol.json").read_text())
    benchmark = next(entry for entry in protocol["benchmarks"] if entry["id"] == "secret")
    listed = {question["id"] for question in benchmark["questions"]}
    opened = set()
    lines = [json.loads(line) for line in (scored.workplace / "secret.jsonl").read_text().splitlines()]
    for line in lines:
        content = canonical_json([line["id"], line["question"], line["choices"], line["choices"].index(line["answer"]), line["subject"]])
        shown = opening(secret, "secret", line["id"], content)
        matching = {commitment for commitment in listed if check_opening(commitment, shown.salt, shown.content)}
        assert len(matching) <= 1
        opened |= matching
    assert (len(listed), opened) == (30, listed)


def test_a_question_of_which_nothing_is_disclosed_is_not_named_by_an_error_in_its_recorded_responses(tmp_path: Path, evalspec: Command) -> None:
    questions = [{"id": f"geheim{number}", "question": f"geheim {number}?", "choices": ["a", "b"], "answer": "A"} for number in range(4)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in questions))
    study = """apiVersion: evalspec/v1
title: t
seed: 1
models: [{id: m, source: {responses: recorded.csv}}]
benchmarks: [{id: b, source: {file: questions.jsonl}, missing: error, scoring: {method: letter}, disclosure: none}]
analyses: [{id: accuracy, kind: intervals}]
"""
    (tmp_path / "study.yaml").write_text(study)
    for table in (
        "question_id,choice\nother,A\n",
        "question_id,choice\ngeheim1,A\ngeheim1,B\n",
        "question_id,choice\ngeheim1,Q\n",
        "question_id,score\ngeheim1,7\n",
        "question_id,score\ngeheim1,x\n",
        "question_id,logprob_A,logprob_B\ngeheim1,x,-1\n",
        "question_id,choice,score\ngeheim1,B,1\n",
    ):
        (tmp_path / "recorded.csv").write_text(table)
        spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path)
        assert spoken.code == 3, (table, spoken.out)
        assert "geheim" not in spoken.err, (table, spoken.err)
