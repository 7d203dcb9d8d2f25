"""How does a run become one page of HTML?  Collects what each section needs and renders the templates; no number is made here."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from evalspec.artifacts.findings import Estimate, Finding
from evalspec.artifacts.report import Figure
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.tolerance import FLOAT32, LEAST, MOST
from evalspec.protocols import AnyAnalysis
from evalspec.reporting.baselines import frequent_keys
from evalspec.reporting.by_group import Beside
from evalspec.reporting.checklist import BASIS, checklist
from evalspec.reporting.documents import place_all
from evalspec.reporting.dossier import Dossier, documents_of
from evalspec.reporting.figures import Chart
from evalspec.reporting.limits import limitations, main_limitations
from evalspec.reporting.samples import draw_samples
from evalspec.reporting.summary import check_views, overview, placed_estimates
from evalspec.reporting.templates import make_environment

__all__ = ["Composition", "compose", "fonts_folder"]

SECTIONS = (
    ("purpose", "Purpose and persons"),
    ("models", "Models"),
    ("data", "Data"),
    ("protocol", "How questions were asked"),
    ("scoring", "How answers were scored"),
    ("power", "Plan and power"),
    ("preregistration", "Preregistration"),
    ("results", "Results"),
    ("thresholds", "Thresholds"),
    ("baselines", "Baselines"),
    ("robustness", "Robustness"),
    ("responses", "Responses"),
    ("samples", "Samples"),
    ("limitations", "Limitations"),
    ("risk", "Risk and ethics"),
    ("reproduction", "Reproduction"),
    ("provenance", "Provenance"),
    ("signature", "Signature and how to check it"),
    ("checklist", "Checklists"),
    ("changes", "Changes"),
    ("glossary", "Glossary"),
)

WEB_FONTS = (
    ("Source Sans 3", 400, "SourceSans3-Regular.ttf.woff2"),
    ("Source Sans 3", 600, "SourceSans3-Semibold.ttf.woff2"),
    ("IBM Plex Mono", 400, "IBMPlexMono-Regular.woff2"),
)


class Composition(NamedTuple):
    """The page and its drawings by analysis id."""

    html: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class TypedResult:
    """One finding with its analysis, and its result as that analysis knows it."""

    request: AnalysisRequest
    analysis: AnyAnalysis
    estimates: tuple[Estimate, ...]
    result: object


@dataclass(frozen=True, slots=True)
class ResultSection:
    """One analysis as the page shows it."""

    request: AnalysisRequest
    at: str
    body: Markup
    sources: tuple[str, ...]


def compose(dossier: Dossier) -> Composition:
    """Return the report as one self-contained HTML page, and the drawings in it."""
    environment = make_environment(documents_of(dossier), Beside.of(placed_estimates(dossier), dossier.responses))
    typed = [_typed_result(finding, dossier) for finding in dossier.findings.findings]
    charts = {found.request.id: _charts(found) for found in typed}
    results = tuple(_result(environment, found, index, charts[found.request.id]) for index, found in enumerate(typed))
    html = environment.get_template("report.html.j2").render(
        dossier=dossier,
        study=dossier.study,
        protocol=dossier.protocol,
        schedule=dossier.schedule,
        findings=dossier.findings,
        verdict=dossier.verdict,
        ledger=dossier.ledger,
        responses=dossier.responses,
        finished=_utc(dossier.ledger.finished),
        sections=SECTIONS,
        checks=check_views(dossier),
        overview=overview(dossier),
        results=results,
        samples=draw_samples(dossier),
        checklist=checklist(dossier),
        checklist_basis=BASIS,
        choices=_choice_counts(dossier),
        frequent_keys=frequent_keys(dossier),
        limitations=limitations(dossier),
        main_limitations=main_limitations(dossier),
        allowed={"wide": f"{FLOAT32:g}", "least": f"{LEAST:g}", "most": f"{MOST:g}"},
        font_faces=_font_faces(),
    )
    return Composition(html, {_name(name, number): chart.draw("wide") for name, found in charts.items() for number, chart in found.items()})


def fonts_folder() -> Path:
    """Return the folder of the bundled fonts."""
    return Path(__file__).parent / "fonts"


def _result(environment: Environment, found: TypedResult, index: int, charts: Mapping[int, Chart]) -> ResultSection:
    analysis, at = found.analysis, f"/findings/{index}"
    figure, *further = (_figure(environment, charts.get(number)) for number in range(1 + len(analysis.further_plots)))
    body = environment.get_template(analysis.template).render(
        request=found.request,
        result=found.result,
        at=at,
        estimates=place_all(found.estimates, f"{at}/estimates"),
        figure=figure,
        further_figures=further,
    )
    cited = analysis.sources_used(found.result) if analysis.sources_used else analysis.sources
    return ResultSection(found.request, at, Markup(body), cited)  # noqa: S704 - rendered by the escaping environment


def _typed_result(finding: Finding, dossier: Dossier) -> TypedResult:
    analysis = dossier.catalogue[finding.request.kind]
    return TypedResult(finding.request, analysis, finding.estimates, analysis.result.model_validate_json(json.dumps(finding.result)))


def _charts(found: TypedResult) -> dict[int, Chart]:
    """Return the charts of an analysis that show something, by their number: its plot is 0, further ones follow."""
    analysis = found.analysis
    drawn: dict[int, Chart] = {}
    for number, plot in enumerate((analysis.plot, *analysis.further_plots)):
        chart = Chart()
        if plot is not None:
            plot(found.result, chart)
        if not chart.empty:
            drawn[number] = chart
    return drawn


def _name(analysis: str, number: int) -> str:
    return analysis if number == 0 else f"{analysis}-{number + 1}"


def _figure(environment: Environment, chart: Chart | None) -> Markup:
    if chart is None:
        return Markup("")
    narrow = chart.draw("narrow")
    markup = environment.get_template("figure.html.j2").render(
        wide=[Markup(part.draw("wide").svg) for part in chart.parts()],  # noqa: S704 - drawn by figures, which escapes every text
        narrow=Markup(narrow.svg),  # noqa: S704 - the same
        caption=narrow.drawn["caption"],
    )
    return Markup(markup)  # noqa: S704 - rendered by the escaping environment


def _choice_counts(dossier: Dossier) -> dict[str, tuple[int, ...]]:
    """Return, per benchmark, the different numbers of choices that its questions have, where they are known."""
    counts = {}
    for entry in dossier.responses.benchmarks:
        if entry.logprobs is not None:
            numbers = np.isfinite(entry.logprobs).sum(axis=2)
            counts[entry.benchmark] = tuple(sorted({int(number) for number in numbers.ravel()} - {0}))
    for known in dossier.bank.sets if dossier.bank is not None else ():
        counts[known.benchmark] = tuple(sorted({len(question.choices) for question in known.questions}))
    return counts


def _utc(moment: str) -> datetime:
    parsed = datetime.fromisoformat(moment)
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)


@lru_cache
def _font_faces() -> Markup:
    """Return the CSS that embeds the bundled fonts."""
    rules = []
    for family, weight, name in WEB_FONTS:
        content = base64.b64encode((fonts_folder() / name).read_bytes()).decode()
        rules.append(
            f"@font-face{{font-family:'{family}';font-weight:{weight};font-display:swap;src:url(data:font/woff2;base64,{content}) format('woff2')}}"
        )
    return Markup("\n".join(rules))  # noqa: S704 - our own files
