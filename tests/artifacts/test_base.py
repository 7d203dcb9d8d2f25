from __future__ import annotations

import hashlib

import pytest
from pydantic import ValidationError

from evalspec.artifacts.base import Artifact, canonical_json
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.thresholds import Check


class Named(Artifact):
    name: str
    share: float | None = None


def test_equal_values_have_one_byte_form_whatever_the_order_of_their_keys() -> None:
    expected = '{\n  "a": "é",\n  "b": [\n    1\n  ]\n}\n'.encode()
    assert canonical_json({"b": [1], "a": "é"}) == canonical_json({"a": "é", "b": [1]}) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"share": value})
    with pytest.raises(ValidationError, match="finite"):
        Named(name="x", share=value)


def test_an_artifact_reads_back_to_an_equal_one_of_the_same_digest() -> None:
    artifact = Named(name="x", share=0.25)
    assert Named.from_json(artifact.to_json()) == artifact
    assert artifact.digest() == hashlib.sha256(b'{\n  "name": "x",\n  "share": 0.25\n}\n').hexdigest()


@pytest.mark.parametrize("content", [b'{"name": "x", "nmae": "y"}', b'{"name": 1}', b"{}"])
def test_unknown_keys_other_types_and_gaps_are_refused(content: bytes) -> None:
    with pytest.raises(ValidationError):
        Named.from_json(content)


@pytest.mark.parametrize(("limit", "value"), [("at_least", 0.7), ("above", -0.02), ("at_most", 0.1), ("below", 0.0)])
def test_a_check_has_the_one_limit_that_is_given(limit: str, value: float) -> None:
    assert Check(id="c", analysis="a", metric="accuracy", model="m", **{limit: value}).limit == value
    with pytest.raises(ValueError, match="sets no limit"):
        _ = Check(id="c", analysis="a", metric="accuracy", model="m").limit


@pytest.mark.parametrize(("rule", "written"), [(BatchRule(), False), (BatchRule(packing=False), True)])
def test_a_rule_says_of_rows_end_to_end_only_that_it_forbids_them_so_that_earlier_protocols_keep_their_digest(
    rule: BatchRule, *, written: bool
) -> None:
    assert (b"packing" in rule.to_json()) == written
    assert BatchRule.from_json(rule.to_json()) == rule
