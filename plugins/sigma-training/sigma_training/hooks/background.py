"""Run hooks on snapshots, in a background thread or in a worker, and apply their results at a boundary.

A background hook gets a snapshot of what it declared; one thread runs the firings in the order in which they were
submitted.  The result of a firing is queued until the next boundary: there it is written to the journal as a row, and
applied from that row.  A replay applies these rows, and runs no background hook.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate

from attrs import define, field

from sigma_kernel.arrays import protect
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Media
from sigma_kernel.contracts.commanding import make_command
from sigma_kernel.contracts.media import FOLDER
from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.encoding import pack, unpack
from sigma_kernel.errors import SigmaStateError, error_text
from sigma_step.model import Model
from sigma_step.steps import Steps
from sigma_training.evaluator import Evaluator
from sigma_training.hooks.context import MeasuringContext, P, R
from sigma_training.hooks.directions import find_direction
from sigma_training.hooks.order import check_read, check_write, look_up

MOST_WAITING = 4  # queued firings, before a newer one replaces an older one
BACKGROUND, WORKER = "in the background", "in a worker"  # where hooks run on snapshots
PATIENCE = 10.0  # seconds that the end of training waits for running firings


# -- what a hook sees --------------------------------------------------------------------------------------------------
@define(eq=False)
class HookCall(MeasuringContext):
    """One run of a hook in the background, or in a worker: its snapshot of the session, and the row of its results.

    The results are applied from that row.
    """

    name: str
    scope: str
    hook: Hook
    moment: Moment
    stored_run: StoredRun | None
    known: Mapping[str, Any]
    fresh: dict[str, Any]  # published by hooks that were due at the same boundary
    memory: Any
    evaluator: Evaluator
    steps: Steps  # with copies of the parameters on the host, if the hook declares splits
    row: dict[str, Any] = field(init=False)
    seconds: float = field(default=0.0, init=False)
    files: dict[str, bytes] = field(factory=dict, init=False)  # of media, and of a worker, which cannot write
    error: BaseException | None = field(default=None, init=False)
    directions: Mapping[str, str] = field(factory=dict)  # which values of metrics are better, by address
    place: str = BACKGROUND
    iteration: None = field(default=None, init=False)  # not available there

    @row.default
    def _(self) -> dict[str, Any]:
        about = {"event": "background", "hook": self.name, "scope": self.scope}
        return {**about, "published": {}, "commands": [], "logged": []}

    @property
    def key(self) -> tuple[str, str]:
        """Return the name and the scope of the hook."""
        return self.name, self.scope

    @property
    def model(self) -> Model:
        """Return the model."""
        return self.evaluator.programs.model

    def read(self, address: str) -> Any:
        """Return a value from the snapshot, or one published by a hook that was due at the same boundary."""
        check_read(self.name, self.hook, address)
        return protect(look_up({**self.known, **self.fresh}, address, self.scope))

    def direction(self, address: str) -> str:
        """Return which values at an address are better."""
        return find_direction(address, self.directions)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value at the next boundary."""
        check_write(self.name, self.hook, address, value)
        if isinstance(value, Media):
            self._publish_media(address, value)
            return
        self.row["published"][address] = pack(value)
        self.fresh[self.scope + address] = unpack(self.row["published"][address])

    def _publish_media(self, address: str, value: Media) -> None:
        if (media := self.describe_media(address, value)) is not None:
            about, self.files[f"{FOLDER}{media[0]['key']}"] = media
            self.row.setdefault("media", {})[address] = about  # a replay takes it from there: its bytes are kept

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file of the run; in a worker, keep it for the operator, and return None."""
        if self.place != WORKER:
            return super().write(name, data)
        self.files[name] = data
        return None

    def command(self, command: str, **arguments: Any) -> None:
        """Apply a command at the next boundary."""
        make_command(self.model.resolve, command, arguments)
        self.row["commands"].append((command, pack(arguments)))

    def measure(
        self, what: str, act: Callable[Concatenate[Evaluator, Steps, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of a method of the evaluator at the parameters of the snapshot, copied to the device."""
        if not self.steps.arrays:
            raise SigmaStateError(
                f"hook {self.name!r}: cannot {what} {self.place}, as it declares no splits. Declare them, or"
                f" {self._remedy}."
            )
        return act(self.evaluator, self.steps.to_device(), *args, **kwargs)

    def keep(self) -> None:
        """Refuse: the parameters have changed since the snapshot."""
        raise SigmaStateError(
            f"hook {self.name!r}: cannot keep parameters {self.place}, nor restore any. To do so, {self._remedy}."
        )

    bring_back = keep

    @property
    def _remedy(self) -> str:
        return "set background = false" if self.place == BACKGROUND else "set scope = 'global'"

    def log(self, text: str) -> None:
        """Log a message at the next boundary."""
        self.row["logged"].append(text)

    # -- running -------------------------------------------------------------------------------------------------------
    def take_result(self, row: dict[str, Any], seconds: float, files: dict[str, bytes]) -> None:
        """Take the results of a run elsewhere."""
        self.row, self.seconds, self.files = row, seconds, files

    def run(self, newer: Any = None) -> None:
        """Run the hook, with a ``newer`` memory if there is one; keep whatever it raises."""
        began = perf_counter()
        try:
            self.memory = self.memory if newer is None else unpack(newer)
            self.hook.fire(self)
            self.row["memory"] = pack(self.memory)
        except BaseException as error:  # passed to the training thread
            self.error, self.row["error"] = error, error_text(error)
        self.seconds = perf_counter() - began


@define(eq=False)
class Background:
    """The background firings of one session, in the order of submission: done and not yet applied, running, queued."""

    evaluator: Evaluator
    log: Callable[[str], None]
    _done: deque[HookCall] = field(factory=deque, init=False)
    _running: HookCall | None = field(default=None, init=False)
    _waiting: deque[HookCall] = field(factory=deque, init=False)
    _memories: dict[tuple[str, str], tuple[Hook, Any]] = field(factory=dict, init=False)  # newer than the session's
    _fresh: tuple[Moment, dict[str, Any]] = field(factory=lambda: (Moment(), {}), init=False)  # of the newest boundary
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)
    _late: set[str] = field(factory=set, init=False)  # hooks whose skipped firings were logged

    def fresh(self, moment: Moment) -> dict[str, Any]:
        """Return the published values that the hooks which are due at the same boundary share."""
        if self._fresh[0] is not moment:
            self._fresh = moment, {}
        return self._fresh[1]

    def submit(self, firing: HookCall) -> None:
        """Queue a firing behind the earlier ones; return at once."""
        with self._gate:
            if all(earlier.key != firing.key for earlier in self._pending_calls()):
                self._memories.pop(firing.key, None)  # its results have been applied
            if len(self._waiting) >= MOST_WAITING:
                self._give_way(firing)
            self._waiting.append(firing)
            if self._thread is None:  # a daemon: a hook that hangs must not keep the process alive
                self._thread = threading.Thread(target=self._work, name="sigma-background", daemon=True)
                self._thread.start()
            self._gate.notify_all()

    def _pending_calls(self) -> list[HookCall]:
        return [*self._done, *([self._running] if self._running else []), *self._waiting]

    def _give_way(self, new: HookCall) -> None:
        old = next((firing for firing in self._waiting if firing.key == new.key), None)
        if old is None:
            return
        self._waiting.remove(old)
        if new.name not in self._late:
            self._late.add(new.name)
            self.log(f"hook {new.name!r} takes longer than the time between its firings: some are skipped")

    def result(self) -> HookCall | None:
        """Remove and return the next firing that is done, or None."""
        if not self._done:  # as at nearly all boundaries: no lock
            return None
        with self._gate:
            return self._done.popleft() if self._done else None

    def finish(self) -> None:
        """Wait until all firings are done, at most ``PATIENCE`` seconds."""
        with self._gate:
            self._gate.wait_for(lambda: not self._waiting and self._running is None, PATIENCE)

    def forget(self) -> list[str]:
        """Drop all firings that were not applied yet; return the names of their hooks."""
        with self._gate:
            left = sorted({firing.name for firing in self._pending_calls()})
            self._done.clear()
            self._waiting.clear()
            self._memories.clear()
            self._running = self._thread = None  # a thread that still runs then ends
            self._gate.notify_all()
        return left

    def evaluate_by(self, evaluator: Evaluator) -> None:
        """Use another evaluator from now on; the former one is closed unless it is still evaluating."""
        former, self.evaluator = self.evaluator, evaluator
        if former.alone.acquire(blocking=False):
            try:
                former.close()
            finally:
                former.alone.release()

    def close(self) -> None:
        """Drop all firings, and close the evaluator."""
        self.forget()
        self.evaluator.close()

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _work(self) -> None:
        while (firing := self._next_call()) is not None:
            hook, memory = self._memories.get(firing.key, (None, None))
            firing.run(memory if hook is firing.hook else None)
            with self._gate:
                if self._is_current():
                    self._running = None
                    self._done.append(firing)
                    if firing.error is None:
                        self._memories[firing.key] = firing.hook, firing.row["memory"]
                self._gate.notify_all()

    def _next_call(self) -> HookCall | None:
        with self._gate:
            self._gate.wait_for(lambda: self._waiting or not self._is_current())
            if self._is_current():
                self._running = self._waiting.popleft()
            return self._running if self._is_current() else None

    def _is_current(self) -> bool:
        return self._thread is threading.current_thread()
