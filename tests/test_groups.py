"""Training by a group of workers, over a transport whose workers are threads of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field

import sigma_ml as sm
from sigma_kernel import Environment, Hook, HookContext, SigmaConfigError, SigmaStateError, SigmaTrainingError, every
from sigma_kernel.clock import TimeStep
from sigma_kernel.contracts import Commit, ComputeOrder, Position, ShardPart
from sigma_layers import Dense, Input, Output, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_testing import Do
from sigma_testing.transports.driving import read_events
from sigma_testing.transports.threads import ThreadChannel, ThreadOperator, ThreadTransport, kill_at_random
from sigma_training.workers import driver, replica
from sigma_training.workers.blueprint import TrainingBlueprint, make_blueprint

PATIENCE = 60.0
STEERED = """format = 1

[run]
name = "steered"
operator = { type = "local", shards = 2 }

[data]
dataset = "iris"
batch_size = 16

[network]
architecture = 'input(4) + dense(16, activation="tanh") + output(3) + softmax_cross_entropy()'

[trainer]
epochs = 100000
optimiser = { type = "adam", learning_rate = 0.01 }
"""


def environment(recipe: str, operator: Any, *sets: str, folder: Path | None = None) -> Environment:
    made = sm.from_file(recipe, *sets, folder=folder)
    made.trainer("trainer").operator = operator
    return made


def digest(recipe: str, operator: Any, *sets: str) -> str | None:
    return environment(recipe, operator, *sets).run(progress=False).parameters_sha256


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


# -- the same bits -----------------------------------------------------------------------------------------------------
CARRIED = """format = 1
[run]
seed = 1
precision = "float64"
[data]
dataset = "adding"
rows = 90
steps = 12
iterator = "sequential"
batch_size = 20
last_batch = "drop"
[network]
architecture = "input(none, 2) + lstm(5, carried=20) + output(1) + squared_difference()"
[trainer]
epochs = 4
[trainer.optimiser]
type = "adam"
learning_rate = 0.02
[trainer.optimiser.schedules.learning_rate]
type = "cosine"
total = "4 epochs"
"""
NORMALISED = """format = 1
[run]
seed = 2
[data]
dataset = "digits"
batch_size = 70
[network]
architecture = '''
input(8, 8) + flatten() + dense(9) + batch_norm() + dropout(0.3) + output(10) + softmax_cross_entropy()
'''
[trainer]
epochs = 2
metrics = { top = "accuracy" }
optimiser = { type = "adam", learning_rate = 0.01 }
"""
CASES = {
    "uneven batches": ("iris", ["trainer.epochs=4", "data.batch_size=17"]),
    "another last batch": ("wdbc", ["trainer.epochs=2", "data.batch_size=50"]),
    "mixed precision": ("digits", ["trainer.epochs=1", "run.precision=mixed_bfloat16"]),
    "state of rows": (CARRIED, []),
    "state of layers": (NORMALISED, []),
}


@pytest.mark.long_cases("another last batch", "mixed precision", "state of layers", "state of rows")
@pytest.mark.parametrize("case", CASES)
def test_bits_do_not_depend_on_the_number_of_workers(case: str) -> None:
    recipe, sets = CASES[case]
    wanted = digest(recipe, LocalOperator(shards=4), *sets)
    assert {digest(recipe, ThreadOperator(workers=n, shards=4), *sets) for n in (1, 2, 3, 4)} == {wanted}


def test_metrics_and_local_values_are_those_of_local_training() -> None:
    def metrics(operator: Any) -> dict[str, Any]:
        sigma = environment(NORMALISED, operator)
        sigma.run(progress=False)
        return {**sigma.find("trainer.training.*"), **sigma.find("trainer.workers.*.training.loss")}

    assert metrics(ThreadOperator(workers=2, shards=4)) == metrics(LocalOperator(workers=2, shards=4))


@define(eq=False, kw_only=True)
class Follow(Hook):
    """Set the learning rate by the loss of each worker."""

    scope: str = "local"
    every: TimeStep = every(3, "iteration")

    @property
    def reads(self) -> Sequence[str]:
        return ("training.loss",)

    def fire(self, context: HookContext) -> None:
        context.command("set", pattern="optimiser.learning_rate", value=0.01 * float(context.read("training.loss")))


@pytest.mark.long
def test_hooks_of_local_scope_see_the_same_whoever_dies(tmp_path: Path) -> None:
    def train(operator: Any) -> Environment:
        sigma = environment("iris", operator, "hooks.finish.when='epoch reaches 20'", folder=tmp_path)
        trainer = sigma.trainer("trainer")
        trainer.hooks = {**trainer.hooks, "follow": Follow()}
        return sigma

    sigma = train(LocalOperator(workers=2, shards=4))
    wanted = sigma.run(progress=False).parameters_sha256
    operator = ThreadOperator(workers=2, shards=4, burst_seconds=0.005)
    sigma = train(operator)
    with kill_at_random(operator, 1, 0.6):
        assert sigma.run(progress=False).parameters_sha256 == wanted
    summary, differences = train(LocalOperator(workers=2, shards=4)).replay(sigma.run_folder, progress=False)
    assert (summary.parameters_sha256, differences) == (wanted, {})


# -- what is trained ---------------------------------------------------------------------------------------------------
CHANGES: dict[str, Any] = {
    "network": "input(4) + dense(16, activation='relu') + output(3) + softmax_cross_entropy()",
    "seed": 77, "iterator": "sequential", "precision": "float64", "batch_size": 11,
    "optimiser": {"type": "momentum", "learning_rate": 0.01},
}  # fmt: skip


@pytest.mark.parametrize("setting", CHANGES)
def test_workers_train_what_was_changed_in_python(setting: str) -> None:
    def train(operator: Any) -> str | None:
        sigma = environment("iris", operator, "hooks.finish.when='epoch reaches 3'")
        setattr(sigma.trainer("trainer"), setting, CHANGES[setting])
        return sigma.run(progress=False).parameters_sha256

    assert train(ThreadOperator(workers=2, shards=2)) == train(LocalOperator(shards=2))


def arrays(operator: Any, **settings: Any) -> Any:
    draw = np.random.default_rng(0)
    rows, targets = draw.normal(size=(60, 3)).astype("float32"), draw.normal(size=(60, 1)).astype("float32")
    sigma = Environment("mine", seed=3, most_data=settings.pop("most_data", 2**26))
    network = "input(3) + dense(4) + output(1) + squared_difference()"
    given = {"data": (rows, targets), "network": network, "optimiser": "adam", "batch_size": 20, "operator": operator}
    return sigma.create_trainer(**{**given, **settings})


def test_workers_need_no_hooks_and_any_number_of_rows() -> None:
    def train(operator: Any) -> bytes:
        hook = Do(does=lambda context: None, every=every(2, "iteration"))
        trainer = arrays(operator, most_data=100, seed=5, hooks={"mine": hook})
        trainer.fit(epochs=3, progress=False)
        return bytes(trainer.session.host("network.layers.1-dense.weights"))

    assert train(ThreadOperator(workers=2, shards=2)) == train(LocalOperator(shards=2))


def test_what_workers_cannot_make_is_refused_before_they_start() -> None:
    class Own(Dense):
        """A layer that no module offers."""

    network = Input(3) + Own(4) + Output(1) + SquaredDifference()
    trainer = arrays(operator := ThreadOperator(workers=2, shards=2), network=network)
    with pytest.raises(SigmaConfigError, match=r"workers in other processes cannot make .* Move it to a module"):
        trainer.fit(epochs=1, progress=False)
    assert not operator.transports


def test_workers_take_what_was_learned_before_from_other_data(tmp_path: Path) -> None:
    sigma = sm.from_file("iris", "hooks.finish.when='epoch reaches 3'", folder=tmp_path)
    sigma.run(progress=False)

    def train(operator: Any) -> bytes:
        trainer = sm.load(sigma.run_folder).trainer
        trainer.operator, trainer.hooks = operator, {}
        draw = np.random.default_rng(1)
        trainer.data = (7 + 3 * draw.normal(size=(50, 4)).astype("float32"), draw.integers(0, 3, 50))
        trainer.fit(epochs=3, progress=False)
        return bytes(trainer.session.host("network.layers.1-dense.weights"))

    assert train(ThreadOperator(workers=2, shards=2)) == train(LocalOperator(shards=2))


@pytest.mark.parametrize("optimiser", ["l_bfgs", "random_search", "cma_es"])
def test_one_shard_is_the_fused_step(optimiser: str) -> None:
    sets = ["trainer.epochs=2", f"trainer.optimiser={{type='{optimiser}'}}"]
    assert digest("iris", ThreadOperator(), *sets) == digest("iris", LocalOperator(), *sets)


# -- workers that are lost ---------------------------------------------------------------------------------------------
@pytest.mark.long_cases("1", "2")
@pytest.mark.parametrize("seed", range(3))
def test_deaths_at_random_moments_change_no_bits(seed: int, tmp_path: Path) -> None:
    sets = ["trainer.epochs=40", "hooks.finish.when='epoch reaches 40'"]
    wanted = digest("iris", LocalOperator(shards=3), *sets)
    operator = ThreadOperator(workers=3, shards=3, burst_seconds=0.01)
    sigma = environment("iris", operator, *sets, folder=tmp_path)
    with kill_at_random(operator, seed, 0.6) as killed:
        summary = sigma.run(progress=False)
    assert killed
    assert summary.parameters_sha256 == wanted
    lost = read_events(sigma.run_folder, "lost")
    assert lost
    assert len(read_events(sigma.run_folder, "joined")) >= 4
    assert {row["worker"] for row in lost} <= {*killed}


def test_a_worker_that_dies_before_it_is_ready_is_replaced() -> None:
    @define(eq=False)
    class Stillborn(ThreadTransport):
        births: int = 0

        def _start_worker(self, worker: int) -> None:
            super()._start_worker(worker)
            self.births += 1
            if self.births <= 2:
                self.kill(worker)

    @define(eq=False)
    class Operator(ThreadOperator):
        def connect(self) -> ThreadTransport:
            return Stillborn()

    wanted = digest("iris", LocalOperator(shards=2), "trainer.epochs=2")
    assert digest("iris", Operator(workers=2, shards=2), "trainer.epochs=2") == wanted


@pytest.mark.long
def test_fewer_workers_than_needed_wait_with_a_checkpoint(tmp_path: Path) -> None:
    @define(eq=False)
    class Alone(ThreadTransport):
        """Workers of which the first two live, and from the next on none is ever ready."""

        def _start_worker(self, worker: int) -> None:
            if worker < 2:
                super()._start_worker(worker)
            else:
                self.channels[worker] = type("Nobody", (), {"inbox": [], "dead": True})()  # type: ignore[assignment]

    @define(eq=False)
    class Operator(ThreadOperator):
        def connect(self) -> ThreadTransport:
            self.transports.append(transport := Alone())
            return transport

    operator = Operator(workers=2, shards=2, at_least=2, lost_after=1000.0, burst_seconds=0.01)
    sigma = environment(STEERED, operator, folder=tmp_path)
    handle = sigma.run_async(progress=False)
    until(lambda: sigma.get("trainer.iteration") > 20)
    operator.transports[0].kill(1)
    until(lambda: [*sigma.run_folder.glob("checkpoints/trainer/*/manifest.json")])
    reached = sigma.get("trainer.iteration")
    assert any("waits for workers: there are 1 of at least 2" in text for _, text in sigma.messages.entries_after(0))
    handle.stop()
    assert handle.result().iterations == reached


@define(eq=False)
class Fruitless(ThreadTransport):
    """Workers that die at once."""

    def _start_worker(self, worker: int) -> None:
        super()._start_worker(worker)
        self.kill(worker)


@define(eq=False)
class FruitlessOperator(ThreadOperator):
    def connect(self) -> ThreadTransport:
        return Fruitless()


def test_workers_that_never_live_end_the_run_with_the_reason() -> None:
    with pytest.raises(SigmaTrainingError, match=r"workers were lost, and no burst was computed: the last one, killed"):
        environment("iris", FruitlessOperator(workers=2, shards=2)).run(progress=False)


# -- commands ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Mute(ThreadTransport):
    """Workers that are never ready."""

    def _start_worker(self, worker: int) -> None:
        self.channels[worker] = type("Nobody", (), {"inbox": [], "dead": False})()  # type: ignore[assignment]


@define(eq=False)
class MuteOperator(ThreadOperator):
    def connect(self) -> ThreadTransport:
        return Mute()


def test_commands_act_while_training_waits_for_workers() -> None:
    sigma = environment("iris", MuteOperator(workers=2, shards=2, lost_after=1000.0))
    handle = sigma.run_async(progress=False)
    assert sigma.set("trainer.optimiser.learning_rate", 0.5)
    assert sigma.get("trainer.optimiser.learning_rate") == 0.5
    handle.stop()
    assert handle.wait(PATIENCE)
    assert handle.result().iterations == 0


@define(eq=False, kw_only=True)
class Meddle(Hook):
    """Give a run some commands that replace its state, or change how it goes on."""

    every: TimeStep = every(10, "iteration")
    turns: list[int] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        turn = context.memory["turn"] = context.memory.get("turn", 0) + 1
        if turn == 2:
            context.command("set", pattern="optimiser.learning_rate", value=0.003)
        if turn == 4:
            context.command("set", pattern="batch_size", value=11)
        if turn == 7:
            context.command("swap", slot="optimiser", component={"type": "momentum", "learning_rate": 0.01})


def test_commands_that_replace_the_state_reach_the_workers(tmp_path: Path) -> None:
    def train(operator: Any) -> Environment:
        sigma = environment("iris", operator, "hooks.finish.when='epoch reaches 25'", folder=tmp_path)
        trainer = sigma.trainer("trainer")
        trainer.hooks = {**trainer.hooks, "meddle": Meddle()}
        sigma.run(progress=False)
        return sigma

    wanted = train(LocalOperator(shards=2)).summary().parameters_sha256
    assert train(ThreadOperator(workers=2, shards=2)).summary().parameters_sha256 == wanted


def test_a_run_that_was_steered_by_hand_is_replayed_without_workers(tmp_path: Path) -> None:
    sigma = environment(STEERED, ThreadOperator(workers=2, shards=2, burst_seconds=0.01), folder=tmp_path)
    handle = sigma.run_async(progress=False)
    until(lambda: sigma.get("trainer.iteration") > 20)
    sigma.set("trainer.optimiser.learning_rate", 0.002)
    sigma.send("pause")
    reached = sigma.get("trainer.iteration")
    sigma.send("rewind", to=reached - 1)
    assert sigma.get("trainer.iteration") < reached
    sigma.send("go")
    until(lambda: sigma.get("trainer.iteration") > reached + 20)
    sigma.set("trainer.optimiser.learning_rate", 0.5)
    sigma.send("undo")
    handle.stop()
    wanted = handle.result()
    again = environment(STEERED, FruitlessOperator(workers=2, shards=2))
    summary, differences = again.replay(sigma.run_folder, progress=False)
    assert not differences
    assert summary.parameters_sha256 == wanted.parameters_sha256


@pytest.mark.parametrize("operator", [LocalOperator(shards=3), ThreadOperator(workers=1, shards=3)])
def test_a_run_is_resumed_with_another_number_of_workers(operator: Any, tmp_path: Path) -> None:
    sets = ["hooks.finish.when='epoch reaches 20'"]
    wanted = digest("iris", LocalOperator(shards=3), *sets)
    sigma = environment("iris", ThreadOperator(workers=3, shards=3, burst_seconds=0.005), *sets, folder=tmp_path)
    handle = sigma.run_async(progress=False)
    until(lambda: sigma.get("trainer.iteration") > 30)
    handle.stop()
    resumed = environment("iris", operator, *sets)
    resumed.resume(sigma.run_folder)
    assert resumed.run(progress=False).parameters_sha256 == wanted


# -- errors ------------------------------------------------------------------------------------------------------------
def test_configured_workers_win_at_a_resume_and_a_replay_passes_by_what_was_set(tmp_path: Path) -> None:
    sigma = environment(STEERED, ThreadOperator(workers=2, shards=4, burst_seconds=0.01), folder=tmp_path)
    handle = sigma.run_async(progress=False)
    sigma.set("trainer.operator.workers", 4)
    until(lambda: sigma.get("trainer.iteration") > 20)
    handle.stop()
    wanted = handle.result().parameters_sha256
    replayed = environment(STEERED, LocalOperator(shards=4))
    summary, differences = replayed.replay(sigma.run_folder, progress=False)
    assert (summary.parameters_sha256, differences) == (wanted, {})
    resumed = environment(STEERED, ThreadOperator(workers=1, shards=4))
    resumed.resume(sigma.run_folder, paused=True)
    assert resumed.get("trainer.operator.workers") == 1
    resumed.close()


def test_more_workers_than_shards_are_refused_with_the_remedy() -> None:
    with pytest.raises(SigmaConfigError, match=r"more than shards = 2, .* Set shards = 3 or more"):
        ThreadOperator(workers=3, shards=2)


def test_a_trainer_without_an_optimiser_is_refused_before_workers_start() -> None:
    sigma = environment("iris", operator := ThreadOperator(workers=2, shards=2))
    sigma.trainer("trainer").optimiser = None
    with pytest.raises(SigmaStateError, match="there is no optimiser. Set one"):
        sigma.run(progress=False)
    assert not operator.transports


def test_an_error_in_a_worker_ends_the_run_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Sequence[int]:
        raise ValueError("wrong on purpose")

    monkeypatch.setattr(replica, "choose_step", fail)
    with pytest.raises(SigmaTrainingError, match=r"(?s)worker [01]: Traceback .*ValueError: wrong on purpose"):
        environment("iris", ThreadOperator(workers=2, shards=2)).run(progress=False)


def test_workers_that_read_other_rows_than_the_operator_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "1,2\n3,4\n" * 20)
    operator = ThreadOperator(workers=2, shards=2)
    network = "input() + output() + squared_difference()"
    trainer = arrays(operator, data={"type": "table", "path": path, "target": "y"}, network=network)
    trainer.prepare()
    path.write_text("x,y\n" + "1,2\n3,5\n" * 20)
    with pytest.raises(SigmaTrainingError, match=r"(?s)worker [01]: .*reads other rows of training, validation than"):
        trainer.fit(epochs=1, progress=False)


def test_workers_with_other_plugins_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_other(*given: Any) -> TrainingBlueprint:
        other = make_blueprint(*given)
        return evolve(other, plugins={**other.plugins, "sigma-layers": "0.1", "sigma-unknown": "2"})

    monkeypatch.setattr(driver, "make_blueprint", make_other)
    with pytest.raises(SigmaTrainingError, match=r"sigma-unknown is not installed; sigma-layers was 0.1, and is"):
        environment("iris", ThreadOperator(workers=2, shards=2)).run(progress=False)


def test_a_transport_that_cannot_be_started_ends_the_run_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[ThreadTransport]()

    def fail(*given: Any) -> None:
        raise SigmaConfigError("nobody is there.")

    monkeypatch.setattr(ThreadTransport, "start", fail)
    monkeypatch.setattr(ThreadTransport, "close", lambda transport: closed.append(transport))
    with pytest.raises(SigmaConfigError, match=r"^nobody is there\.$"):
        environment("iris", ThreadOperator(workers=2, shards=2)).run(progress=False)
    assert len(closed) == 1


def test_the_number_of_workers_is_set_while_training_goes_on(tmp_path: Path) -> None:
    operator = ThreadOperator(workers=1, shards=3, burst_seconds=0.01)
    sigma = environment(STEERED, operator, folder=tmp_path)
    handle = sigma.run_async(progress=False)
    for number in (3, 2):
        until(lambda: sigma.get("trainer.iteration") > 20)
        assert sigma.set("trainer.operator.workers", number) == ["trainer.operator.workers"]
        until(lambda n=number: sum(not c.dead for c in operator.transports[0].channels.values()) == n)  # type: ignore[misc]
    with pytest.raises(SigmaConfigError, match=r"more than shards = 3, the parts of a batch"):
        sigma.set("trainer.operator.workers", 4)
    assert sigma.get("trainer.operator.workers") == 2
    until(lambda: read_events(sigma.run_folder, "generation")[-1]["text"] == "0, 1")
    handle.stop()
    assert handle.wait(PATIENCE)


def test_each_worker_has_a_row_while_it_is_there() -> None:
    operator = ThreadOperator(workers=2, shards=3, burst_seconds=0.01, lost_after=30.0)
    sigma = environment(STEERED, operator)
    handle = sigma.run_async(progress=False)

    def read(name: str) -> dict[str, Any]:
        return {address.split(".")[2]: value for address, value in sigma.find(f"trainer.group.*.{name}").items()}

    until(lambda: read("rate").keys() == {"0", "1"} and all(read("rate").values()))
    assert read("shards") == {"0": 2, "1": 1}
    assert all(0 <= seconds < 10 for seconds in read("seen").values())
    operator.transports[0].kill(0)
    until(lambda: read("shards") == {"1": 2, "2": 1} and read("generation")["2"] > 2)
    handle.stop()
    assert handle.wait(PATIENCE)
    assert not sigma.find("trainer.group.**")


def test_a_replica_whose_data_have_fewer_iterations_says_so() -> None:
    session = sm.from_file("iris").trainer("trainer").session
    held = replica.Replica(session)
    held.adopt(session.snapshot())
    order = ComputeOrder(0, 1, Commit(Position()), Position(0, 10_000), {}, {0: (0,)})
    with pytest.raises(SigmaStateError, match=r"10000 iterations were ordered, and the data have \d+ here"):
        held.compute(order, 0, ThreadTransport(), lambda: False)  # type: ignore[arg-type]


def test_a_worker_without_a_shard_of_a_batch_has_its_sum_after_others_have_gone_on() -> None:
    transport = ThreadTransport()
    ahead, behind = ThreadChannel(0, transport), ThreadChannel(1, transport)
    order = ComputeOrder(0, 1, Commit(Position()), Position(0, 4), {}, {0: (0,), 1: (1,)})
    for n in range(4):
        part = ShardPart({"float32": np.full(1, n, "float32")}, b"")
        assert ahead.sum(order, Position(0, n), {0: part}, 1, 0.0) is not None
    late = behind.sum(order, Position(0, 0), {}, 1, 0.0)
    assert late is not None
    assert late.vectors["float32"].tolist() == [0.0]
    following = evolve(order, commit=Commit(Position(0, 4), 1), end=Position(0, 5))
    assert ahead.sum(following, Position(0, 4), {0: part}, 1, 0.0) is not None
    assert [position.iteration for _, position in transport.parts] == [4]  # nobody asks for earlier bursts


def test_a_hook_that_is_attached_may_read_what_others_publish(tmp_path: Path) -> None:
    sigma = environment(STEERED, ThreadOperator(workers=2, shards=2, burst_seconds=0.01), folder=tmp_path)
    handle = sigma.run_async(progress=False)
    sigma.attach("plateau", "reduce_on_plateau")
    at = sigma.get("trainer.iteration")
    until(lambda: sigma.get("trainer.iteration") > at + 20)
    handle.stop()
    assert handle.wait(PATIENCE)
    assert handle.result().status == "stopped"
