"""What monitors see of an environment: addresses with kinds, measured values, layers, hooks, states, tickets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field

from sigma_kernel import AddressEntry, Hook, HookContext, HookEntry, Monitor, StateEntry, TimeStep, View, every
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import LayerEntry
from sigma_kernel.curves import Curve, Window, downsample
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaComponentError, SigmaConfigError, SigmaStateError
from sigma_kernel.views import EnvironmentView
from sigma_run import load
from sigma_step.blocks import RowRecords
from sigma_step.graphs import activity_step
from sigma_store.curves import read_curves
from sigma_testing import Do, FakeView, Note, Slow, Sweep, ViewSuite, small_environment
from sigma_testing.steering import state_bytes, steered_environment, wait_until
from sigma_training import evaluator
from sigma_training.data.dataset import Rows
from sigma_training.history.metrics import History

PATIENCE = 60.0


@define(eq=False)
class Kept(Monitor):
    """Keep the view, and wait for the end."""

    view: Any = None
    begun: threading.Event = field(factory=threading.Event)

    def watch(self, view: View) -> None:
        """Keep it."""
        self.view = view
        self.begun.set()
        view.wait(PATIENCE)


def seen(sigma: Environment) -> View:
    """Return the view of an environment that need not train."""
    return EnvironmentView(sigma, threading.Event())


@contextmanager
def trained(folder: Path | None = None, **settings: Any) -> Iterator[View]:
    """Train for two epochs, go back to the first, and train on."""
    with small_environment(Sweep(), **settings) as sigma:
        sigma.folder = folder
        sigma.trainer("trainer").recorder.past.took(-1.0)
        for _ in range(2):
            sigma.trainer("trainer").recorder.past.took(-1.0)  # the next snapshot is due at once
            sigma.trainer("trainer").fit(epochs=1)
        sigma.rewind(1, "epoch")
        sigma.trainer("trainer").fit(epochs=2)
        yield seen(sigma)


class TestViewOfARun(ViewSuite):
    def make(self) -> Any:
        return trained()


class TestFakeView(ViewSuite):
    @contextmanager
    def make(self) -> Iterator[View]:
        view = FakeView(refusals={"nonsense": "there is no such command."})
        view.values = {"trainer.training.loss": 0.5, "trainer.name": "mnist"}
        view.measured = {"trainer.training.loss": np.sin(np.arange(100.0))}
        view.layers = [LayerEntry("0-input", "input", (), (3,), {}, {})]
        view.kept, view.noted, view.texts = [StateEntry(5, 1, True, False)], [{"command": "pause"}], ["saved"]
        yield view

    def test_an_unknown_address_is_refused(self) -> None:
        with pytest.raises(SigmaAddressError, match="Give the fake view this value"):
            FakeView().get("trainer.training.loss")

    def test_it_records_and_answers_commands(self) -> None:
        view = FakeView(refusals={"save": "there is no folder."})
        assert view.send("pause").result() == {"trainer": view.moment}
        assert view.send("save").why == "there is no folder."
        assert [(ticket.command, ticket.state) for ticket in view.sent] == [("pause", "applied"), ("save", "refused")]
        assert not view.wait(0.0)
        assert view.status() == "running"


# -- earlier states ----------------------------------------------------------------------------------------------------
def test_a_state_has_the_parameters_and_the_losses_of_then(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        trainer, view = sigma.trainer("trainer"), seen(sigma)
        trainer.fit(epochs=1)
        sigma.save()
        now = view.trainer("trainer")
        at = now.states()[-1].iteration
        arrays = {name: x.tobytes() for name, x in now.parameters().items()}
        losses = now.losses("training").losses.tobytes()
        trainer.fit(epochs=2)
        for _ in range(2):  # from memory, then from the disk
            then = now.state(at)
            assert {name: x.tobytes() for name, x in then.parameters().items()} == arrays
            assert then.losses("training").losses.tobytes() == losses
            assert {name: x.tobytes() for name, x in now.parameters().items()} != arrays
            assert now.losses("training").losses.tobytes() != losses
            trainer.recorder.past.states = []


def test_a_state_of_another_network_is_refused() -> None:
    with trained() as view:
        state = view.trainer("trainer").states()[0].iteration
        past = view.trainer("trainer").recorder.past  # type: ignore[attr-defined]
        moment, checkpoint = next(entry for entry in past.states if entry[0].iteration == state)
        arrays = {name: x for name, x in checkpoint.arrays.items() if not name.startswith("network.layers.")}
        past.states = [(moment, evolve(checkpoint, arrays=arrays))]
        with pytest.raises(SigmaStateError, match=f"iteration {state}: had another network. Choose a later state."):
            view.trainer("trainer").state(state)


# -- addresses ---------------------------------------------------------------------------------------------------------
def test_an_entry_tells_type_range_unit_and_whether_it_can_be_set() -> None:
    with trained() as view:
        entries = {entry.address: entry for entry in view.entries()}
    rate = entries["trainer.optimiser.learning_rate"]
    assert (rate.type, rate.settable, rate.value) == ("number", True, 0.05)
    assert entries["trainer.second"].unit == "seconds"
    assert (entries["trainer.iteration"].type, entries["trainer.iteration"].value) == ("whole", 15)
    assert entries["trainer.iteration"].doc == "The iterations done."
    assert not entries["trainer.iteration"].settable
    assert entries["trainer.optimiser.frozen"].type == "flag"
    assert entries["trainer.training.loss"].type == "number"
    assert not entries["trainer.training.loss"].settable


def steps(view: EnvironmentView, name: str) -> list[tuple[int, list[int], list[float]]]:
    found = view.stretches(f"trainer.{name}")[1]
    return [(one.branch, one.curve.iterations.tolist(), one.curve.values.tolist()) for one in found]


def test_asking_whether_a_history_has_a_name_looks_for_no_similar_names(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History()
    history.begin(0)

    def suggest(*given: Any) -> str:
        raise AssertionError("hundreds of names are compared, for each of the curves of a page")

    monkeypatch.setattr("sigma_training.history.metrics.suggest_name", suggest)
    assert "training.loss" not in history
    assert history.points("training.loss", Window(), 0) == (0, [])


def test_a_number_that_can_be_set_has_its_values_from_the_beginning_on(tmp_path: Path) -> None:
    script: Any = {
        3: lambda sigma: [sigma.set("trainer.optimiser.learning_rate", 0.1), sigma.set("trainer.batch_size", 4)],
        7: lambda sigma: sigma.undo(),  # of the batch size
        8: lambda sigma: sigma.undo(),
        9: lambda sigma: sigma.rewind(1, "epoch"),
        11: lambda sigma: sigma.reset(),
    }
    with steered_environment(script, last=12, epochs=9) as sigma:
        sigma.folder, view = tmp_path, seen(sigma)
        assert steps(view, "optimiser.learning_rate") == [(0, [0], [0.05])]
        cursor, _ = view.stretches("trainer.optimiser.learning_rate")
        sigma.run()
        assert steps(view, "optimiser.learning_rate") == [
            (0, [0, 3, 8], [0.05, 0.1, 0.05]),
            (1, [5], [0.1]),
            (1, [0], [0.05]),
        ]
        assert steps(view, "optimiser.weights.learning_rate") == steps(view, "optimiser.learning_rate")
        assert steps(view, "batch_size")[0] == (0, [0, 3, 7], [5.0, 4.0, 5.0])
        assert steps(view, "epochs") == [(0, [0], [9.0])]
        rest = view.stretches("trainer.optimiser.learning_rate", cursor)[1]
        assert [value for one in rest for value in one.curve.values] == [0.1, 0.05, 0.1, 0.05]
        assert not {"optimiser.learning_rate", "batch_size"} & {*sigma.trainer("trainer").history}
        run = sigma.run_folder
    with steered_environment({}, last=14, epochs=9) as again:
        again.resume(run)
        again.run()
        assert steps(seen(again), "optimiser.learning_rate") == [(1, [again_from(run)], [0.05])]


def again_from(run: Any) -> int:
    """Return the iteration from which a run went on."""
    rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return next(int(row["iteration"]) for row in rows if row.get("event") == "resumed")


def test_an_entry_has_the_tags_of_the_levels_above_it() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.registry.branch("notes.mine", "note", "old")
        sigma.registry.put("notes.mine.text", "hello")
        entry = next(entry for entry in seen(sigma).entries("notes.**") if entry.address.endswith("text"))
    assert entry == AddressEntry("notes.mine.text", "text", "hello", True, tags=("note", "old"))


def test_an_entry_of_an_array_has_its_shape_and_does_not_wait_for_training() -> None:
    with small_environment(Sweep(), hooks={"block": (hook := Blocking())}) as sigma:
        thread = threading.Thread(target=sigma.run)
        thread.start()
        assert hook.inside.wait(PATIENCE)
        entries = {entry.address: entry for entry in seen(sigma).entries()}
        hook.go.set()
        sigma.stop()
        thread.join(PATIENCE)
    held = entries["trainer.network.layers.weights"]
    assert (held.type, held.shape, held.value, held.settable) == ("array", (3, 1), None, True)


@define(eq=False, kw_only=True)
class Blocking(Hook):
    """Hold the training thread."""

    every: TimeStep = every(1, "iteration")
    inside: threading.Event = field(factory=threading.Event)
    go: threading.Event = field(factory=threading.Event)

    def fire(self, context: HookContext) -> None:
        """Wait until it may go on."""
        self.inside.set()
        assert self.go.wait(PATIENCE)


def test_what_a_hook_published_has_the_type_of_its_value() -> None:
    found = {"a": np.arange(3.0), "b": np.float32(0.5), "c": "text", "d": True, "e": [1, 2], "f": None}

    def publish(context: HookContext) -> None:
        for name, value in found.items():
            context.publish(f"own.{name}", value)

    hook = Do(does=publish, every=every(1, "epoch"), writes=("own.*",))
    with small_environment(Sweep(), hooks={"own": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        entries = {entry.address[-1]: entry for entry in seen(sigma).entries("trainer.own.*")}
    assert [entries[name].type for name in "abcde"] == ["array", "number", "text", "flag", "any"]
    assert (entries["a"].shape, entries["b"].value, entries["e"].value) == ((3,), 0.5, None)


# -- measured values ---------------------------------------------------------------------------------------------------
def test_each_branch_is_a_stretch_of_its_own() -> None:
    with trained() as view:
        assert [(branch.number, branch.parent, branch.start) for branch in view.trainer("trainer").branches()] == [
            (0, None, 0), (1, 0, 5),
        ]  # fmt: skip
        _, found = view.stretches("trainer.training.loss")
    assert [(one.branch, one.curve.iterations.tolist()) for one in found] == [
        (0, list(range(1, 11))), (1, list(range(6, 16))),
    ]  # fmt: skip
    assert found[0].curve.epochs.tolist() == [0] * 4 + [1] * 5 + [2]


def test_the_curve_of_the_present_leaves_out_what_several_rewinds_left() -> None:
    history = History()

    def train(first: int, last: int, value: float) -> None:
        for iteration in range(first, last + 1):
            history.record({"x": np.array([value])}, Moment(iteration - 1), Moment(iteration))

    train(1, 10, 0.0)
    history.leave(1, 6)
    train(7, 9, 1.0)
    history.leave(2, 8)
    train(9, 9, 2.0)
    history.leave(3, 3)  # before the first branch was left
    train(4, 5, 3.0)
    assert history.curve("x").iterations.tolist() == [1, 2, 3, 4, 5]
    assert history.curve("x").values.tolist() == [0.0, 0.0, 0.0, 3.0, 3.0]
    assert len(history["x"]) == 10 + 3 + 1 + 2
    assert [one.branch for one in history.stretches_since("x", 0, 100)[1]] == [0, 1, 2, 3]


def test_a_curve_of_bursts_has_every_iteration_with_its_time() -> None:
    history = History()
    history.record({"x": np.array([1.0, 2.0, 4.0])}, Moment(0, 0, 0, 1.0), Moment(3, 1, 0, 4.0))
    history.record({"x": np.array([8.0])}, Moment(3, 1, 0, 5.0), Moment(4, 1, 0, 7.0))
    curve = history.curve("x")
    assert curve.iterations.tolist() == [1, 2, 3, 4]
    assert curve.epochs.tolist() == [0, 0, 1, 1]
    assert curve.seconds.tolist() == [2.0, 3.0, 4.0, 7.0]
    assert curve.values.tolist() == [1.0, 2.0, 4.0, 8.0]
    assert history.stretches_since("x", 1, 100)[1][0].curve.values.tolist() == [8.0]
    assert history.stretches_since("x", 2, 100) == (2, [])


def test_names_are_read_on_while_something_new_is_measured() -> None:
    history = History()
    history.record({"x": np.array([1.0])}, Moment(0, 0, 0, 0.0), Moment(1, 0, 0, 1.0))
    names = iter(history)
    history.record({"y": np.array([1.0])}, Moment(0, 0, 0, 0.0), Moment(1, 0, 0, 1.0))
    assert [*names] == ["x"]
    assert [*history] == ["x", "y"]


@pytest.mark.parametrize("most", [1, 2, 7, 99, 100, 1000])
def test_thinning_keeps_the_ends_and_the_extremes(most: int) -> None:
    values = np.random.default_rng(0).normal(size=100)
    values[[13, 14]] = np.nan
    at = np.arange(1, 101)
    thin = downsample(Curve(at, at // 10, at * 0.5, values, values, values), most)
    assert len(thin.values) == min(most, 100)
    assert (thin.iterations[-1], thin.values[-1]) == (100, values[-1])
    assert (np.nanmin(thin.low), np.nanmax(thin.high)) == (np.nanmin(values), np.nanmax(values))
    assert (np.diff(thin.iterations) > 0).all()


def test_a_monitor_reads_on_while_training_goes_on() -> None:
    read: list[int] = []
    done = threading.Event()

    def watch(view: View) -> None:
        cursor = 0
        while not view.wait(0.0) or not done.is_set():
            cursor, found = view.stretches("trainer.training.loss", cursor, 10**6)
            read.extend(at for one in found for at in one.curve.iterations.tolist())
            if view.status() in ("finished", "stopped"):
                done.set()
        cursor, found = view.stretches("trainer.training.loss", cursor, 10**6)
        read.extend(at for one in found for at in one.curve.iterations.tolist())

    with small_environment(Sweep(), epochs=40) as sigma:
        view = seen(sigma)
        thread = threading.Thread(target=watch, args=(view,))
        thread.start()
        sigma.run()
        view.over.set()  # type: ignore[attr-defined]
        thread.join(PATIENCE)
    assert read == list(range(1, 201))


# -- trainers ----------------------------------------------------------------------------------------------------------
def test_the_network_is_told_by_layers_with_shapes_and_parameters() -> None:
    with Environment() as sigma:
        x = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
        trainer = sigma.create_trainer(network="input(3) + dropout(0.25) + dense(4, activation='tanh') + output(2)")
        trainer.network = trainer.network + " + softmax_cross_entropy()"
        trainer.data, trainer.optimiser = {"inputs": x, "targets": (x[:, 0] > 0).astype(int)}, "adam"
        trainer.hooks = {"stop": {"type": "stop", "when": "epoch reaches 1"}}
        sigma.prepare()
        view = seen(sigma)
        layers = {layer.name: layer for layer in view.trainer("trainer").network()}
        assert list(layers) == ["0-input", "1-dropout", "2-dense", "3-output", "4-softmax_cross_entropy"]
        dense = layers["2-dense"]
        assert (dense.component, dense.sources, dense.shape) == ("dense", ("1-dropout",), (4,))
        assert dense.parameters == {
            "trainer.network.layers.2-dense.weights": (3, 4), "trainer.network.layers.2-dense.biases": (4,),
        }  # fmt: skip
        assert layers["1-dropout"].settings["rate"] == 0.25
        assert dense.settings["activation"] == "tanh"
        assert view.trainer("trainer").splits() == {"training": 20}
        assert view.trainer("trainer").predict(x[:5])["3-output"].shape == (5, 2)
        assert view.trainer("trainer").columns() == {}


def test_activations_are_what_each_layer_makes_of_samples_that_are_predicted() -> None:
    x = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    with Environment(seed=1) as sigma:
        text = "input(3) + dropout(0.5) + dense(4, activation='tanh') + output(2) + softmax_cross_entropy()"
        sigma.create_trainer(
            data={"inputs": 7 * x + 2, "targets": (x[:, 0] > 0).astype(int)},
            network=text,
            optimiser="adam",
            preprocessors={"even": {"type": "standardise", "section": "inputs"}},
            batch_size=4,
        ).fit(epochs=2)
        view, values = seen(sigma), {}
        found, said = view.trainer("trainer").activations(7 * x[:5] + 2), view.trainer("trainer").predict(7 * x[:5] + 2)
        for name in ("2-dense.weights", "2-dense.biases", "3-output.weights", "3-output.biases"):
            values[name] = sigma.get(f"trainer.network.layers.{name}").astype(float)
    given = ((7 * x + 2) - (7 * x + 2).mean(0)) / (7 * x + 2).std(0)
    dense = np.tanh(given[:5] @ values["2-dense.weights"] + values["2-dense.biases"])
    output = dense @ values["3-output.weights"] + values["3-output.biases"]
    assert [*found] == ["0-input", "1-dropout", "2-dense", "3-output"]
    for name, wanted in zip(found, (given[:5], given[:5], dense, output), strict=True):
        assert found[name] == pytest.approx(wanted, abs=1e-5), name
    shares = np.exp(output) / np.exp(output).sum(1, keepdims=True)
    assert said["3-output"] == pytest.approx(shares, abs=1e-5)


def test_what_a_monitor_asks_of_the_network_is_computed_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, computed, states, step = [], RowRecords.compute, [], activity_step
    monkeypatch.setattr(
        RowRecords, "compute", lambda *about: threads.append(threading.current_thread()) or computed(*about)
    )
    x = np.ones((20, 3), "float32")
    with Environment() as sigma:
        sigma.create_trainer(
            data={"inputs": x, "targets": x[:, :1]},
            network="input(3) + output(1) + squared_difference()",
            optimiser="adam",
            hooks={"slow": Slow()},
            epochs=100_000,
        )
        sigma.prepare()
        training = threading.Thread(target=sigma.run)
        training.start()
        view = seen(sigma)
        monkeypatch.setattr(evaluator, "activity_step", lambda *about: states.append(view.status()) or step(*about))
        wait_until(lambda: sigma.get("trainer.epoch"))  # by then, training has compiled its own steps
        trainer = view.trainer("trainer")
        for ask in (trainer.predict, trainer.activations):
            ask(x)
        sigma.stop()
        training.join(PATIENCE)
    assert {*threads} == {threading.current_thread()}
    assert states == ["running"], "training does not wait for what a monitor has compiled"


class Columns(Rows):
    """Rows whose columns have names."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__({"inputs": np.ones((6, 3), "float32"), "targets": np.ones((6, 1), "float32")})
        self.names = names

    def column_names(self, section: str) -> Sequence[str]:
        return self.names if section == "inputs" else ()


def test_the_names_of_columns_are_those_of_the_data_and_are_saved_with_the_run(tmp_path: Path) -> None:
    names = ["length", "width", "height"]
    settings = {"network": "input(3) + output(1) + squared_difference()", "optimiser": "adam", "epochs": 1}
    with Environment("titled", folder=tmp_path) as sigma:
        sigma.create_trainer(data=Columns(names), **settings)
        sigma.run()
        assert seen(sigma).trainer("trainer").columns() == {"inputs": names}
        assert sigma.run_folder is not None
        trained = load(sigma.run_folder)
        assert trained.columns == {"inputs": names}
        activations = trained.activations(np.ones((2, 3), "float32"))
    assert {name: one.shape for name, one in activations.items()} == {"0-input": (2, 3), "1-output": (2, 1)}
    with Environment("untitled") as sigma:
        trainer = sigma.create_trainer(data=Columns(["length"]), **settings)
        with pytest.raises(SigmaComponentError, match=r"column_names\('inputs'\) must return \(3,\) names"):
            trainer.prepare()


def test_layers_inside_of_others_are_told_as_text_and_by_the_addresses_of_their_parameters() -> None:
    with Environment() as sigma:
        trainer = sigma.create_trainer(data={"inputs": np.ones((4, 3)), "targets": np.ones((4, 3))}, optimiser="adam")
        trainer.network = (
            "x1 = input(3); x1 + subnetwork(dense(2, name='code') + dense(3), name='both') + add(x1) + output()"
            " + squared_difference()"
        )
        sigma.prepare()
        layers = {layer.name: layer for layer in seen(sigma).trainer("trainer").network()}
        assert layers["both"].settings == {"name": "both", "chain": 'dense(2, name="code") + dense(3)'}
        head, inner = "trainer.network.layers.both", [("code", "weights"), ("code", "biases")]
        inner += [("1-dense", "weights"), ("1-dense", "biases")]
        assert set(layers["both"].parameters) == {f"{head}.{layer}.{name}" for layer, name in inner}
        assert layers["2-add"].settings == {}
        assert layers["2-add"].sources == ("both", "0-input")


def test_hooks_are_told_in_order_with_reasons() -> None:
    hooks = {
        "b": Note([], every=every(1, "epoch")),
        "reader": Do(does=lambda context: None, every=every(1, "epoch"), reads=("own.value",)),
        "writer": Do(does=lambda context: None, every=every(1, "epoch"), writes=("own.value",)),
    }
    with small_environment(Sweep(), splits=["training"], hooks=hooks) as sigma:
        sigma.prepare()
        found = seen(sigma).trainer("trainer").hooks()
    assert [hook.name for hook in found] == ["b", "writer", "reader"]
    assert found[2].reasons == ("writer before reader: reader reads own.value, which writer writes",)
    assert found[1].reasons == ("b before writer: by name, as nothing else decides",)
    assert found[0] == HookEntry("b", "note", "every 1 epoch", "", (), False, False)


def test_states_are_those_kept_in_memory_and_those_on_disk(tmp_path: Path) -> None:
    with trained(tmp_path) as view:
        states = view.trainer("trainer").states()
    assert [state.iteration for state in states if state.saved] == [5, 15]
    assert all(state.epoch == state.iteration // 5 for state in states)
    assert any(state.kept for state in states)


def test_a_trainer_that_is_not_prepared_is_asked_in_vain() -> None:
    with small_environment(Sweep()) as sigma:
        with pytest.raises(SigmaStateError, match="is not prepared yet"):
            seen(sigma).trainer("trainer").network()
        with pytest.raises(SigmaConfigError, match="no such trainer"):
            seen(sigma).trainer("trainor").hooks()


# -- commands ----------------------------------------------------------------------------------------------------------
def test_a_ticket_tells_what_became_of_its_command() -> None:
    with small_environment(Sweep(), hooks={"block": (hook := Blocking())}) as sigma:
        thread = threading.Thread(target=sigma.run)
        thread.start()
        assert hook.inside.wait(PATIENCE)
        view = seen(sigma)
        good = view.send("set", pattern="trainer.optimiser.learning_rate", value=0.5)
        bad = view.send("set", pattern="trainer.optimiser.learning_rate", value=-1.0)
        end = view.send("stop")
        assert [ticket.state for ticket in view.tickets()] == ["queued"] * 3
        with pytest.raises(TimeoutError):
            good.result(0.01)
        assert (good.moments, good.why) == ({}, "")
        hook.go.set()
        end.result(PATIENCE)
        thread.join(PATIENCE)
    assert [ticket.state for ticket in view.tickets()] == ["applied", "refused", "applied"]
    assert good.moments["trainer"].iteration == 1
    assert "at least 0" in bad.why or "more than 0" in bad.why
    assert [ticket.number for ticket in view.tickets(good.number)] == [bad.number, end.number]


def test_commands_of_a_view_are_applied_in_order_and_leave_no_thread() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        view = seen(sigma)
        rates = [0.001 * (n + 1) for n in range(50)]
        tickets = [view.send("set", pattern="trainer.optimiser.learning_rate", value=rate) for rate in rates]
        for ticket in tickets:
            ticket.result(PATIENCE)
        values = [row["value"] for _, row in view.journal() if row.get("command") == "set"]
    assert values == rates
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "sigma-commands"])


def test_the_journal_is_read_on_from_the_last_row_and_holds_no_digests(tmp_path: Path) -> None:
    with trained(tmp_path) as view:
        rows = view.journal()
        assert {row.get("command") for _, row in rows} >= {"rewind", "save"}
        assert not [row for _, row in rows if row.get("event") == "digest"]
        assert view.journal(rows[2][0]) == rows[3:]
        assert all(isinstance(row, Mapping) for _, row in rows)


def test_a_resumed_run_shows_the_rows_from_before(tmp_path: Path) -> None:
    with small_environment(Sweep(), epochs=2) as sigma:
        sigma.folder = tmp_path
        sigma.prepare()
        sigma.set("trainer.optimiser.learning_rate", 0.25)
        sigma.run()
        run, before = sigma.run_folder, seen(sigma).journal()
    assert run is not None
    with small_environment(Sweep(), epochs=3) as sigma:
        sigma.resume(run)
        rows = [row for _, row in seen(sigma).journal()]
        assert next(row for row in rows if row.get("command") == "set")["value"] == 0.25
        told = [{name: value for name, value in row.items() if name != "place"} for row in rows]
        assert told[: len(before)] == [row for _, row in before]
        sigma.run()
        after = [row.get("event") or row.get("command") for _, row in seen(sigma).journal()]
    assert after.count("set") == 1


def test_branches_go_on_with_their_numbers_after_a_resume(tmp_path: Path) -> None:
    with trained(tmp_path) as view:
        run = view.folder
    assert run is not None
    with small_environment(Sweep()) as sigma:
        sigma.resume(run)
        sigma.trainer("trainer").fit(epochs=1)
        assert [branch.number for branch in seen(sigma).trainer("trainer").branches()] == [1]


def test_a_reset_begins_a_stretch_that_leaves_the_former_values(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        sigma.reset()
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.trainer("trainer").history.curve("training.loss").iterations.tolist() == [1, 2, 3, 4, 5]
        assert len(seen(sigma).stretches("trainer.training.loss")[1]) == 2


# -- the points of charts ----------------------------------------------------------------------------------------------
WHOLE = Window()


def points(view: View, name: str, window: Window = WHOLE) -> list[tuple[int, list[int], list[float]]]:
    found = view.points(f"trainer.{name}", window)[1]
    return [(one.branch, one.curve.iterations.tolist(), one.curve.values.tolist()) for one in found]


def test_a_chart_shows_the_points_of_the_run_folder_while_a_run_trains_and_after_it(tmp_path: Path) -> None:
    with trained(tmp_path) as view:
        shown = {name: points(view, name) for name in ("training.loss", "validation.loss")}
        few = points(view, "training.loss", Window(most=2))
        run = view.folder
    assert run is not None
    assert [branch for branch, *_ in shown["training.loss"]] == [0, 1]
    stored = read_curves(run, pytest.fail)["trainer"]
    for name, own in shown.items():
        kept = [
            (one.branch, one.curve.iterations.tolist(), one.curve.values.tolist()) for one in stored.stretches(name)
        ]
        assert kept == own
    assert sum(len(at) for _, at, _ in few) == 2
    with small_environment(Sweep()) as sigma:
        sigma.resume(run)
        assert points(seen(sigma), "training.loss") == shown["training.loss"]  # with what was measured before


def test_what_was_measured_is_stored_before_a_run_waits(tmp_path: Path) -> None:
    hooks = {"wait": Do(does=lambda context: context.command("pause"), every=every(3, "iteration"))}
    with small_environment(Sweep(), hooks=hooks, epochs=2) as sigma:
        sigma.folder = tmp_path
        thread = threading.Thread(target=sigma.run)
        thread.start()
        for at in (3, 6, 9):
            wait_until(lambda: sigma.state == "paused")
            wait_until(lambda at=at: [end[-1] for _, end, _ in points(seen(sigma), "training.loss")] == [at])
            sigma.go()
            wait_until(lambda at=at: sigma.get("trainer.iteration") > at or sigma.state != "paused")
        thread.join(60)
    assert not thread.is_alive()


def test_what_is_measured_while_a_chart_is_read_comes_after_its_cursor() -> None:
    history = History()

    class Late(list):  # type: ignore[type-arg]
        def __getitem__(self, place: Any) -> Any:
            history.add("loss", 7.0, Moment(9))  # as the training thread does meanwhile
            return super().__getitem__(place)

    history.add("loss", 5.0, Moment(3))
    history._parts["loss"].values = Late(history._parts["loss"].values)
    cursor, (one,) = history.points("loss", Window(), 0)
    _, later = history.points("loss", Window(), cursor)
    assert one.curve.iterations.tolist() == [3]
    assert {*later[0].curve.iterations.tolist()} == {9}


def test_means_of_joined_points_are_finite_where_their_sum_is_not() -> None:
    history = History(most=200)
    history.record({"loss": np.full(4000, 1e308)}, Moment(0), Moment(4000))
    (one,) = history.points("loss", Window(most=50), 0)[1]
    assert one.curve.means == pytest.approx(1e308)


def test_without_a_run_folder_a_chart_shows_what_is_in_memory_evenly() -> None:
    history = History(most=200)
    for at in range(0, 2000, 10):
        history.record({"loss": np.arange(at, at + 10.0)}, Moment(at), Moment(at + 10))
    (one,) = history.points("loss", Window(most=50), 0)[1]
    assert len(one.curve.values) <= 50
    assert one.curve.low.min() == 0.0
    assert history.points("nothing", Window(), 0) == (0, [])


# -- readings ----------------------------------------------------------------------------------------------------------
def test_readings_of_a_monitor_are_curves_beside_the_state_that_no_hook_reads() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        session, before = trainer.session, state_bytes(trainer)
        session.record_readings({"memory.run": 1.5}, {"memory.run": "GiB"})
        session.record_readings({"memory.run": 2.5}, {"memory.run": "GiB"})
        view = seen(sigma)
        (entry,) = view.entries("trainer.system.**")
        assert (entry.address, entry.value, entry.unit) == ("trainer.system.memory.run", 2.5, "GiB")
        _, (stretch,) = view.stretches("trainer.system.memory.run")
        assert stretch.curve.values.tolist() == [1.5, 2.5]
        assert {*stretch.curve.iterations} == {session.moment.iteration}
        assert session.lookup("system.memory.run") is None
        assert session.lookup("**.memory.run") == {}
        assert state_bytes(trainer) == before
        sigma.set("trainer.optimiser.learning_rate", 0.01)  # bindings are made anew
        assert sigma.get("trainer.system.memory.run") == 2.5


def test_a_reading_is_recorded_at_a_boundary_while_a_trainer_trains_and_else_not() -> None:
    class Gauge(Monitor):
        def watch(self, view: View) -> None:
            while not view.wait(0.01):
                view.trainer("trainer").record({"threads.run": 3.0}, {"threads.run": ""})

    with small_environment(Sweep()) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        seen(sigma).trainer("trainer").record({"threads.run": 1.0}, {"threads.run": ""})
        assert "system.threads.run" not in sigma.trainer("trainer").history
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        sigma.monitors["gauge"] = Gauge()
        thread = threading.Thread(target=sigma.run)
        thread.start()
        wait_until(lambda: "trainer.system.threads.run" in sigma.registry)
        sigma.stop()
        thread.join(PATIENCE)
        assert {*sigma.trainer("trainer").history["system.threads.run"]} == {3.0}
