"""The context of hooks, beyond reading and publishing single values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.clock import after, every
from sigma_kernel.contracts import HookContext, Metric
from sigma_kernel.criteria import when
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaTrainingError
from sigma_kernel.graph.node import Node
from sigma_testing.doing import Do
from sigma_testing.steering import Sweep, small_environment
from sigma_training.hooks.order import by_the_clock

Deep = Callable[..., Environment]


# -- patterns of what is published -------------------------------------------------------------------------------------
def test_values_published_within_a_pattern_have_their_own_address() -> None:
    hook = Do(does=lambda context: context.publish("sizes.a.b", 3), writes=["sizes.**"])
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.get("trainer.sizes.a.b") == 3


def test_a_published_value_is_restored_from_a_checkpoint() -> None:
    hook = Do(does=lambda context: context.publish("sizes.a", 3), writes=["sizes.*"])
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        saved = sigma.trainer("trainer").session.snapshot()
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").session.restore(saved)
        assert sigma.get("trainer.sizes.a") == 3


def test_nothing_is_published_outside_a_pattern() -> None:
    hook = Do(does=lambda context: context.publish("sizes.a.b", 3), writes=["sizes.*"])
    with (
        small_environment(Sweep(), hooks={"it": hook}) as sigma,
        pytest.raises(SigmaTrainingError, match="publishes 'sizes.a.b' without declaring it"),
    ):
        sigma.trainer("trainer").fit(epochs=1)


@pytest.mark.parametrize(("wrote", "read"), [("sizes.**", "sizes.a.b"), ("sizes.a", "sizes.*"), ("s.**", "s.**")])
def test_a_hook_that_publishes_within_a_pattern_precedes_its_readers(wrote: str, read: str) -> None:
    hooks = {"a-reader": Do(reads=[read], every=every(2, "epoch")), "writer": Do(writes=[wrote])}
    with small_environment(Sweep(), splits=["training"], hooks=hooks) as sigma:
        assert sigma.trainer("trainer").session.setup.order.names == ["writer", "a-reader"]


def test_values_outside_all_declared_patterns_are_refused() -> None:
    with (
        small_environment(Sweep(), hooks={"a": Do(writes=["sizes.*"]), "b": Do(reads=["size.a"])}) as sigma,
        pytest.raises(SigmaConfigError, match="reads 'size.a', which nothing here publishes"),
    ):
        sigma.prepare()


@pytest.mark.parametrize("how", [{}, {"background": True}, {"scope": "local"}])
def test_a_pattern_is_read_as_a_mapping_that_is_empty_before_anything_is_published(how: dict[str, Any]) -> None:
    seen: list[Any] = []
    look = Do(
        does=lambda context: seen.append((context.moment.epoch, context.read("sizes.*"), context.read("sizes.a"))),
        reads=["sizes.*", "sizes.a"], **how,
    )  # fmt: skip
    later = Do(does=lambda context: context.publish("sizes.a", 3), writes=["sizes.*"], every=after(2, "epoch"))
    with small_environment(Sweep(), hooks={"look": look, "later": later}) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
    assert seen[0] == (1, {}, None)
    assert seen[-1] == (3, {"sizes.a": 3}, 3)


# -- settable numbers --------------------------------------------------------------------------------------------------
def test_a_settable_number_is_read_set_saved_and_reset() -> None:
    seen: list[float] = []
    look = Do(does=lambda context: seen.append(context.read("switch.a")), reads=["switch.a"])
    hooks = {"switch": Do(settable={"switch.a": 0.5}), "look": look}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        sigma.set("trainer.switch.a", 2)
        trainer.fit(epochs=1)
        saved = trainer.session.snapshot()
        sigma.reset()
        assert sigma.get("trainer.switch.a") == 0.5
        trainer.session.restore(saved)
        assert sigma.get("trainer.switch.a") == 2.0
    assert seen == [0.5, 2.0]


def test_a_settable_number_returns_to_its_former_value_if_setting_it_fails_or_is_undone() -> None:
    def refuse(address: str, old: Any, new: Any) -> None:
        if new == 3:
            raise ValueError("not this one")

    hooks = {"switch": Do(settable={"switch.a": 0.5}), "say": Do(does=lambda c: c.publish("b", 1.0), writes=["b"])}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        sigma.set("trainer.switch.a", 2)
        sigma.registry.observe(refuse, "trainer.switch.a")
        with pytest.raises(ValueError, match="not this one"):
            sigma.set("trainer.switch.a", 3)
        assert sigma.get("trainer.switch.a") == 2.0
        sigma.set("trainer.switch.a", 4)
        sigma.undo()
        assert sigma.get("trainer.switch.a") == 2.0


@pytest.mark.parametrize("value", ["banana", True, None])
def test_a_value_that_is_not_a_number_is_refused_and_changes_nothing(value: Any) -> None:
    with small_environment(Sweep(), hooks={"switch": Do(settable={"switch.a": 0.5})}) as sigma:
        sigma.prepare()
        with pytest.raises(SigmaAddressError, match="switch.a: must be a number"):
            sigma.set("trainer.switch.a", value)
        assert sigma.get("trainer.switch.a") == 0.5


@pytest.mark.parametrize("address", ["switch.a", "training.loss", "epoch"])
def test_a_settable_number_cannot_reuse_an_address(address: str) -> None:
    hooks = {"one": Do(settable={"switch.a": 0.5}), "two": Do(settable={address: 1.0})}
    with (
        small_environment(Sweep(), hooks=hooks) as sigma,
        pytest.raises(SigmaConfigError, match=f"'{address}' exists already. Give the number another name."),
    ):
        sigma.prepare()


# -- times and files ---------------------------------------------------------------------------------------------------
def test_seconds_are_published_by_phase() -> None:
    with small_environment(Sweep(), hooks={"it": Do(does=lambda context: context.evaluate("validation", {}))}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        spent = {phase: sigma.get(f"trainer.phases.{phase}") for phase in ("burst", "data", "hooks", "evaluation")}
        assert all(seconds > 0 for seconds in spent.values())
        assert spent["hooks"] > spent["evaluation"]
        assert sum(spent.values()) - spent["evaluation"] <= sigma.get("trainer.second")


def test_hooks_that_read_phase_times_count_as_timed_and_so_do_their_readers() -> None:
    asks = Do(when=when("phases.burst").above(3), writes=["late"])
    hooks = {"looks": Do(reads=["phases.data"]), "asks": asks, "follows": Do(reads=["late"]), "other": Do()}
    assert by_the_clock(hooks) == {"looks", "asks", "follows"}


def test_hooks_can_read_the_run_folder(tmp_path: Path) -> None:
    seen: list[Path | None] = []
    for folder in (None, tmp_path):
        hook = Do(does=lambda context: (seen.append(context.folder), context.command("stop")))
        with small_environment(Sweep(), hooks={"it": hook}) as sigma:
            sigma.folder = folder
            sigma.run()
            assert seen[-1] == sigma.run_folder


# -- activation maximisation -------------------------------------------------------------------------------------------
def test_gradients_of_samples_agree_with_finite_differences(deep: Deep) -> None:
    found: dict[str, Any] = {}
    x = np.random.default_rng(1).normal(size=(2, 3))
    along = np.array([[1.0], [-2.0]])

    def look(context: HookContext) -> None:
        found["ends"] = [(spec.shape, spec.dtype) for spec in context.ends()]
        found["output"], found["slopes"] = context.excite(x, along)
        step, each = 1e-6, np.eye(3)[:, None, :]
        rises = [context.excite(x + step * d, along)[0] - context.excite(x - step * d, along)[0] for d in each]
        found["differences"] = np.stack([(rise * along).sum(1) / (2 * step) for rise in rises], axis=1)

    with deep(hooks={"it": Do(does=look)}) as sigma:
        sigma.trainer("trainer").precision = "float64"
        sigma.trainer("trainer").fit(epochs=1)
        predicted = sigma.trainer("trainer").predict(x)
    assert found["ends"] == [((3,), "float64"), ((1,), "float64")]
    np.testing.assert_allclose(found["output"], predicted, rtol=1e-12)
    np.testing.assert_allclose(found["slopes"], found["differences"], rtol=1e-6, atol=1e-9)
    assert np.abs(found["slopes"]).min() > 1e-4


# -- metrics that are lists --------------------------------------------------------------------------------------------
class Columns(Metric):
    """The mean of each column of the targets."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(targets, axis=0)

    def value(self, totals: np.ndarray, rows: int) -> list[float]:
        return [float(total) / rows for total in totals]


def test_a_metric_may_be_a_list(deep: Deep) -> None:
    found: list[Any] = []
    hook = Do(
        does=lambda context: found.append(context.evaluate("validation", {"means": Columns()})["means"]),
        splits=["validation"],  # so that no other hook measures there
    )
    with deep(hooks={"it": hook}, metrics={"means": Columns()}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        targets = trainer.data["validation"].block(0)["targets"]
        assert found == [pytest.approx(targets.mean(axis=0))]
        assert len(sigma.get("trainer.training.means")) == 1
        assert "training.means" not in trainer.history
