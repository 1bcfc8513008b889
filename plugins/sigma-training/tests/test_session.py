"""A session: the same bits for any bursts, stops and restores; and when its hooks fire."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel.clock import TimeStep, after, every
from sigma_kernel.contracts import Hook, HookContext, Schedule, Work
from sigma_kernel.criteria import when
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, SigmaTrainingError
from sigma_step.live import Live
from sigma_step.model import LAYERS
from sigma_store.checkpoints import store as checkpoint
from sigma_testing.doing import Do
from sigma_testing.null import NullBackend
from sigma_testing.steering import Note, Sweep, small_environment, state_bytes
from sigma_training.data.dataset import Rows

Deep = Callable[..., Environment]


@define
class Fading(Schedule):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return 0.97**iterations * 0.9**epochs


@define(eq=False)
class Cut(Sweep):
    """Bursts of these lengths in turn, or the longest possible."""

    lengths: Sequence[int] = ()
    taken: list[int] = field(factory=list)

    def train(self, work: Work) -> None:
        while work.boundary():
            most = self.lengths[len(self.taken) % len(self.lengths)] if self.lengths else 10**9
            self.taken.append(work.advance(min(work.distance(), most)))
            work.settle()


def _remember(context: HookContext) -> None:
    """Derive the learning rate from a hook's memory, so that a wrong memory changes every bit."""
    memory = context.memory
    memory["sum"] = memory.get("sum", 0.0) + context.read("training.loss")
    context.command("set", pattern="optimiser.learning_rate", value=0.1 / (1.0 + memory["sum"]))


def _best(context: HookContext) -> None:
    if context.moment.epoch == 2:
        context.keep()
    if context.moment.epoch == 4:
        context.bring_back()


def _everything(deep: Deep, momentum: Any, operator: Any = None, **settings: Any) -> Environment:
    """Return an environment with every kind of state: dropout, orders, schedules, slots, memory, saved parameters."""
    hooks = {
        "memory": Do(does=_remember, every=every(3, "iteration"), reads=["training.loss"]),
        "criterion": Do(
            does=lambda context: context.command("set", pattern="**.3-dropout.rate", value=0.1),
            when=when("training.loss").decreases().for_(2, "epoch", in_all=True),
        ),
        "best": Do(does=_best),
    }
    optimiser = momentum(schedules={"learning_rate": Fading()})
    return deep(operator, optimiser=optimiser, hooks=hooks, **settings)


# -- bursts ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lengths", [[1], [2, 1], [7], [3, 5, 1, 2], [6, 1, 1], [4]])
def test_iterations_in_bursts_of_any_length_give_the_same_bits(deep: Deep, momentum: Any, lengths: list[int]) -> None:
    found = []
    for operator in (Cut(), Cut(lengths=lengths)):
        with _everything(deep, momentum, operator) as sigma:
            trainer = sigma.trainer("trainer")
            losses = trainer.fit(epochs=5)["training.loss"].tobytes()
            found.append((state_bytes(trainer), losses, json.dumps(trainer.session.snapshot().values["hooks"])))
    assert found[0] == found[1]


def test_a_burst_lasts_an_epoch_if_nothing_is_due() -> None:
    operator = Cut()
    with small_environment(operator) as sigma:
        sigma.trainer("trainer").fit(iterations=12)
    assert operator.taken == [4, 1, 4, 1, 2]  # an epoch is four whole batches and a remainder


def test_a_burst_ends_where_a_hook_is_due() -> None:
    operator = Cut()
    with small_environment(
        operator, hooks={"it": Do(every=every(3, "iteration")), "at": Do(every=after(7, "iteration"))}
    ) as sigma:
        sigma.trainer("trainer").fit(iterations=10)
    assert operator.taken == [3, 1, 1, 1, 1, 2, 1]


# -- goals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("first", "then", "iterations", "epochs"),
    [
        ({"epochs": 2}, {}, 10, 2),
        ({"iterations": 7}, {}, 7, 1),
        ({"iterations": 7}, {"epochs": 1}, 10, 2),
        ({"iterations": 7}, {"epochs": 1, "iterations": 2}, 9, 1),
        ({"iterations": 7}, {"epochs": 1, "iterations": 5}, 10, 2),
        ({"epochs": 0}, {}, 0, 0),
        ({"iterations": 3}, {"iterations": 0}, 3, 0),
        ({"iterations": 3}, {"epochs": 0}, 3, 0),
    ],
)
def test_fit_trains_for_the_given_amount(
    first: dict[str, int], then: dict[str, int], iterations: int, epochs: int
) -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(**first)
        if then:
            trainer.fit(**then)
        moment = trainer.session.moment
    assert (moment.iteration, moment.epoch) == (iterations, epochs)


@pytest.mark.parametrize("count", [-1, 1.5, True, "2"])
@pytest.mark.parametrize("name", ["epochs", "iterations"])
def test_an_invalid_amount_of_training_is_refused(name: str, count: Any) -> None:
    with small_environment(Sweep()) as sigma:
        with pytest.raises(SigmaConfigError, match=f"fit: {name} must be a whole number from 0 on"):
            sigma.trainer("trainer").fit(**{name: count})
        assert len(sigma.trainer("trainer").fit(epochs=1)["training.loss"]) == 5


def test_the_goal_is_the_last_iteration() -> None:
    hooks = {
        "ends": Do(when=when("epoch").reaches(7) | when("training.loss").below(0), stops=True),
        "later": Do(every=after(40, "iteration"), stops=True),
        "other": Do(when=when("epoch").reaches(1)),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        session = sigma.trainer("trainer").session
        assert sigma.get("trainer.goal") == 35
        session.loop.begin(epochs=2)
        assert sigma.get("trainer.goal") == 10
    with small_environment(Sweep()) as sigma:
        assert sigma.trainer("trainer").session.goal() is None


class Pressed(NullBackend):
    """Send Ctrl-C in the middle of a burst."""

    taken = 0

    def take(self, array: Any, rows: np.ndarray) -> Any:
        self.taken += 1
        if self.taken == 30:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return super().take(array, rows)


def test_an_interruption_leaves_a_consistent_state_to_continue_from(deep: Deep, momentum: Any) -> None:
    before = signal.getsignal(signal.SIGINT)
    with _everything(deep, momentum) as sigma:
        sigma.trainer("trainer").fit(epochs=4)
        wanted = state_bytes(sigma.trainer("trainer"))
    with _everything(deep, momentum, backend=Pressed()) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(KeyboardInterrupt):
            trainer.fit(epochs=4)
        done = trainer.session.moment.iteration
        assert 6 < done < 20
        trainer.fit(iterations=20 - done)
        assert state_bytes(trainer) == wanted
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("seed", range(12))
def test_hooks_fire_at_the_same_iterations_for_any_division_into_bursts(seed: int) -> None:
    draw = np.random.default_rng(seed)
    steps = [
        TimeStep(
            str(draw.choice(["iteration", "epoch", "sample"])), int(draw.integers(1, 9)), int(draw.integers(1, 20))
        )
        for _ in range(4)
    ]
    found = []
    for operator in (Cut(), Cut(lengths=[1]), Cut(lengths=draw.integers(1, 6, size=3).tolist())):
        notes = [Note([], every=step, priority=i) for i, step in enumerate(steps)]
        with small_environment(
            operator, rows=7 + seed, batch_size=1 + seed % 6, hooks={str(i): note for i, note in enumerate(notes)}
        ) as sigma:
            sigma.trainer("trainer").fit(iterations=40)
        found.append([note.fired for note in notes])
    assert found[0] == found[1] == found[2]
    assert any(found[0])


# -- when hooks fire ---------------------------------------------------------------------------------------------------
def test_an_epoch_hook_sees_the_state_at_the_end_of_its_epoch() -> None:
    seen: list[bytes] = []
    hook = Do(does=lambda context: seen.append(context.read(f"{LAYERS}weights").tobytes()), reads=["network.**"])
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
    for epoch, bits in enumerate(seen, 1):
        with small_environment(Sweep()) as sigma:
            sigma.trainer("trainer").fit(iterations=5 * epoch)
            assert state_bytes(sigma.trainer("trainer"))[f"{LAYERS}weights"] == bits


def test_samples_count_the_rows_actually_trained_on() -> None:
    hook = Note([], every=every(10, "sample"))
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        assert sigma.get("trainer.sample") == 46
    assert [iteration for iteration, _ in hook.fired] == [2, 4, 7, 9]  # after 10, 20, 33 and 43


def test_hooks_fire_at_the_events_of_a_run() -> None:
    names = ("start", "stop", "pause", "resume", "reset")
    told: list[tuple[str, int]] = []

    def tell(name: str) -> Callable[[HookContext], None]:
        return lambda context: told.append((name, context.moment.iteration))

    def steer(context: HookContext) -> None:
        if context.moment.iteration == 2 and not context.moment.reset:
            for command in ("pause", "go", "reset"):
                context.command(command)

    hooks: dict[str, Hook] = {name: Do(every=TimeStep(name), does=tell(name)) for name in names}
    hooks["steer"] = Do(every=every(2, "iteration"), does=steer)
    with small_environment(Sweep(), hooks=hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=4)
        trainer.fit(iterations=0)
    assert told == [
        ("start", 0), ("pause", 2), ("resume", 2), ("reset", 0), ("stop", 4), ("start", 4), ("stop", 4)
    ]  # fmt: skip


def test_a_hook_may_stop_training_and_those_due_with_it_still_run() -> None:
    late = Note([], every=every(1, "iteration"), priority=-1)
    hooks = {"stop": Do(every=after(3, "iteration"), does=lambda context: context.command("stop")), "late": late}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit()
    assert [iteration for iteration, _ in late.fired] == [1, 2, 3]


def test_a_hook_can_evaluate_current_parameters_and_log_messages(deep: Deep, metric: Any) -> None:
    found: list[dict[str, float]] = []

    def measure(context: HookContext) -> None:
        found.append(context.evaluate("validation", {"distance": metric}))
        context.log(f"epoch {context.moment.epoch}")

    with deep(hooks={"it": Do(does=measure)}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        assert found[1] == trainer.evaluate("validation", {"distance": metric}) != found[0]
        assert [text for _, text in sigma.messages.entries_after(0)] == ["epoch 1", "epoch 2"]


def test_reading_a_pattern_returns_all_matches() -> None:
    seen: list[dict[str, Any]] = []
    taking = ["said.*", "network.**"]
    hooks = {
        "say": Do(does=lambda context: context.publish("said.it", 3), writes=["said.it"], priority=1),
        "read": Do(
            does=lambda context: seen.extend(map(context.read, ("said.*", "network.**", "said.no*"))), reads=taking
        ),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
    assert seen[0] == {"said.it": 3}
    assert list(seen[1]) == [f"{LAYERS}weights"]
    assert seen[2] == {}


# -- saving and restoring ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("done", [1, 4, 5, 11, 15, 23])
def test_a_new_session_continues_with_the_same_bits(deep: Deep, momentum: Any, tmp_path: Path, done: int) -> None:
    with _everything(deep, momentum) as sigma:
        whole = sigma.trainer("trainer")
        whole.fit(iterations=28)
        wanted, losses = state_bytes(whole), whole.history["training.loss"]
        values = whole.session.snapshot().values
    with _everything(deep, momentum) as sigma:
        first = sigma.trainer("trainer")
        first.fit(iterations=done)
        saved = checkpoint.write(tmp_path / str(done), first.session.snapshot())
    with _everything(deep, momentum, Cut(lengths=[2, 3])) as sigma:
        second = sigma.trainer("trainer")
        second.session.restore(checkpoint.read(saved))
        assert sigma.get("trainer.training.loss") == losses[done - 1]
        second.fit(iterations=28 - done)
        assert state_bytes(second) == wanted
        assert second.history["training.loss"].tobytes() == losses[done:].tobytes()
        after = second.session.snapshot().values
    assert all(after[name] == values[name] for name in ("cursor", "live", "hooks", "streams"))


def test_a_snapshot_does_not_change_during_later_training(deep: Deep, momentum: Any) -> None:
    with _everything(deep, momentum) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=12)
        snapshot = trainer.session.snapshot()
        values, arrays = json.dumps(snapshot.values), {name: a.tobytes() for name, a in snapshot.arrays.items()}
        trainer.fit(iterations=12)
        later = state_bytes(trainer)
        assert json.dumps(snapshot.values) == values
        for _ in range(2):  # and may be restored more than once
            trainer.session.restore(snapshot)
            assert state_bytes(trainer) == arrays
            trainer.fit(iterations=12)
            assert state_bytes(trainer) == later
        assert json.dumps(snapshot.values) == values


def test_parameters_kept_by_a_hook_are_saved_and_restored(deep: Deep) -> None:
    kept: list[bytes] = []

    def keep(context: HookContext) -> None:
        if context.moment.epoch == 1:
            context.keep()
            kept.append(context.read(f"{LAYERS}4-dense.bias").tobytes())

    with deep(hooks={"it": Do(does=keep, reads=["network.**"])}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        snapshot = trainer.session.snapshot()
    assert snapshot.arrays[f"kept.it.{LAYERS}4-dense.bias"].tobytes() == kept[0]
    with deep(hooks={"it": Do(does=lambda context: context.bring_back())}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.session.restore(snapshot)
        trainer.fit(epochs=1)
        assert state_bytes(trainer)[f"{LAYERS}4-dense.bias"] == kept[0]


def test_a_reset_also_undoes_live_changes(deep: Deep, momentum: Any) -> None:
    with _everything(deep, momentum) as sigma:
        trainer = sigma.trainer("trainer")
        start = json.dumps({**trainer.session.snapshot().values, "clock": None, "goals": None})
        trainer.fit(iterations=23)
        first = state_bytes(trainer)
        sigma.set("**.4-dense.bias.momentum", 0.1)
        sigma.reset()
        assert json.dumps({**trainer.session.snapshot().values, "clock": None, "goals": None}) == start
        trainer.fit(iterations=23)
        assert state_bytes(trainer) == first


class TwoBlocks(Rows):
    """Rows in a small block and the rest."""

    @property
    def blocks(self) -> int:
        return 2

    def rows(self, block: int) -> int:
        return 3 if block == 0 else super().rows(0) - 3

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {name: values[:3] if block == 0 else values[3:] for name, values in super().block(0).items()}


def test_a_first_block_smaller_than_a_batch_is_skipped_from_the_start_and_after_a_reset(deep: Deep) -> None:
    with deep(last_batch="drop") as sigma:
        trainer = sigma.trainer("trainer")
        trainer.data = TwoBlocks(trainer.data["training"].block(0))
        assert trainer.session.loop.batches(9).rows.shape == (4, 5)
        losses = trainer.fit(epochs=2)["training.loss"]
        assert len(losses) == 8
        sigma.reset()
        assert trainer.fit(epochs=2)["training.loss"][8:].tobytes() == losses.tobytes()


def test_a_parameter_can_be_set_by_a_command(deep: Deep) -> None:
    address = f"trainer.{LAYERS}4-dense.bias"
    with deep() as sigma:
        sigma.prepare()
        sigma.set(address, np.array([0.25]))
        assert sigma.get(address).tolist() == [0.25]
        assert sigma.get(address).dtype == np.float32
        sigma.set(f"trainer.{LAYERS}1-dense.weights", 0.5)
        assert set(sigma.get(f"trainer.{LAYERS}1-dense.weights").ravel()) == {0.5}


def test_training_ends_after_a_total_number_of_epochs_and_fit_trains_more() -> None:
    with small_environment(Sweep(), epochs=3) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.prepare()
        assert sigma.get("trainer.epochs") == 3
        assert sigma.get("trainer.goal") == 15
        trainer.fit()
        assert (trainer.session.moment.epoch, trainer.session.moment.iteration) == (3, 15)
        trainer.fit()
        assert trainer.session.moment.iteration == 15
        assert [text for _, text in sigma.messages.entries_after(0)][
            -1
        ] == "nothing to train: 3 epochs are over already"
        trainer.fit(epochs=2)
        assert trainer.session.moment.epoch == 5
        trainer.fit(iterations=1)
        assert trainer.session.moment.iteration == 26
        sigma.reset()
        sigma.run()
        assert trainer.session.moment.epoch == 3


def test_whichever_end_comes_first_wins() -> None:
    for epochs, expected in ((2, 2), (9, 4), (inf, 4)):
        hooks = {"end": Do(every=every(4, "epoch"), does=lambda context: context.command("stop"))}
        with small_environment(Sweep(), epochs=epochs, hooks=hooks) as sigma:
            sigma.trainer("trainer").fit()
            assert sigma.trainer("trainer").session.moment.epoch == expected


def test_a_total_counts_from_the_beginning_of_a_partial_epoch() -> None:
    with small_environment(Sweep(), epochs=2) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=3)
        trainer.fit()
        assert trainer.session.moment.iteration == 10
        snapshot = trainer.session.snapshot()
    with small_environment(Sweep(), epochs=4) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.prepare()
        trainer.session.restore(snapshot)
        trainer.fit()
        assert trainer.session.moment.epoch == 4


@pytest.mark.parametrize("epochs", [0, -1, 2.5, True, "3", float("nan")])
def test_a_total_that_is_no_number_of_epochs_is_refused(epochs: Any) -> None:
    with (
        small_environment(Sweep(), epochs=epochs) as sigma,
        pytest.raises(SigmaConfigError, match=r"trainer\.epochs: must be a whole number of at least 1, or inf \(got "),
    ):
        sigma.prepare()


@define
class Knobs(Hook):
    """Declare two settable numbers."""

    @property
    def settable(self) -> Mapping[str, float]:
        return {"a.here": 1.0, "b.here": 2.0}

    def fire(self, context: HookContext) -> None:
        """Do nothing."""


def test_setting_a_pattern_changes_all_its_addresses_together(deep: Deep, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    changed = Live.with_base
    monkeypatch.setattr(Live, "with_base", lambda live, base: calls.append(len(base)) or changed(live, base))
    with deep(hooks={"a": Knobs(every=every(1, "epoch"))}) as sigma:
        sigma.prepare()
        calls.clear()
        assert len(sigma.set("trainer.optimiser.**.*.momentum", 0.125)) == 4
        assert len(calls) == 1  # not one per parameter, which would be quadratic
        assert sigma.get("trainer.optimiser.4-dense.bias.momentum") == 0.125
        assert set(sigma.set("trainer.*.here", 3.0)) == {"trainer.a.here", "trainer.b.here"}
        assert sigma.get("trainer.b.here") == 3.0


@pytest.mark.parametrize("value", [[1.0, 2.0], "banana", True, [[0.5]]])
def test_a_parameter_only_accepts_arrays_of_its_shape(deep: Deep, value: Any) -> None:
    with deep() as sigma:
        sigma.prepare()
        with pytest.raises(KeyError, match=r"4-dense.bias: holds float32 of shape \(1,\) \(got"):
            sigma.set(f"trainer.{LAYERS}4-dense.bias", value)


def test_saving_needs_a_folder() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        with pytest.raises(SigmaStateError, match="this environment has no folder. Give it one"):
            sigma.send("save")


# -- errors ------------------------------------------------------------------------------------------------------------
def _explosive(**settings: Any) -> Environment:
    environment = small_environment(Sweep(), **settings)
    environment.trainer("trainer").optimiser.learning_rate = 1e12
    return environment


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_non_finite_loss_ends_training_with_its_iteration_and_advice() -> None:
    with _explosive() as sigma:
        with pytest.raises(
            SigmaTrainingError, match="trainer: the loss is (nan|inf) at iteration [0-9]+ .epoch"
        ) as error:
            sigma.trainer("trainer").fit(epochs=5)
        assert "Lower the learning rate, clip the gradients, or add a nan_guard hook." in str(error.value)
        history = sigma.trainer("trainer").history["training.loss"]
        assert np.isfinite(history[:-1]).all()
        assert not np.isfinite(history[-1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_not_finite_before_any_update_has_other_causes_than_the_learning_rate() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        weights = f"trainer.{LAYERS}weights"
        sigma.set(weights, np.full_like(sigma.get(weights), 1e30))
        with pytest.raises(
            SigmaTrainingError, match="the loss is inf at iteration 1 .*No update was made yet: look"
        ) as e:
            sigma.trainer("trainer").fit(epochs=1)
        assert "learning rate" not in str(e.value)
        assert "--debug-ops" in str(e.value)


@define(eq=False, kw_only=True)
class Watch(Do):
    """Observes gradients."""

    @property
    def reads(self) -> Sequence[str]:
        return ["gradients.weights"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("every_", [1, 2, 3, 5])
def test_observing_values_does_not_let_training_continue_after_a_non_finite_loss(every_: int) -> None:
    ends = []
    for hooks in ({}, {"watch": Watch(every=every(every_, "iteration"))}):
        with _explosive(hooks=hooks) as sigma:
            with pytest.raises(SigmaTrainingError):
                sigma.trainer("trainer").fit(epochs=5)
            ends.append(sigma.trainer("trainer").session.moment.iteration)
    assert ends[0] == ends[1]


@define(eq=False, kw_only=True)
class Guard(Do):
    """Fires at once when the loss is not finite."""

    every: TimeStep = every(1000, "epoch")
    guards: bool = True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_guarding_hook_runs_before_all_others() -> None:
    told: list[str] = []
    hooks = {
        "due": Do(every=every(1, "iteration"), does=lambda context: told.append("due")),
        "guard": Guard(does=lambda context: told.append("guard") or context.command("stop"), priority=-9),
    }
    with _explosive(hooks=hooks) as sigma:
        losses = sigma.trainer("trainer").fit(epochs=5)["training.loss"]
    assert not np.isfinite(losses[-1])
    assert told == [*["due"] * (len(losses) - 1), "guard", "due"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_error_of_a_failing_guard_is_the_guards_own() -> None:
    def fail(context: HookContext) -> None:
        raise SigmaTrainingError("the loss is gone. Look for it.")

    with (
        _explosive(hooks={"guard": Guard(does=fail)}) as sigma,
        pytest.raises(SigmaTrainingError, match="^hook 'guard': the loss is gone. Look for it.$"),
    ):
        sigma.trainer("trainer").fit(epochs=5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_training_can_continue_after_a_non_finite_loss_once_the_cause_is_fixed() -> None:
    with _explosive(hooks={"watch": Watch(every=every(1, "iteration"))}) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(SigmaTrainingError):
            trainer.fit(epochs=5)
        sigma.set("trainer.optimiser.learning_rate", 0.01)
        sigma.set(f"trainer.{LAYERS}weights", 0.0)
        before = trainer.session.moment.iteration
        assert np.isfinite(trainer.fit(iterations=3)["training.loss"][before:]).all()
        assert trainer.session.moment.iteration == before + 3


def _fail(context: HookContext) -> None:
    raise RuntimeError("no")


@pytest.mark.parametrize("event", ["start", "stop"])
def test_waiting_requests_are_answered_even_if_training_fails_to_start_or_end(event: str) -> None:
    with small_environment(Sweep(), hooks={"it": Do(every=TimeStep(event), does=_fail)}) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(SigmaTrainingError, match="no"):
            trainer.fit(epochs=1)
        answer: list[Any] = []
        asking = threading.Thread(target=lambda: answer.append(trainer.session.ask(lambda: 1)), daemon=True)
        asking.start()
        asking.join(60)
        assert answer == [1]


def test_an_operator_that_no_plugin_offers_is_refused_before_training() -> None:
    with small_environment({"type": "locul"}) as sigma, pytest.raises(SigmaConfigError, match="locul"):  # type: ignore[arg-type]
        sigma.prepare()


def test_a_session_cannot_be_trained_by_two_threads() -> None:
    errors: list[BaseException] = []

    def again(context: HookContext) -> None:
        try:
            sigma.trainer("trainer").fit(epochs=1)
        except SigmaStateError as error:
            errors.append(error)

    with small_environment(Sweep(), hooks={"it": Do(does=again)}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
    assert "is training already" in str(errors[0])
