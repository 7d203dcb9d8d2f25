"""What a cluster adds to the contract of executors: nodes that are lost, and an address."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evalspec.artifacts.responses import Responses
from evalspec.errors import UsageError
from evalspec.protocols import Progress
from evalspec.scoring.execute import ScoringTask, score

if TYPE_CHECKING:
    from tests.scoring.executors.conftest import RayNodes

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed; install the extra `ray` to test scoring on a cluster")

STUDY = """apiVersion: evalspec/v1
title: Two demonstration models
seed: 1
models:
  - {id: small, source: {path: demo/checkpoints/demo-small}}
  - {id: mid, source: {path: demo/checkpoints/demo-mid}}
benchmarks:
  - {id: triples, source: {file: demo/triples.jsonl}, scoring: {method: letter}}
analyses:
  - {id: accuracy, kind: intervals, method: wilson}
"""


@pytest.mark.usefixtures("workers")
def test_a_node_that_is_killed_in_mid_run_costs_nothing_but_time(
    ray_nodes: RayNodes, make: SimpleNamespace, study: ScoringTask, expected: Responses, tmp_path: Path
) -> None:
    from evalspec.scoring.executors.ray_cluster import RayExecutor, cluster_devices

    before = cluster_devices(("cpu",), ray_nodes.address)
    kill = ray_nodes.add()
    (added,) = (device for device in cluster_devices(("cpu",), ray_nodes.address) if device not in before)
    told: list[Progress] = []
    killed: list[int] = []

    def kill_once(one: Progress) -> None:
        told.append(one)
        if one.done > 100 and not killed:
            killed.append(one.done)
            kill()

    scored = score(study, RayExecutor((added, before[0]), address=ray_nodes.address), make.journal(tmp_path), kill_once)
    assert [one.warning for one in told if one.warning] == [f"the device {added.id} is lost; the others go on from the journal"]
    for benchmark, other in zip(scored.responses.benchmarks, expected.benchmarks, strict=True):
        assert benchmark.logprobs is not None
        assert other.logprobs is not None
        assert benchmark.logprobs.tobytes() == other.logprobs.tobytes()
    assert scored.responses.origins == expected.origins
    assert told[-1].done == told[-1].total


def test_a_cluster_without_accelerators_has_one_device_per_node_and_says_what_it_has_not(ray_nodes: RayNodes) -> None:
    from evalspec.scoring.executors.ray_cluster import cluster_devices

    found = cluster_devices(("auto",), ray_nodes.address)
    assert found == cluster_devices(("cpu", "cpu"), ray_nodes.address), "each node has one processor"
    assert len({device.id for device in found}) == len(found) >= 3
    assert {device.kind for device in found} == {"cpu"}
    with pytest.raises(UsageError, match="no node of the Ray cluster has accelerators"):
        cluster_devices(("cuda:0",), ray_nodes.address)


def test_a_run_on_a_cluster_gives_the_responses_of_a_run_on_this_machine(ray_nodes: RayNodes, root: Path, tmp_path: Path) -> None:
    (tmp_path / "evalspec.toml").write_text('devices = "cpu"\nthreads = 1\n')
    shutil.copytree(root / "specs" / "demo", tmp_path / "demo")
    (tmp_path / "study.yaml").write_text(STUDY)
    written = []
    for name, more in (("here", ()), ("there", ("--executor", "ray", "--ray-address", ray_nodes.address))):
        command = [sys.executable, "-m", "evalspec", "run", "study.yaml", "--no-pdf", "--cache", f"cache-{name}", "--out", name, *more]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        written.append((tmp_path / name / "responses.parquet").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("address", "told"),
    [("127.0.0.1:9", "no Ray cluster can be reached: "), ("ray://127.0.0.1:9", "is not the address of a Ray cluster; HOST:PORT is")],
)
def test_an_address_without_a_cluster_is_an_error_at_once(address: str, told: str) -> None:
    asking = f"from evalspec.scoring.executors.ray_cluster import cluster_devices; cluster_devices(('cpu',), {address!r})"
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, timeout=60, check=False)
    assert told in done.stderr
