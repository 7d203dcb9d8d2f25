"""What may be written in a study?  The document model over the installed analyses, and its JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Union

from pydantic import BaseModel, Field, create_model

from evalspec.artifacts.base import Artifact, BenchmarkId, Identifier, JsonValue
from evalspec.artifacts.study import Study
from evalspec.language.vocabulary import DESCRIPTIONS, EXAMPLES
from evalspec.protocols import AnyAnalysis, Catalogue

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OWN_KEYS = ("id", "benchmarks", "exploratory")
"""What every analysis entry has beside the options of its kind."""

COMPUTED = "source_sha256"
"""The field of Study that nobody writes."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The language that these analyses make: `document` reads a study as written."""

    document: type[BaseModel]

    def schema(self) -> dict[str, JsonValue]:
        """Return the JSON Schema (draft 2020-12) for editors, with a title, a description and examples at every key."""
        schema: dict[str, Any] = self.document.model_json_schema(by_alias=True)
        described = {"$schema": DIALECT, **schema, "title": "evalspec study", "description": "A study of language models, as evalspec compiles it."}
        for name, definition in {**schema["$defs"], "Study": described}.items():
            definition["properties"] = _in_reading_order(name, definition.get("properties", {}))
            for key, property_schema in definition["properties"].items():
                _describe(property_schema, name, key)
        return described


def build_grammar(catalogue: Catalogue) -> Grammar:
    """Return the grammar over the given analyses.

    Raises ValueError when an analysis has an option of the name of a key that every analysis has.
    """
    entries = tuple(_entry(analysis) for analysis in catalogue.values())
    entry = Annotated[Union[entries], Field(discriminator="kind")] if len(entries) > 1 else entries[0]  # noqa: UP007 (built at run time)
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in Study.model_fields.items() if name != COMPUTED}
    fields["analyses"] = (Annotated[tuple[entry, ...], Field(min_length=1)], ...)  # type: ignore[valid-type]
    return Grammar(create_model("StudyDocument", __base__=Artifact, **fields))


def _entry(analysis: AnyAnalysis) -> type[BaseModel]:
    """Return the model of one entry of `analyses`: the options of its kind, flat, beside the keys that all entries have."""
    taken = [key for key in OWN_KEYS if key in analysis.options.model_fields]
    if taken:
        raise ValueError(f"the options of {analysis.kind!r} may not be called {taken[0]!r}: every analysis has that key already")
    name = "".join(part.capitalize() for part in analysis.kind.replace("-", "_").split("_"))
    model: type[BaseModel] = create_model(
        f"{name}Analysis",
        __base__=analysis.options,
        __doc__=analysis.options.__doc__,
        id=(Identifier, Field()),
        benchmarks=(Annotated[tuple[BenchmarkId, ...], Field(min_length=1)] | None, None),
        exploratory=(bool, False),
    )
    return model


def _in_reading_order(definition: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Put the keys that every analysis has before the options of its kind."""
    first = ("id", "kind", "benchmarks", "exploratory") if definition.endswith("Analysis") else ()
    return {key: properties[key] for key in (*first, *(key for key in properties if key not in first))}


def _describe(property_schema: dict[str, Any], definition: str, key: str) -> None:
    """Add description and example where the model has none of its own."""
    owner = "Analysis" if definition.endswith("Analysis") and key in (*OWN_KEYS, "kind") else definition
    if "description" not in property_schema and f"{owner}.{key}" in DESCRIPTIONS:
        property_schema["description"] = DESCRIPTIONS[f"{owner}.{key}"]
    if f"{owner}.{key}" in EXAMPLES:
        property_schema["examples"] = [EXAMPLES[f"{owner}.{key}"]]
    property_schema["title"] = key
