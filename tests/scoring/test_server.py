"""A client for HTTP against a real server on this machine that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

pytest.importorskip("httpx2")

from evalspec.scoring.access import Access, Patience
from evalspec.scoring.server import LARGEST_REPLY, RefusedError, Server, ServerError

KEY = "kanarie-0123456789"
QUICK = Patience(at_once=2, tries=4, timeout=5.0, first_pause=0.01, longest_pause=0.02, longest_wait=30.0)
FINE = b'{"fine": true}'
Ask = Callable[..., Any]


@pytest.fixture
def answered(serving: ModuleType, tmp_path: Path) -> Ask:
    """Ask a server whose answers are given, one after the other, and FINE behind them; returns the reply and how often the server was asked."""

    def ask(*answers: Any, patience: Patience = QUICK, key: str | None = KEY, again: Callable[[], None] = lambda: None) -> Any:
        script = [*answers]

        def behave(number: int, _path: str, _body: dict[str, Any]) -> Any:
            return script[number] if number < len(script) else serving.Answer(body=FINE)

        async def once(endpoint: str) -> Any:
            async with Server(Access(endpoint, key, "EVALSPEC_API_KEY", patience=patience)) as server:
                return await server.ask("completions", {"prompt": "x"}, again=again)

        with serving.ModelServer(tmp_path, behave=behave) as server:
            ask.server = server  # type: ignore[attr-defined]
            return asyncio.run(once(server.endpoint))

    return ask


def test_a_request_carries_the_key_and_asks_for_nothing_packed(answered: Ask) -> None:
    assert answered().content == {"fine": True}
    ((path, body, headers),) = answered.server.seen  # type: ignore[attr-defined]
    assert (path, body, headers["authorization"], headers["accept-encoding"]) == ("/v1/completions", {"prompt": "x"}, f"Bearer {KEY}", "identity")
    answered(key=None)
    assert "authorization" not in answered.server.seen[0][2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
def test_a_busy_server_is_asked_again_and_its_refusals_count_as_free(answered: Ask, serving: ModuleType, status: int) -> None:
    reply = answered(serving.Answer(status), serving.Answer(status))
    assert (reply.tries, reply.unanswered) == (3, 0)


@pytest.mark.parametrize("asked_for", ["1", "0.9", "date"])
def test_a_server_that_says_how_long_to_wait_is_given_that_time(answered: Ask, serving: ModuleType, asked_for: str) -> None:
    header = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True) if asked_for == "date" else asked_for
    started = time.monotonic()
    assert answered(serving.Answer(429, headers={"Retry-After": header})).tries == 2
    assert 0.85 <= time.monotonic() - started < 4.0


def test_all_tasks_wait_where_one_was_told_to(serving: ModuleType, tmp_path: Path) -> None:
    times: list[float] = []

    def behave(number: int, _path: str, _body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return serving.Answer(429, headers={"Retry-After": "1"}) if number == 0 else serving.Answer(body=FINE)

    async def several(endpoint: str) -> None:
        async with Server(Access(endpoint, patience=QUICK)) as server:
            first = asyncio.create_task(server.ask("completions", {}))
            await asyncio.sleep(0.5)  # by then the first was told
            await asyncio.gather(first, *(server.ask("completions", {}) for _ in range(5)))

    with serving.ModelServer(tmp_path, behave=behave) as server:
        asyncio.run(several(server.endpoint))
        assert server.most_at_once <= QUICK.at_once
    assert len(times) == 7
    assert min(times[1:]) - times[0] >= 1.0


def test_a_server_that_wants_to_be_left_alone_for_long_is(answered: Ask, serving: ModuleType) -> None:
    with pytest.raises(ServerError, match="HTTP 429; the server asks to wait 3,600 s") as raised:
        answered(serving.Answer(429, headers={"Retry-After": "3600"}))
    assert raised.value.hint == "run the same command then"


@pytest.mark.parametrize("header", ["Fri, 01 Jan 99999999999999 00:00:00 GMT", "Fri, 01 Jan 2027 00:00:00 +99999999999999999999", "nan", "soon"])
def test_a_wait_that_is_no_time_is_a_wait_of_ours(answered: Ask, serving: ModuleType, header: str) -> None:
    assert answered(serving.Answer(429, headers={"Retry-After": header})).tries == 2


def test_a_server_that_stays_busy_is_given_up_after_so_many_tries(answered: Ask, serving: ModuleType) -> None:
    with pytest.raises(ServerError, match="HTTP 503, 4 times"):
        answered(*[serving.Answer(503)] * 9)


def test_a_used_up_quota_is_not_waited_for(answered: Ask, serving: ModuleType) -> None:
    body = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}).encode()
    with pytest.raises(ServerError, match="quota is used up") as raised:
        answered(serving.Answer(429, body))
    assert raised.value.said == "You exceeded your quota"
    assert len(answered.server.seen) == 1  # type: ignore[attr-defined]


def test_a_request_that_is_not_understood_is_refused_at_once_with_what_the_server_says(answered: Ask, serving: ModuleType) -> None:
    with pytest.raises(RefusedError, match="HTTP 400") as raised:
        answered(serving.Answer(400, json.dumps({"error": {"message": f"no \x1b[31m{KEY} " + "x" * 900}}).encode()))
    assert raised.value.said.startswith("no  [31m*** xxx")
    assert len(raised.value.said) == 300


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"error": []}', b'{"error": "plain"}', b"\xff", b"[1]"])
def test_a_complaint_of_any_form_is_read(answered: Ask, serving: ModuleType, body: bytes) -> None:
    with pytest.raises(RefusedError, match="HTTP 404") as raised:
        answered(serving.Answer(404, body))
    assert raised.value.said == ("plain" if b"plain" in body else "")


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_told_by_the_name_of_its_variable_alone(answered: Ask, serving: ModuleType, status: int) -> None:
    with pytest.raises(ServerError, match="does not accept the key in EVALSPEC_API_KEY") as raised:
        answered(serving.Answer(status, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()))
    assert KEY not in f"{raised.value!r} {raised.value.said} {raised.value.hint}"
    with pytest.raises(ServerError, match="does not accept a request without a key"):
        answered(serving.Answer(status), key=None)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_so_that_the_key_stays_with_its_server(serving: ModuleType, tmp_path: Path, answered: Ask, status: int) -> None:
    with serving.ModelServer(tmp_path) as other, pytest.raises(ServerError, match="redirects to another address, which is not followed"):
        answered(serving.Answer(status, headers={"Location": f"{other.endpoint}/completions"}))
    assert other.seen == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>no</html>", "not JSON"),
        (b"[1, 2]", "no JSON object"),
        (b'{"x": NaN}', "NaN is not a JSON value"),
        (b'{"x": 1, "x": 2}', "stands twice"),
        (b'{"x": ' + b"[" * 40 + b"]" * 40 + b"}", "nested too deeply"),
        (b'{"x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"x": 1' + b"0" * 400 + b"}", "digits"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"x": "\\ud800"}', "surrogate"),
    ],
)
def test_a_reply_that_is_no_json_object_is_asked_for_again_and_then_refused(answered: Ask, serving: ModuleType, body: bytes, why: str) -> None:
    assert answered(serving.Answer(body=body)).unanswered == 1
    with pytest.raises(ServerError, match=rf"its reply cannot be read: .*{why}.*, 3 times"):
        answered(*[serving.Answer(body=body)] * 9)


def test_a_reply_without_end_is_not_read_to_it(answered: Ask, serving: ModuleType) -> None:
    large = serving.Answer(body=b'{"x": "' + b"x" * LARGEST_REPLY + b'"}')
    with pytest.raises(ServerError, match="more than 16,777,216 bytes"):
        answered(large, large, large)


def test_a_packed_reply_is_not_unpacked(answered: Ask, serving: ModuleType) -> None:
    packed = serving.Answer(headers={"Content-Encoding": "gzip"})
    with pytest.raises(ServerError, match="it is packed"):
        answered(packed, packed, packed)


@pytest.mark.parametrize("slow", [{"delay": 3.0}, {"drip": 0.4}])
def test_a_slow_answer_is_waited_for_so_long_and_no_longer(answered: Ask, serving: ModuleType, slow: dict[str, float]) -> None:
    patience = Patience(at_once=1, tries=2, timeout=0.5, first_pause=0.01)
    started, times = time.monotonic(), list[str]()
    reply = answered(serving.Answer(body=FINE, **slow), patience=patience, again=lambda: times.append("again"))
    assert (reply.tries, reply.unanswered, times) == (2, 1, ["again"])
    assert time.monotonic() - started < 2.5


def test_a_connection_that_breaks_off_counts_as_charged(answered: Ask, serving: ModuleType) -> None:
    reply = answered(serving.Answer(body=FINE, cut=5))
    assert (reply.tries, reply.unanswered) == (2, 1)


def test_a_server_that_is_not_there_is_named_as_such_and_charged_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def once() -> None:
        async with Server(Access(f"http://127.0.0.1:{port}/v1", KEY, patience=QUICK)) as server:
            await server.ask("completions", {})

    with pytest.raises(ServerError, match=r"it cannot be reached \(.+\), 4 times"):
        asyncio.run(once())


def certificate_for_this_machine(folder: Path) -> tuple[Path, Path]:
    """Write a certificate that nobody vouches for, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.mark.parametrize("vouched_for", [True, False])
def test_a_server_must_be_vouched_for_by_a_certificate_that_is_trusted(
    serving: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vouched_for: bool
) -> None:
    certificate, key = certificate_for_this_machine(tmp_path)
    if vouched_for:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    else:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def once(port: str) -> Any:
        async with Server(Access(f"https://localhost:{port}/v1", KEY, patience=replace(QUICK, tries=1))) as server:
            return (await server.ask("completions", {})).content

    with serving.ModelServer(tmp_path, behave=lambda *_: serving.Answer(body=FINE), tls=context) as server:
        port = server.endpoint.rpartition(":")[2].removesuffix("/v1")
        if vouched_for:
            assert asyncio.run(once(port)) == {"fine": True}
        else:
            with pytest.raises(ServerError, match="CERTIFICATE_VERIFY_FAILED"):
                asyncio.run(once(port))
            assert server.seen == []


def test_what_goes_to_this_machine_passes_no_proxy(answered: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert answered().tries == 1


def test_the_key_is_not_in_what_an_access_prints_as() -> None:
    assert KEY not in repr(Access("https://llm.example/v1", KEY, "EVALSPEC_API_KEY"))
