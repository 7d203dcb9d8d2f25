"""What can be asked of a signed run beyond its signature, and which exit code do all answers together give?"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalspec.earlier_rows import compare_with_earlier
from evalspec.materials import Where
from evalspec.own_texts import check_own_texts
from evalspec.page_check import check_page
from evalspec.pdf_alone import derive
from evalspec.pdf_check import check_pdf
from evalspec.protocols import ProgressSink
from evalspec.recomputing import recompute
from evalspec.rescoring import Bench, Wanted, rescore
from evalspec.scoring.executors.devices import local_devices
from evalspec.settings import Settings
from evalspec.signing.verification import Verification


@dataclass(frozen=True, slots=True)
class Draw:
    """How many questions are to be scored again; by which seed, a random one unless it is given; where study and weights lie, if that is said."""

    questions: int
    seed: int | None = None
    study: Path | None = None
    models: Path | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question came to: its name among the results for machines, its state, the exit code that it asks for, and lines for people."""

    name: str
    state: str
    exit_code: int
    text: str


def check_recomputed(folder: Path, verification: Verification) -> tuple[Answer, ...]:
    """Hold the page against the files, make other texts again, and compute findings and verdict again from the responses."""
    page, texts, found = check_page(folder, verification), check_own_texts(folder, verification), recompute(folder, verification)
    return (
        Answer("page", page.state, page.exit_code, page.describe()),
        Answer("texts", texts.state, texts.exit_code, texts.describe()),
        Answer("recomputation", found.state, found.exit_code, found.describe()),
    )


def check_rendered(folder: Path, verification: Verification) -> Answer:
    """Render the page again and hold the PDF against it."""
    found = check_pdf(folder, verification)
    return Answer("pdf", found.state, found.exit_code, found.describe())


def check_derived(pdf: Path, verification: Verification) -> Answer:
    """Derive the verdict of a report.pdf that came alone from what is attached to it."""
    found = derive(pdf, verification)
    return Answer("derivation", found.state, found.exit_code, found.describe())


def check_earlier_rows(folder: Path, verification: Verification, earlier: Path) -> Answer:
    """Hold the answers that are taken from an earlier run against the answers in that run's directory."""
    found = compare_with_earlier(folder, verification, earlier)
    return Answer("earlier", found.state, found.exit_code, found.describe())


def check_rescored(folder: Path, verification: Verification, draw: Draw, settings: Settings, progress: ProgressSink) -> Answer:
    """Score some questions again from the weights."""
    seed = secrets.randbelow(2**32) if draw.seed is None else draw.seed
    wanted = Wanted(draw.questions, seed, Where(settings.hub_cache, draw.study, draw.models))
    bench = Bench(local_devices(settings.devices, settings.threads), settings.threads, progress)
    found = rescore(folder, verification, wanted, bench)
    return Answer("rescoring", found.state, found.exit_code, found.describe())


def combined(code: int, answers: Sequence[Answer]) -> int:
    """Return the exit code of `verify`: what differs comes first, then what could not be done; an answer in order leaves `code` as it is."""
    asked = {code, *(answer.exit_code for answer in answers)}
    return next((worst for worst in (1, 3) if worst in asked), code)
