"""Any moment of a run: named, computed again by another process, and gone on from as a fork."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import SaveCheckpoint
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaError, SigmaStateError
from sigma_optimisers import Adam
from sigma_run import fork, load, recall
from sigma_run.launcher import main
from sigma_store.checkpoints.store import read
from sigma_testing.journals import read_journal
from sigma_testing.steering import wait_until
from sigma_training.trainer import NetworkTrainer

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}
RATE = "trainer.optimiser.learning_rate"


def environment(folder: Path | None, **settings: Any) -> Environment:
    """Return a run of four iterations an epoch, on the numpy backend."""
    made = Environment("moments", folder=folder, seed=5)
    made.create_trainer(
        network="input(3) + dense(4) + dropout(0.2) + output(1) + squared_difference()", data=DATA, batch_size=10,
        optimiser=Adam(0.01), backend="numpy", **settings,
    )  # fmt: skip
    return made


def train(sigma: Environment) -> None:
    """Train for ten epochs; change the rate after the second, and go back from the eighth to the fourth."""
    trainer = sigma.trainer("trainer")
    trainer.fit(epochs=2)
    sigma.set(RATE, 0.05)
    trainer.fit(epochs=2)
    if sigma.folder is not None:
        sigma.save("fourth", "before it was slowed down")
        trainer.fit(epochs=4)
        sigma.rewind("fourth")
    sigma.set(RATE, 0.02)
    trainer.fit(epochs=6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with environment(tmp_path_factory.mktemp("runs")) as sigma:
        train(sigma)
    assert sigma.run_folder is not None
    return sigma.run_folder


def parameters(trainer: NetworkTrainer) -> dict[str, bytes]:
    return {name: np.asarray(value).tobytes() for name, value in trainer.parameters().items()}


def at(iterations: int, *rates: tuple[int, float]) -> dict[str, bytes]:
    """Return the parameters of a run of so many iterations, whose rate is changed at some."""
    with environment(None) as sigma:
        trainer, done = sigma.trainer("trainer"), 0
        for iteration, rate in rates:
            trainer.fit(iterations=iteration - done)
            sigma.set(RATE, rate)
            done = iteration
        trainer.fit(iterations=iterations - done)
        return parameters(trainer)


# -- recall ------------------------------------------------------------------------------------------------------------
@pytest.mark.long_cases("7-None-rates0")
@pytest.mark.parametrize(
    ("iteration", "branch", "rates"), [(7, None, []), (11, None, [(8, 0.05)]), (22, 0, [(8, 0.05)])]
)
def test_a_moment_is_computed_again_to_the_bit(
    run: Path, iteration: int, branch: int | None, rates: list[tuple[int, float]]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    wanted = recall(run, iteration, branch=branch)
    model = wanted.result()
    assert wanted.iteration == iteration
    found = {name: value.tobytes() for name, value in model.parameters().items()}
    assert found == at(iteration, *rates)
    assert model.checkpoint.values["clock"]["iteration"] == iteration
    assert model.evaluate("training")["loss"] > 0
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before  # nothing of the run was written


def test_a_network_of_any_moment_is_saved_from_the_shell(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = list[int]()
    monkeypatch.setattr(os, "nice", lowered.append)
    assert main(["recall", str(run), str(tmp_path / "net"), "--at", "18", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"network": str(tmp_path / "net"), "iteration": 18, "epoch": 4}
    assert "iteration 18, epoch 4" in err
    found = {name: value.tobytes() for name, value in load(tmp_path / "net").parameters().items()}
    assert found == at(18, (8, 0.05), (16, 0.02))
    assert lowered == [19]


@pytest.mark.long
def test_a_recall_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    with environment(tmp_path / "runs") as sigma:
        sigma.trainer("trainer").fit(iterations=20_000)
        assert sigma.run_folder is not None
        wanted = recall(sigma.run_folder, 19_990)
    wait_until(lambda: wanted.iteration > 0)
    assert not wanted.wait(0)
    with pytest.raises(TimeoutError, match="goes on"):
        wanted.result(0.01)
    wanted.cancel()
    assert wanted.wait()
    with pytest.raises(SigmaStateError, match="its process was ended"):
        wanted.result()
    assert not [*Path(os.environ.get("TMPDIR", "/tmp")).glob("sigma-recall-*/state")]


@pytest.mark.long
def test_the_bits_of_a_run_that_trains_meanwhile_do_not_change(tmp_path: Path) -> None:
    with environment(tmp_path, epochs=400) as sigma:
        training = sigma.run_async()
        trainer = sigma.trainer("trainer")
        wait_until(lambda: trainer.session.moment.iteration > 100)
        sigma.set(RATE, 0.002)
        (row,) = [row for row in read_journal(sigma.run_folder or tmp_path) if row.get("command") == "set"]
        wanted = recall(sigma.run_folder or tmp_path, row["iteration"])
        training.result()
        live, early = parameters(trainer), wanted.result().parameters()
    assert live == at(1600, (row["iteration"], 0.002))
    assert {name: value.tobytes() for name, value in early.items()} == at(row["iteration"])


@pytest.mark.parametrize(
    ("about", "kind", "why"),
    [
        ({"at": 999}, SigmaStateError, "trainer: iteration 999 of branch 1 is not known. It is from 16 to 40"),
        ({"at": 20, "branch": 7}, SigmaStateError, "has no branch 7. There are: 0, 1"),
        ({"at": -1}, SigmaConfigError, "recall: at must be an iteration from 0 on"),
        ({"at": 1, "trainer": "other"}, SigmaConfigError, "no such trainer"),
    ],
)
def test_what_cannot_be_recalled_is_refused(run: Path, about: Any, kind: type[SigmaError], why: str) -> None:
    with pytest.raises(kind, match=why):
        recall(run, **about).result()


# -- names -------------------------------------------------------------------------------------------------------------
def test_a_state_is_found_by_its_name(run: Path) -> None:
    assert load(run, checkpoint="fourth").checkpoint.values["clock"]["iteration"] == 16
    values = load(run, checkpoint="fourth").checkpoint.values
    assert (values["name"], values["note"]) == ("fourth", "before it was slowed down")
    with pytest.raises(
        SigmaCheckpointError, match=r"no checkpoint 'fifth' of 'trainer'. There are: 8, 16 \(fourth\), 40"
    ):
        load(run, checkpoint="fifth")
    assert main(["evaluate", str(run), "--on", "training", "--checkpoint", "fourth"]) == 0


def test_names_are_journalled_and_a_named_state_is_kept(tmp_path: Path) -> None:
    with environment(tmp_path, hooks={"save": SaveCheckpoint(last=1)}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        sigma.save("first", note="after one epoch")
        trainer.fit(epochs=3)
        states = {state.iteration: (state.name, state.note) for state in trainer.view.states() if state.saved}
        assert states == {4: ("first", "after one epoch"), 16: ("", "")}
        with pytest.raises(SigmaStateError, match="save: 'first' is the state of iteration 4. Choose another name"):
            sigma.save("first")
        with pytest.raises(SigmaStateError, match="no state is named 'frist'. Did you mean 'first'"):
            sigma.rewind("frist")
        assert sigma.rewind("first")["trainer"].iteration == 4
        trainer.fit(epochs=1)
    folder = sigma.run_folder
    assert folder is not None
    saves = [row for row in read_journal(folder) if row.get("command") == "save" and row.get("name")]
    assert [(row["name"], row["note"], row["iteration"]) for row in saves] == [("first", "after one epoch", 4)]
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


@pytest.mark.parametrize("name", ["7", "best", "newest", "a name", "-a"])
def test_names_that_mean_something_else_are_refused(name: str, tmp_path: Path) -> None:
    with environment(tmp_path) as sigma, pytest.raises(SigmaStateError, match="must be a name of letters"):
        sigma.save(name)


def test_a_state_has_no_name_without_a_folder() -> None:
    with environment(None) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        with pytest.raises(SigmaStateError, match="no state is named 'first', as there is no run folder"):
            sigma.rewind("first")


# -- forks -------------------------------------------------------------------------------------------------------------
def test_a_fork_is_a_run_of_its_own_that_begins_at_a_moment(run: Path) -> None:
    with fork(run, 10, {RATE: 0.5}) as other:
        trainer = other.trainer("trainer")
        trainer.fit(iterations=10)
        found = parameters(trainer)
    folder = other.run_folder
    assert folder is not None
    assert folder.parent == run.parent
    assert found == at(20, (8, 0.05), (10, 0.5))
    first, second, third = read_journal(folder)[:3]
    assert first["parent"] == {"run": run.name, "iteration": 10, "branch": 0}
    assert (second["event"], third["command"], third["value"], third["iteration"]) == ("resumed", "set", 0.5, 10)
    assert read(folder / "checkpoints" / "trainer" / "10").values["parent"] == first["parent"]
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
    assert main(["replay", str(run), "--check", "--quiet"]) == 0


def test_a_fork_does_not_need_the_first_run(run: Path, tmp_path: Path) -> None:
    with fork(run, 9) as other:
        other.trainer("trainer").fit(iterations=3)
    assert other.run_folder is not None
    folder = other.run_folder.rename(tmp_path / "alone")
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
    assert main(["resume", str(folder), "--quiet", "--epochs", "5"]) == 0
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
    assert {name: value.tobytes() for name, value in load(folder).parameters().items()} == at(20, (8, 0.05))


@pytest.mark.long
def test_moments_of_a_fork_can_be_recalled_and_forked(run: Path) -> None:
    with fork(run, 10, {"learning_rate": 0.5}) as other:
        other.trainer("trainer").fit(iterations=10)
        assert other.run_folder is not None
        model = recall(other.run_folder, 15).result()
        assert {n: x.tobytes() for n, x in model.parameters().items()} == at(15, (8, 0.05), (10, 0.5))
        with pytest.raises(SigmaStateError, match="iteration 9 of branch 0 is not known. It is from 10 to 20"):
            recall(other.run_folder, 9).result()
        with fork(other.run_folder, 12, {"learning_rate": 0.25}) as third:
            third.trainer("trainer").fit(iterations=2)
            assert parameters(third.trainer("trainer")) == at(14, (8, 0.05), (10, 0.5), (12, 0.25))


def test_a_fork_with_a_wrong_value_leaves_nothing(run: Path) -> None:
    before = sorted(run.parent.iterdir())
    for values in ({"trainer.optimiser.rate": 1.0}, {RATE: -1.0}):
        with pytest.raises(SigmaError):
            fork(run, 10, values)
    assert sorted(run.parent.iterdir()) == before


def test_a_fork_is_trained_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with environment(tmp_path, epochs=5) as sigma:
        sigma.run()
    run = str(sigma.run_folder)
    assert main(["fork", run, "--at", "6", "learning_rate=0.5", "--quiet", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["iterations"], summary["status"]) == (20, "finished")
    found = {name: value.tobytes() for name, value in load(summary["folder"]).parameters().items()}
    assert found == at(20, (6, 0.5))
    assert main(["replay", summary["folder"], "--check", "--quiet"]) == 0
    assert main(["fork", run, "--at", "6", "learning_rate"]) == 2
    assert "learning_rate: expected ADDRESS=VALUE" in capsys.readouterr().err


def test_runs_and_branches_say_where_they_begin_what_differs_and_their_best_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with environment(tmp_path) as sigma:
        train(sigma)
    run = sigma.run_folder or tmp_path
    with fork(run, 10, {RATE: 0.5}) as other:
        other.trainer("trainer").fit(iterations=10)
    forked = other.run_folder or tmp_path
    assert main(["runs", str(tmp_path), "--branches", "--json"]) == 0
    first, second, third = json.loads(capsys.readouterr().out)["branches"]
    assert [(own["branch"], own["parent"], own["iterations"]) for own in (first, second, third)] == [
        (0, None, 32),
        (1, {"run": run.name, "branch": 0, "iteration": 16}, 40),
        (0, {"run": run.name, "branch": 0, "iteration": 10}, 20),
    ]
    assert first["changes"] == ["set optimiser.learning_rate 0.05"]
    assert second["changes"] == ["set optimiser.learning_rate 0.02"]
    assert third["changes"] == ["set optimiser.learning_rate 0.5"]
    history = sigma.trainer("trainer").history
    left, present = (stretch.curve for stretch in history.branched_curves().stretches("training.loss"))
    assert first["best"]["training.loss"] == float(np.min(left.low))
    assert second["best"]["training.loss"] == float(np.min(present.low))
    assert main(["runs", str(tmp_path)]) == 0
    assert f"{run.name} 0 @ 10" in capsys.readouterr().out
    assert main(["runs", str(tmp_path), "--json"]) == 0
    listed = {Path(own["folder"]).name: own.get("parent") for own in json.loads(capsys.readouterr().out)["runs"]}
    assert listed == {run.name: None, forked.name: third["parent"]}
    assert main(["runs", str(tmp_path), "--branches"]) == 0
    assert "set optimiser.learning_rate 0.5" in capsys.readouterr().out


def test_a_run_of_several_trainers_is_not_forked(tmp_path: Path) -> None:
    with environment(tmp_path, epochs=1) as sigma:
        sigma.create_trainer(
            "second",
            network="input(3) + output(1) + squared_difference()",
            data=DATA,
            epochs=1,
            backend="numpy",
            optimiser=Adam(0.01),
        )
        sigma.run()
    with pytest.raises(SigmaConfigError, match="has several trainers, and a fork begins at a moment of one"):
        fork(sigma.run_folder or tmp_path, 1)
    assert recall(sigma.run_folder or tmp_path, 2, trainer="trainer").result().parameters()
