"""A PDF under the genuine key that shows one thing and carries another, or acts by itself, is no report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from io import BytesIO
from typing import Any

import pytest

from evalspec.signing.keys import FileSigner

generic = pytest.importorskip("pyhanko.pdf_utils.generic", reason="pyHanko is not installed")

from pyhanko.pdf_utils.reader import PdfFileReader  # noqa: E402 - after the skip
from pyhanko.pdf_utils.writer import PdfFileWriter, copy_into_new_writer  # noqa: E402

from evalspec.signing.pades import sign_pdf  # noqa: E402
from evalspec.signing.pades_check import claimed_time, read_seal  # noqa: E402

Change = Callable[[PdfFileWriter], Any]


def name(text: str) -> Any:
    return generic.NameObject(text)


def made(**entries: Any) -> Any:
    return generic.DictionaryObject({name(f"/{key}"): value for key, value in entries.items()})


def stream(writer: PdfFileWriter, content: bytes) -> Any:
    return writer.add_object(generic.StreamObject(stream_data=content))


def specification(writer: PdfFileWriter, called: str, content: bytes) -> Any:
    text = generic.TextStringObject(called)
    return writer.add_object(made(Type=name("/Filespec"), F=text, UF=text, EF=made(F=stream(writer, content))))


def tree(writer: PdfFileWriter) -> Any:
    return writer.root["/Names"]["/EmbeddedFiles"]


def script() -> Any:
    return made(S=name("/JavaScript"), JS=generic.TextStringObject("app.alert(1)"))


def another_branch(writer: PdfFileWriter) -> None:
    leaf = made(Names=generic.ArrayObject([generic.TextStringObject("z"), specification(writer, "findings.json", b"{}")]))
    tree(writer)[name("/Kids")] = generic.ArrayObject([writer.add_object(leaf)])


def second_content(writer: PdfFileWriter) -> None:
    tree(writer)["/Names"][1]["/EF"][name("/UF")] = stream(writer, b"{}")


def second_name(writer: PdfFileWriter) -> None:
    tree(writer)["/Names"][1][name("/F")] = generic.TextStringObject("other.json")


def annotated(annotation: Callable[[PdfFileWriter], Any]) -> Change:
    def change(writer: PdfFileWriter) -> None:
        page = writer.root["/Pages"]["/Kids"][0]
        page[name("/Annots")] = generic.ArrayObject([writer.add_object(annotation(writer))])

    return change


def layers(writer: PdfFileWriter) -> None:
    layer = writer.add_object(made(Type=name("/OCG"), Name=generic.TextStringObject("better numbers")))
    writer.root[name("/OCProperties")] = made(OCGs=generic.ArrayObject([layer]), D=made(OFF=generic.ArrayObject([layer])))


def in_root(key: str, value: Callable[[PdfFileWriter], Any]) -> Change:
    return lambda writer: writer.root.__setitem__(name(key), value(writer))


FORMS: dict[str, tuple[Change, str]] = {
    "a second list of attachments": (another_branch, "its attachments are listed in another form"),
    "a name without its file": (lambda writer: tree(writer)["/Names"].append(generic.TextStringObject("x")), "listed in another form"),
    "an attachment of two contents": (second_content, "holds several contents"),
    "an attachment of two names": (second_name, "an attachment has 2 names"),
    "a file pinned to a page": (
        annotated(lambda writer: made(Subtype=name("/FileAttachment"), FS=specification(writer, "verdict.json", b"{}"))),
        "a page has an annotation of another kind: /FileAttachment",
    ),
    "a note on a page": (annotated(lambda _: made(Subtype=name("/FreeText"))), "another kind: /FreeText"),
    "a link that runs a script": (annotated(lambda _: made(Subtype=name("/Link"), A=script())), "/Link that does /JavaScript"),
    "an associated file": (in_root("/AF", lambda writer: generic.ArrayObject([specification(writer, "x", b"x")])), "not among its attachments"),
    "layers": (layers, "the PDF has layers that can be hidden"),
    "a script on opening": (in_root("/OpenAction", lambda _: script()), "the PDF acts when it is opened"),
    "a script by name": (
        lambda writer: writer.root["/Names"].__setitem__(name("/JavaScript"), made(Names=generic.ArrayObject())),
        "named entries of another kind: /JavaScript",
    ),
    "a collection": (in_root("/Collection", lambda _: made(View=name("/T"))), "presents itself as a collection of files"),
    "a form of forms": (in_root("/AcroForm", lambda writer: made(Fields=generic.ArrayObject(), XFA=stream(writer, b"<xdp/>"))), "XFA"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_no_report_has_is_named(form: str, unsigned_pdf: bytes, signer: FileSigner) -> None:
    change, told = FORMS[form]
    writer, content = copy_into_new_writer(PdfFileReader(BytesIO(unsigned_pdf))), BytesIO()
    assert read_seal(_signed(writer, signer)).faults == ()
    change(writer)
    writer.write(content)
    (fault,) = read_seal(sign_pdf(content.getvalue(), signer).content).faults
    assert told in fault


def _signed(writer: PdfFileWriter, signer: FileSigner) -> bytes:
    content = BytesIO()
    writer.write(content)
    return sign_pdf(content.getvalue(), signer).content


@pytest.mark.parametrize("date", ["D:99991231235959-14'00'", "D:00010101000000+14'00'"])
def test_a_date_beyond_every_calendar_is_refused_and_breaks_nothing(date: str) -> None:
    with pytest.raises(OverflowError):
        claimed_time(made(M=generic.TextStringObject(date)))
    assert claimed_time(made(M=generic.TextStringObject("D:20261130100000+02'00'"))) == datetime(
        2026, 11, 30, 10, tzinfo=timezone(timedelta(hours=2))
    )
