"""Training by fit() and run(): both start monitors, obey commands and signals, and can go on in the background."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from sigma_kernel import running, signals, watchers
from sigma_kernel.clock import after, every
from sigma_kernel.contracts import HookContext, Monitor, View
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, SigmaTrainingError
from sigma_store.checkpoints import store as checkpoint
from sigma_testing.doing import Do
from sigma_testing.null import NullBackend
from sigma_testing.steering import Slow, Sweep, small_environment, state_bytes
from sigma_training.history.rewind import RewindBuffer

PATIENCE = 60.0


@define(eq=False)
class Fitted:
    """A fit in a thread, with the methods of a handle."""

    thread: threading.Thread
    future: Future[Any]

    @property
    def has_ended(self) -> bool:
        return self.future.done()

    def result(self, timeout: float) -> Any:
        return self.future.result(timeout)


def _fitted(trainer: Any, **goals: int) -> Fitted:
    """Fit in a thread, and wait until that has begun."""
    future = Future[Any]()

    def train() -> None:
        try:
            future.set_result(trainer.fit(**goals))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    _until(lambda: future.done() or (trainer.is_prepared and trainer.session.queue.busy))
    return Fitted(thread, future)


Way = Callable[[Environment], Any]
WAYS: dict[str, Way] = {"run": lambda sigma: sigma.run(), "fit": lambda sigma: sigma.trainer("trainer").fit()}
BACKGROUND: dict[str, Callable[[Environment], Any]] = {
    "run": lambda sigma: sigma.run_async(),
    "fit": lambda sigma: _fitted(sigma.trainer("trainer")),
}
both_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
both_handles = pytest.mark.parametrize("start", BACKGROUND.values(), ids=BACKGROUND)


def _until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)


def _slow(**settings: Any) -> Environment:
    return small_environment(Sweep(), **{"hooks": {"slow": Slow()}, **settings})


class Seen(Monitor):
    """Record when it starts and ends, and the states that it sees."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.starts = self.ends = 0

    def watch(self, view: View) -> None:
        self.starts += 1
        while not view.wait(0.001):
            self.states.append(view.status())
        self.ends += 1


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the ends of monitors for as long as a slow machine needs."""
    monkeypatch.setattr(running, "GRACE", PATIENCE)


# -- fit is as good as run ---------------------------------------------------------------------------------------------
@both_ways
def test_monitors_watch_training_from_its_begin_to_its_end(way: Way) -> None:
    seen = Seen()
    look = Do(every=every(1, "epoch"), does=lambda context: _until(lambda: seen.states))  # it is seen to train
    with small_environment(Sweep(), epochs=3, hooks={"look": look}) as sigma:
        sigma.monitors["seen"] = seen
        way(sigma)
        assert (seen.starts, seen.ends) == (1, 1)
        assert set(seen.states) & {"running", "compiling"}
        assert sigma.state == "stopped"
        sigma.trainer("trainer").fit(epochs=1)
        assert (seen.starts, seen.ends) == (2, 2)


@pytest.mark.rooms
@both_handles
@pytest.mark.parametrize("prepared", [False, True])
def test_training_is_steered_from_another_thread(start: Callable[[Environment], Any], prepared: bool) -> None:
    with _slow() as sigma:
        sigma.trainer("trainer").recorder.past = RewindBuffer(deque())  # none is dropped while this thread waits
        if prepared:
            sigma.prepare()
        handle = start(sigma)
        assert sigma.state == "running"
        _until(lambda: sigma.get("trainer.epoch"))
        sigma.pause()
        assert sigma.state == "paused"
        at = sigma.get("trainer.iteration")
        sigma.step(3)
        _until(lambda: sigma.state == "paused")
        assert sigma.get("trainer.iteration") == at + 3
        sigma.set("trainer.optimiser.learning_rate", 0.01)
        sigma.undo()
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05
        assert sigma.rewind(1, "epoch")["trainer"].iteration == 5
        assert list(sigma.attach("more", {"type": "report"})) == ["trainer"]
        sigma.swap("optimiser", "adam")
        sigma.go()
        sigma.stop()
        handle.result(PATIENCE)
        assert (handle.has_ended, sigma.state) == (True, "stopped")


@pytest.mark.parametrize("command", ["pause", "stop"])
def test_a_command_sent_while_training_is_being_prepared_applies_when_it_begins(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    hold = Do(every=after(1, "iteration"), does=lambda context: _until(lambda: trainer.session.queue.awaits(command)))
    with small_environment(Sweep(), hooks={"hold": hold}) as sigma:  # which gives the other thread time to wake up
        trainer, begun, sent = sigma.trainer("trainer"), threading.Event(), list[Any]()
        prepare = type(trainer).prepare

        def slowly(self: Any) -> None:
            begun.set()
            _until(lambda: other.is_alive())
            time.sleep(0.05)
            prepare(self)

        other = threading.Thread(target=lambda: sent.append(sigma.send(command)), daemon=True)
        with monkeypatch.context() as patch:
            patch.setattr(type(trainer), "prepare", slowly)
            fitting = threading.Thread(target=trainer.fit, daemon=True)
            fitting.start()
            assert begun.wait(PATIENCE)
            assert sigma.state == "running"
            other.start()
            other.join(PATIENCE)
        assert list(sent[0]) == ["trainer"]
        assert trainer.session.moment.iteration < 5
        sigma.stop()
        fitting.join(PATIENCE)
        assert not fitting.is_alive()


def test_two_trainers_are_fitted_from_two_threads_at_once(tmp_path: Path) -> None:
    met = threading.Barrier(2, timeout=PATIENCE)
    hooks = {"meet": Do(every=after(3, "iteration"), does=lambda context: met.wait())}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.folder, seen = tmp_path, Seen()
        sigma.monitors["seen"] = seen
        first = sigma.trainer("trainer")
        other = sigma.create_trainer("other", backend=NullBackend(), operator=Sweep(), batch_size=5, hooks=hooks)
        other.data, other.network, other.optimiser = first.data, first.network, first.optimiser
        sigma.prepare()
        handles = [_fitted(first, epochs=2), _fitted(other, epochs=4)]
        assert [len(handle.result(PATIENCE)["training.loss"]) for handle in handles] == [10, 20]
        assert (seen.starts, seen.ends, sigma.state) == (1, 1, "stopped")
        assert len(list(tmp_path.iterdir())) == 1
        assert {path.name for path in (sigma.run_folder / "checkpoints").iterdir()} == {"trainer", "other"}  # type: ignore[operator]
        assert sigma.summary().status == "finished"


def test_a_trainer_is_fitted_beside_one_that_is_not_set_up(tmp_path: Path) -> None:
    with small_environment(Sweep(), epochs=2) as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit()
        sigma.create_trainer("later")
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.summary().epochs == 3
        with pytest.raises(SigmaConfigError, match="later"):
            sigma.run()


@pytest.mark.rooms
def test_training_can_go_on_after_a_failure() -> None:
    failing = [True]
    hooks = {"bad": Do(every=after(3, "iteration"), does=lambda context: 1 / 0 if failing else None)}
    with small_environment(Sweep(), epochs=2, hooks=hooks) as sigma:
        with pytest.raises(SigmaTrainingError, match="ZeroDivisionError"):
            sigma.trainer("trainer").fit()
        assert (sigma.state, sigma.summary().status) == ("failed", "failed")
        failing.clear()
        sigma.attach("more", {"type": "stop", "when": "epoch reaches 1"})
        assert sigma.run().epochs == 1
        assert sigma.state == "stopped"


def test_a_fit_whose_files_cannot_be_opened_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path / "file"
        for _ in range(2):
            with pytest.raises(SigmaConfigError, match="cannot be created"):
                sigma.trainer("trainer").fit(epochs=1)
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=1)


# -- signals -----------------------------------------------------------------------------------------------------------
def _send(number: int) -> Callable[[HookContext], None]:
    main = threading.main_thread().ident or 0
    return lambda context: signal.pthread_kill(main, number)


def test_a_fit_that_is_interrupted_saves_and_can_be_resumed_to_the_same_bits(tmp_path: Path) -> None:
    interrupt = {"press": Do(every=after(7, "iteration"), does=_send(signal.SIGINT))}
    with small_environment(Sweep()) as sigma:
        sigma.trainer("trainer").fit(epochs=4)
        wanted = state_bytes(sigma.trainer("trainer"))
    with small_environment(Sweep(), hooks=interrupt) as sigma:
        sigma.folder = tmp_path
        with pytest.raises(KeyboardInterrupt):
            sigma.trainer("trainer").fit(epochs=4)
        assert (sigma.state, sigma.summary().status) == ("stopped", "interrupted")
        run = sigma.run_folder
    assert run is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with small_environment(Sweep(), hooks=interrupt) as again:
        again.resume(run)
        assert again.trainer("trainer").session.moment.iteration == 7
        again.trainer("trainer").fit()
        assert again.trainer("trainer").session.moment.epoch == 4
        assert state_bytes(again.trainer("trainer")) == wanted


def test_a_second_interruption_aborts_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TWICE", 0.0)
    went_on: list[int] = []

    def twice(context: HookContext) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        went_on.append(1)

    with small_environment(Sweep(), hooks={"press": Do(every=after(3, "iteration"), does=twice)}) as sigma:
        with pytest.raises(KeyboardInterrupt):
            sigma.trainer("trainer").fit(epochs=2)
        assert (sigma.state, went_on) == ("failed", [])


SIGNALLED = """
import signal, sys, threading
from sigma_kernel.clock import after
from sigma_testing.doing import Do
from sigma_testing.steering import Sweep, small_environment

number = signal.Signals[sys.argv[1]]
signal.signal(number, signal.SIG_DFL)  # nohup lets programs ignore SIGHUP
hooks = {"send": Do(every=after(3, "iteration"), does=lambda context: signal.raise_signal(number))}
with small_environment(Sweep(), hooks=hooks) as sigma:
    sigma.folder = "runs"
    sigma.trainer("trainer").fit(iterations=10)
print("trained to the end")
"""


@pytest.mark.long_cases("SIGTERM--15--3", "SIGUSR1-0-trained to the end-3")
@pytest.mark.parametrize(
    ("name", "code", "said", "saved"),
    [("SIGTERM", -15, "", "3"), ("SIGHUP", -1, "", "3"), ("SIGUSR1", 0, "trained to the end", "3")],
)
def test_a_signal_during_fit_saves_before_it_has_its_usual_effect(
    tmp_path: Path, name: str, code: int, said: str, saved: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SIGNALLED, name],  # of the function, which cannot be written down
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (code, said, "")
    (run,) = (tmp_path / "runs").iterdir()
    assert saved in [path.name for path in checkpoint.list_checkpoints(run, "trainer")]


# -- in the background -------------------------------------------------------------------------------------------------
def test_a_run_in_the_background_gives_its_summary() -> None:
    with small_environment(Sweep(), epochs=3) as sigma:
        training = sigma.run_async()
        summary = training.result(PATIENCE)
        assert (summary.epochs, summary.status) == (3, "finished")
        assert training.wait(0)
        training.stop()  # changes nothing any more
        assert repr(training).startswith("TrainingHandle(_name='small', _future=<Future")


def test_a_handle_stops_training_and_waits_at_most_a_while() -> None:
    with _slow() as sigma:
        training = sigma.run_async()
        assert not training.wait(0.001)
        with pytest.raises(TimeoutError, match=r"has not ended within 0.001 seconds. Training continues"):
            training.result(0.001)
        training.stop()
        assert training.wait(PATIENCE)


def test_a_handle_raises_what_training_raised() -> None:
    hooks = {"bad": Do(every=every(3, "iteration"), does=lambda context: 1 / 0)}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        training = sigma.run_async()
        with pytest.raises(SigmaTrainingError, match="ZeroDivisionError"):
            training.result(PATIENCE)


def test_what_is_wrong_before_training_is_raised_at_once() -> None:
    sigma = small_environment(Sweep(), epochs=None)
    with sigma, pytest.raises(SigmaConfigError, match="nothing ends its training"):
        sigma.run_async()
    with _slow() as sigma:
        training = sigma.run_async()
        with pytest.raises(SigmaStateError, match="cannot run while it is running"):
            sigma.run_async()
        training.stop()
        training.result(PATIENCE)


def test_leaving_the_environment_waits_for_training_in_the_background() -> None:
    with _slow() as sigma:
        training = sigma.run_async()
    assert training.has_ended


def test_ctrl_c_leaves_training_in_the_background_on() -> None:
    with _slow() as sigma:
        training = sigma.run_async()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        at = sigma.get("trainer.iteration")
        _until(lambda: sigma.get("trainer.iteration") > at)
        training.stop()
        assert training.result(PATIENCE).status == "stopped"


# -- progress ----------------------------------------------------------------------------------------------------------
class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class OutStream(io.StringIO):
    """The output of a notebook."""


OutStream.__module__ = "ipykernel.iostream"


@pytest.mark.parametrize(("stream", "people"), [(Screen(), True), (OutStream(), True), (io.StringIO(), False)])
def test_people_see_a_terminal_and_a_notebook(monkeypatch: pytest.MonkeyPatch, stream: Any, people: bool) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert watchers.is_seen() is people


SHOWING = """
import sys
import numpy as np
from sigma_kernel import Environment, functions as f
from sigma_training import minimise

with Environment("shown") as sigma:
    trainer = sigma.create_trainer(
        data=(np.zeros((20, 2), "float32"), np.zeros((20, 1), "float32")), backend="numpy", epochs=2,
        network="input(2) + output(1) + squared_difference()", optimiser="gradient_descent",
    )
    eval(sys.argv[1])
"""
MINIMISE = "minimise(lambda p, b: f.mean(p['w'] * b['x']), {'w': np.ones(1)}, {'x': np.ones((4, 1))}, 'adam', epochs=1)"


def _shown(call: str, tmp_path: Path, terminal: bool) -> str:
    """Return what a script writes to standard error, a terminal or a pipe."""
    mine, theirs = pty.openpty() if terminal else os.pipe()
    script = subprocess.Popen([sys.executable, "-c", SHOWING, call], stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    text = b""
    try:
        while block := os.read(mine, 1000):
            text += block
    except OSError:  # the end of a terminal
        pass
    finally:
        os.close(mine)
    assert script.wait(PATIENCE) == 0, text
    return text.decode()


@pytest.mark.rooms
@pytest.mark.parametrize(
    ("call", "terminal", "shown"),
    [
        ("trainer.fit()", True, True),
        ("sigma.run()", True, True),
        ("trainer.fit(progress=False)", True, False),
        (MINIMISE, True, False),
        ("trainer.fit()", False, False),
        ("trainer.fit(progress=True)", False, True),
    ],
)
def test_a_terminal_shows_progress_by_default(call: str, terminal: bool, shown: bool, tmp_path: Path) -> None:
    text = _shown(call, tmp_path, terminal)
    assert ("epoch 2/2" in text) is shown
    assert shown or not text


@pytest.mark.rooms
def test_a_configured_console_is_not_doubled_and_a_pipe_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Talking(Seen):
        talks = True

    monkeypatch.setattr(watchers, "is_seen", lambda: True)
    names: list[str] = []
    hooks = {"look": Do(every=every(1, "epoch"), does=lambda c: names.extend(t.name for t in threading.enumerate()))}
    with small_environment(Sweep(), epochs=1, hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(progress=True)
        assert "sigma-console" in names
        assert "epoch 1/1" in capfd.readouterr().err
        names.clear()
        sigma.monitors["mine"] = Talking()
        sigma.trainer("trainer").fit(epochs=1, progress=True)
        assert "sigma-console" not in names


def test_progress_without_a_console_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_environment(Sweep(), epochs=1) as sigma:
        monkeypatch.setattr(sigma.catalogue, "plugins", ())
        sigma.trainer("trainer").fit(progress=None)
        with pytest.raises(Exception, match="sigma-monitor-console offers it, but is not installed"):
            sigma.trainer("trainer").fit(epochs=1, progress=True)
