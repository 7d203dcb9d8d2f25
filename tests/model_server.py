"""A small server over a real checkpoint that speaks the OpenAI API: completions with lists and echo, chats, and on demand what a vLLM server adds.

It computes with transformers alone, and shares no code with what it tests. `behave` may answer in its place: wrongly, slowly, or not at all.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

NOTHING = -9999.0
"""What servers write for the logarithm of 0."""


@dataclass(frozen=True)
class Answer:
    """What is sent in place of the server's own answer; `cut` sends only so many bytes of the body and closes."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    cut: int | None = None


class Refusal(Exception):
    """The server does not do that."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Offers:
    """What the server can do."""

    most_listed: int = 20
    echo: bool = True
    echo_only: bool = True
    completions: bool = True
    chat: bool = True
    logprobs: bool = True
    usage: bool = True
    times: int = 1
    tokenize: bool = False
    by_id: bool = False
    exact: bool = False
    steered: bool = False
    renormalises: bool = False
    joined_lists: bool = False
    key: str | None = None
    names: Sequence[str] = ("served-2026-10-01",)
    fingerprints: Sequence[str] = ("fp_1",)


Behave = Callable[[int, str, dict[str, Any]], Answer | None]


class ModelServer:
    """A server on a port of this machine; it counts and keeps what it was asked."""

    def __init__(
        self, checkpoint: Path, offers: Offers | None = None, behave: Behave | None = None, *, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self.checkpoint = checkpoint
        self.offers = offers or Offers()
        self.behave = behave
        self.seen: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._computing = threading.Lock()
        self._port = port

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        if self._tls is not None:
            self._http.socket = self._tls.wrap_socket(self._http.socket, server_side=True)
        self._http.daemon_threads = True
        self._port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of requests for completions and chats, without those that try the server out."""
        return [body for path, body, _ in self.seen if path.endswith("completions") and "The answer is" not in json.dumps(body)]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(self.checkpoint, dtype=torch.float32).eval()
        return model, AutoTokenizer.from_pretrained(self.checkpoint)

    def attend(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        with self._lock:
            number = len(self.seen)
            self.seen.append((path, body, headers))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            instead = self.behave(number, path, body) if self.behave else None
            return instead or self._answer(number, path, body, headers)
        finally:
            with self._lock:
                self.at_once -= 1

    def _answer(self, number: int, path: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        try:
            self._check_key(headers.get("authorization"))
            content = self._content(number, path, body)
        except Refusal as refusal:
            return Answer(refusal.status, json.dumps({"error": {"message": str(refusal), "code": None}}).encode())
        return Answer(body=json.dumps(content).encode())

    def _check_key(self, given: str | None) -> None:
        if self.offers.key is not None and given != f"Bearer {self.offers.key}":
            raise Refusal(401, f"Incorrect API key provided: {given}")

    def _content(self, number: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "/tokenize" and self.offers.tokenize:
            return {"tokens": self._encode(body["prompt"], special=body.get("add_special_tokens", True))}
        with self._computing:
            if path == "/v1/completions" and self.offers.completions:
                content = self._completion(body)
            elif path == "/v1/chat/completions" and self.offers.chat:
                content = self._chat(body)
            else:
                raise Refusal(404, "Not Found")
        names, prints = self.offers.names, self.offers.fingerprints
        content |= {"object": "completion", "model": names[number % len(names)]}
        return content | ({"system_fingerprint": prints[number % len(prints)]} if prints else {})

    def _encode(self, text: str, *, special: bool = True) -> list[int]:
        return list(self._loaded[1](text, add_special_tokens=special)["input_ids"])

    def _logprobs(self, ids: Sequence[int]) -> Any:
        import torch

        with torch.inference_mode():
            return torch.log_softmax(self._loaded[0](torch.tensor([ids])).logits[0].float(), dim=-1)

    def _text(self, token: int, body: dict[str, Any]) -> str:
        if self.offers.by_id and body.get("return_tokens_as_token_ids"):
            return f"token_id:{token}"
        return str(self._loaded[1].decode([token]))

    def _next(self, row: Any, body: dict[str, Any], listed: int) -> tuple[int, dict[int, float]]:
        """Return the picked token and the listed ones with their log-probabilities."""
        import torch

        if listed > self.offers.most_listed:
            raise Refusal(400, f"logprobs may be at most {self.offers.most_listed}")
        allowed = body.get("allowed_token_ids") if self.offers.steered else None
        shown = row
        if allowed and self.offers.renormalises:
            shown = torch.full_like(row, NOTHING)
            shown[allowed] = torch.log_softmax(row[allowed], dim=-1)
        picked = max(allowed, key=lambda token: float(row[token])) if allowed else int(row.argmax())
        wanted = body["logprob_token_ids"] if self.offers.exact and body.get("logprob_token_ids") else torch.topk(shown, listed).indices.tolist()
        return picked, {token: float(shown[token]) for token in (*wanted, picked)}

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt, most = body["prompt"], body.get("max_tokens", 16)
        ids = self._encode(prompt)
        rows = self._logprobs(ids)
        listed = body.get("logprobs")
        if body.get("echo") and not self.offers.echo:
            raise Refusal(400, "Setting echo and logprobs at the same time is not supported")
        if most == 0 and not (body.get("echo") and self.offers.echo_only):
            raise Refusal(400, "max_tokens must be at least 1")
        if listed is None or not self.offers.logprobs:
            return {"choices": [{"text": "", "logprobs": None}]} | self._usage(len(ids), 1)
        tokens, values, tops, offsets = [], [], [], []
        if body.get("echo"):
            for place, token in enumerate(ids):
                tokens.append(self._text(token, body))
                values.append(None if place == 0 else float(rows[place - 1][token]))
                tops.append(None)
                offsets.append(sum(map(len, tokens[:-1])))
        text = prompt if body.get("echo") else ""
        if most:
            picked, known = self._next(rows[-1], body, listed)
            tokens.append(self._text(picked, body))
            values.append(known[picked])
            tops.append({self._text(token, body): value for token, value in known.items()})
            offsets.append(len(text))
            text += str(self._loaded[1].decode([picked], skip_special_tokens=True))
        if self.offers.joined_lists and not body.get("echo"):
            rows_of_content = [{"token": tokens[0], "logprob": values[0], "top_logprobs": [{"token": t, "logprob": v} for t, v in tops[0].items()]}]
            return {"choices": [{"text": text, "logprobs": {"content": rows_of_content}}]} | self._usage(len(ids), most)
        logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}
        return {"choices": [{"text": text, "logprobs": logprobs}]} | self._usage(len(ids), max(1, most))

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        template = self._loaded[1].chat_template
        prompt = self._loaded[1].apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False) if template else None
        ids = self._encode(prompt, special=False) if prompt is not None else self._encode(body["messages"][0]["content"] + "\n")
        if not body.get("logprobs") or not self.offers.logprobs:
            return {"choices": [{"message": {"role": "assistant", "content": "A"}, "logprobs": None}]} | self._usage(len(ids), 1)
        picked, known = self._next(self._logprobs(ids)[-1], body, body.get("top_logprobs", 0))
        entry = {
            "token": self._text(picked, body),
            "logprob": known[picked],
            "bytes": None,
            "top_logprobs": [{"token": self._text(token, body), "logprob": value, "bytes": None} for token, value in known.items()],
        }
        return {"choices": [{"message": {"role": "assistant", "content": entry["token"]}, "logprobs": {"content": [entry]}}]} | self._usage(
            len(ids), 1
        )

    def _usage(self, read: int, made: int) -> dict[str, Any]:
        read *= self.offers.times
        return {"usage": {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}} if self.offers.usage else {}


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            answer = server.attend(self.path, json.loads(content), {name.lower(): value for name, value in self.headers.items()})
            time.sleep(answer.delay)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._send(answer)

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in _pieces(answer):
                self.wfile.write(piece)
                self.wfile.flush()
            self.close_connection = answer.cut is not None

        def log_message(self, *_told: object) -> None:
            pass

    return Handler


def _pieces(answer: Answer) -> Iterator[bytes]:
    body = answer.body if answer.cut is None else answer.body[: answer.cut]
    if not answer.drip:
        yield body
        return
    for place in range(len(body)):
        time.sleep(answer.drip)
        yield body[place : place + 1]
