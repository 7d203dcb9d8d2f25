"""GPQA: 420 models on 448 questions, where most neighbours cannot be told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def done(gpqa: Any, replay: Callable[..., Any]) -> Any:
    return replay(
        gpqa,
        title="How do 420 models do on GPQA?",
        design="missing: wrong",
        analyses=("{id: accuracy, kind: intervals, method: jeffreys}", "{id: neighbours, kind: mcnemar, family: adjacent, intervals: simultaneous}"),
    )


def test_every_model_has_its_interval_on_all_questions(done: Any, gpqa: Any) -> None:
    rows = done.result("accuracy")["rows"]
    assert len(rows) == 420
    assert {row["n"] for row in rows} == {448}
    right = sorted(sum(int(row[model]) for row in gpqa.rows) for model in gpqa.models)
    assert sorted(row["successes"] for row in rows) == right
    assert all(0.019 < row["standard_error"] < 0.025 for row in rows)  # accuracies of 0.2 to 0.5 on 448 questions


def test_neighbours_by_score_are_not_separated_at_this_size(done: Any) -> None:
    result = done.result("neighbours")
    assert result["family_size"] == 419
    assert not any(row["separated"] for row in result["rows"])
    assert result["critical_by"] == "max_t"
    assert 3.0 < result["critical"] < 4.0
    assert all(row["low"] < 0 < row["high"] for row in result["rows"])


def test_models_that_answer_alike_differ_by_nothing_and_keep_an_interval(done: Any) -> None:
    alike = [row for row in done.result("neighbours")["rows"] if row["only_first"] == row["only_second"] == 0]
    for row in alike:
        assert (row["p_value"], row["odds_low"], row["standard_error"]) == (1.0, None, None)
        assert row["low"] < 0 < row["high"]
    assert np.isfinite([row["difference"] for row in done.result("neighbours")["rows"]]).all()


def test_a_long_family_is_listed_in_part_and_says_so(done: Any) -> None:
    assert "only those with the smallest adjusted p are listed" in done.html
