"""A replay compares the values of the metrics, and names the first that differs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Evaluate, RunningTime, SaveCheckpoint
from sigma_kernel import Environment, every
from sigma_kernel.clock import TimeScale, TimeStep
from sigma_optimisers import Adam
from sigma_run.launcher.group import main
from sigma_store.curves import rows
from sigma_testing.journals import forge_metrics
from sigma_training.commands.set import Set
from sigma_training.history import recorder
from sigma_training.history.metrics import Samples
from sigma_training.session import loop
from sigma_training.session.loop import TrainingLoop

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


def swerved(made: Environment) -> Path:
    """Rewind, resume with other settings from a later branch, and rewind again."""
    run = rewound(made)
    assert main(["resume", str(run), "--quiet", "--epochs", "22"]) == 0
    assert main(["resume", str(run), "--quiet", "--epochs", "24", "--checkpoint", "80"]) == 0
    assert main(["resume", str(run), "--quiet", "--checkpoint", "76"]) == 0
    return run


def reset(made: Environment) -> Path:
    with made:
        trainer = made.trainer("trainer")
        trainer.fit(iterations=7)
        made.reset()
        trainer.fit(epochs=2)
        assert made.run_folder is not None
        return made.run_folder


def reset_between_rows(made: Environment) -> Path:
    """Reset where no row follows until the run has gone further than before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "EACH", 0)
        patch.setattr(recorder, "Samples", partial(Samples, interval=1e9))
        return reset(made)


@contextmanager
def at_iteration(iteration: int, act: Callable[[TrainingLoop], Any]) -> Iterator[None]:
    """Do something in the training thread, once, and write a row of metrics at every boundary."""
    settle, done = TrainingLoop.settle, list[bool]()

    def settling(loop: TrainingLoop) -> None:
        settle(loop)
        loop.current.write_metrics(force=True)
        if loop.moment.iteration >= iteration and not done:
            done.append(True)
            act(loop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "settle", settling)
        yield


def killed(folder: Path, at: int = 54, steers: bool = False) -> Path:
    """Return the folder of a run as a kill leaves it, with checkpoints until iteration 28 alone."""
    run = folder / "killed"

    def copy(loop: TrainingLoop) -> None:
        path, saver = loop.current.recorder.journal.path, loop.checkpoints.saver
        assert path is not None
        assert saver is not None
        saver.flush()
        shutil.copytree(path.parent, run)

    hooks = {"time": Evaluate(on="training", every=every(1, "iteration"))} if steers else {}
    with at_iteration(at, copy):
        finished(environment(folder, **hooks))
    for path in (run / "checkpoints" / "trainer").iterdir():
        if not path.name.isdecimal() or int(path.name) > 28:
            shutil.rmtree(path)
    return run


def steered(folder: Path) -> Path:
    """Go on after a kill at iteration 55, and do something else at iteration 54, where the journal ends at 52."""
    run = killed(folder, 55, steers=True)
    with at_iteration(54, lambda loop: loop.current.commands.apply(Set("optimiser.learning_rate", 0.1))):
        assert main(["resume", str(run), "--quiet"]) == 0
    return run


def gone_on(run: Path) -> Path:
    assert main(["resume", str(run), "--quiet"]) == 0
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
    "with a loss of both kinds": lambda folder: finished(
        environment(
            folder,
            whole=Evaluate(on="training", every=every(3, "iteration")),
            aside=Evaluate(on="training", every=every(7, "iteration"), background=True),
        )
    ),
    "with two trainers": lambda folder: finished(environment(folder, ("one", "two"))),
    "rewound": lambda folder: rewound(environment(folder)),
    "resumed": lambda folder: resumed(environment(folder)),
    "resumed, with a hook at each end": lambda folder: resumed(environment(folder, **ENDING)),
    "resumed, further back": lambda folder: resumed(environment(folder), ["--checkpoint", "80", "--epochs", "23"]),
    "crashed": lambda folder: crashed(environment(folder)),
    "swerved": lambda folder: swerved(environment(folder)),
    "reset": lambda folder: reset(environment(folder)),
    "reset between rows": lambda folder: reset_between_rows(environment(folder)),
    "killed": killed,
    "killed, and resumed": lambda folder: gone_on(killed(folder)),
    "killed twice": lambda folder: gone_on(gone_on(killed(folder))),
    "killed, and steered": steered,
}


def changed(
    run: Path,
    name: str,
    change: Callable[[dict[str, Any]], None],
    trainer: str = "trainer",
    among: Callable[[dict[str, Any]], Any] = lambda row: True,
) -> int:
    """Change the row in the middle of those that hold a name; return its iteration."""
    changed_at = list[int]()

    def change_one(rows: list[dict[str, Any]]) -> None:
        those = [row for row in rows if row["trainer"] == trainer and name in row["values"] and among(row)]
        row = those[len(those) // 2]
        change(row["values"][name])
        changed_at.append(row["iteration"])

    forge_metrics(run, change_one)
    return changed_at[0]


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_run_is_identical_and_a_changed_value_is_found(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, trainer = HONEST[kind](tmp_path), "two" if kind == "with two trainers" else "trainer"
    capsys.readouterr()
    assert main(["replay", str(run), "--check"]) == 0
    assert "replay is identical" in capsys.readouterr().err
    last = {"resumed, further back": 2, "swerved": 3}.get(kind, int(kind.startswith("resumed")))  # which is compared
    at = changed(
        run, "validation.loss", lambda value: value.update(last=0.12345), trainer,
        among=lambda row: row["session"] >= last and row["iteration"] % 8,
    )  # fmt: skip
    assert main(["replay", str(run), "--check", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert f"{trainer}: replay differs. At iteration {at} (epoch" in said
    assert "validation.loss is 0.12345 in the metrics of the run; the replay has " in said


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


def test_a_changed_value_is_found_on_a_branch_that_was_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rewound(environment(tmp_path))
    assert {row["branch"] for row in rows(run, pytest.fail)} == {0, 1, 2}
    for branch in (0, 1):
        copy = Path(shutil.copytree(run, tmp_path / str(branch)))
        later = {0: 24, 1: 8}[branch]  # the iteration at which it was left
        at = changed(
            copy, "training.loss", lambda value: value.update(last=0.5),
            among=lambda row, branch=branch, later=later: row["branch"] == branch and row["iteration"] > later,  # type: ignore[misc]
        )  # fmt: skip
        assert main(["replay", str(copy), "--check", "--quiet"]) == 1
        assert f"iteration {at} (epoch {at // 4}): training.loss is 0.5 in the metrics" in capsys.readouterr().err


def test_a_value_of_another_branch_is_not_taken_for_that_of_its_own(tmp_path: Path) -> None:
    run, known = rewound(environment(tmp_path)), dict[int, float]()
    for row in rows(run, pytest.fail):
        if "training.loss" in row["values"] and row["branch"] == 0 and row["iteration"] > 24:
            known[row["iteration"]] = row["values"]["training.loss"]["last"]
    changed(
        run, "training.loss", lambda value: value.update(last=known[32], low=known[32], high=known[32]),
        among=lambda row: row["branch"] == 1 and row["iteration"] == 32,
    )  # fmt: skip
    assert main(["replay", str(run), "--check", "--quiet"]) == 1


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_changed_value_is_found_in_what_a_kill_ended(
    goes_on: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = killed(tmp_path)
    if goes_on:
        gone_on(run)
    changed(
        run, "training.loss", lambda value: value.update(last=0.5),
        among=lambda row: row["session"] == 0 and row["iteration"] == 48,
    )  # fmt: skip
    assert main(["replay", str(run), "--check", "--quiet"]) == 1
    assert "iteration 48 (epoch 12): training.loss is 0.5 in" in capsys.readouterr().err


@pytest.mark.parametrize(("iteration", "code"), [(54, 1), (55, 0)])
def test_what_a_kill_ended_is_compared_up_to_where_the_next_session_did_something_else(
    iteration: int, code: int, tmp_path: Path
) -> None:
    run = steered(tmp_path)
    changed(
        run, "training.loss", lambda value: value.update(last=0.5),
        among=lambda row: row["session"] == 0 and row["iteration"] == iteration,
    )  # fmt: skip
    assert main(["replay", str(run), "--check", "--quiet"]) == code


def test_rows_of_older_versions_are_compared_only_if_no_branch_was_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, run in [("plain", finished(environment(tmp_path))), ("rewound", rewound(environment(tmp_path)))]:
        left_out = ("branch", "session", "start")
        old = [{name: row[name] for name in row if name not in left_out} for row in rows(run, pytest.fail)]
        (run / "curves.bin").unlink()
        write_older_metrics(run, old)
        assert main(["replay", str(run), "--check"]) == 0
        said = capsys.readouterr().err
        assert ("do not say which rows were left, so that only the state is compared" in said) is (folder == "rewound")
        those = [row for row in old if "training.loss" in row["values"]]
        those[len(those) // 2]["values"]["training.loss"].update(last=0.5)
        write_older_metrics(run, old)
        assert main(["replay", str(run), "--check"]) == (1 if folder == "plain" else 0)
        capsys.readouterr()


def write_older_metrics(run: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as versions without ``curves.bin`` did."""
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ({"format": 1}, *rows)))


def test_values_of_the_clock_and_a_missing_file_are_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(environment(tmp_path))
    changed(run, "running_time", lambda value: value.update(last=99.0))
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    (run / "curves.bin").unlink()
    assert main(["replay", str(run), "--check"]) == 0
