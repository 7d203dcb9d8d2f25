"""What is a recorded score of, where it is no right or wrong answer, and which way is better?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact

Polarity = Literal["higher_is_better", "lower_is_better"]


class Score(Artifact):
    """What a recorded score is of, where it is not right answers, and whether more or less of it is better."""

    unit: Annotated[str, Field(min_length=1, max_length=60)] = Field(
        description="What a score of 1 is all of, as it stands in tables, axes and sentences, such as `share of toxic sentences`."
    )
    polarity: Polarity = Field(description="Whether more of it is better, or less.")

    @property
    def lower_is_better(self) -> bool:
        """Whether less of it is better."""
        return self.polarity == "lower_is_better"
