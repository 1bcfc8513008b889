"""Hooks in the background: what they get, where they run, and how what they did comes back.

A hook in the background gets a snapshot of what it declared, and runs in a thread beside training; firings run one
after the other, in the order in which they came.  What a firing did waits for the next boundary: there it becomes a row
of the journal, and acts as that row says.  A run that is done again takes these rows, and runs no such hook.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.errors import SigmaStateError, said
from sigma_kernel.graph.node import Spec
from sigma_kernel.training.checkpoints.encoding import packed, unpacked
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.hooks.order import check_read, check_write, seen
from sigma_kernel.training.step.evaluator import Evaluator, Steer

MOST_WAITING = 4  # firings, before newer ones take the place of older ones
PATIENCE = 10.0  # seconds that the end of training waits for what is still under way


# -- what a hook sees --------------------------------------------------------------------------------------------------
@define(eq=False)
class Firing:
    """One run of a hook in the background: what it sees of its session as it was, and a record of what it does."""

    name: str
    scope: str
    hook: Hook
    moment: Moment
    folder: Path | None
    known: Mapping[str, Any]
    memory: Any  # packed, once it is over
    evaluator: Evaluator
    arrays: Mapping[str, np.ndarray]  # copies of the parameters, for who declares splits
    steer: Steer
    fresh: dict[str, Any] = field(factory=dict)  # what hooks before it published, at the same boundary
    published: dict[str, Any] = field(factory=dict, init=False)
    commands: list[tuple[str, Any]] = field(factory=list, init=False)
    logged: list[str] = field(factory=list, init=False)
    begun: bool = field(default=False, init=False)
    over: bool = field(default=False, init=False)
    seconds: float = field(default=0.0, init=False)
    error: BaseException | None = field(default=None, init=False)
    iteration: None = field(default=None, init=False)  # which is forgotten

    @property
    def key(self) -> tuple[str, str]:
        """Return whose firing it is."""
        return self.name, self.scope

    def read(self, address: str) -> Any:
        """Return a value as it was when the hook was due, or as a hook due with it has published it."""
        check_read(self.name, self.hook, address)
        return seen({**self.known, **self.fresh}, address, self.scope)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value, at the next boundary."""
        check_write(self.name, self.hook, address)
        self.published[address] = packed(value)
        self.fresh[self.scope + address] = unpacked(self.published[address])

    def command(self, command: str, **arguments: Any) -> None:
        """Ask for a change at the next boundary."""
        commands.command(command, arguments)
        self.commands.append((command, packed(arguments)))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split, at the parameters as they were."""
        return self.evaluator.evaluate(self._placed("evaluate"), self.steer, on, metrics)

    def ends(self) -> tuple[Spec, Spec]:
        """Return what one sample of the first input is, and one row of the first output."""
        return self.evaluator.programs.model.ends()

    def excite(self, samples: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first output for samples of the first input, and its slopes, at the parameters as they were."""
        return self.evaluator.excite(self._placed("excite"), self.steer, samples, directions)

    def _placed(self, what: str) -> dict[str, Any]:
        """Return the parameters as they were, on the device."""
        if not self.arrays:
            raise SigmaStateError(
                f"hook {self.name!r}: cannot {what} in the background, as it declares no splits. "
                "Declare them, or set background = false."
            )
        return {name: self.evaluator.programs.backend.to_device(value) for name, value in self.arrays.items()}

    def keep(self) -> None:
        """Refuse: the parameters have moved on."""
        raise SigmaStateError(
            f"hook {self.name!r}: cannot keep parameters in the background, nor bring any back. Set background = false."
        )

    bring_back = keep

    def log(self, text: str) -> None:
        """Log something to the people who watch, at the next boundary."""
        self.logged.append(text)

    # -- running -------------------------------------------------------------------------------------------------------
    def join(self, fresh: dict[str, Any]) -> None:
        """See what other hooks publish that were due at the same boundary."""
        self.fresh = fresh

    def begin(self, *memory: Any) -> None:
        """Begin, with a newer ``memory`` if there is one."""
        self.begun, self.memory = True, unpacked(memory[0]) if memory else self.memory

    def end(self) -> None:
        """Let the training thread apply what was done."""
        self.over = True

    def run(self) -> None:
        """Run the hook; whatever it raises is kept."""
        began = perf_counter()
        try:
            self.hook.fire(self)
            self.memory = packed(self.memory)
        except BaseException as error:  # handed to the training thread
            self.error = error
        self.seconds = perf_counter() - began

    def row(self) -> dict[str, Any]:
        """Return what is written down of it, and what acts."""
        about = {"event": "background", "hook": self.name, "scope": self.scope, "published": self.published}
        became = {"memory": self.memory} if self.error is None else {"error": said(self.error)}
        return {**about, "commands": self.commands, "logged": self.logged, **became}


@define(eq=False)
class Background:
    """The firings of one session: those that are over and have not acted yet, the one that runs, those that wait."""

    evaluator: Evaluator
    log: Callable[[str], None]
    _firings: deque[Firing] = field(factory=deque, init=False)  # in their order
    _memories: dict[tuple[str, str], tuple[Hook, Any]] = field(factory=dict, init=False)  # newer than the session's
    _bucket: tuple[Moment, dict[str, Any]] = field(factory=lambda: (Moment(), {}), init=False)  # the last one
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)
    _late: set[str] = field(factory=set, init=False)  # who gave way, and people were told

    def submit(self, firing: Firing) -> None:
        """Let a hook run on what it saw, after all that came before; returns at once."""
        with self._gate:
            if self._bucket[0] is not firing.moment:
                self._bucket = firing.moment, firing.fresh
            firing.join(self._bucket[1])
            if all(earlier.key != firing.key for earlier in self._firings):
                self._memories.pop(firing.key, None)  # what it remembers has acted
            if len(self._waiting()) >= MOST_WAITING:
                self._give_way(firing)
            self._firings.append(firing)
            if self._thread is None:  # a daemon: a hook that hangs must not keep the process
                self._thread = threading.Thread(target=self._work, name="sigma-background", daemon=True)
                self._thread.start()
            self._gate.notify_all()

    def _waiting(self) -> list[Firing]:
        return [firing for firing in self._firings if not firing.begun]

    def _give_way(self, new: Firing) -> None:
        old = next((firing for firing in self._waiting() if firing.key == new.key), None)
        if old is None:
            return
        self._firings.remove(old)
        if new.name not in self._late:
            self._late.add(new.name)
            self.log(f"hook {new.name!r} takes longer than the time between its firings: some are left out")

    def result(self) -> Firing | None:
        """Return the next firing that is over, and forget it."""
        if not self._firings:
            return None
        with self._gate:
            return self._firings.popleft() if self._firings[0].over else None

    def finish(self) -> None:
        """Wait until all firings are over, but not for ever."""
        with self._gate:
            self._gate.wait_for(lambda: all(firing.over for firing in self._firings), PATIENCE)

    def forget(self) -> list[str]:
        """Leave out all that is still to come, and has not acted yet; return the names of these hooks."""
        with self._gate:
            left = sorted({firing.name for firing in self._firings})
            self._firings.clear()
            self._memories.clear()
            self._thread = None  # whoever still runs finds that it is not wanted any more
            self._gate.notify_all()
        return left

    def evaluate_by(self, evaluator: Evaluator) -> None:
        """Let hooks evaluate by another evaluator from now on."""
        with self.evaluator.alone:  # not while one of them evaluates
            self.evaluator.close()
        self.evaluator = evaluator

    def close(self) -> None:
        """Let go of everything."""
        self.forget()
        self.evaluator.close()

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _work(self) -> None:
        while (firing := self._next()) is not None:
            firing.run()
            with self._gate:
                firing.end()
                if self._wanted() and firing.error is None:
                    self._memories[firing.key] = firing.hook, firing.memory
                self._gate.notify_all()

    def _next(self) -> Firing | None:
        with self._gate:
            self._gate.wait_for(lambda: self._waiting() or not self._wanted())
            if not self._wanted():
                return None
            firing = self._waiting()[0]
            hook, memory = self._memories.get(firing.key, (None, None))
            firing.begin(*([memory] if hook is firing.hook else []))
            return firing

    def _wanted(self) -> bool:
        return self._thread is threading.current_thread()
