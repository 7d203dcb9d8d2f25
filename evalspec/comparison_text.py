"""How is the comparison of two runs told on a terminal?"""

from __future__ import annotations

import json
from collections.abc import Iterator

from evalspec.artifacts.base import JsonValue
from evalspec.comparison import BenchmarkChange, ModelComparison, RunComparison

LONGEST = 60
SPOKEN = {
    "source": "the name of its source",
    "source_sha256": "its source",
    "source_size": "the size of its source",
    "planned_size": "the size planned for",
    "looked_at": "how many other models chose its questions",
    "questions.subject": "subjects of common questions",
    "questions.cluster": "clusters of common questions",
    "questions.flags": "flags of common questions",
    "questions.weight": "weights of common questions",
    "weights_sha256": "weights",
    "tokenizer_sha256": "tokenizer",
    "preambles": "worked examples",
    "attention": "the attention that computed",
}


def describe(comparison: RunComparison) -> str:
    """Return the comparison in plain lines: what was changed, then what it changed."""
    lines = [f"first:  {comparison.first}", f"second: {comparison.second}", *_signers(comparison)]
    for title, part in (
        ("study", _study(comparison)),
        ("questions", _questions(comparison)),
        ("models", _models(comparison)),
        ("the same models on the same questions (second - first)", _comparisons(comparison)),
        ("checks", _checks(comparison)),
    ):
        lines += ["", f"{title}:", *(f"  {line}" for line in part)]
    return "\n".join(lines)


def _signers(comparison: RunComparison) -> Iterator[str]:
    if comparison.first_signer == comparison.second_signer:
        yield f"both are intact and signed by {comparison.first_signer}; `evalspec verify --trust` says whether that is whom you trust"
    else:
        yield f"both are intact; the first is signed by {comparison.first_signer}, the second by {comparison.second_signer}"


def _study(comparison: RunComparison) -> Iterator[str]:
    if not comparison.study:
        yield "no difference in title, seed, analyses, thresholds and the rest, nor in models and benchmarks that both have"
    for change in comparison.study:
        yield f"{change.path}: {_short(change.first)} -> {_short(change.second)}"


def _questions(comparison: RunComparison) -> Iterator[str]:
    for change in comparison.benchmarks:
        if change.where != "both":
            yield f"{change.benchmark}: only in the {change.where.removeprefix('only_')} run"
        else:
            asked = f"{change.asked_first:,} -> {change.asked_second:,} asked"
            yield f"{change.benchmark}: {change.common:,} questions in common ({asked}){_differs(change)}"


def _differs(change: BenchmarkChange) -> str:
    return f"; differs in {_listed(change.differs)}" if change.differs else ""


def _models(comparison: RunComparison) -> Iterator[str]:
    for change in comparison.models:
        if change.where != "both":
            yield f"{change.model}: only in the {change.where.removeprefix('only_')} run"
        else:
            yield f"{change.model}: {f'differs in {_listed(change.differs)}' if change.differs else 'the same'}"


def _comparisons(comparison: RunComparison) -> Iterator[str]:
    if not comparison.comparisons:
        yield "none: no model of one id answered the same questions in both runs"
    for one in comparison.comparisons:
        yield f"{one.model} on {one.row.benchmark}: {_numbers(one)}"
    if any(one.p_adjusted is not None for one in comparison.comparisons):
        yield f"p is adjusted by Holm over these {len(comparison.comparisons)}; intervals are 95 % for each comparison on its own"


def _numbers(one: ModelComparison) -> str:
    row = one.row
    if one.same_answers and one.accuracy_first is not None:
        return f"the same answers to all {row.n:,} questions ({_percent(one.accuracy_first)} right)"
    if row.difference is None or one.accuracy_first is None or one.accuracy_second is None:
        return row.undefined or "not defined"
    interval = f" [{100 * row.low:+.1f}, {100 * row.high:+.1f}]" if row.low is not None and row.high is not None else ""
    p = f", p {one.p_adjusted:.3g}" if one.p_adjusted is not None else ""
    return f"{_percent(one.accuracy_first)} -> {_percent(one.accuracy_second)}, {100 * row.difference:+.1f} points{interval}{p}, n {row.n:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _checks(comparison: RunComparison) -> Iterator[str]:
    if not comparison.checks:
        yield "none in either run"
    for change in comparison.checks:
        same = change.first == change.second
        yield f"{change.check}: " + (f"{change.first} in both" if same else f"{change.first or 'not there'} -> {change.second or 'not there'}")
    if comparison.checks:
        yield f"overall: {comparison.overall_first or 'no thresholds'} -> {comparison.overall_second or 'no thresholds'}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(SPOKEN.get(name, name) for name in names)


def _short(value: JsonValue) -> str:
    text = "not there" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
