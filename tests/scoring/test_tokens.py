from __future__ import annotations

import re

import pytest

from evalspec.artifacts.study import LetterScoring, OptionScoring, SampledScoring
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork
from evalspec.errors import ScoringError
from evalspec.scoring.tokens import Vocabulary, encode_work, learn_prefix, split_prompt

LETTERS = LetterScoring(method="letter")
OPTIONS = OptionScoring(method="option")
SAMPLED = SampledScoring(method="sampled")


def words(texts: list[str]) -> list[list[int]]:
    """Tokenise like a byte-level BPE: a space belongs to the word after it; an id per distinct piece."""
    return [[sum(map(ord, piece)) for piece in re.findall(r" ?[A-Za-z0-9<>]+| +|[^ A-Za-z0-9]", text)] for text in texts]


def colon_joins(texts: list[str]) -> list[list[int]]:
    return [[sum(map(ord, piece)) for piece in re.findall(r": C| ?\w+|.", text)] for text in texts]


def caseless(texts: list[str]) -> list[list[int]]:
    return [[7 if piece.strip() in "AB" else 8 for piece in re.findall(r" ?\w+|.", text)] for text in texts]


def work_of(prompt: str, answers: tuple[str, ...], scoring: LetterScoring | OptionScoring | SampledScoring = LETTERS) -> BenchmarkWork:
    return BenchmarkWork(
        benchmark="b", scoring=scoring, prompt="", questions=(AskedQuestion(name="q7", sha256="0" * 64, prompt=prompt, answers=answers),)
    )


def vocabulary(tokenize: object = words, prefix: tuple[int, ...] = (), limit: int | None = None) -> Vocabulary:
    return Vocabulary("m", tokenize, prefix, limit)  # type: ignore[arg-type]


def test_the_prefix_is_learnt_from_ids_and_an_eos_is_not_part_of_it() -> None:
    assert learn_prefix([87], [1, 87, 2]) == (1,)
    assert learn_prefix([87], [87]) == ()
    with pytest.raises(ValueError, match="does not contain"):
        learn_prefix([87], [1, 88])


def test_every_row_begins_with_exactly_one_bos_when_the_tokenizer_adds_one() -> None:
    bos = words(["<bos>"])[0]
    for written in ("Q Answer:", "<bos>Q Answer:"):
        text = written.replace("<bos>", "<bos> ") if written.startswith("<bos>") else written
        row = encode_work(work_of(text, ("A", "B")), vocabulary(prefix=tuple(bos))).questions[0].rows[0]
        assert row.count(bos[0]) == 1
        assert row[0] == bos[0]


def test_trailing_spaces_of_the_prompt_belong_to_the_answer() -> None:
    with_space, without = (encode_work(work_of(prompt, ("A", "B")), vocabulary()) for prompt in ("Q Answer: ", "Q Answer:"))
    assert with_space == without
    assert dict(without.letters) == {"A": words([" A"])[0][0], "B": words([" B"])[0][0]}


@pytest.mark.parametrize("ending", ["\n", "(", "**"])
def test_after_a_line_feed_or_a_bracket_the_letter_follows_without_space(ending: str) -> None:
    assert split_prompt(f"Answer{ending}") == (f"Answer{ending}", "")
    assert dict(encode_work(work_of(f"Answer{ending}", ("A",)), vocabulary()).letters) == {"A": ord("A")}


def test_all_letters_share_one_row_and_are_read_at_its_last_position() -> None:
    question = encode_work(work_of("Q Answer:", ("A", "B", "C", "D")), vocabulary()).questions[0]
    assert len(question.rows) == 1
    assert {answer.start for answer in question.answers} == {len(question.rows[0]) - 1}


def test_a_token_over_the_join_is_refused_with_the_way_out() -> None:
    with pytest.raises(ScoringError, match=r"question 'q7'.*model 'm'.*letter 'C'") as caught:
        encode_work(work_of("Answer:", ("A", "B", "C")), vocabulary(colon_joins))
    assert "method: option" in str(caught.value.diagnostics[0].hint)
    with pytest.raises(ScoringError, match="spans the end of the prompt"):
        encode_work(work_of("Answer:", ("C",), OPTIONS), vocabulary(colon_joins))


def test_two_letters_with_one_id_are_refused() -> None:
    with pytest.raises(ScoringError, match="'A/B' is not one token"):
        encode_work(work_of("x", ("A", "B")), vocabulary(caseless))


def test_an_empty_choice_is_refused() -> None:
    with pytest.raises(ScoringError, match="choice 2 is empty"):
        encode_work(work_of("Answer:", ("red", " "), OPTIONS), vocabulary())


@pytest.mark.parametrize("prompt", ["", " ", "  "])
@pytest.mark.parametrize("scoring", [OPTIONS, SAMPLED], ids=["option", "sampled"])
def test_an_empty_prompt_is_refused_where_no_id_comes_before_it(prompt: str, scoring: OptionScoring | SampledScoring) -> None:
    with pytest.raises(ScoringError, match="question 'q7': the prompt is empty for the tokenizer of model 'm'"):
        encode_work(work_of(prompt, ("red sea", "blue sea"), scoring), vocabulary())
    assert encode_work(work_of(prompt, ("red sea", "blue sea"), scoring), vocabulary(prefix=(1,))).questions[0].answers[0].start == 0


def test_a_prompt_longer_than_the_context_is_refused_and_never_cut() -> None:
    encode_work(work_of("one two three", ("A",)), vocabulary(limit=3))
    with pytest.raises(ScoringError, match=r"question 'q7' of benchmark 'b' has 4 tokens; model 'm' reads at most 3"):
        encode_work(work_of("one two three four", ("A",)), vocabulary(limit=3))


def test_one_word_choices_share_a_row_and_longer_ones_leave_out_their_last_id() -> None:
    question = encode_work(work_of("Answer:", ("red", "blue", "dark red", "dark blue"), OPTIONS), vocabulary()).questions[0]
    context = tuple(words(["Answer:"])[0])
    assert question.rows == (context, context + tuple(words([" dark"])[0]))
    assert [answer.row for answer in question.answers] == [0, 0, 1, 1]
    assert {answer.start for answer in question.answers} == {len(context) - 1}


def test_the_first_ids_are_recorded() -> None:
    assert encode_work(work_of("a b c d e", ("A",)), vocabulary(prefix=(1,))).first_ids == (1, *(words(["a b c"])[0]))
