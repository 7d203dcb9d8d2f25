from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from evalspec.artifacts.served import Price, Reply, ServedModel, ServerUse, identity_of, is_alias, is_local

PRICE = Price(input=2.0, output=8.0, per=1000, currency="USD")


def reply(**told: int | None) -> Reply:
    return Reply.model_validate({"asked": "2026-11-29T12:00:00Z", "requests": 1, "tries": 1, **told})


@pytest.mark.parametrize("name", ["gpt-4o", "large", "llama-3-70b", "Qwen2.5-72B-Instruct", "o3", "model-v2"])
def test_a_name_without_date_and_revision_is_an_alias(name: str) -> None:
    assert is_alias(name)


@pytest.mark.parametrize(
    "name",
    ["gpt-4o-2024-08-06", "gpt-4-0613", "mistral-large-2411", "claude-20241022", "org/model@0a1b2c3d", "model:0123456789abcdef", "gpt-4-0613-turbo"],
)
def test_a_name_with_a_date_or_a_revision_is_none(name: str) -> None:
    assert not is_alias(name)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://me:secret@llm.example/v1", "https://llm.example/v1?key=1", "https://llm.example/v1#x", "ftp://llm.example", "llm.example/v1",
        "https:///v1", "https://llm.example/a b", "https://llm.example\\@evil.example/", "https://llm.example/v1/../x?y", "HTTPS://llm.example/v1",
    ],
)  # fmt: skip
def test_an_address_holds_no_more_than_host_and_path(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        ServedModel(endpoint=endpoint, model="m")


@pytest.mark.parametrize("name", ["HOME", "AWS_SECRET_ACCESS_KEY", "EVALSPEC_KEY_PASSPHRASE", "lower_API_KEY", "sk-0123_API_KEY"])
def test_a_study_can_name_no_variable_but_one_for_a_key_of_a_server(name: str) -> None:
    with pytest.raises(ValidationError):
        ServedModel(endpoint="https://llm.example/v1", model="m", api_key_env=name)


def test_the_default_variable_is_our_own() -> None:
    assert ServedModel(endpoint="https://llm.example/v1", model="m").key_variable == "EVALSPEC_API_KEY"


def test_two_ways_of_writing_an_address_are_one_identity() -> None:
    first, second = (identity_of(ServedModel(endpoint=f"https://llm.example:8443/v1{end}", model="m")) for end in ("", "/"))
    assert first == second
    assert (first.host, first.origin) == ("llm.example:8443", "m at llm.example:8443")


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.0.0.1:80", True), ("[::1]:80", True), ("10.0.0.1", False), ("localhost.example", False), ("0x7f000001", False)],
)
def test_only_this_machine_is_local(host: str, local: bool) -> None:
    assert is_local(f"http://{host}/v1") == local


def test_what_was_never_answered_costs_what_it_sent() -> None:
    assert reply(input_tokens=100, output_tokens=10).cost(PRICE) == pytest.approx(0.28)
    assert reply(input_tokens=100, output_tokens=10, tries=3, unanswered=2).cost(PRICE) == pytest.approx(0.68)
    assert reply(input_tokens=100, output_tokens=10, requests=2, tries=3, unanswered=1).cost(PRICE) == pytest.approx(0.38)


def test_use_adds_up_and_says_nothing_of_what_is_not_known() -> None:
    known = ServerUse.of([reply(input_tokens=100, output_tokens=1), reply(input_tokens=50, output_tokens=1)], PRICE)
    assert (known.requests, known.input_tokens, known.cost, known.currency) == (2, 150, pytest.approx(0.316), "USD")
    unknown = ServerUse.of([reply()], None)
    assert (unknown.input_tokens, unknown.cost, unknown.currency) == (None, None, None)


@pytest.mark.parametrize("change", [{"input": 1e308}, {"output": 1e10}, {"per": 0.5}, {"per": 1e300}, {"input": -1.0}])
def test_a_price_is_such_that_whatever_a_server_counts_comes_to_a_number(change: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate({"input": 1.0, "output": 1.0, "per": 1e6, "currency": "USD", **change})
    assert math.isfinite(Price(input=1e9, output=1e9, per=1, currency="USD").cost(1e9, 1e9))
