"""How is scoring run on the machines of a Ray cluster?  An actor per device runs the same worker; what it scores comes back and is written here.

The folders of the models must be found under the same path on every node. The journal stays on the machine that asks, under its lock.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from evalspec import __version__
from evalspec.artifacts.schedule import Device
from evalspec.artifacts.work import Assignment, WorkerEvent, WorkOrder
from evalspec.devices import AUTO
from evalspec.errors import Diagnostic, EvalspecError, ScoringError, UsageError
from evalspec.protocols import Journal
from evalspec.scoring.dispatch import FAILED, Dispatch, Ended
from evalspec.scoring.executors.process import WorkerProcess
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.queue import Estimates, Queue
from evalspec.scoring.relay import records_of
from evalspec.scoring.silence import LEAST_SILENCE, Watch

ANY = "auto"
"""The cluster that this machine belongs to."""

PREFIX = 12
"""How much of a node's id names it."""

PATIENCE = 60.0
"""Seconds that an actor has to begin on a node that may be gone."""

GRACE = 5.0
"""Seconds that a thread has to let go of its lock when a run is stopped."""

Tell = Callable[[WorkerEvent], None]
Said = WorkerEvent | Ended
Heard = Said | Exception | None
"""What a device has to say: an event, how its worker ended, a fault of ours, or nothing any more because it is lost."""


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Be connected to a cluster; raises ScoringError where there is none, UsageError for what is no address."""
    if ray.is_initialized():
        yield
        return
    try:
        if address is not None:
            _knock(address)
        ray.init(address=address or ANY, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (OSError, ValueError, RuntimeError, RayError) as error:
        told = str(error).strip().splitlines()[0]
        raise ScoringError(
            f"no Ray cluster can be reached: {told}", hint="start one with `ray start --head`, or name it with --ray-address"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def cluster_devices(asked: Sequence[str], address: str | None) -> tuple[Device, ...]:
    """Return the devices that are asked for, of every node that has them; `auto` is every accelerator, else the processors of each node.

    Raises UsageError where no node has any, ScoringError where there is no cluster.
    """
    with connected(address):
        nodes = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: str(node["NodeID"]))
    accelerated = any(_count(node, "GPU") for node in nodes) if tuple(asked) == (AUTO,) else asked[0] != "cpu"
    found = tuple(device for node in nodes for device in _devices_of(node, asked, accelerated=accelerated))
    if not found:
        raise UsageError(f"no node of the Ray cluster has {'accelerators' if accelerated else 'processors'}", hint="ask for other `devices`")
    return found


class RayExecutor:
    """Runs work orders on devices of a cluster; a node that is lost costs the batches that it had under way."""

    def __init__(
        self,
        devices: Sequence[Device],
        *,
        address: str | None = None,
        threads: int | None = None,
        estimates: Estimates | None = None,
        silence: float = LEAST_SILENCE,
    ) -> None:
        self._devices = tuple(devices)
        self._address = address
        self._threads = threads
        self._estimates = estimates or Estimates()
        self._silence = silence

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can score."""
        return self._devices

    def run(self, orders: Sequence[WorkOrder], journal: Journal, tell: Tell) -> None:
        """Score what the journal lacks; raises ScoringError with every model that cannot be scored and every worker that keeps crashing."""
        dispatch = Dispatch(Queue(orders, journal, self._estimates), [device.id for device in self._devices], tell)
        heard: SimpleQueue[tuple[str, Heard]] = SimpleQueue()
        written = FileJournal(journal.folder, journal.secret_file)
        with connected(self._address):
            posts = {device.id: _Post(device, (self._threads, self._silence), written, heard) for device in self._devices}
            try:
                while _give_work(posts, dispatch):
                    device, said = heard.get()
                    if isinstance(said, Exception):
                        raise said
                    if said is None:
                        posts.pop(device, None)  # lost while its next job was on the way, a device says so twice
                        dispatch.lost(device)
                    elif isinstance(said, Ended):
                        dispatch.ended(device, said)
                    else:
                        dispatch.heard(device, said)
            finally:
                for post in posts.values():
                    post.close()
        dispatch.conclude()


class Hand:
    """What runs on a node: a worker, started when there is something to score."""

    def __init__(self, arguments: Sequence[str], watch: Watch) -> None:
        self._arguments = arguments
        self._watch = watch
        self._worker: WorkerProcess | None = None

    def version(self) -> str:
        """Return the version of evalspec on this node."""
        return __version__

    def score(self, assignment: Assignment) -> Iterator[Said]:
        """Give what the worker says until it is done with an assignment, or how it ended."""
        if self._worker is None:
            self._worker = WorkerProcess(self._arguments, self._watch)
        for said in self._worker.converse(assignment):
            if isinstance(said, Ended):
                self._worker = None
            yield said


class _Post:
    """A device of the cluster as seen from here: a thread that hands over its jobs, holds their locks and writes what comes back."""

    def __init__(self, device: Device, limits: tuple[int | None, float], journal: FileJournal, heard: SimpleQueue[tuple[str, Heard]]) -> None:
        self._device = device
        self._threads, self._silence = limits
        self._journal = journal
        self._heard = heard
        self._assignments: SimpleQueue[Assignment | None] = SimpleQueue()
        self._closed = False
        self._hand: Any = None  # an actor handle: Ray has no static types for it
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def send(self, assignment: Assignment) -> None:
        """Let the device have its next job."""
        self._assignments.put(assignment)

    def close(self) -> None:
        """End the worker and its actor, whatever they do."""
        self._closed = True
        if self._hand is not None:
            ray.kill(self._hand)
        self._assignments.put(None)
        self._thread.join(GRACE)

    def _serve(self) -> None:
        for assignment in iter(self._assignments.get, None):
            try:
                self._attempt(assignment)
            except EvalspecError as error:
                for diagnostic in error.diagnostics:
                    self._fail(assignment, diagnostic)
            except OSError as error:
                self._fail(assignment, _unwritable(error, self._journal))
                self._say(Ended(FAILED))
            except Exception as error:  # noqa: BLE001 - raised where it is heard
                self._say(error)

    def _attempt(self, assignment: Assignment) -> None:
        """Score a job; where the node or the actor is gone, find out which, and say so."""
        try:
            self._score(assignment)
        except RayError as error:
            self._hand = None
            if not self._closed:
                self._say(Ended(1, str(error)) if self._engage() else None)

    def _score(self, assignment: Assignment) -> None:
        """Score a job and keep it; raises RayError where the node or the actor is gone."""
        if self._hand is None and not self._engage():
            self._say(None)
            return
        work, model = assignment.work, assignment.order.model

        def warn(message: str) -> None:
            self._say(WorkerEvent(kind="warning", model=model, benchmark=work.benchmark, message=message))

        waiting = "another run is scoring this; waiting for its results"
        with self._journal.writing(assignment.key().digest(), waiting=lambda: warn(waiting)) as writer:
            if writer.set_aside is not None:
                warn(f"{writer.why}; the file was put aside as {writer.set_aside.name} and is scored again")
            given = assignment.model_copy(update={"recorded": records_of(writer.record)})
            for reference in self._hand.score.options(num_returns="streaming").remote(given):
                said: Said = ray.get(reference)
                if isinstance(said, WorkerEvent) and said.kind == "record" and said.record is not None:
                    writer.append(said.record)
                elif isinstance(said, WorkerEvent) and said.kind == "anew":
                    writer.start_over()
                    warn(f"{writer.why}; the file was put aside as {writer.set_aside and writer.set_aside.name} and is scored again")
                else:
                    self._say(said)

    def _engage(self) -> bool:
        """Have an actor on the device's node; returns whether the node still answers."""
        kind = self._device.id.rpartition("/")[2].partition(":")[0]
        threads = self._threads or (1 if kind == "cpu" else None)
        arguments = ["--journal", "-", "--name", self._device.id, "--device", "cuda:0" if kind == "cuda" else "cpu"]
        arguments += [] if threads is None else ["--threads", str(threads)]
        try:
            node = next(str(node["NodeID"]) for node in ray.nodes() if node["Alive"] and node["NodeID"].startswith(_node(self._device)))
            where = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
            actor = ray.remote(num_cpus=1, num_gpus=int(kind == "cuda"), max_restarts=0, scheduling_strategy=where)(Hand)
            hand = actor.remote(arguments, Watch(self._silence, accelerated=kind == "cuda"))
            there = ray.get(hand.version.remote(), timeout=PATIENCE)
        except (RayError, StopIteration):
            return False
        if there != __version__:
            raise ScoringError(
                f"node {_node(self._device)} has evalspec {there}; this is {__version__}", hint="install the same version on every node"
            )
        self._hand = hand
        return True

    def _fail(self, assignment: Assignment, fault: Diagnostic) -> None:
        self._say(WorkerEvent(kind="failed", model=assignment.order.model, message=fault.message, hint=fault.hint))

    def _say(self, said: Heard) -> None:
        self._heard.put((self._device.id, said))


def _knock(address: str) -> None:
    """Raise OSError where nobody listens, which Ray itself would take minutes to find out."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f"{address!r} is not the address of a Ray cluster; HOST:PORT is", hint="`ray start --head` prints it")
    socket.create_connection((host, int(port)), timeout=GRACE).close()


def _give_work(posts: dict[str, _Post], dispatch: Dispatch) -> bool:
    """Give every idle device its next job; returns whether any device has one."""
    for device, post in posts.items():
        assignment = dispatch.assign(device) if dispatch.idle(device) else None
        if assignment is not None:
            post.send(assignment)
    busy = any(not dispatch.idle(device) for device in posts)
    if not busy:
        dispatch.give_up()
    return busy


def _devices_of(node: dict[str, Any], asked: Sequence[str], *, accelerated: bool) -> Iterator[Device]:
    kind, host = "cuda" if accelerated else "cpu", node["NodeManagerHostname"]
    has = _count(node, "GPU" if accelerated else "CPU")
    count = min(has, (has if accelerated else 1) if tuple(asked) == (AUTO,) else len(asked))
    sort = next((name.partition(":")[2] for name in node["Resources"] if name.startswith("accelerator_type:")), "accelerator")
    memory = None if accelerated else int(node["Resources"].get("memory", 0)) // max(count, 1) or None
    for number in range(count):
        name = f"{sort if accelerated else 'processors'} of {host}"
        yield Device(id=f"{node['NodeID'][:PREFIX]}/{kind}:{number}", kind=kind, memory_bytes=memory, name=name)


def _count(node: dict[str, Any], resource: str) -> int:
    return int(node["Resources"].get(resource, 0))


def _node(device: Device) -> str:
    return device.id.partition("/")[0]


def _unwritable(error: OSError, journal: FileJournal) -> Diagnostic:
    hint = "make room or mend the permissions; what was scored is kept, and the same command goes on from there"
    return Diagnostic(f"scoring stopped: {error.filename or journal.folder}: {error.strerror or error}", hint=hint)
