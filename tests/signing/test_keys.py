from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.errors import SigningError, UsageError
from evalspec.signing.certificates import fingerprint, fingerprint_of, holder_of, read_certificate, read_der_certificate, self_signed
from evalspec.signing.keys import FileSigner, NewKey, load_signer, make_key, write_key

PASSPHRASE = "correct horse"


def test_a_written_key_signs_what_openssl_accepts(signer: FileSigner, tmp_path: Path) -> None:
    (tmp_path / "message").write_bytes(b"message")
    (tmp_path / "signature").write_bytes(signer.sign(b"message"))
    (tmp_path / "crt").write_bytes(signer.certificate_pem)
    public = subprocess.run(["openssl", "x509", "-in", "crt", "-pubkey", "-noout"], cwd=tmp_path, capture_output=True, check=True).stdout
    (tmp_path / "pub").write_bytes(public)
    command = ["openssl", "dgst", "-sha256", "-verify", "pub", "-signature", "signature", "message"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout == b"Verified OK\n"


def test_the_fingerprint_is_that_of_the_public_key_as_openssl_sees_it(signer: FileSigner, tmp_path: Path) -> None:
    (tmp_path / "crt").write_bytes(signer.certificate_pem)
    pipeline = "openssl x509 -in crt -pubkey -noout | openssl pkey -pubin -outform DER"
    spki = subprocess.run(["sh", "-c", pipeline], cwd=tmp_path, capture_output=True, check=True).stdout
    assert signer.fingerprint == fingerprint(spki) == "SHA256:" + base64.b64encode(hashlib.sha256(spki).digest()).decode()


def test_the_certificate_is_for_document_signing_and_for_the_years_asked_for() -> None:
    certificate = make_key("Example Lab", years=7).certificate
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert (usage.digital_signature, usage.content_commitment, usage.key_cert_sign) == (True, True, False)
    assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.36"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days == 7 * 365 + 1
    assert holder_of(certificate) == "Example Lab"


@pytest.mark.parametrize("organisation", ["", "  ", "x" * 65, "two\nlines", "right\u202eleft"])
def test_a_name_that_no_certificate_should_hold_is_refused(organisation: str) -> None:
    with pytest.raises(UsageError, match="cannot stand in a certificate"):
        make_key(organisation)


def test_a_certificate_for_no_years_is_refused() -> None:
    with pytest.raises(UsageError, match="for 0 years"):
        make_key("Example Lab", years=0)


def test_the_key_file_is_readable_by_its_owner_alone(key_file: Path) -> None:
    assert key_file.stat().st_mode & 0o777 == 0o600


def test_the_passphrase_costs_six_hundred_thousand_rounds_everywhere(key_file: Path) -> None:
    command = ["openssl", "pkcs12", "-in", str(key_file), "-info", "-noout", "-passin", f"pass:{PASSPHRASE}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall(r"Iteration (\d+)", shown) == ["600000", "600000"]  # certificate and key; a MAC would be a third, cheaper way in


def test_a_key_is_never_overwritten(key_file: Path, key: NewKey) -> None:
    before = key_file.read_bytes()
    with pytest.raises(SigningError, match="never overwritten"):
        write_key(key_file, key, PASSPHRASE)
    assert key_file.read_bytes() == before


def test_an_empty_passphrase_is_refused_but_none_is_a_choice(tmp_path: Path, key: NewKey) -> None:
    with pytest.raises(SigningError, match="empty"):
        write_key(tmp_path / "key.p12", key, "")
    write_key(tmp_path / "key.p12", key, None)
    assert load_signer(tmp_path / "key.p12", None).fingerprint == key.fingerprint


def test_a_key_cannot_be_written_into_a_missing_folder(tmp_path: Path, key: NewKey) -> None:
    with pytest.raises(SigningError, match="cannot be written"):
        write_key(tmp_path / "none" / "key.p12", key, PASSPHRASE)


@pytest.mark.parametrize("passphrase", ["wrong", None])
def test_a_wrong_passphrase_is_named_with_the_way_to_give_it(key_file: Path, passphrase: str | None) -> None:
    with pytest.raises(SigningError, match="wrong passphrase") as error:
        load_signer(key_file, passphrase)
    assert "EVALSPEC_KEY_PASSPHRASE" in (error.value.diagnostics[0].hint or "")


def test_a_missing_key_file_is_named_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SigningError, match="cannot be read") as error:
        load_signer(tmp_path / "none.p12", PASSPHRASE)
    assert "evalspec keygen" in (error.value.diagnostics[0].hint or "")


def test_a_key_on_another_curve_is_refused(tmp_path: Path) -> None:
    private = ec.generate_private_key(ec.SECP384R1())
    content = pkcs12.serialize_key_and_certificates(None, private, self_signed(private, "Lab", years=1), None, serialization.NoEncryption())
    (tmp_path / "p384.p12").write_bytes(content)
    with pytest.raises(SigningError, match="P-256"):
        load_signer(tmp_path / "p384.p12", None)


def test_a_key_without_certificate_is_refused(tmp_path: Path, key: NewKey) -> None:
    content = pkcs12.serialize_key_and_certificates(None, key.private, None, None, serialization.NoEncryption())
    (tmp_path / "bare.p12").write_bytes(content)
    with pytest.raises(SigningError, match="its certificate"):
        load_signer(tmp_path / "bare.p12", None)


def test_a_key_file_that_others_can_read_is_noted(tmp_path: Path, key: NewKey) -> None:
    path = tmp_path / "key.p12"
    write_key(path, key, None)
    assert load_signer(path, None).note is None
    path.chmod(0o644)
    assert "chmod 600" in (load_signer(path, None).note or "")


def test_the_private_key_does_not_show_when_printed(key: NewKey, signer: FileSigner) -> None:
    assert "private" not in repr(key) + repr(signer)


def test_what_is_no_certificate_is_said_to_be_none(signer: FileSigner) -> None:
    assert fingerprint_of(read_certificate(signer.certificate_pem)) == signer.fingerprint
    with pytest.raises(ValueError, match="not a certificate"):
        read_certificate(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


@pytest.mark.parametrize("passphrase", ["caf\udce9", "\ud800"])
def test_a_passphrase_that_is_no_text_is_a_plain_error(tmp_path: Path, key: NewKey, key_file: Path, passphrase: str) -> None:
    with pytest.raises(SigningError, match="not text in UTF-8"):
        write_key(tmp_path / "key.p12", key, passphrase)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SigningError, match="not text in UTF-8"):
        load_signer(key_file, passphrase)


def test_a_key_that_finds_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from evalspec.errors import SigningError; from evalspec.signing.keys import make_key, write_key\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: write_key(Path(sys.argv[1]), make_key('Lab'), None)\n"
        "except SigningError as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", script, str(tmp_path / "key.p12")], capture_output=True, text=True, check=True).stdout
    assert shown == f"{tmp_path / 'key.p12'} cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_a_key_file_is_private_whatever_the_mask_says(tmp_path: Path, key: NewKey) -> None:
    before = os.umask(0)
    try:
        write_key(tmp_path / "key.p12", key, None)
    finally:
        os.umask(before)
    assert (tmp_path / "key.p12").stat().st_mode & 0o777 == 0o600


def test_a_key_file_without_end_is_not_read_to_it() -> None:
    with pytest.raises(SigningError, match="no PKCS#12 file"):
        load_signer(Path("/dev/zero"), None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"\x2a\x86\x48\xce\x3d\x03\x01\x07", b"\x2a\x86\x48\xce\x3d\x03\x01\x7f", "not on the curve P-256"),  # a curve that nobody knows
        (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x1d", "not a certificate"),  # X.509 version 30
        (b"\x30\x0e\x06\x03\x55\x1d\x0f", b"\x30\x0e\x06\x03\x55\x1d\x13", "not a certificate"),  # an extension twice
    ],
)
def test_a_certificate_of_which_a_part_cannot_be_read_is_refused(key: NewKey, old: bytes, new: bytes, reason: str) -> None:
    der = key.certificate.public_bytes(serialization.Encoding.DER)
    assert old in der
    with pytest.raises(ValueError, match=reason):
        read_der_certificate(der.replace(old, new, 1))


@given(st.data())
@settings(max_examples=300)
def test_whatever_a_certificate_holds_it_is_read_whole_or_refused(key: NewKey, data: st.DataObject) -> None:
    der = bytearray(key.certificate.public_bytes(serialization.Encoding.DER))
    for _ in range(2):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    try:
        certificate = read_der_certificate(bytes(der))
    except ValueError:
        return
    assert holder_of(certificate) is not None
    assert certificate.not_valid_before_utc.tzinfo is not None
