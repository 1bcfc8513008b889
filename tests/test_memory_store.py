"""Runs in another store than folders: they are trained, resumed, rewound and replayed in memory, without any file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Component, Environment
from sigma_kernel.contracts import Store
from sigma_kernel.errors import SigmaCheckpointError
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.plugins.discovery import Plugin
from sigma_run import load
from sigma_testing import MemoryStore, StoreSuite
from sigma_testing.memory import RUNS
from sigma_testing.steering import Crash, crash, decisive, steered_environment


class TestMemoryStore(StoreSuite):
    def make(self) -> Store:
        return MemoryStore()


@pytest.fixture(autouse=True)
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep runs in memory, by a plugin that is preferred to run folders; return where they are said to be."""
    record = Component("store", "memory", "sigma_testing.memory:MemoryStore", "Runs in memory.", default_for="run")
    plugin = Plugin("acme-memory", "1", (record._replace(distribution="acme-memory"),))
    plugins = (*catalogue().plugins, plugin)
    monkeypatch.setattr("sigma_kernel.plugins.catalogue._catalogue", lambda *_: Catalogue(plugins, ["acme-memory"]))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "runs"
    RUNS.clear()


SCRIPT = {
    2: lambda sigma: sigma.set("trainer.optimiser.learning_rate", 0.02),
    4: lambda sigma: sigma.send("save"),
    7: lambda sigma: sigma.rewind(4),
}


def trained(sigma: Environment, parent: Path) -> Path:
    """Train in an environment; return where the run is."""
    sigma.folder = parent
    summary = sigma.run()
    assert summary.folder is not None
    return Path(summary.folder)


def test_a_crashed_run_is_resumed_to_the_bits_of_an_uninterrupted_one(tmp_path: Path, in_memory: Path) -> None:
    with steered_environment(SCRIPT) as sigma:
        trained(sigma, in_memory)
        whole = decisive(sigma.trainer("trainer"))
    sigma = steered_environment({**SCRIPT, 9: crash})
    with pytest.raises(Crash):
        trained(sigma, in_memory)
    second = [*MemoryStore().runs([in_memory])][1]
    with steered_environment() as again:
        again.resume(second)
        assert again.trainer("trainer").session.moment.iteration == 4
        again.run()
        assert decisive(again.trainer("trainer")) == whole
    assert [*tmp_path.iterdir()] == []


def test_a_run_is_replayed_with_its_commands_and_a_changed_row_is_found(tmp_path: Path, in_memory: Path) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = trained(sigma, in_memory)
    with steered_environment() as again:
        assert again.replay(run)[1] == {}
    journal = RUNS[run].journal
    journal[:] = [line.replace("0.02", "0.03") for line in journal]
    with steered_environment() as again:
        assert again.replay(run)[1].keys() == {"trainer"}
    assert [*tmp_path.iterdir()] == []


def test_its_curves_and_its_summary_are_read_back(in_memory: Path) -> None:
    with steered_environment(SCRIPT) as sigma:
        run = MemoryStore().open(trained(sigma, in_memory), pytest.fail, lambda run: None)
        history = sigma.trainer("trainer").history
    curves = run.curves(pytest.fail)["trainer"].curves()
    assert curves["training.loss"].values[-1] == history["training.loss"][-1]
    assert b'"status": "finished"' in (run.read("summary.json") or b"")
    assert b'"acme-memory": "1"' in (run.read("plugins.json") or b"")


def test_a_run_that_is_not_there_is_an_error(in_memory: Path) -> None:
    with steered_environment() as sigma, pytest.raises(SigmaCheckpointError, match="no such run. There are: none"):
        sigma.resume(in_memory / "small-1")


@pytest.mark.rooms
def test_the_commands_that_read_runs_open_no_folder(tmp_path: Path, sigma: Callable[..., tuple[int, str, str]]) -> None:
    def read(*command: object) -> Any:
        code, out, err = sigma(*command, "--json")
        assert code == 0, err
        return json.loads(out)

    finish = "hooks.finish.when=epoch reaches"
    memory = ("--set", "run.prefer=['acme-memory']", "--quiet")
    summary = read("run", "xor", "--set", f"{finish} 5", *memory)
    run = Path(summary["folder"])
    assert read("replay", run, "--check", "--quiet")["parameters_sha256"] == summary["parameters_sha256"]
    assert [one["status"] for one in read("runs", run.parent)["runs"]] == ["finished"]
    assert read("evaluate", run, "--on", "training")["metrics"]["training.loss"] > 0
    assert "training.loss" in read("plot", run)["runs"][run.name]
    trained = load(run)
    assert trained.history["training.loss"][-1] == trained.summary["metrics"]["training.loss"]
    assert trained.predict(np.zeros((1, 2), np.float32)).shape == (1, 2)
    whole = read("run", "xor", "--set", f"{finish} 8", *memory)
    again = read("resume", run, "--set", f"{finish} 8", "--quiet")
    assert again["parameters_sha256"] == whole["parameters_sha256"]
    assert [*tmp_path.iterdir()] == []
