from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.errors import StudyError
from evalspec.language.decoding import MAX_BYTES
from evalspec.language.positions import Pointer, Source
from evalspec.language.source import MAX_DEPTH, MAX_NODES, read_source

TEXT = """\
title: "quoted: text"
list:
  - first
  - {a: 1, 'b': 2.5}
prompt: |-
  line one
  line two
folded: two
  lines
"""
keys = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=8).filter(lambda key: key.strip() == key)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | keys,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def read(text: str) -> Source:
    return read_source(text.encode(), "study.yaml")


def told(text: str | bytes) -> list[str]:
    try:
        source = read_source(text if isinstance(text, bytes) else text.encode(), "study.yaml")
    except StudyError as error:
        return [fault.message for fault in error.diagnostics]
    return [fault.message for fault in source.faults]


def test_values_are_plain() -> None:
    assert read(TEXT).content == {
        "title": "quoted: text",
        "list": ["first", {"a": 1, "b": 2.5}],
        "prompt": "line one\nline two",
        "folded": "two lines",
    }


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        (("title",), '"quoted: text"'),
        (("list", 0), "first"),
        (("list", 1), "{"),
        (("list", 1, "a"), "1"),
        (("list", 1, "b"), "2.5"),
        (("prompt",), "|-"),
        (("folded",), "two"),
    ],
)
def test_places_of_values_point_at_their_text(pointer: Pointer, text: str) -> None:
    source = read(TEXT)
    assert source.page.text(source.span(pointer)) == text


@pytest.mark.parametrize(("pointer", "text"), [(("title",), "title"), (("list", 1, "b"), "'b'"), (("prompt",), "prompt")])
def test_places_of_keys_point_at_their_text(pointer: Pointer, text: str) -> None:
    source = read(TEXT)
    assert source.page.text(source.span(pointer, on="key")) == text


def test_a_place_that_is_not_written_is_that_of_the_nearest_enclosing_value() -> None:
    source = read(TEXT)
    assert source.span(("list", 1, "c", "d")) == source.span(("list", 1))
    assert source.span(("nowhere",)) == source.span(())


@settings(deadline=None)
@given(values)
def test_json_is_read_to_equal_values(value: Any) -> None:
    assert read(json.dumps({"top": value}, ensure_ascii=False)).content == {"top": value}


@settings(deadline=None)
@given(st.dictionaries(keys, st.integers(0, 9) | keys.filter(lambda text: '"' not in text), min_size=1, max_size=6))
def test_every_place_of_a_scalar_holds_its_text(content: dict[str, Any]) -> None:
    source = read("\n".join(f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()))
    for key, value in content.items():
        assert json.loads(source.page.text(source.span((key,)))) == value
        assert json.loads(source.page.text(source.span((key,), on="key"))) == key


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_line_breaks_of_every_system_count_alike(line_break: str) -> None:
    source = read(line_break.join(["a: 1", "b: 2", ""]))
    assert (source.span(("b",)).line, source.span(("b",)).column) == (2, 4)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    source = read_source("\ufeffa: 1".encode(), "study.yaml")
    assert source.content == {"a": 1}
    assert source.span(("a",), on="key").column == 1


def test_recoverable_faults_are_collected() -> None:
    assert len(told("a: no\nb: 010\nc: &x 1\nd: *x\na: 2\ne: !!str 3\n1: 2\n<<: {}\n")) == 8


def test_faults_before_a_syntax_error_are_kept() -> None:
    assert told("a: no\nb: [1, 2") == ["the bare word no is text in some YAML readers and false in others", "this bracket is never closed"]


def test_a_study_may_be_forty_levels_deep_and_no_deeper() -> None:
    assert told("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
    assert told("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) == ["this is nested deeper than 40 levels"]
    assert told("[" * 100_000) == ["this is nested deeper than 40 levels"]


@pytest.mark.slow
def test_a_study_has_a_limit_of_values() -> None:
    assert told("[" + "1," * (MAX_NODES + 1) + "]") == ["a study may hold 50,000 values; here begins one more"]


def test_a_study_has_a_limit_of_bytes() -> None:
    assert told(b"#" * (MAX_BYTES + 1)) == ["study.yaml has more than the 1,048,576 bytes that a study may have"]


def test_the_billion_laughs_stay_small() -> None:
    laughs = "\n".join(f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 10))
    assert all("aliases" in message or "anchors" in message for message in told(f"l0: &l0 ha\n{laughs}"))


@pytest.mark.parametrize(
    "text", ['a: "\\UFFFFFFFF"', '"\\ud800": 1', "%YAML 9.9\n--- a", "%FOO\n--- a", "a: !x!y z", "--- !!python/object:os.system {}"]
)
def test_oddities_of_yaml_are_refused(text: str) -> None:
    assert told(text)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_study_errors(content: bytes) -> None:
    told(content)


fragments = st.sampled_from(
    [
        "a",
        "b: ",
        ": ",
        "- ",
        "? ",
        "\n",
        "\n  ",
        "\n    ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "'",
        '"',
        "&x ",
        "*x",
        "!t ",
        "|",
        ">-",
        "#",
        "%Y",
        "---",
        "...",
        "\t",
        "\\",
        "1",
        "no",
        "<<: ",
        "~",
        "@",
        "é",
        "\r",
    ]
)


@settings(deadline=None)
@given(st.lists(fragments, max_size=40).map("".join))
def test_random_yaml_raises_nothing_but_study_errors(text: str) -> None:
    told(text)
