"""A plan is signed before the run: the run keeps to it or says where it does not, and a lock that was tampered with is found."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec import tools
from evalspec.artifacts.lock import Lock
from evalspec.signing.dsse import parse_envelope, payload_of, sign
from evalspec.signing.keys import load_signer
from evalspec.signing.lock import parse_lock, read_lock, sign_lock
from evalspec.signing.seal import seal
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

LOCK = "lock.dsse.json"
BESIDE = "study.lock.dsse.json"


@pytest.fixture
def place(tmp_path: Path, workplace: Path, make: Any) -> Path:
    """A folder with a study of recorded answers and the key of the workplace, nothing of it locked or run."""
    make.recorded(tmp_path)
    (tmp_path / "evalspec.toml").touch()
    for name in ("signer.p12", "team.yaml"):
        shutil.copy2(workplace / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def locked(place: Path, evalspec: Command) -> Path:
    spoken = evalspec("lock", "study.yaml", "--key", "signer.p12", cwd=place)
    assert spoken.code == 0, spoken.err
    return place


def run(evalspec: Command, place: Path, *more: str) -> Any:
    return evalspec("run", "study.yaml", "--key", "signer.p12", "--no-pdf", *more, cwd=place)


def edit(place: Path, old: str, new: str) -> None:
    text = (place / "study.yaml").read_text()
    assert old in text
    (place / "study.yaml").write_text(text.replace(old, new))


def verify(evalspec: Command, place: Path, *more: str) -> Any:
    return evalspec("verify", "reports/study", "--trust", "team.yaml", *more, cwd=place)


def section(place: Path) -> str:
    """The words of the section on preregistration."""
    page = (place / "reports" / "study" / "report.html").read_text()
    found = re.search(r'<section id="preregistration".*?</section>', page, re.DOTALL)
    assert found
    flowing = re.sub(r"</?(?:data|span|a|code)\b[^>]*>", "", found[0])
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", flowing)))


def reseal(place: Path, key: str = "signer.p12") -> None:
    """Seal the run directory once more with the genuine key, as a lying signer would."""
    directory = RunDirectory(place / "reports" / "study")
    claim = tools.claim(directory.read_study(), directory.read_protocol(), directory.read_verdict(), directory.read_ledger())
    seal(directory.path, load_signer(place / key, None), claim, pdf_skipped="not asked for")


def test_a_lock_says_what_is_planned_and_what_was_known(locked: Path) -> None:
    lock = read_lock((locked / BESIDE).read_bytes()).lock
    assert (lock.before.answers, lock.before.asked, lock.before.replayed) == (0, 0, ("good", "poor"))
    assert (lock.earlier.locks, lock.earlier.runs, lock.earlier.seeds, lock.earlier.commits) == (0, 0, (), None)
    assert [(one.id, one.kind, one.planned) for one in lock.analyses] == [("accuracy", "intervals", True)]
    assert lock.time_authority == "self-asserted: no timestamp authority"
    statement = json.loads(payload_of(parse_envelope((locked / BESIDE).read_bytes())))
    assert statement["predicateType"] == "https://evalspec.dev/attestation/study-lock/v1"
    assert {one["name"] for one in statement["subject"]} == {"study.yaml", "study.json", "protocol.json"}


def test_locking_speaks_json(place: Path, evalspec: Command) -> None:
    spoken = evalspec("lock", "study.yaml", "--json", cwd=place)
    assert (spoken.code, spoken.content["lock"], spoken.content["trust"]) == (0, BESIDE, "study.lock.trust.yaml")
    assert spoken.content["protocol_sha256"] == read_lock((place / BESIDE).read_bytes()).lock.protocol_sha256
    assert spoken.content["before"]["replayed"] == ["good", "poor"]


def test_a_run_that_keeps_to_its_plan_says_so_and_is_verified(locked: Path, evalspec: Command) -> None:
    spoken = run(evalspec, locked, "--json")
    assert (spoken.code, spoken.content["plan"]["as_locked"], spoken.content["plan"]["deviations"]) == (0, True, [])
    checked = verify(evalspec, locked, "--recompute")
    assert checked.code == 0
    assert "(self-asserted: no timestamp authority): the run is as locked" in checked.out
    assert "the plan was locked with the key of this report" in checked.out
    told = section(locked)
    assert "The run is as locked." in told
    assert "Deviations from the locked plan none" in told
    assert "self-asserted: no timestamp authority" in told
    assert (locked / "reports" / "study" / LOCK).read_bytes() == (locked / BESIDE).read_bytes()


def test_the_lock_is_attached_to_the_pdf(locked: Path, evalspec: Command) -> None:
    assert evalspec("run", "study.yaml", "--key", "signer.p12", cwd=locked).code == 0
    checked = verify(evalspec, locked, "--json")
    attached = {entry["name"]: entry["sha256"] for entry in checked.content["attachments"]}
    assert (checked.code, attached[LOCK]) == (0, read_lock((locked / BESIDE).read_bytes()).sha256)


def test_without_a_lock_the_report_says_that_nothing_shows_what_was_planned(place: Path, evalspec: Command) -> None:
    assert run(evalspec, place).code == 0
    assert "The plan of this study was not locked before the run." in section(place)
    assert "plan locked" not in verify(evalspec, place).out


def test_other_comments_and_layout_are_no_deviation(locked: Path, evalspec: Command) -> None:
    edit(locked, "seed: 1\n", "seed:   1   # any number will do\n")
    spoken = run(evalspec, locked, "--json")
    assert (spoken.code, spoken.content["plan"]["as_locked"]) == (0, True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("level: 0.95", "level: 0.9", "protocol.json/analyses/accuracy/options/level: locked 0.95, now 0.9"),
        ("at_least: 0.5", "at_least: 0.4", "protocol.json/thresholds/checks/floor/at_least: locked 0.5, now 0.4"),
        ("seed: 1", "seed: 2", "protocol.json/seed: locked 1, now 2"),
        ("title: Which", "title: What", "study.json/title: locked"),
        ("scoring: {method: letter}", "scoring: {method: letter}, missing: complete_case", 'missing: locked "wrong", now "complete_case"'),
        (
            "  - {id: accuracy,",
            "  - {id: other, kind: intervals}\n  - {id: accuracy,",
            "protocol.json/analyses/other: locked nothing, now there (intervals)",
        ),
        ("  - {id: poor, source: {responses: recorded.csv}}\n", "", "protocol.json/models/poor: locked there, now nothing"),
        (
            "source: {file: questions.jsonl}",
            "source: {file: questions.jsonl}, sample: {method: simple, size: 30}",
            "/benchmarks/small/questions: locked 40",
        ),
    ],
)
def test_a_study_that_was_changed_since_is_refused_with_every_difference(locked: Path, evalspec: Command, old: str, new: str, told: str) -> None:
    edit(locked, old, new)
    spoken = run(evalspec, locked)
    assert (spoken.code, told in spoken.err, "--allow-deviations" in spoken.err) == (2, True, True), spoken.err
    assert not (locked / "reports").exists()


def test_questions_that_were_changed_since_are_refused_without_being_shown(locked: Path, evalspec: Command) -> None:
    lines = (locked / "questions.jsonl").read_text().splitlines()
    (locked / "questions.jsonl").write_text("\n".join([lines[0].replace("kleinfrage0", "kleinheim"), *lines[1:]]) + "\n")
    spoken = run(evalspec, locked)
    assert (spoken.code, "/benchmarks/small/questions: locked 40 entries, now 40 entries, 39 of them as locked" in spoken.err) == (2, True)
    assert "kleinheim" not in spoken.err


def test_allowed_deviations_are_listed_and_what_rests_on_them_is_exploratory(locked: Path, evalspec: Command) -> None:
    edit(locked, "level: 0.95", "level: 0.9")
    edit(locked, "thresholds:", "  - {id: again, kind: intervals, method: wilson, level: 0.95}\nthresholds:")
    spoken = run(evalspec, locked, "--allow-deviations", "--json")
    assert (spoken.code, spoken.content["plan"]["exploratory"]) == (0, ["accuracy", "again"])
    paths = [deviation["path"] for deviation in spoken.content["plan"]["deviations"]]
    assert paths == ["/analyses/accuracy/options/level", "/analyses/again"]
    told = section(locked)
    assert "The run is not as locked; every deviation is listed below." in told
    assert "protocol.json/analyses/accuracy/options/level 0.95 0.9" in told
    assert "accuracy intervals exploratory: changed since the lock" in told
    assert "again intervals exploratory: not in the lock" in told
    findings = json.loads((locked / "reports" / "study" / "findings.json").read_bytes())
    assert [finding["request"]["planned"] for finding in findings["findings"]] == [False, False]
    page = (locked / "reports" / "study" / "report.html").read_text()
    assert "This run departs from the plan that was locked before it" in page
    assert "The decision rests on what is not as locked." in page
    checked = verify(evalspec, locked, "--recompute")
    assert (checked.code, "deviates from it in 2 places, which the report lists" in checked.out) == (0, True), checked.out


def test_a_lock_elsewhere_is_found_by_name_and_its_absence_is_told(locked: Path, evalspec: Command) -> None:
    (locked / BESIDE).rename(locked / "kept.json")
    assert run(evalspec, locked, "--lock", "kept.json", "--json").content["plan"]["as_locked"] is True
    absent = run(evalspec, locked, "--lock", "gone.json")
    assert (absent.code, "there is no lock gone.json" in absent.err) == (2, True)
    assert run(evalspec, locked, "--allow-deviations").code == 2


def test_a_lock_that_was_altered_before_the_run_is_refused(locked: Path, evalspec: Command) -> None:
    envelope = json.loads((locked / BESIDE).read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b'"at_least": 0.5', b'"at_least": 0.4')
    envelope["payload"] = base64.b64encode(payload).decode()
    (locked / BESIDE).write_text(json.dumps(envelope, indent=2, sort_keys=True) + "\n")
    spoken = run(evalspec, locked)
    assert (spoken.code, "is not as it was signed: no signature holds" in spoken.err) == (3, True), spoken.err


def test_locking_again_must_be_asked_for_and_is_counted(locked: Path, evalspec: Command) -> None:
    refused = evalspec("lock", "study.yaml", "--key", "signer.p12", cwd=locked)
    assert (refused.code, "--replace" in refused.err) == (2, True)
    first = read_lock((locked / BESIDE).read_bytes())
    edit(locked, "seed: 1", "seed: 5")
    assert evalspec("lock", "study.yaml", "--key", "signer.p12", "--replace", cwd=locked).code == 0
    second = read_lock((locked / BESIDE).read_bytes()).lock
    assert (second.replaces, second.earlier.locks, second.earlier.seeds) == (first.sha256, 1, (1,))
    assert run(evalspec, locked).code == 0
    assert "1 earlier lock, 0 earlier runs, under the seeds 1;" in section(locked)


def test_runs_before_the_lock_are_counted_with_their_seeds(place: Path, evalspec: Command) -> None:
    for seed in (1, 2, 3):
        assert run(evalspec, place).code == 0
        edit(place, f"seed: {seed}", f"seed: {seed + 1}")
    assert evalspec("lock", "study.yaml", "--key", "signer.p12", cwd=place).code == 0
    earlier = read_lock((place / BESIDE).read_bytes()).lock.earlier
    assert (earlier.locks, earlier.runs, earlier.seeds) == (0, 3, (1, 2, 3))


def test_locks_in_the_history_of_the_file_are_counted_where_the_cache_is_gone(locked: Path, evalspec: Command) -> None:
    def git(*arguments: str) -> None:
        named = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(locked), *named, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("add", BESIDE)
    git("commit", "-q", "-m", "plan")
    edit(locked, "seed: 1", "seed: 9")
    shutil.rmtree(locked / ".evalspec")
    assert evalspec("lock", "study.yaml", "--key", "signer.p12", "--replace", cwd=locked).code == 0
    lock = read_lock((locked / BESIDE).read_bytes()).lock
    assert (lock.earlier.locks, lock.earlier.seeds, lock.earlier.commits) == (1, (1,), 1)
    assert lock.git_commit is not None


def test_a_plan_that_another_key_locked_is_named_as_such(locked: Path, evalspec: Command) -> None:
    made = evalspec("keygen", "--organisation", "Other Lab", "--out", "other.p12", "--trust", "both.yaml", "--no-passphrase", cwd=locked)
    assert made.code == 0
    assert evalspec("run", "study.yaml", "--key", "other.p12", "--no-pdf", cwd=locked).code == 0
    checked = evalspec("verify", "reports/study", "--trust", "both.yaml", cwd=locked)
    assert (checked.code, "the plan was locked by Example Lab (NOT TRUSTED) with another key than this report's" in checked.out) == (0, True)
    assert "Example Lab, with another key than that of this report" in section(locked)


def test_a_lock_that_was_altered_in_the_run_directory_is_found(locked: Path, evalspec: Command) -> None:
    assert run(evalspec, locked).code == 0
    file = locked / "reports" / "study" / LOCK
    file.write_bytes(file.read_bytes().replace(b'"sig": "M', b'"sig": "N'))
    checked = verify(evalspec, locked)
    assert (checked.code, f"ALTERED {LOCK}" in checked.out) == (1, True)
    reseal(locked)
    checked = verify(evalspec, locked)
    assert (checked.code, f"LOCK {LOCK}: the plan is not as it was signed" in checked.out) == (1, True), checked.out


def relock(place: Path, change: Callable[[Lock], Lock]) -> None:
    """Put another lock into the run directory, signed with the genuine key, and seal everything once more."""
    file = place / "reports" / "study" / LOCK
    file.write_bytes(sign_lock(change(read_lock(file.read_bytes()).lock), load_signer(place / "signer.p12", None)))
    reseal(place)


def test_a_lock_that_is_younger_than_the_run_is_found(locked: Path, evalspec: Command) -> None:
    assert run(evalspec, locked).code == 0
    relock(locked, lambda lock: lock.model_copy(update={"locked_at": "2200-01-01T00:00:00Z"}))
    checked = verify(evalspec, locked)
    assert (checked.code, "after the run had started at" in checked.out) == (1, True), checked.out


def test_a_lock_that_is_still_to_come_stops_a_run(locked: Path, evalspec: Command) -> None:
    lock = read_lock((locked / BESIDE).read_bytes()).lock.model_copy(update={"locked_at": "2200-01-01T00:00:00Z"})
    (locked / BESIDE).write_bytes(sign_lock(lock, load_signer(locked / "signer.p12", None)))
    spoken = run(evalspec, locked)
    assert (spoken.code, "which is still to come" in spoken.err) == (2, True)


def test_a_report_that_keeps_silent_about_deviations_is_found_by_recomputing(locked: Path, evalspec: Command) -> None:
    edit(locked, "level: 0.95", "level: 0.9")
    assert run(evalspec, locked, "--allow-deviations").code == 0
    page = locked / "reports" / "study" / "report.html"
    page.write_text(page.read_text().replace("The run is not as locked; every deviation is listed below.", "The run is as locked."))
    reseal(locked)
    assert verify(evalspec, locked).code == 0
    checked = verify(evalspec, locked, "--recompute")
    assert (checked.code, "differs at report.html, line" in checked.out) == (1, True), checked.out


def test_an_exploratory_analysis_that_is_sold_as_planned_is_found_by_recomputing(locked: Path, evalspec: Command) -> None:
    edit(locked, "level: 0.95", "level: 0.9")
    assert run(evalspec, locked, "--allow-deviations").code == 0
    directory = RunDirectory(locked / "reports" / "study")
    content = directory.read("findings.json").replace(b'"planned": false', b'"planned": true')
    directory.write("findings.json", content)
    from evalspec.artifacts.findings import Findings

    findings = Findings.from_json(content)
    directory.write_findings(findings)
    verdict = json.loads(directory.read("verdict.json")) | {"findings_sha256": findings.digest()}
    directory.write("verdict.json", json.dumps(verdict).encode())
    reseal(locked)
    checked = verify(evalspec, locked, "--recompute")
    assert (checked.code, "differs at findings.json/findings/0/request/planned: recorded True, recomputed False" in checked.out) == (1, True), (
        checked.out
    )


def test_a_lock_of_another_type_of_statement_is_no_lock(locked: Path) -> None:
    signer = load_signer(locked / "signer.p12", None)
    payload = payload_of(parse_envelope((locked / BESIDE).read_bytes())).replace(b"study-lock/v1", b"study-report/v1")
    with pytest.raises(ValueError, match="predicateType"):
        read_lock(sign(payload, signer).to_json())
    with pytest.raises(ValueError, match="predicateType"):
        parse_lock(payload)


def test_what_the_journal_holds_when_the_plan_is_locked_is_stated(
    scored: Run, evalspec: Command, tmp_path: Path, canaries: Sequence[str], make: Any
) -> None:
    place = Path(shutil.copytree(scored.workplace, tmp_path / "place", ignore=shutil.ignore_patterns("reports")))
    spoken = evalspec("lock", "study.yaml", "--key", "signer.p12", "--cache", "whole", "--token-budget", str(make.budget), cwd=place)
    assert (spoken.code, "answers known before: 264 of 264 in the journal; 1 set of answers judged" in spoken.out) == (0, True), spoken.out
    lock = (place / BESIDE).read_bytes()
    said = payload_of(parse_envelope(lock)) + lock + spoken.out.encode() + spoken.err.encode()
    assert canaries[0].encode() not in said
    assert f"{canaries[1]}frage".encode() not in said
    done = evalspec(
        "run", "study.yaml", "--key", "signer.p12", "--cache", "whole", "--token-budget", str(make.budget), "--no-pdf", "--quiet", cwd=place
    )
    assert done.code == 0, done.err
    assert "264 of 264 answers lay in the journal" in section(place)
    page = (place / "reports" / "study" / "report.html").read_text()
    assert "When the plan was locked, answers to these questions existed" in page


def test_a_lock_that_tells_more_than_the_study_does_now_does_not_travel(locked: Path, evalspec: Command) -> None:
    edit(locked, "scoring: {method: letter}", "scoring: {method: letter}, disclosure: none")
    spoken = run(evalspec, locked, "--allow-deviations")
    assert (spoken.code, "discloses more of benchmark 'small' than the study does now" in spoken.err) == (2, True), spoken.err
