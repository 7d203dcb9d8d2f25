"""What the figures and the section of a prediction show, and what they must not say: a prediction is no measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalspec.analyses.benchpress import compute, plot_hidden, plot_probes
from evalspec.analyses.benchpress_models import TOO_FEW_KNOWN
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.artifacts.base import sha256_hex
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart

from .test_benchpress import RESPONSES, computed, rendered


@pytest.mark.parametrize(
    ("probes", "why"),
    [
        ('{"steps": 3, "folds": null, "candidates": ["b2", "b3"]}', "3 probes were asked for, and only 2 were added: there are no more candidates."),
        (
            '{"steps": 4, "folds": null, "budget": 6}',
            "were added: no further candidate fits the budget and leaves a hidden score that can be predicted.",
        ),
    ],
)
def test_a_search_that_ends_early_says_how_many_probes_were_asked_for(probes: str, why: str) -> None:
    assert why in rendered(computed(probes=probes))


def test_a_search_that_finds_all_probes_says_nothing_of_an_early_end() -> None:
    assert "were asked for" not in rendered(computed(probes='{"steps": 2, "folds": 4}'))


def test_hidden_scores_are_drawn_against_their_predictions_and_probes_as_a_path() -> None:
    result = computed(probes='{"steps": 2, "folds": 4}')
    chart = Chart()
    plot_hidden(result, chart)
    drawn: Any = chart.draw("wide").drawn
    line, cloud, own = drawn["curves"]
    assert (line["joined"], cloud["joined"], own["joined"]) == (True, False, False)
    assert [(point["x"], point["y"]) for point in cloud["points"]] == [(point.actual, point.predicted) for point in result.drawn]
    path = Chart()
    plot_probes(result, path)
    assert [len(curve["points"]) for curve in path.draw("narrow").drawn["curves"]] == [2, 2, 2]  # type: ignore[union-attr, index, call-overload]
    without = Chart()
    plot_probes(computed(), without)
    assert without.empty


def test_the_report_says_that_a_prediction_is_no_measurement_and_labels_the_published_definitions() -> None:
    text = rendered(computed(probes='{"steps": 2, "folds": 4}'))
    assert "A prediction is no measurement. " in text
    assert "It satisfies no check" in text
    assert "Predicted, not measured: model-0" in text
    assert "Published definition: all of them at once, each in its own units" in text
    assert "counts the probes' own scores as predicted without error" in text.replace("&#39;", "'")
    assert "(path)" in text
    assert TOO_FEW_KNOWN.replace("'", "&#39;") in text
    assert text.index("Benchmarks whose scale ends, in points") < text.index("Published definition")


@pytest.mark.parametrize(
    "place", ["templates/analyses/benchpress.html.j2", "docs/benchpress.md", "specs/benchpress.yaml", "specs/benchpress/README.md"]
)
def test_no_text_says_that_testing_may_be_skipped(root: Path, place: str) -> None:
    text = (root / place).read_text(encoding="utf-8").lower()
    for words in ("skip", "instead of running", "instead of testing", "without running", "without testing", "no need to", "not need to", "save "):
        assert words not in text, words


def test_a_completion_that_is_no_better_than_a_baseline_is_said_aloud() -> None:
    result = computed()

    def page(**medians: float) -> str:
        errors = [row.model_copy(update={"median": medians[row.predictor]}) for row in result.errors]
        return rendered(result.model_copy(update={"errors": tuple(errors)})).replace("&#39;", "'")

    assert "no better than" not in page(completion=2.0, additive=3.0, median=4.0)
    assert "no better than benchmark's median (" in page(completion=2.0, additive=3.0, median=2.0)
    assert "no better than model and benchmark alone or benchmark's median (" in page(completion=2.0, additive=1.0, median=1.5)


def test_the_report_of_a_result_without_probes_or_predictions_is_whole() -> None:
    assert "Which few benchmarks tell most" not in rendered(computed())
    assert "Predicted, not measured" not in rendered(computed(targets='["b0"]', models="[]"))


def test_a_search_that_finds_no_probe_says_so_and_draws_nothing() -> None:
    result = computed(probes='{"steps": 2, "folds": 4}')
    assert result.probes is not None
    nothing = result.model_copy(update={"probes": result.probes.model_copy(update={"rows": (), "others": ()})})
    assert "No probe leaves a hidden score that can be predicted" in rendered(nothing)
    chart = Chart()
    plot_probes(nothing, chart)
    assert chart.empty


def test_the_published_method_prints_the_published_figures_under_their_label(shared: Path) -> None:
    matrix = (shared / "data" / "benchpress" / "scores.csv").read_bytes()
    named = {"kind": "benchpress", "mode": "compat", "matrix": {"path": "scores.csv", "sha256": sha256_hex(matrix)}, "targets": ["mmlu_pro"]}
    options = BenchpressOptions.model_validate_json(json.dumps(named))
    result = compute(RESPONSES, options, Context(rng=np.random.default_rng(1), tables={sha256_hex(matrix): matrix}))
    pooled = next(row for row in result.errors if (row.scope, row.predictor) == ("published", "completion"))
    assert (pooled.median, pooled.median_relative) == pytest.approx((4.598, 0.0776), abs=5e-4)
    order = {(row.margin, row.hidden): row.median for row in result.order if row.published or row.margin == 0}
    assert (order[0.0, "any"], order[5.0, "any"]) == pytest.approx((0.8383, 0.9205), abs=5e-5)
    assert [(block.benchmarks, block.models) for block in result.blocks] == [(4, 42), (7, 11), (10, 7), (13, 6)]
