"""Responses that the weights do not give are found by scoring some questions again, however well everything else was forged and signed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.gating import gate
from evalspec.outlook import check_tests
from evalspec.pipeline import report
from evalspec.protocols import Background
from evalspec.sealing import Seal
from evalspec.settings import Settings
from evalspec.signing.keys import load_signer
from evalspec.signing.trust import TrustedSigner, read_trust
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

Change = Callable[[BenchmarkResponses, Sequence[int]], dict[str, Any]]


def forge(run: Run, folder: Path, change: Change, *, benchmark: str = "open") -> Path:
    """Change a benchmark's responses and make findings, verdict and report fit them, all signed with the genuine key."""
    shutil.copytree(run.folder, folder)
    directory = RunDirectory(folder)
    protocol, responses = directory.read_protocol(), directory.read_responses()
    entry = responses.benchmark(benchmark)
    keys = [question.answer for question in directory.read_questions().benchmark("open").questions] if benchmark == "open" else []
    forged = replace(entry, **change(entry, keys))
    _rebuild(directory, protocol, replace(responses, benchmarks=tuple(forged if one is entry else one for one in responses.benchmarks)))
    signer = load_signer(run.key, None)
    settings = Settings(cache=folder.parent / "cache", hub_cache=folder.parent / "hub", pdf=False)
    report(folder, settings, seal_with=Seal(signer, TrustedSigner.of(signer.certificate).name))
    return folder


def _rebuild(directory: RunDirectory, protocol: Protocol, responses: Responses) -> None:
    digest = directory.write_responses(responses, protocol)
    known = Background(models=directory.read_study().models, read_questions=directory.read_questions)
    findings = analyse(directory.read_responses(), protocol, catalogue(), responses_sha256=digest, gate=gate, background=known)
    forecasts = check_tests(protocol)
    from evalspec.planning.forecasts import forecast_gates

    named = directory.write_findings(findings)
    directory.write_verdict(gate(findings, protocol.thresholds, forecast_gates(protocol, forecasts), findings_sha256=named))


def all_right(entry: BenchmarkResponses, keys: Sequence[int]) -> dict[str, Any]:
    """Let the first model choose the key everywhere: log-probabilities, choices and scores all fit each other."""
    logprobs, choices, scores = entry.logprobs.copy(), entry.choices.copy(), entry.scores.copy()
    for place, key in enumerate(keys):
        best = int(np.nanargmax(logprobs[0, place]))
        logprobs[0, place, [key, best]] = logprobs[0, place, [best, key]]
    choices[0, :, 0], scores[0] = keys, 1.0
    return {"logprobs": logprobs, "choices": choices, "scores": scores, "reasons": np.where(entry.reasons == 0, entry.reasons, 0)}


def only_scores(entry: BenchmarkResponses, _keys: Sequence[int]) -> dict[str, Any]:
    scores = entry.scores.copy()
    scores[0] = 1.0
    return {"scores": scores, "reasons": np.zeros_like(entry.reasons)}


def only_choices(entry: BenchmarkResponses, keys: Sequence[int]) -> dict[str, Any]:
    choices, scores = entry.choices.copy(), entry.scores.copy()
    choices[0, :, 0], scores[0] = keys, 1.0
    return {"choices": choices, "scores": scores, "reasons": np.zeros_like(entry.reasons)}


def nothing_but_scores(entry: BenchmarkResponses, _keys: Sequence[int]) -> dict[str, Any]:
    """Let the first model be right everywhere, and keep nothing by which that could be doubted."""
    logprobs, choices, scores = entry.logprobs.copy(), entry.choices.copy(), entry.scores.copy()
    logprobs[0], choices[0], scores[0] = np.nan, -1, 1.0
    return {"logprobs": logprobs, "choices": choices, "scores": scores, "reasons": np.zeros_like(entry.reasons)}


def rescored(evalspec: Command, run: Run, folder: Path, *more: str, number: int = 50) -> Any:
    return evalspec("verify", folder, "--trust", run.trust, "--rescore", str(number), *more, cwd=run.workplace)


def test_recorded_answers_are_given_again_by_the_weights(scored: Run, evalspec: Command) -> None:
    spoken = rescored(evalspec, scored, scored.folder, "--seed", "5", "--json")
    assert spoken.code == 0, spoken.out
    told = spoken.content["rescoring"]
    assert told["state"] == "rescored"
    assert "re-scored (--rescore 50 --seed 5): log-probabilities and choices are those that the weights give" in told["text"]
    assert re.search(r"tiny-a on open: \d+ questions, largest difference \S+ nats, allowed 0\.001", told["text"])
    assert "tiny-b on named: " in told["text"]
    assert "not re-scored: benchmark 'secret': its questions are hidden" in told["text"]


def test_forged_answers_that_everything_else_follows_from_are_found(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = forge(scored, tmp_path / "forged", all_right)
    plain = evalspec("verify", folder, "--trust", scored.trust, "--recompute", cwd=scored.workplace)
    assert (plain.code, "its text is what they compose to" in plain.out) == (0, True), plain.out
    spoken = rescored(evalspec, scored, folder, "--seed", "1", number=12)
    assert spoken.code == 1, spoken.out
    named = re.findall(r"differs by \S+ at responses\.parquet/open/tiny-a/(offennummer\d+)/logprobs/[A-D]: recorded -", spoken.out)
    wrong = _wrong_questions(scored)
    assert 0 < len(named) <= 12
    assert set(named) <= wrong
    assert "tiny-b/offen" not in spoken.out


def _wrong_questions(run: Run) -> set[str]:
    """The questions that the first model really answered wrong, all of which were forged."""
    entry = RunDirectory(run.folder).read_responses().benchmark("open")
    return {question for question, score in zip(entry.questions, entry.scores[0, :, 0], strict=True) if score != 1}


def test_the_seed_that_was_printed_draws_the_same_questions(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = forge(scored, tmp_path / "forged", all_right)
    first = rescored(evalspec, scored, folder, number=6).out
    seed = re.search(r"--rescore 6 --seed (\d+)", first)
    assert seed
    assert rescored(evalspec, scored, folder, "--seed", seed[1], number=6).out == first


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (only_scores, r"differs at responses\.parquet/open/tiny-a/offennummer\d+/score: recorded 1\.0, recomputed '0, by its choice'"),
        (
            only_choices,
            r"differs at responses\.parquet/open/tiny-a/offennummer\d+/choice: recorded '[A-D]', recomputed '[A-D], by its log-probabilities'",
        ),
        (
            nothing_but_scores,
            r"responses\.parquet/open/tiny-a/logprobs: recorded None, recomputed 'the log-probabilities that its choices follow from'",
        ),
    ],
)
def test_rows_that_do_not_fit_in_themselves_are_found_without_any_model(
    scored: Run, tmp_path: Path, evalspec: Command, change: Change, says: str
) -> None:
    folder = forge(scored, tmp_path / "forged", change)
    spoken = evalspec("verify", folder, "--trust", scored.trust, "--recompute", cwd=scored.workplace)
    assert (spoken.code, bool(re.search(says, spoken.out))) == (1, True), spoken.out
    again = rescored(evalspec, scored, folder, "--seed", "3", number=1)
    assert (again.code, bool(re.search(says, again.out))) == (1, True), again.out


def test_weights_are_known_by_their_digest_wherever_they_lie(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    elsewhere = tmp_path / "weights" / "deep"
    shutil.copytree(scored.workplace / "checkpoints" / "tiny-a", elsewhere / "renamed")
    shutil.copytree(scored.workplace / "checkpoints" / "tiny-c", elsewhere / "tiny-b")  # another model under its name
    folder = Path(shutil.copytree(scored.folder, tmp_path / "run"))
    spoken = evalspec("verify", folder, "--trust", scored.trust, "--rescore", "4", "--models", tmp_path / "weights", cwd=tmp_path)
    assert spoken.code == 0, spoken.out
    assert "tiny-a on open: 4 questions" in spoken.out
    assert re.search(r"not re-scored: model 'tiny-b': the weights with the digest [0-9a-f]{16}… were not found \(\d of the same size", spoken.out)
    assert "not re-scored: benchmark 'named': its questions are not part of the report, and the study's own file was not found" in spoken.out
    named = evalspec(
        "verify", folder, "--trust", scored.trust, "--rescore", "500", "--models", tmp_path / "weights", "--study", scored.workplace / "study.yaml",
        cwd=tmp_path,
    )  # fmt: skip
    assert (named.code, "tiny-a on named: 12 questions" in named.out) == (0, True), named.out


def test_files_of_a_hub_cache_are_links_and_are_read(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    linked, blobs = tmp_path / "models--lab--a" / "snapshots" / ("0" * 40), tmp_path / "blobs"
    linked.mkdir(parents=True)
    blobs.mkdir()
    for file in (scored.workplace / "checkpoints" / "tiny-a").iterdir():
        shutil.copy2(file, blobs / file.name)
        (linked / file.name).symlink_to(blobs / file.name)
    spoken = rescored(evalspec, scored, scored.folder, "--models", str(tmp_path / "models--lab--a"), number=2)
    assert (spoken.code, "tiny-a on " in spoken.out) == (0, True), spoken.out


def test_a_folder_that_holds_more_than_the_protocol_names_is_not_taken(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = Path(shutil.copytree(scored.workplace / "checkpoints" / "tiny-a", tmp_path / "models" / "tiny-a"))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    spoken = rescored(evalspec, scored, scored.folder, "--models", str(tmp_path / "models"), number=2)
    assert (spoken.code, "also has chat_template.jinja, which the protocol does not name" in spoken.out) == (3, True), spoken.out


def test_where_nothing_can_be_scored_again_it_is_said_and_the_code_is_3(scored: Run, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    (tmp_path / "empty").mkdir()
    absent = rescored(evalspec, scored, scored.folder, "--models", str(tmp_path / "empty"))
    assert (absent.code, "nothing was re-scored" in absent.out, "--models DIR" in absent.out) == (3, True, True), absent.out
    replayed = rescored(evalspec, recorded, recorded.folder)
    assert replayed.code == 3
    assert "not re-scored: model 'good': its responses were recorded elsewhere, so there are no weights to score" in replayed.out


def test_hidden_questions_are_not_shown_by_scoring_again(scored: Run, evalspec: Command, canaries: Sequence[str]) -> None:
    spoken = rescored(evalspec, scored, scored.folder, "--json")
    assert canaries[0] not in spoken.out + spoken.err
    assert f"{canaries[1]}frage" not in spoken.out + spoken.err


def test_altered_content_is_not_scored_again(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = Path(shutil.copytree(scored.folder, tmp_path / "copy"))
    (folder / "protocol.json").write_text(json.dumps({}))
    spoken = rescored(evalspec, scored, folder)
    assert (spoken.code, "not re-scored: the content is not as it was signed" in spoken.out) == (1, True)


@pytest.mark.parametrize("arguments", [("--seed", "1"), ("--models", "x"), ("--rescore", "0"), ("--rescore", "3", "--seed", "-1")])
def test_options_that_do_not_fit_are_usage_errors(scored: Run, evalspec: Command, arguments: tuple[str, ...]) -> None:
    assert evalspec("verify", scored.folder, *arguments, cwd=scored.workplace).code == 2


def test_a_protocol_that_states_of_the_weights_what_is_not_so_is_told(scored: Run, tmp_path: Path, evalspec: Command) -> None:
    shutil.copytree(scored.folder, tmp_path / "forged")
    directory = RunDirectory(tmp_path / "forged")
    protocol, responses = directory.read_protocol(), directory.read_responses()
    first = protocol.models[0]
    larger = first.model_copy(update={"identity": first.identity.model_copy(update={"parameters": 8_000_000_000})})
    protocol = protocol.model_copy(update={"models": (larger, *protocol.models[1:])})
    bank, schedule = directory.read_questions(), directory.read_schedule()
    hidden = {question.id for benchmark in protocol.benchmarks if benchmark.disclosure != "full" for question in benchmark.questions}
    assert hidden
    directory.write_protocol(protocol)
    directory.write_schedule(schedule.model_copy(update={"protocol_sha256": protocol.digest()}))
    directory.write_questions(protocol, bank)
    _rebuild(directory, protocol, replace(responses, protocol_sha256=protocol.digest()))
    signer = load_signer(scored.key, None)
    settings = Settings(cache=tmp_path / "cache", hub_cache=tmp_path / "hub", pdf=False)
    report(directory.path, settings, seal_with=Seal(signer, TrustedSigner.of(signer.certificate).name))
    spoken = rescored(evalspec, scored, directory.path, number=4)
    assert (spoken.code, "the protocol states another parameters than its files have" in spoken.out) == (1, True), spoken.out


@pytest.fixture(scope="module")
def taken_over(scored: Run, tmp_path_factory: pytest.TempPathFactory, evalspec: Command) -> Run:
    """A run of the same questions whose two models are taken from the scored run, under other names."""
    place = tmp_path_factory.mktemp("taken-over")
    for name in ("open.jsonl", "named.jsonl", "secret.jsonl", "signer.p12", "team.yaml"):
        shutil.copy2(scored.workplace / name, place / name)
    shutil.copytree(scored.folder, place / "earlier")
    text, signer = (scored.workplace / "study.yaml").read_text(), read_trust(scored.trust)[0].fingerprint
    for new, old in (("first", "tiny-a"), ("second", "tiny-b")):
        text = text.replace(
            f"id: {old}, source: {{path: checkpoints/{old}}}", f'id: {new}, source: {{run: earlier, model: {old}, signer: "{signer}"}}'
        )
    (place / "next.yaml").write_text(text.replace("model: tiny-a, at_most", "model: first, at_most"))
    options = ("--key", "signer.p12", "--no-pdf", "--quiet", "--out", "out", "--cache", scored.cache)
    spoken = evalspec("run", "next.yaml", *options, cwd=place)
    assert spoken.code == 0, spoken.err
    return replace(scored, workplace=place, folder=place / "out", spoken=spoken)


def test_a_model_that_was_taken_over_is_scored_again_from_its_weights(scored: Run, taken_over: Run, evalspec: Command) -> None:
    spoken = rescored(evalspec, taken_over, taken_over.folder, "--seed", "5", "--models", str(scored.workplace / "checkpoints"))
    assert spoken.code == 0, spoken.out
    for model in ("first", "second"):
        assert re.search(rf"{model} on open: \d+ questions, largest difference \S+ nats, allowed 0\.001", spoken.out), spoken.out
        assert f"{model} on named: " in spoken.out
    assert "benchmark 'secret': its questions are hidden" in spoken.out


def test_forged_answers_of_a_model_that_was_taken_over_are_found(scored: Run, taken_over: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = forge(taken_over, tmp_path / "forged", all_right)
    plain = evalspec("verify", folder, "--trust", taken_over.trust, "--recompute", cwd=taken_over.workplace)
    assert (plain.code, "its text is what they compose to" in plain.out) == (0, True), plain.out
    spoken = rescored(evalspec, taken_over, folder, "--seed", "1", "--models", str(scored.workplace / "checkpoints"), number=12)
    assert spoken.code == 1, spoken.out
    named = set(re.findall(r"differs by \S+ at responses\.parquet/open/first/(offennummer\d+)/logprobs/[A-D]: recorded -", spoken.out))
    assert named
    assert named <= _wrong_questions(scored)
    assert "/second/" not in spoken.out
    beside = evalspec("verify", folder, "--trust", taken_over.trust, "--earlier", taken_over.workplace / "earlier", cwd=taken_over.workplace)
    assert (beside.code, "at responses.parquet/open/first/" in beside.out) == (1, True), beside.out


def test_weights_of_a_model_that_was_taken_over_are_known_by_their_digest(scored: Run, taken_over: Run, tmp_path: Path, evalspec: Command) -> None:
    absent = rescored(evalspec, taken_over, taken_over.folder)
    assert (absent.code, "nothing was re-scored" in absent.out, "--models DIR" in absent.out) == (3, True, True), absent.out
    for name in ("tiny-a", "tiny-b"):
        copy = Path(shutil.copytree(scored.workplace / "checkpoints" / name, tmp_path / "models" / name))
        weights = bytearray((copy / "model.safetensors").read_bytes())
        weights[-3] ^= 1
        (copy / "model.safetensors").write_bytes(weights)
    changed = rescored(evalspec, taken_over, taken_over.folder, "--models", str(tmp_path / "models"))
    assert changed.code == 3, changed.out
    for model in ("first", "second"):
        told = (
            rf"not re-scored: model '{model}': the weights with the digest [0-9a-f]{{16}}… were not found \(\d of the same size, but other content\)"
        )
        assert re.search(told, changed.out), changed.out
