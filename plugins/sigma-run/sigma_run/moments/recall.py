"""Recall a moment of a run: another process computes it again, at the lowest priority."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

from attrs import asdict, define, field

from sigma_kernel import errors
from sigma_kernel.contracts.storing import Checkpoint, Log, StoredRun
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_kernel.settings import is_whole
from sigma_kernel.threads import in_thread
from sigma_run.config.choosing import Use
from sigma_run.config.stores import open_run
from sigma_run.config.trained import Trained, open_trained
from sigma_run.moments.replica import Wish


@define(eq=False, repr=False)
class RecallHandle:
    """A moment of a run that another process computes again: wait for it, or cancel it.

    ``iteration`` is what that has reached.
    """

    wish: Wish
    log: Log
    iteration: int = field(default=0, init=False)
    _process: subprocess.Popen[str] = field(init=False)
    _state: Future[Checkpoint] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start the process in a session of its own; it imports from where this one does, and from nowhere else."""
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sigma_run.moments.replica"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        self._state = in_thread(self._receive, "sigma-recall")

    def __repr__(self) -> str:
        return f"RecallHandle({self.wish.run!r}, iteration {self.iteration} of {self.wish.at})"

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds; return whether it has ended."""
        return bool(wait([self._state], timeout).done)

    def cancel(self) -> None:
        """End the process; :meth:`result` then raises SigmaStateError."""
        self._process.kill()
        self.wait()

    def result(self, timeout: float | None = None) -> Trained:
        """Wait for the moment, and return the network, as ``load`` does; Ctrl-C cancels.

        Its ``checkpoint`` is the whole state. Raises what went wrong, or TimeoutError after ``timeout`` seconds, while
        the process goes on.
        """
        state, wish = self.state(timeout), self.wish
        return open_recalled(wish.run, wish.trainer, state, data=wish.data, trust=wish.trust, log=self.log)

    def state(self, timeout: float | None = None) -> Checkpoint:
        """Wait for the moment, and return its state."""
        try:
            if not self.wait(timeout):
                raise TimeoutError(f"{self!r}: has not ended within {timeout:g} seconds. It goes on.")
        except KeyboardInterrupt:
            self.cancel()
            raise
        return self._state.result()

    def _receive(self) -> Checkpoint:
        """Return the state that the process has written; raise what it says went wrong."""
        lines, answers = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        with TemporaryDirectory(prefix="sigma-recall-") as folder, self._process, lines, answers:
            place = Path(folder) / "state"
            with suppress(BrokenPipeError):  # it has ended already, which its answer will say
                lines.write(json.dumps({**asdict(self.wish), "place": str(place)}) + "\n")
                lines.flush()
            for document in map(json.loads, answers):
                self.iteration = document.get("iteration", self.iteration)
                if "why" in document:
                    raise getattr(errors, document["error"], errors.SigmaError)(document["why"])
                if "done" in document:
                    self.iteration = self.wish.at
                    return self._read(open_run(place, self.log))
        raise SigmaStateError(f"{self.wish.run}: iteration {self.wish.at} was not computed, as its process was ended.")

    def _read(self, written: StoredRun) -> Checkpoint:
        (trainer,) = written.trainers()
        return written.checkpoints(trainer).read(str(self.wish.at), self.log)


def open_recalled(
    run: Path | str,
    trainer: str | None,
    state: Checkpoint,
    *,
    data: Path | str | None = None,
    trust: Iterable[str] = (),
    log: Log = warnings.warn,
) -> Trained:
    """Return the network of a run in a state that was computed again, as ``load`` does."""

    def select(stored: StoredRun, name: str, use: Use) -> tuple[Path, Checkpoint]:
        place = stored.checkpoints(name).place(str(state.values["clock"]["iteration"]))
        use(place, state)
        return place, state

    return open_trained(run, trainer, select, data=data, trust=trust, log=log)


def recall(
    run: Path | str,
    at: int,
    *,
    branch: int | None = None,
    trainer: str | None = None,
    data: Path | str | None = None,
    trust: Iterable[str] = (),
    log: Log = warnings.warn,
) -> RecallHandle:
    """Begin to compute an iteration of a run again, from the newest state that is kept before it; return a handle.

    Its ``result()`` is the network as that iteration left it, to the bit. The ``branch`` is by default the one that led
    to the present state. ``trainer``, ``data`` and ``trust`` are those of ``load``. The run may train meanwhile:
    another process replays its journal, at the lowest priority.
    """
    if not is_whole(at, 0):
        raise SigmaConfigError(f"recall: at must be an iteration from 0 on (got {at!r}).")
    where = None if data is None else str(data)
    return RecallHandle(Wish(str(Path(run).absolute()), int(at), branch, trainer, where, tuple(trust)), log)
