"""No sentence that a report can print claims more than a run can show: in the sources of its words, and on rendered pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.pages import shown_numbers

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "reports" / "example" / "report.html"

CLAIMS = {
    "that it follows a law or standard": r"\bcomplian|\bconforms?\b|\bconformant|\bcertif(y|ies|ied)\b|\baccredited\b",
    "that a model is safe": r"(?<!\|)\bsafe(ly)?\b|\bharmless\b",
    "that nothing is biased": r"\bunbiased\b|\bfree (of|from) bias\b",
    "that something is proved": r"\bproves?\b|\bproven\b|\bguarantee",
    "a legal kind of signature": r"qualified (electronic )?signature|non-?repudiation|legally binding",
    "accuracy beyond the questions": r"generali[sz]ed accuracy",
    "that models are equal": r"no (true |significant )?difference\b|(?<!hypothesis that they )\bare equally (good|accurate)\b",
    "sameness of every bit": r"bit[- ](for|by)[- ]bit|bitwise",
    "that nothing was seen in training": r"\buncontaminated\b|free (of|from) contamination|no contamination",
    "that nothing can be altered": r"tamper-?proof|cannot be (altered|tampered)|unforgeable",
    "that its file was certified": r"PDF/A[- ](certified|compliant)",
    "that it was verified": r"(?<!cannot be )(?<!not )\bverified\b",
    "an order that was not tested": r"\branked (first|second|best)\b|\bthe best model\b|\bstate of the art\b",
}

# Sentences that deny a claim, state a hypothesis or a condition, or name something else.
MEANT_OTHERWISE = (
    "not proven",
    "does not mean that there is no difference",
    "were there no difference, in points",
    "no difference to plan for",
    "no difference between the {{ group_word }}s was found",
    "no true difference passes",
    "s of one size are equally accurate",
    "not probabilities that it is the best model",
    "the best model, the winner and the first one",
)
AXES = "no difference"
"""What stands at the zero of an axis of differences."""

PRINTED = ("analyses", "artifacts", "gating.py", "planning", "reporting", "statistics")


def words_of_templates() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "templates").rglob("*.j2")):
        yield path.name, re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def words_of_code() -> Iterator[tuple[str, str]]:
    """The texts in our sources that are no documentation."""
    for name in PRINTED:
        place = ROOT / "evalspec" / name
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                    yield f"{path.name}:{node.lineno}", node.value


def words_of_page(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))


def found(pattern: str, words: str) -> list[str]:
    return [words[max(0, match.start() - 40) : match.end() + 40] for match in re.finditer(pattern, words, re.IGNORECASE)]


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_source_of_words_claims(claim: str) -> None:
    said = [f"{place}: {text}" for place, words in (*words_of_templates(), *words_of_code()) for text in found(CLAIMS[claim], words)]
    assert [one for one in said if not one.endswith(f": {AXES}") and not any(meant in one for meant in MEANT_OTHERWISE)] == []


@pytest.mark.parametrize("kind", ["stated", "bare", "ids", "none", "example"])
def test_no_page_claims(kind: str, dossier: Dossier, bare_dossier: Dossier, build_dossier: Callable[..., Dossier]) -> None:
    if kind == "example":
        if not EXAMPLE.exists():
            pytest.skip("no example report stands in this copy")
        html = EXAMPLE.read_text(encoding="utf-8")
    else:
        html = compose({"stated": dossier, "bare": bare_dossier}.get(kind) or build_dossier(disclosure=kind)).html
    words = words_of_page(re.sub(rf">{AXES}</text>", ">", html))
    for meant in MEANT_OTHERWISE:
        words = words.replace(meant, "")
    assert shown_numbers(html)
    assert {claim: found(pattern, words) for claim, pattern in CLAIMS.items() if found(pattern, words)} == {}


@pytest.mark.parametrize(
    "sentence",
    [
        "This report is compliant with the AI Act.", "The model is safe.", "The estimate is unbiased.", "It proves that the run took place.",
        "This is a qualified electronic signature.", "Generalised accuracy is higher.", "There is no difference between the models.",
        "The run is reproducible bit for bit.", "The questions are uncontaminated.", "The files are tamper-proof.", "PDF/A certified",
        "It gives non-repudiation.", "All numbers were verified.",
    ],
)  # fmt: skip
def test_each_claim_would_be_found(sentence: str) -> None:
    assert any(found(pattern, sentence) for pattern in CLAIMS.values())
