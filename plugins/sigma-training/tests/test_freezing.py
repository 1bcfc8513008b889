"""Freezing parameters during training: their bits and their slots stay, and training goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError
from sigma_testing.journals import read_journal
from sigma_testing.steering import Steered, Sweep, crash, decisive, state_bytes, train_until_crash

Deep = Callable[..., Environment]
FROZEN = "trainer.optimiser.1-dense.weights.frozen"
OWN = {"network.layers.1-dense.weights", "optimiser.slots.1-dense.weights.velocity"}


def steered(deep: Deep, script: Mapping[int, Callable[[Environment], Any]], **settings: Any) -> Environment:
    """Return a prepared environment, steered by a script for 12 iterations."""
    operator = Steered(script=script, last=12)
    operator.environment = deep(operator, **settings)
    operator.environment.prepare()
    return operator.environment


def changed(sigma: Environment, iterations: int = 3) -> set[str]:
    """Train, and return the names in the state that changed."""
    trainer = sigma.trainer("trainer")
    before = state_bytes(trainer)
    trainer.fit(iterations=iterations)
    after = state_bytes(trainer)
    return {name for name in after if after[name] != before[name]}


@pytest.mark.parametrize(
    "operator",
    [Sweep(), {"type": "local", "shards": 2}],
    ids=["fused", "shards"],
)
def test_a_frozen_parameter_and_its_slots_keep_their_bits(deep: Deep, operator: Any) -> None:
    with deep(operator) as sigma:
        sigma.prepare()
        every_name = changed(sigma)
        assert every_name >= OWN
        sigma.set(FROZEN, True)
        assert sigma.get(FROZEN) is True
        assert changed(sigma) == every_name - OWN
        sigma.set(FROZEN, False)
        assert changed(sigma) == every_name


def test_a_released_parameter_goes_on_from_its_slots_and_settings(deep: Deep, momentum: Any) -> None:
    with deep(optimiser=momentum(learning_rate=0.0)) as sigma:
        sigma.prepare()
        trainer = sigma.trainer("trainer")
        sigma.set("trainer.optimiser.1-dense.weights.learning_rate", 0.1)
        changed(sigma)
        sigma.set("trainer.optimiser.momentum", 0.5)
        sigma.set(FROZEN, True)
        changed(sigma)
        sigma.set("trainer.optimiser.learning_rate", 0.0)  # while frozen; then only the old velocity moves it
        start, velocity = (trainer.session.host(name) for name in sorted(OWN))
        sigma.set(FROZEN, False)
        changed(sigma, 2)
        found = trainer.session.host("network.layers.1-dense.weights")
        np.testing.assert_allclose(found, start + (0.5 + 0.25) * velocity, rtol=1e-5)


def test_parameters_frozen_from_the_start_train_as_if_a_rule_had_frozen_them(deep: Deep, momentum: Any) -> None:
    found = []
    for optimiser in (momentum(), momentum(settings={"x": {"match": "1-dense.*", "frozen": True}})):
        with deep(optimiser=optimiser) as sigma:
            sigma.prepare()
            sigma.set("trainer.optimiser.1-dense.*.frozen", True)
            sigma.trainer("trainer").fit(epochs=2)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert {name: found[0][name] for name in found[1] if not name.startswith("undo")} == {
        name: value for name, value in found[1].items() if not name.startswith("undo")
    }


def test_a_parameter_frozen_by_a_rule_can_be_released(deep: Deep, momentum: Any) -> None:
    rule = {"x": {"match": "1-dense.*", "frozen": True, "learning_rate": 0.3}}
    with deep(optimiser=momentum(settings=rule)) as sigma:
        sigma.prepare()
        trainer = sigma.trainer("trainer")
        before, addresses = state_bytes(trainer), sigma.registry.addresses()
        assert sigma.get(FROZEN) is True
        assert not changed(sigma) & OWN
        sigma.set(FROZEN, False)
        assert sigma.get("trainer.optimiser.1-dense.weights.learning_rate") == 0.3
        assert changed(sigma) >= OWN
        sigma.undo()
        assert sigma.get(FROZEN) is True
        assert sorted(sigma.registry.addresses()) == sorted(addresses)
        assert state_bytes(trainer).keys() == before.keys()


def test_an_optimiser_is_frozen_as_a_whole(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        sigma.set("trainer.optimiser.frozen", True)
        assert not [name for name in changed(sigma) if name.endswith(("weights", "bias", "velocity"))]
        sigma.set(FROZEN, False)
        assert sigma.get("trainer.optimiser.frozen") is False
        assert {name for name in changed(sigma) if name.endswith(("weights", "bias", "velocity"))} == OWN


def test_freezing_can_be_undone_and_reset(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        trainer = sigma.trainer("trainer")
        changed(sigma)
        before = decisive(trainer)
        sigma.set("trainer.optimiser.**.frozen", True)
        assert decisive(trainer) != before
        sigma.undo()
        assert decisive(trainer) == before
        sigma.set(FROZEN, True)
        sigma.reset()
        assert sigma.get(FROZEN) is False


@pytest.mark.usefixtures("shop")
def test_a_frozen_parameter_stays_frozen_under_another_optimiser(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        sigma.set(FROZEN, True)
        sigma.swap("optimiser", {"type": "heavy", "learning_rate": 0.02})
        assert sigma.get(FROZEN) is True
        assert not changed(sigma) & OWN
        sigma.set(FROZEN, False)
        assert changed(sigma) >= OWN


@pytest.mark.parametrize("released", [False, True])
def test_a_resumed_run_has_the_frozen_parameters_of_the_original(deep: Deep, tmp_path: Path, released: bool) -> None:
    script: dict[int, Callable[[Environment], Any]] = {
        2: lambda s: s.set(FROZEN, True),
        4: lambda s: s.send("save"),
        **({6: lambda s: s.set(FROZEN, False)} if released else {}),
    }
    with steered(deep, script) as whole:
        whole.folder = tmp_path
        whole.run()
        wanted = decisive(whole.trainer("trainer"))
    with steered(deep, {**script, 9: crash}) as sigma:
        run = train_until_crash(sigma, tmp_path)
    row = next(row for row in read_journal(run) if row.get("command") == "set")
    assert (row["pattern"], row["value"]) == (FROZEN.removeprefix("trainer."), True)
    with steered(deep, {}) as again:
        again.resume(run)
        again.run()
        assert again.get(FROZEN) is not released
        assert decisive(again.trainer("trainer"))[0] == wanted[0]
    with steered(deep, {}) as replayed:
        replayed.replay(run)
        replayed.run()
        assert decisive(replayed.trainer("trainer"))[0] == wanted[0]


class Thaw(Hook):
    """Releases one parameter."""

    def fire(self, context: HookContext) -> None:
        context.command("set", pattern="optimiser.1-dense.weights.frozen", value=False)


def test_a_hook_can_release_parameters(deep: Deep, momentum: Any) -> None:
    rule = {"x": {"match": "1-dense.weights", "frozen": True}}
    with deep(optimiser=momentum(settings=rule), hooks={"thaw": Thaw(every=every(1, "epoch"))}) as sigma:
        sigma.prepare()
        start = sigma.get("trainer.network.layers.1-dense.weights")
        sigma.trainer("trainer").fit(iterations=5)
        assert np.array_equal(sigma.get("trainer.network.layers.1-dense.weights"), start)
        assert changed(sigma) >= OWN


@pytest.mark.parametrize("value", [1, 0.0, "yes", None])
def test_a_parameter_is_frozen_by_true_or_false_only(deep: Deep, value: Any) -> None:
    with deep() as sigma:
        sigma.prepare()
        with pytest.raises(SigmaAddressError, match=f"{FROZEN}: must be true or false"):
            sigma.set(FROZEN, value)


class Look(Hook):
    """Reads one gradient."""

    reads = ("gradients.1-dense.weights",)

    def fire(self, context: HookContext) -> None:
        context.read("gradients.1-dense.weights")


def test_a_parameter_whose_gradient_a_hook_reads_cannot_be_frozen(deep: Deep) -> None:
    with deep(hooks={"look": Look(every=every(1, "iteration"))}) as sigma:
        sigma.prepare()
        before = decisive(sigma.trainer("trainer"))
        with pytest.raises(SigmaConfigError, match="hooks.look: reads 'gradients.1-dense.weights', which nothing here"):
            sigma.set(FROZEN, True)
        assert decisive(sigma.trainer("trainer")) == before
        assert sigma.get(FROZEN) is False
