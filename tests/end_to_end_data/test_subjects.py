"""MMLU-Redux: 14 frontier models on 57 subjects of 100 questions. Does one accuracy speak for all of them?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats


@pytest.fixture(scope="module")
def done(redux: Any, replay: Callable[..., Any]) -> Any:
    return replay(
        redux,
        title="Does one accuracy speak for 57 subjects?",
        design="groups: {subject: strata}\nmissing: wrong",
        analyses=("{id: accuracy, kind: intervals}", "{id: subjects, kind: harmony}", "{id: words, kind: harmony, partition: embedding}"),
        thresholds="""thresholds:
  checks:
    - {id: harmony, analysis: subjects, metric: harmony, model: anthropic_claude-3-5-sonnet-20240620, at_least: 0.90}
    - {id: worst, analysis: subjects, metric: worst_group, model: anthropic_claude-3-5-sonnet-20240620, at_least: 0.60}
""",
    )


def right(redux: Any, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Right answers by subject, and questions, in the order of the subjects' names."""
    subjects = sorted({row["subject"] for row in redux.rows})
    counted = np.array([sum(row[model] == row["answer"] for row in redux.rows if row["subject"] == subject) for subject in subjects])
    return counted, np.full(len(subjects), 100)


def test_subjects_of_equal_size_leave_only_accuracies_to_lower_harmony(done: Any, redux: Any) -> None:
    rows = done.result("subjects")["rows"]
    assert len(rows) == 14
    for row in rows:
        counted, sizes = right(redux, row["model"])
        shares = counted / sizes
        mass = np.exp(-(((shares - shares.mean()) / 0.1) ** 2))
        assert row["value"] == pytest.approx(stats.entropy(mass / mass.sum()) / np.log(57), abs=1e-9)
        assert row["size_harmony"] == pytest.approx(1.0)
        assert row["homogeneity_p"] == pytest.approx(
            stats.chi2_contingency([counted, sizes - counted], correction=False).pvalue, rel=1e-6, abs=1e-300
        )
        assert row["p_adjusted"] == pytest.approx(14 / 2001)
        assert row["rebalanced"] is None


def test_harmony_looks_high_while_subjects_lie_far_apart(done: Any) -> None:
    for row in done.result("subjects")["rows"]:
        assert 0.88 < row["value"] < 0.97
        assert row["null_mean"] > 0.99
        assert row["gap"] > 0.40
        assert row["flags"] == []


def test_a_gate_on_harmony_and_one_on_the_worst_subject_come_to_different_verdicts(done: Any) -> None:
    assert [(check.check.id, check.outcome) for check in done.verdict.checks] == [("harmony", "passed"), ("worst", "inconclusive")]
    assert done.code == 4


def test_hidden_texts_make_no_groups_by_words(done: Any) -> None:
    assert "texts of the questions are not disclosed" in done.result("words")["partitions"][0]["undefined"]
    assert "not published" not in done.html
