"""A real model is scored by option with its answer distributions, and predictive Harmony is computed from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalspec.cli import main

STUDY = Path(__file__).resolve().parents[2] / "specs" / "harmony-predictive.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    place = tmp_path_factory.mktemp("harmony")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(place / "cache"), "--out", str(place / "run")]
    assert main(["run", str(STUDY), *options]) == 0
    return place / "run"


def results(folder: Path) -> dict[str, Any]:
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    return {finding["request"]["id"]: finding["result"] for finding in findings["findings"]}


def test_groups_are_made_of_the_answer_distributions_of_the_scored_model(folder: Path) -> None:
    (partition,) = results(folder)["alike"]["partitions"]
    assert (partition["source"], partition["models"], partition["undefined"]) == ("predictive", ["demo-mid"], None)
    assert [swept["k"] for swept in partition["swept"]] == list(range(2, 13))


def test_harmony_stands_beside_its_size_only_value(folder: Path) -> None:
    found = results(folder)
    for analysis in ("subjects", "alike"):
        (row,) = found[analysis]["rows"]
        assert 0 < row["value"] < 1
        assert 0 < row["size_harmony"] <= 1 + 1e-9
        assert len(row["groups"]) == found[analysis]["partitions"][0]["k"]


def test_the_distributions_are_in_the_responses_and_the_findings_are_recomputed_from_them(folder: Path) -> None:
    from evalspec.tables.responses import responses_from_parquet

    recorded = responses_from_parquet((folder / "responses.parquet").read_bytes()).benchmark("everyday").distributions
    assert recorded is not None
    assert recorded.tokens.shape == (1, 320, 64)
    trust = folder.with_name("run.trust.yaml")
    assert main(["verify", str(folder), "--trust", str(trust), "--recompute", "--json"]) == 0
