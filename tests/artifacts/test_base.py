from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.artifacts.base import canonical_json

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30)


@given(values)
def test_the_bytes_are_those_of_the_standard_library(value: Any) -> None:
    assert canonical_json(value) == (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="strict")


@pytest.mark.parametrize("value", [(), (1, (2, ())), {"a": ({"b": []}, {})}, ',\n  "a": 1', {",\n  ": [",\n  "]}])
def test_empty_containers_tuples_and_texts_that_look_like_json_are_written_alike(value: Any) -> None:
    assert canonical_json(value) == (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": [1, {"b": float("-inf")}]}])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range float values"):
        canonical_json(value)
