"""Which choice does a generated text name?  Declared rules, tried in order, by an engine that never goes back in a text (RE2)."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.extraction import ExtractionRule
from evalspec.artifacts.questions import LETTERS
from evalspec.artifacts.responses import Reason
from evalspec.artifacts.study import SampledScoring
from evalspec.pattern_check import groups_of

LONGEST_READ = 16_384
"""Of a longer text, so many characters are searched: the first ones for a first match and for refusals, the last ones for a last match."""

OPEN, CLOSE = "\x00", "\x01"
"""What matches are marked with; a text's own are taken out before."""

MARKS = "\"'`’‘“”.,;:!?()[]{}<>*_"
"""Punctuation that does not belong to an answer at either end of it; signs of numbers are not among it."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """What was read off N texts: `choices` (N,), -1 where no rule finds one, and `reasons` (N,) why (`Reason`)."""

    choices: NDArray[np.int16]
    reasons: NDArray[np.int8]


def read_answers(texts: Sequence[str], choices: Sequence[Sequence[str]], scoring: SampledScoring) -> ReadAnswers:
    """Return the choice that each text names, among the texts of its question's choices, by the first rule that finds one.

    A text without one is a refusal where a declared pattern says so, and unparseable where none does. Raises ValueError for a pattern that is none.
    """
    found = np.full(len(texts), -1, dtype=np.int16)
    clean = [text.replace(OPEN, "").replace(CLOSE, "") for text in texts]
    for rule in scoring.extract:
        left = np.flatnonzero(found < 0).tolist()
        for place, matched in zip(left, _matches([clean[place] for place in left], rule), strict=True):
            if matched is not None:
                found[place] = _choice(matched, choices[place], rule)
    refused = _any_matches(clean, scoring.refusals) & (found < 0)
    reasons = np.where(found >= 0, Reason.NONE, np.where(refused, Reason.REFUSED, Reason.UNPARSEABLE))
    return ReadAnswers(found, reasons.astype(np.int8))


def _matches(texts: Sequence[str], rule: ExtractionRule) -> list[str | None]:
    """Return what the rule's pattern finds in each text: its one group, or all of the match where it has none."""
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most studies read no texts
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    group = min(groups_of(rule.pattern), 1)
    first = rule.take == "first"
    read = [text[:LONGEST_READ] if first else text[-LONGEST_READ:] for text in texts]
    marked = pc.replace_substring_regex(
        pa.array(read, pa.string()), pattern=rule.pattern, replacement=f"{OPEN}\\{group}{CLOSE}", max_replacements=1 if first else None
    ).to_pylist()
    return [text[text.rindex(OPEN) + 1 : text.rindex(CLOSE)] if OPEN in text else None for text in marked]


def _choice(matched: str, choices: Sequence[str], rule: ExtractionRule) -> int:
    """Return which choice was found; -1 where it is none of them, or more than one."""
    names = LETTERS[: len(choices)] if rule.reads == "letter" else choices
    wanted = _normal(matched, rule)
    fitting = [place for place, name in enumerate(names) if wanted and _normal(name, rule) == wanted]
    return fitting[0] if len(fitting) == 1 else -1


def _normal(text: str, rule: ExtractionRule) -> str:
    if "spaces" in rule.normalise:
        text = " ".join(text.split())
    if "punctuation" in rule.normalise:
        text = text.strip(MARKS + (string.whitespace if "spaces" in rule.normalise else ""))
    return text.casefold() if "case" in rule.normalise else text


def _any_matches(texts: Sequence[str], patterns: Sequence[str]) -> NDArray[np.bool_]:
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    array, any_of = pa.array([text[:LONGEST_READ] for text in texts], pa.string()), np.zeros(len(texts), dtype=np.bool_)
    for pattern in patterns:
        any_of |= np.asarray(pc.match_substring_regex(array, pattern=pattern).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return any_of
