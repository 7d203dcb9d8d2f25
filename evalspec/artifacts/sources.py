"""Where do models and questions come from?  The kinds of sources that a study can name, each told by a key of its own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from evalspec.artifacts.base import Artifact, Digest, Fingerprint, Identifier, Text
from evalspec.artifacts.served import ServedModel

RelativePath = Annotated[str, Field(min_length=1, max_length=1000)]
HubName = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class LocalCheckpoint(Artifact):
    """A folder in the layout of transformers: config.json, *.safetensors and the tokenizer."""

    path: RelativePath


class HubCheckpoint(Artifact):
    """A model on the Hugging Face hub at a fixed commit, read from the local hub cache."""

    hub: HubName
    revision: Revision


class GgufFile(Artifact):
    """A file of quantised weights with its tokenizer, as llama.cpp reads it; its weights are dequantised to the declared precision."""

    gguf: RelativePath


CheckpointSource = LocalCheckpoint | HubCheckpoint | GgufFile
"""Where weights are that are scored on this machine."""


class RecordedResponses(Artifact):
    """A table of results recorded earlier (Parquet or CSV), replayed instead of scoring."""

    responses: RelativePath
    sha256: Digest | None = None
    model: Text | None = Field(default=None, description="The table's name for this model; by default the model's id.")


class EarlierRun(Artifact):
    """A model of an earlier signed run, whose answers are taken over instead of scoring it again."""

    run: RelativePath
    model: Identifier | None = Field(default=None, description="The model's id in that run; by default the same id.")
    signer: Fingerprint


def _kind_of_source(source: Any) -> str | None:  # Any: raw input or a model, as pydantic hands it over
    """Tell a source by the key that only its kind has, so that a fault is reported against that kind alone."""
    kinds = ("path", "hub", "gguf", "run", "responses", "endpoint", "file")
    if isinstance(source, dict):
        return next((kind for kind in kinds if kind in source), None)
    return next((kind for kind in kinds if hasattr(source, kind)), None)


ModelSource = Annotated[
    Annotated[LocalCheckpoint, Tag("path")]
    | Annotated[HubCheckpoint, Tag("hub")]
    | Annotated[GgufFile, Tag("gguf")]
    | Annotated[EarlierRun, Tag("run")]
    | Annotated[RecordedResponses, Tag("responses")]
    | Annotated[ServedModel, Tag("endpoint")],
    Discriminator(_kind_of_source),
]


class FieldNames(Artifact):
    """Which columns or keys of the question file hold what; by default the conventional names are tried."""

    id: Text | None = None
    question: Text | None = None
    choices: Text | None = None
    answer: Text | None = None
    subject: Text | None = None
    cluster: Text | None = None
    flags: Text | None = None


DuplicateChoices = Annotated[
    Literal["refuse", "keep"],
    Field(description="What is done about a question that offers the same choice twice; `keep` asks it as it stands."),
]


class QuestionFile(Artifact):
    """A file of questions: JSONL, CSV or Parquet, told by its ending."""

    file: RelativePath
    sha256: Digest | None = None
    fields: FieldNames = FieldNames()
    duplicate_choices: DuplicateChoices = "refuse"
    licence: Text | None = None


class HubQuestions(Artifact):
    """A data set on the Hugging Face hub at a fixed commit, read from the local hub cache."""

    hub: HubName
    revision: Revision
    split: Identifier
    config: Identifier | None = None
    fields: FieldNames = FieldNames()
    duplicate_choices: DuplicateChoices = "refuse"
    licence: Text | None = None


QuestionSource = Annotated[
    Annotated[QuestionFile, Tag("file")] | Annotated[HubQuestions, Tag("hub")],
    Discriminator(_kind_of_source),
]
