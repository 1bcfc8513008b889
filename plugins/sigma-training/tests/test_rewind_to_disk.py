"""Rewind and resume reach checkpoints on disk: on a new branch, to the same bits, and a replay is identical."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_hooks import Loss, SaveCheckpoint
from sigma_kernel import Environment, every
from sigma_kernel.contracts import Monitor
from sigma_kernel.errors import SigmaStateError, SigmaTrainingError
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.launcher.group import main

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}


def environment(folder: Path, epochs: int = 20, **hooks: Any) -> Environment:
    """Return a run of four iterations an epoch, with a checkpoint after each."""
    made = Environment("rewound", folder=folder, seed=5)
    made.create_trainer(
        network="input(3) + dense(4, activation='tanh') + dropout(0.2) + output(1) + squared_difference()", data=DATA,
        optimiser=Adam(0.01), batch_size=10, epochs=epochs, hooks={"save": SaveCheckpoint(), "loss": Loss(), **hooks},
    )  # fmt: skip
    return made


@frozen
class Stops(Monitor):
    """Stop training from outside once it has done some epochs."""

    after: int = 6

    def watch(self, view: Any) -> None:
        while not view.over.is_set():
            if view.get("trainer.epoch") >= self.after:
                view.send("stop")
                return
            view.wait(0.001)


def same(one: Path, other: Path) -> bool:
    ours, theirs = load(one).parameters(), load(other).parameters()
    return all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep one snapshot in memory."""
    monkeypatch.setattr("sigma_training.history.rewind.MOST", 1)


@pytest.mark.usefixtures("little_memory")
def test_a_rewind_goes_back_to_a_checkpoint_on_disk_beyond_the_snapshots_in_memory(tmp_path: Path) -> None:
    with environment(tmp_path) as made:
        trainer = made.trainer("trainer")
        made.prepare()
        trainer.fit(epochs=20)
        assert all(moment.epoch > 2 for moment, _ in trainer.recorder.past.states)  # memory does not reach back
        there = made.rewind(2, "epoch")["trainer"]
        assert (there.epoch, there.iteration) == (2, 8)
        trainer.fit(epochs=18)
        folder = made.run_folder
    assert folder is not None
    with environment(tmp_path / "straight") as straight:
        straight.run()
        assert straight.run_folder is not None
        assert same(folder, straight.run_folder)
    branch = next(row for row in rows(folder) if row.get("command") == "rewind")
    assert (branch["to"], branch["branch"], branch["parent"]) == (8, 1, 0)
    assert (folder / "checkpoints" / "trainer" / "80.branch-0").is_dir()
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


@pytest.mark.usefixtures("little_memory")
def test_a_rewind_finds_the_newest_intact_checkpoint_or_says_that_there_is_none(tmp_path: Path) -> None:
    with environment(tmp_path) as made:
        made.prepare()
        made.trainer("trainer").fit(epochs=20)
        assert made.run_folder is not None
        (made.run_folder / "checkpoints" / "trainer" / "8" / "manifest.json").write_bytes(b"")
        assert made.rewind(2, "epoch")["trainer"].iteration == 4
        with pytest.raises(SigmaStateError, match="rewind: no snapshot of iteration 3 or before"):
            made.rewind(3)


@pytest.mark.parametrize("more", [[], ["--epochs", "22"]])
def test_a_finished_run_resumes_from_any_checkpoint_on_a_new_branch(more: list[str], tmp_path: Path) -> None:
    with environment(tmp_path) as made:
        made.run()
        folder = made.run_folder
    assert folder is not None
    before = rows(folder)
    assert main(["resume", str(folder), "--checkpoint", "12", "--quiet", *more]) == 0
    with environment(tmp_path / "straight", epochs=22 if more else 20) as straight:
        straight.run()
        assert straight.run_folder is not None
        assert same(folder, straight.run_folder)
    assert rows(folder)[: len(before)] == before  # nothing of the abandoned branch is lost
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


def test_an_interrupted_run_resumes_from_an_earlier_checkpoint_and_replays(tmp_path: Path) -> None:
    with environment(tmp_path, epochs=200_000) as made:
        made.monitors = {"stop": Stops()}
        made.run()
        folder = made.run_folder
    assert folder is not None
    there = sorted(int(path.name) for path in (folder / "checkpoints" / "trainer").iterdir() if path.name.isdigit())
    edit = ["--set", "hooks.end={type='stop', when='iteration reaches 60'}"]
    assert main(["resume", str(folder), "--checkpoint", str(there[2]), "--quiet", *edit]) == 0
    assert load(folder).checkpoint.values["clock"]["iteration"] == 60
    with environment(tmp_path / "straight", epochs=15) as straight:
        straight.run()
        assert straight.run_folder is not None
        assert same(folder, straight.run_folder)
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


@pytest.mark.long
def test_a_run_that_was_stopped_goes_on_from_an_earlier_checkpoint_to_its_own_end(tmp_path: Path) -> None:
    save = SaveCheckpoint(every=every(50, "epoch"))
    with environment(tmp_path, epochs=400, save=save) as made:
        made.monitors = {"stop": Stops(after=120)}
        made.run()
        folder = made.run_folder
    assert folder is not None
    assert main(["resume", str(folder), "--checkpoint", "200", "--quiet"]) == 0
    with environment(tmp_path / "straight", epochs=400, save=save) as straight:
        straight.run()
        assert straight.run_folder is not None
        assert same(folder, straight.run_folder)
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


def test_a_checkpoint_is_gone_back_to_once_what_was_not_saved_is_replayed(tmp_path: Path) -> None:
    with environment(tmp_path) as made:
        made.run()
        folder = made.run_folder
    assert folder is not None
    home = folder / "checkpoints" / "trainer"
    for path in home.iterdir():  # as after a crash: the journal goes on after the newest checkpoint
        if int(path.name) > 40:
            path.rename(tmp_path / path.name)
    assert main(["resume", str(folder), "--checkpoint", "12", "--quiet"]) == 0
    went = [row for row in rows(folder) if row.get("command") == "rewind"]
    assert [(row["to"], row["branch"]) for row in went] == [(12, 1)]
    assert went[0]["iteration"] > 40
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


def test_a_run_that_a_command_made_fail_is_saved_by_an_earlier_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with environment(tmp_path, epochs=15) as made:
        made.prepare()
        made.trainer("trainer").fit(epochs=7)
        made.set("trainer.optimiser.learning_rate", 1e38)
        with pytest.raises(SigmaTrainingError, match="the loss is"):
            made.run()
    folder = made.run_folder
    assert folder is not None
    *_, earlier, _ = sorted(int(path.name) for path in (folder / "checkpoints" / "trainer").iterdir())
    assert main(["resume", str(folder), "--quiet"]) == 1  # the command is applied again
    assert "the loss is" in capsys.readouterr().err
    assert main(["resume", str(folder), "--checkpoint", str(earlier), "--quiet"]) == 0
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


KILLED = """
import os, signal, sys
from pathlib import Path
from sigma_training.session.loop import TrainingLoop
from test_rewind_to_disk import environment

folder, at, advance = Path(sys.argv[1]), int(sys.argv[2]), TrainingLoop.advance

def dying(loop, *given):
    if loop.current.recorder.branch and loop.moment.iteration >= at:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(loop, *given)

TrainingLoop.advance = dying
with environment(folder) as made:
    made.trainer("trainer").fit(epochs=20, progress=False)
    made.rewind(2, "epoch")
    made.trainer("trainer").fit(epochs=18, progress=False)
"""


@pytest.mark.long_cases("8")
@pytest.mark.parametrize("at", [8, 30])
def test_a_run_killed_after_a_rewind_to_a_checkpoint_on_disk_resumes_on_the_new_branch(at: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(at)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (folder,) = tmp_path.iterdir()
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert [row["to"] for row in rows(folder) if row.get("command") == "rewind"] == [8]
    with environment(tmp_path / "straight") as straight:
        straight.run()
        assert straight.run_folder is not None
        assert same(folder, straight.run_folder)
    assert load(folder).checkpoint.values["branch"] == 1
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
