"""Does report.pdf show what report.html shows?  The page is rendered again: the same bytes, or at least the same words."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.lock import LOCK
from evalspec.errors import MissingLibrary, ReportError
from evalspec.reporting.pdf import render
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, PROTOCOL, REPORT_HTML, REPORT_PDF, STUDY_SOURCE, VERDICT, first_fault
from evalspec.verified_run import VerifiedRun

IN_ORDER = (STUDY_SOURCE, PROTOCOL, FINDINGS, VERDICT, LOCK)
"""Attached files, in the order in which a run attaches them."""

MOST_WORDS = 10
LONGEST = 60
"""Seconds that the words of a PDF may take to be read."""


@dataclass(frozen=True, slots=True)
class PdfCheck:
    """What came of rendering the page again; `words` are some that only one of the two has."""

    state: Literal["same", "same_words", "differs", "not_compared"]
    words: tuple[str, ...] = ()
    why: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where words differ, 3 where nothing could be compared."""
        return {"same": 0, "same_words": 0, "differs": 1, "not_compared": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        return {
            "same": "report.pdf is what report.html renders to, to the byte",
            "same_words": "report.pdf has the words of report.html, each as often, but report.html renders to other bytes here: other versions of "
            "WeasyPrint, Pango or fonts do that, and so would a changed layout or drawing, which were not compared",
            "differs": f"report.pdf does not say what report.html says; only in one of the two: {', '.join(self.words)}",
            "not_compared": f"report.pdf was not held against report.html: {self.why}",
        }[self.state]


def check_pdf(folder: Path, verification: Verification) -> PdfCheck:
    """Render report.html again and hold report.pdf against it, all read from verified bytes."""
    if verification.outcome == "altered":
        return PdfCheck("not_compared", why="the content is not as it was signed")
    claim = verification.statement.predicate.pdf if verification.statement else None
    if claim is None:
        return PdfCheck("not_compared", why="this report has no PDF")
    run = VerifiedRun(folder, verification)
    attached = {attachment.name for attachment in verification.attachments}
    try:
        attachments = {name: run.content(name) for name in IN_ORDER if name in attached}
        rendered = render(run.content(REPORT_HTML).decode(), attachments=attachments, finished=run.ledger().finished)
        if sha256_hex(rendered) == claim.unsigned_sha256:
            return PdfCheck("same")
        return by_words(run.content(REPORT_PDF)[: claim.unsigned_prefix_bytes], rendered)
    except (MissingLibrary, ReportError) as error:
        return PdfCheck("not_compared", why=error.diagnostics[0].message)
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return PdfCheck("not_compared", why=first_fault(error))


def by_words(signed: bytes, rendered: bytes) -> PdfCheck:
    """Compare how often each word stands in two PDFs; whole numbers up to the number of pages may be places in another layout."""
    program = shutil.which("pdftotext")
    if program is None:
        return PdfCheck("not_compared", why="it renders to other bytes here, and pdftotext (poppler-utils), which reads its words, is not installed")
    (first, pages), (second, others) = (_words(program, content) for content in (signed, rendered))
    differing = [word for word in sorted({*first, *second}) if first[word] != second[word] and not _is_page(word, max(pages, others))]
    return PdfCheck("differs", tuple(differing[:MOST_WORDS])) if differing else PdfCheck("same_words")


def _words(program: str, content: bytes) -> tuple[Counter[str], int]:
    """Return the words of a PDF, put together where a line end cut them, and how many pages it has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.pdf"
        path.write_bytes(content)
        done = subprocess.run([program, "-enc", "UTF-8", str(path), "-"], capture_output=True, timeout=LONGEST, check=True)  # noqa: S603 - found above
    text = done.stdout.decode(errors="replace")
    return Counter(text.replace("\u00ad\n", "").replace("\f", " ").split()), text.count("\f")


def _is_page(word: str, pages: int) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 6 and int(word) <= pages
