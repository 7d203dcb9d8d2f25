"""A signed report can hold anything: recomputing it says in plain words why it cannot be done, and ends with 3."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.base import sha256_hex
from evalspec.signing.dsse import parse_envelope, payload_of
from evalspec.signing.keys import load_signer
from evalspec.signing.seal import seal
from evalspec.signing.statement import Claim, Sha256, Tool, parse_statement
from evalspec.store import RunDirectory
from evalspec.surroundings import timestamp

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

Change = Callable[[Any], None]
DIGITS = int("9" * 400)


def as_json(value: object) -> bytes:
    """Return JSON laid out as evalspec does, with Infinity and NaN where they stand."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def seal_as(run: Run, folder: Path) -> None:
    """Seal whatever is there with the genuine key."""
    genuine = parse_statement(payload_of(parse_envelope((run.folder / "manifest.dsse.json").read_bytes()))).predicate
    claim = Claim(
        run_id=genuine.run_id,
        created_at=timestamp(),
        tool=Tool(name="evalspec", version="0"),
        study=Sha256(sha256=sha256_hex((folder / "study.yaml").read_bytes())),
        protocol=Sha256(sha256=sha256_hex((folder / "protocol.json").read_bytes())),
        dataset=genuine.dataset,
        models=genuine.models,
        decision=genuine.decision,
    )
    seal(folder, load_signer(run.key, None), claim, pdf_skipped="not asked for")


def write_chained(run: Run, folder: Path, *, plan: Change | None = None, header: Change | None = None) -> None:
    """Change what study and protocol both say, or the header of the responses, and let every file name its parent's digest again."""
    shutil.copytree(run.folder, folder)
    study, protocol = (json.loads((folder / name).read_bytes()) for name in ("study.json", "protocol.json"))
    if plan is not None:
        plan(study)
        plan(protocol)
    (folder / "study.json").write_bytes(as_json(study))
    (folder / "protocol.json").write_bytes(as_json({**protocol, "study_sha256": sha256_hex(as_json(study))}))
    named = sha256_hex((folder / "protocol.json").read_bytes())
    table = pq.read_table(folder / "responses.parquet")
    content = {**json.loads(table.schema.metadata[b"evalspec"]), "protocol_sha256": named}
    if header is not None:
        header(content)
    pq.write_table(table.replace_schema_metadata({b"evalspec": as_json(content)}), folder / "responses.parquet")
    directory = RunDirectory(folder)
    earlier = RunDirectory(run.folder)
    digest = sha256_hex((folder / "responses.parquet").read_bytes())
    findings = earlier.read_findings().model_copy(update={"protocol_sha256": named, "responses_sha256": digest})
    directory.write_findings(findings)
    directory.write_verdict(earlier.read_verdict().model_copy(update={"findings_sha256": findings.digest()}))
    seal_as(run, folder)


def option(name: str, value: object) -> Change:
    return lambda content: content["analyses"][0]["options"].update({name: value})


def ask_for(kind: str, **options: object) -> Change:
    return lambda content: content["analyses"][0].update(kind=kind, options={"kind": kind, **options})


def check(name: str, value: object) -> Change:
    return lambda content: content["thresholds"]["checks"][0].update({name: value})


PLANS: dict[str, Change] = {
    "an option of another type": option("level", "high"),
    "an option that is unknown": option("colour", "red"),
    "an option out of bounds": option("level", 7.5),
    "infinity": option("level", float("inf")),
    "not a number": option("level", float("nan")),
    "four hundred digits": option("level", DIGITS),
    "a seed below zero": lambda content: content.update(seed=-1),
    "a seed of four hundred digits": lambda content: content.update(seed=DIGITS),
    "a kind that is not installed": ask_for("astrology"),
    "a baseline that is unknown": ask_for("mcnemar", family="vs_baseline", baseline="nobody"),
    "pairs of unknown models": ask_for("mcnemar", family="named", pairs=[["nobody", "good"]]),
    "a kind without its options": ask_for("noninferiority"),
    "a benchmark that is unknown": lambda content: content["analyses"][0].update(benchmarks=["nowhere"]),
    "a check of an unknown analysis": check("analysis", "nothing"),
    "a check without limit": check("at_least", None),
    "a limit of four hundred digits": check("at_least", DIGITS),
    "options without bottom": option("level", json.loads("[" * 900 + "]" * 900)),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_signed_plan_that_cannot_be_followed_is_not_recomputable(name: str, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    write_chained(recorded, tmp_path / "odd", plan=PLANS[name])
    assert evalspec("verify", "odd", "--trust", recorded.trust, cwd=tmp_path).code == 0
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    told = spoken.out.splitlines()[-1]
    code = 1 if "differs at report.html" in spoken.out else 3  # the page shows the seed, and here it is another one
    assert (spoken.code, told.startswith("not recomputable: "), spoken.err) == (code, True, ""), spoken.out
    assert 20 < len(told) < 1000


@pytest.mark.parametrize("plan", [lambda content: content["analyses"][0].update(benchmarks=[]), check("model", "nobody")], ids=["nothing", "nobody"])
def test_a_signed_plan_that_was_not_followed_differs(plan: Change, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    write_chained(recorded, tmp_path / "odd", plan=plan)
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "differs at verdict.json" in spoken.out, spoken.err) == (1, True, ""), spoken.out


def test_the_file_is_the_same_without_a_change(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    """Whatever is told above is told of the change, not of the way in which it was written."""
    write_chained(recorded, tmp_path / "same")
    spoken = evalspec("verify", "same", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "recomputed: findings and verdict follow" in spoken.out) == (0, True), spoken.out


def in_shape(**values: object) -> Change:
    return lambda header: header["benchmarks"][0].update(values)


HEADERS: dict[str, Change] = {
    "fewer questions than none": in_shape(questions=-1),
    "no repeats": in_shape(repeats=0),
    "repeats below zero": in_shape(repeats=-1, questions=-40),
    "four hundred digits": in_shape(questions=DIGITS),
    "more choices than memory": in_shape(choices=10**15),
    "choices below zero": in_shape(choices=-4),
    "no models": in_shape(models=[]),
    "a model twice": in_shape(models=["good", "good"]),
    "no benchmarks": lambda header: header.update(benchmarks=[]),
    "clusters that are not there": in_shape(clustered=True),
    "flags that are not there": in_shape(flagged=True),
    "no origins": lambda header: header.update(origins=[]),
    "another format": lambda header: header.update(format=2),
}


@pytest.mark.parametrize("name", HEADERS)
def test_signed_responses_with_an_odd_header_are_never_taken_for_recomputed(name: str, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    write_chained(recorded, tmp_path / "odd", header=HEADERS[name])
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code in {1, 3}, spoken.err) == (True, ""), spoken.out
    assert spoken.out.splitlines()[-1].startswith(("not recomputable: ", "differs at "))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}", b"PAR1" * 100], ids=["empty", "a mark", "JSON", "marks"])
@pytest.mark.parametrize("name", ["responses.parquet", "findings.json", "verdict.json", "study.json"])
def test_a_signed_file_that_is_none_is_not_recomputable(name: str, content: bytes, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    shutil.copytree(recorded.folder, tmp_path / "odd")
    (tmp_path / "odd" / name).write_bytes(content)
    seal_as(recorded, tmp_path / "odd")
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    told = 1 if "differs at report.html" in spoken.out else 3  # numbers of the page that an empty object does not hold
    assert (spoken.code, "not recomputable: " in spoken.out, spoken.err) == (told, True, ""), spoken.out


@pytest.mark.parametrize("name", ["responses.parquet", "findings.json", "verdict.json", "study.json"])
def test_a_signed_report_without_a_file_is_not_recomputable(name: str, recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    shutil.copytree(recorded.folder, tmp_path / "odd")
    (tmp_path / "odd" / name).unlink()
    seal_as(recorded, tmp_path / "odd")
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    told = f"not recomputable: {name} is not among the files that a verified signature covers"
    assert (spoken.code, spoken.out.splitlines()[-1], spoken.err) == (3, told, "")


@pytest.mark.parametrize("value", [DIGITS, float("inf"), float("nan"), "x" * 10**6, True, None])
def test_a_recorded_number_that_no_computing_gives_differs_and_is_shown_shortened(
    value: Any, recorded: Run, tmp_path: Path, evalspec: Command
) -> None:
    shutil.copytree(recorded.folder, tmp_path / "odd")
    findings = json.loads((tmp_path / "odd" / "findings.json").read_bytes())
    place = next(key for key, entry in findings["findings"][0]["result"].items() if isinstance(entry, int | float | str | list))
    findings["findings"][0]["result"][place] = value
    (tmp_path / "odd" / "findings.json").write_bytes(as_json(findings))
    seal_as(recorded, tmp_path / "odd")
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code in {1, 3}, "recomputed: findings" in spoken.out, spoken.err) == (True, False, "")
    assert len(spoken.out) < 5000


def test_a_table_of_holes_is_not_read_into_memory(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    """Ten million equal rows are a few kilobytes in Parquet; the header says how many there should be."""
    shutil.copytree(recorded.folder, tmp_path / "odd")
    table = pq.read_table(recorded.folder / "responses.parquet")
    repeated = pa.concat_tables([table.slice(0, 1)] * 2).take(pa.array([0] * 10**7, pa.int32()))
    pq.write_table(repeated.replace_schema_metadata(table.schema.metadata), tmp_path / "odd" / "responses.parquet", compression="zstd")
    seal_as(recorded, tmp_path / "odd")
    spoken = evalspec("verify", "odd", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "not recomputable: " in spoken.out) == (3, True)
