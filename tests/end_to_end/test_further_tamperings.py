"""What a hostile hand does to a locked and signed run: without the key every change is found, and with it what does not follow is."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.signing.dsse import parse_envelope, payload_of
from evalspec.signing.keys import FileSigner, load_signer, make_key
from evalspec.signing.lock import read_lock, sign_lock
from evalspec.signing.seal import seal
from evalspec.signing.statement import Predicate, parse_statement
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Spoken

MANIFEST, LOCK = "manifest.dsse.json", "lock.dsse.json"
Tamper = Callable[[Path], None]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, workplace: Path, evalspec: Command, make: Any) -> Path:
    """A folder with a run that was locked before, `new`, and an earlier genuine run of the same signer, `old`."""
    place = tmp_path_factory.mktemp("locked")
    for name in ("signer.p12", "team.yaml"):
        shutil.copy2(workplace / name, place / name)
    make.recorded(place, floor=0.4)
    assert evalspec("run", "study.yaml", "--key", "signer.p12", "--no-pdf", "--quiet", "--out", "old", cwd=place).code == 0
    make.recorded(place, floor=0.5)
    assert evalspec("lock", "study.yaml", "--key", "signer.p12", cwd=place).code == 0
    assert evalspec("run", "study.yaml", "--key", "signer.p12", "--no-pdf", "--quiet", "--out", "new", cwd=place).code == 0
    return place


@pytest.fixture
def place(locked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(locked, tmp_path / "place"))


def verify(evalspec: Command, place: Path, *more: str) -> Spoken:
    return evalspec("verify", "new", "--trust", "team.yaml", *more, cwd=place)


def intruder() -> FileSigner:
    """A key of somebody else under the genuine name."""
    key = make_key("Example Lab", years=1)
    return FileSigner(key.private, key.certificate)


def envelope(change: Callable[[dict[str, Any]], None]) -> Tamper:
    def alter(place: Path) -> None:
        content = json.loads((place / "new" / MANIFEST).read_bytes())
        change(content)
        (place / "new" / MANIFEST).write_bytes(canonical_json(content))

    return alter


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Tamper:
    def alter(place: Path) -> None:
        content = (place / "new" / name).read_bytes()
        assert change(content) != content
        (place / "new" / name).write_bytes(change(content))

    return alter


def from_old(*names: str) -> Tamper:
    def exchange(place: Path) -> None:
        for name in names:
            shutil.copy2(place / "old" / name, place / "new" / name)

    return exchange


def added(name: str, content: bytes = b"x") -> Tamper:
    def alter(place: Path) -> None:
        (place / "new" / name).write_bytes(content)

    return alter


def lock_of_another(place: Path) -> None:
    lock = read_lock((place / "new" / LOCK).read_bytes()).lock
    other = intruder()
    certified = lock.model_copy(update={"signer_certificate": other.certificate_pem.decode()})
    (place / "new" / LOCK).write_bytes(sign_lock(certified, other))


def lock_and_manifest_of_another(place: Path) -> None:
    lock_of_another(place)
    other, folder = intruder(), place / "new"
    seal(folder, other, parse_statement(payload_of(parse_envelope((folder / MANIFEST).read_bytes()))).predicate, pdf_skipped="not asked for")


def doubled_signature_of_another(content: dict[str, Any]) -> None:
    content["signatures"] = [{**content["signatures"][0], "sig": base64.b64encode(b"0" * 70).decode()}]


def url_safe(content: dict[str, Any]) -> None:
    content["payload"] = base64.urlsafe_b64encode(base64.b64decode(content["payload"]) + b"\xff\xfe\xfd").decode()


def hidden_by_a_folder(place: Path, name: str = "verdict.json") -> None:
    (place / "new" / name).unlink()
    (place / "new" / name).mkdir()


def linked_folder(place: Path) -> None:
    shutil.move(place / "new", place / "real")
    (place / "new").mkdir()
    for path in (place / "real").iterdir():
        (place / "new" / path.name).symlink_to(path)


def linked_to_itself_elsewhere(place: Path) -> None:
    shutil.copy2(place / "new" / "ledger.json", place / "ledger.json")
    (place / "new" / "ledger.json").unlink()
    (place / "new" / "ledger.json").symlink_to("../ledger.json")


def manifest_in_another_case(place: Path) -> None:
    (place / "new" / MANIFEST).rename(place / "new" / "Manifest.dsse.json")


WITHOUT_THE_KEY: dict[str, tuple[Tamper, str]] = {
    "a plan locked by another": (lock_of_another, "ALTERED lock.dsse.json"),
    "a plan taken out": (lambda place: (place / "new" / LOCK).unlink(), "MISSING lock.dsse.json"),
    "a plan that ends too early": (rewritten(LOCK, lambda content: content[:-2]), "ALTERED lock.dsse.json"),
    "a plan beside the plan": (added("study.lock.dsse.json"), "UNLISTED study.lock.dsse.json"),
    "the list of an older report": (from_old(MANIFEST), "ALTERED findings.json"),
    "the verdict of an older report": (from_old("verdict.json"), "ALTERED verdict.json"),
    "the page of an older report": (from_old("report.html"), "ALTERED report.html"),
    "page, findings and verdict of an older report": (from_old("report.html", "findings.json", "verdict.json"), "ALTERED findings.json"),
    "the payload with a line break": (
        envelope(lambda content: content.update(payload=content["payload"][:76] + "\n" + content["payload"][76:])),
        "SIGNATURE manifest.dsse.json: the payload is not base64",
    ),
    "the payload in another alphabet": (envelope(url_safe), "manifest.dsse.json"),
    "the payload without its padding": (envelope(lambda content: content.update(payload=content["payload"].rstrip("=")[:-1])), "manifest.dsse.json"),
    "the payload twice": (rewritten(MANIFEST, lambda text: text.replace(b"{", b'{"payload": "e30=",', 1)), "a key stands twice"),
    "no key named": (envelope(lambda content: content["signatures"][0].update(keyid="")), "SIGNATURE manifest.dsse.json"),
    "a signature without content": (envelope(doubled_signature_of_another), "SIGNATURE manifest.dsse.json"),
    "a signature in another form": (
        envelope(
            lambda content: content["signatures"][0].update(sig=base64.b64encode(base64.b64decode(content["signatures"][0]["sig"]) + b"\0").decode())
        ),
        "SIGNATURE manifest.dsse.json",
    ),
    "a byte order mark before the list": (rewritten(MANIFEST, lambda text: b"\xef\xbb\xbf" + text), "ALTERED manifest.dsse.json"),
    "an end of file after the list": (rewritten(MANIFEST, lambda text: text + b"\0"), "ALTERED manifest.dsse.json"),
    "line ends of another system in the list": (rewritten(MANIFEST, lambda text: text.replace(b"\n", b"\r\n")), "ALTERED manifest.dsse.json"),
    "the list in another case": (manifest_in_another_case, "MISSING manifest.dsse.json"),
    "the list as an array": (rewritten(MANIFEST, lambda text: b"[" + text + b"]\n"), "ALTERED manifest.dsse.json"),
    "the type of the payload in another case": (
        envelope(lambda content: content.update(payloadType="application/vnd.in-toto+JSON")),
        "SIGNATURE manifest.dsse.json",
    ),
    "a trust file in the report": (added("team.yaml"), "UNLISTED team.yaml"),
    "a page beside the page": (added("index.html", b"<p>99 %</p>"), "UNLISTED index.html"),
    "a style sheet beside the page": (added("style.css"), "UNLISTED style.css"),
    "a name that looks like another": (added("fìndings.json"), "UNLISTED fìndings.json"),
    "an earlier run that nothing names": (added(f"earlier-{'0' * 64}.dsse.json"), "UNLISTED earlier-"),
    "a table that nothing names": (added(f"table-{'0' * 64}.csv"), "UNLISTED table-"),
    "a file hidden by a folder": (hidden_by_a_folder, "MISSING verdict.json"),
    "all files linked": (linked_folder, "SYMLINK manifest.dsse.json"),
    "a link to the same bytes": (linked_to_itself_elsewhere, "SYMLINK ledger.json"),
    "a ledger taken out from under a plan": (lambda place: (place / "new" / "ledger.json").unlink(), "MISSING ledger.json"),
    "a protocol taken out from under a plan": (lambda place: (place / "new" / "protocol.json").unlink(), "MISSING protocol.json"),
    "a folder in the place of the study": (lambda place: hidden_by_a_folder(place, "study.json"), "MISSING study.json"),
    "other instructions for checking": (rewritten("VERIFY.md", lambda text: text.replace(b"sha256sum", b"true #", 1)), "ALTERED VERIFY.md"),
    "another fingerprint in the instructions": (
        rewritten("VERIFY.md", lambda text: re.sub(rb"SHA256:.{44}", b"SHA256:" + b"A" * 43 + b"=", text, count=1)),
        "ALTERED VERIFY.md",
    ),
    "another machine in the ledger": (rewritten("ledger.json", lambda text: text.replace(b'"host"', b'"h0st"')), "ALTERED ledger.json"),
    "a certificate in DER": (
        rewritten("signer.crt", lambda pem: base64.b64decode(b"".join(pem.splitlines()[1:-1]))),
        "ALTERED signer.crt",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_THE_KEY)
def test_what_somebody_without_the_key_does_is_found(name: str, place: Path, evalspec: Command) -> None:
    tamper, told = WITHOUT_THE_KEY[name]
    tamper(place)
    spoken = verify(evalspec, place)
    assert (spoken.code, told in spoken.out, spoken.err) == (1, True, ""), spoken.out


def test_the_run_itself_is_in_order(place: Path, evalspec: Command) -> None:
    spoken = verify(evalspec, place, "--recompute")
    assert (spoken.code, "the run is as locked" in spoken.out, "recomputed: findings" in spoken.out) == (0, True, True), spoken.out


def test_a_plan_and_a_list_signed_again_by_another_are_not_trusted(place: Path, evalspec: Command) -> None:
    lock_and_manifest_of_another(place)
    spoken = verify(evalspec, place)
    assert (spoken.code, "known with another key" in spoken.out) == (4, True), spoken.out


def test_an_older_genuine_report_is_told_from_the_one_that_is_meant(place: Path, evalspec: Command) -> None:
    meant = {name: parse_statement(payload_of(parse_envelope((place / name / MANIFEST).read_bytes()))).predicate for name in ("new", "old")}
    shutil.rmtree(place / "new")
    shutil.move(place / "old", place / "new")
    assert f"report: run {meant['old'].run_id}, signed {meant['old'].created_at}" in verify(evalspec, place).out
    assert verify(evalspec, place, "--expect-run", meant["old"].run_id, "--expect-study", meant["old"].study.sha256).code == 0
    for option, value in (("--expect-run", meant["new"].run_id), ("--expect-study", meant["new"].study.sha256)):
        spoken = verify(evalspec, place, option, value)
        assert (spoken.code, spoken.out.startswith("ANOTHER REPORT than the expected one")) == (1, True), spoken.out
    assert verify(evalspec, place, "--expect-study", "abc").code == 2


def signed_again(place: Path) -> None:
    """Let every file name its parent's digest again, as far as it does, and sign with the genuine key."""
    folder = place / "new"
    protocol = sha256_hex((folder / "protocol.json").read_bytes())
    findings = json.loads((folder / "findings.json").read_bytes())
    findings |= {"protocol_sha256": protocol, "responses_sha256": sha256_hex((folder / "responses.parquet").read_bytes())}
    (folder / "findings.json").write_bytes(_as_written(findings))
    verdict = json.loads((folder / "verdict.json").read_bytes())
    verdict["findings_sha256"] = sha256_hex((folder / "findings.json").read_bytes())
    (folder / "verdict.json").write_bytes(canonical_json(verdict))
    claim = parse_statement(payload_of(parse_envelope((folder / MANIFEST).read_bytes()))).predicate.model_dump()
    claim |= {"protocol": {"sha256": protocol}, "study": {"sha256": sha256_hex((folder / "study.yaml").read_bytes())}}
    seal(folder, load_signer(place / "signer.p12", None), Predicate.model_validate(claim), pdf_skipped="not asked for")


def _as_written(findings: dict[str, Any]) -> bytes:
    try:
        return Findings.from_json(json.dumps(findings).encode()).to_json()
    except ValueError:
        return canonical_json(findings)


def in_json(name: str, change: Callable[[Any], None]) -> Tamper:
    def alter(place: Path) -> None:
        content = json.loads((place / "new" / name).read_bytes())
        change(content)
        (place / "new" / name).write_bytes(canonical_json(content))

    return alter


def in_responses(**changes: Callable[[Any], None]) -> Tamper:
    """Change arrays of the one benchmark of responses.parquet."""

    def alter(place: Path) -> None:
        directory = RunDirectory(place / "new")
        responses = directory.read_responses()
        (entry,) = responses.benchmarks
        arrays = {name: getattr(entry, name).copy() for name in changes}
        for name, change in changes.items():
            change(arrays[name])
        directory.write_responses(replace(responses, benchmarks=(replace(entry, **arrays),)), directory.read_protocol())

    return alter


def without_plan(place: Path) -> None:
    (place / "new" / LOCK).unlink()


def plan_of_the_old(place: Path) -> None:
    """Put in the plan of another study, which the genuine key signed, and say nothing of it."""
    lock = read_lock((place / "new" / LOCK).read_bytes()).lock
    protocol = {**lock.protocol, "seed": 99}
    changed = lock.model_copy(update={"protocol": protocol, "protocol_sha256": sha256_hex(canonical_json(protocol))})
    (place / "new" / LOCK).write_bytes(sign_lock(changed, load_signer(place / "signer.p12", None)))


def set_first(name: str, value: Any) -> Callable[[Any], None]:
    def change(findings: Any) -> None:
        findings["findings"][0]["estimates"]["columns"][name][0] = value

    return change


WITH_THE_KEY: dict[str, tuple[Tamper, str]] = {
    "a better score": (in_responses(scores=lambda scores: scores.__setitem__((1, 39, 0), 1.0)), "differs by"),
    "another question weighed more": (
        in_responses(weights=lambda weights: weights.__setitem__(0, 2.0)),
        "differs at responses.parquet/small/weights",
    ),
    "a better accuracy": (in_json("findings.json", set_first("value", 0.99)), "/findings/0/estimates/columns/value"),
    "a narrower interval": (in_json("findings.json", set_first("low", 0.899)), "/findings/0/estimates/columns/low"),
    "more questions": (in_json("findings.json", lambda findings: findings["summaries"][0].update(answered=400)), "/summaries/0/answered"),
    "an analysis left out": (
        in_json("findings.json", lambda findings: findings["findings"].pop()),
        "at findings.json/findings: recorded 0, recomputed 1",
    ),
    "a check that failed passed": (
        in_json("verdict.json", lambda verdict: verdict["checks"][0].update(outcome="failed")),
        "verdict.json/checks/0/outcome",
    ),
    "another decision": (in_json("verdict.json", lambda verdict: verdict.update(overall="failed")), "verdict.json/overall"),
    "another rule": (in_json("verdict.json", lambda verdict: verdict.update(rule="as we like it")), "verdict.json/rule"),
    "a lower limit": (
        in_json("protocol.json", lambda protocol: protocol["thresholds"]["checks"][0].update(at_least=0.1)),
        "protocol.json/thresholds",
    ),
    "another seed": (in_json("protocol.json", lambda protocol: protocol.update(seed=2)), "protocol.json/seed"),
    "another level": (in_json("protocol.json", lambda protocol: protocol["analyses"][0]["options"].update(level=0.5)), "protocol.json/analyses"),
    "a model renamed": (in_json("protocol.json", lambda protocol: protocol["models"][0].update(id="best")), "protocol.json/models"),
    "another study": (rewritten("study.yaml", lambda text: text.replace(b"recorded systems", b"systems")), "study.json/source_sha256"),
    "another title": (in_json("study.json", lambda study: study.update(title="Which is the best?")), "protocol.json/study_sha256"),
    "a number on the page": (rewritten("report.html", lambda page: page.replace(b"90.0", b"99.0")), "differs at report.html"),
    "a word on the page": (rewritten("report.html", lambda page: page.replace(b"recorded elsewhere", b"scored here", 1)), "report.html"),
    "a warning cut from the page": (rewritten("report.html", lambda page: re.sub(rb"<p class=\"seal-head\">.*?</p>", b"", page)), "report.html"),
    "a plan taken out and signed over": (without_plan, "report.html"),
    "the plan of another study": (plan_of_the_old, "report.html"),
    "fewer looks": (in_json("ledger.json", lambda ledger: ledger.update(looks=99)), "report.html"),
}


@pytest.mark.parametrize(
    ("field", "value"), [("decision", {"result": "failed", "rule": "other"}), ("dataset", []), ("models", [])], ids=["decision", "dataset", "models"]
)
def test_what_the_signed_list_says_of_the_run_is_held_against_its_files(field: str, value: object, place: Path, evalspec: Command) -> None:
    folder = place / "new"
    claim = parse_statement(payload_of(parse_envelope((folder / MANIFEST).read_bytes()))).predicate.model_dump()
    assert claim[field] != value
    seal(folder, load_signer(place / "signer.p12", None), Predicate.model_validate_json(json.dumps({**claim, field: value})), pdf_skipped="no")
    assert verify(evalspec, place).code == 0
    spoken = verify(evalspec, place, "--recompute")
    assert (spoken.code, f"manifest.dsse.json/predicate/{field}" in spoken.out) == (1, True), spoken.out


@pytest.mark.parametrize("name", WITH_THE_KEY)
def test_what_the_holder_of_the_key_changes_afterwards_does_not_follow(name: str, place: Path, evalspec: Command) -> None:
    tamper, told = WITH_THE_KEY[name]
    tamper(place)
    signed_again(place)
    spoken = verify(evalspec, place, "--recompute")
    assert (spoken.code, told in spoken.out) == (1, True), spoken.out
