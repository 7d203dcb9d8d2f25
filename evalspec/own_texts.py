"""Are the texts of a run those that the very sources which wrote it make again: the study of study.yaml, default prompts, VERIFY.md?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.recomputation import Divergence
from evalspec.artifacts.prompts import prompt_template
from evalspec.errors import StudyError
from evalspec.language.compile import study_in
from evalspec.page_check import other_edition
from evalspec.signing.certificates import fingerprint_of, read_certificate
from evalspec.signing.guide import write_guide
from evalspec.signing.verification import Verification
from evalspec.store import HOW_TO_VERIFY, PROTOCOL, REPORT_PDF, SIGNER, STUDY, STUDY_SOURCE, first_fault
from evalspec.verified_run import VerifiedRun


@dataclass(frozen=True, slots=True)
class OwnTexts:
    """What came of making these texts again."""

    state: Literal["same", "differs", "not_compared", "not_checked"]
    divergences: tuple[Divergence, ...] = ()
    why: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where something differs, 3 where nothing could be checked; another version's are 0."""
        return {"same": 0, "not_compared": 0, "differs": 1, "not_checked": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        if self.state == "differs":
            return "\n".join(map(str, self.divergences))
        return {
            "same": "study.json is what study.yaml asks for, and VERIFY.md is the guide that belongs to this key",
            "not_compared": f"study.yaml was not compiled again, and the text of VERIFY.md was not compared: {self.why}",
            "not_checked": f"study.yaml and VERIFY.md not checked: {self.why}",
        }[self.state]


def check_own_texts(folder: Path, verification: Verification) -> OwnTexts:
    """Make the texts of a run again where it was written by these sources, all from verified bytes."""
    if verification.outcome == "altered":
        return OwnTexts("not_checked", why="the content is not as it was signed")
    run = VerifiedRun(folder, verification)
    if why := other_edition(run):
        return OwnTexts("not_compared", why=why)
    try:
        found = (*_study(run), *_prompts(run), *_guide(run))
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return OwnTexts("not_checked", why=first_fault(error))
    return OwnTexts("differs" if found else "same", found)


def _study(run: VerifiedRun) -> Iterator[Divergence]:
    """Yield a fault where study.json, by which everything else was computed, is not what the author wrote."""
    try:
        asked = study_in(run.content(STUDY_SOURCE), catalogue())
    except StudyError as error:
        yield Divergence(STUDY_SOURCE, "", "as recorded", f"no study that compiles: {error.diagnostics[0].message}")
        return
    if asked != run.study:
        one, other = asked.model_dump(mode="json", by_alias=True), run.study.model_dump(mode="json", by_alias=True)
        yield from (Divergence(STUDY, f"/{key}", "as recorded", "other than study.yaml asks for") for key in one if one[key] != other[key])


def _prompts(run: VerifiedRun) -> Iterator[Divergence]:
    for benchmark in run.protocol.benchmarks:
        if benchmark.prompt != prompt_template(benchmark.scoring):
            yield Divergence(PROTOCOL, f"/benchmarks/{benchmark.id}/prompt", "as recorded", "other than study.yaml asks for")


def _guide(run: VerifiedRun) -> Iterator[Divergence]:
    """Yield a fault where the guide, whose commands people run, is missing or another than the one for this key."""
    if not run.has(HOW_TO_VERIFY):
        yield Divergence(HOW_TO_VERIFY, "", "absent", "in every report")
        return
    key = fingerprint_of(read_certificate(run.content(SIGNER)))
    if run.content(HOW_TO_VERIFY) != write_guide(key, with_pdf=run.has(REPORT_PDF)).encode():
        yield Divergence(HOW_TO_VERIFY, "", "as recorded", "another text than evalspec writes: do not run its commands")
