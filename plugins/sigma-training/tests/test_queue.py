"""The queue: every request is answered, at a boundary during training, and at once otherwise."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from sigma_kernel.clock import Moment
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaError, SigmaStateError

# FIXME command
from sigma_testing.steering import Slow, Sweep, small_environment
from sigma_training.commands.go import Go
from sigma_training.commands.pause import Pause
from sigma_training.commands.save import Save
from sigma_training.commands.set import Set
from sigma_training.commands.stop import StopTraining
from sigma_training.session.queue import Queue, Request

PATIENCE = 60.0  # seconds after which a request counts as unanswered


class Trainer:
    """The boundaries of a training thread."""

    def __init__(self) -> None:
        self.acted: list[tuple[Any, str]] = []
        self.bursts = 0
        self.queue, self.status, self.over = Queue(), "prepared", False

    def act(self, command: Any) -> int:
        self.acted.append((command, threading.current_thread().name))
        match command:
            case Pause():
                self.status = "paused"
            case Go():
                self.status = "running"
            case StopTraining():
                self.over = True
            case Set(_, "banana"):
                raise SigmaStateError("banana")
        return self.bursts

    def send(self, command: Any) -> Request:
        return self.queue.submit(Request(partial(self.act, command), command))

    def ask(self, question: Callable[[], Any]) -> Any:
        return self.queue.submit(Request(question)).result()

    def boundary(self) -> bool:
        while True:
            self.queue.serve(lambda: self.over)
            if self.over or self.status != "paused":
                return not self.over
            self.queue.wait()

    def end(self, status: str) -> None:
        self.status = status
        self.queue.release()

    def train(self) -> None:
        self.queue.claim()
        while self.boundary():
            self.bursts += 1
            time.sleep(0.001)
        self.end("stopped")

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.train, name="training", daemon=True)
        thread.start()
        _until(lambda: self.bursts > 0)
        return thread


def _until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)


def test_requests_are_answered_by_their_sender_while_nothing_trains() -> None:
    trainer = Trainer()
    assert trainer.send(Save()).future.result(0) == 0
    assert trainer.ask(lambda: threading.current_thread().name) == threading.current_thread().name


def test_the_training_thread_answers_requests_between_bursts() -> None:
    trainer = Trainer()
    thread = trainer.start()
    assert trainer.ask(lambda: threading.current_thread().name) == "training"
    assert trainer.send(Save()).future.result(PATIENCE) > 0
    trainer.send(StopTraining()).future.result(PATIENCE)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert trainer.acted == [(Save(), "training"), (StopTraining(), "training")]


def test_commands_apply_in_the_order_in_which_they_were_sent() -> None:
    trainer = Trainer()
    thread = trainer.start()
    sent = [Set("x", i) for i in range(200)]
    requests = [trainer.send(command) for command in sent]
    moments = [request.future.result(PATIENCE) for request in requests]
    trainer.send(StopTraining())
    thread.join(PATIENCE)
    assert [command for command, _ in trainer.acted[:-1]] == sent
    assert moments == sorted(moments)


def test_an_error_of_a_request_goes_to_its_sender_and_training_continues() -> None:
    trainer = Trainer()
    thread = trainer.start()
    with pytest.raises(SigmaStateError, match="banana"):
        trainer.send(Set("x", "banana")).future.result(PATIENCE)
    with pytest.raises(ZeroDivisionError):
        trainer.ask(lambda: 1 / 0)
    before = trainer.bursts
    _until(lambda: trainer.bursts > before)
    trainer.send(StopTraining())
    thread.join(PATIENCE)


def test_a_paused_trainer_still_answers_requests() -> None:
    trainer = Trainer()
    thread = trainer.start()
    trainer.send(Pause()).future.result(PATIENCE)
    before = trainer.bursts
    assert trainer.ask(lambda: 42) == 42
    time.sleep(0.05)
    assert trainer.bursts == before
    trainer.send(Go())
    _until(lambda: trainer.bursts > before)
    trainer.send(Pause())
    trainer.send(StopTraining())
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_pause_ends_as_soon_as_training_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer()
    wait = trainer.queue._gate.wait
    monkeypatch.setattr(trainer.queue._gate, "wait", lambda seconds: wait(4 * PATIENCE))  # it never polls by itself
    thread = trainer.start()
    for _ in range(6):
        trainer.send(Pause()).future.result(PATIENCE)
        trainer.send(Go()).future.result(PATIENCE)
    trainer.send(StopTraining())
    thread.join(PATIENCE)


def test_waiting_requests_are_answered_when_training_ends() -> None:
    trainer = Trainer()
    trainer.queue.claim(threading.Thread())  # a thread that never reaches a boundary
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(trainer.ask, lambda: 7) for _ in range(5)]
        _until(lambda: len(trainer.queue._waiting) == 5)
        trainer.end("failed")
        assert [answer.result(PATIENCE) for answer in answers] == [7] * 5


def test_commands_sent_after_a_stop_apply_after_the_end() -> None:
    trainer = Trainer()
    seen: list[Any] = []
    thread = threading.Thread(target=trainer.train, name="training", daemon=True)
    trainer.queue.claim(thread)
    stop = trainer.send(StopTraining())
    asked = threading.Thread(target=lambda: seen.append(trainer.ask(lambda: trainer.status)))
    asked.start()
    _until(lambda: len(trainer.queue._waiting) == 2)
    trainer.queue._thread = None
    thread.start()
    thread.join(PATIENCE)
    asked.join(PATIENCE)
    assert (stop.future.result(), seen) == (0, ["stopped"])


def test_commands_sent_before_the_training_thread_starts_are_queued() -> None:
    trainer = Trainer()
    thread = threading.Thread(target=lambda: trainer.boundary())
    trainer.queue.claim(thread)
    request = trainer.send(StopTraining())
    assert not request.future.done()
    thread.start()
    request.future.result(PATIENCE)
    assert trainer.over


def test_only_one_thread_trains() -> None:
    trainer = Trainer()
    trainer.queue.claim()
    with pytest.raises(SigmaStateError, match="it is in progress already. Wait for its end, or stop it first."):
        trainer.queue.claim()
    trainer.end("stopped")
    trainer.queue.claim()


def test_endless_requests_do_not_block_training() -> None:
    trainer = Trainer()
    asked, over = [0] * 4, threading.Event()

    def again(i: int) -> None:
        def ask() -> None:
            asked[i] += 1
            if not over.is_set():
                trainer.queue._waiting.append(Request(ask))  # the next request is queued before this one is answered

        trainer.queue._waiting.append(Request(ask))

    thread = trainer.start()
    for i in range(4):
        again(i)
    before = trainer.bursts
    _until(lambda: trainer.bursts > before + 3)
    over.set()
    trainer.send(StopTraining())
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert min(asked) > 3


# -- a whole environment under random commands -------------------------------------------------------------------------
COMMANDS = ("pause", "go", "step", "step", "reset", "set", "get", "evaluate", "ask", "set badly")


def _do(what: str, sigma: Environment, draw: random.Random) -> Any:
    trainer = sigma.trainer("trainer")
    match what:
        case "step":
            return sigma.step(draw.randint(1, 9), draw.choice(["iteration", "epoch"]))
        case "set":
            return sigma.set("trainer.optimiser.learning_rate", draw.random() / 20)
        case "set badly":
            return sigma.set("**.learning_rate", "banana")
        case "get":
            return sigma.get("trainer.network.layers.weights")
        case "evaluate":
            return trainer.evaluate()
        case "ask":
            return trainer.session.ask(lambda: trainer.session.moment)
    return sigma.send(what)


def _bombard(seed: int, sigma: Environment, answers: list[Any], count: int) -> None:
    draw = random.Random(seed)
    for _ in range(count):
        what = draw.choice(COMMANDS)
        try:
            answers.append((what, _do(what, sigma, draw)))
        except SigmaError as error:
            answers.append((what, error))


@pytest.mark.parametrize("seed", range(4))
def test_no_sequence_of_commands_from_several_threads_deadlocks(seed: int) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        running = threading.Thread(target=sigma.run, daemon=True)
        answers: list[list[Any]] = [[], [], []]
        threads = [
            threading.Thread(target=_bombard, args=(10 * seed + i, sigma, answers[i], 40), daemon=True)
            for i in range(len(answers))
        ]
        for thread in (running, *threads):
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "somebody was never answered"
        _until(lambda: sigma.state in ("running", "paused"))
        sigma.stop()
        running.join(PATIENCE)
        assert not running.is_alive()
        assert sigma.state == "stopped"
    for what, answer in (pair for one in answers for pair in one):
        if isinstance(answer, SigmaError):
            assert what in ("pause", "go", "step", "set badly"), (what, answer)
            assert any(text in str(answer) for text in ("while", "as no trainer is", "must be a finite number"))
    assert sum(map(len, answers)) == 120


@pytest.mark.parametrize("seed", range(150))
def test_commands_of_one_thread_follow_the_lifecycle_model(seed: int) -> None:
    """Compare with a model of the lifecycle: state, and the iteration while paused."""
    draw = random.Random(seed)
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        running = threading.Thread(target=sigma.run, daemon=True)
        running.start()
        _until(lambda: sigma.state == "running")
        session = sigma.trainer("trainer").session
        paused = False
        for _ in range(8):
            what = draw.choice(["pause", "go", "step", "reset", "set"])
            legal = {"pause": not paused, "go": paused, "step": paused}.get(what, True)
            before = session.moment.iteration
            if not legal:
                with pytest.raises(SigmaStateError, match=f"cannot {what} while it is {sigma.state}. Legal while "):
                    _do(what, sigma, draw)
                continue
            count, scale = draw.randint(1, 7), draw.choice(["iteration", "epoch"])
            if what == "step":
                sigma.step(count, scale)
                _until(lambda: sigma.state == "paused")
                wanted = before + count if scale == "iteration" else 5 * (before // 5 + count)
                assert session.moment.iteration == wanted
            else:
                _do(what, sigma, draw)
            paused = what in ("pause", "step") or (paused and what != "go")
            assert sigma.state == ("paused" if paused else "running")
            if paused and what == "reset":
                assert session.moment == Moment(reset=1)
        sigma.stop()
        running.join(PATIENCE)
        assert not running.is_alive()


class Noting(deque[Request]):
    """A queue that records when commands arrive: before and after, as training goes on meanwhile."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self.now, self.came = now, list[int]()

    def append(self, request: Request) -> None:
        self.came.append(self.now())
        super().append(request)
        self.came.append(self.now())


def test_a_command_waits_for_one_burst_at_most() -> None:
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        running = threading.Thread(target=sigma.run, daemon=True)
        running.start()
        _until(lambda: sigma.state == "running")
        session = sigma.trainer("trainer").session
        session.queue._waiting = waiting = Noting(lambda: session.moment.iteration)
        sent = sigma.send("set", pattern="**.learning_rate", value=0.01)["trainer"]
        before, after = waiting.came
        assert before <= sent.iteration <= after + 1  # the hook is due at every iteration, so that is a burst
        sigma.stop()
        running.join(PATIENCE)


def test_a_request_is_answered_with_the_time_at_which_it_applied() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=7)
        moment = trainer.session.commands.send(Set("**.learning_rate", 0.01))
        assert moment.future.result(0) == trainer.session.moment
        assert trainer.session.moment.iteration == 7
