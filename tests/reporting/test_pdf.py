"""The PDF says what the page says, keeps to its standards, carries its sources, and has the same bytes each time."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from evalspec.errors import MissingLibrary, ReportError
from evalspec.reporting.compose import SECTIONS, compose
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.pdf import LIBRARIES, Limits, is_loadable, missing_libraries, pack, render
from evalspec.reporting.svg import Words, words
from evalspec.reporting.templates import asset

pytestmark = pytest.mark.skipif(bool(missing_libraries(is_loadable)), reason="Pango is not installed: see `evalspec doctor`")

FINISHED = "2026-11-29T16:42:31Z"
HOSTILE = "\u202eevil <script>alert(1)</script> \u200b中文 😀 Δ̈ ا \x00 " + "x" * 10_000


@pytest.fixture(scope="module")
def pdf(html: str, attachments: dict[str, bytes]) -> bytes:
    return render(html, attachments=attachments, finished=FINISHED)


@pytest.fixture(scope="module")
def pdf_file(pdf: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pdf") / "report.pdf"
    path.write_bytes(pdf)
    return path


def text_of(path: Path, *options: str) -> str:
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (package poppler-utils)")
    return subprocess.run(["pdftotext", *options, str(path), "-"], capture_output=True, text=True, check=True).stdout


def failures(content: bytes, profile: str) -> list[str]:
    page = pytest.importorskip("page", reason="page-validation is not installed")
    report = page.validate_pdf_bytes(content, profile=page.ValidationProfile(profile))
    return [f"{failure.rule_id}: {failure.message}" for failure in report.failures]


@pytest.mark.parametrize("profile", ["3a", "ua1"])
def test_the_pdf_keeps_to_its_standards(pdf: bytes, profile: str) -> None:
    assert failures(pdf, profile) == []


def test_the_decision_stands_on_the_first_page(pdf_file: Path) -> None:
    first = text_of(pdf_file, "-l", "1")
    for said in (
        "Is the large demonstration model fit for release?",
        "Failed",
        "What was found",
        "Main limits",
        "All limits stand under",
        "page 1 of",
    ):
        assert said in first
    assert re.search(r"^1\. A seal is no person’s signature, and a signature does not make a report true", first, re.MULTILINE), "no footnote"


def test_bookmarks_lead_to_every_section(pdf: bytes) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    reader = pypdf.PdfReader(BytesIO(pdf))
    titles: list[str] = []
    places: list[int] = []
    pending = list(reader.outline)
    while pending:
        entry = pending.pop(0)
        if isinstance(entry, list):
            pending = [*entry, *pending]
        else:
            titles.append(entry.title)
            places.append(reader.get_destination_page_number(entry))
    assert [title for _, title in SECTIONS if title not in titles] == []
    assert places == sorted(places)
    assert places[-1] > 10


def test_contents_name_pages_and_pages_have_running_heads(pdf_file: Path) -> None:
    second = text_of(pdf_file, "-layout", "-f", "2", "-l", "2")
    assert "Glossary" in second
    assert "Is the large demonstration model fit for release?" in second
    assert "page 2 of" in second


def test_the_sources_are_attached_unchanged(pdf_file: Path, attachments: dict[str, bytes], tmp_path: Path) -> None:
    if shutil.which("pdfdetach") is None:
        pytest.skip("pdfdetach is not installed (package poppler-utils)")
    subprocess.run(["pdfdetach", "-saveall", "-o", str(tmp_path), str(pdf_file)], check=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == attachments


def test_the_metadata_can_be_read_with_any_tool(pdf: bytes) -> None:
    assert pdf.count(b"<rdf:RDF") == pdf.count(b"</rdf:RDF>") == 1
    assert b"<pdfuaid:part>1</pdfuaid:part>" in pdf
    assert b"2026-11-29T16:42:31Z" in pdf


@pytest.mark.slow
def test_another_process_makes_the_same_bytes(pdf: bytes, html: str, attachments: dict[str, bytes]) -> None:
    assert render(html, attachments=attachments, finished=FINISHED) == pdf


@pytest.mark.slow
def test_hostile_text_breaks_no_standard(build_dossier: Callable[..., Dossier], tmp_path: Path) -> None:
    html = compose(build_dossier(title="<script>\u202e" + "W" * 280, stems={"*": HOSTILE}, questions=24)).html
    content = render(html, attachments={}, finished=FINISHED)
    assert failures(content, "3a") == []
    assert failures(content, "ua1") == []
    (tmp_path / "hostile.pdf").write_bytes(content)
    text = text_of(tmp_path / "hostile.pdf")
    assert "‹U+4E2D›" in text
    assert "‹U+202E›evil <script>" in text


@pytest.mark.parametrize(
    "element",
    [
        '<img src="{}">',
        '<link rel="stylesheet" href="{}">',
        '<a rel="attachment" href="{}">x</a>',
        "<style>@import url({})</style>",
        "<style>p {{ background: url({}) }}</style>",
    ],
)
def test_a_page_that_asks_for_a_file_is_refused(element: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with pytest.raises(ReportError, match="fetches nothing"):
        render(f"<html lang=en><title>t</title>{element.format(secret.as_uri())}<p>text", attachments={}, finished=FINISHED)


def drawn(label: Words, folder: Path) -> bytes:
    """Return the pixels of a PDF page that holds a drawing of one label."""
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm is not installed (package poppler-utils)")
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30" width="90" height="30">{words(5, 20, "balanced", label)}</svg>'
    html = f"<html lang=en><title>t</title><style>{asset('style.css')}</style>{drawing}"
    (folder / "label.pdf").write_bytes(render(html, attachments={}, finished=FINISHED))
    subprocess.run(["pdftoppm", "-r", "50", "-gray", str(folder / "label.pdf"), str(folder / "label")], check=True)
    return next(folder.glob("label-*.pgm")).read_bytes().split(b"\n255\n", 1)[1]


def test_a_label_that_lines_may_cross_is_not_hidden_by_its_own_halo(tmp_path: Path) -> None:
    plain = drawn(Words(), tmp_path)
    assert min(plain) < 200  # there is ink
    assert drawn(Words(halo=True), tmp_path) == plain


def test_a_page_cannot_attach_a_file_by_itself(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    page = f'<html lang=en><title>t</title><link rel="attachment" href="{secret.as_uri()}"><p>text'
    assert b"/Filespec" not in render(page, attachments={}, finished=FINISHED)


def test_no_packed_stream_ends_in_a_carriage_return() -> None:
    pydyf = pytest.importorskip("pydyf", reason="WeasyPrint is not installed")
    ending_so = b"\x0c"  # the last byte of what zlib packs is 1 more than the sum of the content, modulo 65521 and 256
    assert zlib.compress(ending_so, 9).endswith(b"\r")
    for content in (ending_so, b"another content"):
        stream = pydyf.Stream([content], {"Type": "/X"}, compress=True)
        pack(stream)
        head, _, rest = stream.data.partition(b"stream\n")
        length = int(re.search(rb"/Length (\d+)", head)[1])
        assert (b"/FlateDecode" in head, b"/Type /X" in head, rest[length:]) == (True, True, b"\nendstream")
        assert not rest[:length].endswith(b"\r")
        assert zlib.decompressobj().decompress(rest[:length]) == content


def test_a_child_that_takes_too_long_is_stopped(html: str) -> None:
    with pytest.raises(ReportError, match="more than 1 seconds"):
        render(html, attachments={}, finished=FINISHED, limits=Limits(wall_seconds=1))


def test_a_child_that_takes_too_much_memory_is_an_error(html: str) -> None:
    with pytest.raises(ReportError, match="failed"):
        render(html, attachments={}, finished=FINISHED, limits=Limits(memory_bytes=60 * 2**20))


def test_a_missing_library_is_named_with_the_way_to_get_it() -> None:
    gone = {"libpango-1.0-0", "libharfbuzz-subset0"}
    names = {name for package in gone for name in LIBRARIES[package]}
    with pytest.raises(MissingLibrary, match=r"needs the Pango library.*libpango-1\.0-0, libharfbuzz-subset0 not found") as raised:
        render("<p>", attachments={}, finished=FINISHED, probe=lambda name: name not in names)
    assert "sudo apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0" in str(raised.value)
    assert raised.value.exit_code == 3
