"""A replay compares the values of metrics.jsonl, and names the first that differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Evaluate, RunningTime, SaveCheckpoint
from sigma_kernel import Environment, every
from sigma_kernel.clock import TimeScale, TimeStep
from sigma_kernel.launcher.group import main
from sigma_optimisers import Adam

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
ROWS = (X, X @ np.array([[1.0], [2.0], [3.0]], "float32"))
DATA = {"training": ROWS, "validation": (ROWS[0][:9], ROWS[1][:9])}
ENDING = {"score": Evaluate(on="validation", every=TimeStep(TimeScale.STOP))}


def environment(folder: Path, names: tuple[str, ...] = ("trainer",), **hooks: Any) -> Environment:
    """Return a run of four iterations an epoch, with values of hooks that go by iterations, epochs and seconds."""
    made = Environment("measured", folder=folder, seed=5)
    for name in names:
        made.create_trainer(
            name, network="input(3) + dense(4) + dropout(0.2) + output(1) + squared_difference()", data=DATA, epochs=20,
            optimiser=Adam(0.01), batch_size=10,
            hooks={
                "save": SaveCheckpoint(), "often": Evaluate(on="validation", every=every(3, "iteration")),
                "time": RunningTime(every=every(2, "iteration")), **hooks,
            },
        )  # fmt: skip
    return made


def finished(made: Environment) -> Path:
    with made:
        made.run()
        assert made.run_folder is not None
        return made.run_folder


def rewound(made: Environment) -> Path:
    with made:
        trainer = made.trainer("trainer")
        trainer.fit(epochs=20)
        made.rewind(6, "epoch")
        made.set("trainer.optimiser.learning_rate", 0.1)
        trainer.fit(epochs=3)
        made.rewind(2, "epoch")
        trainer.fit(epochs=18)
        assert made.run_folder is not None
        return made.run_folder


def resumed(made: Environment, *more: list[str]) -> Path:
    run = finished(made)
    for arguments in (["--epochs", "26"], *more, []):
        assert main(["resume", str(run), "--quiet", *arguments]) == 0
    return run


def crashed(made: Environment) -> Path:
    run = finished(made)
    for path in (run / "checkpoints" / "trainer").iterdir():
        if int(path.name) > 40:
            path.rename(run.parent / path.name)
    assert main(["resume", str(run), "--quiet"]) == 0
    return run


HONEST: dict[str, Callable[[Path], Path]] = {
    "finished": lambda folder: finished(environment(folder)),
    "with two trainers": lambda folder: finished(environment(folder, ("one", "two"))),
    "rewound": lambda folder: rewound(environment(folder)),
    "resumed": lambda folder: resumed(environment(folder)),
    "resumed, with a hook at each end": lambda folder: resumed(environment(folder, **ENDING)),
    "resumed further back": lambda folder: resumed(environment(folder), ["--checkpoint", "80", "--epochs", "23"]),
    "crashed": lambda folder: crashed(environment(folder)),
}


def changed(
    run: Path, name: str, change: Callable[[dict[str, Any]], None], trainer: str = "trainer", share: float = 0.5
) -> int:
    """Change the row in the middle of those that hold a name, or at a share of them; return its iteration."""
    path = run / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    those = [row for row in rows[1:] if row["trainer"] == trainer and name in row["values"]]
    row: dict[str, Any] = those[int(len(those) * share)]
    change(row["values"][name])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return int(row["iteration"])


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_run_is_identical_and_a_changed_value_is_found(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, trainer = HONEST[kind](tmp_path), "two" if kind == "with two trainers" else "trainer"
    capsys.readouterr()
    assert main(["replay", str(run), "--check"]) == 0
    assert "replay is identical" in capsys.readouterr().err
    if "back" in kind or kind == "crashed":  # which rows are replayed cannot be told
        return
    share = 0.8 if "resumed" in kind else 0.5  # the replay begins at the last change of settings
    at = changed(run, "validation.loss", lambda value: value.update(last=0.12345), trainer, share)
    assert main(["replay", str(run), "--check", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert f"{trainer}: replay differs. At iteration {at} (epoch" in said
    assert "validation.loss is 0.12345 in metrics.jsonl; the replay has " in said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"last": 7.0}, "training.loss is 7 in"),
        ({"low": -1.0}, "training.loss is -1 at its least in"),
        ({"high": 99.0}, "training.loss is 99 at its greatest in"),
        ({"last": None}, "training.loss is not finite in"),
    ],
)
def test_the_last_the_least_and_the_greatest_of_a_value_are_compared(
    value: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(environment(tmp_path))
    at = changed(run, "training.loss", lambda found: found.update(value))
    assert main(["replay", str(run), "--check", "--quiet"]) == 1
    told = capsys.readouterr().err
    assert f"iteration {at} (epoch" in told
    assert said in told


def test_after_a_crash_the_state_alone_is_compared_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(environment(tmp_path))
    path = run / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: next(n for n, line in enumerate(lines) if '"event": "end"' in line)]))
    changed(run, "training.loss", lambda value: value.update(last=0.12345))
    assert main(["replay", str(run), "--check"]) == 0
    assert "trainer: was killed, or is training, so that only the state is compared" in capsys.readouterr().err


def test_values_of_the_clock_and_a_missing_file_are_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(environment(tmp_path))
    changed(run, "running_time", lambda value: value.update(last=99.0))
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    (run / "metrics.jsonl").unlink()
    assert main(["replay", str(run), "--check"]) == 0
