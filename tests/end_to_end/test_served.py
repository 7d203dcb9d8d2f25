"""A study that asks a server, from the command line to the report: what it costs, what it claims, and what it never shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command

pytest.importorskip("httpx2")

KEY = "kanarie-schluessel-0123456789abcdef"
QUESTIONS = 90
STUDY = """apiVersion: evalspec/v1
title: What does the served model know?
seed: 7
models:
  - {{id: there, source: {{endpoint: "{endpoint}", model: large{more}}}{beside}}}
benchmarks:
  - {{id: open, source: {{file: open.jsonl}}, scoring: {{method: letter}}, missing: wrong, disclosure: {disclosure}}}
analyses:
  - {{id: accuracy, kind: intervals, method: wilson, level: 0.95}}
"""
PRICED = ", price: {input: 1, output: 1, per: 1000, currency: EUR}"


def write(folder: Path, workplace: Path, endpoint: str, *, more: str = "", beside: str = "", disclosure: str = "full") -> Path:
    """Write the study beside its questions, into a folder of its own."""
    folder.mkdir()
    (folder / "open.jsonl").write_bytes((workplace / "open.jsonl").read_bytes())
    study = folder / "study.yaml"
    study.write_text(STUDY.format(endpoint=endpoint, more=more, beside=beside, disclosure=disclosure))
    return study


def everything(*folders: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def server(serving: ModuleType, workplace: Path) -> Any:
    with serving.ModelServer(workplace / "checkpoints" / "tiny-a", serving.Offers(tokenize=True, by_id=True, exact=True)) as running:
        yield running


def test_the_report_of_a_served_model_claims_nothing_about_weights(
    server: Any, workplace: Path, tmp_path: Path, process: Command, evalspec: Command
) -> None:
    write(tmp_path / "place", workplace, server.endpoint, beside=PRICED)
    place = tmp_path / "place"
    planned = evalspec("plan", "study.yaml", cwd=place)
    assert server.seen == []
    assert re.search(rf"there +127.0.0.1:\d+ +{QUESTIONS + 64} +[\d,]+ +{QUESTIONS + 64} +[\d.]+ EUR", planned.out), planned.out
    assert "which weights answer there cannot be verified" in planned.err
    assert "the name 'large' has neither a date nor a revision" in planned.err
    done = process("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place)
    assert done.code == 0, done.err
    assert len(server.asked) == QUESTIONS + 64
    html = " ".join(re.sub(r"<[^>]+>", " ", (place / "reports" / "study" / "report.html").read_text()).split())
    for told in (
        "This model answered behind a server.",
        "nothing here is a claim about weights",
        "it is an alias, under which other weights can be put at any time",
        "Answers came from a server, whose weights cannot be verified and whose operator could read the questions. This holds for there.",
        "Weights, tokenizer, precision not verifiable",
        "served-2026-10-01",
        "What servers took",
    ):
        assert told in html, told
    protocol = json.loads((place / "reports" / "study" / "protocol.json").read_text())
    identity = protocol["models"][0]["identity"]
    assert (identity["kind"], identity["weights"], identity["alias"]) == ("served", "not verifiable", True)
    manifest = json.loads((place / "reports" / "study" / "manifest.dsse.json").read_text())
    assert "payload" in manifest
    verified = evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--recompute", cwd=place)
    assert verified.code == 0, verified.out + verified.err
    server.seen.clear()
    again = evalspec("run", "study.yaml", "--throwaway-key", "--no-pdf", "--out", "again", cwd=place)
    assert (again.code, server.seen) == (0, [])
    assert (place / "again" / "responses.parquet").read_bytes() == (place / "reports" / "study" / "responses.parquet").read_bytes()


def test_a_key_stands_in_no_file_on_no_line_and_in_no_message(serving: ModuleType, workplace: Path, tmp_path: Path, process: Command) -> None:
    """The server repeats the key wherever it can: in its names, in what it complains about, in what it lists."""

    def blab(number: int, path: str, body: dict[str, Any]) -> Any:
        complaint = json.dumps({"error": {"message": f"slow down, {KEY}", "code": KEY}}).encode()
        if number == 3:
            return serving.Answer(429, complaint, {"Retry-After": "0", "Location": f"http://{KEY}.example", "X-Key": KEY})
        if number == 4:
            return serving.Answer(body=KEY.encode())
        stop = number > 60 and path.endswith("completions") and broken
        return serving.Answer(400, complaint) if stop and "The answer is" not in json.dumps(body) else None

    broken, said = True, list[str]()
    offers = serving.Offers(key=KEY, names=("one", f"two-{KEY}"), fingerprints=(KEY,))
    with serving.ModelServer(workplace / "checkpoints" / "tiny-a", offers, blab) as server:
        write(tmp_path / "place", workplace, server.endpoint, more=", api_key_env: LAB_API_KEY")
        place, config = tmp_path / "place", Path(os.environ["XDG_CONFIG_HOME"])
        absent = process("run", "study.yaml", "--throwaway-key", cwd=place)
        assert (absent.code, "there is no variable LAB_API_KEY with the key for its server" in absent.err) == (3, True), absent.err
        wrong = process("run", "study.yaml", "--throwaway-key", cwd=place, env={"LAB_API_KEY": f"{KEY}-wrong"})
        assert (wrong.code, "does not accept the key in LAB_API_KEY (HTTP 401)" in wrong.err) == (3, True), wrong.err
        assert {headers.get("authorization") for _, _, headers in server.seen} == {f"Bearer {KEY}-wrong"}
        for arguments in (("validate", "study.yaml"), ("plan", "study.yaml"), ("plan", "study.yaml", "--json")):
            spoken = process(*arguments, cwd=place, env={"LAB_API_KEY": KEY})
            assert spoken.code == 0
            said += [spoken.out, spoken.err]
        assert "the key in LAB_API_KEY is sent to 127.0.0.1" in said[-1]
        failed = process("run", "study.yaml", "--throwaway-key", cwd=place, env={"LAB_API_KEY": KEY})
        assert (failed.code, "it says: slow down, ***" in failed.err) == (3, True), failed.err
        broken = False
        done = process("run", "study.yaml", "--throwaway-key", cwd=place, env={"LAB_API_KEY": KEY})
        assert done.code == 0, done.err
        said += [text for spoken in (absent, wrong, failed, done) for text in (spoken.out, spoken.err)]
    assert not [text for text in said if KEY in text]
    assert not [name for name, content in everything(place, config).items() if KEY.encode() in content or KEY[::-1].encode() in content]
    assert (place / "reports" / "study" / "report.pdf").stat().st_size > 10_000


def test_questions_that_are_not_disclosed_stand_in_no_file_though_the_server_repeats_them(
    serving: ModuleType, workplace: Path, tmp_path: Path, process: Command, evalspec: Command
) -> None:
    def repeat(_number: int, _path: str, body: dict[str, Any]) -> Any:
        stop = broken and "The answer is" not in json.dumps(body) and len(server.asked) > 20
        return serving.Answer(400, json.dumps({"error": {"message": body["prompt"]}}).encode()) if stop else None

    broken, offers = True, serving.Offers(names=("offenfrage7 of mine",))
    with serving.ModelServer(workplace / "checkpoints" / "tiny-a", offers, repeat) as server:
        write(tmp_path / "place", workplace, server.endpoint, disclosure="none")
        place = tmp_path / "place"
        failed = process("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place)
        assert failed.code == 3
        broken = False
        done = process("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place)
        assert done.code == 0, done.err
    assert "the questions of open, which the report does not show, are sent to 127.0.0.1" in done.err
    (place / "open.jsonl").unlink()
    for spoken in (failed, done):
        assert "offen" not in spoken.out + spoken.err
    assert not [name for name, content in everything(place).items() if b"offen" in content]
    assert evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--recompute", cwd=place).code == 0


@pytest.mark.slow
def test_a_killed_run_goes_on_without_asking_what_was_answered(
    serving: ModuleType, workplace: Path, tmp_path: Path, make: SimpleNamespace, process: Command
) -> None:
    def slowly(_number: int, _path: str, _body: dict[str, Any]) -> Any:
        time.sleep(0.05)

    with serving.ModelServer(workplace / "checkpoints" / "tiny-a", serving.Offers(), slowly) as server:
        write(tmp_path / "place", workplace, server.endpoint)
        place = tmp_path / "place"
        command = [sys.executable, "-m", "evalspec", "run", "study.yaml", "--throwaway-key", "--no-pdf"]
        for goal in (20, 50):
            running = subprocess.Popen(command, cwd=place, env=make.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            limit = time.monotonic() + 60
            while len(server.asked) < goal:
                assert running.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.01)
            running.send_signal(signal.SIGKILL)
            running.wait()
        done = process("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place)
        assert (done.code, "already in the journal" in done.err) == (0, True), done.err
        asked = Counter(body["prompt"] for body in server.asked)
    assert len(asked) == QUESTIONS
    lost = 2 * 8  # as many as were under way when the run was killed, twice
    assert QUESTIONS + 64 <= asked.total() <= QUESTIONS + 64 + lost


def test_a_plan_that_costs_more_than_allowed_is_refused_before_anything_is_asked(
    server: Any, workplace: Path, tmp_path: Path, evalspec: Command
) -> None:
    study = write(tmp_path / "place", workplace, server.endpoint, beside=f"{PRICED}, max_cost: 0.5")
    place = tmp_path / "place"
    refused = evalspec("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place)
    assert refused.code == 2
    assert re.search(
        r"study.yaml:5:\d+: asking model 'there' is expected to cost [\d.]+ EUR in all, 0 of it spent; the study allows 0.5", refused.err
    )
    assert server.seen == []
    assert not (place / "reports").exists()
    assert evalspec("plan", "study.yaml", cwd=place).code == 0
    study.write_text(study.read_text().replace("max_cost: 0.5", "max_cost: 50"))
    assert evalspec("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=place).code == 0
    ledger = json.loads((place / "reports" / "study" / "ledger.json").read_text())
    use = ledger["jobs"][0]["server"]
    assert use["cost"] == pytest.approx((use["input_tokens"] + use["output_tokens"]) / 1000)


@pytest.mark.parametrize("verb", ["validate", "plan", "run"])
def test_questions_are_not_sent_through_a_network_unencrypted(workplace: Path, tmp_path: Path, evalspec: Command, verb: str) -> None:
    write(tmp_path / "place", workplace, "http://llm.example/v1")
    place = tmp_path / "place"
    refused = evalspec(verb, "study.yaml", cwd=place)
    assert refused.code == 2
    assert "study.yaml:5:36: questions and key would go to this server unencrypted" in refused.err
    (place / "evalspec.toml").write_text("server_http = true\n")
    assert evalspec("validate", "study.yaml", cwd=place).code == 0


def test_a_key_that_cannot_be_one_is_refused_and_not_shown(
    workplace: Path, tmp_path: Path, evalspec: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "place", workplace, "https://llm.example/v1")
    monkeypatch.setenv("EVALSPEC_API_KEY", "kanarie\r\nX-Other: 1")
    refused = evalspec("plan", "study.yaml", cwd=tmp_path / "place")
    assert (refused.code, "the variable EVALSPEC_API_KEY holds no key" in refused.err, "kanarie" in refused.err) == (2, True, False)


def test_a_key_of_another_maker_is_not_read_silently(server: Any, workplace: Path, tmp_path: Path, process: Command) -> None:
    write(tmp_path / "place", workplace, server.endpoint)
    done = process("run", "study.yaml", "--throwaway-key", "--no-pdf", cwd=tmp_path / "place", env={"OPENAI_API_KEY": KEY})
    assert done.code == 0, done.err
    assert not any("authorization" in headers for _, _, headers in server.seen)
