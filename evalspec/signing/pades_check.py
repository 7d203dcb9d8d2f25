"""Does the signature inside a PDF cover every byte of it, and what is attached?  Whose key it is, is judged elsewhere.

`python -m evalspec.signing.pades_check CPU_SECONDS MEMORY_BYTES` is the child of `pdf_seal`: a PDF in, a seal as JSON out.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO

from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, parse_pdf_date
from pyhanko.pdf_utils.reader import PdfFileReader

from evalspec.children import limit_self
from evalspec.signing.cms_check import check_cms
from evalspec.signing.pdf_form import attachments, foreign_parts
from evalspec.signing.pdf_seal import PdfSeal

LONGEST_FAULT = 200
END = b"%%EOF"
TAIL = 1024
"""Bytes at the end of a PDF in which its end mark must stand (ISO 32000-1, annex H)."""


def read_seal(content: bytes) -> PdfSeal:
    """Check the one signature of a PDF and read what it covers; faults are reported, never raised, but for a lack of memory."""
    if END not in content[-TAIL:]:  # pyHanko looks for it byte by byte, and a file may be long
        return PdfSeal(("the PDF cannot be read as a signed one (its end is missing)",))
    try:
        reader = PdfFileReader(BytesIO(content))
        fields = reader.root["/AcroForm"]["/Fields"] if "/AcroForm" in reader.root else ArrayObject()
        if len(fields) != 1:
            return PdfSeal((f"the PDF has {len(fields)} signatures; exactly one is allowed",))
        return _check(reader, fields[0], content)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile file can make a PDF parser raise anything; whatever it is, the file is not intact
        return PdfSeal((f"the PDF cannot be read as a signed one ({type(error).__name__}: {error})"[:LONGEST_FAULT],))


def _check(reader: PdfFileReader, field: DictionaryObject, content: bytes) -> PdfSeal:
    if reader.encrypted or field["/FT"] != "/Sig" or "/Kids" in field:
        raise ValueError("its one form field is not the seal")
    signature = field["/V"]
    container, ranges = bytes(signature["/Contents"].original_bytes), [int(number) for number in signature["/ByteRange"]]
    if signature["/SubFilter"] != "/ETSI.CAdES.detached":
        raise ValueError(f"the signature is of the kind {signature['/SubFilter']}; PAdES is allowed")
    start, before, after, length = ranges
    covered = content[start : start + before], content[after : after + length]
    found = check_cms(container, hashlib.sha256(b"".join(covered)).digest())
    signed_at = claimed_time(signature)
    requirements = {
        "the signature does not cover the entire file": _covers_all(ranges, content, container),
        "the signature does not forbid changes": _forbids_changes(reader, field),
        "the signature has no date with a time zone": signed_at is not None and signed_at.tzinfo is not None,
    }
    faults = (*found.faults, *(fault for fault, met in requirements.items() if not met))
    if not faults:  # only now is it worth while to look into it
        faults = tuple(foreign_parts(reader))
    return PdfSeal(faults, found.certificate, None if faults else signed_at, {} if faults else attachments(reader))


def claimed_time(signature: DictionaryObject) -> datetime | None:
    """Return the time that the signer claims, in UTC where it has a zone; raises OverflowError for one outside the years 1 to 9999."""
    claimed: datetime | None = parse_pdf_date(signature["/M"]) if "/M" in signature else None
    return claimed.astimezone(UTC) if claimed is not None and claimed.tzinfo is not None else claimed


def _covers_all(ranges: Sequence[int], content: bytes, container: bytes) -> bool:
    """Say whether all bytes are signed but the hexadecimal string that holds the signature itself, in the one form in which it is written."""
    start, before, after, length = ranges
    return start == 0 and after + length == len(content) and content[before:after] == b"<%b>" % container.hex().upper().encode()


def _forbids_changes(reader: PdfFileReader, field: DictionaryObject) -> bool:
    """Say whether this very signature is the document's certification, with no changes permitted (ISO 32000-1, 12.8.2.2)."""
    if "/Perms" not in reader.root or reader.root["/Perms"].raw_get("/DocMDP") != field.raw_get("/V"):
        return False
    (reference,) = field["/V"]["/Reference"]
    return bool(reference["/TransformMethod"] == "/DocMDP" and reference["/TransformParams"]["/P"] == 1)


def main(arguments: Sequence[str]) -> None:
    """Read a PDF from standard input and write its seal to standard output: the child's side of `pdf_seal.read_apart`."""
    cpu_seconds, memory_bytes = map(int, arguments)
    limit_self(cpu_seconds=cpu_seconds, memory_bytes=memory_bytes)
    logging.disable()  # pyHanko remarks on odd files
    sys.stdout.buffer.write(read_seal(sys.stdin.buffer.read()).to_json())


if __name__ == "__main__":
    main(sys.argv[1:])
