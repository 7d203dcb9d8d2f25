"""Templates escape everything, print numbers with their source, and may come from a plug-in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment, Template, TemplateNotFound, UndefinedError

from evalspec.reporting.documents import Documents
from evalspec.reporting.templates import CompiledTemplates, make_environment, section_template

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


def test_a_template_that_changes_is_compiled_again_and_one_that_does_not_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "changing").mkdir()
    (tmp_path / "changing" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        code = []
        for text in ("one", "one", "two"):
            (tmp_path / "changing" / "section.html.j2").write_text(text + '{{ number("/wide/value", "percent") }}')
            template = section_template("changing:section.html.j2")
            with pytest.raises(KeyError):  # the environment is this template's own, without the documents of another
                template.render()
            code.append(template.root_render_func.__code__)
            shown = make_environment(DOCUMENTS).get_template("changing:section.html.j2").render()
            assert shown.startswith(text + "<data value=")
    finally:
        sys.modules.pop("changing", None)
    assert code[0] is code[1]
    assert code[2] is not code[1]


@pytest.mark.parametrize("name", ["nothing.html.j2", "json:../secret.j2", "no_such_module:x.j2", ":x.j2", "../pyproject.toml", "evalspec:.hidden"])
def test_a_template_that_is_not_there_is_an_error(name: str) -> None:
    with pytest.raises(TemplateNotFound):
        section_template(name)


def test_compiled_templates_are_kept_for_the_next_process_and_a_broken_one_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    loader = DictLoader({"one.j2": "one {{ name }}"})

    def template() -> Template:
        return Environment(loader=loader, bytecode_cache=CompiledTemplates(tmp_path / "kept"), autoescape=True).get_template("one.j2")

    assert template().render(name="&") == "one &amp;"
    (kept,) = (tmp_path / "kept").iterdir()
    compiled = kept.stat()
    assert template().render(name="&") == "one &amp;"
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (compiled.st_ino, compiled.st_mtime_ns)
    for content in (b"", kept.read_bytes()[:40], b"rubbish"):
        kept.write_bytes(content)
        assert template().render(name="&") == "one &amp;"
    loader.mapping = {"one.j2": "two"}
    assert template().render() == "two"


def test_where_nothing_can_be_kept_templates_are_compiled_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "file").write_text("")
    environment = Environment(loader=DictLoader({"one.j2": "one"}), bytecode_cache=CompiledTemplates(tmp_path / "file" / "kept"), autoescape=True)
    assert environment.get_template("one.j2").render() == "one"
