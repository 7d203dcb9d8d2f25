from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalspec.errors import SigningError
from evalspec.signing.keys import FileSigner
from evalspec.signing.seal import seal
from evalspec.signing.statement import Claim, Decision
from evalspec.signing.trust import Trust
from evalspec.signing.verify import verify


@pytest.fixture
def unsealed(run: Path, unsigned_pdf: bytes) -> Path:
    for name in ("manifest.dsse.json", "signer.crt", "VERIFY.md"):
        (run / name).unlink()
    (run / "report.pdf").write_bytes(unsigned_pdf)
    return run


def test_a_sealed_folder_verifies(unsealed: Path, signer: FileSigner, claim: Claim, trust: Trust) -> None:
    seal(unsealed, signer, claim)
    assert verify(unsealed, trust).exit_code == 0


def test_sealing_again_after_rendering_again_replaces_the_seal(
    unsealed: Path, unsigned_pdf: bytes, signer: FileSigner, claim: Claim, trust: Trust
) -> None:
    seal(unsealed, signer, claim)
    (unsealed / "report.pdf").write_bytes(unsigned_pdf)
    (unsealed / "verdict.json").write_text("{}")
    seal(unsealed, signer, claim.model_copy(update={"decision": Decision(result="failed", rule="every check passes")}))
    verification = verify(unsealed, trust)
    assert verification.exit_code == 0
    assert verification.statement is not None
    assert verification.statement.predicate.decision.result == "failed"


def test_no_manifest_is_left_when_sealing_fails(run: Path, signer: FileSigner, claim: Claim) -> None:
    with pytest.raises(SigningError, match="signed already"):
        seal(run, signer, claim)
    assert not (run / "manifest.dsse.json").exists()


def test_every_odd_file_is_named_at_once(unsealed: Path, signer: FileSigner, claim: Claim) -> None:
    (unsealed / "link").symlink_to(unsealed / "study.yaml")
    (unsealed / "line\nbreak").write_text("")
    (unsealed / "STUDY.yaml").write_text("")
    with pytest.raises(SigningError) as error:
        seal(unsealed, signer, claim)
    text = str(error.value)
    assert "link is a symbolic link" in text
    assert "'line\\\\nbreak'" in text
    assert "'STUDY.yaml' and 'study.yaml'" in text


def test_a_report_without_pdf_says_why(unsealed: Path, signer: FileSigner, claim: Claim, trust: Trust) -> None:
    (unsealed / "report.pdf").unlink()
    with pytest.raises(SigningError, match="is to be sealed exactly when"):
        seal(unsealed, signer, claim)
    seal(unsealed, signer, claim, pdf_skipped="skipped: Pango not installed")
    verification = verify(unsealed, trust)
    assert verification.exit_code == 0
    assert verification.notes == ("this report has no PDF: skipped: Pango not installed",)
    assert "pdfsig" not in (unsealed / "VERIFY.md").read_text()


def test_a_pdf_whose_attachment_is_not_the_file_is_not_sealed(unsealed: Path, signer: FileSigner, claim: Claim) -> None:
    (unsealed / "findings.json").write_text(json.dumps({"other": 1}))
    with pytest.raises(SigningError, match=r"findings\.json is not attached to it as it is in the folder"):
        seal(unsealed, signer, claim)


def test_a_claim_about_another_study_is_not_sealed(unsealed: Path, signer: FileSigner, claim: Claim) -> None:
    other = claim.model_copy(update={"study": claim.protocol})
    with pytest.raises(SigningError, match=r"another digest of study\.yaml"):
        seal(unsealed, signer, other)


def test_a_signer_whose_certificate_is_of_another_key_does_not_seal(unsealed: Path, signer: FileSigner, impostor: FileSigner, claim: Claim) -> None:
    class Confused:
        fingerprint = signer.fingerprint
        certificate_pem = impostor.certificate_pem
        sign = staticmethod(signer.sign)

    with pytest.raises(SigningError, match="but its certificate is of"):
        seal(unsealed, Confused(), claim)


def test_without_pyhanko_the_pdf_is_not_sealed_and_the_way_to_get_it_is_said(unsealed: Path, key_file: Path, claim: Claim) -> None:
    script = (
        "import sys; from pathlib import Path; sys.modules['pyhanko'] = None\n"
        "from evalspec.errors import MissingLibrary\n"
        "from evalspec.signing.keys import load_signer\n"
        "from evalspec.signing.seal import seal\n"
        "from evalspec.signing.statement import Claim\n"
        "try: seal(Path(sys.argv[1]), load_signer(Path(sys.argv[2]), 'correct horse'), Claim.from_json(sys.argv[3].encode()))\n"
        "except MissingLibrary as error: print(error.exit_code, error)"
    )
    command = [sys.executable, "-W", "error", "-c", script, str(unsealed), str(key_file), claim.to_json().decode()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("3 report.pdf cannot be signed without pyHanko")
    assert "pip install -c constraints.txt '.[report]'" in shown


def test_the_same_claim_and_files_give_the_same_statement(unsealed: Path, signer: FileSigner, claim: Claim) -> None:
    (unsealed / "report.pdf").unlink()
    statements = []
    for _ in range(2):
        seal(unsealed, signer, claim, pdf_skipped="none")
        statements.append(verify(unsealed).statement)
    assert statements[0] == statements[1]
