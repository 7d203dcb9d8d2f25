"""Speeds that a cache folder has seen are anybody's word: what cannot be one is left out of account and never waited for."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.scoring.speeds import FILE, Speed, Speeds, expected_pace, read_speeds

SPEED = {"weights_sha256": "0" * 64, "precision": "as_shipped", "device": "cpu", "parameters": 1000, "tokens_per_second": 5.0}


@pytest.mark.parametrize("change", [{"parameters": 0}, {"parameters": -3}, {"tokens_per_second": 0.0}, {"tokens_per_second": -1.0}])
def test_a_speed_that_cannot_be_one_is_not_read(tmp_path: Path, change: dict[str, float]) -> None:
    (tmp_path / FILE).write_bytes(Speeds(speeds=(Speed.model_construct(**{**SPEED, **change}),)).to_json())
    assert read_speeds(tmp_path) == Speeds()


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert read_speeds(tmp_path) == Speeds()


def test_a_speed_is_scaled_by_the_number_of_parameters(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(Speeds(speeds=(Speed.model_validate(SPEED),)).to_json())
    order = SimpleNamespace(identity=SimpleNamespace(weights_sha256="1" * 64, parameters=10_000), precision="as_shipped")
    pace = expected_pace(read_speeds(tmp_path), order, "cpu")  # type: ignore[arg-type]
    assert pace is not None
    assert (pace.tokens_per_second, pace.measured) == (0.5, False)
