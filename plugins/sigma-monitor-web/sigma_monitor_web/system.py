"""Sample what a run takes of its machine, and how its time divides, and record it beside the curves of each trainer.

Readings are at ``system.<what>.<whose>`` of a trainer: ``processor`` (cores in use), ``memory``, ``threads``, ``disk``,
``gpu0``, ``speed`` and ``phases``.  They are no part of the state of a run: no hook reads them, and no replay compares
them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
from attrs import define, field, frozen

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaAddressError, SigmaStateError

EVERY = 1.0  # seconds between two samples
PATIENCE = 2.0  # seconds to wait for the last sample
AGAIN = 10  # samples after which the processes of a run are listed again, which takes milliseconds
GIB = 2**30
IDLE = ("idle", "iowait", "guest", "guest_nice")  # times of processors in which they do nothing, or that count twice
PHASES = ("burst", "data", "hooks", "evaluation")
UNITS = {
    "processor": "cores", "memory": "GiB", "disk": "GiB", "threads": "", "speed": "per second", "phases": "share",
    "busy": "share",
}  # fmt: skip  # by the first level of a reading; of a GPU, by the last one

Readings = dict[str, float]


def unit_of(reading: str) -> str:
    """Return the unit of a reading."""
    first, _, last = reading.partition(".")
    return UNITS[last if first.startswith("gpu") else first]


# -- GPUs --------------------------------------------------------------------------------------------------------------
@frozen
class Devices:
    """The GPUs that the library of their maker lists, if it is installed; else none."""

    nvml: Any = None
    handles: tuple[Any, ...] = ()

    def read(self) -> Readings:
        """Return how busy each GPU is, and the memory in use."""
        return dict(self._read())

    def _read(self) -> Iterator[tuple[str, float]]:
        for number, handle in enumerate(self.handles):
            with suppress(self.nvml.NVMLError):  # a device may not tell one or the other
                yield f"gpu{number}.busy", self.nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
            with suppress(self.nvml.NVMLError):
                yield f"gpu{number}.memory", self.nvml.nvmlDeviceGetMemoryInfo(handle).used / GIB


def find_devices() -> Devices:
    """Return the GPUs of this machine; none without the optional library, or without a driver."""
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return Devices()
    try:
        nvml.nvmlInit()
        return Devices(nvml, tuple(map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))))
    except nvml.NVMLError:
        return Devices()


# -- the machine -------------------------------------------------------------------------------------------------------
@define(eq=False)
class MachineReader:
    """What the processes of a run take of their machine, by name: cores, GiB and numbers.

    Args:
        folder: Where the run writes, whose disk is read.
        devices: The GPUs.
    """

    folder: Path | None = None
    devices: Devices = field(factory=find_devices)
    _run: list[psutil.Process] = field(factory=list, init=False)
    _samples: int = field(default=0, init=False)
    _before: tuple[float, float, float] | None = field(default=None, init=False)

    def read(self) -> Readings:
        """Return the readings now; those of processors are of the time since the last call, and need one before."""
        if self._samples % AGAIN == 0:
            own = psutil.Process()
            self._run = [own, *own.children(recursive=True)]
        self._samples += 1
        taken = [taken for process in self._run if (taken := _read_process(process)) is not None]
        memory, used = psutil.virtual_memory(), psutil.cpu_times()
        busy = sum(seconds for name, seconds in used._asdict().items() if name not in IDLE)
        return {
            **self._count_cores(time.monotonic(), sum(each[0] for each in taken), busy),
            "memory.run": sum(each[1] for each in taken) / GIB,
            "memory.machine": (memory.total - memory.available) / GIB,
            "threads.run": float(sum(each[2] for each in taken)),
            **({} if self.folder is None else {"disk.free": psutil.disk_usage(str(self.folder)).free / GIB}),
            **self.devices.read(),
        }

    def _count_cores(self, now: float, run: float, machine: float) -> Readings:
        """Return how many cores were in use since the last call; processes that have ended count no more."""
        before, self._before = self._before, (now, run, machine)
        if before is None or now <= before[0]:
            return {}
        passed = now - before[0]
        cores = {"processor.run": (run - before[1]) / passed, "processor.machine": (machine - before[2]) / passed}
        return {name: max(0.0, value) for name, value in cores.items()}


def _read_process(process: psutil.Process) -> tuple[float, float, int] | None:
    """Return seconds of processors, bytes and threads of a process; None if it has ended, or may not be read."""
    try:
        with process.oneshot():
            times = process.cpu_times()
            return times.user + times.system, float(process.memory_info().rss), process.num_threads()
    except psutil.Error:
        return None


# -- trainers ----------------------------------------------------------------------------------------------------------
@frozen
class TrainerSample:
    """Where a trainer was when it was sampled: iterations, seconds of training, and the seconds of each phase."""

    iteration: float
    second: float
    phases: Mapping[str, float]

    def pace_since(self, before: TrainerSample) -> Readings:
        """Return iterations a second, and the share of the time that each phase took, of hooks without evaluation."""
        passed = self.second - before.second
        spent = {name: self.phases[name] - before.phases[name] for name in self.phases}
        if "hooks" in spent:
            spent["hooks"] -= spent.get("evaluation", 0.0)
        shares = {f"phases.{name}": min(1.0, max(0.0, seconds / passed)) for name, seconds in spent.items()}
        return {"speed.iterations": (self.iteration - before.iteration) / passed, **shares}


@define(eq=False)
class Sampler:
    """Record the readings of the machine, and of each trainer, for trainers that have gone on since the last sample."""

    view: View
    machine: MachineReader
    _before: dict[str, TrainerSample] = field(factory=dict, init=False)

    def sample(self) -> None:
        """Record what there is to record now."""
        readings = self.machine.read()
        for name in self.view.trainers() if self.view.status() == "running" else ():
            with suppress(SigmaAddressError, SigmaStateError):  # it is not prepared yet, or not any more
                self._record(name, readings)

    def _record(self, name: str, readings: Readings) -> None:
        now, before = self._read_progress(name), self._before.get(name)
        self._before[name] = now
        if before is None or now.iteration <= before.iteration or now.second <= before.second:  # paused, or gone back
            return
        own = {**readings, **now.pace_since(before)}
        self.view.trainer(name).record(own, {reading: unit_of(reading) for reading in own})

    def _read_progress(self, name: str) -> TrainerSample:
        phases = {phase: float(self.view.get(f"{name}.phases.{phase}")) for phase in PHASES}
        return TrainerSample(self.view.get(f"{name}.iteration"), self.view.get(f"{name}.second"), phases)


@contextmanager
def sampling(view: View) -> Iterator[None]:
    """Sample in a thread, until the run or the block is over."""
    over, sampler = threading.Event(), Sampler(view, MachineReader(view.folder))

    def sample() -> None:
        try:
            while not over.wait(EVERY):
                sampler.sample()
        except (OSError, psutil.Error) as error:
            view.log(f"dashboard: what the run takes of this machine cannot be read: {error}. Training goes on.")

    thread = threading.Thread(target=sample, name="sigma-system", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE)
