"""A PDF is read apart: within limits, whatever it holds and wherever the reader stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalspec.children import Limits
from evalspec.signing.keys import FileSigner
from evalspec.signing.pades import sign_pdf
from evalspec.signing.pades_check import read_seal
from evalspec.signing.pdf_seal import PdfSeal, Unread, read_apart


@pytest.fixture(scope="module")
def signed(unsigned_pdf: bytes, signer: FileSigner) -> bytes:
    return sign_pdf(unsigned_pdf, signer).content


def with_revisions(content: bytes, count: int) -> bytes:
    """Append empty revisions, each with a cross-reference section that leads to the one before."""
    revised = bytearray(content)
    before, root, size = (re.findall(pattern, content)[-1] for pattern in (rb"startxref\s+(\d+)", rb"/Root (\d+ \d+ R)", rb"/Size (\d+)"))
    for _ in range(count):
        place = b"%d" % len(revised)
        revised += b"xref\n0 0\ntrailer\n<</Size %b/Root %b/Prev %b>>\nstartxref\n%b\n%%%%EOF\n" % (size, root, before, place)
        before = place
    return bytes(revised)


def test_a_seal_comes_back_from_the_child_as_it_was_read(signed: bytes) -> None:
    apart, here = read_apart(signed), read_seal(signed)
    assert isinstance(apart, PdfSeal)
    assert (apart, apart.faults) == (here, ())


def test_a_fault_comes_back_from_the_child(unsigned_pdf: bytes) -> None:
    assert read_apart(unsigned_pdf) == PdfSeal(("the PDF has 0 signatures; exactly one is allowed",))


def test_a_pdf_that_keeps_the_parser_busy_is_given_up_and_says_nothing_either_way(signed: bytes) -> None:
    found = read_apart(with_revisions(signed, 40_000), Limits(wall_seconds=60, cpu_seconds=1, memory_bytes=2**31))
    assert isinstance(found, Unread)
    assert "it may use 1 seconds of processor time" in found.why


def test_a_pdf_that_takes_too_much_memory_is_given_up(signed: bytes) -> None:
    found = read_apart(signed + bytes(2**26), Limits(wall_seconds=60, cpu_seconds=20, memory_bytes=2**26))
    assert isinstance(found, Unread)
    assert "MemoryError" in found.why


def test_a_pdf_that_takes_too_long_on_the_wall_clock_is_given_up(signed: bytes) -> None:
    assert read_apart(signed, Limits(wall_seconds=0)) == Unread("reading the PDF took more than 0 seconds")


@pytest.mark.parametrize("tail", [bytes(64 * 2**20), b"\n" * 2**23, b"%" * 2**23])
def test_what_is_appended_in_bulk_is_found_at_once(signed: bytes, tail: bytes) -> None:
    assert read_seal(signed + tail) == PdfSeal(("the PDF cannot be read as a signed one (its end is missing)",))


def test_nothing_is_run_from_the_current_folder(signed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json.py", "hashlib.py", "logging.py", "pyhanko.py", "evalspec.py"):
        (tmp_path / name).write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(read_apart(signed), PdfSeal)
    assert not (tmp_path / "ran").exists()


def test_the_child_loads_no_more_of_pyhanko_than_reading_takes() -> None:
    code = "import evalspec.signing.pades_check, sys; print(sorted({'aiohttp', 'pyhanko.sign', 'lxml', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
