"""What does a study ask?  The closed models of `study.yaml`, as written by its author and as kept in `study.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, PositiveInt, Tag

from evalspec.artifacts.base import Artifact, Digest, Identifier, JsonValue

API_VERSIONS = ("evalspec/v1",)

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Entry = TypeVar("Entry", "Model", "Benchmark", "AnalysisRequest")
RelativePath = Annotated[str, Field(min_length=1, max_length=1000)]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
ModelId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "model"})]
"""The id of a model of the study; the language checks that it exists."""

BenchmarkId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "benchmark"})]
"""The id of a benchmark of the study; the language checks that it exists."""

AnalysisId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "analysis"})]
"""The id of an analysis of the study; the language checks that it exists."""

Proportion = Annotated[float, Field(gt=0, lt=1)]


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

    hub: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)]
    revision: Revision


class RecordedResponses(Artifact):
    """A table of results recorded earlier (Parquet or CSV), replayed instead of scoring."""

    responses: RelativePath
    sha256: Digest | None = None
    model: Text | None = Field(default=None, description="The table's name for this model; by default the model's id.")


def _kind_of_source(source: Any) -> str | None:  # Any: raw input or a model, as pydantic hands it over
    """Tell a source by the key that only its kind has, so that a fault is reported against that kind alone."""
    kinds = ("path", "hub", "responses", "file")
    if isinstance(source, dict):
        return next((kind for kind in kinds if kind in source), None)
    return next((kind for kind in kinds if hasattr(source, kind)), None)


ModelSource = Annotated[
    Annotated[LocalCheckpoint, Tag("path")] | Annotated[HubCheckpoint, Tag("hub")] | Annotated[RecordedResponses, Tag("responses")],
    Discriminator(_kind_of_source),
]


class Model(Artifact):
    """A system under test."""

    id: Identifier
    source: ModelSource
    precision: Literal["as_shipped", "float32"] = "as_shipped"
    family: Text | None = None
    parameters: Annotated[float, Field(gt=0)] | None = None
    licence: Text | None = None


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

    hub: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)]
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


class SampleAll(Artifact):
    """Every question of the source."""

    method: Literal["all"] = "all"


class SizeToDetect(Artifact):
    """A number of questions by what it must show: so many that the study's first paired test on them finds a true difference of this size.

    Of a test against a limit, such as a margin, the difference is counted from the limit. The alpha is that of the test, after correction.
    """

    detect: Proportion
    power: Proportion = 0.8
    discordance: Proportion


def _kind_of_size(size: Any) -> str:  # Any: raw input or a model, as pydantic hands it over
    """Tell a number of questions from what they must show, so that a fault is reported against that kind alone."""
    return "target" if isinstance(size, dict | SizeToDetect) else "number"


Size = Annotated[
    Annotated[PositiveInt, Tag("number")] | Annotated[SizeToDetect, Tag("target")],
    Discriminator(_kind_of_size),
]


class SampleSimple(Artifact):
    """A simple random sample without replacement."""

    method: Literal["simple"]
    size: Size


class SampleStratified(Artifact):
    """A random sample within each stratum: proportional, or equal and then weighted back to the source's shares."""

    method: Literal["stratified"]
    by: Literal["subject"]
    size: Size
    allocation: Literal["proportional", "equal"] = "proportional"


class SampleIds(Artifact):
    """Exactly the questions that are named."""

    method: Literal["ids"]
    ids: Annotated[tuple[Text, ...], Field(min_length=1)]


Sample = Annotated[SampleAll | SampleSimple | SampleStratified | SampleIds, Field(discriminator="method")]
SampleMethod = Literal["all", "simple", "stratified", "ids"]


def sized(sample: Sample, questions: int | None) -> Sample:
    """Return the sample with this number of questions where its size is a target; any other sample as it is.

    Raises ValueError when a target has no number yet.
    """
    if not isinstance(sample, SampleSimple | SampleStratified) or isinstance(sample.size, int):
        return sample
    if questions is None:
        raise ValueError("a sample that must detect a difference needs its number of questions")
    return sample.model_copy(update={"size": questions})


def size_of(sample: SampleSimple | SampleStratified) -> int:
    """Return the number of questions of a sample; raises ValueError where it is still a target."""
    if isinstance(sample.size, int):
        return sample.size
    raise ValueError("a sample that must detect a difference needs its number of questions")


class Groups(Artifact):
    """The declared role of a grouping: `strata` asks about these very groups, `clusters` about groups like these, of which they are a sample."""

    subject: Literal["strata", "clusters"] | None = None
    cluster: Literal["clusters"] | None = None


class LetterScoring(Artifact):
    """The model sees all choices and the probability of each letter after "Answer:" is compared."""

    method: Literal["letter"]
    shots: Literal[0] = 0
    prompt: Text | None = Field(default=None, description="Template with {question}, {choices} and, if wanted, {subject}.")


class OptionScoring(Artifact):
    """The model sees the question alone and the probability of each choice's text is compared."""

    method: Literal["option"]
    shots: Literal[0] = 0
    normalise: Literal["sum", "per_token", "per_byte"] = "sum"
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


class Assumption(Artifact):
    """What is taken to be true where the power of a check is stated: never an observed value."""

    difference: Annotated[float, Field(gt=-1, lt=1)] | None = Field(default=None, description="True difference, model minus baseline.")
    discordance: Proportion | None = Field(default=None, description="Share of questions that exactly one of the two models answers correctly.")
    accuracy: Proportion | None = Field(default=None, description="True accuracy of the model, for a check of its accuracy.")


class Check(Artifact):
    """A limit that an estimate is held against; exactly one of the four limits is given."""

    id: Identifier
    analysis: AnalysisId
    metric: Identifier
    model: ModelId
    baseline: ModelId | None = None
    benchmark: BenchmarkId | None = Field(default=None, description="By default every benchmark of the analysis, each of which must pass.")
    subject: Text | None = None
    bound: Literal["low", "high", "value"] | None = Field(
        default=None,
        description="The bound of the interval that must clear the limit (low for at_least and above, high for at_most and below), "
        "or the value itself, which has no error control.",
    )
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    assume: Assumption | None = Field(
        default=None, description="What is taken to be true where the power of this check, and the questions that it needs, are stated."
    )

    @property
    def limit(self) -> float:
        """The limit, whichever of the four it is; raises ValueError when there is none."""
        for limit in (self.at_least, self.above, self.at_most, self.below):
            if limit is not None:
                return limit
        raise ValueError(f"check {self.id!r} sets no limit")


class Thresholds(Artifact):
    """Which checks decide, and what an inconclusive one does to the exit code."""

    require: Literal["all", "any"] = "all"
    inconclusive: Literal["block", "warn"] = "block"
    checks: Annotated[tuple[Check, ...], Field(min_length=1)]


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
