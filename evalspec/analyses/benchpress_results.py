"""What is found about scores that were not measured?

Scores are in the units of the matrix. Errors and widths are in points: hundredths of the scale, and where a scale has no highest score, twentieths of
the spread of its known scores. The published figures mix the units of all benchmarks, and say so.
"""

from __future__ import annotations

from typing import Literal

from evalspec.artifacts.base import Artifact, Identifier

Scale = Literal["percent", "fraction", "unbounded"]
Polarity = Literal["higher", "lower", "undeclared"]
Predictor = Literal["completion", "additive", "median"]
FlawKind = Literal["outside", "fractions", "constant", "few", "two_groups", "lone", "twins"]


class MatrixSummary(Artifact):
    """The matrix as it is used: its size, known scores and their share of all cells, and the starts of each fit."""

    models: int
    benchmarks: int
    scores: int
    share: float
    left_out: tuple[Identifier, ...]
    starts: int
    points: int
    unbounded: int


class FlawRow(Artifact):
    """What looks odd about a column: `number` and `count` as in `evalspec.statistics.benchpress_lint`."""

    kind: FlawKind
    column: Identifier
    number: float
    count: int
    other: Identifier | None = None


class ErrorRow(Artifact):
    """Errors of one predictor on hidden scores.

    `scope` `points`: benchmarks with a highest score, in points; `unbounded`: the others, in spreads of their known scores; `published`: all of
    them, each in its own units. Of the last `within_3` and `within_5` count such units too.
    """

    predictor: Predictor
    scope: Literal["points", "unbounded", "published"]
    n: int
    unpredicted: int
    median: float
    mean: float
    root_mean_square: float
    ninth_decile: float
    median_relative: float | None
    within_3: float
    within_5: float


class CoverageRow(Artifact):
    """How often intervals held hidden scores, each by factors from other models alone; as `evalspec.statistics.benchpress_intervals.Coverage`.

    `hidden` says how much of each model was hidden at a time; the factors of the smallest part make the intervals of the study's models.
    `rank_correlation_published` is of difficulty and error in each benchmark's own units, all mixed.
    """

    hidden: Literal["third", "twentieth"]
    n: int
    level: float
    share: float
    median_width: float
    easiest_third: float
    middle_third: float
    hardest_third: float
    weak: float | None
    unbounded: float | None
    rank_correlation: float | None
    rank_correlation_published: float | None
    easiest_fifth: float
    low_models: int
    low_benchmarks: int
    factor: float
    factor_weak: float


class StartsRow(Artifact):
    """How far predictions of empty cells move with other starts: the spread over blocks of starts, in points.

    None where no empty cell is predicted.
    """

    blocks: int
    median: float | None = None
    ninth_decile: float | None = None
    largest: float | None = None


class BenchmarkRow(Artifact):
    """Errors on one benchmark's hidden scores, in points, and how often its intervals held them."""

    column: Identifier
    scale: Scale
    polarity: Polarity
    models: int
    n: int
    median: float | None
    median_additive: float | None
    median_baseline: float | None
    coverage: float | None


class MatrixModelRow(Artifact):
    """Errors on one matrix model's hidden scores, in points, and how often their intervals held them."""

    model: str
    scores: int
    strength: float
    n: int
    median: float | None
    coverage: float | None


class OrderRow(Artifact):
    """How often predicted scores keep two models in order, on pairs with a true gap of at least `margin` points.

    `pooled` over all pairs, `median` over benchmarks; with margins in each benchmark's own units where `published` says so.
    """

    margin: float
    hidden: Literal["any", "both"]
    published: bool
    pairs: int
    pooled: float | None
    median: float | None


class BlockRow(Artifact):
    """A complete block: shares of variance along one and two directions, of scores as they are and at spread 1, and the latter by chance."""

    benchmarks: int
    models: int | None
    one: float | None = None
    two: float | None = None
    two_standardised: float | None = None
    two_by_chance: float | None = None
    p_value: float | None = None
    undefined: str | None = None


class StudyModelRow(Artifact):
    """A model of the study: where its scores come from, how many are known, and its mean standardised score.

    `measured` counts those that the study adds to the row. Of `checked` known scores, each hidden in its turn, `held` lie inside their intervals;
    where far fewer do than should, it is cautioned `missed`. `undefined` says why nothing is predicted for it.
    """

    model: Identifier
    row: str | None
    known: int
    measured: int
    strength: float | None
    weakest: float | None
    strongest: float | None
    cautions: tuple[Literal["few", "outside", "edge", "missed"], ...]
    checked: int = 0
    held: int = 0
    undefined: str | None = None


class PredictionRow(Artifact):
    """A predicted score with the interval that held the wanted share of hidden ones, and the span of its starts in points."""

    model: Identifier
    column: Identifier
    scale: Scale
    polarity: Polarity
    known: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    span: float | None = None
    undefined: str | None = None


class SurpriseRow(Artifact):
    """A score of a study's model beside what its other scores say of it.

    `source`: the study `measured` it, or others `reported` it; a measured one has its own interval. `inside` tells whether the interval of the
    prediction holds it, and `half_widths` how far it lies from the prediction.
    """

    model: Identifier
    column: Identifier
    scale: Scale
    source: Literal["measured", "reported"]
    score: float
    score_low: float | None = None
    score_high: float | None = None
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    inside: bool | None = None
    half_widths: float | None = None
    undefined: str | None = None


class SurpriseCount(Artifact):
    """How many scores of one source could be held against an interval, how many lie outside, and how many would by the level."""

    source: Literal["measured", "reported"]
    checked: int
    outside: int
    expected: float
    unchecked: int


class ProbeRow(Artifact):
    """A probe in the order of choice: errors of the set up to it, relative ones as proportions.

    `hidden` is the error of hidden scores in points, `mixed` the same in the units of the benchmarks, all mixed; `revealed` is the published one,
    mixed too, which counts the probes' own scores as errors of 0. `cross_validated` and `cross_validated_revealed` are `hidden` and `revealed` of
    models that the choice was made without, by sets of this size chosen without them; `chosen` counts those choices that hold this probe.
    """

    column: Identifier
    hidden: float
    mixed: float
    revealed: float
    cells: int
    unpredicted: int
    cost: float | None = None
    cross_validated: float | None = None
    cross_validated_revealed: float | None = None
    chosen: int | None = None


class OtherProbe(Artifact):
    """A probe that some of the choices without a part of the models hold, and the choice on all models does not."""

    column: Identifier
    chosen: int


class ProbeResult(Artifact):
    """The probes, what they were chosen by, and how stable the choice is; `asked` of them were looked for, `rows` are those found."""

    objective: Literal["medae", "medape"]
    count_revealed: bool
    candidates: int
    asked: int
    starts: int
    folds: int | None
    budget: float | None
    rows: tuple[ProbeRow, ...]
    others: tuple[OtherProbe, ...]


class DrawnPoint(Artifact):
    """A hidden score and its prediction, in points."""

    actual: float
    predicted: float


class BenchpressResult(Artifact):
    """Predictions for the study's models, and how far such predictions can be trusted."""

    mode: Literal["audit", "compat"]
    level: float
    widest: float | None
    folds: int
    matrix: MatrixSummary
    flaws: tuple[FlawRow, ...]
    errors: tuple[ErrorRow, ...]
    coverage: tuple[CoverageRow, ...]
    starts: StartsRow
    order: tuple[OrderRow, ...]
    blocks: tuple[BlockRow, ...]
    draws: int
    models: tuple[StudyModelRow, ...]
    predictions: tuple[PredictionRow, ...]
    surprises: tuple[SurpriseRow, ...]
    surprise_counts: tuple[SurpriseCount, ...]
    probes: ProbeResult | None
    benchmarks: tuple[BenchmarkRow, ...]
    matrix_models: tuple[MatrixModelRow, ...]
    drawn: tuple[DrawnPoint, ...]
