"""The order in which a command checks, changes, tells observers, and is journalled; and in whose thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import Environment, TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Program, Step
from sigma_testing.null import NullBackend
from sigma_testing.steering import Sweep, small_environment, steered_environment
from sigma_testing.watching import wait_until

RATE, WEIGHTS = "trainer.optimiser.learning_rate", "trainer.network.layers.weights"
Script = Mapping[int, Callable[[Environment], Any]]


def rows(run: Path | None) -> list[dict[str, Any]]:
    """Return the rows of a journal after its first line."""
    assert run is not None
    return [json.loads(line) for line in (run / "journal.jsonl").read_text("utf-8").splitlines()[1:]]


def commands(run: Path | None) -> list[tuple[Any, ...]]:
    """Return the commands in a journal: iteration, name, and who sent it."""
    return [(row["iteration"], row["command"], row.get("by")) for row in rows(run) if "command" in row]


# -- observers run inside a command ------------------------------------------------------------------------------------
def test_what_an_observer_sets_is_a_part_of_the_command_and_undone_with_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def act(sigma: Environment) -> None:
        weights = sigma.get(WEIGHTS).copy()
        sigma.registry.observe(lambda *_: sigma.set(WEIGHTS, 0.5), RATE)
        sigma.set(RATE, 0.02)
        seen.append((sigma.get(RATE), sigma.get(WEIGHTS).tolist()))
        sigma.undo()
        seen.append((sigma.get(RATE), np.array_equal(sigma.get(WEIGHTS), weights)))

    with steered_environment({3: act}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert seen == [(0.02, [[0.5]] * 3), (0.05, True)]
        assert commands(sigma.run_folder)[:2] == [(3, "set", None), (3, "undo", None)]


def test_an_observer_that_raises_reverts_the_command_which_leaves_no_row(tmp_path: Path) -> None:
    def object_to(address: str, old: Any, new: Any) -> None:
        raise RuntimeError("not now")

    def act(sigma: Environment) -> None:
        end = sigma.registry.observe(object_to, RATE)
        with pytest.raises(RuntimeError, match="not now"):
            sigma.set(RATE, 0.02)
        end()
        assert sigma.get(RATE) == 0.05
        sigma.set(WEIGHTS, 0.25)  # nothing is left of the refused one

    with steered_environment({3: act}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert [row["pattern"] for row in rows(sigma.run_folder) if row.get("command") == "set"] == [
            "network.layers.weights"
        ]


def test_an_observer_sees_the_new_value_before_the_row_is_written(tmp_path: Path) -> None:
    seen: list[Any] = []

    def act(sigma: Environment) -> None:
        sigma.registry.observe(lambda *_: seen.append((sigma.get(RATE), commands(sigma.run_folder))), RATE)
        sigma.set(RATE, 0.02)

    with steered_environment({3: act}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
    assert seen == [(0.02, [])]


# -- rows of saves -----------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Sends(Hook):
    """Send commands at one iteration."""

    every: TimeStep = every(4, "iteration")
    sends: list[tuple[str, dict[str, Any]]] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        for name, arguments in self.sends if context.moment.iteration == 4 else ():
            context.command(name, **arguments)


def test_saves_of_hooks_are_written_after_all_hooks_that_are_due_and_before_one_digest(tmp_path: Path) -> None:
    hooks = {
        "first": Sends(sends=[("save", {"score": 0.5}), ("set", {"pattern": RATE[8:], "value": 0.02})], priority=2),
        "second": Sends(sends=[("set", {"pattern": RATE[8:], "value": 0.03}), ("save", {"keep": True})], priority=1),
        "third": Sends(sends=[("set", {"pattern": RATE[8:], "value": 0.04})]),
    }
    with steered_environment(hooks=hooks) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        here = [row for row in rows(sigma.run_folder) if row["iteration"] == 4]
        assert [(row.get("command", row.get("event")), row.get("by")) for row in here] == [
            ("set", "first"), ("set", "second"), ("set", "third"), ("save", "first"), ("save", "second"),
            ("digest", "second"),
        ]  # fmt: skip
        assert sigma.run_folder is not None
        manifest = json.loads((sigma.run_folder / "checkpoints" / "trainer" / "4" / "manifest.json").read_text())
        assert manifest["values"]["journal"] == rows(sigma.run_folder).index(here[-1]) + 1  # so many rows are before it


def test_the_checkpoint_of_a_stop_by_hand_stands_before_the_row_of_the_stop(tmp_path: Path) -> None:
    with steered_environment({7: lambda sigma: sigma.stop()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        written = rows(sigma.run_folder)
        names = [(row.get("command", row.get("event")), row.get("by")) for row in written if row["iteration"] == 7]
        assert names == [("stop", None), ("save", "stop"), ("digest", "stop"), ("end", None)]
        assert sigma.run_folder is not None
        manifest = json.loads((sigma.run_folder / "checkpoints" / "trainer" / "7" / "manifest.json").read_text())
        before = next(number for number, row in enumerate(written) if row.get("command") == "stop")
        assert manifest["values"]["journal"] == before


# -- who checks, and who waits -----------------------------------------------------------------------------------------
@define(eq=False)
class Slow(NullBackend):
    """A backend that compiles batches of three rows only once it is told to; it knows in which thread."""

    may: threading.Event = field(factory=threading.Event)
    begun: threading.Event = field(factory=threading.Event)
    threads: list[str] = field(factory=list)

    def compile(self, step: Step, in_place: bool = True) -> Program:
        if any(node.shape[:1] == (3,) for node in step.graph.inputs[len(step.state) :][: len(step.data)]):
            self.threads.append(threading.current_thread().name)
            self.begun.set()
            assert self.may.wait(30)
        return super().compile(step, in_place)


def test_a_new_batch_size_is_compiled_in_the_thread_of_its_sender_while_training_goes_on() -> None:
    backend = Slow()
    with small_environment(Sweep(), backend=backend, rows=25) as sigma:
        session = sigma.trainer("trainer").session
        handle = sigma.run_async()
        wait_until(lambda: session.moment.iteration > 5)  # what training runs has been compiled
        sender = threading.Thread(target=sigma.set, args=["trainer.batch_size", 3], name="sender")
        sender.start()
        assert backend.begun.wait(30)
        before = session.moment.iteration
        wait_until(lambda: session.moment.iteration > before + 5)
        assert sigma.get("trainer.batch_size") == 5
        backend.may.set()
        sender.join(30)
        assert sigma.get("trainer.batch_size") == 3
        sigma.stop()
        assert handle.result().status == "stopped"
    assert set(backend.threads) == {"sender"}
