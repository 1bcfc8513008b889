"""Components that change during a run: hooks, their schedules, the optimiser, the backend, the iterator."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaComponentError, SigmaConfigError, SigmaError, SigmaStateError
from sigma_testing.steering import (
    Slow,
    Sweep,
    crash,
    decisive,
    small_environment,
    steered_environment,
    train_until_crash,
    wait_until,
)
from sigma_training.commands.attach import Attach
from sigma_training.session.applying import Applier
from sigma_training.trainer import NetworkTrainer

pytestmark = pytest.mark.usefixtures("shop")

Script = Mapping[int, Callable[[Environment], Any]]


def ends(sigma: Environment) -> Any:
    return decisive(trainer(sigma))


def trainer(sigma: Environment) -> NetworkTrainer:
    return sigma.trainer("trainer")


COUNT = {"type": "count", "by": 2}


# -- attaching and detaching -------------------------------------------------------------------------------------------
def test_an_attached_hook_fires_from_then_on_and_its_values_are_visible() -> None:
    with steered_environment({4: lambda sigma: sigma.attach("it", COUNT)}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 2 * 8
        assert trainer(sigma).session.state.memory["it"]["hook"] == {"count": 16}


def test_sending_a_command_returns_when_it_applied() -> None:
    said = []
    with steered_environment({4: lambda sigma: said.append(sigma.send("attach", name="it", hook="count"))}) as sigma:
        sigma.run()
    assert said[0]["trainer"].iteration == 4


def test_attached_hooks_are_ordered_by_their_declarations() -> None:
    with steered_environment(splits=["training"]) as sigma:
        sigma.attach("a", "count")  # not read by any hook yet
        sigma.attach("0", {"type": "follow"})
        assert trainer(sigma).session.setup.order.names == ["a", "0"]


def test_a_cycle_is_refused_before_anything_changes() -> None:
    with steered_environment(splits=["training"]) as sigma:
        sigma.attach("a", {"type": "follow", "after": "training.loss", "into": "x"})
        sigma.attach("b", {"type": "follow", "after": "x", "into": "y"})
        before = ends(sigma)
        with pytest.raises(SigmaConfigError, match="their order is cyclic"):
            sigma.set("trainer.hooks.a.when", "y is above 1")
        assert ends(sigma) == before
        assert sigma.get("trainer.hooks.a.when") == ""
        assert trainer(sigma).session.setup.order.names == ["a", "b"]


def test_a_detached_hook_leaves_no_values_or_memory() -> None:
    script: Script = {
        3: lambda sigma: [sigma.attach("it", COUNT), sigma.attach("keep", "keep")],
        6: lambda sigma: [sigma.detach("it"), sigma.detach("keep")],
    }
    with steered_environment(script, splits=["training"]) as sigma:
        sigma.run()
        session = trainer(sigma).session
        assert "count" not in session.state.published
        assert "trainer.count" not in sigma.registry
        assert "trainer.hooks.it.every" not in sigma.registry
        assert list(session.state.memory) == []
        assert not [name for name in session.state.kept if name.startswith("kept.")]


def test_a_value_that_another_hook_also_publishes_stays() -> None:
    with steered_environment({3: lambda sigma: sigma.detach("a")}, hooks={"a": "count", "b": COUNT}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 24


def test_a_duplicate_hook_is_refused_however_it_arises() -> None:
    with steered_environment(splits=["training"]) as sigma:
        sigma.attach("y", COUNT)
        with pytest.raises(SigmaConfigError, match="hooks.x: is the same as hooks.y. Leave one out, or let"):
            sigma.attach("x", COUNT)
        sigma.attach("x", {**COUNT, "every": "9 epochs"})
        with pytest.raises(SigmaConfigError, match="hooks.x: is the same as hooks.y"):
            sigma.set("trainer.hooks.x.every", sigma.get("trainer.hooks.y.every"))
        assert "9 epochs" in sigma.get("trainer.hooks.x.every")
        assert trainer(sigma).session.setup.order.names == ["x", "y"]


def test_the_order_of_attached_hooks_is_restored_from_a_checkpoint(tmp_path: Path) -> None:
    def attach(sigma: Environment) -> None:
        for name in ("y", "x", "z"):
            sigma.attach(name, {"type": "count", "by": ord(name)})
        sigma.send("save")

    with steered_environment({2: attach, 3: crash}, splits=["training"]) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with steered_environment(splits=["training"]) as again:
        again.resume(run)
        assert list(trainer(again).session.setup.parts.hooks) == ["y", "x", "z"]
        assert [name for name, _ in trainer(again).session.snapshot().values["changes"]["hooks"]] == ["y", "x", "z"]


def test_a_configured_hook_can_be_detached_and_a_reset_restores_it() -> None:
    with steered_environment(hooks={"it": "count"}, splits=["training"]) as sigma:
        sigma.detach("it")
        assert trainer(sigma).session.setup.order.names == []
        sigma.reset()
        assert trainer(sigma).session.setup.order.names == ["it"]
        assert trainer(sigma).session.setup.order.hooks["it"] is trainer(sigma).session.setup.factory.base.hooks["it"]


def test_a_hook_may_detach_another_that_is_due_with_it() -> None:
    with steered_environment(hooks={"remove": "remove", "count": "count"}) as sigma:
        sigma.run()
        assert "trainer.count" not in sigma.registry


@pytest.mark.parametrize(
    ("move", "kind", "message"),
    [
        (lambda s: s.attach("it", "cuont"), SigmaError, "Did you mean 'count'?"),
        (lambda s: s.attach("it", {"type": "count", "bye": 2}), SigmaConfigError, "'bye'. Did you mean 'by'?"),
        (lambda s: s.attach("it", {"type": "count", "every": "banana"}), SigmaConfigError, "is not a time step"),
        (lambda s: s.attach("it", Slow()), SigmaStateError, "for the journal and its replay (got Slow)"),
        (lambda s: s.attach("it", {"by": 2}), SigmaStateError, "(got {'by': 2})"),
        (lambda s: s.attach("it", 3), SigmaStateError, "command 'attach': hook: must be a name, or a table"),
        (lambda s: s.attach("it", {"type": "count", "by": Slow()}), SigmaStateError, "table of plain values"),
        (lambda s: s.attach(3, "count"), SigmaStateError, "command 'attach': name: must be a string (got 3)."),
        (lambda s: s.attach("a.b", "count"), SigmaConfigError, "attach: 'a.b' is not a name."),
        (lambda s: s.attach("there", "count"), SigmaConfigError, "there is a hook 'there' already. Detach it first."),
        (lambda s: s.attach("it", "follow"), SigmaConfigError, "reads 'count', which nothing here publishes."),
        (lambda s: s.attach("it", {"type": "knob", "called": "goal"}), SigmaConfigError, "'goal' exists already."),
        (lambda s: s.detach("ther"), SigmaConfigError, "detach: there is no hook 'ther'. Did you mean 'there'?"),
        (lambda s: s.detach("there"), SigmaConfigError, "hooks.reader: reads 'seen', which nothing here publishes."),
        (lambda s: s.swap("optimizer", "heavy"), SigmaStateError, "must be 'optimiser' or 'backend' or 'iterator'"),
        (lambda s: s.swap("network", "heavy"), SigmaStateError, "command 'swap': slot: must be 'optimiser'"),
        (lambda s: s.swap("optimiser", "haevy"), SigmaError, "Did you mean 'heavy'?"),
        (lambda s: s.swap("optimiser", Slow()), SigmaStateError, "command 'swap': component: must be a name"),
        (lambda s: s.swap("optimiser", {"type": "heavy", "momentum": "high"}), SigmaError, "momentum: must be"),
        (
            lambda s: s.swap("optimiser", {"type": "heavy", "settings": {"x": {"match": "nobody", "frozen": True}}}),
            SigmaConfigError, "optimiser.settings.x: 'nobody' matches no parameter.",
        ),
        (
            lambda s: s.swap("optimiser", {"type": "heavy", "schedules": {"learning_rate": "no"}}),
            SigmaError, "no",
        ),
        (lambda s: s.swap("backend", "half"), SigmaConfigError, "the backend has no precision 'float32'."),
        (lambda s: s.swap("backend", "broken"), SigmaComponentError, "backend (acme-shop:broken): RuntimeError: no"),
        (lambda s: s.set("trainer.hooks.there.every", "banana"), SigmaConfigError, "'banana' is not a time step"),
        (lambda s: s.set("trainer.hooks.there.every", 3), SigmaError, "trainer.hooks.there.every: must be a string"),
        (lambda s: s.set("trainer.hooks.there.when", "banana"), SigmaConfigError, "hooks.there.when: 'banana'"),
        (lambda s: s.set("trainer.hooks.*.when", "count reaches"), SigmaConfigError, "hooks.there.when"),
        (lambda s: s.set("trainer.optimiser.learning_rate", "banana"), SigmaError, "must be a finite number"),
        (lambda s: s.undo(), SigmaStateError, "trainer: there is nothing to undo. The last"),
    ],
)  # fmt: skip
def test_a_refused_command_is_explained_and_changes_nothing(move: Any, kind: type, message: str) -> None:
    hooks = {"there": {"type": "count", "into": "seen"}, "reader": {"type": "follow", "after": "seen"}}
    with steered_environment(hooks=hooks, splits=["training"]) as sigma:
        trainer(sigma).fit(iterations=3)
        before, addresses = ends(sigma), sigma.registry.addresses()
        with pytest.raises(kind) as error:
            move(sigma)
        assert message in str(error.value)
        assert ends(sigma) == before
        assert sigma.registry.addresses() == addresses


def test_a_value_that_fits_only_some_matches_changes_none(deep: Any) -> None:
    with deep() as sigma:
        sigma.prepare()
        before = ends(sigma)
        with pytest.raises(SigmaError, match=r"weights: holds float32 of shape \(4, 1\)"):
            sigma.set("trainer.**.weights", np.ones((3, 4)))
        assert ends(sigma) == before


def test_the_retention_policy_of_an_attached_hook_applies(tmp_path: Path) -> None:
    script: Script = {
        1: lambda s: s.send("save", keep=False),
        3: lambda s: s.send("save", keep=False),
        5: lambda s: s.attach("it", "saves"),
    }
    assert _saved(tmp_path, script) == {"12"}


def test_checkpoints_saved_by_command_are_kept_whatever_the_retention_policy(tmp_path: Path) -> None:
    script: Script = {
        1: lambda s: s.attach("it", "saves"),
        3: lambda s: s.send("save"),
        7: lambda s: s.send("save", trainer="trainer"),
    }
    assert _saved(tmp_path, script) == {"3", "7", "12"}


def _saved(folder: Path, script: Script) -> set[str]:
    with steered_environment(script) as sigma:
        sigma.folder = folder
        sigma.run()
        assert sigma.run_folder is not None
        return {path.name for path in (sigma.run_folder / "checkpoints" / "trainer").iterdir()}


def test_a_plugin_introduced_by_a_command_is_recorded_with_the_run(tmp_path: Path, distribution: Any) -> None:
    parts = "from sigma_testing.steering import Descent\n\n\nclass New(Descent):\n    pass\n"
    distribution("acme-late", "'optimiser', 'late', 'acme_late.parts:New', 'It.'", parts=parts)
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        sigma.prepare()
        trainer(sigma).fit(epochs=1)
        assert sigma.run_folder is not None
        file = sigma.run_folder / "plugins.json"
        before = json.loads(file.read_text())["plugins"]
        assert "acme-late" not in before
        sigma.swap("optimiser", {"type": "late", "learning_rate": 0.01})
        assert json.loads(file.read_text()) == {"format": 1, "plugins": {**before, "acme-late": "1.2"}}


# -- hooks with a live schedule ----------------------------------------------------------------------------------------
def test_the_schedule_of_a_hook_can_be_set_live() -> None:
    script: Script = {4: lambda sigma: sigma.set("trainer.hooks.it.every", "4 iterations")}
    with steered_environment(script, hooks={"it": "count"}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 4 + 2  # each of four, then 8 and 12
        assert sigma.get("trainer.hooks.it.every") == "every 4 iterations"
        assert str(trainer(sigma).session.setup.factory.base.hooks["it"].every) == "every 1 iteration"


def test_the_criterion_of_a_hook_can_be_set_and_removed_live() -> None:
    script: Script = {
        2: lambda sigma: sigma.set("trainer.hooks.it.when", "iteration reaches 20"),
        9: lambda sigma: sigma.set("trainer.hooks.it.when", ""),
    }
    with steered_environment(script, hooks={"it": "count"}) as sigma:
        sigma.run()
        assert sigma.get("trainer.count") == 2 + 3  # at 1 and 2, and at 10, 11 and 12
        assert sigma.get("trainer.hooks.it.when") == ""


def test_a_newly_set_criterion_starts_without_memory() -> None:
    with steered_environment(
        hooks={"it": {"type": "count", "when": "training.loss decreases for 2 iterations"}}
    ) as sigma:
        trainer(sigma).fit(iterations=4)
        memory = trainer(sigma).session.state.memory["it"]
        assert memory["criterion"]
        sigma.set("trainer.hooks.it.when", "training.loss increases for 2 iterations")
        assert trainer(sigma).session.state.memory["it"] == {**memory, "criterion": {}}


@pytest.mark.parametrize(("what", "text"), [("every", "banana"), ("every", 3), ("when", "count reaches")])
def test_an_invalid_time_is_refused_before_it_is_queued(what: str, text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with steered_environment(hooks={"it": "count"}) as sigma:
        monkeypatch.setattr(Applier, "send", None)
        with pytest.raises(SigmaConfigError, match=f"trainer.hooks.it.{what}: "):
            sigma.set(f"trainer.hooks.it.{what}", text)


# -- swapping ----------------------------------------------------------------------------------------------------------
def test_a_swapped_in_optimiser_keeps_the_parameters_and_starts_with_new_slots() -> None:
    swap = {"type": "heavy", "learning_rate": 0.02, "momentum": 0.5}
    with steered_environment({6: lambda sigma: sigma.swap("optimiser", swap)}) as sigma:
        sigma.run()
        after = trainer(sigma).session.snapshot().arrays
        assert int(after["optimiser.step"]) == 6
        assert sigma.get("trainer.optimiser.momentum") == 0.5
    with steered_environment(last=6) as one:
        trainer(one).fit(iterations=6)
        weights = trainer(one).session.snapshot().arrays["network.layers.weights"].astype(np.float64)
        feed, velocity = trainer(one).session.setup.feed, np.zeros((3, 1))
        data = {name: values.astype(np.float64) for name, values in trainer(one).data["training"].block(0).items()}
        at = trainer(one).session.state.cursor
        for _ in range(6):  # the same by hand
            batches = feed.next_batches(at, 1)
            x, y = (data[name][batches.rows[0]] for name in ("inputs", "targets"))
            velocity = 0.5 * velocity - 0.02 * 2 * x.T @ (x @ weights - y) / len(x)
            weights += velocity
            at = feed.advance(at, batches, 1)
    assert np.allclose(after["network.layers.weights"], weights, atol=1e-5)


def test_the_addresses_of_a_swapped_out_optimiser_are_removed() -> None:
    with steered_environment() as sigma:
        sigma.swap("optimiser", "heavy")
        assert sigma.get("trainer.optimiser.weights.momentum") == 0.9
        sigma.set("trainer.optimiser.learning_rate", 0.5)
        assert sigma.get("trainer.optimiser.weights.learning_rate") == 0.5
        sigma.swap("optimiser", {"type": "plain", "learning_rate": 0.25})
        assert sigma.get("trainer.optimiser.learning_rate") == 0.25
        assert not [a for a in sigma.registry.addresses() if a.endswith("momentum")]


def test_an_optimiser_whose_setting_a_hook_reads_cannot_be_swapped_out() -> None:
    with steered_environment() as sigma:
        sigma.swap("optimiser", "heavy")
        sigma.attach("it", {"type": "follow", "after": "optimiser.momentum"})
        with pytest.raises(SigmaConfigError, match=r"reads 'optimiser.momentum', which nothing here publishes"):
            sigma.swap("optimiser", "plain")
        assert sigma.get("trainer.optimiser.momentum") == 0.9


def test_freezing_rules_apply_to_a_swapped_in_optimiser(deep: Any) -> None:
    rule = {"type": "heavy", "settings": {"still": {"match": "1-*.weights", "frozen": True}}}
    with deep() as sigma:
        one = trainer(sigma)
        sigma.prepare()
        one.fit(iterations=4)
        sigma.swap("optimiser", rule)
        before = one.session.host("network.layers.1-dense.weights")
        one.fit(iterations=4)
        assert (one.session.host("network.layers.1-dense.weights") == before).all()
        assert "optimiser.slots.1-dense.weights.velocity" not in one.session.state.arrays


def test_another_backend_can_continue_with_the_same_state() -> None:
    with steered_environment({5: lambda sigma: sigma.swap("backend", "other")}) as sigma:
        summary = sigma.run()
        assert type(trainer(sigma).session.setup.programs.backend).__name__ == "Other"
        assert summary.backend == "other"
        found = ends(sigma)[0]
        assert trainer(sigma).evaluate()["loss"] > 0
    with steered_environment() as plain:
        plain.run()
        assert ends(plain)[0] == found


def test_a_repeated_iteration_has_its_block_and_state_on_the_other_backend() -> None:
    with steered_environment() as sigma:
        session = trainer(sigma).session
        sigma.swap("backend", "other")
        placed = [*session.loop.batches(1).block.values(), *session.state.arrays.values()]
        assert {type(values).__name__ for values in placed} == {"Placed"}


def test_a_compiled_backend_resumes_a_run_within_tolerance() -> None:
    script: Script = {5: lambda s: s.swap("backend", "numba"), 9: lambda s: s.swap("backend", "numpy")}
    with steered_environment(script) as sigma, steered_environment() as plain:
        sigma.run()
        plain.run()
        name = "network.layers.weights"
        one, other = (trainer(s).session.snapshot().arrays[name] for s in (sigma, plain))
    assert np.allclose(one, other, rtol=1e-5)


def test_a_swapped_in_iterator_applies_from_the_next_iteration() -> None:
    with steered_environment() as sigma:
        sigma.swap("iterator", "backwards")
        assert trainer(sigma).session.loop.batches(1).rows[0].tolist() == [22, 21, 20, 19, 18]
        sigma.undo()
        assert trainer(sigma).session.loop.batches(1).rows[0].tolist() != [22, 21, 20, 19, 18]


# -- the life of a run -------------------------------------------------------------------------------------------------
MUCH: Script = {
    2: lambda s: s.attach("it", COUNT),
    3: lambda s: s.attach("lower", {"type": "follow", "every": "2 iterations"}),
    4: lambda s: s.set("trainer.hooks.it.every", "2 iterations"),
    5: lambda s: s.swap("optimiser", {"type": "heavy", "learning_rate": 0.03}),
    6: lambda s: s.set("trainer.hooks.lower.when", "iteration reaches 8"),
    7: lambda s: s.detach("first"),
    8: lambda s: s.swap("backend", "other"),
    9: lambda s: s.undo(),
    10: lambda s: [s.swap("iterator", "backwards"), s.detach("lower")],
    11: lambda s: [s.undo(), s.set("trainer.**.learning_rate", 0.01), s.undo(), s.set("trainer.**.momentum", 0.3)],
}


def much(script: Script = MUCH, **settings: Any) -> Environment:
    return steered_environment(script, hooks={"first": {"type": "count", "into": "first"}}, **settings)


def test_a_steered_run_ends_differently_from_an_unsteered_one() -> None:
    with much() as sigma, much({}) as plain:
        sigma.run()
        plain.run()
        assert ends(sigma)[0]["network.layers.weights"] != ends(plain)[0]["network.layers.weights"]


def test_a_steered_run_replays_to_the_same_result(tmp_path: Path) -> None:
    with much() as sigma:
        sigma.folder = tmp_path
        sigma.run()
        wanted, run = ends(sigma), sigma.run_folder
    assert run is not None
    with much({}) as again:
        _, differs = again.replay(run)
        assert differs == {}
        assert ends(again) == wanted


@pytest.mark.parametrize("stopped", range(1, 12))
def test_a_steered_run_resumes_to_the_bits_of_an_uninterrupted_one(tmp_path: Path, stopped: int) -> None:
    before = {**MUCH, stopped: lambda s: [MUCH.get(stopped, lambda _: None)(s), s.stop()]}
    with much() as plain:
        plain.run()
        wanted = ends(plain)
    with much(before) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    later = {at: steer for at, steer in MUCH.items() if at > stopped}
    with much(later) as again:
        again.resume(run)
        again.run()
        assert ends(again) == wanted


def test_a_crash_is_recovered_from_the_journal(tmp_path: Path) -> None:
    with much() as plain:
        plain.run()
        wanted = ends(plain)
    script = {**MUCH, 3: lambda s: [MUCH[3](s), s.send("save", trainer="trainer")], 12: crash}
    with much(script, last=13) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with much({}) as again:
        again.resume(run)
        again.run()
        assert ends(again) == wanted


def _crashed(folder: Path) -> Path:
    """Return a run with a checkpoint at iteration 3 that crashed at 9."""
    with much({3: lambda s: s.send("save"), 5: MUCH[5], 9: crash}) as sigma:
        return train_until_crash(sigma, folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.set("trainer.optimiser.learning_rate", 0.3),
        lambda s: trainer(s).registry.set("optimiser.learning_rate", 0.3),
        lambda s: s.attach("it", COUNT),
        lambda s: s.send("save"),
        lambda s: s.reset(),
        lambda s: s.rewind(3),
        lambda s: s.undo(),
    ],
)
def test_commands_between_resume_and_run_are_refused_while_the_journal_is_unreplayed(
    tmp_path: Path, change: Callable[[Environment], Any]
) -> None:
    with much({5: MUCH[5], 9: lambda s: s.set("trainer.optimiser.learning_rate", 0.3)}) as plain:
        plain.run()
        wanted = ends(plain)
    run = _crashed(tmp_path)
    with much({9: lambda s: s.set("trainer.optimiser.learning_rate", 0.3)}) as again:
        again.resume(run)
        with pytest.raises(SigmaStateError, match="resumed at iteration 3, and what its journal holds after"):
            change(again)
        again.run()
        assert ends(again) == wanted
        assert not [text for _, text in again.messages.entries_after(0) if "differs" in text]


def test_changes_after_a_stop_apply_when_the_run_continues(tmp_path: Path) -> None:
    with much({6: lambda s: s.set("trainer.optimiser.learning_rate", 0.3)}) as plain:
        plain.run()
        wanted = ends(plain)
    with much({6: lambda s: s.stop()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        sigma.set("trainer.optimiser.learning_rate", 0.3)
        run = sigma.run_folder
    assert run is not None
    with much({}) as again:
        again.resume(run)
        again.run()
        assert ends(again) == wanted
    with much({}) as last:
        _, differs = last.replay(run)
        assert differs == {}
        assert ends(last) == wanted


def test_a_run_that_needs_a_removed_plugin_is_not_resumed_and_names_it(tmp_path: Path, distribution: Any) -> None:
    with steered_environment({3: lambda s: s.attach("it", "count")}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    distribution("acme-shop", "'hook', 'other', 'acme_shop.parts:Other', 'It.'", parts="", version="2.0")
    with small_environment(Sweep()) as again:
        with pytest.raises(SigmaCheckpointError, match="no intact checkpoint"):
            again.resume(run)
        said = " ".join(text for _, text in again.messages.entries_after(0))
        assert "does not fit: trainer.hooks.it: hook 'count'" in said


# -- the environment ---------------------------------------------------------------------------------------------------
def test_a_run_can_be_changed_from_another_thread() -> None:
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        sigma.prepare()
        thread = threading.Thread(target=sigma.run)
        thread.start()
        wait_until(lambda: sigma.state == "running")  # before, there is nothing to pause
        moment = sigma.attach("it", COUNT)["trainer"]
        sigma.pause()
        paused = trainer(sigma).session.moment
        assert sigma.get("trainer.count") == 2 * (paused.iteration - moment.iteration)
        sigma.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_a_command_that_one_trainer_cannot_apply_changes_none() -> None:
    with small_environment(Sweep(), splits=["training"]) as sigma:
        first = trainer(sigma)
        about = {name: getattr(first, name) for name in ("backend", "operator", "network", "data", "optimiser")}
        sigma.create_trainer("other", hooks={"it": "count"}, **about)
        sigma.prepare()
        with pytest.raises(SigmaConfigError, match="there is a hook 'it' already"):
            sigma.attach("it", "count")
        assert trainer(sigma).session.setup.order.names == []
        sigma.attach("it", "count", trainer="trainer")
        assert trainer(sigma).session.setup.order.names == ["it"]


def test_a_hook_that_is_attached_before_preparation_prepares_the_trainer() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.attach("it", "count")
        assert sigma.state == "prepared"
        assert "it" in sigma.trainer("trainer").session.setup.order.hooks


def test_a_table_that_is_edited_after_its_command_changes_nothing() -> None:
    table: dict[str, Any] = {"type": "counter", "more": {"inner": [1]}}
    made = Attach("counted", table)
    table["more"]["inner"].append(2)
    table["type"] = "other"
    assert made.hook == {"type": "counter", "more": {"inner": [1]}}
