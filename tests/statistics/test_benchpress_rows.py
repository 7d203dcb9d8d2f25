from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.statistics import benchpress_rows
from evalspec.statistics.benchpress import PUBLISHED_SEEDS, Method, fit
from evalspec.statistics.benchpress_rows import predict_row

from .benchpress_matrix import made_up, made_up_tops

DECLARED = Method(PUBLISHED_SEEDS, made_up_tops())
COMPAT = Method(PUBLISHED_SEEDS)


def sets(scores: NDArray[np.float64], model: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(5)
    known = np.flatnonzero(~np.isnan(scores[model]))
    visible = np.zeros((len(known) + 1, scores.shape[1]), dtype=np.bool_)
    for size in range(len(known) + 1):
        visible[size, rng.choice(known, size, replace=False)] = True
    return visible


@pytest.mark.parametrize("method", [DECLARED, COMPAT], ids=["declared", "published"])
@pytest.mark.parametrize("model", [0, 6, 13])
def test_each_prediction_is_that_of_a_plain_fit_without_the_other_cells(method: Method, model: int) -> None:
    scores = made_up()
    visible = sets(scores, model)
    found = predict_row(scores, model, visible, method)
    for place, shown in enumerate(visible):
        rest = scores.copy()
        rest[model, ~shown] = np.nan
        expected = fit(rest, method).at(np.full(scores.shape[1], model), np.arange(scores.shape[1]))
        for name in ("value", "spread", "span"):
            assert np.allclose(getattr(found, name)[place], getattr(expected, name), rtol=1e-9, atol=1e-9), (name, place)


def test_a_score_that_makes_a_column_no_percentage_does_so_only_where_it_is_seen() -> None:
    scores = made_up()
    scores[3, 1] = 250.0
    known = ~np.isnan(scores[3])
    visible = np.vstack([known, known])
    visible[1, 1] = False
    found = predict_row(scores, 3, visible, COMPAT)
    for place, shown in enumerate(visible):
        rest = scores.copy()
        rest[3, ~shown] = np.nan
        expected = fit(rest, COMPAT).at(np.full(9, 3), np.arange(9)).value
        assert np.allclose(found.value[place], expected, rtol=1e-9, atol=1e-9)


def test_a_column_that_no_other_model_has_is_predicted_only_where_its_score_is_seen() -> None:
    scores = made_up()
    scores[np.arange(len(scores)) != 2, 6] = np.nan
    scores[2, 6] = 40.0
    known = ~np.isnan(scores[2])
    hidden = known.copy()
    hidden[6] = False
    found = predict_row(scores, 2, np.vstack([known, hidden]), DECLARED)
    assert np.isnan(found.value[1, 6])
    assert found.value[0, 6] == pytest.approx(40.0, abs=30.0)
    assert np.array_equal(np.isnan(np.delete(found.value[1], 6)), np.zeros(8, dtype=bool))


def test_cells_without_a_score_are_never_seen() -> None:
    scores = made_up()
    everything = np.ones((1, 9), dtype=np.bool_)
    known = ~np.isnan(scores[4])[None]
    assert np.array_equal(predict_row(scores, 4, everything, DECLARED).value, predict_row(scores, 4, known, DECLARED).value)


def test_how_many_starts_are_solved_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = made_up()
    visible = sets(scores, 1)
    expected = predict_row(scores, 1, visible, DECLARED).value
    monkeypatch.setattr(benchpress_rows, "STARTS_AT_ONCE", 10)
    assert np.allclose(predict_row(scores, 1, visible, DECLARED).value, expected, rtol=0, atol=1e-9)
