"""What can be asked about scores that were not measured?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evalspec.artifacts.base import Artifact, BenchmarkId, Identifier, ModelId, Proportion, Text
from evalspec.artifacts.outside import OutsideTable

Score = Annotated[float, Field(ge=-1e12, le=1e12)]
Columns = tuple[Identifier, ...]


class KnownModel(Artifact):
    """A model of the study: its row in the matrix, if it has one, and scores of it that others report."""

    model: Annotated[ModelId, Field(description="The model of the study.")]
    row: Text | None = Field(default=None, description="Its name in the matrix; by default its id, if the matrix has a row of that name.")
    known: dict[Identifier, Score] = Field(
        default={}, description="Reported scores by column of the matrix, in the column's own units; they go before the matrix's own."
    )


class MeasuredColumn(Artifact):
    """Which column of the matrix a benchmark of the study measures."""

    benchmark: Annotated[BenchmarkId, Field(description="The benchmark of the study.")]
    column: Identifier = Field(description="The column of the matrix, which must be one of percentages or fractions.")


class ProbeSearch(Artifact):
    """Which few benchmarks tell most about a model's other scores."""

    steps: Annotated[int, Field(ge=1, le=15)] = Field(default=5, description="How many are looked for, one after the other.")
    candidates: Columns | None = Field(default=None, description="Columns that may be chosen; by default all.")
    objective: Literal["medae", "medape"] = Field(
        default="medae", description="What is made small: the median error, in points, or the median relative error."
    )
    count_revealed: bool = Field(
        default=False,
        description="Choose by the published error, which mixes the units of all benchmarks and counts the chosen ones' own scores as predicted "
        "without error.",
    )
    folds: Annotated[int, Field(ge=2, le=20)] | None = Field(
        default=5, description="Parts of the models that the choice is made without and measured on; null makes it once, on all models."
    )
    budget: Annotated[float, Field(gt=0)] | None = Field(default=None, description="What the chosen ones may cost together, by the column `cost`.")


class BenchpressOptions(Artifact):
    """Scores that were not measured, predicted from a matrix of other models' scores, with intervals that were tried on hidden ones."""

    kind: Literal["benchpress"]
    matrix: OutsideTable = Field(
        description="CSV with a row per model and a column per benchmark: names in the first column, scores in the others, empty where there is none."
    )
    columns: OutsideTable | None = Field(
        default=None,
        description="CSV that declares each column of the matrix: `benchmark_id`, `scale` (percent, fraction, unbounded), `polarity` (higher, lower) "
        "and, if wanted, `cost`. Needed in mode `audit`.",
    )
    mode: Literal["audit", "compat"] = Field(
        default="audit",
        description="`audit`: declared scales and 100 starts; `compat`: the published method, which tells scales from the scores, with 10 starts.",
    )
    leave_out: Columns = Field(default=(), description="Columns of the matrix that are not used.")
    models: tuple[KnownModel, ...] = Field(default=(), description="The study's models whose rows or reported scores are not found by their id.")
    measured: tuple[MeasuredColumn, ...] = Field(default=(), description="Columns that the study itself measures.")
    targets: Columns | None = Field(default=None, description="Columns to predict; by default all that are not known of a model.")
    level: Proportion = Field(default=0.9, description="The share of hidden scores that the intervals hold.")
    widest: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="A prediction with a wider interval is not given; in points, hundredths of the scale."
    )
    probes: ProbeSearch | None = Field(default=None, description="Ask which few benchmarks tell most. Takes minutes on a large matrix.")
    blocks: tuple[Annotated[int, Field(ge=2, le=50)], ...] = Field(
        default=(4, 7, 10, 13), description="How many of the benchmarks that most models have make the complete blocks whose directions are counted."
    )
    draws: Annotated[int, Field(ge=200, le=100_000)] = Field(default=2000, description="Shuffles of each block.")

    @model_validator(mode="after")
    def _declared(self) -> Self:
        if self.mode == "audit" and self.columns is None:
            raise ValueError("mode `audit` needs `columns`, which declare the scale and the polarity of every column of the matrix")
        if self.mode == "compat" and self.columns is None and self.probes is not None and self.probes.budget is not None:
            raise ValueError("a budget needs `columns` with a column `cost`")
        for name in ("model", "row"):
            named = [getattr(entry, name) for entry in self.models if getattr(entry, name) is not None]
            if len(set(named)) < len(named):
                raise ValueError(f"two entries of `models` name one {name}")
        if len({entry.column for entry in self.measured}) < len(self.measured):
            raise ValueError("two entries of `measured` name one column")
        return self
