from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalspec.foreign import parse_json
from evalspec.scoring.replies import Limits, Listed, echoed_answer, limits_of, listed_tokens, name_in, usage_of


def completion(tops: dict[str, Any], picked: str = " A", value: Any = -0.1) -> dict[str, Any]:
    return {"choices": [{"logprobs": {"tokens": [picked], "token_logprobs": [value], "top_logprobs": [tops]}}]}


def chat(tops: list[Any], picked: str = "A", value: Any = -0.1) -> dict[str, Any]:
    return {"choices": [{"logprobs": {"content": [{"token": picked, "logprob": value, "top_logprobs": tops}]}}]}


def echo(tokens: list[Any], values: list[Any], text: str) -> dict[str, Any]:
    return {"choices": [{"text": text, "logprobs": {"tokens": tokens, "token_logprobs": values}}]}


def test_both_ways_of_listing_tokens_are_read() -> None:
    beside = listed_tokens(completion({" A": -0.5, " B": -1.5}), most=20)
    after = listed_tokens(chat([{"token": " A", "logprob": -0.5}, {"token": " B", "logprob": -1.5}], picked=" A"), most=20)
    assert beside == after == Listed({" A": -0.5, " B": -1.5}, -1.5, " A")


def test_a_picked_token_beyond_the_list_is_known_and_lowers_no_bound() -> None:
    listed = listed_tokens(completion({" x": -0.5, " y": -1.5}, picked=" B", value=-7.0), most=2)
    assert (listed.logprobs[" B"], listed.bound) == (-7.0, -1.5)
    more = listed_tokens(completion({" x": -0.5, " y": -1.5, " B": -7.0}, picked=" B", value=-7.0), most=2)
    assert (more.logprobs[" B"], more.bound) == (-7.0, -1.5)


@pytest.mark.parametrize("mark", ["\u0120", "\u2581"])
def test_the_space_of_raw_vocabularies_is_a_space(mark: str) -> None:
    assert listed_tokens(completion({f"{mark}A": -0.5}, picked=f"{mark}A"), most=20).logprobs == {" A": -0.5}


def test_what_stands_for_the_logarithm_of_nothing_is_not_known() -> None:
    listed = listed_tokens(completion({" A": -0.5, " B": -9999.0}), most=20)
    assert limits_of(listed, [" B"]) == Limits(-0.5, None)


def test_an_unlisted_letter_has_at_most_the_least_that_is_listed_and_never_nothing() -> None:
    listed = Listed({" A": -0.5, " x": -4.0}, -4.0, " A")
    assert limits_of(listed, [" A"]) == Limits(-0.5, -0.5)
    assert limits_of(listed, [" B"]) == Limits(-4.0, None)
    merged = limits_of(listed, [" A", "A"])
    assert merged.lowest == -0.5
    assert merged.highest == pytest.approx(math.log(math.exp(-0.5) + math.exp(-4.0)))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "no answer in it"),
        ({"choices": []}, "no answer in it"),
        ({"choices": ["text"]}, "no answer in it"),
        ({"choices": [{}]}, "gives no log-probabilities"),
        ({"choices": [{"logprobs": None}]}, "gives no log-probabilities"),
        ({"choices": [{"logprobs": {"content": []}}]}, "generated nothing"),
        ({"choices": [{"logprobs": {"content": None}}]}, "generated nothing"),
        (completion({}), "names no likeliest tokens"),
        (chat(["x"]), "names no likeliest tokens"),
        (chat([{"token": 7, "logprob": -1.0}]), "no text"),
        (completion({" A": "high"}), "log-probability is none"),
        (completion({" A": True}), "log-probability is none"),
        (completion({" A": 3.5}), "log-probability is none"),
        (completion({" A": -0.5}, picked=" B", value=None), "log-probability is none"),
        (completion({" A": -9999.0}), "gives no token a probability"),
        (completion({" A": -0.1, " B": -0.1}), "add up to more than 1"),
    ],
)
def test_a_reply_without_log_probabilities_that_can_be_is_an_error_that_says_why(content: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        listed_tokens(content, most=20)


def test_an_echoed_answer_is_the_tokens_from_the_space_before_it_on() -> None:
    content = echo(["Answer", ":", " red", " stone"], [None, -1.0, -2.0, -0.25], "Answer: red stone")
    assert echoed_answer(content, prompt="Answer: red stone", answer=" red stone") == (-2.25, 2)


def test_what_was_generated_behind_the_echo_is_not_counted() -> None:
    generated = echo(["Answer", ":", " a", " a"], [None, -1.0, -2.0, -9.0], "Answer: a a")
    assert echoed_answer(generated, prompt="Answer: a", answer=" a") == (-2.0, 1)
    unseen = echo(["Answer", ":", " a", "</s>"], [None, -1.0, -2.0, -9.0], "Answer: a")
    assert echoed_answer(unseen, prompt="Answer: a", answer=" a") == (-2.0, 1)
    doubled = echo(["a", " a"], [None, -2.0], "a a")
    assert echoed_answer(doubled, prompt="a a", answer=" a") == (-2.0, 1)


def test_tokens_that_are_shown_without_their_space_are_found_and_a_space_of_its_own_belongs_to_the_answer() -> None:
    content = echo(["<s>", "Answer", ":", "", "red"], [None, -1.0, -1.0, -0.5, -2.0], "Answer: red")
    assert echoed_answer(content, prompt="Answer: red", answer=" red") == (-2.5, 2)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (echo(["Answer", ": red"], [None, -1.0], "Answer: red"), "no token begins where the answer does"),
        (echo([" red"], [None], "Answer: red"), "no token begins where the answer does"),
        (echo(["Answer", ":", " red"], [None, -1.0, None], "Answer: red"), "log-probability is none"),
        (echo(["Answer", ":", " red"], [None, -1.0, -2.0], "something else"), "does not echo the prompt"),
        (echo(["Answer", ":", " red"], [None, -1.0], "Answer: red"), "no log-probabilities of the prompt's own tokens"),
        (echo([1, 2, 3], [None, -1.0, -1.0], "Answer: red"), "no text"),
        (completion({" A": -0.5}), "does not echo the prompt"),
    ],
)
def test_an_echo_that_is_not_the_prompt_is_an_error_that_says_why(content: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        echoed_answer(content, prompt="Answer: red", answer=" red")


@pytest.mark.parametrize("usage", ["many", {"prompt_tokens": -1}, {"prompt_tokens": True}, {"prompt_tokens": 10**8}, {"completion_tokens": 1}])
def test_counts_that_are_none_are_refused(usage: Any) -> None:
    with pytest.raises(ValueError, match="no count"):
        usage_of({"usage": usage})
    assert usage_of({}) is None


@pytest.mark.parametrize("name", [None, 7, "", "x" * 201, "two\nlines", "two words", "\x1b[31mred"])
def test_a_name_that_is_no_short_plain_word_is_left_out(name: Any) -> None:
    assert name_in({"model": name}, "model") is None
    assert name_in({"model": "large-2026-10-01"}, "model") == "large-2026-10-01"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["choices", "logprobs", "content", "token", "tokens", "text"]), inner)
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # nested replies take long to make on a busy machine
@given(st.dictionaries(st.sampled_from(["choices", "usage", "model"]), JSON))
def test_whatever_a_server_sends_is_read_or_refused(content: dict[str, Any]) -> None:
    assert name_in(content, "model") is None or isinstance(content["model"], str)
    for read in (lambda: listed_tokens(content, most=20), lambda: echoed_answer(content, prompt="a b", answer=" b"), lambda: usage_of(content)):
        with contextlib.suppress(ValueError):  # anything else is a bug
            read()


def test_a_number_that_is_none_does_not_pass_as_json() -> None:
    with pytest.raises(ValueError, match="NaN is not a JSON value"):
        parse_json('{"logprob": NaN}')
