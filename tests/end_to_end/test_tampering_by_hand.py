"""What somebody with an editor, a file manager and a key of his own does to the published example: each is found, with every file named."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec.signing import dsse
from evalspec.signing.keys import FileSigner, make_key
from evalspec.signing.pades import sign_pdf
from evalspec.signing.trust import read_trust

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command

MANIFEST = "manifest.dsse.json"


@pytest.fixture
def example(root: Path, tmp_path: Path) -> Path:
    """A copy of the published example."""
    return Path(shutil.copytree(root / "reports" / "example", tmp_path / "example"))


@pytest.fixture(scope="module")
def intruder(root: Path) -> FileSigner:
    """A key of another, under the very name that the example's signer has."""
    (theirs,) = read_trust(root / "reports" / "example.trust.yaml")
    key = make_key(theirs.name)
    return FileSigner(key.private, key.certificate)


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path, FileSigner], None]:
    return lambda folder, _: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


def swap(first: str, second: str) -> Callable[[Path, FileSigner], None]:
    def exchange(folder: Path, _: FileSigner) -> None:
        contents = (folder / first).read_bytes(), (folder / second).read_bytes()
        (folder / second).write_bytes(contents[0])
        (folder / first).write_bytes(contents[1])

    return exchange


def add(name: str | bytes, content: bytes = b"") -> Callable[[Path, FileSigner], None]:
    def write(folder: Path, _: FileSigner) -> None:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)

    return write


def in_envelope(change: Callable[[dict[str, Any]], None]) -> Callable[[Path, FileSigner], None]:
    """Change the envelope and write it in the form that evalspec writes."""

    def alter(folder: Path, _: FileSigner) -> None:
        content = json.loads((folder / MANIFEST).read_bytes())
        change(content)
        (folder / MANIFEST).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    return alter


def in_statement(change: Callable[[dict[str, Any]], None]) -> Callable[[Path, FileSigner], None]:
    """Change what the envelope holds and keep its signature."""

    def alter(content: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(content["payload"]))
        change(statement)
        content["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    return in_envelope(alter)


def pdf_signed_again(folder: Path, intruder: FileSigner) -> None:
    content = (folder / "report.pdf").read_bytes()
    rendered = json.loads(base64.b64decode(json.loads((folder / MANIFEST).read_bytes())["payload"]))["predicate"]["pdf"]["unsignedPrefixBytes"]
    (folder / "report.pdf").write_bytes(sign_pdf(content[:rendered], intruder).content)


def manifest_signed_again(folder: Path, intruder: FileSigner) -> None:
    payload = base64.b64decode(json.loads((folder / MANIFEST).read_bytes())["payload"])
    (folder / MANIFEST).write_bytes(dsse.sign(payload, intruder).to_json())


def certificate_of_another(folder: Path, intruder: FileSigner) -> None:
    (folder / "signer.crt").write_bytes(intruder.certificate_pem)


def certificate_removed(folder: Path, _: FileSigner) -> None:
    (folder / "signer.crt").unlink()


def folder_in_its_place(folder: Path, _: FileSigner) -> None:
    (folder / "report.html").unlink()
    add("report.html/index.html")(folder, _)


def link_to_itself(folder: Path, _: FileSigner) -> None:
    (folder / "ledger.json").unlink()
    (folder / "ledger.json").symlink_to("ledger.json")


def link_to_nowhere(folder: Path, _: FileSigner) -> None:
    (folder / "extra").symlink_to("/nowhere")


def link_to_a_folder(folder: Path, _: FileSigner) -> None:
    (folder / "etc").symlink_to("/etc")


def pipe(folder: Path, _: FileSigner) -> None:
    os.mkfifo(folder / "pipe")


def a_socket(folder: Path, _: FileSigner) -> None:
    (folder / "verdict.json").unlink()
    here = Path.cwd()
    os.chdir(folder)  # the path of a socket may have a hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("verdict.json")
    finally:
        os.chdir(here)


def another_case(folder: Path, _: FileSigner) -> None:
    (folder / "report.html").rename(folder / "Report.html")


def sparse(name: str, size: int) -> Callable[[Path, FileSigner], None]:
    return lambda folder, _: os.truncate(folder / name, size)


def whole_report_within(folder: Path, _: FileSigner) -> None:
    shutil.copytree(folder, folder.parent / "copy")
    shutil.move(folder.parent / "copy", folder / "copy")


def everything_removed(folder: Path, _: FileSigner) -> None:
    for path in folder.iterdir():
        if path.name != MANIFEST:
            path.unlink()


NAMES = (
    "VERIFY.md", "findings.json", "ledger.json", "protocol.json", "questions.parquet", "report.html", "report.pdf", "responses.parquet",
    "schedule.json", "signer.crt", "study.json", "study.yaml", "verdict.json",
)  # fmt: skip
UNSEEN = "its own signature was not looked at"

TAMPERINGS: dict[str, tuple[Callable[[Path, FileSigner], None], tuple[str, ...]]] = {
    "line ends of another system": (rewrite("study.yaml", lambda text: text.replace(b"\n", b"\r\n")), ("ALTERED study.yaml",)),
    "a byte order mark": (rewrite("study.yaml", lambda text: b"\xef\xbb\xbf" + text), ("ALTERED study.yaml",)),
    "the same JSON laid out otherwise": (rewrite("verdict.json", lambda text: json.dumps(json.loads(text)).encode()), ("ALTERED verdict.json",)),
    "JSON in UTF-16": (rewrite("findings.json", lambda text: text.decode().encode("utf-16")), ("ALTERED findings.json",)),
    "a key twice": (rewrite("findings.json", lambda text: text.replace(b"{", b'{"findings": [], ', 1)), ("ALTERED findings.json",)),
    "JSON without bottom": (rewrite("findings.json", lambda _: b"[" * 10**6), ("ALTERED findings.json",)),
    "a number of ten thousand digits": (rewrite("findings.json", lambda _: b"9" * 10**4), ("ALTERED findings.json",)),
    "numbers in the page": (rewrite("report.html", lambda text: text.replace(b"0.9", b"0.8", 1)), ("ALTERED report.html",)),
    "a script in the page": (rewrite("report.html", lambda text: text + b"<script>1</script>"), ("ALTERED report.html",)),
    "an empty file": (rewrite("ledger.json", lambda _: b""), ("ALTERED ledger.json",)),
    "a line feed more": (rewrite("VERIFY.md", lambda text: text + b"\n"), ("ALTERED VERIFY.md",)),
    "two files exchanged": (swap("study.json", "verdict.json"), ("ALTERED study.json", "ALTERED verdict.json")),
    "two tables exchanged": (swap("questions.parquet", "responses.parquet"), ("ALTERED questions.parquet", "ALTERED responses.parquet")),
    "a table compressed once more": (rewrite("responses.parquet", gzip.compress), ("ALTERED responses.parquet",)),
    "a table's metadata": (rewrite("responses.parquet", lambda table: table.replace(b"evalspec", b"evilspec")), ("ALTERED responses.parquet",)),
    "the PDF cut by a byte": (rewrite("report.pdf", lambda pdf: pdf[:-1]), ("ALTERED report.pdf",)),
    "the PDF's signature cut off": (rewrite("report.pdf", lambda pdf: pdf[: pdf.rindex(b"/Type /Catalog") - 40]), ("ALTERED report.pdf",)),
    "a comment after the PDF": (rewrite("report.pdf", lambda pdf: pdf + b"% a comment\n%%EOF\n"), ("ALTERED report.pdf",)),
    "the PDF signed by another": (pdf_signed_again, ("ALTERED report.pdf",)),
    "a PDF that grew by holes": (sparse("report.pdf", 64 * 2**20), ("ALTERED report.pdf",)),
    "a PDF of a million brackets": (rewrite("report.pdf", lambda _: b"%PDF-1.7\n" + b"[" * 10**6 + b"%%EOF"), ("ALTERED report.pdf",)),
    "a table that grew by holes": (sparse("responses.parquet", 2**40), ("ALTERED responses.parquet",)),
    "text before the certificate": (rewrite("signer.crt", lambda pem: b"Subject: Lab\n" + pem), ("ALTERED signer.crt",)),
    "two certificates": (rewrite("signer.crt", lambda pem: pem + pem), ("ALTERED signer.crt",)),
    "the certificate of another": (certificate_of_another, ("ALTERED signer.crt",)),
    "no certificate": (certificate_removed, ("MISSING signer.crt",)),
    "a name in another case": (another_case, ("MISSING report.html", "UNLISTED Report.html")),
    "a folder in the place of a file": (folder_in_its_place, ("MISSING report.html", "UNLISTED report.html/index.html")),
    "everything removed": (everything_removed, tuple(f"MISSING {name}" for name in NAMES)),
    "a hidden file": (add(".DS_Store"), ("UNLISTED .DS_Store",)),
    "a name that hides another": (add("report.pdf\r\x1b[2K"), ("UNLISTED report.pdf\\r\\x1b[2K",)),
    "a name that is no text": (add(b"\xff.txt"), ("UNLISTED \\udcff.txt",)),
    "a name that reads backwards": (add("\u202efdp.exe"), ("UNLISTED \\u202efdp.exe",)),
    "a deep folder": (add("/".join("d" * 60) + "/x"), (f"UNLISTED {'/'.join('d' * 60)}/x",)),
    "an empty folder": (lambda folder, _: (folder / "PASSED by the authority").mkdir(), ("UNLISTED PASSED by the authority/ (an empty folder",)),
    "empty folders in one another": (lambda folder, _: (folder / "a" / "b").mkdir(parents=True), ("UNLISTED a/b/ (an empty folder",)),
    "a copy of the manifest": (add(f"{MANIFEST}.old"), (f"UNLISTED {MANIFEST}.old",)),
    "a manifest further down": (add(f"sub/{MANIFEST}"), (f"UNLISTED sub/{MANIFEST}",)),
    "a report within the report": (whole_report_within, tuple(f"UNLISTED copy/{name}" for name in (*NAMES, MANIFEST))),
    "a link to itself": (link_to_itself, ("SYMLINK ledger.json",)),
    "a link to nowhere": (link_to_nowhere, ("SYMLINK extra",)),
    "a link to a folder": (link_to_a_folder, ("SYMLINK etc",)),
    "a pipe": (pipe, ("SPECIAL pipe",)),
    "a socket in the place of a file": (a_socket, ("SPECIAL verdict.json",)),
    "no signatures": (in_envelope(lambda envelope: envelope.update(signatures=[])), (f"SIGNATURE {MANIFEST}",)),
    "another key named": (
        in_envelope(lambda envelope: envelope["signatures"][0].update(keyid="SHA256:" + "A" * 43 + "=")),
        (f"SIGNATURE {MANIFEST}",),
    ),
    "another kind of payload": (in_envelope(lambda envelope: envelope.update(payloadType="application/json")), (f"SIGNATURE {MANIFEST}",)),
    "a signature of zeros": (in_envelope(lambda envelope: envelope["signatures"][0].update(sig="")), (f"SIGNATURE {MANIFEST}",)),
    "one more field": (in_envelope(lambda envelope: envelope.update(comment="x")), (f"ALTERED {MANIFEST}",)),
    "a file taken off the list": (in_statement(lambda statement: statement["subject"].pop()), (f"SIGNATURE {MANIFEST}",)),
    "an earlier date": (in_statement(lambda statement: statement["predicate"].update(createdAt="2020-01-01T00:00:00Z")), (f"SIGNATURE {MANIFEST}",)),
    "a better decision": (in_statement(lambda statement: statement["predicate"]["decision"].update(result="none")), (f"SIGNATURE {MANIFEST}",)),
    "the manifest on one line": (rewrite(MANIFEST, lambda text: json.dumps(json.loads(text)).encode()), (f"ALTERED {MANIFEST}",)),
    "the manifest compressed": (rewrite(MANIFEST, gzip.compress), (f"ALTERED {MANIFEST}",)),
    "the manifest cut in half": (rewrite(MANIFEST, lambda text: text[: len(text) // 2]), (f"ALTERED {MANIFEST}",)),
    "the manifest signed by another": (manifest_signed_again, (f"SIGNATURE {MANIFEST}",)),
    "a manifest of holes": (sparse(MANIFEST, 2**40), (f"ALTERED {MANIFEST}",)),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_done_is_found_and_every_file_named(name: str, example: Path, root: Path, intruder: FileSigner, evalspec: Command) -> None:
    tamper, expected = TAMPERINGS[name]
    tamper(example, intruder)
    started = time.process_time()
    spoken = evalspec("verify", example, "--trust", root / "reports" / "example.trust.yaml", cwd=example.parent)
    found = tuple(
        line for line in spoken.out.splitlines() if line.split(" ")[0] in {"ALTERED", "MISSING", "UNLISTED", "SYMLINK", "SPECIAL", "SIGNATURE"}
    )
    assert [line.startswith(start) for line, start in zip(sorted(found), sorted(expected), strict=True)] == [True] * len(expected), spoken.out
    assert (spoken.code, spoken.err) == (1, "")
    assert time.process_time() - started < 5
    assert "ALTERED report.pdf" not in expected or UNSEEN in spoken.out


def as_a_file_system_may(folder: Path) -> None:
    """Change what no reader of a file sees: times, modes, hard links."""
    for path in folder.iterdir():
        os.utime(path, (0, 0))
        path.chmod(0o400)
    os.link(folder / "findings.json", folder.parent / "another name")


def test_what_changes_no_file_is_no_tampering(example: Path, root: Path, evalspec: Command) -> None:
    as_a_file_system_may(example)
    (example.parent / "link").symlink_to(example)
    for target in ("example", "link", "example/../example/."):
        assert evalspec("verify", target, "--trust", root / "reports" / "example.trust.yaml", cwd=example.parent).code == 0


ALONE: dict[str, tuple[Callable[[bytes], bytes], int, str]] = {
    "as it is": (lambda pdf: pdf, 0, "intact"),
    "a comment after it": (lambda pdf: pdf + b"% a comment\n", 1, "PDF mail.pdf: the signature does not cover the entire file"),
    "something before it": (lambda pdf: b"\n" + pdf, 1, "PDF mail.pdf"),
    "nothing but its first line": (lambda pdf: pdf[:9], 1, "PDF mail.pdf: the PDF cannot be read as a signed one"),
    "cut off": (lambda pdf: pdf[:-100], 1, "PDF mail.pdf"),
    "another letter in the signature": (lambda pdf: pdf.replace(b"/Contents <30", b"/Contents <3O", 1), 1, "PDF mail.pdf"),
    "another date": (lambda pdf: pdf.replace(b"/M (D", b"/M (E"), 1, "PDF mail.pdf"),
    "signed twice": (lambda pdf: pdf.replace(b"/Fields [ ", b"/Fields [ 2 0 R ", 1), 1, "PDF mail.pdf"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_pdf_alone_is_judged_by_its_own_signature(name: str, example: Path, root: Path, evalspec: Command) -> None:
    change, code, says = ALONE[name]
    (example.parent / "mail.pdf").write_bytes(change((example / "report.pdf").read_bytes()))
    spoken = evalspec("verify", "mail.pdf", "--trust", root / "reports" / "example.trust.yaml", cwd=example.parent)
    assert (spoken.code, says in spoken.out, spoken.err) == (code, True, ""), spoken.out
