"""How can a reader check the seal without evalspec?  The text of VERIFY.md, whose commands are a shell script when put together."""

from __future__ import annotations

_HEAD = """\
# How to check this report

With evalspec: `evalspec verify . --trust team.yaml`, with a trust file that you did **not** get together with this folder.

Without evalspec, with Python, OpenSSL, coreutils and (for the PDF) poppler-utils: run these commands in this folder, one after the other.

The signature shows that the holder of one key signed exactly these bytes. It does not show that the results are true, that the run
took place as described, or when it did: the time inside is the signer's own statement.

## 1. Whose key is it?

The signer states the fingerprint

    {fingerprint}

Compare it, and the line that this command prints, with what the signer tells you over another channel. Anybody can make a key with
any name; the copy in this folder proves nothing about its owner.

```sh
work=$(mktemp -d)
openssl x509 -in signer.crt -noout -pubkey > "$work/key.pem"
key="SHA256:$(openssl pkey -pubin -in "$work/key.pem" -outform DER | openssl dgst -sha256 -binary | base64)"
echo "$key"
```

## 2. Did this key sign the list of files?

The envelope follows DSSE v1.0; the signed bytes are `DSSEv1`, then length and text of the type, then length and bytes of the payload.
It may hold signatures of other keys too, in any order; those that count name this key. The last command must print `Verified OK`.

```sh
python3 -I - "$work" "$key" <<'END'
import base64, json, pathlib, sys
work, envelope = pathlib.Path(sys.argv[1]), json.load(open("manifest.dsse.json"))
kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
assert kind == b"application/vnd.in-toto+json", "the envelope holds something else than a list of files"
(work / "pae").write_bytes(b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
for number, signature in enumerate(envelope["signatures"]):
    if signature["keyid"] == sys.argv[2]:
        (work / f"signature.{{number}}").write_bytes(base64.b64decode(signature["sig"]))
files = sorted((s["name"], s["digest"]["sha256"]) for s in json.loads(payload)["subject"])
(work / "sums").write_text("".join(f"{{digest}}  {{name}}\\n" for name, digest in files))
(work / "names").write_text("".join(f"./{{name}}\\n" for name, _ in files))
END
for signature in "$work"/signature.*; do openssl dgst -sha256 -verify "$work/key.pem" -signature "$signature" "$work/pae"; done
```

## 3. Are these the files, and all of them?

The first command must print nothing but `OK` lines, the second nothing at all.

```sh
sha256sum --check --strict "$work/sums"
find . \\( ! -type d -o -empty \\) ! -path ./manifest.dsse.json | LC_ALL=C sort | diff - "$work/names"
```
"""

_PDF = """
## 4. Does the PDF stand by itself?

The command must say `Signature is Valid` and `Total document signed`. It cannot know the signer: no public authority vouches for the key.

```sh
pdfsig -nocert report.pdf
```
"""


def write_guide(fingerprint: str, *, with_pdf: bool) -> str:
    """Return the text of VERIFY.md for a report that the key of this fingerprint signs."""
    return _HEAD.format(fingerprint=fingerprint) + (_PDF if with_pdf else "")
