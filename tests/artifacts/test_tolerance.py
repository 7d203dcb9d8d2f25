from __future__ import annotations

import pytest

from evalspec.artifacts.protocol import CheckpointIdentity, FileDigest, ProtocolModel, RecordIdentity
from evalspec.artifacts.responses import SelfCheck
from evalspec.artifacts.tolerance import tolerance_of


def model(stored: str, precision: str = "as_shipped") -> ProtocolModel:
    identity = CheckpointIdentity(
        files=(FileDigest(name="model.safetensors", sha256="0" * 64, size=1),),
        weights_sha256="0" * 64,
        tokenizer_sha256="0" * 64,
        architecture="LlamaForCausalLM",
        parameters=1,
        stored_dtype=stored,
        origin="m",
    )
    return ProtocolModel.model_validate({"id": "m", "precision": precision, "identity": identity})


def found(bound: float) -> SelfCheck:
    return SelfCheck(questions=64, flips=0, max_difference=bound, p999_difference=bound)


@pytest.mark.parametrize(("stored", "precision"), [("float32", "as_shipped"), ("float64", "as_shipped"), ("bfloat16", "float32")])
def test_in_32_bits_a_thousandth_is_allowed_whatever_was_recorded(stored: str, precision: str) -> None:
    assert {tolerance_of(model(stored, precision), check) for check in (None, found(0.0), found(99.0))} == {1e-3}


@pytest.mark.parametrize(("bound", "allowed"), [(0.0, 0.1), (0.05, 0.1), (0.2, 0.2), (0.5, 0.5), (99.0, 0.5)])
def test_in_16_bits_the_self_check_says_how_much_within_limits(bound: float, allowed: float) -> None:
    assert tolerance_of(model("bfloat16"), found(bound)) == allowed
    assert tolerance_of(model("float16"), found(bound)) == allowed


def test_without_a_self_check_the_least_is_allowed() -> None:
    assert tolerance_of(model("bfloat16"), None) == 0.1


def test_a_model_without_weights_computes_in_no_precision_that_is_known() -> None:
    recorded = ProtocolModel(id="m", precision="as_shipped", identity=RecordIdentity(sha256="0" * 64, model="m", origin="m.csv"))
    assert tolerance_of(recorded, None) == 0.1
