"""What does a report state, as far as published checklists ask for it?  Answered from what the files of the run hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalspec.artifacts.protocol import system_of
from evalspec.artifacts.study import Benchmark
from evalspec.reporting.dossier import Dossier

__all__ = ["Known", "State"]

State = Literal["given", "in part", "not given", "does not apply"]


@dataclass(frozen=True, slots=True)
class Known:
    """What a report states, as far as checklists ask for it."""

    dossier: Dossier
    shown: tuple[bool, ...]
    """Whether sample questions with their answers are shown, by benchmark."""

    def purpose(self, *names: str) -> State:
        """Return whether the study states these parts of its purpose."""
        return self.share(bool(getattr(self.dossier.study.purpose, name)) for name in names)

    def benchmarks(self, stated: Callable[[Benchmark], object]) -> State:
        """Return of how many benchmarks the study states something."""
        return self.share(bool(stated(benchmark)) for benchmark in self.dossier.study.benchmarks)

    def share(self, parts: Iterable[bool]) -> State:
        """Return `given` where all parts are, `not given` where none is."""
        present = list(parts)
        return "given" if all(present) else "in part" if any(present) else "not given"

    def analysed(self, *kinds: str) -> State:
        """Return whether an analysis of one of these kinds was made."""
        return "given" if any(finding.request.kind in kinds for finding in self.dossier.findings.findings) else "not given"

    @property
    def scores(self) -> State:
        """Whether a score of a single model is estimated."""
        return self.share([any(self._scored())])

    @property
    def accuracy(self) -> State:
        """Whether the score of a single model is estimated where it is a share of right answers."""
        declared = {benchmark.id for benchmark in self.dossier.study.benchmarks if benchmark.score is not None}
        return self.share([any(benchmark not in declared for benchmark in self._scored())])

    def _scored(self) -> list[str]:
        """Return the benchmark of every estimate of a single model's score."""
        estimates = self.dossier.findings.estimates()
        return [one.benchmark for one in estimates if len(one.models) == 1 and one.unit == "proportion" and one.value is not None]

    @property
    def uncertainty(self) -> State:
        """Whether estimates have intervals."""
        return self.share([any(one.low is not None and one.confidence_level is not None for one in self.dossier.findings.estimates())])

    @property
    def graders(self) -> State:
        """Who graded: nobody where answers are held against keys; not known where a recorded table gives scores without choices."""
        for entry in self.dossier.responses.benchmarks:
            if bool(np.any(~np.isnan(entry.scores) & (entry.choices < 0))):
                return "not given"
        return "does not apply"

    @property
    def human_baseline(self) -> State:
        """Of how many benchmarks the study says how well people do."""
        return self.benchmarks(lambda benchmark: benchmark.about.human_baseline)

    @property
    def people_asked(self) -> State:
        """Whether the study speaks of people; it does so in one free text, and whether that says who they were was not looked into."""
        return "not given" if self.human_baseline == "not given" else "in part"

    @property
    def beside_people(self) -> State:
        """What scores are held against where it is not people: guessing, where answers are right or wrong, or a model; never a full substitute."""
        if self.human_baseline == "given":
            return "does not apply"
        guessing = any(benchmark.score is None for benchmark in self.dossier.study.benchmarks)
        models = any("baseline" in finding.request.options for finding in self.dossier.findings.findings)
        return "in part" if guessing or models or any(one.check.baseline for one in self.dossier.verdict.checks) else "not given"

    @property
    def checks(self) -> State:
        """Whether the study sets limits that decide."""
        return self.share([bool(self.dossier.verdict.checks)])

    @property
    def models(self) -> State:
        """Whether weights are known by digest, of all models."""
        return self.share(system_of(model.identity).kind == "checkpoint" for model in self.dossier.protocol.models)

    @property
    def observed_here(self) -> State:
        """Whether this run, or an earlier signed one, saw how models were asked, of all models."""
        return self.share("recorded" not in {origin.route, origin.earlier_route} for origin in self.dossier.responses.origins)

    @property
    def other_rules(self) -> State:
        """Whether answers were counted by other rules; other prompts are never tried, and draws of the same answers are no other condition."""
        return "in part" if self.analysed("sensitivity") == "given" else "not given"
