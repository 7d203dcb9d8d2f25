"""What always choosing the same letter would score is counted on the questions that were asked, as far as their keys are disclosed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from evalspec.artifacts.questions import QuestionBank, QuestionSet
from evalspec.artifacts.scores import Score
from evalspec.reporting.baselines import FrequentKey, frequent_keys
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier


def keyed(dossier: Dossier, benchmark: str, answers: tuple[int, ...]) -> Dossier:
    """The dossier with the keys of the first questions of a benchmark set, and no other questions in it."""
    entry = dossier.bank.benchmark(benchmark)
    questions = tuple(replace(question, answer=answer) for question, answer in zip(entry.questions, answers, strict=False))
    changed = QuestionSet(benchmark, questions, entry.source, entry.source_sha256)
    return replace(dossier, bank=QuestionBank(tuple(changed if one is entry else one for one in dossier.bank.sets)))


def section(dossier: Dossier) -> str:
    html = re.search(r'<section id="baselines".*?</section>', compose(dossier).html, re.DOTALL)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize(
    ("answers", "expected", "words"),
    [
        ((1, 1, 3, 0), FrequentKey(("B",), 2, 4), "always B: 2 of 4 questions right"),
        ((3, 0, 3, 0, 1), FrequentKey(("A", "D"), 2, 5), "always A or D: 2 of 5 questions right"),
    ],
)
def test_the_most_frequent_key_is_counted(answers: tuple[int, ...], expected: FrequentKey, words: str, dossier: Dossier) -> None:
    changed = keyed(dossier, "everyday", answers)
    assert frequent_keys(changed)["everyday"] == expected
    assert words in section(changed)
    assert "always A, B or C: 30 of 90 questions right" in section(changed)  # the keys of the other benchmark go round


@pytest.mark.parametrize("disclosure", ["ids", "none"])
def test_keys_that_are_not_disclosed_are_not_counted(disclosure: str, build_dossier: Callable[..., Dossier]) -> None:
    hidden = build_dossier(disclosure=disclosure)
    assert frequent_keys(hidden) == {}
    assert section(hidden).count("not computed: the keys are no part of this report") == 2
    assert "questions right" not in section(hidden)


def test_the_most_frequent_key_does_not_apply_to_declared_scores(dossier: Dossier) -> None:
    score = {"score": Score(unit="share of toxic sentences", polarity="lower_is_better")}
    benchmarks = tuple(entry.model_copy(update=score if entry.id == "triples" else {}) for entry in dossier.protocol.benchmarks)
    protocol = dossier.protocol.model_copy(update={"benchmarks": benchmarks})
    assert set(frequent_keys(replace(dossier, protocol=protocol))) == {"everyday"}
