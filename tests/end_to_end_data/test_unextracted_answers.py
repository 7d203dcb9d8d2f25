"""MMLU-Pro: 29 models, up to 23% of their answers not extracted, 14 subjects of unequal size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CHAT, RIVAL = "Qwen1.5-72B-Chat", "Meta-Llama-3_1-70B"


@pytest.fixture(scope="module")
def done(pro: Any, replay: Callable[..., Any]) -> Any:
    return replay(
        pro,
        title="How do 29 models do on MMLU-Pro?",
        design="groups: {subject: strata}\nmissing: wrong",
        analyses=(
            "{id: micro, kind: intervals}",
            "{id: macro, kind: intervals, average: macro}",
            "{id: pairs, kind: mcnemar, family: all_pairs}",
            f"{{id: rules, kind: sensitivity, models: [{CHAT}, {RIVAL}], pairs: [[{CHAT}, {RIVAL}]]}}",
            f"{{id: where, kind: subgroups, model: {CHAT}}}",
        ),
    )


def offered(row: dict[str, str], model: str) -> bool:
    """Return whether the recorded letter is one of the question's choices: some are not, and some are no letters."""
    return len(row[model]) == 1 and row[model] in "ABCDEFGHIJ"[: int(row["n_options"])]


def test_answers_that_could_not_be_extracted_are_missing_and_never_a_choice(done: Any, pro: Any) -> None:
    for summary in done.findings.summaries:
        expected = sum(not offered(row, summary.model) for row in pro.rows)
        assert sum(summary.missing.values()) == expected
        assert summary.answered == len(pro.rows) - expected


def test_how_missing_answers_count_moves_a_chat_model_by_more_than_its_interval(done: Any, pro: Any) -> None:
    rows = {row["case"]: row for row in done.result("rules")["accuracies"] if row["model"] == CHAT}
    assert rows["missing_left_out"]["value"] - rows["missing_wrong"]["value"] > 0.08
    assert rows["missing_wrong"]["high"] < rows["missing_left_out"]["low"]
    assert rows["missing_best"]["value"] - rows["missing_wrong"]["value"] == pytest.approx(sum(not offered(row, CHAT) for row in pro.rows) / 12032)
    signs = {row["case"]: row["difference"] > 0 for row in done.result("rules")["differences"]}
    assert (signs["missing_wrong"], signs["missing_best"]) == (False, True)  # which of the two is ahead hangs on the rule


def test_both_averages_over_fourteen_unequal_subjects_are_there_and_labelled(done: Any, pro: Any) -> None:
    rows = [row for row in done.result("macro")["rows"] if row["subject"] is None]
    assert {row["average"] for row in rows} == {"macro", "micro"}
    for model in pro.models[:3]:
        right = np.array([row[model] == row["answer"] for row in pro.rows])
        subjects = np.array([row["subject"] for row in pro.rows])
        by_average = {row["average"]: row["value"] for row in rows if row["model"] == model}
        assert by_average["micro"] == pytest.approx(right.mean())
        assert by_average["macro"] == pytest.approx(np.mean([right[subjects == name].mean() for name in np.unique(subjects)]))
    declared = {one.models[0]: one.value for one in done.findings.findings[1].estimates if one.subject is None}
    assert declared[pro.models[0]] == next(row["value"] for row in rows if row["model"] == pro.models[0] and row["average"] == "macro")
    assert "every subject counting the same (macro): the average that the study declares" in done.html


def correlation(row: dict[str, Any]) -> float:
    """Return the correlation of the right and wrong answers of two models, from the counts of their table."""
    both, first, second, neither = (row[name] for name in ("both", "only_first", "only_second", "neither"))
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    return float((both * neither - first * second) / np.sqrt(float(margins)))


def test_paired_scores_correlate_and_disagree_as_published(done: Any) -> None:
    listed, others = done.result("pairs")["rows"], done.result("pairs")["others"]
    assert len(listed) + len(others) == 29 * 28 // 2
    discordance = [(row["only_first"] + row["only_second"]) / row["n"] for row in (*listed, *others)]
    assert np.median(discordance) == pytest.approx(0.31, abs=0.01)
    assert np.quantile([correlation(row) for row in (*listed, *others)], [0.05, 0.95]) == pytest.approx([0.23, 0.46], abs=0.06)
    assert [correlation(row) for row in listed] == pytest.approx([row["correlation"] for row in listed], abs=1e-9)  # the same formula, rounded


def test_no_p_value_is_zero_and_the_smallest_keep_their_logarithm(done: Any) -> None:
    rows = done.result("pairs")["rows"]
    assert min(row["p_value"] for row in rows) > 0
    assert min(row["log10_p"] for row in rows) < -300
    assert "&lt; 1e-300" in done.html


def test_subjects_of_a_chat_model_differ_beyond_chance(done: Any) -> None:
    result = done.result("where")
    assert result["heterogeneity"][0]["p_value"] < 0.001
    assert {row["subject"] for row in result["rows"]} == {row["subject"] for row in result["rows"] if row["n"] > 300}
