"""How does the page become a PDF that lasts?  WeasyPrint in a child process: PDF/A-3a and PDF/UA-1, same input, same bytes.

The child is `python -m evalspec.reporting.pdf FOLDER`: files in, `report.pdf` out. It alone imports WeasyPrint, under limits of time and
memory, because hostile text in a report could make a layout engine run away.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from evalspec import children
from evalspec.children import Limits
from evalspec.errors import Diagnostic, MissingLibrary, ReportError, how_to_install
from evalspec.reporting.characters import replace_absent

if TYPE_CHECKING:
    from pydyf import Stream
    from weasyprint import HTML
    from weasyprint.document import Document

__all__ = ["LIBRARIES", "Limits", "is_loadable", "missing_libraries", "render"]

FONTS = Path(__file__).parent / "fonts"

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "libgobject-2.0-0": ("libgobject-2.0.so.0", "libgobject-2.0.0.dylib", "libgobject-2.0-0.dll"),
    "libpango-1.0-0": ("libpango-1.0.so.0", "libpango-1.0.0.dylib", "libpango-1.0-0.dll"),
    "libpangoft2-1.0-0": ("libpangoft2-1.0.so.0", "libpangoft2-1.0.0.dylib", "libpangoft2-1.0-0.dll"),
    "libfontconfig1": ("libfontconfig.so.1", "libfontconfig.1.dylib", "libfontconfig-1.dll"),
    "libharfbuzz0b": ("libharfbuzz.so.0", "libharfbuzz.0.dylib", "libharfbuzz-0.dll"),
    "libharfbuzz-subset0": ("libharfbuzz-subset.so.0", "libharfbuzz-subset.0.dylib", "libharfbuzz-subset-0.dll"),
}
"""The system libraries that drawing a PDF needs, by their Debian package, each with its file names per system."""

PANGO_HINT = """install it, then run "evalspec report" on the same folder:
  Debian/Ubuntu: sudo apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0
  Fedora: sudo dnf install pango   macOS: brew install pango, then export DYLD_FALLBACK_LIBRARY_PATH=/opt/homebrew/lib
  Windows: install MSYS2, then pacman -S mingw-w64-ucrt-x86_64-pango  (or use WSL)
The HTML report, the JSON files and the signed manifest do not need it."""

ATTACHMENT_DESCRIPTIONS = {
    "study.yaml": "The study as its author wrote it",
    "protocol.json": "The study resolved to digests",
    "findings.json": "All numbers of this report",
    "verdict.json": "The outcome of every check",
}

BEGIN, END = b"\nstream\n", b"\nendstream"

PDFUA = "http://www.aiim.org/pdfua/ns/id/"
UA_MARK = f"""
<rdf:Description rdf:about="" xmlns:pdfuaid="{PDFUA}"><pdfuaid:part>1</pdfuaid:part></rdf:Description>
<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"
 xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
<pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
<pdfaSchema:schema>PDF/UA identification schema</pdfaSchema:schema>
<pdfaSchema:namespaceURI>{PDFUA}</pdfaSchema:namespaceURI>
<pdfaSchema:prefix>pdfuaid</pdfaSchema:prefix>
<pdfaSchema:property><rdf:Seq><rdf:li rdf:parseType="Resource">
<pdfaProperty:name>part</pdfaProperty:name><pdfaProperty:valueType>Integer</pdfaProperty:valueType>
<pdfaProperty:category>internal</pdfaProperty:category>
<pdfaProperty:description>Part of ISO 14289 that the file follows</pdfaProperty:description>
</rdf:li></rdf:Seq></pdfaSchema:property>
</rdf:li></rdf:Bag></pdfaExtension:schemas></rdf:Description>
</rdf:RDF>"""
"""The mark of PDF/UA-1, with the extension schema that PDF/A-3 asks for (ISO 19005-3, 6.6.2.3), for the end of the one rdf:RDF."""


def render(
    html: str,
    *,
    attachments: Mapping[str, bytes],
    finished: str,
    probe: Callable[[str], bool] | None = None,
    limits: Limits | None = None,
) -> bytes:
    """Return the page as a PDF with `attachments` by file name; `finished` (ISO 8601) is the only date in it.

    `probe` says whether a system library of that file name can be loaded. Raises MissingLibrary and ReportError.
    """
    missing = missing_libraries(probe or is_loadable)
    if missing:
        raise MissingLibrary(f"the PDF report needs the Pango library, which is not installed ({', '.join(missing)} not found)", hint=PANGO_HINT)
    limits = limits or Limits()
    try:
        with tempfile.TemporaryDirectory(prefix="evalspec-pdf-") as name:
            folder = Path(name)
            _write_request(folder, html, attachments, finished=finished, limits=limits)
            _run_child(folder, limits)
            return (folder / "report.pdf").read_bytes()
    except OSError as error:
        problem = f"the PDF report cannot be made in {tempfile.gettempdir()}: {error.strerror or error}"
        raise ReportError(problem, hint="make room there, or set TMPDIR to a folder that has room") from error


def missing_libraries(probe: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the packages of `LIBRARIES` of which no file can be loaded."""
    return tuple(package for package, names in LIBRARIES.items() if not any(probe(name) for name in names))


def is_loadable(name: str) -> bool:
    """Return whether the system's loader finds the shared library of that file name."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _write_request(folder: Path, html: str, attachments: Mapping[str, bytes], *, finished: str, limits: Limits) -> None:
    request = {"finished": finished, "attachments": sorted(attachments), "cpu_seconds": limits.cpu_seconds, "memory_bytes": limits.memory_bytes}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    (folder / "report.html").write_text(html, encoding="utf-8")
    (folder / "attachments").mkdir()
    for name, content in attachments.items():
        (folder / "attachments" / name).write_bytes(content)
    # Only the bundled fonts, and of those only the ones for paper: a font of the system would change bytes from machine to machine.
    (folder / "fonts.conf").write_text(
        f"<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig><dir>{escape(str(FONTS))}</dir>"
        f"<cachedir>{escape(str(folder / 'cache'))}</cachedir>"
        "<selectfont><rejectfont><glob>*.woff2</glob></rejectfont></selectfont></fontconfig>",
        encoding="utf-8",
    )


def _run_child(folder: Path, limits: Limits) -> None:
    environment = children.environment() | {"FONTCONFIG_FILE": str(folder / "fonts.conf"), "HOME": str(folder), "TMPDIR": str(folder)}
    command = children.command("evalspec.reporting.pdf", str(folder))
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limits.wall_seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise ReportError(f"rendering the PDF took more than {limits.wall_seconds} seconds and was stopped") from error
    if done.returncode != 0:
        if library := children.absent_library(done.stderr):
            raise MissingLibrary(f"the PDF report needs the library {library}, which is not installed", hint=how_to_install("report"))
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ReportError(
            Diagnostic(f"rendering the PDF failed (exit status {done.returncode}): {last}", hint="the HTML report holds the same content")
        )


def main(arguments: list[str]) -> None:
    """Render the request in the folder that is named: the child's side of `render`."""
    folder = Path(arguments[0])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    children.limit_self(cpu_seconds=request["cpu_seconds"], memory_bytes=request["memory_bytes"])
    html = _for_paper((folder / "report.html").read_text(encoding="utf-8"))
    files = {name: (folder / "attachments" / name).read_bytes() for name in request["attachments"]}
    (folder / "report.pdf").write_bytes(_write_pdf(html, files, datetime.fromisoformat(request["finished"])))


def _for_paper(html: str) -> str:
    """Return the page without web fonts and addresses of numbers, with plain colours in drawings, without characters that the bundled fonts lack."""
    html = re.sub(r"<style data-fonts>.*?</style>", "", html, count=1, flags=re.DOTALL)
    html = re.sub(r'<data value="[^"]*" data-(?:path|count-of)="[^"]*">', "<data>", html)
    html = re.sub(r"<svg .*?</svg>", lambda drawing: re.sub(r"var\(--[\w-]+, (#[0-9a-f]{6})\)", r"\1", drawing[0]), html, flags=re.DOTALL)
    return replace_absent(html, _characters(FONTS.glob("*.ttf")))


def _characters(fonts: Iterable[Path]) -> frozenset[int]:
    from fontTools.ttLib import TTFont  # noqa: PLC0415 - only the child has use for it

    present: set[int] = set()
    for path in fonts:
        with TTFont(path, lazy=True) as font:
            present.update(font.getBestCmap())
    return frozenset(present)


def pack(stream: Stream) -> None:
    """Compress a stream of pydyf, once for all the times that it is written, and never to a carriage return at its end.

    A line feed follows the content of a stream. After a carriage return the two would be read as one end of line, and the content as one byte
    shorter than its length says (ISO 19005-3, 6.1.7.1). One compressed stream in 256 ends so; a line feed after it is no part of what it unpacks to.
    """
    stream.compress = False
    written = stream.data
    packed = zlib.compress(written[written.index(BEGIN) + len(BEGIN) : -len(END)], 9)
    stream.stream, stream.extra = [packed + b"\n" if packed.endswith(b"\r") else packed], {**stream.extra, "Filter": "/FlateDecode"}


def _write_pdf(html: str, files: Mapping[str, bytes], finished: datetime) -> bytes:
    from weasyprint import HTML, Attachment  # noqa: PLC0415 - heavy, and prints to the console where Pango is missing
    from weasyprint.urls import FatalURLFetchingError, URLFetcher  # noqa: PLC0415 - the same

    class NothingFetched(URLFetcher):  # type: ignore[misc] # WeasyPrint has no types
        def fetch(self, url: str, headers: object = None) -> None:  # noqa: ARG002 - the signature of WeasyPrint
            raise FatalURLFetchingError(f"a report fetches nothing; it asked for {url[:200]!r}")

    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    _pack_streams()
    fetcher = NothingFetched()
    page: HTML = HTML(string=html, base_url=None, url_fetcher=fetcher)
    document = page.render(pdf_variant="pdf/a-3a", pdf_tags=True, uncompressed_pdf=False)
    document.metadata.attachments = [
        Attachment(
            string=content,
            name=name,
            description=ATTACHMENT_DESCRIPTIONS.get(name, name),
            relationship="Source" if name == "study.yaml" else "Data",
            created=finished,
            modified=finished,
            url_fetcher=fetcher,
        )
        for name, content in files.items()
    ]
    _mark_metadata(document)
    identifier = hashlib.sha256(html.encode()).digest()[:16]
    content: bytes = document.write_pdf(pdf_variant="pdf/a-3a", pdf_identifier=identifier, pdf_tags=True)
    return content


def _pack_streams() -> None:
    """Let every stream be packed by `pack` when it is first written."""
    import pydyf  # noqa: PLC0415 - only the child has use for it

    write = pydyf.Stream.data.fget

    def data(stream: Stream) -> bytes:
        if stream.compress:
            pack(stream)
        written: bytes = write(stream)
        return written

    pydyf.Stream.data = property(data)


def _mark_metadata(document: Document) -> None:
    """Add the mark of PDF/UA-1 inside the one rdf:RDF, and keep the metadata uncompressed, so that it can be read with any tool."""
    metadata = document.metadata
    rdf, include = metadata.generate_rdf_metadata, metadata.include_in_pdf

    def generate(variant: str, version: int, conformance: str) -> bytes:
        written: bytes = rdf(variant, version, conformance)
        return written.replace(b"</rdf:RDF>", UA_MARK.encode())

    def include_uncompressed(pdf: object, variant: str, version: int, conformance: str, compress: object) -> None:  # noqa: ARG001 - WeasyPrint's signature
        include(pdf, variant, version, conformance, compress=False)

    metadata.generate_rdf_metadata = generate
    metadata.include_in_pdf = include_uncompressed


if __name__ == "__main__":
    main(sys.argv[1:])
