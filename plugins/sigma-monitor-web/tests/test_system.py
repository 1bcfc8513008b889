"""Readings of the machine: against what the system and closed forms say, and beside the curves of a run."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from attrs import define, field

from sigma_kernel import Environment
from sigma_kernel.curves import Window
from sigma_monitor_web import system
from sigma_monitor_web.archive import Archive
from sigma_monitor_web.monitor import WebMonitor
from sigma_monitor_web.system import GIB, Devices, MachineReader, Sampler, find_devices, sampling, unit_of
from sigma_run.launcher import main
from sigma_testing import FakeView
from sigma_testing.steering import wait_until


# -- the machine -------------------------------------------------------------------------------------------------------
def test_memory_threads_and_disk_are_those_of_the_system(tmp_path: Path) -> None:
    block = bytearray(64 << 20)
    readings, own = MachineReader(tmp_path, Devices()).read(), psutil.Process()
    assert readings["memory.run"] * GIB >= own.memory_info().rss * 0.9 > len(block)
    assert 0 < readings["memory.run"] < readings["memory.machine"] * 1.5
    assert readings["threads.run"] >= threading.active_count()
    assert readings["disk.free"] == pytest.approx(psutil.disk_usage(str(tmp_path)).free / GIB, rel=0.05)
    assert "disk.free" not in MachineReader(None, Devices()).read()


def test_a_core_that_works_is_counted() -> None:
    machine = MachineReader(None, Devices())
    assert "processor.run" not in machine.read()  # there is nothing to compare it with
    began, worked = time.monotonic(), time.process_time()
    while time.process_time() - worked < 0.4:
        sum(range(1000))
    cores = machine.read()["processor.run"]
    passed = time.monotonic() - began  # longer, where others work
    assert cores == pytest.approx((time.process_time() - worked) / passed, rel=0.2)  # Linux counts in hundredths


def test_a_process_that_has_ended_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MachineReader(None, Devices())
    before = machine.read()

    class Ended:
        def oneshot(self) -> Any:
            raise psutil.NoSuchProcess(1)

    machine._run.append(Ended())  # type: ignore[arg-type]
    assert machine.read()["threads.run"] == pytest.approx(before["threads.run"], abs=2)


@define(eq=False)
class Driver:
    """The library of a maker of GPUs, as it answers where there are two; the second tells its memory alone."""

    count: int = 2
    inits: list[str] = field(factory=list)

    class NVMLError(Exception):
        """The library's error."""

    def nvmlInit(self) -> None:  # noqa: N802
        self.inits.append("init")
        if not self.count:
            raise self.NVMLError("no driver")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        return number

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        if handle:
            raise self.NVMLError("not supported")
        return SimpleNamespace(gpu=75)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=(handle + 1) * GIB)


def test_gpus_are_read_where_their_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Driver())
    assert find_devices().read() == {"gpu0.busy": 0.75, "gpu0.memory": 1.0, "gpu1.memory": 2.0}
    monkeypatch.setitem(sys.modules, "pynvml", Driver(count=0))
    assert find_devices().read() == {}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_devices().read() == {}


# -- trainers ----------------------------------------------------------------------------------------------------------
def at(iteration: int, second: float, burst: float, hooks: float = 0.0, evaluation: float = 0.0) -> dict[str, Any]:
    phases = {"burst": burst, "data": 0.0, "hooks": hooks, "evaluation": evaluation}
    return {
        "trainer.iteration": iteration,
        "trainer.second": second,
        **{f"trainer.phases.{name}": seconds for name, seconds in phases.items()},
    }


def test_the_speed_and_the_phases_are_those_since_the_last_sample() -> None:
    view = FakeView(values=at(100, 1.0, 0.9))
    sampler = Sampler(view, MachineReader(None, Devices()))
    sampler.sample()
    assert view.recorded == []
    view.values = at(300, 3.0, 2.4, hooks=0.5, evaluation=0.3)
    sampler.sample()
    found = {name: value for name, (value, _) in view.recorded[0].items()}
    assert found["speed.iterations"] == 100.0
    assert found["phases.burst"] == 0.75
    assert found["phases.hooks"] == pytest.approx(0.1)  # without the evaluation that hooks asked for
    assert found["phases.evaluation"] == pytest.approx(0.15)
    assert {name: unit for name, (_, unit) in view.recorded[0].items()} == {name: unit_of(name) for name in found}


@pytest.mark.parametrize("then", [at(100, 1.0, 0.9), at(40, 1.2, 1.0)], ids=["it is paused", "it has gone back"])
def test_nothing_is_recorded_of_a_trainer_that_has_not_gone_on(then: dict[str, Any]) -> None:
    view = FakeView(values=at(100, 1.0, 0.9))
    sampler = Sampler(view, MachineReader(None, Devices()))
    sampler.sample()
    view.values = then
    sampler.sample()
    assert view.recorded == []


def test_nothing_is_recorded_before_a_trainer_is_prepared_or_after_the_end() -> None:
    view = FakeView()
    sampler = Sampler(view, MachineReader(None, Devices()))
    sampler.sample()
    view.state = "finished"
    view.values = at(1, 1.0, 1.0)
    sampler.sample()
    view.values = at(2, 2.0, 2.0)
    sampler.sample()
    assert view.recorded == []


def test_units_are_known_for_every_reading() -> None:
    names = ("processor.run", "memory.machine", "disk.free", "threads.run", "gpu0.busy", "gpu3.memory", "phases.data")
    assert [unit_of(name) for name in names] == ["cores", "GiB", "GiB", "", "share", "GiB", "share"]


def test_a_machine_that_cannot_be_read_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "EVERY", 0.01)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: (_ for _ in ()).throw(PermissionError("no /proc here")))
    view = FakeView()
    with sampling(view):
        wait_until(lambda: view.texts)
        time.sleep(0.05)
    assert len(view.texts) == 1
    assert "no /proc here" in view.texts[0]


# -- a run -------------------------------------------------------------------------------------------------------------
def test_readings_are_stored_with_the_curves_and_a_replay_is_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "EVERY", 0.05)
    with Environment("sampled", folder=tmp_path) as sigma:
        trainer = sigma.create_trainer("trainer", backend="numpy")
        trainer.network = "input(3) + dense(200) + output(2) + squared_difference()"
        trainer.data = {"inputs": [[1.0, 2.0, 3.0]] * 200, "targets": [[1.0, 0.0]] * 200}
        trainer.optimiser, trainer.batch_size, trainer.epochs = "gradient_descent", 10, 400
        trainer.optimiser = {"type": "gradient_descent", "learning_rate": 1e-6}
        sigma.monitors["browser"] = WebMonitor(open=False)
        sigma.run()
        folder, live = sigma.run_folder, dict(sigma.registry.find("trainer.system.**"))
        kinds = sigma.registry.kinds("trainer.system.memory.run")
        assert folder is not None
    assert {"trainer.system.memory.run", "trainer.system.speed.iterations", "trainer.system.phases.burst"} < {*live}
    assert [kind.unit for kind, _ in kinds.values()] == ["GiB"]
    stored = Archive(folder)
    _, stretches = stored.points("trainer.system.memory.run", Window())
    (curve,) = [stretch.curve for stretch in stretches]
    assert len(curve.values) >= 2
    assert (curve.values > 0).all()
    assert curve.values[-1] == live["trainer.system.memory.run"]
    assert stored.get("trainer.system.memory.run") == live["trainer.system.memory.run"]
    assert not any("system" in str(row) for row in stored.read_rows())  # nothing in the journal
    summary = (folder / "summary.json").read_text("utf-8")
    assert "system." not in summary  # it is no result
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
