"""Which questions of a benchmark are asked, and how many?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PositiveInt, Tag

from evalspec.artifacts.base import Artifact, Proportion, Text
from evalspec.artifacts.outside import OutsideTable


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


class SampleChosen(Artifact):
    """Questions chosen by what other models made of them, with the weights that estimate a model's score on all of the source.

    They are no random draw: only `intervals` reads them, and it gives no interval. The analysis `mdad` says which gaps such a sample ranks.
    """

    method: Literal["chosen"]
    by: Literal["confidence_strata", "anchor_points", "item_response", "diversity"]
    size: PositiveInt
    answers: OutsideTable
    models: tuple[Text, ...] = ()


Sample = Annotated[SampleAll | SampleSimple | SampleStratified | SampleIds | SampleChosen, Field(discriminator="method")]
SampleMethod = Literal["all", "simple", "stratified", "ids", "chosen"]


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
