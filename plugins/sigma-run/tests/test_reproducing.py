"""The command that a run is trained again by, which trains the same parameters again."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_run.overview import reproduce_run
from sigma_store import FolderStore


def sigma(*words: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "sigma_run", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(folder: Path, *words: str) -> Path:
    """Run a command of ``sigma``; return the new run folder."""
    before = set((folder / "runs").glob("*")) if (folder / "runs").exists() else set()
    sigma(*words, folder=folder)
    (new,) = set((folder / "runs").glob("*")) - before
    return new


def reproduce(run: Path) -> dict[str, Any]:
    return reproduce_run(run, FolderStore().open(run, print, lambda run: None))


def digest(run: Path) -> str:
    return str(json.loads((run / "summary.json").read_text())["parameters_sha256"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("again")


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    return train(folder, "run", "iris", "--seed", "7", "--set", "trainer.optimiser.learning_rate=0.02", "--epochs", "2")


@pytest.mark.long
def test_a_recipe_is_trained_again_by_what_differs_from_it(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    found = reproduce(run)
    words = shlex.split(found["command"])
    assert words[:3] == ["sigma", "run", "iris"]
    assert words[-2:] == ["--seed", "7"]
    assert {"trainer.optimiser.learning_rate=0.02", "trainer.epochs=2"} <= set(words)
    assert len(words) == 3 + 2 + 2 + 2
    again = train(folder, *words[1:])
    assert digest(again) == digest(run)
    assert found["replay"] == f"sigma replay runs/{run.name} --check"
    assert (found["seed"], found["edits"]) == (7, 0)


@pytest.mark.long
def test_a_configuration_of_ones_own_is_trained_again_by_the_copy_in_the_run_folder(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = (run / "config.toml").read_text().replace('name = "iris"', 'name = "mine_of_it"')
    text = text.replace('folder = ".."', 'folder = "runs"')  # of a copy beside the runs
    (folder / "mine.toml").write_text(text.replace("seed = 7", "seed = 8"))
    own = train(folder, "run", "mine.toml")
    found = reproduce(own)
    words = shlex.split(found["command"])
    assert words == ["sigma", "run", f"runs/{own.name}/config.toml"]
    assert found["seed"] == 8
    again = train(folder, *words[1:])
    assert digest(again) == digest(own) != digest(run)


def test_many_differences_and_a_recipe_that_is_another_one_now_name_the_copy(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_run.overview.reproducing.MOST", 1)
    assert reproduce(run)["command"].endswith("/config.toml")
    monkeypatch.undo()
    monkeypatch.setattr("sigma_run.overview.reproducing._recipe", _refuse)
    assert reproduce(run)["command"].endswith("/config.toml")
    monkeypatch.chdir(run.parent.parent.parent)
    assert str(run.relative_to(Path.cwd())) in reproduce(run)["replay"]


def _refuse(name: str) -> Any:
    raise SigmaConfigError(f"{name}: is broken now.")


def test_changes_by_hand_are_counted_and_playback_is_not(folder: Path, run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "config.toml").write_bytes((run / "config.toml").read_bytes())
    rows = [
        {"command": "set", "pattern": "optimiser.learning_rate", "value": 1},
        {"command": "set", "by": "reduce"},
        {"command": "pause"},
        {"command": "exclude", "rows": [1]},
        {"event": "digest"},
    ]
    about = {"trainer": "trainer", "iteration": 1, "epoch": 0}
    (copy / "journal.jsonl").write_text("".join(json.dumps({**about, **row}) + "\n" for row in rows))
    assert reproduce(copy)["edits"] == 2


@pytest.mark.parametrize("text", ["", 'format = 1\n[unwritten]\nnetwork = "it is code"\n'])
def test_a_run_whose_configuration_does_not_hold_all_is_told_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SigmaConfigError, match="was trained from Python"):
        reproduce(tmp_path)
