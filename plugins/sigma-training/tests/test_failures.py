"""After a failure: the checkpoint of the newest good state, resume from it, and a run that goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, frozen

from sigma_kernel.clock import after, every
from sigma_kernel.contracts import Monitor, Schedule, View
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError, SigmaTrainingError
from sigma_step.model import LAYERS
from sigma_store.checkpoints import writer
from sigma_store.checkpoints.store import list_checkpoints, read
from sigma_testing.doing import Do
from sigma_testing.journals import read_journal
from sigma_testing.null import NullBackend
from sigma_testing.steering import Descent, Sweep, decisive, small_environment, wait_until
from sigma_training.data.dataset import Rows
from sigma_training.history.rewind import RewindBuffer
from sigma_training.session import recovery

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RATE = "optimiser.learning_rate"


def wild(at: int) -> Do:
    """Return a hook that sets a learning rate so great that the loss after the next is infinite."""
    return Do(every=every(at, "iteration"), does=lambda context: context.command("set", pattern=RATE, value=1e30))


def slower() -> Do:
    """Return a hook that lowers the learning rate once, between two epochs."""
    return Do(every=after(5, "iteration"), does=lambda context: context.command("set", pattern=RATE, value=0.01))


def failing(folder: Path | None = None, **hooks: Any) -> Environment:
    sigma = small_environment(Sweep(), hooks=hooks)
    sigma.folder = folder
    return sigma


def fit(sigma: Environment, **goal: int) -> SigmaTrainingError:
    with pytest.raises(SigmaTrainingError) as error:
        sigma.trainer("trainer").fit(**goal)
    return error.value


def checkpoints(sigma: Environment) -> list[int]:
    assert sigma.run_folder is not None
    return [int(path.name) for path in list_checkpoints(sigma.run_folder, "trainer")]


def good(sigma: Environment) -> Any:
    assert sigma.run_folder is not None
    return read(list_checkpoints(sigma.run_folder, "trainer")[-1])


def count(context: Any) -> None:
    context.memory["count"] = context.memory.get("count", 0) + 1
    context.publish("counted", context.memory["count"])


def counter(n: int) -> Do:
    """Return a hook with memory that publishes a value, and so cuts bursts."""
    return Do(every=every(n, "iteration"), does=count, writes=["counted"])


@pytest.mark.parametrize("often", [1, 3, 4, 100])
@pytest.mark.parametrize("share", [1e9, 1e-9])  # a snapshot before each burst, and none but the first
def test_the_newest_good_state_is_saved_with_the_bits_and_the_memory_that_it_had(
    tmp_path: Path, often: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SHARE", share)
    with failing(tmp_path, wild=wild(8), counter=counter(often), slower=slower()) as sigma:
        fit(sigma, iterations=30)
        assert sigma.trainer("trainer").session.moment.iteration == 10
        assert checkpoints(sigma) == [8]
        found = good(sigma)
    with failing(wild=wild(8), counter=counter(often), slower=slower()) as whole:
        whole.trainer("trainer").fit(iterations=8)
        arrays, values = decisive(whole.trainer("trainer"))
    assert {name: value.tobytes() for name, value in found.arrays.items()} == arrays
    for name in ("hooks", "cursor", "live", "published", "sums"):
        assert found.values[name] == values[name], name


@frozen
class Falling(Schedule):
    """A factor that falls with every iteration, as epochs have fractions."""

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / (1.0 + epochs))


def test_the_newest_good_state_has_its_bits_where_the_rate_falls_within_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SHARE", 1e-9)  # no snapshot but the first: all is computed again

    def falling(folder: Path | None = None) -> Environment:
        sigma = failing(folder, wild=wild(8))
        sigma.trainer("trainer").optimiser = Descent(learning_rate=0.05, schedules={"learning_rate": Falling()})
        return sigma

    with falling(tmp_path) as sigma:
        fit(sigma, iterations=30)
        found = good(sigma)
    with falling() as whole:
        whole.trainer("trainer").fit(iterations=8)
        arrays, _ = decisive(whole.trainer("trainer"))
    assert {name: value.tobytes() for name, value in found.arrays.items()} == arrays


class Drawn(Rows):
    """Rows that are others whenever they are read."""

    drawn_anew = True
    reads = 0

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        self.reads += 1
        return {name: values * np.float32(1 + self.reads / 8) for name, values in super().block(block).items()}


def test_the_saved_state_is_one_of_the_run_where_rows_are_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SHARE", 1e-9)
    seen: dict[int, bytes] = {}
    look = Do(
        every=every(1, "iteration"),
        reads=["network.layers.weights"],
        does=lambda context: seen.update({context.moment.iteration: context.read("network.layers.weights").tobytes()}),
    )
    with failing(tmp_path, wild=wild(8), look=look) as sigma:
        trainer = sigma.trainer("trainer")
        seen[0] = np.zeros((3, 1), np.float32).tobytes()
        trainer.data = {name: Drawn(rows.block(0)) for name, rows in trainer.data.items()}
        fit(sigma, iterations=30)
        found = good(sigma)
    assert found.arrays["network.layers.weights"].tobytes() == seen[found.values["clock"]["iteration"]]


def test_training_goes_on_in_python_from_the_good_state() -> None:
    with failing(wild=wild(8)) as sigma:
        fit(sigma, iterations=30)
        sigma.rewind(30)
        sigma.set(f"trainer.{RATE}", 0.05)
        assert sigma.trainer("trainer").session.moment.iteration == 8
        sigma.trainer("trainer").fit(iterations=4)
        after = decisive(sigma.trainer("trainer"))[0]
    with failing() as whole:
        whole.trainer("trainer").fit(iterations=12)
        assert decisive(whole.trainer("trainer"))[0] == after


def test_a_rewind_after_a_failure_does_not_reach_states_after_the_good_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RewindBuffer, "due", lambda self: True)
    with failing(wild=wild(9)) as sigma:  # iteration 10 is the end of an epoch, whose snapshot is kept
        fit(sigma, iterations=30)
        assert sigma.trainer("trainer").session.moment.iteration == 11
        sigma.rewind(11)
        assert sigma.trainer("trainer").session.moment.iteration == 9


def test_an_infinite_loss_at_the_first_iteration_leaves_the_initial_state(tmp_path: Path) -> None:
    with failing(tmp_path) as sigma:
        sigma.prepare()
        weights = f"trainer.{LAYERS}weights"
        sigma.set(weights, np.full((3, 1), 1e30, np.float32))
        fit(sigma, iterations=3)
        assert checkpoints(sigma) == [0]


def test_nothing_is_saved_if_no_state_was_finite(tmp_path: Path) -> None:
    with failing(tmp_path) as sigma:
        sigma.prepare()
        sigma.set(f"trainer.{LAYERS}weights", np.full((3, 1), np.nan, np.float32))
        fit(sigma, iterations=3)
        assert checkpoints(sigma) == []
        assert "trainer: nothing is saved, as no state was finite" in [
            text for _, text in sigma.messages.entries_after(0)
        ]


@define(eq=False)
class Faulty(NullBackend):
    """Fails after some bursts, which it has donated its state to."""

    left: int = 3

    def compile(self, step: Any) -> Any:
        program, backend = super().compile(step), self

        class Program:
            def run(self, *arguments: Any) -> Any:
                result = program.run(*arguments)
                backend.left -= 1
                if backend.left == 0:
                    raise MemoryError("device")
                return result

        return Program()


def test_memory_that_is_full_leaves_the_state_before_the_burst(tmp_path: Path) -> None:
    with small_environment(Sweep(), backend=Faulty(), hooks={"counter": counter(2)}) as sigma:
        sigma.folder = tmp_path
        with pytest.raises(MemoryError):
            sigma.trainer("trainer").fit(iterations=30)
        assert checkpoints(sigma) == [sigma.trainer("trainer").session.moment.iteration]
        found = {name: value.tobytes() for name, value in good(sigma).arrays.items()}
        number = checkpoints(sigma)[0]
    with small_environment(Sweep(), hooks={"counter": counter(2)}) as whole:
        whole.trainer("trainer").fit(iterations=number)
        assert decisive(whole.trainer("trainer"))[0] == found


def broken(at: int, fixed: list[bool]) -> Do:
    def act(context: Any) -> None:
        count(context)
        if context.moment.iteration == at and not fixed:
            raise ValueError("the disk of the camera is gone")

    return Do(every=every(1, "iteration"), does=act, writes=["counted"])


def test_a_hook_that_raises_leaves_the_state_before_and_runs_again_on_resume(tmp_path: Path) -> None:
    fixed: list[bool] = []
    with failing(tmp_path, broken=broken(7, fixed)) as sigma:
        assert "the disk of the camera is gone" in str(fit(sigma, iterations=12))
        run = sigma.run_folder
        assert run is not None
        assert checkpoints(sigma) == [6]
    fixed.append(True)
    with failing(broken=broken(7, fixed)) as again:
        told: list[str] = []
        again.resume(run, log=told.append)
        assert told == [
            "trainer: goes back to iteration 6, the last good one; the run failed at iteration 7: hook 'broken' "
            "(sigma_testing.doing.Do) failed: ValueError: the disk of the camera is gone. Set on_error = 'mute' "
            "or 'ignore' to train on. Nothing is changed, so it may fail again; --set changes a setting."
        ]
        again.run()
        after = decisive(again.trainer("trainer"))
    with failing(broken=broken(7, fixed)) as whole:
        whole.trainer("trainer").fit(iterations=12)
        arrays, values = decisive(whole.trainer("trainer"))
    assert after[0] == arrays
    assert after[1]["hooks"] == values["hooks"]


def test_a_hook_that_raises_at_the_end_of_training_does_not_lose_it(tmp_path: Path) -> None:
    def at_end(context: Any) -> None:
        raise ValueError("no more")

    with failing(tmp_path, last=Do(every=every(1, "stop"), does=at_end)) as sigma:
        fit(sigma, iterations=12)
        assert checkpoints(sigma) == [11]


def test_both_errors_are_reported_if_the_good_state_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, checkpoint: Any, *log: Any) -> Path:
        raise SigmaCheckpointError(f"{folder}: cannot be written: No space left on device.")

    monkeypatch.setattr(writer, "write", full)
    with failing(tmp_path, wild=wild(8)) as sigma:
        error = fit(sigma, iterations=30)
        assert "the loss is inf" in str(error)
        assert "No space left on device" in error.__notes__[0]
        assert all(part in sigma.why() for part in ("the loss is inf", "No space left on device"))


def test_a_replay_of_a_failed_run_reproduces_its_failure(tmp_path: Path) -> None:
    with failing(tmp_path, wild=wild(8)) as sigma:
        fit(sigma, iterations=30)
        run = sigma.run_folder
        assert run is not None
    before = (run / "journal.jsonl").read_bytes()
    with failing(wild=wild(8)) as again:
        summary, differs = again.replay(run)
        assert (summary.status, summary.iterations, differs) == ("failed", 10, {})
        assert "the loss is inf at iteration 10" in summary.why
    assert (run / "journal.jsonl").read_bytes() == before
    with failing(wild=wild(9)) as other:
        _, differs = other.replay(run)
        assert "iteration 8" in differs["trainer"]


# -- while somebody is there -------------------------------------------------------------------------------------------
@define(eq=False)
class Visitor(Monitor):
    """Is there, or is not."""

    there: bool = True

    def watch(self, view: View) -> None:
        while not view.wait(0.01):
            pass

    def is_attended(self) -> bool:
        return self.there


class Running:
    """A run in a thread of its own, with a visitor."""

    def __init__(self, sigma: Environment) -> None:
        self.sigma, self.visitor, self.ended = sigma, Visitor(), list[Any]()
        sigma.monitors = {"visitor": self.visitor}
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        wait_until(lambda: sigma.state == "failed" or bool(self.ended))

    def _run(self) -> None:
        try:
            self.ended.append(self.sigma.run(stay=True))
        except Exception as error:
            self.ended.append(error)

    def end(self) -> Any:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.ended[0]


def test_a_failed_run_waits_while_somebody_is_there_and_goes_on(tmp_path: Path) -> None:
    def made() -> Environment:
        return small_environment(Sweep(), hooks={"wild": wild(8), "counter": counter(3)}, epochs=4)

    with made() as sigma:
        sigma.folder = tmp_path
        running = Running(sigma)
        session, run = sigma.trainer("trainer").session, sigma.run_folder
        assert (sigma.state, sigma.status(), session.status) == ("failed", "failed", "failed")
        assert "the loss is inf at iteration 10" in sigma.why()
        assert checkpoints(sigma) == [8]
        with pytest.raises(SigmaStateError, match="cannot go, as the loss is not finite here. Rewind to iteration 8"):
            sigma.go()
        sigma.rewind(8)
        sigma.detach("wild")
        sigma.set(f"trainer.{RATE}", 0.05)
        assert (sigma.state, session.moment.iteration) == ("failed", 8)
        sigma.go()
        summary = running.end()
        assert (summary.status, summary.iterations, summary.why) == ("finished", 20, "")
        after = decisive(sigma.trainer("trainer"))[0]
    assert run is not None
    rows = [row.get("command") or row["event"] for row in read_journal(run) if row.get("event") != "digest"]
    assert [row for row in rows if row != "save"] == [
        "begin", "set", "end", "rewind", "detach", "set", "go", "end"
    ]  # fmt: skip
    with made() as again:
        summary, differs = again.replay(run)
        assert (summary.status, differs) == ("finished", {})
        assert decisive(again.trainer("trainer"))[0] == after


def test_a_failed_run_ends_when_everybody_has_left_or_it_is_stopped(tmp_path: Path) -> None:
    for leaves in (True, False):
        with failing(None, wild=wild(8)) as sigma:
            running = Running(sigma)
            if leaves:
                running.visitor.there = False
            else:
                sigma.stop()
            assert "the loss is inf" in str(running.end())
            assert sigma.state == "failed"
            with pytest.raises(SigmaStateError, match="cannot go while it is failed, as nothing trains"):
                sigma.go()


def test_a_step_after_a_failure_pauses_again(tmp_path: Path) -> None:
    with small_environment(Sweep(), hooks={"wild": wild(8)}, epochs=4) as sigma:
        running = Running(sigma)
        sigma.rewind(8)
        sigma.set(f"trainer.{RATE}", 0.01)
        sigma.detach("wild")
        sigma.step(2)
        wait_until(lambda: sigma.state == "paused")
        assert sigma.trainer("trainer").session.moment.iteration == 10
        sigma.go()
        assert running.end().iterations == 20


def test_other_trainers_pause_while_one_has_failed() -> None:
    with small_environment(Sweep(), hooks={"wild": wild(8)}, epochs=40) as sigma:
        own = sigma.trainer("trainer")
        slow = Do(every=every(1, "iteration"), does=lambda context: threading.Event().wait(0.002))
        other = sigma.create_trainer("other", backend=NullBackend(), operator=Sweep(), batch_size=5, epochs=40)
        other.data, other.network = own.data, own.network
        other.optimiser, other.hooks = evolve(own.optimiser, learning_rate=0.05), {"slow": slow}
        running = Running(sigma)
        wait_until(lambda: other.session.status == "paused")
        assert sigma.state == "failed"
        sigma.rewind(8, trainer="trainer")
        sigma.detach("wild", trainer="trainer")
        sigma.set(f"trainer.{RATE}", 0.05)
        sigma.go()
        assert running.end().status == "finished"
        assert (own.session.moment.iteration, other.session.moment.iteration) == (200, 200)


def test_what_was_set_in_a_failed_state_that_was_left_is_dropped_by_a_resume(tmp_path: Path) -> None:
    with failing(tmp_path, wild=wild(8)) as sigma:
        fit(sigma, iterations=30)
        sigma.set(f"trainer.{RATE}", 0.02)
        run = sigma.run_folder
        assert run is not None
    with failing() as again:
        again.resume(run)
        assert again.trainer("trainer").session.moment.iteration == 8
        again.set(f"trainer.{RATE}", 0.05)
        again.run()
        after = decisive(again.trainer("trainer"))[0]
        assert again.trainer("trainer").session.moment.iteration == 30
    with failing() as whole:
        whole.trainer("trainer").fit(iterations=30)
        assert decisive(whole.trainer("trainer"))[0] == after
