from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from evalspec.artifacts.base import Artifact
from evalspec.errors import StudyError
from evalspec.language.compile import compile_text
from evalspec.language.grammar import build_grammar
from evalspec.language.paths import Surroundings
from evalspec.language.vocabulary import DESCRIPTIONS, EXAMPLES
from evalspec.protocols import Catalogue


def definitions(catalogue: Catalogue) -> dict[str, Any]:
    schema: dict[str, Any] = build_grammar(catalogue).schema()
    return {"Study": schema, **schema["$defs"]}


def keys(catalogue: Catalogue) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, definition in definitions(catalogue).items():
        for key, schema in definition["properties"].items():
            yield name, key, schema


def test_the_schema_is_of_the_declared_draft_and_closed_everywhere(catalogue: Catalogue) -> None:
    schema = build_grammar(catalogue).schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert all(definition["additionalProperties"] is False for definition in definitions(catalogue).values())


def test_every_reference_of_the_schema_leads_somewhere(catalogue: Catalogue) -> None:
    schema = build_grammar(catalogue).schema()
    named = set(re.findall(r"#/\$defs/(\w+)", json.dumps(schema)))
    assert named == set(definitions(catalogue)) - {"Study"}


def test_editors_are_told_what_every_key_means(catalogue: Catalogue) -> None:
    assert [f"{name}.{key}" for name, key, schema in keys(catalogue) if not schema.get("description")] == []


def test_the_vocabulary_explains_nothing_that_is_not_in_the_grammar(catalogue: Catalogue) -> None:
    known = {f"{name}.{key}" for name, key, _ in keys(catalogue)}
    known |= {f"Analysis.{key}" for key in ("id", "kind", "benchmarks", "exploratory")}
    assert {*DESCRIPTIONS, *EXAMPLES} - known == set()


def test_a_key_that_the_file_cannot_hold_is_not_in_the_schema(catalogue: Catalogue) -> None:
    assert "source_sha256" not in definitions(catalogue)["Study"]["properties"]


def test_an_option_may_not_take_the_name_of_a_key_that_every_analysis_has(catalogue: Catalogue) -> None:
    class Options(Artifact):
        kind: Literal["taken"]
        exploratory: str

    taken = dataclasses.replace(catalogue["intervals"], kind="taken", options=Options)
    with pytest.raises(ValueError, match="'exploratory'"):
        build_grammar({"taken": taken})


def test_one_analysis_makes_a_language_of_one_kind(catalogue: Catalogue, sound: str, material: Path) -> None:
    only = {"intervals": catalogue["intervals"]}
    with pytest.raises(StudyError) as caught:
        compile_text(sound.encode(), "study.yaml", only, Surroundings(material, material))
    assert '"kind" of analysis "pairs" must be intervals' in caught.value.diagnostics[0].message
