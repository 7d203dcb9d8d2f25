"""What does a study ask?  The closed models of `study.yaml`, as written by its author and as kept in `study.json`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Identifier, JsonValue, Precision, Text
from evalspec.artifacts.extraction import ANSWER_RULES, REFUSALS, ExtractionRule, Pattern
from evalspec.artifacts.samples import Sample, SampleAll
from evalspec.artifacts.scores import Score
from evalspec.artifacts.served import Price
from evalspec.artifacts.sources import ModelSource, QuestionSource
from evalspec.artifacts.thresholds import Thresholds

API_VERSIONS = ("evalspec/v1",)

Entry = TypeVar("Entry", "Model", "Benchmark", "AnalysisRequest")


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
    hypothesis: Text | None = Field(default=None, description="What you expected before any answer was seen.")
    population: Text | None = Field(default=None, description="Which tasks, users or uses the result is meant to speak for.")
    threat_model: Text | None = Field(
        default=None, description="Who could do harm with the ability that is measured, and how, where that is the concern."
    )
    risks: Text | None = Field(default=None, description="Which risks of the intended use bear on what follows from the result.")


class Model(Artifact):
    """A system under test."""

    id: Identifier
    source: ModelSource
    precision: Precision = "as_shipped"
    family: Text | None = None
    parameters: Annotated[float, Field(gt=0)] | None = None
    training_tokens: Annotated[float, Field(gt=0)] | None = None
    licence: Text | None = None
    safeguards: Text | None = Field(
        default=None, description="Which safeguards stood around the model when it was asked: filters, a system prompt, refusals trained in or out."
    )
    price: Price | None = Field(default=None, description="What a server charges for tokens; without it nothing is said about cost.")
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="The most that a served model may cost this study, in the currency of its price; what would cost more is not asked."
    )


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


Stop = Annotated[str, Field(min_length=1, max_length=100)]


class SampledScoring(Artifact):
    """The model writes a text, once or several times, and its choice is read off the text by declared rules."""

    method: Literal["sampled"]
    shots: Shots = 0
    examples: Examples = Examples()
    chat: bool = False
    repeats: Annotated[int, Field(ge=1, le=256)] = Field(
        default=1, description="How many texts each model writes for each question; they are averaged within their question."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = Field(
        default=0.0, description="What log-probabilities are divided by before a token is drawn; at 0 the likeliest token is taken."
    )
    max_tokens: Annotated[int, Field(ge=1, le=32768)] = Field(default=256, description="After how many tokens a text is cut off.")
    stop: Annotated[tuple[Stop, ...], Field(max_length=16)] = Field(
        default=(), description="Texts that end the generated one, and do not belong to it; the model's own end always does."
    )
    extract: Annotated[tuple[ExtractionRule, ...], Field(min_length=1, max_length=16)] = Field(
        default=ANSWER_RULES,
        description="How the choice is read off the text: the first of these rules that finds a choice decides. By default "
        "rules for letters and for texts, which the report shows.",
    )
    refusals: Annotated[tuple[Pattern, ...], Field(max_length=32)] = Field(
        default=REFUSALS,
        description="Regular expressions that tell a refusal among the texts in which no rule finds a choice; English wordings by default.",
    )
    prompt: Text | None = Field(default=None, description="Template with {question} and, if wanted, {choices} and {subject}.")

    @property
    def reads_letters(self) -> bool:
        """Whether a rule looks for letters, which the prompt must show and worked examples answer with."""
        return any(rule.reads == "letter" for rule in self.extract)


Scoring = Annotated[LetterScoring | OptionScoring | SampledScoring, Field(discriminator="method")]
MissingRule = Literal["error", "wrong", "complete_case"]
Disclosure = Literal["full", "ids", "none"]
Target = Literal["super_population", "this_pool"]


class About(Artifact):
    """What the author knows of the questions and cannot be read off them; it moves no number and is printed as stated."""

    language: Text | None = Field(default=None, description="The languages that the questions are in.")
    key_quality: Text | None = Field(
        default=None, description="How the answer keys came about and how many of them are known or thought to be wrong."
    )
    contamination: Text | None = Field(
        default=None, description="What is known of whether models saw the questions in training, and how that was looked into."
    )
    sensitive_content: Text | None = Field(default=None, description="What in the questions could offend or harm.")
    personal_data: Text | None = Field(default=None, description="Which personal data the questions hold.")
    human_baseline: Text | None = Field(
        default=None, description="How well people do on these questions: who, how many, asked how, and from which source."
    )


class Benchmark(Artifact):
    """A set of multiple-choice questions, which of them are asked, and how answers are scored."""

    id: Identifier
    source: QuestionSource
    sample: Sample = SampleAll()
    groups: Groups = Groups()
    target: Target = "super_population"
    missing: MissingRule = "wrong"
    score: Score | None = Field(default=None, description="What recorded scores are, where they are not right and wrong answers.")
    scoring: Scoring
    disclosure: Disclosure = "full"
    about: About = Field(default=About(), description="What you know of the questions that cannot be read off them, for the report.")


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
    status: Literal["draft", "final"] | None = Field(default=None, description="Whether the report is a draft or final, printed as you state it.")
    supersedes: tuple[Text, ...] = Field(default=(), description="Ids of earlier runs whose reports this one takes the place of.")
    changes: tuple[Text, ...] = Field(default=(), description="What was wrong in those reports or is otherwise new in this one.")


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
