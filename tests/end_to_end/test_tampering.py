from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalspec.artifacts.base import sha256_hex

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run, Spoken


@pytest.fixture
def check(scored: Run, evalspec: Command) -> Callable[[Path], Spoken]:
    """`evalspec verify` with the right trust file."""
    return lambda target: evalspec("verify", target, "--trust", scored.trust, cwd=scored.workplace)


def test_a_flipped_byte_in_any_file_is_named(copied: Path, check: Callable[[Path], Spoken]) -> None:
    assert check(copied).code == 0
    names = sorted(path.name for path in copied.iterdir())
    assert len(names) == 14
    for name in names:
        content = (copied / name).read_bytes()
        for position in (len(content) // 3, len(content) - 2):
            (copied / name).write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
            spoken = check(copied)
            assert (spoken.code, name in spoken.out) == (1, True), (name, position, spoken.out)
        (copied / name).write_bytes(content)


def test_a_changed_number_in_the_findings_is_named_by_its_place(copied: Path, check: Callable[[Path], Spoken]) -> None:
    findings = json.loads((copied / "findings.json").read_bytes())
    findings["findings"][0]["estimates"]["columns"]["value"][0] += 0.01
    (copied / "findings.json").write_text(json.dumps(findings))
    spoken = check(copied)
    assert (spoken.code, "differs at /findings/0/estimates/columns/value/0" in spoken.out) == (1, True)


def test_removed_added_and_linked_files_are_named(copied: Path, check: Callable[[Path], Spoken]) -> None:
    (copied / "ledger.json").unlink()
    (copied / "extra.txt").write_text("x")
    (copied / "folder").mkdir()
    (copied / "folder" / "inside.txt").write_text("x")
    (copied / "verdict.json").rename(copied.parent / "verdict.json")
    (copied / "verdict.json").symlink_to(copied.parent / "verdict.json")
    spoken = check(copied)
    assert spoken.code == 1
    for line in ("MISSING ledger.json", "UNLISTED extra.txt", "UNLISTED folder/inside.txt", "SYMLINK verdict.json"):
        assert line in spoken.out


def test_without_its_manifest_a_report_is_not_just_unsigned(copied: Path, check: Callable[[Path], Spoken]) -> None:
    (copied / "manifest.dsse.json").unlink()
    spoken = check(copied)
    assert (spoken.code, "MISSING manifest.dsse.json" in spoken.out) == (1, True)


def test_a_copy_signed_again_by_another_key_of_the_same_name_is_not_trusted(scored: Run, copied: Path, tmp_path: Path, evalspec: Command) -> None:
    evalspec("keygen", "--organisation", "Example Lab", "--out", "theirs.p12", "--no-passphrase", cwd=tmp_path)
    assert evalspec("report", copied, "--key", "theirs.p12", "--no-pdf", cwd=tmp_path).code == 0
    spoken = evalspec("verify", copied, "--trust", scored.trust, cwd=tmp_path)
    assert spoken.code == 4
    assert "is known with another key" in spoken.out
    assert "recomputed" in evalspec("verify", copied, "--trust", scored.trust, "--recompute", cwd=tmp_path).out


def test_a_pdf_that_left_its_folder_is_verified_alone(scored: Run, tmp_path: Path, check: Callable[[Path], Spoken], evalspec: Command) -> None:
    alone = Path(shutil.copy2(scored.folder / "report.pdf", tmp_path / "mail.pdf"))
    good = check(alone)
    assert (good.code, "only the PDF was checked" in good.out) == (0, True)
    assert "the attached decisions follow from the attached findings" in good.out
    assert "not checked: that the numbers follow from the answers, which are not in the PDF, and that its pages show" in good.out
    assert check(scored.folder).code == 0
    study = sha256_hex((scored.folder / "study.yaml").read_bytes())
    assert evalspec("verify", alone, "--trust", scored.trust, "--expect-study", study, cwd=tmp_path).code == 0
    assert evalspec("verify", alone, "--trust", scored.trust, "--expect-study", "0" * 64, cwd=tmp_path).code == 1
    assert evalspec("verify", alone, "--expect-run", "x", cwd=tmp_path).code == 2
    assert evalspec("verify", alone, cwd=tmp_path).code == 4
    assert evalspec("verify", alone, "--recompute", cwd=tmp_path).code == 2
    content = bytearray(alone.read_bytes())
    content[len(content) // 2] ^= 1
    alone.write_bytes(content)
    spoken = check(alone)
    assert (spoken.code, "PDF mail.pdf" in spoken.out) == (1, True)


@pytest.mark.parametrize("content", [b"\x00\x01 nothing of the kind", b"", b"root:x:0:0:root:/root:/bin/bash\n", b" " * 1024 + b"%PDF-1.7\n"])
def test_what_is_no_pdf_at_all_is_an_error_of_usage(content: bytes, tmp_path: Path, check: Callable[[Path], Spoken]) -> None:
    (tmp_path / "report.pdf").write_bytes(content)
    spoken = check(tmp_path / "report.pdf")
    assert (spoken.code, spoken.out) == (2, "")
    assert "report.pdf is not a PDF" in spoken.err
    assert "Traceback" not in spoken.err


def test_a_file_of_a_report_that_is_no_pdf_points_to_its_folder(copied: Path, check: Callable[[Path], Spoken]) -> None:
    spoken = check(copied / "manifest.dsse.json")
    assert (spoken.code, "manifest.dsse.json is not a PDF" in spoken.err, "name the run directory" in spoken.err) == (2, True, True)
