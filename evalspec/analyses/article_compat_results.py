"""What can be asked of the analysis `article_compat`, and what does its result hold?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from evalspec.artifacts.base import Artifact, Identifier

Sizes = Annotated[tuple[Annotated[PositiveInt, Field(le=100_000)], ...], Field(max_length=20)]


class ArticleCompatOptions(Artifact):
    """The figures of a much-read article's recipe, each beside the one that evalspec would use."""

    kind: Literal["article_compat"]
    resolution_sizes: Sizes = Field(default=(200, 500, 2000), description="Numbers of questions whose resolution is shown by the rule of thumb.")
    step_sizes: Sizes = Field(default=(30,), description="Numbers of questions for which is shown what one or two of them move a score by.")
    redraw_sizes: Sizes = Field(default=(30, 100, 200, 500, 1000, 2000), description="Numbers of questions that are drawn again, with replacement.")
    draws: Annotated[int, Field(ge=100, le=20_000)] = Field(default=2000, description="Redraws by the recipe; shared ties get 20,000.")


class Resolution(Artifact):
    """Half width of the recipe's paired interval at a number of questions, were there no difference."""

    questions: int
    half_width: float


class Step(Artifact):
    """What one and two questions more or fewer move a score by, at a number of questions."""

    questions: int
    one: float
    two: float


class Trio(Artifact):
    """The three neighbours by score that lie closest together, highest first, and how far apart the outer two are."""

    models: tuple[Identifier, ...]
    span: float


class Redraw(Artifact):
    """How often the leading model leads redrawn questions: by the recipe, and with ties shared; each with its Monte Carlo error."""

    questions: int
    share: float
    share_error: float
    shared_ties: float
    shared_ties_error: float


class DifferenceLimits(Artifact):
    """The limits of a difference between two models."""

    low: float
    high: float


class ArticleRow(Artifact):
    """The two leading models on one benchmark; `difference` is first - second, `low` and `high` are Tango's limits.

    `halved_` are the numbers of questions for half the difference; `caution` says where the recipe's intervals are not to be relied on.
    """

    benchmark: Identifier
    n: int
    first: Identifier | None = None
    second: Identifier | None = None
    first_right: int | None = None
    second_right: int | None = None
    only_first: int | None = None
    only_second: int | None = None
    difference: float | None = None
    discordance: float | None = None
    unpaired_half_width: float | None = None
    paired_half_width: float | None = None
    paired: DifferenceLimits | None = None
    gain: float | None = None
    simple_questions: float | None = None
    unpaired_score: DifferenceLimits | None = None
    low: float | None = None
    high: float | None = None
    score_gain: float | None = None
    exact_questions: int | None = None
    halved_simple_questions: float | None = None
    halved_exact_questions: int | None = None
    closest: Trio | None = None
    caution: str | None = None
    steps: tuple[Step, ...] = ()
    resolutions: tuple[Resolution, ...] = ()
    redraws: tuple[Redraw, ...] = ()
    undefined: str | None = None


class ArticleCompatResult(Artifact):
    """One row per benchmark, and how many draws the two ways of redrawing took."""

    level: float
    draws: int
    shared_tie_draws: int
    rows: tuple[ArticleRow, ...]
