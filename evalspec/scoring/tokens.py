"""Which token ids does a model read, and which does it give probabilities to?

Prompt and answer are tokenised together (the rule of lm-evaluation-harness: trailing spaces of the prompt belong to the answer). The ids that a
tokenizer puts before a text are learnt from what it does to the text "x", never from its attributes, which can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from evalspec.artifacts.prompts import split_prompt
from evalspec.artifacts.work import Answer, AskedQuestion, BenchmarkWork, EncodedQuestion
from evalspec.errors import ScoringError

Tokenize = Callable[[list[str]], list[list[int]]]
"""Texts to ids, with nothing added."""

Decode = Callable[[Sequence[int]], str]
"""Ids to their text, without special tokens."""

Chat = Callable[[str], str]
"""A user's message to the text of a conversation in which the model answers next."""

SAME_ENDING = 32
"""Characters that two prompts must end with in common for one check of all letters to hold for both:
more than a token that could reach over the join is long."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How a model's tokenizer turns text into ids; `prefix` goes before every text, `context_length` is the most ids a row may have.

    `chat` puts a user's message into the model's chat template, up to where the model's answer begins; None where the model has no template.
    `decode` turns generated ids into text, None where nothing is generated; `ends` are the ids with which the model ends a text.
    """

    model: str
    tokenize: Tokenize
    prefix: tuple[int, ...]
    context_length: int | None
    chat: Chat | None = None
    decode: Decode | None = None
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedWork:
    """The questions of one benchmark as ids; `letters` are the ids of the letters when letters are scored."""

    questions: tuple[EncodedQuestion, ...]
    letters: tuple[tuple[str, int], ...]

    @property
    def first_ids(self) -> tuple[int, ...]:
        """The first four ids of the first row: they show whether it begins with a BOS token, and with how many."""
        return self.questions[0].rows[0][:4]


def learn_prefix(plain: Sequence[int], full: Sequence[int]) -> tuple[int, ...]:
    """Return the ids that a tokenizer puts before a text, from the same text without and with its special tokens.

    >>> learn_prefix([87], [1, 87])
    (1,)

    Raises ValueError when the plain ids are not inside the full ones.
    """
    for start in range(len(full) - len(plain) + 1):
        if list(full[start : start + len(plain)]) == list(plain):
            return tuple(full[:start])
    raise ValueError("the tokenizer's own encoding does not contain the text's ids")


def encode_work(work: BenchmarkWork, vocabulary: Vocabulary) -> EncodedWork:
    """Return the ids of every question; raises ScoringError for what the tokenizer or the model's context cannot carry."""
    prompts = _in_chat(work, vocabulary) if work.scoring.chat else [question.prompt for question in work.questions]
    prefix = () if work.scoring.chat else vocabulary.prefix  # a chat template writes its own BOS
    contexts, leads = zip(*map(split_prompt, prompts), strict=True)
    if work.scoring.method == "sampled":
        encoded = [_rows(prefix, ids, [()]) for ids in vocabulary.tokenize(list(contexts if not work.scoring.chat else prompts))]
        _refuse_empty(work, encoded, vocabulary.model)
        _refuse_too_long(work, encoded, vocabulary, generated=work.scoring.max_tokens)
        return EncodedWork(tuple(encoded), ())
    tried = _tried_answers(work, contexts)
    context_ids = vocabulary.tokenize(list(contexts))
    whole_ids = iter(vocabulary.tokenize([c + lead + answer for c, lead, some in zip(contexts, leads, tried, strict=True) for answer in some]))
    letters: dict[str, int] | None = {} if work.scoring.method == "letter" else None
    encoded = []
    for question, ids, some in zip(work.questions, context_ids, tried, strict=True):
        endings = _answer_ids(question, ids, {answer: next(whole_ids) for answer in some}, vocabulary.model, letters)
        encoded.append(replace(_rows(prefix, ids, endings), reference=question.reference))
    _refuse_empty(work, encoded, vocabulary.model)
    _refuse_too_long(work, encoded, vocabulary)
    return EncodedWork(tuple(encoded), tuple(sorted((letters or {}).items())))


def _in_chat(work: BenchmarkWork, vocabulary: Vocabulary) -> list[str]:
    if vocabulary.chat is None:
        raise ScoringError(
            f"benchmark '{work.benchmark}' asks for the chat template of model '{vocabulary.model}', which has none",
            hint="write `chat: false`, or give the checkpoint its chat_template.jinja",
        )
    return [vocabulary.chat(question.prompt) for question in work.questions]


def _tried_answers(work: BenchmarkWork, contexts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return which answers are tokenised behind each prompt: all, but of letters only the first where a prompt with the same ending had them all."""
    if work.scoring.method == "option":
        return [question.answers for question in work.questions]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    tried = []
    for question, context in zip(work.questions, contexts, strict=True):
        ending = (context[-SAME_ENDING:], question.answers)
        tried.append(question.answers[:1] if ending in seen else question.answers)
        seen.add(ending)
    return tried


def _answer_ids(
    question: AskedQuestion, context: list[int], whole: dict[str, list[int]], model: str, letters: dict[str, int] | None
) -> list[tuple[int, ...]]:
    """Return each answer's ids; with `letters`, each must be one id, the same for every question and no other letter's."""
    for number, (answer, ids) in enumerate(whole.items(), start=1):
        ending, joined = ids[len(context) :], ids[: len(context)] != context
        if letters is None:
            _check_option(question, number, model, joined=joined, empty=not answer.strip() or (not ending and not joined))
        elif joined or len(ending) != 1 or letters.setdefault(answer, ending[0]) != ending[0]:
            raise _no_letter(question, answer, model)
    if letters is None:
        return [tuple(whole[answer][len(context) :]) for answer in question.answers]
    if len(set(letters.values())) < len(letters):
        raise _no_letter(question, "/".join(letters), model)
    return [(letters[answer],) for answer in question.answers]


def _check_option(question: AskedQuestion, number: int, model: str, *, joined: bool, empty: bool) -> None:
    if empty:
        raise ScoringError(
            f"question '{question.name}': choice {number} is empty for the tokenizer of model '{model}'",
            hint="give every choice a text with letters or digits",
        )
    if joined:
        raise ScoringError(
            f"question '{question.name}': for model '{model}' one token spans the end of the prompt and the start of choice {number}",
            hint="end the prompt so that the choice begins a new word, as the default prompt does with 'Answer:'",
        )


def not_finite(model: str, question: str) -> ScoringError:
    """Return the error that a model's probabilities at a question are no numbers."""
    return ScoringError(
        f"model '{model}' gives no finite probability at question '{question}'",
        hint="its weights are damaged, or its precision overflows: try `precision: float32`",
    )


def refuse_not_finite(model: str, asked: Sequence[AskedQuestion], values: Sequence[Sequence[float]]) -> None:
    """Raise ScoringError at the first question of which a log-probability is no number."""
    for question, logprobs in zip(asked, values, strict=True):
        if not all(map(isfinite, logprobs)):
            raise not_finite(model, question.name)


def _no_letter(question: AskedQuestion, letter: str, model: str) -> ScoringError:
    return ScoringError(
        f"question '{question.name}': for model '{model}' the answer letter '{letter}' is not one token of its own after the prompt",
        hint="score the texts of the choices instead: `scoring: {method: option}`, or end the prompt with 'Answer:'",
    )


def _rows(prefix: tuple[int, ...], context: list[int], endings: list[tuple[int, ...]]) -> EncodedQuestion:
    """Return the rows: prompt and answer without the answer's last id, which nothing follows; an answer without ids is to be generated."""
    while prefix and tuple(context[: len(prefix)]) == prefix:
        context = context[len(prefix) :]
    before = prefix + tuple(context)
    rows: dict[tuple[int, ...], int] = {}
    answers = []
    for ending in endings:
        row = rows.setdefault(before + ending[:-1], len(rows))
        answers.append(Answer(row, len(before) - 1, ending))
    return EncodedQuestion(tuple(rows), tuple(answers))


def _refuse_empty(work: BenchmarkWork, encoded: Sequence[EncodedQuestion], model: str) -> None:
    """An answer's first id is predicted from the id before it; without one it would be read from another prompt's."""
    for question, ids in zip(work.questions, encoded, strict=True):
        if any(answer.start < 0 for answer in ids.answers):
            raise ScoringError(
                f"question '{question.name}': the prompt is empty for the tokenizer of model '{model}'",
                hint="give the question a text, or the prompt words of its own, such as 'Answer:'",
            )


def _refuse_too_long(work: BenchmarkWork, encoded: Sequence[EncodedQuestion], vocabulary: Vocabulary, *, generated: int = 0) -> None:
    limit = vocabulary.context_length
    if limit is None:
        return
    lengths = {question.name: ids.longest for question, ids in zip(work.questions, encoded, strict=True)}
    long = [(name, tokens) for name, tokens in lengths.items() if tokens + generated > limit]
    if long:
        (name, tokens), others = long[0], f" (and {len(long) - 1} more)" if len(long) > 1 else ""
        size = f"{tokens:,} tokens" + (f", and its answer up to {generated:,}" if generated else "")
        raise ScoringError(
            f"question '{name}'{others} of benchmark '{work.benchmark}' has {size}; model '{vocabulary.model}' reads at most {limit:,}",
            hint="nothing is cut off silently: leave these questions out of the sample, or the model out of the study"
            + (", or allow shorter answers (max_tokens)" if generated else ""),
        )
