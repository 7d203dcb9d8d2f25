"""VERIFY.md is executed as it is written."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from evalspec.signing import dsse
from evalspec.signing.keys import FileSigner
from evalspec.signing.trust import Trust
from evalspec.signing.verify import verify


def follow(folder: Path) -> subprocess.CompletedProcess[str]:
    script = "\n".join(re.findall(r"```sh\n(.*?)```", (folder / "VERIFY.md").read_text(), flags=re.DOTALL))
    return subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


def test_a_reader_without_evalspec_can_check_everything(run: Path, signer: FileSigner) -> None:
    followed = follow(run)
    assert followed.stderr == ""
    lines = followed.stdout.splitlines()
    assert lines[0] == signer.fingerprint
    assert lines[1] == "Verified OK"
    assert "findings.json: OK" in lines
    assert "Signature is Valid" in followed.stdout
    assert "Total document signed" in followed.stdout
    assert not [line for line in lines if line.startswith(("<", ">"))]


def test_the_guide_shows_what_was_changed_added_and_re_signed(run: Path, signer: FileSigner) -> None:
    (run / "findings.json").write_text("{}")
    (run / "extra.txt").write_text("")
    (run / "approved").mkdir()
    manifest = json.loads((run / "manifest.dsse.json").read_bytes())
    manifest["signatures"] = json.loads(dsse.sign(b"something else", signer).to_json())["signatures"]
    (run / "manifest.dsse.json").write_text(json.dumps(manifest))
    followed = follow(run)
    assert "findings.json: FAILED" in followed.stdout
    assert "< ./extra.txt" in followed.stdout
    assert "< ./approved" in followed.stdout
    assert "Verified OK" not in followed.stdout


def test_the_guide_leaves_the_folder_as_it_was(run: Path) -> None:
    before = sorted(run.rglob("*"))
    follow(run)
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize("theirs_first", [True, False])
def test_the_guide_finds_the_signature_of_this_key_among_others_as_verify_does(
    run: Path, signer: FileSigner, impostor: FileSigner, trust: Trust, theirs_first: bool
) -> None:
    envelope = dsse.parse_envelope((run / "manifest.dsse.json").read_bytes())
    payload = base64.b64decode(envelope.payload)
    void = dsse.EnvelopeSignature(keyid=signer.fingerprint, sig=dsse.sign(b"something else", signer).signatures[0].sig)
    others = (*dsse.sign(payload, impostor).signatures, void)
    signatures = (*others, *envelope.signatures) if theirs_first else (*envelope.signatures, *others)
    (run / "manifest.dsse.json").write_bytes(envelope.model_copy(update={"signatures": signatures}).to_json())
    assert verify(run, trust).exit_code == 0
    lines = follow(run).stdout.splitlines()
    assert lines.count("Verified OK") == 1
    assert "findings.json: OK" in lines


def test_the_guide_does_not_take_the_signature_of_another_key_for_this_ones(run: Path, impostor: FileSigner, trust: Trust) -> None:
    envelope = dsse.parse_envelope((run / "manifest.dsse.json").read_bytes())
    (run / "manifest.dsse.json").write_bytes(dsse.sign(base64.b64decode(envelope.payload), impostor).to_json())
    assert verify(run, trust).exit_code == 1
    assert "Verified OK" not in follow(run).stdout


def test_the_guide_runs_nothing_that_lies_in_the_folder(run: Path, tmp_path: Path) -> None:
    for name in ("json.py", "base64.py", "pathlib.py"):
        (run / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert "< ./json.py" in follow(run).stdout
    assert not (tmp_path / "ran").exists()
