from __future__ import annotations

import math

import numpy as np
import pytest

from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.scoring.decisions import chosen_for_check, compare, decide


def batch(index: int, questions: tuple[int, ...], *logprobs: tuple[float, ...]) -> BatchRecord:
    return BatchRecord(
        index=index,
        questions=questions,
        logprobs=logprobs,
        token_counts=tuple(tuple(range(1, len(one) + 1)) for one in logprobs),
        byte_counts=tuple(tuple(10 - step for step in range(len(one))) for one in logprobs),
        padded_tokens=1,
        real_tokens=1,
        seconds=0.1,
    )


def test_an_exact_tie_of_the_best_is_no_choice_and_a_tie_below_them_is_one() -> None:
    decisions = decide([batch(0, (1, 0), (-1.0, -1.0, -2.0), (-3.0, -1.0, -3.0))], 2, LetterScoring(method="letter"))
    assert decisions.choices.tolist() == [1, -1]
    assert decisions.gaps.tolist() == [2.0, 0.0]


@pytest.mark.parametrize(("normalise", "expected"), [("sum", 0), ("per_token", 2), ("per_byte", 0)])
def test_options_are_compared_by_sum_per_token_or_per_byte(normalise: str, expected: int) -> None:
    logprobs = (-2.0, -4.1, -5.0)  # per token -2, -2.05, -1.67; per byte -0.2, -0.46, -0.63
    decisions = decide([batch(0, (0,), logprobs)], 1, OptionScoring(method="option", normalise=normalise))  # type: ignore[arg-type]
    assert decisions.choices.tolist() == [expected]


def test_questions_may_have_different_numbers_of_choices() -> None:
    decisions = decide([batch(0, (0,), (-1.0, -2.0)), batch(1, (1,), (-3.0, -2.0, -1.0))], 2, LetterScoring(method="letter"))
    assert decisions.choices.tolist() == [0, 2]
    assert np.isnan(decisions.values).tolist() == [[False, False, True], [False, False, False]]


def test_the_letter_mass_is_the_mean_probability_of_all_letters() -> None:
    half = math.log(0.25)
    assert decide([batch(0, (0, 1), (half, half), (half - 1e-3, half))], 2, LetterScoring(method="letter")).letter_mass == pytest.approx(
        0.5, abs=1e-3
    )
    assert decide([batch(0, (0,), (half, half))], 1, OptionScoring(method="option")).letter_mass is None


def test_the_self_check_takes_the_closest_questions_and_as_many_by_hash() -> None:
    logprobs = [(-1.0, -1.0 - 0.01 * (1 + (number * 37) % 200)) for number in range(200)]
    decisions = decide([batch(0, tuple(range(200)), *logprobs)], 200, LetterScoring(method="letter"))
    chosen = chosen_for_check(decisions, [f"{number:064x}" for number in range(200)])
    closest = set(np.argsort(decisions.gaps)[:32].tolist())
    assert len(set(chosen)) == 64
    assert closest <= set(chosen)


def test_the_self_check_counts_flips_and_measures_differences() -> None:
    planned = decide([batch(0, (0, 1, 2), (-1.0, -2.0), (-1.0, -1.1), (-5.0, -1.0))], 3, LetterScoring(method="letter"))
    alone = decide([batch(0, (0, 1), (-1.2, -1.1), (-5.0, -1.25))], 2, LetterScoring(method="letter"))
    check = compare(planned, alone, (1, 2))
    assert (check.questions, check.flips) == (2, 1)
    assert check.max_difference == pytest.approx(0.25)
    assert check.p999_difference == pytest.approx(0.25, abs=1e-3)


def listed(*limits: tuple[float, float | None]) -> BatchRecord:
    """A question of which each letter has at most and at least so much."""
    exact = all(most == least for most, least in limits)
    record = batch(0, (0,), tuple(most for most, _ in limits))
    return record if exact else record.model_copy(update={"lowest": (tuple(least for _, least in limits),)})


@pytest.mark.parametrize(
    ("limits", "choice", "unlisted", "gap"),
    [
        ([(-1.0, -1.0), (-2.0, -2.0)], 0, False, 1.0),
        ([(-3.0, None), (-1.0, -1.0), (-3.0, None)], 1, False, 2.0),  # the best is listed
        ([(-3.0, None), (-3.0, -3.0), (-3.0, None)], 1, False, 0.0),  # it is the last that is listed
        ([(-3.0, None), (-3.0, None)], -1, True, math.inf),  # none is
        ([(-1.0, -1.0), (-1.0, -1.0), (-3.0, None)], -1, False, 0.0),  # an exact tie of two that are listed
        ([(-0.9, -1.0), (-0.95, -0.95)], -1, True, math.inf),  # what is not listed of the first could lift it above the second
        ([(-0.9, -1.0), (-1.1, -1.1)], 0, False, 0.1),
        ([(-3.0, None)], -1, True, math.inf),
    ],
)
def test_a_choice_is_made_where_the_best_letter_is_listed_and_left_open_where_it_may_not_be(
    limits: list[tuple[float, float | None]], choice: int, unlisted: bool, gap: float
) -> None:
    decisions = decide([listed(*limits)], 1, LetterScoring(method="letter"))
    assert (decisions.choices[0], decisions.unlisted[0]) == (choice, unlisted)
    assert decisions.gaps[0] == pytest.approx(gap)
    assert np.isnan(decisions.values).all() == any(most != least for most, least in limits)


def test_letters_that_are_not_listed_add_nothing_to_the_mass_and_leave_no_minus_infinity() -> None:
    decisions = decide([listed((math.log(0.5), math.log(0.5)), (-3.0, None))], 1, LetterScoring(method="letter"))
    assert decisions.letter_mass == pytest.approx(0.5)
    assert not np.isinf(decisions.values).any()


def test_a_self_check_without_a_number_known_both_times_has_nothing_to_say() -> None:
    unknown = decide([listed((-3.0, None), (-3.0, None))], 1, LetterScoring(method="letter"))
    assert compare(unknown, unknown, (0,)) is None
