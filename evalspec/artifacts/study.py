"""What does a study ask?  The closed models of `study.yaml`, as written by its author and as kept in `study.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag

from evalspec.artifacts.base import Artifact, Digest, Identifier, JsonValue, Text
from evalspec.artifacts.samples import Sample, SampleAll
from evalspec.artifacts.served import Price, ServedModel
from evalspec.artifacts.thresholds import Thresholds

API_VERSIONS = ("evalspec/v1",)

Entry = TypeVar("Entry", "Model", "Benchmark", "AnalysisRequest")
RelativePath = Annotated[str, Field(min_length=1, max_length=1000)]
HubName = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Person(Artifact):
    """Somebody who answers for the study."""

    name: Text
    role: Text | None = None


class Owner(Artifact):
    """Who asks the question and answers for it."""

    organisation: Text
    responsible: tuple[Person, ...] = ()


class Purpose(Artifact):
    """What the study is for: what is measured, for which use, and which decision hangs on it."""

    measured: Text | None = Field(default=None, alias="construct", description="The ability or property that the questions stand for.")
    intended_use: Text | None = None
    decision: Text | None = None


class LocalCheckpoint(Artifact):
    """A folder in the layout of transformers: config.json, *.safetensors and the tokenizer."""

    path: RelativePath


class HubCheckpoint(Artifact):
    """A model on the Hugging Face hub at a fixed commit, read from the local hub cache."""

    hub: HubName
    revision: Revision


class RecordedResponses(Artifact):
    """A table of results recorded earlier (Parquet or CSV), replayed instead of scoring."""

    responses: RelativePath
    sha256: Digest | None = None
    model: Text | None = Field(default=None, description="The table's name for this model; by default the model's id.")


def _kind_of_source(source: Any) -> str | None:  # Any: raw input or a model, as pydantic hands it over
    """Tell a source by the key that only its kind has, so that a fault is reported against that kind alone."""
    kinds = ("path", "hub", "responses", "endpoint", "file")
    if isinstance(source, dict):
        return next((kind for kind in kinds if kind in source), None)
    return next((kind for kind in kinds if hasattr(source, kind)), None)


ModelSource = Annotated[
    Annotated[LocalCheckpoint, Tag("path")]
    | Annotated[HubCheckpoint, Tag("hub")]
    | Annotated[RecordedResponses, Tag("responses")]
    | Annotated[ServedModel, Tag("endpoint")],
    Discriminator(_kind_of_source),
]


class Model(Artifact):
    """A system under test."""

    id: Identifier
    source: ModelSource
    precision: Literal["as_shipped", "float32"] = "as_shipped"
    family: Text | None = None
    parameters: Annotated[float, Field(gt=0)] | None = None
    training_tokens: Annotated[float, Field(gt=0)] | None = None
    licence: Text | None = None
    price: Price | None = Field(default=None, description="What a server charges for tokens; without it nothing is said about cost.")
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="The most that a served model may cost this study, in the currency of its price; what would cost more is not asked."
    )


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


class Groups(Artifact):
    """The declared role of a grouping: `strata` asks about these very groups, `clusters` about groups like these, of which they are a sample."""

    subject: Literal["strata", "clusters"] | None = None
    cluster: Literal["clusters"] | None = None


Shots = Annotated[int, Field(ge=0, le=64)]


class Examples(Artifact):
    """The questions that worked examples are drawn from, and which of them a question sees."""

    source: QuestionSource | None = Field(default=None, description="By default the questions of the benchmark that its sample does not take.")
    by: Literal["subject"] | None = Field(default=None, description="`subject`: examples of the question's own subject; by default the same for all.")


class LetterScoring(Artifact):
    """The model sees all choices and the probability of each letter after "Answer:" is compared."""

    method: Literal["letter"]
    shots: Shots = 0
    examples: Examples = Examples()
    chat: bool = False
    prompt: Text | None = Field(default=None, description="Template with {question}, {choices} and, if wanted, {subject}.")


class OptionScoring(Artifact):
    """The model sees the question alone and the probability of each choice's text is compared."""

    method: Literal["option"]
    shots: Shots = 0
    examples: Examples = Examples()
    chat: bool = False
    normalise: Literal["sum", "per_token", "per_byte"] = "sum"
    distribution: Annotated[int, Field(ge=2, le=4096)] | None = None
    prompt: Text | None = Field(default=None, description="Template with {question} and, if wanted, {subject}.")


Scoring = Annotated[LetterScoring | OptionScoring, Field(discriminator="method")]
MissingRule = Literal["error", "wrong", "complete_case"]
Disclosure = Literal["full", "ids", "none"]
Target = Literal["super_population", "this_pool"]


class Benchmark(Artifact):
    """A set of multiple-choice questions, which of them are asked, and how answers are scored."""

    id: Identifier
    source: QuestionSource
    sample: Sample = SampleAll()
    groups: Groups = Groups()
    target: Target = "super_population"
    missing: MissingRule = "wrong"
    scoring: Scoring
    disclosure: Disclosure = "full"


class AnalysisRequest(Artifact):
    """One analysis asked for: its kind, the benchmarks it speaks of and its options, defaults filled in."""

    id: Identifier
    kind: Identifier
    benchmarks: tuple[Identifier, ...]
    options: dict[str, JsonValue]
    planned: bool = True


class ReportOptions(Artifact):
    """How the report is made."""

    samples: Annotated[int, Field(ge=5, le=100)] = Field(default=5, description="Random question and response pairs shown per benchmark.")
    language: Literal["en"] = "en"


class Study(Artifact):
    """The compiled study: what is to be known, and nothing about the machine."""

    api_version: Literal["evalspec/v1"] = Field(alias="apiVersion")
    title: Annotated[str, Field(min_length=1, max_length=300)]
    owner: Owner | None = None
    purpose: Purpose = Purpose()
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    models: Annotated[tuple[Model, ...], Field(min_length=1)]
    benchmarks: Annotated[tuple[Benchmark, ...], Field(min_length=1)]
    analyses: Annotated[tuple[AnalysisRequest, ...], Field(min_length=1)]
    thresholds: Thresholds | None = None
    limitations: tuple[Text, ...] = Field(default=(), description="What the author knows that this study cannot show.")
    report: ReportOptions = ReportOptions()
    source_sha256: Digest = Field(description="SHA-256 of study.yaml as given.")

    def model(self, identifier: str) -> Model:
        """Return the model of that id; raises KeyError when the study has none."""
        return _by_id(self.models, identifier)

    def benchmark(self, identifier: str) -> Benchmark:
        """Return the benchmark of that id; raises KeyError when the study has none."""
        return _by_id(self.benchmarks, identifier)

    def analysis(self, identifier: str) -> AnalysisRequest:
        """Return the analysis of that id; raises KeyError when the study has none."""
        return _by_id(self.analyses, identifier)


def _by_id(entries: tuple[Entry, ...], identifier: str) -> Entry:
    for entry in entries:
        if entry.id == identifier:
            return entry
    raise KeyError(identifier)
