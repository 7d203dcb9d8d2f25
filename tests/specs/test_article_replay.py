"""The replay of the article prints the article's figures, and says that its responses are synthetic."""

from __future__ import annotations

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from evalspec.artifacts.columns import is_table, rows_of
from evalspec.cli import main

if TYPE_CHECKING:
    from tests.conftest import Elsewhere

SPECS = Path(__file__).resolve().parents[2] / "specs"
FOLDER = SPECS / "article"
PUBLISHED_DRAWS = 2000
PUBLISHED = {30: 0.45, 100: 0.60, 200: 0.70, 500: 0.82, 1000: 0.91, 2000: 0.96}
"""How often the article's first model stayed first, by number of redrawn questions, rounded to whole percent."""


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        import make_responses

        yield make_responses
    sys.modules.pop("make_responses", None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of the study, taken through the whole pipeline, without a PDF."""
    place = tmp_path_factory.mktemp("replay")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(place / "cache"), "--out", str(place / "run")]
    assert main(["run", str(SPECS / "article-replay.yaml"), *options]) == 0
    return place / "run"


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    return {
        finding["request"]["id"]: {name: rows_of(value) if is_table(value) else value for name, value in finding["result"].items()}
        for finding in findings["findings"]
    }


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The report's text, every run of white space as one space."""
    written = (folder / "report.html").read_text(encoding="utf-8")
    without = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", written, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


def test_the_recorded_files_are_what_the_script_makes(script: ModuleType) -> None:
    rows = script.response_rows()
    assert (len(rows), {len(row) for row in rows}) == (2000, {8})
    assert (FOLDER / "questions.jsonl").read_text(encoding="utf-8") == script.questions(rows)
    assert (FOLDER / "responses.csv").read_text(encoding="utf-8") == script.responses(rows)


def test_the_report_says_that_the_responses_are_synthetic(page: str) -> None:
    assert "replayed on synthetic responses" in page
    assert "The responses are synthetic." in page
    assert "no model gave them" in page


def test_the_report_prints_the_published_figures_of_the_two_leaders(page: str) -> None:
    for figure in ("71.8 %", "70.0 %", "0.072", "+1.85 points", "± 2.82", "± 1.96", "−0.1 to +3.8", "30 %", "about 4,600"):
        assert figure in page, figure


def test_the_report_prints_the_published_rules_of_thumb(page: str) -> None:
    for figure in ("3.3", "6.7", "1.1 points", "about 18,000"):
        assert figure in page, figure


def test_holm_leaves_the_three_published_pairs_open(results: dict[str, Any]) -> None:
    rows = results["neighbours"]["rows"]
    assert [(row["first"], row["second"]) for row in rows if not row["separated"]] == [
        ("model-1", "model-2"),
        ("model-4", "model-5"),
        ("model-5", "model-6"),
    ]
    assert [round(row["p_adjusted"], 3) for row in rows if not row["separated"]] == [0.216, 0.98, 0.98]


def test_redraws_agree_with_the_published_ones_within_monte_carlo_error(results: dict[str, Any]) -> None:
    recipe = {one["questions"]: one for one in results["recipe"]["rows"][0]["redraws"]}
    analysis = {one["questions"]: one["top_stays"] for one in results["redraws"]["rows"]}
    assert recipe.keys() == analysis.keys() == PUBLISHED.keys()
    for size, published in PUBLISHED.items():
        found = [(recipe[size][name], recipe[size][f"{name}_error"]) for name in ("share", "shared_ties")]
        for share, error in [*found, (analysis[size]["value"], analysis[size]["error"])]:
            published_error = (published * (1 - published) / PUBLISHED_DRAWS) ** 0.5
            # Half a percent is what the published figure was rounded by; three errors, for there are eighteen comparisons.
            assert abs(share - published) <= 0.005 + 3 * (published_error**2 + error**2) ** 0.5, size


def test_split_halves_show_the_published_agreement_and_lead(results: dict[str, Any]) -> None:
    exact = results["halves"]["rows"][0]["exact"]
    assert exact["same_winner"] == pytest.approx(0.9353, abs=5e-5)  # published: 94%
    assert exact["lead_selected"] == pytest.approx(0.018750, abs=5e-6)  # published: 1.88 points
    assert exact["lead_held_out"] == pytest.approx(0.015856, abs=5e-6)  # published, from one simulation: 1.62 points


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_other_numerical_libraries_find_the_same(folder: Path, threads: int, other_libraries: Path, elsewhere: Callable[..., Elsewhere]) -> None:
    found = elsewhere("verify", folder, "--trust", f"{folder}.trust.yaml", "--recompute", threads=threads)
    assert (set(found.folders.values()), found.blas_threads) == ({other_libraries}, {min(threads, len(os.sched_getaffinity(0)))})
    assert (found.code, "recomputed: findings and verdict follow" in found.out) == (0, True), found.out + found.err
