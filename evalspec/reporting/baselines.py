"""What would always choosing the same place score?  The most frequent key of each benchmark, counted on the questions that were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from evalspec.artifacts.questions import LETTERS
from evalspec.reporting.dossier import Dossier

__all__ = ["FrequentKey", "frequent_keys"]


@dataclass(frozen=True, slots=True)
class FrequentKey:
    """The letters that are right most often, all of which are right equally often: `right` times in `questions`."""

    letters: tuple[str, ...]
    right: int
    questions: int


def frequent_keys(dossier: Dossier) -> dict[str, FrequentKey]:
    """Return the most frequent key by benchmark, where keys are disclosed and a score is a right answer."""
    if dossier.bank is None:
        return {}
    known = {entry.id for entry in dossier.protocol.benchmarks if entry.disclosure == "full" and entry.score is None}
    return {
        entry.benchmark: _most_frequent(question.answer for question in entry.questions) for entry in dossier.bank.sets if entry.benchmark in known
    }


def _most_frequent(places: Iterable[int]) -> FrequentKey:
    counts = Counter(places)
    most = max(counts.values())
    letters = tuple(LETTERS[place] for place, count in sorted(counts.items()) if count == most)
    return FrequentKey(letters, most, counts.total())
