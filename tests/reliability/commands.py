"""Send random commands, from two threads, to a training run, and compare each effect with a model.

::

    python tests/reliability/commands.py 10000 [SEED]

Runs that many sequences, each on a new run on the numpy backend, with a run folder.  Every command must be acknowledged
once, as applied at a time or as refused with a reason; a refused command must change nothing.  A pause must apply
within one burst and a stop end the run within two, and nothing changes during a pause.  The journal must contain the
applied commands in order.  Prints one JSON document; exits with an error if a sequence fails.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as Late
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from attrs import define, evolve, field, frozen
from hypothesis import HealthCheck, Phase, seed, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sigma_kernel.clock import Moment, time_scale
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaError
from sigma_operator_local import LocalOperator
from sigma_training.history.rewind import RewindBuffer
from sigma_training.session.loop import TrainingLoop
from sigma_training.session.queue import Queue, Request
from sigma_training.session.session import Session

PATIENCE = 30.0  # seconds after which a command counts as unanswered
RATE = "trainer.optimiser.learning_rate"
LIFE = ("pause", "go", "step")  # commands that only make sense during a run

X = np.random.default_rng(5).normal(size=(24, 3)).astype(np.float32)
# the loss is minimal where every sample fits, and the rates decrease, so that it stays finite in any run
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32)
WRONG: list[tuple[str, dict[str, Any]]] = [
    *(("set", {"pattern": RATE, "value": value}) for value in ("banana", None, True, [0.1], -1.0, 1e300, float("nan"))),
    ("set", {"pattern": "trainer.**.weights", "value": "banana"}),
    ("set", {"pattern": "trainer.**.weights", "value": [[1.0, 2.0]]}),
    ("set", {"pattern": "trainer.**.weights", "value": [[1.0], [2.0, 3.0], [4.0]]}),
    ("set", {"pattern": "trainer.**.weights", "value": 1e300}),
    ("set", {"pattern": "trainer.iteration", "value": 3}),
    ("set", {"pattern": "trainer.optimiser.learning_rat", "value": 0.1}),
    ("set", {"pattern": RATE}),
    ("step", {"count": 0}),
    ("step", {"scale": "second"}),
    ("rewind", {"to": -1}),
    ("attach", {"name": "a.b", "hook": "running_time"}),
    ("attach", {"name": "it", "hook": "banana"}),
    ("detach", {"name": "banana"}),
    ("swap", {"slot": "network", "component": "adam"}),
    ("swap", {"slot": "optimiser", "component": {"type": "adam", "learning_rate": "banana"}}),
    ("save", {"score": "banana"}),
    ("stop", {"banana": 1}),
    ("banana", {}),
]


# -- observation -------------------------------------------------------------------------------------------------------
@frozen
class State:
    """The state that commands change."""

    status: str
    iteration: int
    rate: float
    hooks: tuple[str, ...]
    changes: Mapping[str, Any]
    weights: bytes

    @classmethod
    def of(cls, session: Session) -> State:
        """Return the current state; called in the training thread, or while nothing trains."""
        rate = float(session.registry.get("optimiser.learning_rate"))
        weights = session.host("network.layers.1-output.weights").tobytes()
        now = session.moment.iteration
        return cls(session.status, now, rate, tuple(session.setup.order.hooks), session.state.changes, weights)


@frozen
class Acted:
    """A command that the training thread took, and its result."""

    command: Command
    before: State
    after: State
    begun: int  # bursts so far
    moment: Moment | None
    refused: Exception | None
    over: bool  # state before the command

    @property
    def written(self) -> bool:
        """Return whether the journal must contain the command: it was applied, and did not end a finished run."""
        return self.refused is None and not (self.name == "stop" and self.over)

    @property
    def name(self) -> str:
        """Return the name of the command."""
        return self.command.command


@define(eq=False)
class Tally:
    """A training loop that counts its bursts."""

    loop: TrainingLoop
    count: Callable[[], None]
    workers: int = 1

    def advance(self, *given: Any) -> int:
        """Run a burst."""
        self.count()
        return self.loop.advance(*given)

    def train(self, *given: Any) -> None:
        """Train until the end, by the bursts that are counted."""
        TrainingLoop.train(self, *given)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)


@define(eq=False)
class Counting(LocalOperator):
    """Train, and count the bursts."""

    begun: int = 0

    def train(self, loop: TrainingLoop) -> None:
        """Train."""
        super().train(Tally(loop, self._count))  # type: ignore[arg-type]

    def _count(self) -> None:
        self.begun += 1


@define(eq=False)
class Listening(Queue):
    """A queue that records the number of bursts at the arrival of each command, and the result."""

    act: Callable[[Callable[[], Any], Command], Any]
    begun: Callable[[], int]
    came: dict[int, int] = field(factory=dict)

    def submit(self, request: Request) -> Request:
        """Add a request; from now on it can be seen."""
        if request.command is None:
            return super().submit(request)
        found = super().submit(evolve(request, act=partial(self.act, request.act, request.command)))
        self.came[id(request.command)] = self.begun()
        return found


class Always(RewindBuffer):
    """Keep a snapshot at the end of every epoch, for rewinds."""

    def due(self) -> bool:
        """Return True."""
        return True


@define(eq=False)
class Watched:
    """A run that records the requests to its training thread."""

    folder: Path
    operator: Counting
    last: int | None
    sigma: Environment = field(init=False)
    session: Session = field(init=False)
    waiting: Listening = field(init=False)
    acted: list[Acted] = field(factory=list)
    threads: list[Future[Any]] = field(factory=list)
    people: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(4))

    def __attrs_post_init__(self) -> None:
        """Prepare the run, and observe its training thread."""
        self.sigma = Environment("steered", seed=0, folder=self.folder)
        hooks = {} if self.last is None else {"end": {"type": "stop", "when": f"iteration reaches {self.last}"}}
        trainer = self.sigma.create_trainer(
            backend="numpy",
            operator=self.operator,
            data={"inputs": X, "targets": Y},
            network="input(3) + output(1) + squared_difference()",
            optimiser={"type": "momentum", "learning_rate": 0.01},
            batch_size=5,
            epochs=inf,
            hooks={"often": {"type": "evaluate", "on": "training", "every": "7 iterations"}, **hooks},
        )
        self.sigma.prepare()
        self.session = trainer.session
        self.session.recorder.past = Always()
        self.session.queue = self.waiting = Listening(self._act, lambda: self.operator.begun)

    def _act(self, act: Callable[[], Any], command: Command) -> Any:
        before, begun, over = State.of(self.session), self.operator.begun, self.session.progress.is_over
        try:
            moment = act()
        except Exception as error:
            self.acted.append(Acted(command, before, State.of(self.session), begun, None, error, over))
            raise
        self.acted.append(Acted(command, before, State.of(self.session), begun, moment, None, over))
        return moment

    def run(self) -> None:
        """Train in a thread, and return once training has started or ended."""
        began = threading.Event()

        def work() -> None:
            began.set()
            self.sigma.run()

        before = self.operator.begun
        self.threads.append(self.people.submit(work))
        began.wait(PATIENCE)
        while self.operator.begun == before and not self.threads[-1].done():
            time.sleep(0.0005)

    def send(self, name: str, arguments: Mapping[str, Any]) -> Future[dict[str, Moment]]:
        """Send a command from another thread."""
        return self.people.submit(self.sigma.send, name, **arguments)

    def answer(self, sent: Future[Any]) -> Any:
        """Return the result of a command, a time or an error; fail if there is none."""
        try:
            return sent.result(PATIENCE)
        except SigmaError as error:
            return error
        except Late:
            faulthandler.dump_traceback(sys.__stderr__)
            raise AssertionError("no answer: see above what each thread waits for") from None

    def rows(self) -> list[str]:
        """Return the names of the external commands in the journal."""
        run = self.sigma.run_folder
        assert run is not None
        rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()[1:]]
        return [row["command"] for row in rows if "command" in row and "by" not in row]


# -- invariants --------------------------------------------------------------------------------------------------------
def hold(one: Acted) -> None:
    """Check the effect of one command in the training thread."""
    before, after, now = one.before, one.after, one.command
    if one.refused is not None:
        assert isinstance(one.refused, SigmaError), one
        assert str(one.refused), one
        assert after == before, one
        return
    assert one.moment is not None, one
    assert one.moment.iteration == after.iteration, one
    if one.name in LIFE:
        wanted = ("running", "paused") if one.name == "pause" else ("paused", "running")
        assert not one.over, one
        assert (before.status, after.status) == wanted, one
    if one.name == "rewind":
        assert one.moment.count(time_scale(now.scale)) <= now.to, one  # type: ignore[attr-defined]
    elif one.name == "reset":
        assert (after.iteration, after.hooks[:1], after.changes) == (0, ("often",), {}), one
    else:
        assert after.iteration == before.iteration, one
    if one.name == "set" and now.pattern.endswith("rate"):  # type: ignore[attr-defined]
        assert after.rate == now.value, one  # type: ignore[attr-defined]
    if one.name in ("attach", "detach"):
        assert (now.name in after.hooks) == (one.name == "attach"), one  # type: ignore[attr-defined]
    if one.name in (*LIFE, "save", "stop"):
        assert (after.rate, after.hooks, after.changes) == (before.rate, before.hooks, before.changes), one
        assert after.weights == before.weights, one


class Commands(RuleBasedStateMachine):
    """Any commands in any order, at any time."""

    done: ClassVar[Counter[str]] = Counter()  # over all sequences
    most: ClassVar[Counter[str]] = Counter()  # bursts that a command waited for

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")  # if there is one: the disk is not tested here
        self.place = TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.held = 0  # applied so far
        self.paused: int | None = None  # number of bursts when training paused
        self.over = False  # a stop was sent
        self.stopped: int | None = None  # number of bursts when the stop was sent

    @initialize(seconds=st.sampled_from([0.0003, 0.001, 0.004]), last=st.sampled_from([None, None, 30, 300]))
    def begin(self, seconds: float, last: int | None) -> None:
        """Start training."""
        self.it = Watched(Path(self.place.name), Counting(burst_seconds=seconds), last)
        self.it.run()

    # -- one command at a time -----------------------------------------------------------------------------------------
    def give(self, name: str, /, **arguments: Any) -> Any:
        """Send one command, wait for the answer, and check its effect."""
        known = len(self.it.acted)
        answer = self.it.answer(self.it.send(name, arguments))
        self.done["refused" if isinstance(answer, SigmaError) else name] += 1
        if self.over and self.it.threads[-1].done() and name in LIFE:
            assert isinstance(answer, SigmaError), f"{name} after the end"
        mine = [one for one in self.it.acted[known:] if one.name == name]
        if isinstance(answer, dict) and answer:
            assert answer["trainer"] in [one.moment for one in mine], (name, answer, mine)
        elif isinstance(answer, dict):
            assert name == "stop", f"{name}: neither applied nor refused"
            assert not mine
        return answer

    @rule()
    def pause(self) -> None:
        """Pause."""
        if not isinstance(self.give("pause"), SigmaError):
            self.paused = self.it.operator.begun

    @rule()
    def go(self) -> None:
        """Go."""
        self.paused = None
        self.give("go")

    @rule(count=st.integers(1, 12), scale=st.sampled_from(["iteration", "iteration", "epoch"]), waits=st.booleans())
    def step(self, count: int, scale: str, waits: bool) -> None:
        """Step; sometimes wait for the end of the step."""
        if waits:
            self.pause()
        self.paused = None
        answer = self.give("step", count=count, scale=scale)
        if isinstance(answer, SigmaError) or not waits:
            return
        session, at = self.it.session, answer["trainer"]
        end = threading.Event()
        for _ in range(int(PATIENCE * 1000)):
            if session.status == "paused" or self.it.threads[-1].done():
                break
            end.wait(0.001)
        else:
            raise AssertionError("a step has no end")
        now = self.it.session.moment
        if session.status == "paused":
            assert getattr(now, scale) == getattr(at, scale) + count, (at, now)
            assert scale == "iteration" or session.setup.feed.iteration_in_epoch(session.state.cursor) == 0
            self.paused = self.it.operator.begun

    @rule(value=st.sampled_from([0, 0.0, 0.001, 0.02]), pattern=st.sampled_from([RATE, "**.learning_rate"]))
    def set(self, value: float, pattern: str) -> None:
        """Set the learning rate, which is always allowed."""
        assert not isinstance(self.give("set", pattern=pattern, value=value), SigmaError)

    @rule(value=st.sampled_from([0.5, [[0.1], [0.2], [0.3]]]))
    def fill(self, value: Any) -> None:
        """Set the weights."""
        assert not isinstance(self.give("set", pattern="trainer.**.weights", value=value), SigmaError)

    @rule(wrong=st.sampled_from(WRONG))
    def mistake(self, wrong: tuple[str, dict[str, Any]]) -> None:
        """Send an invalid command: it never reaches the training thread, and nothing changes."""
        name, arguments = wrong
        before = self.it.sigma.get(RATE), self.it.session.state.changes, tuple(self.it.session.setup.order.hooks)
        answer = self.give(name, **arguments)
        assert isinstance(answer, SigmaError), f"{wrong} was taken"
        after = self.it.sigma.get(RATE), self.it.session.state.changes, tuple(self.it.session.setup.order.hooks)
        assert after == before

    @rule()
    def save(self) -> None:
        """Save."""
        assert not isinstance(self.give("save"), SigmaError)

    @rule(back=st.integers(0, 30), scale=st.sampled_from(["iteration", "epoch"]))
    def rewind(self, back: int, scale: str) -> None:
        """Rewind, if there is a snapshot."""
        to = max(0, getattr(self.it.session.moment, scale) - back)
        answer = self.give("rewind", to=to, scale=scale)
        if not isinstance(answer, SigmaError):
            assert getattr(answer["trainer"], scale) <= to
            if self.paused is not None:
                assert self.it.session.moment == answer["trainer"]

    @rule(
        sent=st.sampled_from([
            ("reset", {}), ("undo", {}), ("detach", {"name": "it"}), ("detach", {"name": "often"}),
            ("attach", {"name": "it", "hook": {"type": "running_time", "every": "2 iterations"}}),
            ("swap", {"slot": "optimiser", "component": "adam"}),
            ("swap", {"slot": "iterator", "component": "sequential"}),
        ])
    )  # fmt: skip
    def change(self, sent: tuple[str, dict[str, Any]]) -> None:
        """Change components, undo, or reset."""
        self.give(sent[0], **sent[1])

    # -- many at once --------------------------------------------------------------------------------------------------
    @rule(sent=st.lists(st.sampled_from([*LIFE, "set", "save", "rewind", "undo", "stop"]), min_size=2, max_size=6))
    def crowd(self, sent: list[str]) -> None:
        """Send several commands at once, from several threads; each must have a correct answer."""
        given = {"set": {"pattern": RATE, "value": 0.03}, "rewind": {"to": 10}}
        known = len(self.it.acted)
        answers = [self.it.send(name, given.get(name, {})) for name in sent]
        self.paused = None
        for name, answer in zip(sent, map(self.it.answer, answers), strict=True):
            self.done["refused" if isinstance(answer, SigmaError) else name] += 1
            self.over |= name == "stop" and not isinstance(answer, SigmaError)
            assert isinstance(answer, SigmaError) or answer or name == "stop", f"{name}: neither applied nor refused"
        applied = Counter((one.name, one.moment) for one in self.it.acted[known:])
        done = zip(sent, answers, strict=True)
        told = Counter((name, a.result()["trainer"]) for name, a in done if not a.exception() and a.result())
        assert told <= applied

    # -- the end, and after it -----------------------------------------------------------------------------------------
    @rule()
    def stop(self) -> None:
        """Stop."""
        assert not isinstance(self.give("stop"), SigmaError)
        self.over, self.paused = True, None
        self.end()

    def end(self) -> None:
        """Wait for the end of a stopped run."""
        self.it.answer(self.it.threads[-1])
        assert self.it.sigma.state == "stopped"
        self.it_does_as_it_is_told()
        if self.stopped is not None:
            waited = self.it.operator.begun - self.stopped
            self.most["end"] = max(self.most["end"], waited)
            assert waited <= 2, f"the run ended {waited} bursts after it was stopped"

    @rule()
    def again(self) -> None:
        """Run again if the run is over."""
        if self.it.threads[-1].done():
            self.end()
            self.over, self.paused, self.stopped = False, None, None
            self.it.run()

    # -- invariants of the whole run -----------------------------------------------------------------------------------
    @invariant()
    def it_does_as_it_is_told(self) -> None:
        """Check that nothing changes during a pause, and that each command had its effect in time."""
        if not hasattr(self, "it"):
            return
        if self.paused is not None:
            assert self.it.operator.begun == self.paused, "it moves while it is paused"
        acted = self.it.acted[self.held :]
        for one in acted:
            hold(one)
            came = self.it.waiting.came.get(id(one.command), one.begun)
            waited = one.begun - came
            if one.name == "stop":
                self.stopped = came if self.stopped is None else self.stopped
            self.most[one.name] = max(self.most[one.name], waited)
            assert one.name not in ("pause", "stop") or waited <= 1, f"{one.name} acted only after {waited} bursts"
        self.held += len(acted)

    def teardown(self) -> None:
        """Stop, and compare the journal with the applied commands."""
        if not hasattr(self, "it"):
            return
        try:
            self.it.answer(self.it.send("stop", {}))
            self.it.threads[-1].result(PATIENCE)
            self.end()
            for name in LIFE:
                assert isinstance(self.it.answer(self.it.send(name, {})), SigmaError), f"{name} after the end"
            assert len({id(one.command) for one in self.it.acted}) == len(self.it.acted)
            assert self.it.rows() == [one.name for one in self.it.acted if one.written]
            self.done["sequences"] += 1
        finally:
            self.it.sigma.close()
            self.it.people.shutdown(wait=False)
            self.place.cleanup()


def main(sequences: int, number: int = 0) -> None:
    """Run that many sequences and print the results; the same seed sends the same ones."""
    how = settings(
        max_examples=sequences, stateful_step_count=15, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    print(f"drawn from seed {number}", file=sys.stderr)
    sys.setswitchinterval(0.0002)  # threads switch more often, and fewer wait for that
    run_state_machine_as_test(seed(number)(Commands), settings=how)
    done = dict(Commands.done)
    print(json.dumps({"sequences": done.pop("sequences"), "commands": done, "bursts waited": dict(Commands.most)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
