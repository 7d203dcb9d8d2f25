"""The page says everything, each number with its source, in a form that anybody can read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from evalspec.artifacts.study import About
from evalspec.reporting.compose import SECTIONS, compose
from evalspec.reporting.documents import Documents
from evalspec.reporting.dossier import Dossier, documents_of

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("decision", *(name for name, _ in SECTIONS if name != "preregistration"))
VOID = {"meta", "br", "link", "img", "hr", "input", "circle", "line"}

# Words that would claim more than a report can know about itself.
FORBIDDEN = re.compile(
    r"complian|conformant|certified|\bsafe\b|unbiased|tamper-proof|non-repudiation|no difference|bit for bit|uncontaminated|\bverified\b"
    r"|qualified electronic signature|\bproves?\b|\bproven\b|guarantee|\brank",
    re.IGNORECASE,
)


class Page(HTMLParser):
    """Reads a page into its elements, its text outside styles and drawings, and its numbers."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.numbers: list[tuple[dict[str, str | None], str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "data" in self.open:
            self.numbers.append((self.elements[-1][1], data))
        if not {"style", "svg", "title"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def section(html: str, name: str) -> str:
    """Cut a section out; the last digits of real numbers, and so the digests over them, differ between processors."""
    found = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)
    assert found, f"the page has no section {name!r}"
    text = re.sub(r"\n\s*\n+", "\n", found[0]) + "\n"
    text = re.sub(r'<data value="(-?\d+\.\d+(?:e-?\d+)?)"', lambda number: f'<data value="{float(number[1]):.6g}"', text)
    return re.sub(r"\b[0-9a-f]{64}\b", "(digest)", text) if name == "provenance" else text


@pytest.mark.parametrize("name", NAMES)
def test_a_section_is_as_recorded(html: str, name: str) -> None:
    recorded = GOLDEN / f"{name}.html"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        recorded.write_text(section(html, name), encoding="utf-8")
    assert section(html, name) == recorded.read_text(encoding="utf-8"), "run with EVALSPEC_UPDATE_GOLDEN=1 and read the difference"


def test_every_number_is_the_one_that_stands_at_its_path(dossier: Dossier, page: Page) -> None:
    files = Documents(json.loads(json.dumps(documents_of(dossier).contents)))
    assert len(page.numbers) > 300
    for attributes, _ in page.numbers:
        value = json.loads(attributes["value"] or "")
        if "data-path" in attributes:
            assert files.find(attributes["data-path"] or "").value == value
        else:
            counted = files.find(attributes["data-count-of"] or "").value
            assert isinstance(counted, list | dict)
            assert len(counted) == value


def test_every_estimate_is_printed(dossier: Dossier, page: Page) -> None:
    printed = {json.loads(attributes["value"] or "") for attributes, _ in page.numbers}
    for estimate in dossier.findings.estimates():
        assert {estimate.value, estimate.low, estimate.high} - {None} <= printed


def test_no_percentage_is_printed_without_its_source(html: str) -> None:
    outside = re.sub(r"<data .*?</data>|<svg .*?</svg>|<style.*?</style>|<[^>]*>", "", html, flags=re.DOTALL)
    assert not re.findall(r"\d ?%|\d points|p [=<] ?\d", outside)


def test_the_page_is_well_formed_and_holds_no_script_and_nothing_from_outside(html: str, page: Page) -> None:
    assert page.open == []
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:" in html
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "iframe", "object", "link", "img", "form"})
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith("#"), f"<{tag} {name}> leads outside"
    assert not re.search(r"url\((?!data:font/woff2)", html)


def test_the_page_can_be_used_without_sight_and_without_a_mouse(page: Page) -> None:
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    assert all(attributes.get("scope") for tag, attributes in page.elements if tag == "th")
    assert all(
        attributes.get("aria-label") and attributes.get("tabindex") == "0" for _, attributes in page.elements if attributes.get("class") == "scroll"
    )
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for _, attributes in page.elements:
        assert (attributes.get("href") or "#decision")[1:] in identifiers
        assert (attributes.get("aria-labelledby") or "decision") in identifiers
    assert page.elements[tags.index("a")][1] == {"class": "skip", "href": "#decision"}


def test_the_decision_comes_first_and_says_its_outcome_in_a_word(page: Page) -> None:
    words = page.words
    assert words.index("Failed") < words.index("What was found") < words.index("Contents") < words.index("Provenance")


@pytest.mark.parametrize("kind", ["stated", "bare"])
def test_a_report_claims_nothing_that_it_cannot_know(kind: str, dossier: Dossier, bare_dossier: Dossier) -> None:
    claims = FORBIDDEN.findall(Page(compose(dossier if kind == "stated" else bare_dossier).html).words)
    assert claims == []


def test_what_the_study_leaves_out_is_called_not_stated(bare_dossier: Dossier) -> None:
    words = Page(compose(bare_dossier).html).words
    assert words.count("not stated") > 15
    assert "No thresholds set" in words
    assert "this report is not signed" in words
    assert "exploratory" in words


def test_every_section_stands_on_every_page_and_in_its_contents(page: Page, bare_dossier: Dossier) -> None:
    for read in (page, Page(compose(bare_dossier).html)):
        ids = [attributes.get("id") for tag, attributes in read.elements if tag == "section"]
        links = [attributes.get("href") for tag, attributes in read.elements if tag == "a"]
        assert ids == ["decision", *(name for name, _ in SECTIONS)]
        assert all(f"#{name}" in links for name in ids)


STATED = "stated by whoever wrote this"


def test_what_the_author_states_stands_in_its_section(dossier: Dossier) -> None:
    study = dossier.study
    about = About(**{name: f"{STATED}: {name}" for name in About.model_fields})
    purpose = study.purpose.model_copy(update={name: f"{STATED}: {name}" for name in ("hypothesis", "population", "threat_model", "risks")})
    options = study.report.model_copy(update={"status": "draft", "supersedes": ("an-earlier-run",), "changes": (f"{STATED}: change",)})
    told = study.model_copy(
        update={
            "purpose": purpose,
            "report": options,
            "benchmarks": tuple(one.model_copy(update={"about": about}) for one in study.benchmarks),
            "models": tuple(one.model_copy(update={"safeguards": f"{STATED}: safeguards"}) for one in study.models),
        }
    )
    html = compose(replace(dossier, study=told)).html
    where = {
        "purpose": ("hypothesis", "population", "threat_model"), "power": ("hypothesis",), "models": ("safeguards",),
        "baselines": ("human_baseline",),
        "data": ("language", "key_quality", "contamination"), "risk": ("risks", "sensitive_content", "personal_data"), "changes": ("change",),
    }  # fmt: skip
    for name, stated in where.items():
        assert [one for one in stated if f"{STATED}: {one}" not in section(html, name)] == []
    assert "an-earlier-run" in section(html, "changes")
    assert "contamination: as the author states it" in section(html, "limitations")
    assert "draft · run" in Page(html).words


def test_a_throw_away_key_is_called_one(page: Page) -> None:
    assert "Throw-away key" in page.words
    assert "Signed does not mean true" in page.words


def test_batches_that_were_computed_in_parts_are_counted_with_the_reason(dossier: Dossier) -> None:
    job, *others = dossier.ledger.jobs
    ledger = dossier.ledger.model_copy(update={"jobs": (job.model_copy(update={"in_parts": 3}), *others)})
    words = re.sub(r" (?=[:,])", "", Page(compose(replace(dossier, ledger=ledger)).html).words)
    assert re.search(rf"Memory ran out while {job.model} was scored on {job.benchmark}: ?3 of its batches were computed in parts", words)


def test_rows_that_were_laid_end_to_end_are_told_with_what_kept_them_apart(dossier: Dossier, page: Page) -> None:
    job, *others = dossier.ledger.jobs
    ledger = dossier.ledger.model_copy(update={"jobs": (job.model_copy(update={"packed": 3, "packing": "a kernel"}), *others)})
    words = re.sub(r" (?=[:,])", "", Page(compose(replace(dossier, ledger=ledger)).html).words)
    told = rf"The rows of 3 batches of {job.model} on {job.benchmark} were laid end to end, without padding, and kept apart by a kernel"
    assert re.search(told, words)
    assert "laid end to end, without padding" not in page.words


def test_models_are_not_numbered_by_their_score(dossier: Dossier, html: str) -> None:
    words = Page(re.sub(r'<p class="answers">', "<p>answers: ", html)).words
    for model in dossier.protocol.models:
        assert not re.search(rf"(#|No\. ?|\b)[1-4]\.? {model.id}", words)


@pytest.mark.parametrize("disclosure", ["ids", "none"])
def test_an_undisclosed_text_is_nowhere(disclosure: str, build_dossier: Callable[..., Dossier]) -> None:
    canary = "CANARY-STEM-7f3a"
    composed = compose(build_dossier(disclosure=disclosure, stems={"*": canary}))
    assert canary not in composed.html
    assert "choice A of" not in composed.html
    assert ("everyday-191" in composed.html) == (disclosure == "ids")


HOSTILE = "\u202eevil\u2066 <script>alert(1)</script> {{ 7*7 }} <img src=x onerror=y> \u200b中文 😀 Δ̈ " + "x" * 10_000


def test_hostile_text_is_harmless(build_dossier: Callable[..., Dossier]) -> None:
    html = compose(build_dossier(title=("<script>\u202e" + "W" * 280), stems={"*": HOSTILE})).html
    page = Page(html)
    assert page.open == []
    assert "script" not in {tag for tag, _ in page.elements}
    assert "‹U+202E›evil‹U+2066› <script>alert(1)</script> {{ 7*7 }}" in page.words
    assert not re.search("[\u202e\u2066\u200b]", html)
    assert "more characters, in questions.parquet" in page.words


def test_the_page_is_small(html: str) -> None:
    assert len(html.encode()) < 1_500_000


def test_two_processes_compose_the_same_bytes(html: str) -> None:
    script = (
        "import sys, importlib.util as u; s = u.spec_from_file_location('made', sys.argv[1]); m = u.module_from_spec(s); sys.modules['made'] = m;"
        "s.loader.exec_module(m); from evalspec.reporting.compose import compose; sys.stdout.buffer.write(compose(m.build()).html.encode())"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).with_name("conftest.py"))]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": "42", "PYTHONPATH": root})
    assert done.stdout.decode() == html
