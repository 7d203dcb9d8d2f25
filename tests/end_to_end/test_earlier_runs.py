"""A model is taken from an earlier signed run: its signature, questions, prompts and settings are checked, and the report says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.responses import Reason
from evalspec.signing.dsse import parse_envelope, payload_of, sign
from evalspec.signing.keys import FileSigner, load_signer, make_key
from evalspec.signing.seal import seal
from evalspec.signing.statement import parse_statement
from evalspec.signing.trust import TrustedSigner, read_trust, write_trust
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

TAKEN = """apiVersion: evalspec/v1
title: Is the release better than the last one?
seed: 1
models:
  - {{id: now, source: {{responses: now.csv}}}}
  - {{id: before, source: {{run: earlier, model: good, signer: "{signer}"}}}}
benchmarks:
  - {{id: small, source: {{file: questions.jsonl}}, scoring: {{method: letter}}}}
analyses:
  - {{id: accuracy, kind: intervals, method: wilson, level: 0.95}}
  - {{id: pair, kind: mcnemar, family: all_pairs}}
"""


def fingerprint(run: Run) -> str:
    return read_trust(run.trust)[0].fingerprint


@pytest.fixture
def place(recorded: Run, tmp_path: Path) -> Path:
    """A study that takes a model from a copy of the recorded run, with the questions of that run."""
    shutil.copytree(recorded.folder, tmp_path / "earlier")
    for name in ("questions.jsonl", "signer.p12", "team.yaml"):
        shutil.copy2(recorded.workplace / name, tmp_path / name)
    (tmp_path / "now.csv").write_text("question_id,score\n" + "".join(f"kleinnummer{number:03},{number % 2}\n" for number in range(40)))
    (tmp_path / "next.yaml").write_text(TAKEN.format(signer=fingerprint(recorded)))
    return tmp_path


def run(evalspec: Command, place: Path, *more: str) -> Any:
    return evalspec("run", "next.yaml", "--key", "signer.p12", "--no-pdf", "--quiet", "--out", "out", *more, cwd=place)


def test_answers_are_those_of_the_earlier_run_and_the_report_says_where_they_come_from(place: Path, evalspec: Command) -> None:
    spoken = run(evalspec, place)
    assert spoken.code == 0, spoken.err
    here, there = RunDirectory(place / "out"), RunDirectory(place / "earlier")
    rows, taken = there.read_responses().benchmark("small"), here.read_responses().benchmark("small")
    assert np.array_equal(taken.scores[1], rows.scores[rows.models.index("good")])
    identity = here.read_protocol().model("before").identity
    assert identity.kind == "earlier_run"
    assert identity.system == there.read_protocol().model("good").identity
    assert identity.manifest_sha256 == sha256_hex((place / "earlier" / "manifest.dsse.json").read_bytes())
    assert (place / "out" / f"earlier-{identity.manifest_sha256}.dsse.json").is_file()
    page = (place / "out" / "report.html").read_text()
    assert "This model’s answers are those of an earlier run" in page
    for mark in ("Where the answers of each model come from", '<th scope="row">Earlier run</th>', '<th scope="row">Imported</th>'):
        assert mark in page
    assert identity.run_id in page
    origin = here.read_responses().origin("before", "small")
    assert (origin.route, origin.earlier_route) == ("earlier_run", "recorded")


def test_the_new_run_is_checked_and_recomputed_from_its_own_files(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    shutil.move(place / "earlier", place / "gone")
    spoken = evalspec("verify", "out", "--trust", "team.yaml", "--recompute", cwd=place)
    assert (spoken.code, "recomputed: findings" in spoken.out) == (0, True), spoken.out
    assert "model before is taken from the run" in spoken.out
    assert "signed by Example Lab (trusted)" in spoken.out
    spoken = evalspec("verify", "out", "--trust", "team.yaml", "--earlier", "gone", cwd=place)
    assert (spoken.code, "as they are there: the answers of before" in spoken.out) == (0, True), spoken.out
    spoken = evalspec("verify", "out", "--trust", "team.yaml", "--earlier", "earlier", cwd=place)
    assert (spoken.code, "there is no folder earlier" in spoken.err) == (2, True), spoken.err


def test_a_lock_holds_which_run_a_model_is_taken_from(place: Path, evalspec: Command) -> None:
    assert evalspec("lock", "next.yaml", "--key", "signer.p12", cwd=place).code == 0
    statement = json.loads(payload_of(parse_envelope((place / "next.lock.dsse.json").read_bytes(), limit=2**24)))
    models = {model["id"]: model for model in statement["predicate"]["models"]}
    assert models["before"]["kind"] == "earlier_run"
    assert models["before"]["sha256"] == sha256_hex((place / "earlier" / "responses.parquet").read_bytes())
    assert statement["predicate"]["before"]["replayed"] == ["now", "before"]
    assert run(evalspec, place).code == 0
    spoken = evalspec("verify", "out", "--trust", "team.yaml", cwd=place)
    assert (spoken.code, "the run is as locked" in spoken.out) == (0, True), spoken.out


def edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        text = (place / name).read_text()
        assert old in text
        (place / name).write_text(text.replace(old, new))

    return edit


def renamed_question(place: Path) -> None:
    for name in ("questions.jsonl", "now.csv"):
        edited(name, "kleinnummer007", "kleinnummer999")(place)


def sealed_by_another(place: Path) -> None:
    key = make_key("Example Lab", years=1)
    statement = parse_statement(payload_of(parse_envelope((place / "earlier" / "manifest.dsse.json").read_bytes())))
    claim = statement.predicate.model_copy(update={"pdf": None})
    seal(place / "earlier", FileSigner(key.private, key.certificate), claim, pdf_skipped="not asked for")


def answers_of_another_protocol(place: Path) -> None:
    """Let the genuine key sign a run whose questions are said to be others than those that were answered."""
    earlier = place / "earlier"
    protocol = json.loads((earlier / "protocol.json").read_bytes())
    protocol["benchmarks"][0]["licence"] = "CC0-1.0"
    (earlier / "protocol.json").write_bytes(canonical_json(protocol))
    seal_again(place, earlier)


def linked_inside(place: Path) -> None:
    shutil.move(place / "earlier" / "verdict.json", place / "verdict.json")
    (place / "earlier" / "verdict.json").symlink_to(place / "verdict.json")


def linked_away(place: Path) -> None:
    shutil.move(place / "earlier", place.parent / f"{place.name}-outside")
    (place / "earlier").symlink_to(place.parent / f"{place.name}-outside")


REFUSED: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "another prompt": (
        edited("next.yaml", "method: letter}", 'method: letter, prompt: "{question}\\n{choices}\\nIs:"}'),
        3,
        "another prompt template",
    ),
    "another method": (edited("next.yaml", "method: letter", "method: option"), 3, "was scored with method: letter, and is now with method: option"),
    "another text": (edited("questions.jsonl", "kleinfrage3 ", "kleinfrage3, "), 3, "question kleinnummer003 was asked there with another text, key"),
    "another question": (renamed_question, 3, "question kleinnummer999 was not asked there"),
    "another benchmark": (edited("next.yaml", "id: small", "id: tiny"), 3, "it has no benchmark 'tiny'; it has small"),
    "hidden questions": (edited("next.yaml", "letter}}", "letter}, disclosure: none}"), 3, "was disclosed as full and is now as none"),
    "an unknown model": (edited("next.yaml", "model: good", "model: best"), 3, "has no model 'best'; it has good, poor"),
    "no such run": (edited("next.yaml", "run: earlier", "run: later"), 2, 'there is no folder "later"'),
    "a run outside": (edited("next.yaml", "run: earlier", "run: .."), 2, "out of the folder that this study may read"),
    "another signer": (sealed_by_another, 3, "and the study names SHA256:"),
    "an altered run": (edited("earlier/verdict.json", "passed", "failed"), 3, "is not as it was signed: ALTERED verdict.json"),
    "a fingerprint that is none": (edited("next.yaml", 'signer: "SHA256:', 'signer: "SHA1:'), 2, "must be the fingerprint of a key"),
    "answers to another protocol": (answers_of_another_protocol, 3, "its responses answer another protocol than its own"),
    "a linked file": (linked_inside, 3, "is not as it was signed: SYMLINK verdict.json"),
    "a linked run": (linked_away, 2, "leads, through a symbolic link, out of the folder"),
    "an absolute path": (edited("next.yaml", "run: earlier", "run: /earlier"), 2, "absolute"),
    "a file for a run": (edited("next.yaml", "run: earlier", "run: team.yaml"), 2, "team.yaml"),
    "a name that is a path": (edited("next.yaml", "model: good", "model: ../good"), 2, "../good"),
    "an unlisted file": (lambda place: (place / "earlier" / "more.txt").write_text("x") and None, 3, "UNLISTED more.txt"),
    "a precision": (edited("next.yaml", "id: before,", "id: before, precision: float32,"), 2, "cannot be scored again in float32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_earlier_run_does_not_answer_is_refused_by_name(name: str, place: Path, evalspec: Command) -> None:
    change, code, told = REFUSED[name]
    change(place)
    spoken = evalspec("plan", "next.yaml", cwd=place)
    assert (spoken.code, told in spoken.err) == (code, True), spoken.err


def test_validate_looks_at_the_earlier_run(place: Path, evalspec: Command) -> None:
    assert evalspec("validate", "next.yaml", cwd=place).code == 0
    edited("earlier/verdict.json", "passed", "failed")(place)
    assert "ALTERED verdict.json" in evalspec("validate", "next.yaml", cwd=place).err


def test_a_part_of_the_questions_may_be_asked(place: Path, evalspec: Command) -> None:
    edited("next.yaml", "source: {file: questions.jsonl}", "source: {file: questions.jsonl}, sample: {method: simple, size: 15}")(place)
    assert run(evalspec, place).code == 0
    assert RunDirectory(place / "out").read_responses().benchmark("small").scores.shape == (2, 15, 1)
    assert evalspec("verify", "out", "--trust", "team.yaml", "--recompute", "--earlier", "earlier", cwd=place).code == 0


def test_a_model_is_not_taken_over_twice(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    edited("next.yaml", "run: earlier, model: good", "run: out, model: before")(place)
    spoken = evalspec("plan", "next.yaml", cwd=place)
    assert (spoken.code, "took model 'before' from another run itself, earlier" in spoken.err) == (3, True), spoken.err


def seal_again(place: Path, folder: Path | None = None) -> None:
    """Sign the new run, or another one, once more with the genuine key, whatever is in it."""
    out = folder or place / "out"
    claim = parse_statement(payload_of(parse_envelope((out / "manifest.dsse.json").read_bytes()))).predicate
    protocol = {"sha256": sha256_hex((out / "protocol.json").read_bytes())}
    changed = type(claim).model_validate({**claim.model_dump(), "protocol": protocol})
    seal(out, load_signer(place / "signer.p12", None), changed, pdf_skipped="not asked for")


def test_answers_that_are_not_those_of_the_earlier_run_are_found_beside_it(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    directory = RunDirectory(place / "out")
    responses = directory.read_responses()
    (entry,) = responses.benchmarks
    scores = entry.scores.copy()
    scores[1, 38] = 1.0
    directory.write_responses(replace(responses, benchmarks=(replace(entry, scores=scores),)), directory.read_protocol())
    seal_again(place)
    spoken = evalspec("verify", "out", "--trust", "team.yaml", "--earlier", "earlier", cwd=place)
    assert spoken.code == 1
    assert "differs by 1 at responses.parquet/small/before/kleinnummer038/score: recorded 1.0, recomputed 0.0" in spoken.out


@pytest.mark.parametrize("part", ["reasons", "choices"])
def test_reasons_and_choices_that_are_not_those_of_the_earlier_run_are_found_too(part: str, place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    directory = RunDirectory(place / "out")
    responses = directory.read_responses()
    (entry,) = responses.benchmarks
    values = getattr(entry, part).copy()
    scores = entry.scores.copy()
    if part == "reasons":
        values[1, 38], scores[1, 38] = Reason.REFUSED, np.nan
    else:
        values[1, 38] = 2
    directory.write_responses(replace(responses, benchmarks=(replace(entry, scores=scores, **{part: values}),)), directory.read_protocol())
    seal_again(place)
    spoken = evalspec("verify", "out", "--trust", "team.yaml", "--earlier", "earlier", cwd=place)
    assert (spoken.code, f"responses.parquet/small/before/kleinnummer038/{part[:-1]}:" in spoken.out) == (1, True), spoken.out


def test_an_earlier_run_that_is_named_in_other_letters_is_checked_all_the_same(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    content = json.loads((place / "out" / "protocol.json").read_bytes())
    content["models"][1]["identity"]["run_id"] = "another"
    text = json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    (place / "out" / "protocol.json").write_text(text.replace('"earlier_run"', '"earlier\\u005frun"'))
    seal_again(place)
    spoken = evalspec("verify", "out", "--trust", "team.yaml", cwd=place)
    assert (spoken.code, "states another run id than the protocol" in spoken.out) == (1, True), spoken.out


def test_a_report_that_rests_on_a_run_whose_key_was_revoked_is_not_trusted(place: Path, evalspec: Command) -> None:
    other = make_key("Other Lab", years=1)
    claim = parse_statement(payload_of(parse_envelope((place / "earlier" / "manifest.dsse.json").read_bytes()))).predicate
    seal(place / "earlier", FileSigner(other.private, other.certificate), claim, pdf_skipped="not asked for")
    (ours,), theirs = read_trust(place / "team.yaml"), TrustedSigner.of(other.certificate)
    edited("next.yaml", ours.fingerprint, theirs.fingerprint)(place)
    assert run(evalspec, place).code == 0
    for name, entry, code, told in (
        ("known", theirs, 0, "signed by Other Lab (trusted)"),
        (
            "revoked",
            theirs.model_copy(update={"revoked_at": datetime(2026, 11, 30, tzinfo=UTC)}),
            4,
            "come from a run that was signed with a revoked",
        ),
    ):
        write_trust(place / f"{name}.yaml", (ours, entry))
        spoken = evalspec("verify", "out", "--trust", f"{name}.yaml", cwd=place)
        assert (spoken.code, told in spoken.out) == (code, True), spoken.out


def test_a_run_that_the_named_key_did_not_sign_is_found_even_under_the_genuine_signature_of_the_report(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    out = place / "out"
    (manifest,) = out.glob("earlier-*.dsse.json")
    key = make_key("Example Lab", years=1)
    forged = sign(payload_of(parse_envelope(manifest.read_bytes())), FileSigner(key.private, key.certificate)).to_json()
    manifest.unlink()
    digest = sha256_hex(forged)
    (out / f"earlier-{digest}.dsse.json").write_bytes(forged)
    protocol = json.loads((out / "protocol.json").read_bytes())
    protocol["models"][1]["identity"]["manifest_sha256"] = digest
    (out / "protocol.json").write_bytes((json.dumps(protocol, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode())
    seal_again(place)
    spoken = evalspec("verify", "out", "--trust", "team.yaml", cwd=place)
    assert (spoken.code, f"EARLIER earlier-{digest}.dsse.json: model before: no signature holds" in spoken.out) == (1, True), spoken.out


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("run_id", "another", "run id"),
        ("responses_sha256", "0" * 64, "digest of responses.parquet"),
        ("protocol_sha256", "0" * 64, "digest of protocol.json"),
        ("model", "poorer", "model"),
        ("signed_at", "2020-01-01T00:00:00Z", "time"),
        ("manifest_sha256", "0" * 64, "not among the signed files"),
        ("signer", "SHA256:" + "A" * 43 + "=", "the certificate is of the key"),
    ],
)
def test_a_protocol_that_says_otherwise_of_the_earlier_run_than_its_manifest_is_found(
    field: str, value: str, told: str, place: Path, evalspec: Command
) -> None:
    assert run(evalspec, place).code == 0
    protocol = json.loads((place / "out" / "protocol.json").read_bytes())
    protocol["models"][1]["identity"][field] = value
    (place / "out" / "protocol.json").write_bytes((json.dumps(protocol, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode())
    seal_again(place)
    spoken = evalspec("verify", "out", "--trust", "team.yaml", cwd=place)
    assert (spoken.code, told in spoken.out) == (1, True), spoken.out


def test_a_run_of_somebody_unknown_to_the_reader_is_called_that(place: Path, evalspec: Command) -> None:
    other = make_key("Other Lab", years=1)
    claim = parse_statement(payload_of(parse_envelope((place / "earlier" / "manifest.dsse.json").read_bytes()))).predicate
    seal(place / "earlier", FileSigner(other.private, other.certificate), claim, pdf_skipped="not asked for")
    text = (place / "next.yaml").read_text()
    (place / "next.yaml").write_text(text.replace(read_trust(place / "team.yaml")[0].fingerprint, TrustedSigner.of(other.certificate).fingerprint))
    assert run(evalspec, place).code == 0
    spoken = evalspec("verify", "out", "--trust", "team.yaml", cwd=place)
    assert (spoken.code, "signed by Other Lab (NOT TRUSTED)" in spoken.out) == (0, True), spoken.out


def test_models_that_were_scored_are_taken_with_their_log_probabilities_and_hidden_questions(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    for name in ("open.jsonl", "named.jsonl", "secret.jsonl", "signer.p12", "team.yaml"):
        shutil.copy2(scored.workplace / name, tmp_path / name)
    shutil.copytree(scored.folder, tmp_path / "earlier")
    lines = "\n".join(
        f'  - {{id: {new}, source: {{run: earlier, model: {old}, signer: "{fingerprint(scored)}"}}}}'
        for new, old in (("first", "tiny-a"), ("second", "tiny-b"))
    )
    study = (scored.workplace / "study.yaml").read_text()
    first, rest = study.index("models:\n") + len("models:\n"), study.index("benchmarks:")
    (tmp_path / "next.yaml").write_text(study[:first] + lines + "\n" + study[rest:].replace("tiny-a", "first"))
    spoken = run(evalspec, tmp_path, "--cache", str(scored.cache))
    assert spoken.code == 0, spoken.err
    there, here = (RunDirectory(tmp_path / name).read_responses() for name in ("earlier", "out"))
    for old, new in zip(there.benchmarks, here.benchmarks, strict=True):
        assert old.questions == new.questions
        for name in ("scores", "choices", "reasons"):
            assert np.array_equal(getattr(old, name), getattr(new, name), equal_nan=True)
        assert (old.logprobs is None) == (new.logprobs is None)
        assert old.logprobs is None or np.array_equal(old.logprobs, new.logprobs, equal_nan=True)
    rescored = evalspec("verify", "out", "--trust", "team.yaml", "--recompute", "--earlier", "earlier", cwd=tmp_path)
    assert rescored.code == 0, rescored.out
