"""Trainers read what others have published; the journal records it, for replay and resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.criteria import Criterion
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_testing.journals import forge_journal
from sigma_testing.null import NullBackend
from sigma_testing.steering import Descent, Sweep, decisive, small_environment


@define(eq=False, kw_only=True)
class End(Hook):
    every: TimeStep = every(1, "iteration")
    ends = stops = True

    def fire(self, context: HookContext) -> None:
        context.command("stop")


@define(eq=False, kw_only=True)
class Imitate(Hook):
    """Make the learning rate depend on what another trainer has published: its time shows in the bits."""

    every: TimeStep = every(1, "iteration")
    seen: str = "first.iteration"

    @property
    def reads(self) -> Sequence[str]:
        return (self.seen, "first.training.*")

    def fire(self, context: HookContext) -> None:
        heard = context.read("first.training.*")
        if (count := context.read(self.seen)) and "first.training.loss" in heard:
            rate = 0.01 + (count % 7) / 1000 + min(heard["first.training.loss"], 1.0) / 1000
            context.command("set", pattern="optimiser.learning_rate", value=rate)


@define(eq=False, kw_only=True)
class SaveOnce(Hook):
    every: TimeStep = every(4, "iteration")

    def fire(self, context: HookContext) -> None:
        if context.moment.iteration == 4:
            context.command("save")


def pair(hooks: Mapping[str, Hook] | None = None, name: str = "first") -> Environment:
    """Return two trainers; the second one imitates the first, and stops when the loss of the first has fallen."""
    given = small_environment(Sweep())
    data, network = given.trainer("trainer").data, given.trainer("trainer").network
    until = Criterion.parse("first.training.loss below 0.5 and iteration reaches 6")
    watching = {"end": End(when=until), "imitate": Imitate(), "save": SaveOnce()} if hooks is None else hooks
    sigma = Environment("pair")
    for trainer, its in ((name, {}), ("second", watching)):
        epochs = 20 if trainer == name else inf
        sigma.create_trainer(trainer, backend=NullBackend(), operator=Sweep(), batch_size=5, hooks=its, epochs=epochs,
                             data=data, network=network, optimiser=Descent(learning_rate=0.05))  # fmt: skip
    return sigma


def finished(folder: Path) -> tuple[Path, Any]:
    with pair() as sigma:
        sigma.folder = folder
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder, decisive(sigma.trainer("second"))


def test_a_trainer_stops_when_the_loss_of_another_falls_and_a_replay_gives_the_same_bits(tmp_path: Path) -> None:
    run, wanted = finished(tmp_path)
    rows = [json.loads(row) for row in (run / "journal.jsonl").read_text().splitlines()[1:]]
    heard = [row for row in rows if row.get("event") == "heard" and row["hook"] == "imitate"]
    assert any(row["values"].get("first.iteration", 0) >= 1 for row in heard)
    assert {row["trainer"] for row in rows if row.get("event") == "heard"} == {"second"}
    assert wanted[1]["published"]["first.training.loss"] < 0.5
    with pair() as again:
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("second")) == wanted


def test_a_resumed_run_reads_of_other_trainers_what_the_journal_holds(tmp_path: Path) -> None:
    run, wanted = finished(tmp_path)
    for path in (run / "checkpoints" / "second").iterdir():
        if path.name != "4":
            shutil.rmtree(path)
    with pair() as again:
        again.resume(run)
        again.run()
        assert decisive(again.trainer("second"))[0] == wanted[0]


def test_a_changed_value_in_the_journal_is_a_difference(tmp_path: Path) -> None:
    run, _ = finished(tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        told = [row["values"] for row in rows if row.get("event") == "heard"]
        next(values for values in reversed(told) if "first.training.loss" in values)["first.training.loss"] = 0.125

    forge_journal(run, change)
    with pair() as again:
        assert list(again.replay(run)[1]) == ["second"]


def test_an_address_of_a_trainer_that_does_not_exist_is_refused_with_the_right_one() -> None:
    hooks = {"end": End(when=Criterion.parse("frst.training.loss below 1"))}
    with pair(hooks) as sigma, pytest.raises(SigmaConfigError, match=r"reads 'frst.training.loss', .* mean 'first.tra"):
        sigma.run()


@pytest.mark.parametrize("address", ["training.lss", "network.layers.weights"])
def test_what_another_trainer_does_not_publish_is_refused(address: str) -> None:
    hooks = {"end": End(when=Criterion.parse(f"first.{address} below 1"))}
    with (
        pair(hooks) as sigma,
        pytest.raises(SigmaTrainingError, match=f"first.{address}: is not published, or an array"),
    ):
        sigma.run()


def test_the_own_addresses_of_a_trainer_come_before_trainers_of_that_name() -> None:
    hooks = {"end": End(when=Criterion.parse("training.loss above 0 and epoch reaches 2"))}
    with pair(hooks, name="training") as sigma:
        sigma.run()
        assert sigma.trainer("second").session.moment.epoch == 2
        assert "training.iteration" not in sigma.trainer("second").session.state.published
