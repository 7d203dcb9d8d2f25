"""Templates escape everything, print numbers with their source, and may come from a plug-in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import Template, TemplateNotFound, UndefinedError

from evalspec.reporting.documents import Documents
from evalspec.reporting.templates import make_environment, section_template

DOCUMENTS = Documents(
    {
        "findings.json": {
            "wide": {"value": 0.7018, "low": 0.66, "high": 0.74},
            "coarse": {"value": 0.5, "low": 0.2, "high": 0.8},
            "absent": {"value": None, "undefined": "no question of this row has a score"},
            "list": [1, 2, 3],
            "flag": True,
        },
        "verdict.json": {"limit": 0.7},
    }
)
ENVIRONMENT = make_environment(DOCUMENTS)


def rendered(source: str, **values: object) -> str:
    template: Template = ENVIRONMENT.from_string(source)
    return template.render(**values)


def test_a_number_stands_in_a_data_element_with_its_value_and_path() -> None:
    assert rendered('{{ number("/wide/value", "percent") }}') == '<data value="0.7018" data-path="/wide/value">70.2 %</data>'
    assert rendered('{{ number("verdict.json#/limit", "percent") }}') == '<data value="0.7" data-path="verdict.json#/limit">70.0 %</data>'


def test_a_number_is_rounded_as_far_as_its_interval_supports() -> None:
    assert ">50 %<" in rendered('{{ number("/coarse/value", "percent") }}')
    assert ">50.00 %<" in rendered('{{ number("/coarse/value", "percent", decimals=2) }}')


def test_an_undefined_number_prints_its_reason() -> None:
    assert rendered('{{ number("/absent/value", "percent") }}') == '<span class="absent">no question of this row has a score</span>'


def test_a_length_says_what_it_counts() -> None:
    assert rendered('{{ length("/list") }}') == '<data value="3" data-count-of="/list">3</data>'


@pytest.mark.parametrize("source", ['{{ number("/flag", "count") }}', '{{ number("/list", "count") }}', '{{ length("/flag") }}'])
def test_what_is_not_a_number_is_not_printed_as_one(source: str) -> None:
    with pytest.raises(TypeError, match="holds"):
        rendered(source)


def test_everything_is_escaped() -> None:
    assert (
        rendered('<p title="{{ x }}">{{ x }}</p>', x="<script>'\"&") == '<p title="&lt;script&gt;&#39;&#34;&amp;">&lt;script&gt;&#39;&#34;&amp;</p>'
    )


def test_an_undefined_name_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        rendered("{{ nothing }}")


def test_a_plug_in_brings_its_own_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "outside_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kappa.py").write_text("")
    (package / "kappa.html.j2").write_text('{% import "macros.html.j2" as show %}{{ show.not_stated() }}')
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("outside_plugin:kappa.html.j2", "outside_plugin.kappa:kappa.html.j2"):
        assert "not stated" in section_template(name).render()
    sys.modules.pop("outside_plugin", None)


@pytest.mark.parametrize("name", ["nothing.html.j2", "json:../secret.j2", "no_such_module:x.j2", ":x.j2", "../pyproject.toml", "evalspec:.hidden"])
def test_a_template_that_is_not_there_is_an_error(name: str) -> None:
    with pytest.raises(TemplateNotFound):
        section_template(name)
