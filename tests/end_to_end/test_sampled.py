"""Generated answers as users meet them: a run, its report, its verification, a run that was killed, and questions that stay secret."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.responses import Reason, Responses
from evalspec.row_check import row_faults
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.end_to_end.conftest import Command

pytest.importorskip("torch")
pytest.importorskip("transformers")

STUDY = """apiVersion: evalspec/v1
title: What do tiny random models write?
seed: 11
models:
  - {{id: tiny-a, source: {{path: checkpoints/tiny-a}}}}
  - {{id: tiny-b, source: {{path: checkpoints/tiny-b}}}}
benchmarks:
  - id: facts
    source: {{file: open.jsonl}}
    sample: {{method: simple, size: 24}}
    disclosure: {disclosure}
    missing: {missing}
    scoring:
      method: sampled
      repeats: 2
      temperature: 0.9
      max_tokens: {tokens}
      extract: [{{pattern: "[A-Da-d]"}}]
      refusals: ["[x-z]"]
analyses:
  - {{id: accuracy, kind: intervals}}
  - {{id: pairs, kind: mcnemar, family: all_pairs}}
"""
OPTIONS = ("--token-budget", "160", "--no-pdf", "--key", "signer.p12")
PATIENCE = 120.0


def write(workplace: Path, name: str, *, disclosure: str = "full", missing: str = "wrong", tokens: int = 24) -> str:
    (workplace / f"{name}.yaml").write_text(STUDY.format(disclosure=disclosure, missing=missing, tokens=tokens))
    return f"{name}.yaml"


@pytest.fixture(scope="module")
def texts_run(workplace: Path, evalspec: Command) -> Path:
    """The folder of a finished run that discloses its texts."""
    spoken = evalspec("run", write(workplace, "texts"), "--cache", "texts-cache", *OPTIONS, cwd=workplace)
    assert spoken.code == 0, spoken.err
    assert re.search(r"tiny-a on facts: (\d+ refused, )?\d+ unparseable of 48; counted as wrong", spoken.err)
    return workplace / "reports" / "texts"


def test_the_report_says_how_texts_were_made_and_read_and_counts_refusals_apart(texts_run: Path) -> None:
    page = " ".join(re.sub(r"<[^>]+>", " ", (texts_run / "report.html").read_text()).split())
    assert "Method sampled : the model writes 2 texts for each question" in page
    assert "drawn at temperature 0.9 from all of the vocabulary" in page
    assert "or after 24 tokens" in page
    assert "the letter of a choice [A-Da-d] first case, punctuation, spaces" in page
    assert "a refusal [x-z] any" in page
    assert "facts: the texts that models wrote" in page
    assert "No text is generated" not in page
    assert "no text is generated" not in page
    summary, *_ = RunDirectory(texts_run).read_findings().summaries
    facts = summary.generated
    assert facts is not None
    counts = RunDirectory(texts_run).read_responses().benchmark("facts").missing_counts()["tiny-a"]
    assert (facts.texts, facts.refused, facts.unparseable) == (48, counts.get("refused", 0), counts.get("unparseable", 0))
    assert facts.found == summary.answered
    assert summary.self_check_questions == facts.checked == 16


def test_verification_reads_the_texts_again(texts_run: Path, workplace: Path, evalspec: Command) -> None:
    spoken = evalspec("verify", texts_run, "--trust", "team.yaml", "--recompute", cwd=workplace)
    assert spoken.code == 0, spoken.out + spoken.err
    assert "recomputed" in spoken.out
    spoken = evalspec("verify", texts_run, "--trust", "team.yaml", "--rescore", "5", cwd=workplace)
    assert spoken.code == 3
    assert "benchmark 'facts': its answers are texts" in spoken.out


def altered(responses: Responses, **changed: object) -> Responses:
    """Return responses to the one benchmark with some of their arrays replaced."""
    return replace(responses, benchmarks=(replace(responses.benchmarks[0], **changed),))  # type: ignore[arg-type] # arrays


def test_a_text_a_choice_a_reason_or_a_score_that_does_not_follow_is_named(texts_run: Path) -> None:
    folder = RunDirectory(texts_run)
    responses, protocol, bank = folder.read_responses(), folder.read_protocol(), folder.read_questions()
    questions = {entry.benchmark: entry.questions for entry in bank.sets}
    assert row_faults(responses, protocol, questions) == ()
    entry = responses.benchmark("facts")
    assert entry.texts is not None
    at = f"/facts/tiny-b/{entry.questions[3]}/1"
    texts, choices = entry.texts.copy(), entry.choices.copy()
    right = {question.id: question.answer for question in questions["facts"]}[entry.questions[3]]
    texts[1, 3, 1], choices[1, 3, 1] = "ABCD"[right], right
    scores, reasons = entry.scores.copy(), entry.reasons.copy()
    scores[1, 3, 1], reasons[1, 3, 1] = 1.0, Reason.NONE
    forged = altered(responses, texts=texts, choices=choices, scores=scores, reasons=reasons)
    assert row_faults(forged, protocol, questions) == ()  # a whole forgery is told by the signature, or by writing again
    wrong, other, silent = scores.copy(), texts.copy(), reasons.copy()
    wrong[1, 3, 1], other[1, 3, 1] = 0.0, "zz"
    assert [fault.path for fault in row_faults(altered(forged, scores=wrong), protocol, questions)] == [f"{at}/score"]
    assert [fault.path for fault in row_faults(altered(forged, texts=other), protocol, questions)] == [f"{at}/choice"]
    index = np.flatnonzero(reasons[0, :, 0] == Reason.UNPARSEABLE)[0]
    silent[0, index, 0] = Reason.REFUSED
    named = [fault.path for fault in row_faults(altered(forged, reasons=silent), protocol, questions)]
    assert named == [f"/facts/tiny-a/{entry.questions[index]}/0/reason"]
    assert len(row_faults(altered(responses, texts=None), protocol, questions)) == entry.scores.size


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(texts_run: Path, workplace: Path, evalspec: Command, make: SimpleNamespace) -> None:
    cache = workplace / "killed-cache"
    command = [sys.executable, "-m", "evalspec", "run", "texts.yaml", "--cache", "killed-cache", "--out", "killed", *OPTIONS]
    with subprocess.Popen(
        command, cwd=workplace, env=make.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:  # fmt: skip
        limit = time.monotonic() + PATIENCE
        while len(batches_in(cache)) < 3:
            assert running.poll() is None
            assert time.monotonic() < limit, "nothing was generated"
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(timeout=30)
    before = batches_in(cache)
    spoken = evalspec("run", "texts.yaml", "--cache", "killed-cache", "--out", "killed", *OPTIONS, cwd=workplace)
    assert spoken.code == 0, spoken.err
    assert (workplace / "killed" / "responses.parquet").read_bytes() == (texts_run / "responses.parquet").read_bytes()
    after = batches_in(cache)
    assert set(before) <= set(after)
    assert len(set(after)) == len(after)
    assert len(after) == len(batches_in(workplace / "texts-cache"))


def batches_in(cache: Path) -> list[tuple[str, str]]:
    """Return every batch of the journal: its job and its number."""
    return [
        (path.stem, found)
        for path in sorted((cache / "journal").glob("*.jsonl"))
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n") and '"kind":"batch"' in line
        for found in re.findall(r'"index":(\d+)', line)
    ]


def canaries(texts_run: Path) -> set[str]:
    """Return what models wrote and nobody else: long parts of their texts that no encoding of a file would change."""
    texts = [text for text in pq.read_table(texts_run / "responses.parquet").column("text").to_pylist() if text]
    parts = {part.strip() for text in texts for part in re.findall(r"[A-Za-z0-9 .,:;?]{8,}", text)}
    return {part for part in parts if len(part) >= 8}


def leaves(folder: Path) -> Mapping[str, bytes]:
    """Return the content of every file in a folder, and the values of its tables."""
    found = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    tables = {f"{path} values": repr(pq.read_table(path).to_pydict()).encode() for path in folder.rglob("*.parquet")}
    return {**found, **tables}


@pytest.mark.slow
def test_texts_of_secret_questions_stand_in_no_file_and_on_no_console(texts_run: Path, workplace: Path, evalspec: Command) -> None:
    written = canaries(texts_run)
    assert len(written) >= 5
    assert any(part.encode() in content for part in written for content in leaves(texts_run).values())
    said = [
        evalspec("run", write(workplace, "quiet", disclosure="none"), "--cache", "quiet-cache", *OPTIONS, cwd=workplace),
        evalspec("run", "quiet.yaml", "--cache", "quiet-cache", "--json", *OPTIONS, cwd=workplace),
        evalspec("plan", "quiet.yaml", "--cache", "quiet-cache", "--token-budget", "160", cwd=workplace),
        evalspec("verify", "reports/quiet", "--trust", "team.yaml", "--recompute", cwd=workplace),
    ]
    assert [spoken.code for spoken in said] == [0] * 4, [spoken.err for spoken in said]
    places = {**leaves(workplace / "reports" / "quiet"), "console": "".join(spoken.out + spoken.err for spoken in said).encode()}
    places |= leaves(workplace / "quiet-cache")  # not even the journal, which keeps texts of questions that are not secret
    assert {part: where for part in written for where, content in places.items() if part.encode() in content} == {}
    shown, quiet = (RunDirectory(folder).read_responses().benchmark("facts") for folder in (texts_run, workplace / "reports" / "quiet"))
    assert quiet.texts is None
    assert np.nansum(quiet.scores) == np.nansum(shown.scores)
    assert quiet.missing_counts() == shown.missing_counts()


def test_missing_answers_and_prompts_without_room_stop_a_run_with_plain_words(workplace: Path, texts_run: Path, evalspec: Command) -> None:
    assert texts_run.is_dir()  # its texts are in the journal
    spoken = evalspec("run", write(workplace, "strict", missing="error"), "--cache", "texts-cache", *OPTIONS, cwd=workplace)
    assert spoken.code == 3
    assert re.search(r"model 'tiny-a' has missing answers on benchmark 'facts' \((\d+ refused, )?\d+ unparseable\)", spoken.err)
    spoken = evalspec("plan", write(workplace, "long", tokens=600), "--cache", "texts-cache", cwd=workplace)
    assert spoken.code == 3
    assert "its answer up to 600; model 'tiny-a' reads at most 512" in spoken.err
