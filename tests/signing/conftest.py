"""A small but real run directory: real keys, a real PDF/A-3a + PDF/UA-1 file with attachments, a real seal."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, fromstring, register_namespace, tostring

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.signing.keys import FileSigner, NewKey, load_signer, make_key, write_key
from evalspec.signing.seal import seal
from evalspec.signing.statement import Claim, Dataset, Decision, Sha256, SignedModel, Tool
from evalspec.signing.trust import Trust, TrustedSigner

PASSPHRASE = "correct horse"
ORGANISATION = "Example Lab"
STUDY = b"apiVersion: evalspec/v1\ntitle: Example\n"
FINDINGS = canonical_json({"findings": [{"estimates": [{"value": 0.5}, {"value": 0.25}]}], "protocol_sha256": "0" * 64})
PROTOCOL = canonical_json({"format": 1})
XMP_EXTENSION = """<rdf:Description xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/" xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#"
 xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#" rdf:about=""><pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
 <pdfaSchema:schema>PDF/UA identification</pdfaSchema:schema><pdfaSchema:namespaceURI>http://www.aiim.org/pdfua/ns/id/</pdfaSchema:namespaceURI>
 <pdfaSchema:prefix>pdfuaid</pdfaSchema:prefix><pdfaSchema:property><rdf:Seq><rdf:li rdf:parseType="Resource">
 <pdfaProperty:name>part</pdfaProperty:name><pdfaProperty:valueType>Integer</pdfaProperty:valueType>
 <pdfaProperty:category>internal</pdfaProperty:category><pdfaProperty:description>part</pdfaProperty:description>
 </rdf:li></rdf:Seq></pdfaSchema:property></rdf:li></rdf:Bag></pdfaExtension:schemas></rdf:Description>"""
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
UA = "http://www.aiim.org/pdfua/ns/id/"
NAMESPACES = {
    "pdfuaid": UA,
    "pdfaExtension": "http://www.aiim.org/pdfa/ns/extension/",
    "pdfaSchema": "http://www.aiim.org/pdfa/ns/schema#",
    "pdfaProperty": "http://www.aiim.org/pdfa/ns/property#",
}


def render_pdf(*attachments: tuple[str, bytes]) -> bytes:
    weasyprint = pytest.importorskip("weasyprint", reason="WeasyPrint is not installed", exc_type=ImportError)
    from weasyprint.document import DocumentMetadata

    class Metadata(DocumentMetadata):
        def generate_rdf_metadata(self, variant: str, version: int, conformance: str) -> bytes:
            for prefix, address in NAMESPACES.items():
                register_namespace(prefix, address)
            rdf: Element = fromstring(super().generate_rdf_metadata(variant, version, conformance))
            SubElement(rdf, f"{{{RDF}}}Description", {f"{{{RDF}}}about": "", f"{{{UA}}}part": "1"})
            rdf.append(fromstring(XMP_EXTENSION))
            return tostring(rdf, encoding="utf-8")

        def include_in_pdf(self, pdf: object, variant: str, version: int, conformance: str, compress: bool) -> None:  # noqa: ARG002 - as upstream
            super().include_in_pdf(pdf, variant, version, conformance, compress=False)

    page = "<html lang=en><head><title>Example</title></head><body><h1>Example</h1><p>One paragraph.</p></body></html>"
    document = weasyprint.HTML(string=page).render(pdf_variant="pdf/a-3a")
    document.metadata.__class__ = Metadata
    day = datetime(2026, 11, 29, tzinfo=UTC)
    document.metadata.attachments = [
        weasyprint.Attachment(string=content.decode(), name=name, relationship="Data", created=day, modified=day) for name, content in attachments
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # WeasyPrint leaves its colour profile open
        return document.write_pdf(pdf_variant="pdf/a-3a")


def claim_at(created_at: str) -> Claim:
    return Claim(
        run_id="run-1",
        created_at=created_at,
        tool=Tool(name="evalspec", version="0"),
        study=Sha256(sha256=sha256_hex(STUDY)),
        protocol=Sha256(sha256=sha256_hex(PROTOCOL)),
        dataset=(Dataset(name="trivia", sha256="1" * 64, n=4),),
        models=(SignedModel(id="first", kind="checkpoint", sha256="2" * 64),),
        decision=Decision(result="passed", rule="every check passes"),
    )


def write_run(folder: Path, pdf: bytes | None) -> Path:
    (folder / "data").mkdir(parents=True)
    for name, content in {
        "study.yaml": STUDY,
        "findings.json": FINDINGS,
        "protocol.json": PROTOCOL,
        "report.html": b"<!doctype html><title>Example</title>",
        "data/questions.parquet": bytes(range(256)) * 4,
    }.items():
        (folder / name).write_bytes(content)
    if pdf is not None:
        (folder / "report.pdf").write_bytes(pdf)
    return folder


@pytest.fixture(scope="session")
def unsigned_pdf() -> bytes:
    return render_pdf(("study.yaml", STUDY), ("findings.json", FINDINGS))


@pytest.fixture(scope="session")
def bare_pdf() -> bytes:
    return render_pdf()


@pytest.fixture(scope="session")
def twin_pdf() -> bytes:
    return render_pdf(("study.yaml", STUDY), ("study.yaml", b"another"))


@pytest.fixture(scope="session")
def key() -> NewKey:
    return make_key(ORGANISATION)


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory, key: NewKey) -> Path:
    path = tmp_path_factory.mktemp("key") / "signer.p12"
    write_key(path, key, PASSPHRASE)
    return path


@pytest.fixture(scope="session")
def signer(key_file: Path) -> FileSigner:
    return load_signer(key_file, PASSPHRASE)


@pytest.fixture(scope="session")
def impostor() -> FileSigner:
    new = make_key(ORGANISATION)
    return FileSigner(new.private, new.certificate)


@pytest.fixture(scope="session")
def claim() -> Claim:
    return claim_at(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory, unsigned_pdf: bytes, signer: FileSigner, claim: Claim) -> Path:
    folder = write_run(tmp_path_factory.mktemp("sealed") / "run", unsigned_pdf)
    seal(folder, signer, claim)
    return folder


@pytest.fixture
def run(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "run"))


@pytest.fixture(scope="session")
def trust(key: NewKey) -> Trust:
    return Trust(entries=(TrustedSigner.of(key.certificate),))


@pytest.fixture
def rewrite_statement(signer: FileSigner) -> Callable[[Path, Callable[[dict], None]], None]:
    """Change a sealed folder's statement and sign it again with the genuine key: what a faulty sealer would leave."""
    import base64

    from evalspec.signing import dsse

    def rewrite(folder: Path, change: Callable[[dict], None]) -> None:
        envelope = json.loads((folder / "manifest.dsse.json").read_bytes())
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        (folder / "manifest.dsse.json").write_bytes(dsse.sign(canonical_json(statement), signer).to_json())

    return rewrite
