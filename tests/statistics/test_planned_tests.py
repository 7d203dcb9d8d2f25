from __future__ import annotations

import pytest

from evalspec.statistics.one_sided import LimitTest
from evalspec.statistics.one_sided_power import limit_detectable, limit_power, limit_questions
from evalspec.statistics.paired_power import detectable_difference, exact_power_favoured, questions_needed
from evalspec.statistics.planned_tests import PlannedTest


def test_mcnemar_s_tests_are_planned_with_twice_the_one_sided_alpha() -> None:
    test = PlannedTest("exact", 0.025)
    assert test.power(500, 0.2, 0.05) == exact_power_favoured(500, 0.2, 0.05)
    assert test.questions(0.2, 0.05) == questions_needed(0.2, 0.05)
    assert test.detectable(500, 0.2) == detectable_difference(500, 0.2)


@pytest.mark.parametrize(("name", "method"), [("score", "score"), ("fay_lumbard", "exact"), ("e_value", "e_value")])
def test_tests_against_a_limit_are_planned_as_they_are_run(name: str, method: str) -> None:
    test, same = PlannedTest(name, 0.025, -0.1), LimitTest(-0.1, method=method)
    assert test.power(150, 0.2, 0.0) == limit_power(150, 0.2, 0.0, same)
    assert test.questions(0.2, 0.0) == limit_questions(0.2, 0.0, same)
    assert test.detectable(150, 0.2) == limit_detectable(150, 0.2, same)


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="one of"):
        PlannedTest("wald", 0.025)
    with pytest.raises(ValueError, match="difference of 0"):
        PlannedTest("exact", 0.025, -0.02)
    with pytest.raises(ValueError, match="true gain"):
        PlannedTest("exact", 0.025).power(100, 0.2, -0.01)
    with pytest.raises(ValueError, match="no number of questions"):
        PlannedTest("mid_p", 0.025).questions(0.2, 0.0)
    with pytest.raises(ValueError, match="no smallest"):
        PlannedTest("score", 0.025, -0.02, both=True).detectable(100, 0.2)
