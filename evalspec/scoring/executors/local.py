"""How is scoring run on this machine?  A worker process per device, watched: events in, restart after a crash, ended with its parent."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence

from evalspec.artifacts.schedule import Device, taken_together
from evalspec.artifacts.work import Assignment, WorkerEvent, WorkOrder
from evalspec.errors import Diagnostic, ScoringError
from evalspec.protocols import Journal
from evalspec.scoring.dispatch import Dispatch
from evalspec.scoring.executors.devices import local_devices, threads_of
from evalspec.scoring.executors.process import WorkerProcess
from evalspec.scoring.queue import Estimates, Queue
from evalspec.scoring.silence import LEAST_SILENCE, WAKING, Clock, Watch

Tell = Callable[[WorkerEvent], None]


class LocalExecutor:
    """Runs work orders on devices of this machine, each of which has a worker that keeps its model loaded.

    Assignments travel through a worker's standard input, so that no question stands in a file; when this process ends, however it ends,
    that input closes and the worker ends too. A worker that finishes nothing for `silence` seconds, and for much longer than its batch should
    take, is ended and counts as crashed.
    """

    def __init__(
        self,
        devices: Sequence[Device] | None = None,
        *,
        threads: int | None = None,
        estimates: Estimates | None = None,
        silence: float = LEAST_SILENCE,
    ) -> None:
        self._devices = tuple(devices or local_devices(("cpu",), threads))
        self._threads = threads_of(self._devices, threads)
        self._estimates = estimates or Estimates()
        self._silence = silence

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can score."""
        return self._devices

    def run(self, orders: Sequence[WorkOrder], journal: Journal, tell: Tell) -> None:
        """Score what the journal lacks; raises ScoringError with every model that cannot be scored and every worker that keeps crashing.

        Models that no single accelerator has room for come last, on all of them together.
        """
        together = taken_together(self._devices)
        large = [order.model for order in orders if together is not None and self._estimates.room.get(order.model) == frozenset({together.id})]
        turns = [(self._devices, [order for order in orders if order.model not in large])]
        if together is not None:
            turns.append(((together,), [order for order in orders if order.model in large]))
        failures: list[Diagnostic] = []
        for devices, some in turns:
            try:
                self._supervise(devices, some, journal, tell)
            except ScoringError as error:
                failures += error.diagnostics
        if failures:
            raise ScoringError(failures)

    def _supervise(self, devices: Sequence[Device], orders: Sequence[WorkOrder], journal: Journal, tell: Tell) -> None:
        dispatch = Dispatch(Queue(orders, journal, self._estimates), [device.id for device in devices], tell)
        watches = {device.id: Watch(self._silence, accelerated=device.kind != "cpu") for device in devices}
        _Crew(devices, dispatch, lambda device: WorkerProcess(self._arguments(device, journal), watches[device.id])).work()
        dispatch.conclude()

    def _arguments(self, device: Device, journal: Journal) -> list[str]:
        arguments = ["--journal", str(journal.folder), "--name", device.id, "--device", torch_name(device)]
        if journal.secret_file is not None:
            arguments += ["--secret", str(journal.secret_file)]
        if self._threads is not None:
            arguments += ["--threads", str(self._threads)]
        return arguments


def torch_name(device: Device) -> str:
    """Return what torch calls a device; several together are placed by the library that spreads a model over them."""
    return {"cpu": "cpu", "cuda": device.id}.get(device.kind, "auto")


class _Crew:
    """The workers of one run, each started when its device first gets something to do; none outlives `work`."""

    def __init__(self, devices: Sequence[Device], dispatch: Dispatch, start: Callable[[Device], WorkerProcess]) -> None:
        self._devices = devices
        self._dispatch = dispatch
        self._start = start
        self._workers: dict[str, WorkerProcess] = {}
        self._selector = selectors.DefaultSelector()

    def work(self) -> None:
        """Keep every device busy until nothing is left that one of them takes."""
        clock = Clock()
        try:
            while self._give_work():
                ready = self._selector.select(WAKING)
                passed = clock.step()
                for worker in self._workers.values():
                    worker.watch.passed(passed)
                for key, _ in ready:
                    device, worker, attend = key.data
                    if self._workers.get(device.id) is worker:
                        attend(device, worker)
                self._end_silent()
        finally:
            self._selector.close()
            for worker in self._workers.values():
                worker.kill()

    def _give_work(self) -> bool:
        """Give every idle device its next job; returns whether any device has one."""
        for device in self._devices:
            assignment = self._dispatch.assign(device.id) if self._dispatch.idle(device.id) else None
            if assignment is not None:
                self._send(device, assignment)
        busy = any(not self._dispatch.idle(device.id) for device in self._devices)
        if not busy:
            self._dispatch.give_up()
        return busy

    def _send(self, device: Device, assignment: Assignment) -> None:
        worker = self._workers.get(device.id)
        if worker is None:
            worker = self._workers[device.id] = self._start(device)
            self._selector.register(worker.voice, selectors.EVENT_READ, (device, worker, self._hear))
        worker.send(assignment)
        self._selector.register(worker.ear, selectors.EVENT_WRITE, (device, worker, self._speak))

    def _speak(self, _device: Device, worker: WorkerProcess) -> None:
        if worker.write():
            self._selector.unregister(worker.ear)

    def _hear(self, device: Device, worker: WorkerProcess) -> None:
        events = worker.read()
        for event in events or ():
            self._dispatch.heard(device.id, event)
        if events is None:
            self._end(device, worker)

    def _end_silent(self) -> None:
        """End every worker that has been silent for too long; what others have said since is heard first."""
        for device in self._devices:
            worker = self._workers.get(device.id)
            if worker is not None and worker.watch.overdue():
                self._end(device, worker)

    def _end(self, device: Device, worker: WorkerProcess) -> None:
        for pipe in (worker.voice, worker.ear):
            if pipe.fileno() in self._selector.get_map():
                self._selector.unregister(pipe)
        del self._workers[device.id]
        self._dispatch.ended(device.id, worker.end())
