"""Undo: the change of a command is reverted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaStateError
from sigma_testing.journals import read_journal
from sigma_testing.steering import Sweep, decisive, small_environment, steered_environment
from sigma_training.session import undo as undoing
from sigma_training.trainer import NetworkTrainer

pytestmark = pytest.mark.usefixtures("shop")

WEIGHTS = "network.layers.weights"
COUNT = {"type": "count", "by": 2}
HEAVY = {"type": "heavy", "learning_rate": 0.02}


def trainer(sigma: Environment) -> NetworkTrainer:
    return sigma.trainer("trainer")


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.set("trainer.optimiser.learning_rate", 0.5),
        lambda s: s.set("trainer.**.rate", 0.5),
        lambda s: s.set("trainer.**.weights", 0.25),
        lambda s: s.set("trainer.knob", 3.0),
        lambda s: s.set("trainer.hooks.*.every", "3 iterations"),
        lambda s: s.set("trainer.hooks.it.when", "training.loss decreases"),
        lambda s: s.attach("more", {"type": "count", "into": "more"}),
        lambda s: s.detach("it"),
        lambda s: s.detach("keep"),
        lambda s: s.swap("optimiser", HEAVY),
        lambda s: s.swap("backend", "other"),
        lambda s: s.swap("iterator", "backwards"),
    ],
)
def test_a_run_with_an_undone_command_equals_one_without_it(
    deep: Callable[..., Environment], change: Callable[[Environment], Any]
) -> None:
    hooks = {"it": COUNT, "keep": "keep", "knob": "knob"}
    with deep(hooks=hooks) as sigma:
        sigma.prepare()
        trainer(sigma).fit(iterations=7)
        before, addresses = decisive(trainer(sigma)), sorted(sigma.registry.addresses())
        change(sigma)
        assert decisive(trainer(sigma)) != before
        sigma.undo()
        assert decisive(trainer(sigma)) == before
        assert sorted(sigma.registry.addresses()) == addresses


def test_undo_restores_different_values_below_an_address_that_was_set(deep: Callable[..., Environment]) -> None:
    with deep() as sigma:
        sigma.prepare()
        sigma.set("trainer.optimiser.1-dense.weights.learning_rate", 0.7)
        sigma.set("trainer.optimiser.learning_rate", 0.5)
        sigma.undo()
        assert sigma.get("trainer.optimiser.1-dense.weights.learning_rate") == 0.7
        assert sigma.get("trainer.optimiser.1-dense.bias.learning_rate") == 0.1


def test_commands_are_undone_one_by_one_last_first() -> None:
    with steered_environment() as sigma:
        for rate in (0.1, 0.2, 0.3):
            sigma.set("trainer.optimiser.learning_rate", rate)
        found = []
        for _ in range(3):
            sigma.undo()
            found.append(sigma.get("trainer.optimiser.learning_rate"))
        assert found == [0.2, 0.1, 0.05]
        with pytest.raises(SigmaStateError, match="trainer: there is nothing to undo"):
            sigma.undo()


def test_undo_does_not_undo_training() -> None:
    with steered_environment(
        {3: lambda s: s.set("trainer.optimiser.learning_rate", 0.0), 9: lambda s: s.undo()}
    ) as sigma:
        sigma.run()
        assert trainer(sigma).session.moment.iteration == 12
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05
        weights = trainer(sigma).session.host(WEIGHTS)
    with steered_environment(last=6) as plain:  # six iterations with the original rate, six with rate 0
        plain.run()
        assert not np.array_equal(weights, trainer(plain).session.host(WEIGHTS))


def test_a_reattached_hook_keeps_its_memory() -> None:
    with steered_environment({4: lambda s: s.detach("it"), 8: lambda s: s.undo()}, hooks={"it": COUNT}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 2 * (4 + 4)


def test_undo_keeps_the_memory_of_a_hook_whose_criterion_is_unchanged() -> None:
    script = {4: lambda s: s.set("trainer.hooks.it.when", "iteration reaches 2"), 8: lambda s: s.undo()}
    with steered_environment(script, hooks={"it": COUNT}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 2 * 12


def test_undoing_a_swap_restores_the_optimisers_slots_and_step_count() -> None:
    with steered_environment() as sigma:
        sigma.swap("optimiser", HEAVY)
        trainer(sigma).fit(iterations=4)
        held = trainer(sigma).session.host("optimiser.slots.weights.velocity")
        sigma.swap("optimiser", "plain")
        trainer(sigma).fit(iterations=3)
        sigma.undo()
        assert (trainer(sigma).session.host("optimiser.slots.weights.velocity") == held).all()
        assert trainer(sigma).session.host("optimiser.step") == 4
        assert sigma.get("trainer.optimiser.learning_rate") == 0.02
        assert np.any(held)


def test_values_set_by_hooks_are_not_undone() -> None:
    with steered_environment(hooks={"it": "count", "follow": "follow"}) as sigma:
        trainer(sigma).fit(iterations=3)
        with pytest.raises(SigmaStateError, match="nothing to undo"):
            sigma.undo()


def test_refused_commands_are_not_undone() -> None:
    with steered_environment() as sigma:
        sigma.set("trainer.optimiser.learning_rate", 0.2)
        with pytest.raises(SigmaAddressError):
            sigma.set("trainer.optimiser.learning_rate", "banana")
        sigma.undo()
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05


def test_the_number_of_undoable_commands_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "MOST", 2)
    with steered_environment() as sigma:
        for value in (0.1, 0.2, 0.3):
            sigma.set("trainer.**.weights", value)
        sigma.undo()
        sigma.undo()
        assert trainer(sigma).session.host(WEIGHTS).tolist() == [[np.float32(0.1)]] * 3
        assert trainer(sigma).session.state.kept == {}
        with pytest.raises(SigmaStateError, match="The last 2 commands"):
            sigma.undo()


def test_a_state_too_large_for_snapshots_is_not_kept_and_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "MOST_BYTES", 11)
    with steered_environment() as sigma:
        sigma.set("trainer.**.weights", 0.1)
        with pytest.raises(SigmaStateError, match="cannot undo set: its former state of 0 MiB was not kept. Change it"):
            sigma.undo()
        assert trainer(sigma).session.host(WEIGHTS).tolist() == [[np.float32(0.1)]] * 3


def test_one_of_several_trainers_has_to_be_named() -> None:
    with small_environment(Sweep()) as sigma:
        first = trainer(sigma)
        about = {name: getattr(first, name) for name in ("backend", "operator", "network", "data", "optimiser")}
        sigma.create_trainer("other", **about)
        sigma.prepare()
        sigma.set("trainer.optimiser.learning_rate", 0.2)
        sigma.undo()  # only one trainer has something to undo
        sigma.set("**.learning_rate", 0.2)
        with pytest.raises(SigmaStateError, match=r"trainer, other have something to undo. Name one: undo\(trainer="):
            sigma.undo()
        sigma.undo(trainer="other")
        assert sigma.get("other.optimiser.learning_rate") == 0.05
        assert sigma.get("trainer.optimiser.learning_rate") == 0.2


def test_the_journal_holds_each_command_once_and_what_was_undone(tmp_path: Path) -> None:
    script = {2: lambda s: s.set("trainer.**.learning_rate", 0.2), 5: lambda s: s.undo()}
    with steered_environment(script) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    apart = ("trainer", "epoch", "seconds", "time")
    found = [{k: v for k, v in row.items() if k not in apart} for row in read_journal(run)]
    assert [row for row in found if row.get("command") in ("set", "undo")] == [
        {"iteration": 2, "command": "set", "pattern": "**.learning_rate", "value": 0.2},
        {"iteration": 5, "command": "undo", "undoes": "set"},
    ]


def test_a_resumed_run_can_undo_earlier_commands(tmp_path: Path) -> None:
    script = {3: lambda s: s.swap("optimiser", HEAVY), 6: lambda s: s.swap("optimiser", "plain"), 8: lambda s: s.stop()}
    with steered_environment(script) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    with steered_environment({10: lambda s: s.undo()}) as again:
        again.resume(run)
        again.run()
        found = decisive(trainer(again))
    with steered_environment({**script, 8: lambda s: None, 10: lambda s: s.undo()}) as plain:
        plain.run()
        assert decisive(trainer(plain)) == found


def test_undoing_a_swap_restores_a_setting_that_both_optimisers_have(
    deep: Callable[..., Environment],
) -> None:
    with deep() as sigma:
        sigma.prepare()
        sigma.set("trainer.optimiser.learning_rate", HEAVY["learning_rate"])
        sigma.swap("optimiser", HEAVY)
        sigma.undo()
        assert sigma.get("trainer.optimiser.learning_rate") == HEAVY["learning_rate"]
