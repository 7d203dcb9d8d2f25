"""Which scores would the study's models have elsewhere, and do the scores that are known of them surprise?

Each model is met by the matrix alone, so that another model of the study moves none of its predictions; a model with a row of its own is predicted
with intervals from the other models. A known score is held against what the model's other scores say: it is hidden, and predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.benchpress_accuracy import Ground
from evalspec.analyses.benchpress_measured import Measured, measured_scores
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import PredictionRow, StudyModelRow, SurpriseCount, SurpriseRow
from evalspec.artifacts.responses import Responses
from evalspec.statistics.benchpress import Predictions, Standard
from evalspec.statistics.benchpress_folds import strengths
from evalspec.statistics.benchpress_intervals import factors, limits
from evalspec.statistics.benchpress_rows import predict_row

FEWEST_KNOWN = 3
FEW_KNOWN = 5
FEWEST_MODELS = 3
FEWEST_CHECKED = 5
MISSED = 0.1
"""How much smaller than the level the share of a model's known scores inside their intervals may be before its predictions are cautioned."""

WIDEST_SPAN = 24.0
"""Points between the ninth and the first decile of the starts beyond which nothing is predicted."""

TOO_FEW_KNOWN = "fewer than 3 of the model's scores are known, from which errors are large"
TOO_FEW_MODELS = "fewer than 3 other models have a score there"
UNSTABLE = "where the fit begins moves the prediction by more than 24 points"
TOO_WIDE = "the interval is wider than the study allows"
NOT_PREDICTABLE = "no other model has a score there"


@dataclass(frozen=True, slots=True)
class StudyModels:
    """The study's models, predictions for them, and their known scores against the others."""

    models: tuple[StudyModelRow, ...]
    predictions: tuple[PredictionRow, ...]
    surprises: tuple[SurpriseRow, ...]
    counts: tuple[SurpriseCount, ...]


@dataclass(frozen=True, slots=True)
class _Subject:
    """A model of the study in the matrix: the table with its row, where that is, and which scores the study measured, by column."""

    name: str
    row: str | None
    table: NDArray[np.float64]
    place: int
    measured: dict[int, Measured]
    added: int

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which of its scores are known."""
        return np.asarray(~np.isnan(self.table[self.place]))

    @property
    def others(self) -> NDArray[np.int64]:
        """How many other models have a score on each benchmark."""
        return np.asarray((~np.isnan(np.delete(self.table, self.place, axis=0))).sum(axis=0))


def study_models(ground: Ground, responses: Responses, options: BenchpressOptions) -> StudyModels:
    """Predict the study's models, and hold their known scores against intervals; raises AnalysisError where a measured benchmark is not there."""
    measured = measured_scores(ground, responses, options)
    names = dict.fromkeys(model for benchmark in responses.benchmarks for model in benchmark.models)
    subjects = [_subject(name, ground, options, measured.get(name, {})) for name in names]
    held_against = [tuple(_surprises(subject, ground, options)) for subject in subjects]
    surprises = tuple(row for rows in held_against for row in rows)
    return StudyModels(
        tuple(_model_row(subject, ground, rows) for subject, rows in zip(subjects, held_against, strict=True)),
        tuple(row for subject in subjects for row in _predictions(subject, ground, options)),
        surprises,
        tuple(_counts(surprises, ground.level)),
    )


def _subject(name: str, ground: Ground, options: BenchpressOptions, measured: dict[int, Measured]) -> _Subject:
    """Put a model of the study into the matrix: its own row, over that what is reported of it, and into empty cells what the study measured."""
    entry = next((model for model in options.models if model.model == name), None)
    row = entry.row if entry is not None and entry.row is not None else name
    place = ground.matrix.models.index(row) if row in ground.matrix.models else None
    scores = np.full(len(ground.matrix.columns), np.nan) if place is None else ground.scores[place].copy()
    for column, score in entry.known.items() if entry is not None else ():
        scores[ground.matrix.place(column)] = score
    empty = [at for at in measured if np.isnan(scores[at])]
    for at in empty:
        scores[at] = measured[at].score
    if place is None:
        return _Subject(name, None, np.vstack([ground.scores, scores]), len(ground.scores), measured, len(empty))
    table = ground.scores.copy()
    table[place] = scores
    return _Subject(name, row, table, place, measured, len(empty))


def _model_row(subject: _Subject, ground: Ground, surprises: tuple[SurpriseRow, ...]) -> StudyModelRow:
    others = strengths(ground.scores, Standard.of(ground.scores, ground.tops))
    others = others if subject.row is None else np.delete(others, subject.place)
    strength = _strength(subject, ground)
    known = int(subject.known.sum())
    low, high = (float(np.min(others)), float(np.max(others)))
    cautions = ["few"] if FEWEST_KNOWN <= known < FEW_KNOWN else []
    if strength is not None and not low <= strength <= high:
        cautions.append("outside")
    elif strength is not None and not float(np.quantile(others, 0.05)) <= strength <= float(np.quantile(others, 0.95)):
        cautions.append("edge")
    checked = [row for row in surprises if row.inside is not None]
    held = sum(bool(row.inside) for row in checked)
    if len(checked) >= FEWEST_CHECKED and held < (ground.level - MISSED) * len(checked):
        cautions.append("missed")
    return StudyModelRow.model_validate(
        {
            "model": subject.name,
            "row": subject.row,
            "known": known,
            "measured": subject.added,
            "strength": strength,
            "weakest": low,
            "strongest": high,
            "cautions": tuple(cautions),
            "checked": len(checked),
            "held": held,
            "undefined": TOO_FEW_KNOWN if known < FEWEST_KNOWN else None,
        }
    )


def _strength(subject: _Subject, ground: Ground) -> float | None:
    if not subject.known.any():
        return None
    return float(strengths(subject.table, Standard.of(subject.table, ground.tops))[subject.place])


def _predictions(subject: _Subject, ground: Ground, options: BenchpressOptions) -> Iterator[PredictionRow]:
    """Yield a row for every target that is not known of the model."""
    matrix, known = ground.matrix, subject.known
    wanted = [matrix.place(name) for name in options.targets or matrix.columns]
    wanted = [place for place in wanted if not known[place]]
    found = predict_row(subject.table, subject.place, known[None], ground.method) if wanted and known.sum() >= FEWEST_KNOWN else None
    intervals = _Intervals.of(subject, ground)
    for place in wanted:
        row = PredictionRow(
            model=subject.name,
            column=matrix.columns[place],
            scale=matrix.declared[place].scale,
            polarity=matrix.declared[place].polarity,
            known=int(known.sum()),
        )
        shown = None if found is None else intervals.shown(found, 0, place)
        refused = _refused(subject, place, int(known.sum()), shown, options)
        if shown is None or refused:
            yield row.model_copy(update={"undefined": refused, "span": None if shown is None or np.isnan(shown.span) else shown.span})
        else:
            yield row.model_copy(update={"value": shown.value, "low": shown.low, "high": shown.high, "span": shown.span})


def _surprises(subject: _Subject, ground: Ground, options: BenchpressOptions) -> Iterator[SurpriseRow]:
    """Yield a row for every score that the study measured, and for every one that others report, held against the model's other scores."""
    known = subject.known
    columns = sorted({*np.flatnonzero(known).tolist(), *subject.measured})
    if not columns:
        return
    visible = np.repeat(known[None], len(columns), axis=0)
    visible[np.arange(len(columns)), columns] = False
    found = predict_row(subject.table, subject.place, visible, ground.method) if known.sum() >= FEWEST_KNOWN else None
    intervals = _Intervals.of(subject, ground)
    for number, place in enumerate(columns):
        shown = None if found is None else intervals.shown(found, number, place)
        refused = _refused(subject, place, int(visible[number].sum()), shown, options)
        for row in _known_scores(subject, ground, place):
            yield _against(row, shown, refused)


def _known_scores(subject: _Subject, ground: Ground, place: int) -> Iterator[SurpriseRow]:
    matrix = ground.matrix
    shared = {"model": subject.name, "column": matrix.columns[place], "scale": matrix.declared[place].scale}
    measured, score = subject.measured.get(place), float(subject.table[subject.place, place])
    if measured is not None:
        limits_of_score = {"score_low": measured.low, "score_high": measured.high}
        yield SurpriseRow.model_validate({**shared, "source": "measured", "score": measured.score, **limits_of_score})
    if measured is None or score != measured.score:
        yield SurpriseRow.model_validate({**shared, "source": "reported", "score": score})


@dataclass(frozen=True, slots=True)
class _Shown:
    """A prediction with its interval, and half of its width before it is cut; `span` and `width` in points."""

    value: float
    low: float
    high: float
    half: float
    span: float
    width: float


@dataclass(frozen=True, slots=True)
class _Intervals:
    """What makes intervals for one model: the factor that held the wanted share of other models' hidden scores."""

    factor: float
    point: NDArray[np.float64]
    tops: NDArray[np.float64]

    @classmethod
    def of(cls, subject: _Subject, ground: Ground) -> _Intervals:
        """Return them for a model of the study, whose own row takes no part in them."""
        tried, own = ground.tried, None if subject.row is None else subject.place
        found = factors(tried, ground.tried_intervals.difficulty * ground.point[tried.benchmarks], ground.level, without=own)
        strength = _strength(subject, ground)
        return cls(float(found.at(np.array([0.0 if strength is None else strength]))[0]), ground.point, ground.tops)

    def shown(self, found: Predictions, number: int, place: int) -> _Shown:
        """Return the prediction of one benchmark under one set of visible scores."""
        point, value = float(self.point[place]), float(found.value[number, place])
        half = self.factor * (float(found.spread[number, place]) + point)
        low, high = (float(side[0]) for side in limits(np.array([value]), np.array([half]), self.tops[place : place + 1]))
        return _Shown(value, low, high, half, float(found.span[number, place]) / point, (high - low) / point)


def _refused(subject: _Subject, place: int, visible: int, shown: _Shown | None, options: BenchpressOptions) -> str | None:
    """Say why a prediction is not given; None where it is."""
    if visible < FEWEST_KNOWN or shown is None:
        return TOO_FEW_KNOWN
    if subject.others[place] < FEWEST_MODELS:
        return TOO_FEW_MODELS if subject.others[place] else NOT_PREDICTABLE
    if shown.span > WIDEST_SPAN:
        return UNSTABLE
    return TOO_WIDE if options.widest is not None and shown.width > options.widest else None


def _against(row: SurpriseRow, shown: _Shown | None, refused: str | None) -> SurpriseRow:
    if shown is None or refused:
        return row.model_copy(update={"undefined": refused})
    apart = abs(row.score - shown.value) / shown.half
    return row.model_copy(
        update={
            "predicted": shown.value,
            "low": shown.low,
            "high": shown.high,
            "inside": shown.low <= row.score <= shown.high,
            "half_widths": apart,
        }
    )


def _counts(rows: tuple[SurpriseRow, ...], level: float) -> Iterator[SurpriseCount]:
    for source in ("measured", "reported"):
        own = [row for row in rows if row.source == source]
        checked = [row for row in own if row.inside is not None]
        yield SurpriseCount.model_validate(
            {
                "source": source,
                "checked": len(checked),
                "outside": sum(not row.inside for row in checked),
                "expected": (1.0 - level) * len(checked),
                "unchecked": len(own) - len(checked),
            }
        )
