"""The environment: lifecycle, several trainers, interruptions, monitors, and the files of a run."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import functions as f, records as kept, running, signals, watchers
from sigma_kernel.clock import TimeStep, after, every
from sigma_kernel.contracts import Chart, Hook, HookContext, Monitor, View, live
from sigma_kernel.environment import Environment
from sigma_kernel.errors import (
    SigmaAddressError,
    SigmaConfigError,
    SigmaPluginError,
    SigmaStateError,
    SigmaTrainingError,
)
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.watchers import Watchers
from sigma_run import load
from sigma_step.model import LAYERS
from sigma_store import folders, run_folder
from sigma_store.checkpoints import store as checkpoint, writer
from sigma_store.curves import rows
from sigma_testing.null import NullBackend
from sigma_testing.steering import Descent, Slow, Sweep, small_environment, state_bytes
from sigma_training import trainer as module_of_trainers
from sigma_training.lifecycle import SessionLifecycle
from sigma_training.minimisation import Plain
from sigma_training.session import current as module_of_sessions

PATIENCE = 60.0


@define(eq=False, kw_only=True)
class Do(Hook):
    """Call a function."""

    every: TimeStep = every(1, "iteration")
    does: Callable[[HookContext], Any] = field(kw_only=False)
    taking: Sequence[str] = ()

    @property
    def reads(self) -> Sequence[str]:
        return self.taking

    def fire(self, context: HookContext) -> None:
        self.does(context)


def _end(epochs: int = 2) -> Hook:
    return Do(lambda context: context.command("stop"), every=after(epochs, "epoch"))


def _small(epochs: int = 2, **settings: Any) -> Environment:
    """Return an environment that ends by itself."""
    hooks = {"end": _end(epochs), **settings.pop("hooks", {})}
    return small_environment(Sweep(), hooks=hooks, **settings)


def _join(sigma: Environment, name: str, **settings: Any) -> Any:
    """Add a trainer like the first one, on a separate backend."""
    first = sigma.trainer("trainer")
    common = {"backend": NullBackend(), "operator": Sweep(), "batch_size": 5, "epochs": inf}
    trainer = sigma.create_trainer(name, **{**common, **settings})
    trainer.data, trainer.network, trainer.optimiser = first.data, first.network, first.optimiser
    return trainer


def _until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)


@pytest.fixture
def background() -> Iterator[Callable[[Environment], threading.Thread]]:
    """Return a function that runs an environment in a thread, until it trains."""
    threads: list[threading.Thread] = []

    def start(sigma: Environment) -> threading.Thread:
        threads.append(threading.Thread(target=sigma.run, daemon=True))
        threads[-1].start()
        _until(lambda: sigma.state == "running")
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


# -- the lifecycle -----------------------------------------------------------------------------------------------------
MOVES: dict[str, Callable[..., Any]] = {
    "prepare": Environment.prepare, "run": Environment.run, "pause": Environment.pause, "go": Environment.go,
    "step": lambda sigma, count=1: sigma.step(count), "stop": Environment.stop,
}  # fmt: skip


# legal moves in each state of an environment, and the next state
LEGAL: dict[str, dict[str, str]] = {
    "created": {"prepare": "prepared", "run": "running", "stop": "created"},
    "prepared": {"prepare": "prepared", "run": "running", "stop": "prepared"},
    "running": {"pause": "paused", "stop": "stopped"},
    "paused": {"go": "running", "step": "running", "stop": "stopped"},
    "stopped": {"prepare": "stopped", "run": "running", "stop": "stopped"},
    "failed": {"prepare": "failed", "run": "running", "stop": "failed"},
}
IDLE = "created or prepared or stopped or failed"
WHILE = {"pause": "running", "go": "paused or waiting", "step": "paused or waiting", "prepare": IDLE, "run": IDLE}


def _in(state: str, background: Any) -> Environment:
    if state == "failed":
        sigma = small_environment(Sweep(), hooks={"bad": Do(lambda context: 1 / 0, every=after(1, "iteration"))})
        with pytest.raises(SigmaTrainingError):
            sigma.run()
        return sigma  # another run trains until it is stopped
    sigma = _small() if state == "stopped" else small_environment(Sweep())
    if state == "prepared":
        sigma.prepare()
    if state == "stopped":
        sigma.run()
    if state in ("running", "paused"):
        background(sigma)
    if state == "paused":
        sigma.pause()
    return sigma


@pytest.mark.parametrize(("state", "seen"), [("running", "compiling"), ("paused", "paused"), ("stopped", "finished")])
def test_only_training_that_waits_for_it_is_said_to_compile(
    state: str, seen: str, background: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _in(state, background) as sigma:
        lifecycle = type(sigma.trainer("trainer").lifecycle)  # the flag of an object is reset by its thread
        monkeypatch.setattr(lifecycle, "is_compiling", property(lambda _: True))
        assert sigma.status() == seen


@pytest.mark.parametrize("state", LEGAL)
def test_an_illegal_command_is_refused_with_the_states_in_which_it_is_legal(state: str, background: Any) -> None:
    sigma = _in(state, background)
    with sigma:
        assert sigma.state == state
        for name in MOVES.keys() - LEGAL[state]:
            with pytest.raises(SigmaStateError) as error:
                MOVES[name](sigma)
            why = "" if state in ("running", "paused") else ", as nothing trains"
            legal = f"Legal while {WHILE[name]}."
            assert str(error.value) == f"environment 'small': cannot {name} while it is {state}{why}. {legal}"
            assert sigma.state == state


@pytest.mark.rooms
def test_commands_sent_before_preparation_prepare_the_trainers() -> None:
    changes: list[Callable[[Environment], Any]] = [
        lambda sigma: sigma.set("trainer.optimiser.learning_rate", 0.01),
        lambda sigma: sigma.attach("it", {"type": "stop", "when": "epoch reaches 1"}),
        lambda sigma: sigma.swap("optimiser", "adam"),
        lambda sigma: sigma.reset(),
    ]
    for change in changes:
        with small_environment(Sweep()) as sigma:
            change(sigma)
            assert sigma.state == "prepared"


@pytest.mark.parametrize(
    ("state", "move"), [(s, move) for s, moves in LEGAL.items() for move in moves if move in MOVES]
)
def test_legal_commands_lead_to_the_states_of_the_table(state: str, move: str, background: Any) -> None:
    sigma = _in(state, background)
    with sigma:
        arguments = (10**6,) if move == "step" else ()
        thread = threading.Thread(target=lambda: MOVES[move](sigma, *arguments), daemon=True)
        thread.start()
        if move not in ("run", "step"):
            thread.join(PATIENCE)
        _until(lambda: sigma.state == LEGAL[state][move])


def test_a_trainer_can_be_added_after_others_were_trained() -> None:
    with _small() as sigma:
        sigma.run()
        other = _join(sigma, "other", hooks={"end": _end(3)})
        assert other.fit() is other.history
        assert other.session.moment.epoch == 3
        assert sigma.trainer("trainer").session.moment.epoch == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [("trainer", "already exists"), ("a.b", "without dots"), ("", "is not an address"), ("a/b", "is not an address")],
)
def test_trainer_names_must_be_unique(name: str, message: str) -> None:
    with pytest.raises((SigmaConfigError, SigmaAddressError), match=message):
        small_environment(Sweep()).create_trainer(name)


@pytest.mark.parametrize("own", ["registry", "home", "resolve", "recorder"])
def test_values_from_the_environment_are_not_trainer_settings(own: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"trainer 'a': has no setting '{own}'"):
        Environment().create_trainer("a", **{own: None})


def test_an_environment_without_a_trainer_has_nothing_to_run() -> None:
    sigma = Environment("empty")
    with pytest.raises(SigmaStateError, match="environment 'empty': has no trainer. Create one with create_trainer()"):
        sigma.run()
    assert sigma.state == "created"
    with pytest.raises(SigmaConfigError, match="trainer 'trainer': no such trainer."):
        sigma.trainer("trainer")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, "1"])
def test_an_invalid_seed_is_refused(seed: Any) -> None:
    with pytest.raises(SigmaConfigError, match=r"seed: must be a whole number from 0 to 2\*\*64 - 1"):
        Environment(seed=seed)


# -- running -----------------------------------------------------------------------------------------------------------
def test_a_run_ends_by_itself_and_prints_its_summary() -> None:
    with _small(epochs=3, splits=["training"]) as sigma:
        summary = sigma.run()
        weights = sigma.get("trainer.network.layers.weights")
        losses = sigma.trainer("trainer").history["training.loss"][-5:]
    assert (summary.run, summary.status, summary.backend, summary.seed) == ("small", "finished", "null", 0)
    assert (summary.epochs, summary.iterations, summary.folder) == (3, 15, None)
    assert summary.metrics == {"training.loss": pytest.approx(np.average(losses, weights=[5, 5, 5, 5, 3]))}
    assert summary.parameters_sha256 == hashlib.sha256(weights.astype("<f4").tobytes()).hexdigest()
    assert sigma.state == "stopped"
    assert 0 < summary.seconds < 10


def test_parameters_are_digested_in_the_order_of_their_addresses() -> None:
    start = {"b": np.ones(2), "a": np.zeros(3), "A": np.full((), 2.0)}
    with _small() as sigma:
        sigma.trainer("trainer").network = Plain(
            lambda p, batch: f.sum(p["a"]) * 0.0 + f.sum(p["b"]) * 0.0 + p["A"] * 0.0, start, ("inputs", "targets")
        )
        wanted = b"".join(np.asarray(start[name], "<f4").tobytes() for name in ("A", "a", "b"))
        assert sigma.run().parameters_sha256 == hashlib.sha256(wanted).hexdigest()


def test_the_same_seed_gives_the_same_digest() -> None:
    digests = [_small(seed=seed).run().parameters_sha256 for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_an_environment_can_run_again() -> None:
    repeated = Do(lambda context: context.command("stop"), every=every(2, "epoch"))
    with small_environment(Sweep(), hooks={"end": repeated}) as sigma:
        session = sigma.trainer("trainer").session
        (first, seconds), (second, later) = [(sigma.run(), session.moment.second) for _ in range(2)]
    assert (first.iterations, second.iterations) == (10, 20)
    assert later > seconds
    assert (first.seconds, second.seconds) == (round(seconds, 3), round(later, 3))
    with small_environment(Sweep(), hooks={"end": _end(4)}) as whole:
        assert whole.run().parameters_sha256 == second.parameters_sha256


def test_fit_and_run_can_alternate() -> None:
    with _small(epochs=3) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        assert sigma.state == "stopped"
        assert sigma.run().epochs == 3
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.summary().epochs == 4


def test_predictions_and_evaluations_work_before_during_and_after_training(background: Any) -> None:
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = Descent(learning_rate=0.01)
        losses = [trainer.evaluate()["loss"]]
        background(sigma)
        for _ in range(5):
            moment = trainer.session.moment.iteration
            losses.append(trainer.evaluate()["loss"])
            _until(lambda moment=moment: trainer.session.moment.iteration > moment)
        sigma.stop()
        _until(lambda: sigma.state == "stopped")
        losses.append(trainer.evaluate()["loss"])
    assert np.isfinite(losses).all()
    assert losses[0] > losses[-1]
    assert len(set(losses[1:-1])) == 5


# -- several trainers --------------------------------------------------------------------------------------------------
class Named(NullBackend):
    """Records the threads that use it."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def take(self, array: Any, rows: np.ndarray) -> Any:
        self.threads.add(threading.current_thread().name)
        return super().take(array, rows)


def test_running_with_a_trainer_that_is_already_training_is_refused_without_side_effects() -> None:
    with _small(epochs=2) as sigma:
        other = _join(sigma, "other", hooks={"slow": Slow(), "end": _end(2)})
        sigma.prepare()
        fitting = threading.Thread(target=lambda: other.fit(iterations=10**6), daemon=True)
        fitting.start()
        _until(lambda: other.session.queue.busy)
        with pytest.raises(SigmaStateError, match="environment 'small': cannot run while it is running"):
            sigma.run()
        with pytest.raises(SigmaStateError, match="trainer 'other': is training already. Wait for its end, or stop it"):
            other.fit(epochs=1)
        sigma.send("stop", trainer="other")
        fitting.join(PATIENCE)
        sigma.reset()
        assert sigma.run().epochs == 2


def test_two_trainers_train_at_once_on_separate_backends() -> None:
    backends, alone = (Named(), Named()), state_bytes_of(_small(epochs=4))
    met = threading.Barrier(2, timeout=PATIENCE)
    hooks = {"meet": Do(lambda context: met.wait(), every=after(3, "iteration"))}  # a barrier for both
    with _small(epochs=4, splits=["training"], backend=backends[0], hooks=hooks) as sigma:
        other = _join(sigma, "other", backend=backends[1], hooks={"end": _end(2), **hooks}, seed=9)
        summary = sigma.run()
        assert backends[0].threads == {"sigma-trainer"}
        assert backends[1].threads == {"sigma-other"}
        assert state_bytes(sigma.trainer("trainer")) == alone
        assert other.session.moment.epoch == 2
    assert (summary.epochs, summary.iterations, summary.backend) == (4, 20, "named")
    assert set(summary.metrics) == {"trainer.training.loss", "other.training.loss"}


def state_bytes_of(sigma: Environment) -> dict[str, bytes]:
    with sigma:
        sigma.run()
        return state_bytes(sigma.trainer("trainer"))


def test_a_trainer_that_fails_stops_the_others_and_the_error_is_raised() -> None:
    def fail(context: HookContext) -> None:
        raise ValueError("no more")

    with small_environment(Sweep()) as sigma:  # would never end
        _join(sigma, "other", hooks={"bad": Do(fail, every=after(8, "iteration"))})
        with pytest.raises(SigmaTrainingError, match=r"hook 'bad' \(\S+\) failed: ValueError: no more"):
            sigma.run()
        assert sigma.state == "failed"
        assert sigma.summary().status == "failed"
        assert sigma.trainer("trainer").session.status == "stopped"
        assert sigma.trainer("other").session.status == "failed"


def test_a_trainer_that_fails_ends_one_that_is_paused() -> None:
    def fail(context: HookContext) -> None:
        _until(lambda: sigma.trainer("trainer").session.status == "paused")
        raise ValueError("no more")

    pausing = {"pause": Do(lambda context: context.command("pause"), every=after(2, "iteration"))}
    with small_environment(Sweep(), hooks=pausing) as sigma:
        _join(sigma, "other", hooks={"bad": Do(fail, every=after(3, "iteration"))})
        with pytest.raises(SigmaTrainingError):
            sigma.run()


def test_an_environment_is_paused_when_all_active_trainers_are_paused(background: Any) -> None:
    with small_environment(Sweep()) as sigma:
        _join(sigma, "short", hooks={"end": _end(1)})
        third = _join(sigma, "third")
        background(sigma)
        _until(lambda: sigma.trainer("short").session.status == "stopped")
        sigma.send("pause", trainer="trainer")
        assert sigma.state == "running"
        sigma.pause()  # those that are neither paused nor finished
        assert sigma.state == "paused"
        assert third.session.status == "paused"
        sigma.go()
        assert sigma.state == "running"
        sigma.stop()


def test_commands_go_to_all_trainers_or_to_one(background: Any) -> None:
    with small_environment(Sweep()) as sigma:
        _join(sigma, "other")
        sigma.prepare()
        assert set(sigma.send("set", pattern="*.optimiser.learning_rate", value=0.01)) == {"trainer", "other"}
        assert sigma.get("trainer.optimiser.weights.learning_rate") == 0.01
        assert list(sigma.send("set", trainer="other", pattern="optimiser.learning_rate", value=0.02)) == ["other"]
        assert sigma.get("other.optimiser.learning_rate") == 0.02
        assert sigma.set("other.**.learning_rate", 0.03) == [
            "other.optimiser.weights.learning_rate", "other.optimiser.learning_rate",
        ]  # fmt: skip
        assert sigma.get("trainer.optimiser.learning_rate") == 0.01
        assert len(sigma.set("**.learning_rate", 0.04)) == 4
        with pytest.raises(SigmaConfigError, match="trainer 'othr': no such trainer. Did you mean 'other'?"):
            sigma.send("save", trainer="othr")


@define(eq=False, kw_only=True)
class Timid(Descent):
    """Trains in small steps only."""

    learning_rate: float = live(0.01, low=0.0, high=0.1)


def test_a_command_that_one_trainer_refuses_changes_none() -> None:
    with small_environment(Sweep()) as sigma:
        _join(sigma, "other").optimiser = Timid()
        sigma.prepare()
        with pytest.raises(
            SigmaAddressError, match=r"other.optimiser.learning_rate: must be .*at most 0.1 \(got 0.5\)"
        ):
            sigma.set("*.optimiser.learning_rate", 0.5)
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05


def test_a_pause_at_an_iteration_already_passed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        monkeypatch.setattr(Environment, "_check", lambda *_: None)  # a trainer was training when it was called
        with pytest.raises(SigmaStateError) as error:
            sigma.pause()
    assert str(error.value) == "environment 'small': cannot pause, as no trainer is running."


def test_a_trainer_that_fails_before_training_still_answers_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(lifecycle: Any, wait: Any) -> None:
        raise RuntimeError("gone")

    with _small() as sigma, ThreadPoolExecutor(1) as people:
        monkeypatch.setattr(SessionLifecycle, "train_or_replay", fail)
        with pytest.raises(RuntimeError, match="gone"):
            sigma.run()
        rate = "trainer.optimiser.learning_rate"
        assert people.submit(sigma.set, rate, 0.5).result(PATIENCE) == [rate]


def test_two_threads_that_request_the_session_get_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = module_of_trainers.prepare_session

    def slowly(*settings: Any) -> Any:
        time.sleep(0.05)
        return made(*settings)

    monkeypatch.setattr(module_of_trainers, "prepare_session", slowly)
    with _small() as sigma, ThreadPoolExecutor(4) as people:
        found = list(people.map(lambda _: sigma.trainer("trainer").session, range(4)))
        assert len({id(session) for session in found}) == 1


def test_an_unknown_setting_is_refused_with_similar_names() -> None:
    with pytest.raises(SigmaConfigError) as error:
        Environment("it", sed=3)  # type: ignore[call-arg]
    assert str(error.value) == "Environment: has no setting 'sed'. Did you mean 'seed'?"
    with pytest.raises(SigmaConfigError, match="has no setting 'x'. It has name, seed, precision, folder, monitors"):
        Environment(x=3)  # type: ignore[call-arg]


def test_an_environment_shows_its_settings_and_can_be_extended() -> None:
    class Larger(Environment):
        def __init__(self, more: int) -> None:
            super().__init__("larger")
            self.precision = "float64" if more else "float32"

    assert [*signature(Environment).parameters][:3] == ["name", "seed", "precision"]
    assert Larger(more=3).precision == "float64"


def test_queued_checkpoints_are_written_when_the_environment_is_closed(tmp_path: Path) -> None:
    with _small() as sigma:
        sigma.folder = tmp_path
        sigma.run()
        write, begun = checkpoint.write, threading.Event()

        def slowly(folder: Path, state: Any, *log: Any) -> Path:
            begun.set()
            time.sleep(0.1)
            return write(folder, state, *log)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "write", slowly)
            sigma.reset()
            sigma.send("save")
            assert begun.wait(PATIENCE)
            sigma.close()
        assert sigma.run_folder is not None
        assert (sigma.run_folder / "checkpoints" / "trainer" / "0" / "manifest.sha256").exists()


def test_values_set_by_a_pattern_are_set_at_the_same_boundary(background: Any) -> None:
    seen: set[tuple[float, float]] = set()

    def look(context: HookContext) -> None:
        seen.add((context.read("optimiser.weights.learning_rate"), context.read("optimiser.learning_rate")))

    with small_environment(Sweep(), hooks={"look": Do(look, taking=["optimiser.**"])}) as sigma:
        background(sigma)
        for i in range(1, 40):
            sigma.set("trainer.optimiser.**.learning_rate", i / 10000)
        sigma.stop()
    assert len(seen) > 1
    assert all(one == other for one, other in seen)


# -- interruptions -----------------------------------------------------------------------------------------------------
def _interrupt(*_: Any) -> None:
    """Send Ctrl-C as the terminal does."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def test_ctrl_c_finishes_the_burst_saves_and_ends(tmp_path: Path) -> None:
    hooks = {"interrupt": Do(_interrupt, every=after(7, "iteration")), "slow": Slow()}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.folder = tmp_path
        summary = sigma.run()
        assert (sigma.state, summary.status) == ("stopped", "interrupted")
        assert summary.iterations >= 7
        assert any("interrupt again to abort" in text for _, text in sigma.messages.entries_after(0))
        saved = checkpoint.read(checkpoint.list_checkpoints(sigma.run_folder, "trainer")[-1])
        assert saved.values["clock"]["iteration"] == summary.iterations
        assert saved.values["clock"]["stop"] == 0  # saved before the hooks at the end
        assert {n: v.tobytes() for n, v in saved.arrays.items()} == state_bytes(sigma.trainer("trainer"))
        assert json.loads((sigma.run_folder / "summary.json").read_text())["status"] == "interrupted"


def test_an_interruption_ends_a_run_that_is_paused() -> None:
    def pause(context: HookContext) -> None:
        context.command("pause")
        threading.Timer(0.05, _interrupt).start()

    with small_environment(Sweep(), hooks={"pause": Do(pause, every=after(3, "iteration"))}) as sigma:
        assert sigma.run().status == "interrupted"


def test_a_second_ctrl_c_aborts_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, went_on = threading.Event(), list[bool]()
    monkeypatch.setattr(signals, "TWICE", 0.0)

    def hang(context: HookContext) -> None:
        _interrupt()
        _until(lambda: sigma.signal is not None)  # the first one was received
        _interrupt()
        went_on.append(hangs.wait(PATIENCE))

    with small_environment(Sweep(), hooks={"hang": Do(hang, every=after(3, "iteration"))}) as sigma:
        with pytest.raises(KeyboardInterrupt):
            sigma.run()
        assert (sigma.state, went_on) == ("failed", [])
        hangs.set()


def test_a_second_ctrl_c_aborts_when_python_drops_its_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(signals, "TWICE", 0.0)

    def hang(context: HookContext) -> None:
        handle = cast("Callable[[int, None], None]", signal.getsignal(signal.SIGINT))
        handle(signal.SIGINT, None)
        with suppress(KeyboardInterrupt):  # as a destructor does
            handle(signal.SIGINT, None)
        hangs.wait(PATIENCE)

    with small_environment(Sweep(), hooks={"hang": Do(hang, every=after(3, "iteration"))}) as sigma:
        with pytest.raises(KeyboardInterrupt):
            sigma.run()
        assert sigma.state == "failed"
        hangs.set()


def test_an_aborted_run_waits_a_moment_for_its_monitors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOMENT", PATIENCE)

    def give_back(view: View) -> None:
        view.wait(PATIENCE)
        time.sleep(0.1)

    monitor = Told(give_back)
    with small_environment(Sweep(), hooks={"abort": Do(_abort, every=after(3, "iteration"))}) as sigma:
        sigma.monitors["told"] = monitor
        with pytest.raises(KeyboardInterrupt):
            sigma.run()
        assert monitor.ended


def _abort(context: HookContext) -> None:
    raise KeyboardInterrupt


# -- files of a run ----------------------------------------------------------------------------------------------------
def _json(path: Path) -> Any:
    def refuse(text: str) -> Any:
        raise ValueError(text)

    return json.loads(path.read_text(), parse_constant=refuse)


def test_a_run_leaves_a_complete_run_folder(tmp_path: Path) -> None:
    with _small(epochs=3) as sigma:
        sigma.folder, sigma.configuration = tmp_path / "runs", "format = 1\n"
        summary = sigma.run()
        folder = sigma.run_folder
        state = state_bytes(sigma.trainer("trainer"))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [folder.name]
    assert folder.name.startswith("small-20")
    assert sorted({path.name for path in folder.iterdir()} - {"curves.svg"}) == [  # which a room draws
        ".lock", "checkpoints", "config.toml", "curves.bin", "journal.jsonl", "plugins.json", "summary.json",
    ]  # fmt: skip
    assert (folder / "config.toml").read_text() == "format = 1\n"
    assert _json(folder / "summary.json") == {"format": 1, **summary.to_dict()}
    assert summary.folder == str(folder)
    assert _json(folder / "plugins.json") == {"format": 1, "plugins": sigma.catalogue.versions()}
    assert [path.name for path in (folder / "checkpoints" / "trainer").iterdir()] == ["15"]
    saved = checkpoint.read(checkpoint.list_checkpoints(folder, "trainer")[-1])
    assert {name: values.tobytes() for name, values in saved.arrays.items()} == state
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    said = [row.get("command", row.get("event")) for row in journal[1:]]
    assert [what for what in said if what != "digest"] == ["begin", "stop", "end", "save"]
    assert said[-2:] == ["save", "digest"]
    assert {row["epoch"] for row in rows(folder, pytest.fail)} >= {1, 2, 3}


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with _small() as sigma:
        sigma.run()
    assert not list(tmp_path.iterdir())


def test_runs_in_the_same_second_get_separate_folders(tmp_path: Path) -> None:
    for _ in range(3):
        with _small() as sigma:
            sigma.folder = tmp_path
            sigma.run()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_second_fit_continues_in_the_same_folder(tmp_path: Path) -> None:
    repeated = Do(lambda context: context.command("stop"), every=every(1, "epoch"))
    with small_environment(Sweep(), hooks={"end": repeated}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        second = sigma.run()
        saved = checkpoint.list_checkpoints(sigma.run_folder, "trainer")
    assert [path.name for path in saved] == ["5", "10"]
    assert _json(sigma.run_folder / "summary.json")["iterations"] == second.iterations == 10


def test_a_failed_run_is_marked_in_its_folder_and_saves_its_last_good_state(tmp_path: Path) -> None:
    with _small(hooks={"bad": Do(lambda context: 1 / 0, every=after(6, "iteration"))}) as sigma:
        sigma.folder = tmp_path
        with pytest.raises(SigmaTrainingError):
            sigma.run()
    assert _json(sigma.run_folder / "summary.json")["status"] == "failed"
    assert [path.name for path in checkpoint.list_checkpoints(sigma.run_folder, "trainer")] == ["5"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_summary_with_a_non_finite_loss_is_still_json(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.trainer("trainer").optimiser.learning_rate = 1e12
        sigma.folder = tmp_path
        with pytest.raises(SigmaTrainingError, match="Lower the learning rate"):
            sigma.run()
    assert _json(sigma.run_folder / "summary.json")["metrics"] == {"training.loss": None}


def test_a_folder_that_cannot_be_created_is_reported_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with _small() as sigma:
        sigma.folder = tmp_path / "file" / "runs"
        with pytest.raises(SigmaConfigError, match="cannot be created: Not a directory. Choose another run.folder"):
            sigma.run()
        assert sigma.state == "prepared"
        sigma.folder = tmp_path / "runs"
        assert sigma.run().status == "finished"


@pytest.mark.parametrize("name", ["../up", "a/b", ".", "..", ""])
def test_a_name_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with _small() as sigma:
        sigma.folder = tmp_path / "runs"
        with pytest.raises(SigmaConfigError, match="Environment.name"):
            sigma.name = name
    assert not list(tmp_path.iterdir())


def test_a_full_disk_at_the_end_fails_the_run_and_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_put", full)
    with _small() as sigma:
        sigma.folder = tmp_path
        with pytest.raises(Exception, match="No space left on device"):
            sigma.run()
        assert sigma.state == "failed"
        assert not list((sigma.run_folder / "checkpoints" / "trainer").iterdir())


# -- monitors ----------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
def test_monitors_that_are_set_later_are_resolved_as_in_the_constructor() -> None:
    environment = Environment("x")
    environment.monitors = {"screen": {"type": "console"}}
    assert environment.monitors["screen"].talks
    with pytest.raises(SigmaConfigError, match="monitor 'consol': no plugin offers it"):
        environment.monitors = ["consol"]


class Told(Monitor):
    """A monitor that calls a function."""

    def __init__(self, does: Callable[[View], Any]) -> None:
        self.does = does
        self.ended = False

    def watch(self, view: View) -> None:
        self.does(view)
        self.ended = True


def _hang(view: View) -> None:
    threading.Event().wait(60)


def _raise(view: View) -> None:
    raise OSError("the screen is gone")


def _exit(view: View) -> None:
    raise SystemExit(3)


def _flood(view: View) -> None:
    while not view.wait(0):
        view.find("**")
        view.status()
        view.messages(0)
        view.get(f"trainer.{LAYERS}weights")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("does", [_hang, _raise, _exit, _flood])
def test_no_monitor_disturbs_training(does: Callable[[View], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "GRACE", 0.2)
    found = []
    for monitors in ({}, {"a": Told(does), "b": Told(does)}):
        with _small(epochs=20) as sigma:
            sigma.monitors.update(monitors)
            summary = sigma.run()
            assert does is not _hang or not any(monitor.ended for monitor in monitors.values())  # nobody waited
            found.append((summary.parameters_sha256, summary.status, state_bytes(sigma.trainer("trainer"))))
    assert found[0] == found[1]


def test_a_failed_monitor_is_logged() -> None:
    with _small() as sigma:
        sigma.monitors["screen"] = Told(_raise)
        sigma.run()
        texts = [text for _, text in sigma.messages.entries_after(0)]
    assert texts == ["monitor 'screen' failed: OSError: the screen is gone; training continues"]


def test_hanging_monitors_share_one_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[tuple[int, float]] = []
    monkeypatch.setattr(watchers, "wait", lambda watching, patience: waited.append((len(watching), patience)))
    with _small() as sigma:
        sigma.monitors.update({str(i): Told(_hang) for i in range(5)})
        sigma.run()
    assert waited == [(5, running.GRACE)]


def test_a_monitor_can_observe_and_stop_a_run() -> None:
    seen: list[Any] = []

    def watch(view: View) -> None:
        _until(lambda: view.get("trainer.epoch") and view.status() == "running")  # after compiling for all batch sizes
        seen.append(view.status())
        view.send("set", pattern="trainer.optimiser.learning_rate", value=0.001).result(PATIENCE)
        seen.append(view.get("trainer.optimiser.weights.learning_rate"))
        view.send("pause").result(PATIENCE)
        seen.append(view.status())
        view.send("stop")
        assert view.wait(PATIENCE)

    monitor = Told(watch)
    with small_environment(Sweep()) as sigma:
        sigma.monitors["it"] = monitor
        assert sigma.run().status == "stopped"
    assert monitor.ended
    assert seen == ["running", 0.001, "paused"]


def test_a_monitor_that_begins_late_ends_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, ended = Watchers._observe, threading.Event()

    def late(*given: Any) -> None:
        assert ended.wait(PATIENCE)
        watch(*given)

    monkeypatch.setattr(Watchers, "_observe", late)
    monkeypatch.setattr("sigma_kernel.running.GRACE", 0.0)
    monitor = Told(lambda view: _until(lambda: view.wait(0.01)))
    with _small() as sigma:
        sigma.monitors["late"] = monitor
        sigma.run()
        ended.set()
        _until(lambda: monitor.ended)


def test_monitors_are_restarted_for_each_run() -> None:
    times: list[int] = []
    repeated = Do(lambda context: context.command("stop"), every=every(1, "epoch"))
    with small_environment(Sweep(), hooks={"end": repeated}) as sigma:
        sigma.monitors["it"] = Told(lambda view: times.append(1) or view.wait(PATIENCE))
        sigma.run()
        sigma.run()
    assert len(times) == 2


def test_leaving_the_environment_ends_training(background: Any) -> None:
    with small_environment(Sweep()) as sigma:
        thread = background(sigma)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert sigma.state == "stopped"


def test_a_stop_after_the_end_changes_nothing() -> None:
    with _small() as sigma:
        sigma.run()
        sigma.stop()
        assert (sigma.state, sigma.summary().status) == ("stopped", "finished")


def test_a_stop_sent_before_the_first_iteration_is_not_lost() -> None:
    for _ in range(20):
        with small_environment(Sweep()) as sigma:
            sigma.prepare()
            thread = threading.Thread(target=sigma.run, daemon=True)
            thread.start()
            _until(lambda sigma=sigma: sigma.state == "running")
            sigma.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive()
            assert sigma.summary().status == "stopped"


# -- the wall clock, and files of fit() --------------------------------------------------------------------------------
def test_training_time_includes_hooks_and_excludes_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [1000.0]
    monkeypatch.setattr(module_of_sessions.time, "perf_counter", lambda: passed[0])

    def dawdle(context: HookContext) -> None:
        passed[0] += 2.0

    with _small(hooks={"dawdle": Do(dawdle, every=every(1, "iteration"))}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=3)
        assert trainer.session.moment.second == 6.0
        passed[0] += 500.0
        trainer.fit(iterations=1)
        assert trainer.session.moment.second == 8.0


@pytest.mark.rooms
@pytest.mark.parametrize("there", ["nothing", "a link", "a directory"])
def test_the_drawing_of_metrics_that_someone_removed_or_replaced_is_empty(tmp_path: Path, there: str) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=2)
        run = sigma.run_folder
        assert run is not None
        assert ">training " in (run / "curves.svg").read_text()
        (run / "curves.bin").rename(run / "kept")
        if there == "a link":
            (run / "curves.bin").symlink_to(run / "kept")
        elif there == "a directory":
            (run / "curves.bin").mkdir()
        sigma._records.draw(sigma._records.run)
        assert "Nothing was measured." in (run / "curves.svg").read_text()


def test_a_chart_that_fails_is_logged_and_the_run_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Torn(Chart):
        def draw(self, title: str, runs: Any, over: str = "iteration") -> Any:
            raise KeyError("loss")

    with small_environment(Sweep()) as sigma:
        monkeypatch.setattr(Catalogue, "offers", lambda _, kind, name: kind == "chart")
        monkeypatch.setattr(kept, "Resolver", lambda *_: lambda *_: Torn())
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=2)
        assert sigma.trainer("trainer").session.moment.epoch == 2
        assert "curves.svg is not drawn: KeyError: 'loss'" in [text for _, text in sigma.messages.entries_after(0)]
        assert sigma.run_folder is not None
        assert not (sigma.run_folder / "curves.svg").exists()


@pytest.mark.rooms  # a data set of sigma-data keeps the rows
def test_fit_writes_the_same_files_as_run(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=2)
        assert sigma.run_folder is not None
        names = {
            *[
                ".lock",
                "checkpoints",
                "config.toml",
                "curves.bin",
                "curves.svg",
                "data",
                "journal.jsonl",
                "plugins.json",
                "summary.json",
            ]
        }
        assert {path.name for path in sigma.run_folder.iterdir()} == names
        summary = json.loads((sigma.run_folder / "summary.json").read_text())
        assert (summary["epochs"], summary["folder"]) == (2, str(sigma.run_folder))
        assert list(sigma.send("save"))


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EIO])
def test_a_file_system_without_locks_still_allows_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(handle: int, what: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    if number == errno.EIO:
        with pytest.raises(SigmaStateError, match="cannot be locked: Input/output error. Check that file system."):
            run_folder.lock(folders.WrittenFolder(tmp_path))
        return
    run_folder.lock(folders.WrittenFolder(tmp_path)).close()


def test_a_run_begins_while_its_folder_is_being_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings = [os.open(path, os.O_RDONLY) for path in (tmp_path, tmp_path)]  # of two at once
    for listing in listings:
        fcntl.flock(listing, fcntl.LOCK_SH)
    pauses: list[float] = []

    def end_one(seconds: float) -> None:
        pauses.append(seconds)
        os.close(listings.pop())

    monkeypatch.setattr(folders, "sleep", end_one)
    with run_folder.lock(folders.WrittenFolder(tmp_path)):
        assert (listings, len(pauses)) == ([], 2)


def test_a_folder_that_was_removed_is_mended_while_another_thread_ends_the_run(tmp_path: Path) -> None:
    sigma = Environment("mended", folder=tmp_path)
    records = sigma._records
    with sigma._runner._gate:  # as the thread has it that waits for the journal, whose own thread mends the folder
        mending = threading.Thread(target=records.note_plugins, args=[records.open(tmp_path)], daemon=True)
        mending.start()
        mending.join(30)
        assert not mending.is_alive()
    assert json.loads((tmp_path / "plugins.json").read_text())["plugins"] == sigma.catalogue.versions()


def full(path: Path, data: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_a_summary_that_cannot_be_written_is_reported_after_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(move: Callable[[Environment], Any]) -> None:
        with monkeypatch.context() as patch, _small() as sigma:
            sigma.folder = tmp_path / "runs"
            sigma.prepare()
            sigma.open_run()
            patch.setattr("sigma_store.files.put_bytes", full)
            with pytest.raises(SigmaStateError, match="summary.json: cannot be written: No space left on device. Free"):
                move(sigma)
            assert sigma.run_folder is not None
            assert (
                checkpoint.read(checkpoint.list_checkpoints(sigma.run_folder, "trainer")[-1]).values["clock"]["epoch"]
                == 2
            )
            run_folder.lock(folders.WrittenFolder(sigma.run_folder)).close()  # it is free again

    train(lambda sigma: sigma.run())
    train(lambda sigma: sigma.trainer("trainer").fit(epochs=2))


def test_journal_rows_that_never_fit_on_the_disk_are_reported_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(handle: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    for move in (lambda sigma: sigma.run(), lambda sigma: sigma.trainer("trainer").fit(epochs=2)):
        with monkeypatch.context() as patch, _small() as sigma:
            sigma.folder = tmp_path / "runs"
            sigma.prepare()
            sigma.open_run()
            patch.setattr("sigma_store.appending._add", add)
            with pytest.raises(
                SigmaStateError, match=r"journal.jsonl: the last \d+ rows cannot be written, .*: No space left"
            ):
                move(sigma)
            assert sigma.run_folder is not None
            assert (sigma.run_folder / "summary.json").exists()


def test_a_run_folder_whose_files_cannot_be_written_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_store.files.put_bytes", full)
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        with pytest.raises(
            SigmaStateError, match="config.toml: cannot be written: No space left on device. Free disk space"
        ):
            sigma.run()
        assert list(tmp_path.iterdir()) == []
        monkeypatch.undo()
        sigma.trainer("trainer").fit(epochs=1)


# -- values and settings from Python -----------------------------------------------------------------------------------
def test_a_plain_value_of_the_environment_is_set_at_once_and_watched_by_monitors() -> None:
    with small_environment(Sweep(), epochs=1) as sigma:
        sigma.registry.put("notes.plan", "first")
        sigma.prepare()
        assert sigma.set("notes.plan", "second") == ["notes.plan"]
        assert sigma.find("notes.*") == {"notes.plan": "second"}
        sigma.run()
        assert sigma.get("notes.plan") == "second"


def test_the_kind_of_an_address_tells_type_and_range() -> None:
    with small_environment(Sweep(), epochs=1) as sigma:
        sigma.prepare()
        kinds = {a: sigma.registry.kind(f"trainer.{a}") for a in ("optimiser.learning_rate", "network.layers.weights")}
        assert (kinds["optimiser.learning_rate"].type, kinds["optimiser.learning_rate"].low) == (float, 0.0)
        assert str(kinds["optimiser.learning_rate"]) == "a number, at least 0"
        assert str(kinds["network.layers.weights"]) == "numbers, float32[3, 1], or one for all"


def test_an_assignment_to_a_setting_of_a_prepared_trainer_is_refused_with_the_way_to_set_it() -> None:
    with small_environment(Sweep(), epochs=1) as sigma:
        optimiser = sigma.trainer("trainer").optimiser
        assert optimiser is not None
        optimiser.learning_rate = 0.02  # type: ignore[attr-defined]  # before preparation, it counts
        sigma.prepare()
        assert sigma.get("trainer.optimiser.learning_rate") == pytest.approx(0.02)
        with pytest.raises(SigmaStateError, match=r"Descent.learning_rate: is fixed, .* \(got 77\). Set it by its"):
            optimiser.learning_rate = 77  # type: ignore[attr-defined]
        assert sigma.set("trainer.optimiser.learning_rate", 0.5) == ["trainer.optimiser.learning_rate"]


@pytest.mark.rooms
def test_monitors_are_given_by_name_table_or_object_in_a_list_or_with_names() -> None:
    made = Environment(monitors=["console", {"type": "console", "interval": 5.0}]).monitors
    assert {name: monitor.interval for name, monitor in made.items()} == {"console": 10.0, "1-console": 5.0}
    assert [*Environment(monitors={"terminal": made["console"], "more": "console"}).monitors] == ["terminal", "more"]
    with pytest.raises(SigmaConfigError, match="monitor 'consol': no plugin offers it. Did you mean 'console'"):
        Environment(monitors=["consol"])
    with pytest.raises(SigmaConfigError, match="monitors: must be a monitor"):
        Environment(monitors=[3])


def test_a_run_is_kept_without_a_plugin_that_writes_configurations(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMA_DISABLE_PLUGINS", "sigma-run")
    with small_environment(Sweep(epochs=1)) as environment:
        environment.folder = tmp_path
        summary = environment.run()
        assert (environment.run_folder / "config.toml").read_text().startswith("# Trained from Python")
        with pytest.raises(SigmaPluginError, match=r"configuration 'toml': sigma-run offers it, but is disabled"):
            environment.trainer("trainer").save(tmp_path / "network")
    assert summary.iterations == 5
    assert (environment.run_folder / "checkpoints" / "trainer").is_dir()
    with pytest.raises(SigmaConfigError, match="was trained from Python, so it has no configuration"):
        load(environment.run_folder)
