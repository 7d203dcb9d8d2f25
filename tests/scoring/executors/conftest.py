"""A study for executors, what it must come to, and a look at the workers that are at it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.protocols import ignore_progress
from evalspec.scoring.execute import ScoringTask, score

MARK = "EVALSPEC_TEST_WORKERS"
PATIENCE = 120.0

Workers = Callable[[], set[int]]


@pytest.fixture(scope="session")
def study(make: SimpleNamespace, llama: Path, tmp_path_factory: pytest.TempPathFactory) -> ScoringTask:
    """Three models on two benchmarks, of three shards and of one."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("more")
    folders = {
        "llama": llama,
        "larger": make.checkpoint(folder / "larger", seed=2, num_hidden_layers=4),
        "gpt2": make.checkpoint(folder / "gpt2", architecture="gpt2", bos=True),
    }
    four, three = make.questions(150), make.questions(40, choices=3)
    benchmarks = [make.benchmark("four", four, LetterScoring(method="letter")), make.benchmark("three", three, OptionScoring(method="option"))]
    rule = BatchRule(token_budget=256, overhead_tokens=4, shard_questions=60)
    protocol = make.protocol({model: make.identity(path) for model, path in folders.items()}, benchmarks, rule=rule)
    return ScoringTask(protocol, {"four": four, "three": three}, folders, {})


@pytest.fixture(scope="session")
def expected(make: SimpleNamespace, study: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> Responses:
    """What one process gives, without any executor of ours."""
    return score(study, make.executor(), make.journal(tmp_path_factory.mktemp("expected")), ignore_progress).responses


@pytest.fixture(scope="session", autouse=True)
def marked() -> Iterator[str]:
    """Mark the environment of every process that these tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(os.getpid()))
        yield f"{MARK}={os.getpid()}"


@pytest.fixture
def workers(marked: str) -> Iterator[Workers]:
    """Look up the scoring workers that these tests started and that still live; none may outlive its test."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("workers are found through /proc")

    def living() -> set[int]:
        found = set()
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and b"evalspec.scoring.worker" in (folder / "cmdline").read_bytes():
                    found |= {int(folder.name)} if marked.encode() in (folder / "environ").read_bytes().split(b"\0") else set()
        return found

    yield living
    deadline = time.monotonic() + PATIENCE
    while living():
        assert time.monotonic() < deadline, "a worker outlived its run"
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class RayNodes:
    """A Ray cluster of processes on this machine; each of its working nodes has one processor."""

    address: str
    add: Callable[[], Callable[[], None]]


@pytest.fixture(scope="session")
def ray_nodes(marked: str) -> Iterator[RayNodes]:
    """Three nodes that score, and a way to add one, which gives a way to kill it."""
    del marked  # the environment of the nodes, and of the workers on them
    pytest.importorskip("ray", reason="Ray is not installed; install the extra `ray` to test scoring on a cluster")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})

        def add() -> Callable[[], None]:
            node = cluster.add_node(num_cpus=1, include_dashboard=False)
            return lambda: cluster.remove_node(node, allow_graceful=False)

        for _ in range(3):
            add()
        ray.init(address=cluster.address, include_dashboard=False, log_to_driver=False, configure_logging=False)
        yield RayNodes(cluster.address, add)
        ray.shutdown()
        cluster.shutdown()
