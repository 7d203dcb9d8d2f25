"""Letter probabilities of 64 real models on 1,273 questions of WMDP bio (MIT, xyzhu123/tinyBenchmarks; numbers only): no partition by subject."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evalspec.analyses.harmony import compute
from evalspec.analyses.harmony_induced import CHOICES_ONLY
from evalspec.analyses.harmony_results import HarmonyOptions, HarmonyResult, PredictiveOptions
from evalspec.protocols import Context

from .tables import responses_of

SOME = 6


@pytest.fixture(scope="module")
def found(shared: Path) -> HarmonyResult:
    table = pq.read_table(shared / "data" / "wmdp_bio_option_loglik_64models.parquet")
    names = sorted({name.rpartition("|")[0] for name in table.column_names if "|" in name})[:SOME]
    logprobs = np.stack([np.stack([table.column(f"{name}|{letter}").to_numpy() for letter in "ABCD"], axis=1) for name in names])
    key = np.array(["ABCD".index(letter) for letter in table.column("answer").to_pylist()])
    chosen = logprobs.argmax(axis=2)
    responses = responses_of(chosen == key, logprobs=logprobs, choices=chosen[:, :, None].astype(np.int16))
    predictive = PredictiveOptions(k=(2, 8), seeds=2, shared="per_model")
    return compute(responses, HarmonyOptions(kind="harmony", partition="predictive", predictive=predictive), Context(rng=np.random.default_rng(0)))


def test_groups_by_letters_of_real_models_never_give_harmony(found: HarmonyResult) -> None:
    assert {row.undefined for row in found.rows} == {CHOICES_ONLY}
    assert all(row.value is None for row in found.rows)


def test_they_look_firm_and_follow_the_letters(found: HarmonyResult) -> None:
    firm = [max(point.silhouette for point in groups.swept) for groups in found.partitions]
    assert max(firm) > 0.5
    assert max(row.follows_choice for row in found.rows) > 0.3
