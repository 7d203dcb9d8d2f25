"""Whatever is done to a sealed folder is found and named."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import UsageError
from evalspec.signing import dsse
from evalspec.signing.certificates import self_signed
from evalspec.signing.keys import FileSigner
from evalspec.signing.seal import seal
from evalspec.signing.statement import Claim
from evalspec.signing.trust import Trust, TrustedSigner, read_trust
from evalspec.signing.verify import LARGEST_COMPARED, verify, verify_pdf

Rewrite = Callable[[Path, Callable[[dict], None]], None]
FILES = [
    "VERIFY.md", "data/questions.parquet", "findings.json", "manifest.dsse.json",
    "protocol.json", "report.html", "report.pdf", "signer.crt", "study.yaml",
]  # fmt: skip


def lines(folder: Path, trust: Trust | None = None) -> list[str]:
    verification = verify(folder, trust)
    assert verification.exit_code == 1
    return [str(problem) for problem in verification.problems]


def set_digest(statement: dict, name: str, content: bytes) -> None:
    next(subject for subject in statement["subject"] if subject["name"] == name)["digest"]["sha256"] = sha256_hex(content)


def add_subject(name: str) -> Callable[[dict], None]:
    return lambda statement: statement["subject"].append({"name": name, "digest": {"sha256": "0" * 64}})


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_an_untouched_folder_of_a_trusted_signer_is_good(run: Path, trust: Trust, signer: FileSigner) -> None:
    verification = verify(run, trust)
    assert (verification.exit_code, verification.outcome, verification.problems, verification.reasons) == (0, "intact", (), ())
    assert verification.signer is not None
    assert (verification.signer.name, verification.signer.fingerprint) == ("Example Lab", signer.fingerprint)
    assert [attachment.name for attachment in verification.attachments] == ["findings.json", "study.yaml"]


def test_without_an_anchor_the_same_folder_is_never_good(run: Path) -> None:
    verification = verify(run)
    assert (verification.exit_code, verification.outcome, verification.trusted) == (4, "intact", False)
    assert "no trust anchor was given" in verification.reasons[0]


def test_the_seal_covers_exactly_the_files_listed_here(run: Path) -> None:
    assert sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()) == FILES


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.37, 0.999])
def test_a_flipped_bit_in_any_file_is_named(run: Path, trust: Trust, name: str, share: float) -> None:
    flip(run / name, int((run / name).stat().st_size * share))
    for anchor in (trust, None):
        verification = verify(run, anchor)
        assert verification.exit_code == 1
        assert name in {problem.name for problem in verification.problems} or "signer.crt" in str(verification.problems[0])
    assert name in {problem.name for problem in verify(run, trust).problems}


def test_a_changed_byte_anywhere_in_the_manifest_is_found(run: Path, trust: Trust) -> None:
    manifest = run / "manifest.dsse.json"
    content = manifest.read_bytes()
    for position in range(0, len(content), 41):
        for replacement in (content[position] ^ 1, ord(" "), ord("A"), ord("\n")):
            if replacement != content[position]:
                manifest.write_bytes(content[:position] + bytes([replacement]) + content[position + 1 :])
                assert [problem.name for problem in verify(run, trust).problems] == ["manifest.dsse.json"], f"byte {position}"


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_or_removed_file_is_named(run: Path, trust: Trust, name: str) -> None:
    (run / name).write_bytes((run / name).read_bytes()[:-1])
    assert name in {problem.name for problem in verify(run, trust).problems}
    (run / name).unlink()
    assert f"MISSING {name}" in lines(run, trust)[0]


def test_a_folder_without_certificate_and_anchor_is_not_intact(run: Path) -> None:
    (run / "signer.crt").unlink()
    assert "signer.crt is missing" in lines(run)[0]


def test_an_added_file_is_named_with_its_odd_characters_escaped(run: Path, trust: Trust) -> None:
    (run / "extra.txt").write_text("")
    (run / "data" / "\x1b[2J").write_text("")
    assert lines(run, trust) == [
        "UNLISTED data/\\x1b[2J (not covered by the signature)",
        "UNLISTED extra.txt (not covered by the signature)",
    ]


def test_a_renamed_file_is_missing_and_unlisted(run: Path, trust: Trust) -> None:
    (run / "report.html").rename(run / "report.htm")
    assert lines(run, trust) == ["MISSING report.html", "UNLISTED report.htm (not covered by the signature)"]


@pytest.mark.parametrize("name", ["findings.json", "report.pdf", "signer.crt"])
def test_a_link_is_not_followed_even_to_the_same_bytes(run: Path, trust: Trust, tmp_path: Path, name: str) -> None:
    shutil.move(run / name, tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    assert lines(run, trust) == [f"SYMLINK {name} (not followed)"]


def test_a_linked_folder_hides_nothing(run: Path, trust: Trust, tmp_path: Path) -> None:
    shutil.move(run / "data", tmp_path / "data")
    (run / "data").symlink_to(tmp_path / "data")
    assert lines(run, trust) == ["SYMLINK data (not followed)", "MISSING data/questions.parquet"]


def test_a_linked_manifest_is_not_read(run: Path, trust: Trust, tmp_path: Path) -> None:
    shutil.move(run / "manifest.dsse.json", tmp_path / "elsewhere")
    (run / "manifest.dsse.json").symlink_to(tmp_path / "elsewhere")
    assert lines(run, trust) == ["SYMLINK manifest.dsse.json (not followed)"]


def test_a_pipe_in_place_of_a_file_is_named_without_waiting_for_it(run: Path, trust: Trust) -> None:
    (run / "report.html").unlink()
    os.mkfifo(run / "report.html")
    assert lines(run, trust) == ["SPECIAL report.html (no regular file)"]


def test_changed_findings_are_named_down_to_the_place(run: Path, trust: Trust) -> None:
    findings = json.loads((run / "findings.json").read_bytes())
    findings["findings"][0]["estimates"][1]["value"] = 0.75
    (run / "findings.json").write_text(json.dumps(findings))
    assert lines(run, trust)[0].splitlines()[1:] == ["  differs at /findings/0/estimates/1/value"]


def test_no_place_is_named_from_a_pdf_that_is_itself_changed(run: Path, trust: Trust) -> None:
    (run / "findings.json").write_text("{}")
    flip(run / "report.pdf", 2000)
    assert {(problem.kind, problem.name, problem.paths) for problem in verify(run, trust).problems} >= {("ALTERED", "findings.json", ())}


def test_a_pdf_that_is_not_the_signed_one_is_named_and_not_opened(run: Path, trust: Trust, unsigned_pdf: bytes) -> None:
    (run / "report.pdf").write_bytes(unsigned_pdf)
    (found,) = lines(run, trust)
    assert found.startswith("ALTERED report.pdf: signed ")
    assert found.endswith("; its own signature was not looked at")


def test_a_file_larger_than_any_sealed_one_is_named_without_being_read(run: Path, trust: Trust) -> None:
    os.truncate(run / "report.html", 2**40)
    os.truncate(run / "report.pdf", 2**40)
    assert lines(run, trust) == [
        "ALTERED report.html: report.html has 1099511627776 bytes; a sealed file has at most 1073741824",
        "ALTERED report.pdf: report.pdf has 1099511627776 bytes; a sealed file has at most 1073741824; its own signature was not looked at",
    ]


def test_a_huge_pdf_alone_is_not_read(run: Path, trust: Trust) -> None:
    os.truncate(run / "report.pdf", 2**40)
    verification = verify_pdf(run / "report.pdf", trust)
    assert (verification.exit_code, verification.reasons) == (
        3,
        ("the signature inside report.pdf could not be checked: the PDF is larger than 134217728 bytes",),
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
def test_a_manifest_that_is_no_file_is_named_without_waiting_for_it(run: Path, trust: Trust, make: Callable[[Path], None]) -> None:
    (run / "manifest.dsse.json").unlink()
    make(run / "manifest.dsse.json")
    assert lines(run, trust) == ["SPECIAL manifest.dsse.json (no regular file)"]


def test_no_places_are_looked_for_in_a_file_that_grew_without_bounds(run: Path, trust: Trust) -> None:
    (run / "findings.json").write_bytes(b"{}" + b" " * LARGEST_COMPARED)
    (found,) = lines(run, trust)
    assert found.startswith("ALTERED findings.json")
    assert "differs at" not in found


def test_a_copy_signed_again_by_another_key_of_the_same_name_is_refused(
    run: Path, unsigned_pdf: bytes, impostor: FileSigner, claim: Claim, trust: Trust
) -> None:
    (run / "report.pdf").write_bytes(unsigned_pdf)
    seal(run, impostor, claim)
    verification = verify(run, trust)
    assert verification.exit_code == 4
    assert "'Example Lab' is known with another key" in verification.reasons[0]


def test_the_trusted_signature_counts_whoever_else_signed_first(run: Path, impostor: FileSigner, trust: Trust) -> None:
    envelope = dsse.parse_envelope((run / "manifest.dsse.json").read_bytes())
    theirs = dsse.sign(base64.b64decode(envelope.payload), impostor).signatures
    (run / "manifest.dsse.json").write_bytes(envelope.model_copy(update={"signatures": theirs + envelope.signatures}).to_json())
    verification = verify(run, trust)
    assert verification.exit_code == 0
    assert verification.notes == (f"a further signature, by {impostor.fingerprint}, was not considered",)


def test_a_pdf_signed_by_another_key_than_the_manifest_is_refused(
    run: Path, unsigned_pdf: bytes, impostor: FileSigner, trust: Trust, rewrite_statement: Rewrite
) -> None:
    from evalspec.signing.pades import sign_pdf

    theirs = sign_pdf(unsigned_pdf, impostor).content
    (run / "report.pdf").write_bytes(theirs)
    rewrite_statement(run, lambda statement: set_digest(statement, "report.pdf", theirs))
    assert lines(run, trust) == [f"PDF report.pdf: another key than that of the manifest signed it: {impostor.fingerprint}"]


def test_a_certificate_of_another_key_in_the_folder_is_named(run: Path, impostor: FileSigner, trust: Trust, rewrite_statement: Rewrite) -> None:
    (run / "signer.crt").write_bytes(impostor.certificate_pem)
    rewrite_statement(run, lambda statement: set_digest(statement, "signer.crt", impostor.certificate_pem))
    assert lines(run, trust)[0].startswith("STATEMENT signer.crt: is of the key")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda statement: statement.update(predicateType="https://slsa.dev/provenance/v1"), "predicateType"),
        (add_subject("../../etc/passwd"), "'../../etc/passwd' is not allowed"),
        (add_subject("Study.yaml"), "one file on some systems"),
    ],
)
def test_a_genuinely_signed_statement_that_could_mislead_is_refused(
    run: Path, trust: Trust, rewrite_statement: Rewrite, change: Callable[[dict], None], reason: str
) -> None:
    rewrite_statement(run, change)
    (line,) = lines(run, trust)
    assert line.startswith("STATEMENT manifest.dsse.json: ")
    assert reason in line


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda pdf: pdf.update(unsignedSha256="0" * 64), "its first part is not the report as it was rendered"),
        (lambda pdf: pdf.update(certSpkiSha256="SHA256:" + "A" * 43 + "="), "another key than that of the manifest"),
    ],
)
def test_a_statement_that_says_something_else_about_the_pdf_is_refused(
    run: Path, trust: Trust, rewrite_statement: Rewrite, change: Callable[[dict], None], reason: str
) -> None:
    rewrite_statement(run, lambda statement: change(statement["predicate"]["pdf"]))
    assert reason in lines(run, trust)[0]


def test_an_attachment_that_is_not_the_file_beside_it_is_named(run: Path, trust: Trust, rewrite_statement: Rewrite) -> None:
    (run / "findings.json").write_text("{}")
    rewrite_statement(run, lambda statement: set_digest(statement, "findings.json", b"{}"))
    assert lines(run, trust) == ["PDF report.pdf: the attached findings.json is not the signed file of that name"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}", "not a DSSE envelope"),
        (b"", "Expecting value"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"payload": "", "payload": ""}', "stands twice"),
        (b" " * (8 * 1024 * 1024 + 1), "at most 8388608 are read"),
    ],
)
def test_a_manifest_that_is_none_is_refused(run: Path, trust: Trust, content: bytes, reason: str) -> None:
    (run / "manifest.dsse.json").write_bytes(content)
    assert reason in lines(run, trust)[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"valid_until": datetime.now(UTC) - timedelta(seconds=1)}, "ended on"),
        ({"revoked_at": datetime.now(UTC)}, "was revoked on"),
    ],
)
def test_an_expired_or_revoked_entry_makes_an_intact_report_untrusted(
    run: Path, signer: FileSigner, changes: dict[str, datetime], reason: str
) -> None:
    trust = Trust(entries=(TrustedSigner.of(signer.certificate).model_copy(update=changes),))
    verification = verify(run, trust)
    assert verification.exit_code == 4
    assert reason in verification.reasons[0]


def test_an_expired_certificate_leaves_the_report_intact_but_untrusted(run: Path, trust: Trust) -> None:
    verification = verify(run, trust, now=datetime.now(UTC) + timedelta(days=6 * 365))
    assert (verification.exit_code, verification.outcome) == (4, "intact")


def test_the_first_use_is_loud_and_remembered_and_the_second_is_quiet(run: Path, tmp_path: Path, signer: FileSigner) -> None:
    memory = tmp_path / "settings" / "known.yaml"
    first = verify(run, Trust.on_first_use(memory))
    assert first.exit_code == 0
    assert first.notes[0].startswith("TRUSTED ON FIRST USE")
    assert [entry.fingerprint for entry in read_trust(memory)] == [signer.fingerprint]
    second = verify(run, Trust.on_first_use(memory))
    assert (second.exit_code, second.notes) == (0, ())


def test_the_key_of_an_altered_report_is_not_remembered(run: Path, tmp_path: Path) -> None:
    (run / "study.yaml").write_text("changed")
    verification = verify(run, Trust.on_first_use(tmp_path / "known.yaml"))
    assert (verification.exit_code, verification.trusted) == (1, False)
    assert not (tmp_path / "known.yaml").exists()


def test_a_report_pdf_alone_is_checked_by_its_own_signature(run: Path, tmp_path: Path, trust: Trust, unsigned_pdf: bytes) -> None:
    alone = tmp_path / "alone.pdf"
    shutil.copy(run / "report.pdf", alone)
    verification = verify_pdf(alone, trust)
    assert verification.exit_code == 0
    assert [attachment.name for attachment in verification.attachments] == ["findings.json", "study.yaml"]
    assert verify_pdf(alone).exit_code == 4
    flip(alone, 2000)
    assert verify_pdf(alone, trust).exit_code == 1
    alone.write_bytes(unsigned_pdf)
    assert str(verify_pdf(alone, trust).problems[0]) == "PDF alone.pdf: the PDF has 0 signatures; exactly one is allowed"


def test_a_report_pdf_signed_on_another_curve_is_refused(tmp_path: Path, unsigned_pdf: bytes) -> None:
    from evalspec.signing.pades import sign_pdf

    private = ec.generate_private_key(ec.SECP384R1())
    (tmp_path / "report.pdf").write_bytes(sign_pdf(unsigned_pdf, FileSigner(private, self_signed(private, "Lab", years=1))).content)
    verification = verify_pdf(tmp_path / "report.pdf")
    assert verification.exit_code == 1
    assert "not on the curve P-256" in str(verification.problems[0])


def test_a_certificate_that_is_none_is_named(run: Path, trust: Trust, rewrite_statement: Rewrite) -> None:
    (run / "signer.crt").write_bytes(b"no certificate")
    rewrite_statement(run, lambda statement: set_digest(statement, "signer.crt", b"no certificate"))
    assert lines(run, trust) == ["STATEMENT signer.crt: this is not a certificate in PEM form"]


def test_what_is_no_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        verify(tmp_path / "none")


def in_new_process(code: str, folder: Path) -> str:
    script = f"import sys\n{code}\n".replace("FOLDER", repr(str(folder)))
    return subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True).stdout


def test_without_pyhanko_nothing_passes_silently(run: Path) -> None:
    code = (
        "sys.modules['pyhanko'] = None\n"
        "from pathlib import Path\n"
        "from evalspec.signing.verify import LARGEST_COMPARED, verify, verify_pdf\n"
        "for verification in (verify(Path(FOLDER)), verify_pdf(Path(FOLDER) / 'report.pdf')):\n"
        "    print(verification.exit_code, verification.outcome, verification.reasons[0])"
    )
    shown = in_new_process(code, run).splitlines()
    assert len(shown) == 2
    assert all(line.startswith("3 unchecked the signature inside report.pdf could not be checked: the library pyhanko is not") for line in shown)
    assert all("pip install -c constraints.txt '.[report]'" in line for line in shown)


def test_without_pyhanko_an_altered_file_is_still_found(run: Path) -> None:
    (run / "study.yaml").write_text("changed")
    code = (
        "sys.modules['pyhanko'] = None\nfrom pathlib import Path\nfrom evalspec.signing.verify import verify\nprint(verify(Path(FOLDER)).exit_code)"
    )
    assert in_new_process(code, run) == "1\n"


def test_verifying_loads_no_heavy_library(run: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from evalspec.signing.verify import verify\n"
        "assert verify(Path(FOLDER)).exit_code == 4\n"
        "print(sorted({'torch', 'transformers', 'weasyprint', 'matplotlib', 'numpy', 'scipy', 'pyarrow', 'pyhanko', 'aiohttp'} & sys.modules.keys()))"
    )
    assert in_new_process(code, run) == "[]\n"
