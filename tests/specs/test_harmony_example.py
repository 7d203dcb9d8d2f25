"""The example of harmony springs its traps, says that it is synthetic, and gives the same numbers again."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalspec.cli import main

SPECS = Path(__file__).resolve().parents[2] / "specs"
FOLDER = SPECS / "harmony"


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
    place = tmp_path_factory.mktemp("harmony")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(place / "cache"), "--out", str(place / "run")]
    assert main(["run", str(SPECS / "harmony.yaml"), *options]) == 0
    return place / "run"


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    return {finding["request"]["id"]: finding["result"] for finding in findings["findings"]}


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    written = (folder / "report.html").read_text(encoding="utf-8")
    without = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", written, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


def row(results: dict[str, Any], model: str, benchmark: str, analysis: str = "subjects") -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in results[analysis]["rows"] if (one["model"], one["benchmark"]) == (model, benchmark))
    return found


def test_the_files_are_what_the_script_writes(script: ModuleType) -> None:
    for name in script.SIZES:
        assert (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8") == script.questions(name)
    assert (FOLDER / "responses.csv").read_text(encoding="utf-8") == script.responses()


def test_a_symmetric_split_has_full_harmony_and_is_found_by_what_stands_beside_it(results: dict[str, Any]) -> None:
    split = row(results, "split", "balanced")
    assert split["value"] == pytest.approx(1.0)
    assert split["gap"] == pytest.approx(0.4)
    assert split["homogeneity_adjusted"] < 1e-4


def test_one_failing_subject_hardly_shows_in_harmony_and_is_the_worst_subject(results: dict[str, Any]) -> None:
    failing = row(results, "one-fails", "balanced")
    assert failing["value"] == pytest.approx(0.94, abs=0.005)
    assert (failing["worst"], failing["gap"]) == ("music", pytest.approx(0.5))


def test_sizes_alone_pull_harmony_down(results: dict[str, Any]) -> None:
    even = row(results, "even", "lopsided")
    assert even["value"] == pytest.approx(even["size_harmony"]) == pytest.approx(0.70, abs=0.005)
    assert even["p_adjusted"] == 1.0
    assert row(results, "large-only", "lopsided")["value"] < 0.25


def test_groups_by_words_are_the_subjects(results: dict[str, Any]) -> None:
    assert results["by-words"]["partitions"][0]["k"] == 8
    assert row(results, "spread", "balanced", "by-words")["value"] == pytest.approx(row(results, "spread", "balanced")["value"])


def test_without_answer_distributions_there_is_no_partition_by_them(results: dict[str, Any], page: str) -> None:
    assert row(results, "even", "balanced", "by-answers")["undefined"] == "no answer distributions are recorded"
    assert "Not applicable to balanced: no answer distributions are recorded." in page


def test_the_first_page_says_what_each_accuracy_hides(page: str) -> None:
    found = page[page.index("What was found") : page.index("Main limits")]
    assert "one-fails 78.7 % 76.0 to 81.2 music 35 % of 100 ; 26 to 49 50 0.94 1.00" in found
    assert "even 75.0 % 71.9 to 77.9 astronomy 75 % of 480 ; 58 to 80 0 0.70 0.70" in found
    assert [found.count(f" {model} ") >= 2 for model in ("even", "split", "one-fails", "spread", "large-only")] == [True] * 5
    assert "worst group runs" not in found


def test_the_table_of_accuracies_says_it_in_every_row(page: str) -> None:
    found = page[page.index("Accuracy on balanced; in order of the estimate") :]
    assert "music, 35 % gap 50 points; harmony 0.94 , from sizes alone 1.00" in found
    assert "astronomy, 75.0 % gap 0.0 points; harmony 1.00 , from sizes alone 1.00" in found


def test_a_harmony_of_1_over_unequal_subjects_is_not_called_conclusive(page: str) -> None:
    assert "conclusive" not in page.replace("inconclusive", "").replace("Inconclusive", "")
    found = page[page.index("Harmony on balanced Model") :]
    assert re.search(r"split 1\.00 [^a-z]+to [^a-z]+the accuracies of the subjects differ", found)
    assert re.search(r"even 1\.00 [^a-z]+to [^a-z]+no difference between the subjects was found", found)


def test_the_report_says_that_responses_are_synthetic_and_draws_the_plane(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "The responses are synthetic" in text
    assert "variance of harmony over models" in text


def test_the_numbers_follow_again_from_the_signed_files_those_by_words_from_the_questions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder), "--trust", f"{folder}.trust.yaml", "--recompute"]) == 0
    assert "recomputed" in capsys.readouterr().out
