from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalspec.errors import SigningError, UsageError
from evalspec.signing.keys import FileSigner, NewKey, make_key
from evalspec.signing.trust import Judgement, Trust, TrustedSigner, read_trust, write_trust

NOW = datetime.now(UTC) + timedelta(days=1)
"""A day ahead: where the tests run past midnight, certificates begin on the day after this file was read."""


def judged(trust: Trust, signer: FileSigner, *, signed_at: datetime = NOW, now: datetime = NOW) -> Judgement:
    return trust.judge(signer.certificate, signed_at=signed_at, now=now)


def test_a_trust_file_reads_back(tmp_path: Path, signer: FileSigner, impostor: FileSigner) -> None:
    entries = (TrustedSigner.of(signer.certificate, name="Ours: the lab"), TrustedSigner.of(impostor.certificate))
    write_trust(tmp_path / "trust.yaml", entries)
    assert read_trust(tmp_path / "trust.yaml") == entries


def test_writing_appends_what_is_new_and_keeps_comments(tmp_path: Path, signer: FileSigner, impostor: FileSigner) -> None:
    path = tmp_path / "trust.yaml"
    write_trust(path, [TrustedSigner.of(signer.certificate)])
    path.write_text(path.read_text() + "# checked by telephone\n")
    write_trust(path, [TrustedSigner.of(signer.certificate, name="again"), TrustedSigner.of(impostor.certificate)])
    assert [entry.fingerprint for entry in read_trust(path)] == [signer.fingerprint, impostor.fingerprint]
    assert "# checked by telephone" in path.read_text()
    before = path.read_bytes()
    write_trust(path, [TrustedSigner.of(signer.certificate)])
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_appended_to_is_left_alone(tmp_path: Path, signer: FileSigner, impostor: FileSigner) -> None:
    path = tmp_path / "trust.json"
    path.write_text('{"signers": [' + TrustedSigner.of(signer.certificate).model_dump_json(exclude_none=True) + "]}")
    assert len(read_trust(path)) == 1
    before = path.read_bytes()
    with pytest.raises(SigningError, match="nothing can be appended"):
        write_trust(path, [TrustedSigner.of(impostor.certificate)])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("  certificate:", "  name: Other\n  certificate:", "'name' stands twice"),
        ("- name: Example Lab", "- name: &a Example Lab", "anchors"),
        ("- name: Example Lab", "- name: !!str Example Lab", "tags"),
        ("- name: Example Lab", "- nome: Example Lab", "entry 1 has no 'name'"),
        ("- name: Example Lab", "- trusted: yes\n  name: Example Lab", "entry 1 has 'trusted', which no entry has"),
        ("signers:", "signers: [[[[[[[[[[", "nested deeper"),
        ("fingerprint: SHA256:", "fingerprint: MD5:", "(?s)'fingerprint' of entry 1 cannot be 'MD5:.*SHA256: and 44 characters"),
        ("BEGIN CERTIFICATE", "BEGIN CERTIFICAT", "not a certificate"),
        ("Z'\n  valid_until", "'\n  valid_until", "(?s)'valid_from' of entry 1 cannot be '20.*a time with its zone"),
        ("signers:", "signers: {", "it is not YAML"),
        ("signers:", "signers: []\nothers:", "it names no signer"),
        ("name: Example Lab", 'name: "\\UFFFFFFFF"', "an escape in it stands for no character"),
        ("name: Example Lab", 'name: "\\U00110000"', "an escape in it stands for no character"),
        ("name: Example Lab", 'name: "\\uD800"', "half a surrogate pair"),
        ("valid_from: '", "valid_from: '0001-01-01T00:00:00+23:00' # '", "'valid_from' of entry 1 .* outside the years 1 to 9999"),
        ("valid_until: '", "valid_until: '9999-12-31T23:59:59-23:00' # '", "'valid_until' of entry 1 .* outside the years 1 to 9999"),
        ("signers:", "[" * 5000 + "signers:", "nested deeper"),
        ("signers:", "\0signers:", "special characters"),
        ("signers:", "signers: yes\nother:", "'signers' must be a list of entries, not 'yes'"),
        ("signers:", "- signers:", "it must be a list under `signers`, not a list"),
        ("signers:", "signer:", "it has 'signer', which no trust file has"),
        ("- name:", "- Example Lab\n- name:", "entry 1 must be a mapping of name, .*, not 'Example Lab'"),
        ("name: Example Lab", "name: ''", "'name' of entry 1 cannot be empty"),
        ("name: Example Lab", "name: [Example Lab]", "'name' of entry 1 cannot be a list"),
        ("- name:", "- ? [a]\n  : b\n  name:", "a key must be a word"),
        ("valid_from: '", "valid_from: '1700000000' # '", "it is no date with a time of day"),
        ("valid_until: '20", "valid_until: '19", "entry 1 ends before it begins"),
        ("valid_until:", "revoked_at: ''\n  valid_until:", "'revoked_at' of entry 1 cannot be empty"),
        ("valid_until:", "revoked_at: no\n  valid_until:", "'revoked_at' of entry 1 cannot be 'no'"),
        ("valid_until:", "revoked: '2027-03-01T00:00:00Z'\n  valid_until:", "did you mean 'revoked_at'"),
        ("signers:", "signers: []\n---\nsigners:", "it is not YAML"),
        ("signers:", "%TAG ! tag:x,2000:\n---\nsigners: !a\n#", "anchors, aliases and tags"),
    ],
)
def test_a_faulty_trust_file_is_refused_with_the_reason(tmp_path: Path, signer: FileSigner, old: str, new: str, reason: str) -> None:
    path = tmp_path / "trust.yaml"
    write_trust(path, [TrustedSigner.of(signer.certificate, name="Example Lab")])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(SigningError, match=reason) as error:
        read_trust(path)
    assert all(diagnostic.hint and diagnostic.location and diagnostic.location.file == str(path) for diagnostic in error.value.diagnostics)
    assert "pydantic" not in str(error.value)


def test_all_faults_of_a_trust_file_are_told_at_once_and_where_they_stand(tmp_path: Path, signer: FileSigner) -> None:
    path = tmp_path / "trust.yaml"
    write_trust(path, [TrustedSigner.of(signer.certificate, name="Example Lab")])
    text = path.read_text().replace("SHA256:", "MD5:").replace("- name: Example Lab\n", "- nmae: Example Lab\n").replace("END CERT", "END CART")
    path.write_text(text.replace("Z'", "'"))
    with pytest.raises(SigningError) as error:
        read_trust(path)
    lines = [
        next(number for number, line in enumerate(text.splitlines(), 1) if word in line) for word in ("nmae", "MD5", "certificate:", "from", "until")
    ]
    places = [(diagnostic.location.line, diagnostic.excerpt) for diagnostic in error.value.diagnostics if diagnostic.location]
    assert {line for line, _ in places} == {*lines}
    assert [line for line, _ in places] == sorted(line for line, _ in places)
    assert any(excerpt and "nmae" in excerpt for _, excerpt in places)
    assert "did you mean 'name'?" in str(error.value)
    assert "names no signer" not in str(error.value)


def test_a_trust_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    (tmp_path / "trust.yaml").write_bytes("signers: é".encode("latin-1"))
    with pytest.raises(SigningError, match="it is not UTF-8, at byte 10"):
        read_trust(tmp_path / "trust.yaml")


def test_a_certificate_of_another_key_is_refused(tmp_path: Path, signer: FileSigner, impostor: FileSigner) -> None:
    path = tmp_path / "trust.yaml"
    write_trust(path, [TrustedSigner.of(signer.certificate)])
    path.write_text(path.read_text().replace(signer.fingerprint, impostor.fingerprint))
    with pytest.raises(SigningError, match="has the fingerprint"):
        read_trust(path)


def test_one_key_may_not_stand_twice(tmp_path: Path, signer: FileSigner) -> None:
    path = tmp_path / "trust.yaml"
    write_trust(path, [TrustedSigner.of(signer.certificate)])
    entry = path.read_text().partition("signers:\n")[2]
    path.write_text(path.read_text() + entry)
    with pytest.raises(SigningError, match="stands there 2 times"):
        read_trust(path)


def test_a_missing_or_huge_trust_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SigningError, match="cannot be read"):
        read_trust(tmp_path / "none.yaml")
    (tmp_path / "huge.yaml").write_text("#" * 1_100_000)
    for endless in (tmp_path / "huge.yaml", Path("/dev/zero")):
        with pytest.raises(SigningError, match="larger than"):
            read_trust(endless)


def test_without_an_anchor_nobody_is_trusted(signer: FileSigner) -> None:
    judgement = judged(Trust(), signer)
    assert not judgement.trusted
    assert "no trust anchor was given" in judgement.reasons[0]


def test_a_known_key_is_trusted_under_the_readers_own_name_for_it(signer: FileSigner) -> None:
    trust = Trust(entries=(TrustedSigner.of(signer.certificate, name="The lab next door"),))
    assert judged(trust, signer) == Judgement(trusted=True, name="The lab next door")


def test_another_key_of_the_same_name_is_pointed_out(signer: FileSigner, impostor: FileSigner) -> None:
    judgement = judged(Trust(entries=(TrustedSigner.of(signer.certificate),)), impostor)
    assert not judgement.trusted
    assert "is known with another key" in judgement.reasons[0]


def test_another_key_of_another_name_is_unknown(signer: FileSigner) -> None:
    other = make_key("Other Lab")
    judgement = judged(Trust(entries=(TrustedSigner.of(signer.certificate),)), FileSigner(other.private, other.certificate))
    assert judgement.reasons == (f"the key {other.fingerprint} is not among the trusted ones",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"valid_until": NOW - timedelta(days=1)}, "the trust in this key ended on"),
        ({"valid_from": NOW + timedelta(days=1)}, "the trust in this key begins only on"),
        ({"revoked_at": NOW - timedelta(days=1)}, "the key was revoked on"),
    ],
)
def test_an_expired_early_or_revoked_entry_is_not_trusted(signer: FileSigner, changes: dict[str, datetime], reason: str) -> None:
    entry = TrustedSigner.of(signer.certificate).model_copy(update=changes)
    judgement = judged(Trust(entries=(entry,)), signer)
    assert not judgement.trusted
    assert reason in judgement.reasons[0]


def test_a_signature_from_before_the_trust_began_is_not_trusted(signer: FileSigner) -> None:
    trust = Trust(entries=(TrustedSigner.of(signer.certificate),))
    assert not judged(trust, signer, signed_at=NOW - timedelta(days=3)).trusted


@pytest.mark.parametrize("by", ["entry", "fingerprint"])
def test_a_signature_that_claims_a_time_to_come_is_not_trusted(signer: FileSigner, by: str) -> None:
    trust = Trust(entries=(TrustedSigner.of(signer.certificate),)) if by == "entry" else Trust.in_fingerprint(signer.fingerprint)
    judgement = judged(trust, signer, signed_at=NOW + timedelta(days=40))
    assert not judgement.trusted
    assert "the signature claims a time that is still to come" in judgement.reasons[0]
    assert judged(trust, signer, signed_at=NOW + timedelta(hours=14)).trusted  # a clock that was set to another time zone


def test_an_expired_certificate_is_not_trusted_by_its_fingerprint_either(signer: FileSigner) -> None:
    judgement = judged(Trust.in_fingerprint(signer.fingerprint), signer, now=NOW + timedelta(days=6 * 365))
    assert not judgement.trusted
    assert "the certificate ended on" in judgement.reasons[0]


def test_a_fingerprint_is_enough_with_or_without_its_padding(signer: FileSigner, impostor: FileSigner) -> None:
    assert judged(Trust.in_fingerprint(signer.fingerprint), signer).trusted
    assert judged(Trust.in_fingerprint(signer.fingerprint.rstrip("=")), signer).trusted
    assert not judged(Trust.in_fingerprint(signer.fingerprint), impostor).trusted


@pytest.mark.parametrize("text", ["", "SHA256:abc", "MD5:" + "a" * 44, "SHA256:" + "!" * 43])
def test_what_is_no_fingerprint_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a fingerprint"):
        Trust.in_fingerprint(text)


def test_first_use_is_told_apart_from_second_use_and_from_an_impostor(tmp_path: Path, key: NewKey, signer: FileSigner, impostor: FileSigner) -> None:
    memory = tmp_path / "known.yaml"
    assert judged(Trust.on_first_use(memory), signer) == Judgement(trusted=True, name="Example Lab", first_use=True)
    write_trust(memory, [TrustedSigner.of(key.certificate)])
    assert judged(Trust.on_first_use(memory), signer) == Judgement(trusted=True, name="Example Lab")
    assert not judged(Trust.on_first_use(memory), impostor).trusted
