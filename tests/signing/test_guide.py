"""VERIFY.md is executed as it is written."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from evalspec.signing import dsse
from evalspec.signing.keys import FileSigner


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
    manifest = json.loads((run / "manifest.dsse.json").read_bytes())
    manifest["signatures"] = json.loads(dsse.sign(b"something else", signer).to_json())["signatures"]
    (run / "manifest.dsse.json").write_text(json.dumps(manifest))
    followed = follow(run)
    assert "findings.json: FAILED" in followed.stdout
    assert "< ./extra.txt" in followed.stdout
    assert "Verified OK" not in followed.stdout


def test_the_guide_leaves_the_folder_as_it_was(run: Path) -> None:
    before = sorted(run.rglob("*"))
    follow(run)
    assert sorted(run.rglob("*")) == before
