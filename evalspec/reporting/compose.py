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
from evalspec.protocols import AnyAnalysis
from evalspec.reporting.documents import Placed
from evalspec.reporting.dossier import Dossier, documents_of
from evalspec.reporting.figures import Chart
from evalspec.reporting.limits import limitations, main_limitations
from evalspec.reporting.samples import draw_samples
from evalspec.reporting.summary import check_views, overview, placed_estimates
from evalspec.reporting.templates import make_environment

__all__ = ["Composition", "compose", "fonts_folder"]

SECTIONS = (
    ("models", "Models"),
    ("data", "Data"),
    ("protocol", "How questions were asked"),
    ("power", "Plan and power"),
    ("results", "Results"),
    ("thresholds", "Thresholds"),
    ("responses", "Responses"),
    ("samples", "Samples"),
    ("limitations", "Limitations"),
    ("provenance", "Provenance"),
    ("signature", "Signature and how to check it"),
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
class ResultSection:
    """One analysis as the page shows it."""

    request: AnalysisRequest
    at: str
    body: Markup
    sources: tuple[str, ...]


def compose(dossier: Dossier) -> Composition:
    """Return the report as one self-contained HTML page, and the drawings in it."""
    environment = make_environment(documents_of(dossier))
    charts = {finding.request.id: _chart(finding, dossier) for finding in dossier.findings.findings}
    drawn = {name: chart for name, chart in charts.items() if chart is not None and not chart.empty}
    results = tuple(_result(environment, dossier, index, drawn.get(finding.request.id)) for index, finding in enumerate(dossier.findings.findings))
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
        choices=_choice_counts(dossier),
        limitations=limitations(dossier),
        main_limitations=main_limitations(dossier),
        font_faces=_font_faces(),
    )
    return Composition(html, {name: chart.draw("wide") for name, chart in drawn.items()})


def fonts_folder() -> Path:
    """Return the folder of the bundled fonts."""
    return Path(__file__).parent / "fonts"


def _result(environment: Environment, dossier: Dossier, index: int, chart: Chart | None) -> ResultSection:
    finding = dossier.findings.findings[index]
    analysis = dossier.catalogue[finding.request.kind]
    at = f"/findings/{index}"
    estimates: tuple[Placed[Estimate], ...] = tuple(placed for placed in placed_estimates(dossier) if placed.at.startswith(f"{at}/"))
    body = environment.get_template(analysis.template).render(
        request=finding.request, result=_typed_result(finding, analysis), at=at, estimates=estimates, figure=_figure(environment, chart)
    )
    return ResultSection(finding.request, at, Markup(body), analysis.sources)  # noqa: S704 - rendered by the escaping environment


def _typed_result(finding: Finding, analysis: AnyAnalysis) -> object:
    return analysis.result.model_validate_json(json.dumps(finding.result))


def _chart(finding: Finding, dossier: Dossier) -> Chart | None:
    analysis = dossier.catalogue[finding.request.kind]
    if analysis.plot is None:
        return None
    chart = Chart()
    analysis.plot(_typed_result(finding, analysis), chart)
    return chart


def _figure(environment: Environment, chart: Chart | None) -> Markup:
    if chart is None:
        return Markup("")
    wide, narrow = chart.draw("wide"), chart.draw("narrow")
    markup = environment.get_template("figure.html.j2").render(
        wide=Markup(wide.svg),  # noqa: S704 - drawn by figures, which escapes every text
        narrow=Markup(narrow.svg),  # noqa: S704 - the same
        caption=wide.drawn["caption"],
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
