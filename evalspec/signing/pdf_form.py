"""Does a PDF hold what no report has: scripts, layers, forms, or files attached out of sight?  A signed one can show one thing and carry another.

Clauses are those of ISO 32000-1. A child process reads the PDF, within limits, so that a hostile one is given up.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhanko.pdf_utils.generic import DictionaryObject
from pyhanko.pdf_utils.reader import PdfFileReader

MOST_ATTACHED = 64 * 2**20
CATALOG = {
    "/OpenAction": "acts when it is opened",
    "/AA": "acts by itself",
    "/OCProperties": "has layers that can be hidden",
    "/Collection": "presents itself as a collection of files",
}
"""Entries of the catalogue (7.7.2) that no report has, and what they mean."""
NAMES = ("/EmbeddedFiles", "/Dests")
"""Name trees (7.7.4) that a report may have; scripts stand in others."""
ANNOTATIONS = ("/Link", "/Widget")
"""Annotations (12.5.6) that a report may have: links, and the place of its seal."""


def foreign_parts(reader: PdfFileReader) -> Iterator[str]:
    """Yield what the PDF has and no report has."""
    root = reader.root
    yield from (f"the PDF {meaning}" for key, meaning in CATALOG.items() if key in root)
    if "/XFA" in root["/AcroForm"]:
        yield "the PDF has a form of another kind (XFA)"
    names = root.get("/Names", {})
    yield from (f"the PDF has named entries of another kind: {key}" for key in names if key not in NAMES)
    odd = {str(kind) for page in _pages(root["/Pages"]) for kind in _annotations(page) if kind not in ANNOTATIONS}
    yield from (f"a page has an annotation of another kind: {kind}" for kind in sorted(odd))
    known = {str(reference) for reference in _references(_entries(root), start=1)}
    if "/AF" in root and not {str(root["/AF"].raw_get(place)) for place in range(len(root["/AF"]))} <= known:
        yield "the PDF has an associated file that is not among its attachments"


def attachments(reader: PdfFileReader) -> dict[str, bytes]:
    """Return the files attached in a flat name tree (7.9.6), as WeasyPrint writes it; raises ValueError for any other."""
    attached: dict[str, bytes] = {}
    entries = _entries(reader.root)
    for position in range(1, len(entries), 2):
        specification = entries[position]
        name, content = _file(specification)
        if name in attached:
            raise ValueError(f"two attachments are named {name!r}")
        attached[name] = content
        if sum(map(len, attached.values())) > MOST_ATTACHED:
            raise ValueError(f"more than {MOST_ATTACHED} bytes are attached")
    return attached


def _file(specification: DictionaryObject) -> tuple[str, bytes]:
    """Return name and content of a file specification (7.11.3), which readers find under either of two keys: both must say the same."""
    names = {str(specification[key]) for key in ("/F", "/UF") if key in specification}
    if len(names) != 1:
        raise ValueError(f"an attachment has {len(names)} names, {' and '.join(map(repr, sorted(names)))}, of which readers show either")
    streams = specification["/EF"]
    if set(streams) != {"/F"}:
        raise ValueError(f"the attachment {names.pop()!r} holds several contents, of which readers open either")
    return names.pop(), bytes(streams["/F"].data)


def _entries(root: DictionaryObject) -> list[object]:
    """Return names and file specifications in turn; only indexing resolves references."""
    if "/Names" not in root or "/EmbeddedFiles" not in root["/Names"]:
        return []
    tree = root["/Names"]["/EmbeddedFiles"]
    if set(tree) != {"/Names"} or len(tree["/Names"]) % 2:
        raise ValueError("its attachments are listed in another form than that of a report")
    return tree["/Names"]  # type: ignore[no-any-return]  # pyHanko ships no types


def _references(entries: object, *, start: int) -> Iterator[object]:
    for position in range(start, len(entries), 2):  # type: ignore[arg-type]  # the same
        yield entries.raw_get(position)  # type: ignore[attr-defined]  # the same


def _pages(top: DictionaryObject) -> Iterator[DictionaryObject]:
    pending = [top]
    while pending:
        node = pending.pop()
        if "/Kids" in node:
            pending += [node["/Kids"][place] for place in range(len(node["/Kids"]))]
        else:
            yield node


def _annotations(page: DictionaryObject) -> Iterator[object]:
    found = page.get("/Annots", [])
    for place in range(len(found)):
        annotation = found[place]
        yield annotation["/Subtype"]
        if "/A" in annotation and annotation["/A"]["/S"] not in ("/URI", "/GoTo"):
            yield f"{annotation['/Subtype']} that does {annotation['/A']['/S']}"
        if "/AA" in annotation:
            yield f"{annotation['/Subtype']} that acts by itself"
