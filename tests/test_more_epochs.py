"""A run that a hook has ended trains on if more epochs are asked for, or says why it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import EarlyStop, SaveCheckpoint, Stop
from sigma_kernel import Environment
from sigma_kernel.contracts import Hook
from sigma_optimisers import Adam
from sigma_run import load
from sigma_run.launcher.group import main

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}


def environment(folder: Path, end: Hook, names: tuple[str, ...] = ("trainer",)) -> Environment:
    """Return a run of four iterations an epoch, with a checkpoint after each, that a hook ends before epoch 30."""
    made = Environment("ended", folder=folder, seed=5)
    for name in names:
        made.create_trainer(
            name, network="input(3) + dense(4) + dropout(0.2) + output(1) + squared_difference()", data=DATA, epochs=30,
            optimiser=Adam(0.01), batch_size=10, hooks={"save": SaveCheckpoint(last=99), "end": end},
        )  # fmt: skip
    return made


def early() -> EarlyStop:
    return EarlyStop("training.loss", by=1e9, patience=2)


def epochs(run: Path, trainer: str = "trainer") -> int:
    return int(load(run, trainer, checkpoint="newest").checkpoint.values["clock"]["epoch"])


def resumed(run: Path | None, *arguments: str) -> int:
    assert main(["resume", str(run), "--quiet", *arguments]) == 0
    assert run is not None
    return epochs(run)


def test_a_run_that_early_stop_has_ended_trains_on_for_the_epochs_that_a_resume_asks_for(tmp_path: Path) -> None:
    with environment(tmp_path / "fitted", early()) as whole:
        trainer = whole.trainer("trainer")
        trainer.fit()
        trainer.fit(epochs=27)
        fitted = whole.run_folder
    with environment(tmp_path / "resumed", early()) as made:
        assert made.run().epochs == 3
        run = made.run_folder
    assert resumed(run) == 3
    assert resumed(run, "--epochs", "30") == 6  # the hook watches anew
    assert run is not None
    assert fitted is not None
    found, wanted = load(run).parameters(), load(fitted).parameters()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    for path in (run / "checkpoints" / "trainer").iterdir():  # as after a crash, soon after that resume
        if path.name.isdigit() and int(path.name) > 12:
            path.rename(tmp_path / path.name)
    assert resumed(run) == 6
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    assert resumed(run, "--epochs", "7") == 7


def test_of_several_trainers_only_the_one_with_more_epochs_trains_on(tmp_path: Path) -> None:
    with environment(tmp_path, early(), ("one", "two")) as made:
        made.run()
        run = made.run_folder
    assert run is not None
    assert main(["resume", str(run), "--quiet", "--set", "trainers.two.epochs=20"]) == 0
    assert [epochs(run, name) for name in ("one", "two")] == [3, 6]
    assert main(["replay", str(run), "--check", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("end", "setting", "said"),
    [
        (Stop(when="epoch reaches 3"), "hooks.end.when=epoch reaches 5", "epoch reaches 3 holds already, at which"),
        (Stop(every="after 3 epochs"), "hooks.end.every=after 5 epochs", "after 3 epochs is over already, at which"),
    ],
)
def test_a_run_that_a_stop_has_ended_says_what_to_set_and_trains_on_once_that_is_set(
    end: Any, setting: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with environment(tmp_path, end) as made:
        made.run()
        run = made.run_folder
    assert main(["resume", str(run), "--epochs", "40"]) == 0
    told = capsys.readouterr().err
    assert f"nothing to train: {said}" in told
    assert f"set another {setting.split('=')[0].rpartition('.')[2]!r} for the hook, or detach it" in told
    assert resumed(run, "--epochs", "40", "--set", setting) == 5
