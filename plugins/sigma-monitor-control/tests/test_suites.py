"""The monitor passes the suite of monitors, and disturbs no training."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import Environment, Monitor, every
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control import ControlMonitor, connect, monitor, places
from sigma_monitor_control.discovery import running
from sigma_testing import Do, MonitorSuite, Slow, Sweep, small_environment, state_bytes


class TestControlMonitor(MonitorSuite):
    @pytest.fixture(autouse=True)
    def _home(self, home: Path) -> None:
        self.home = home

    def make(self) -> Monitor:
        return ControlMonitor()


@pytest.fixture
def on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGMA_CONTROL")
    monkeypatch.setattr(monitor, "_TOLD", set())
    monkeypatch.setattr("sigma_kernel.running.GRACE", 60.0)  # on a slow machine, a monitor ends late


def seen_while(sigma: Environment, expected: bool = True) -> list[str]:
    """Train twice, and return the names of the runs that could be steered meanwhile; wait for those ``expected``."""
    seen: list[str] = []

    def look(context: Any) -> None:
        end = time.monotonic() + 60
        while not (there := running()) and expected and time.monotonic() < end:
            time.sleep(0.01)
        for found in there:
            seen.append(found.name)
            found.close()

    trainer = sigma.trainer("trainer")
    trainer.hooks = {"look": Do(every=every(1, "epoch"), does=look)}
    for _ in range(2):
        trainer.fit(epochs=1)
    return seen


def test_every_fit_can_be_steered(on: None, home: Path) -> None:
    with small_environment(Sweep()) as sigma:
        assert seen_while(sigma) == ["small", "small"]
        assert running() == []
        assert [*home.iterdir()] == []
        assert [text for _, text in sigma.messages.entries_after(0)] == []


def test_a_run_that_nobody_looks_at_imports_little_for_it(on: None) -> None:
    code = """if True:
        import sys
        from sigma_testing import Sweep, small_environment
        sys.modules["sigma_kernel.running"].GRACE = 60.0
        with small_environment(Sweep()) as sigma:
            sigma.control = False
            sigma.trainer("trainer").fit(epochs=1)
            before = {*sys.modules}
            sigma.control = True
            sigma.trainer("trainer").fit(epochs=1)
        print(*sorted({*sys.modules} - before))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    own = [f"sigma_monitor_control.{name}" for name in ("aside", "budget", "monitor", "places", "protocol", "server")]
    assert done.stdout.split() == sorted([*own, "sigma_monitor_control.protocol.documents"])
    assert done.stderr == ""


def test_control_is_switched_off_by_the_environment_or_a_variable(
    on: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.control = False
        assert seen_while(sigma, expected=False) == []
    monkeypatch.setenv("SIGMA_CONTROL", "off")
    with small_environment(Sweep()) as sigma:
        assert seen_while(sigma, expected=False) == []
    assert not home.exists()


def test_control_is_one_of_the_settings_of_an_environment() -> None:
    assert Environment().control is True
    with pytest.raises(SigmaConfigError, match="control"):
        Environment(control="off")  # type: ignore[arg-type]


def test_a_monitor_that_was_configured_takes_the_place_of_the_default_one(on: None) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.monitors = {"control": ControlMonitor()}
        assert seen_while(sigma) == ["small", "small"]


def test_without_a_socket_training_warns_once_and_goes_on(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "directories", lambda: [Path("/dev/null")])
    with small_environment(Sweep()) as sigma:
        assert seen_while(sigma, expected=False) == []
        assert sigma.get("trainer.epoch") == 2
        (text,) = [text for _, text in sigma.messages.entries_after(0)]
    assert text.startswith("monitor 'control' failed: other shells cannot steer this run, as no socket can be created")
    assert text.endswith("switch this off: [run] control = false.; training continues")


def test_being_watched_changes_no_bit(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for watched in (True, False):
        with small_environment(Sweep()) as sigma:
            sigma.control = watched
            seen_while(sigma, watched)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert found[0] == found[1]


def test_a_paused_run_is_steered_until_it_stops(on: None) -> None:
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        training = sigma.run_async(progress=False)
        with connect(wait=60) as run:
            at = run.send("pause")["trainer"]["iteration"]
            assert run.status()["status"] == "paused"
            run.set("learning_rate", 0.25)
            assert run.get("learning_rate") == 0.25
            weights = run.get("trainer.network.layers.weights")["array"]
            assert weights["shape"] == [3, 1]
            run.send("step", count=3)
            run.send("stop")
        summary = training.result(60)
    assert summary.status == "stopped"
    assert sigma.get("trainer.iteration") >= at
    assert sigma.get("trainer.optimiser.learning_rate") == 0.25


def test_the_client_that_stops_a_run_hears_of_it(on: None) -> None:
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        training = sigma.run_async(progress=False)
        with connect(wait=60) as run:
            assert run.send("stop").keys() == {"trainer"}
        assert training.result(60).status == "stopped"
