from __future__ import annotations

import pytest

from evalspec.devices import read_devices


@pytest.mark.parametrize(
    ("text", "names"),
    [("auto", ("auto",)), ("cpu", ("cpu",)), (" cpu,cpu ,cpu", ("cpu",) * 3), ("cuda:0,cuda:10", ("cuda:0", "cuda:10")), ("cuda:1", ("cuda:1",))],
)
def test_devices_are_named_one_by_one(text: str, names: tuple[str, ...]) -> None:
    assert read_devices(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no devices"),
        ("auto,cpu", "names no devices"),
        ("gpu", "names no devices"),
        ("cuda", "names no devices"),
        ("cuda:01", "names no devices"),
        ("cpu,", "names no devices"),
        ("cpu:1", "names no devices"),
        ("cuda:0,cpu", "two kinds"),
        ("cuda:0,cuda:0", "twice"),
    ],
)
def test_what_names_no_devices_of_one_kind_is_refused_with_what_is_allowed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"{why}.*allowed are 'auto'"):
        read_devices(text)
