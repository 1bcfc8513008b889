"""Answer what the data of a run hold, and what is odd about them, by processes that do not disturb training."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from attrs import asdict, define, field, frozen

from sigma_kernel.contracts import TrainerView, View
from sigma_kernel.errors import SigmaError, SigmaStateError
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_web.readers import LARGEST, MOST, Limits, describe_end

COMMAND = (sys.executable, "-P", "-m", "sigma_monitor_web.describing")
LIMITS = Limits(600.0, MOST)
KEPT = 32  # answers
NUMBERS = 1 << 22  # of a split in memory that are described
PIECE = 1000  # rows that are copied at a time

Request = Mapping[str, Any]
Source = Callable[[], AbstractContextManager[Request]]


@frozen(eq=False)
class DataAnswer:
    """What will be known about the data of a trainer: its ``profile``, and the ``findings`` of the examiner."""

    profile: Future[Any] = field(factory=Future)
    findings: Future[Any] = field(factory=Future)

    def fail(self, error: Exception) -> None:
        """Answer what is not answered yet with an error."""
        for future in (self.profile, self.findings):
            if not future.done():
                future.set_exception(error)


@define(eq=False)
class Describer:
    """Describes data in processes, one at a time; answers are kept until they are asked for again.

    Args:
        data: The location of the data of stored runs, if they were moved.
        limits: The limits of each process.
    """

    data: Path | None = None
    limits: Limits = LIMITS
    _aside: Aside = field(factory=lambda: Aside(WorkBudget(rest=0.0)), init=False)  # it waits for processes
    _answers: dict[tuple[str, str], DataAnswer] = field(factory=dict, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)

    # -- requests ------------------------------------------------------------------------------------------------------
    def profile(self, view: View, trainer: str | None = None, again: bool = False) -> Any:
        """Return a future of the profile of a trainer's data; computed ``again`` only if it is known already."""
        return self._ask(view, trainer, again).profile

    def findings(self, view: View, trainer: str | None = None) -> Any:
        """Return a future of what the examiner finds in the data of a trainer, with severities."""
        return self._ask(view, trainer, again=False).findings

    def _ask(self, view: View, trainer: str | None, again: bool) -> DataAnswer:
        key = str(view.folder or id(view)), trainer or ""
        held = self._answers.get(key)
        if held is None or (held.findings.done() and (again or held.profile.exception() is not None)):
            self._answers.pop(key, None)
            for oldest in [*self._answers][: max(0, len(self._answers) + 1 - KEPT)]:
                del self._answers[oldest]
            self._answers[key] = held = DataAnswer()
            self._aside.do(lambda answer=held: self._describe(answer, self._sources(view, trainer)))  # type: ignore[misc]
        return held

    def end(self) -> None:
        """End the thread and the process."""
        self._ended = True
        self._aside.end()
        if self._process is not None:
            self._process.kill()

    # -- sources -------------------------------------------------------------------------------------------------------
    def _sources(self, view: View, trainer: str | None) -> Iterator[Source]:
        """Yield where the data may be: in the files that a run folder names, or in the memory of the run."""
        if view.folder is not None:
            folder = str(view.folder.absolute())
            yield lambda: _folder_request(folder, trainer, self.data)
        own = view.trainer(trainer or view.trainers()[0])
        yield lambda: rows_request(own)

    def _describe(self, answer: DataAnswer, sources: Iterator[Source]) -> None:
        """Answer from the first source that works; else with the error of the first."""
        first: Exception | None = None
        try:
            for source in sources:
                try:
                    with source() as request:
                        self._run(request, answer)
                    return
                except SigmaError as error:
                    first = first or error
            answer.fail(first or SigmaStateError("the data are not here."))
        except Exception as error:  # of a view, or of the system
            answer.fail(error)

    # -- processes -----------------------------------------------------------------------------------------------------
    def _run(self, request: Request, answer: DataAnswer) -> None:
        """Answer from a process; raise SigmaStateError if it does not describe the data."""
        if self._ended:
            raise SigmaStateError("the server has ended.")
        limits = asdict(self.limits)
        with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as own:
            self._process = own
            assert own.stdin is not None
            try:
                own.stdin.write(f"{json.dumps({**request, 'limits': limits})}\n".encode())
                own.stdin.flush()
                answer.profile.set_result({**self._read(own), "source": request["kind"]})
                try:
                    answer.findings.set_result(self._read(own))
                except SigmaStateError as error:
                    answer.findings.set_exception(error)
            finally:
                own.kill()

    def _read(self, process: subprocess.Popen[bytes]) -> Any:
        """Return the next answer of a process; raise SigmaStateError for an error, or if it has ended."""
        assert process.stdout is not None
        line = process.stdout.readline(LARGEST)
        if not line.endswith(b"\n"):
            code = process.poll() if line else process.wait()
            raise SigmaStateError(f"the data cannot be described: {describe_end(code, self.limits)}.")
        document = json.loads(line)
        if "error" in document:
            raise SigmaStateError(document["error"])
        return document["result"]


@contextmanager
def _folder_request(folder: str, trainer: str | None, data: Path | None) -> Iterator[Request]:
    moved = None if data is None else str(data.absolute())
    yield {"kind": "folder", "folder": folder, "trainer": trainer, "data": moved}


# -- rows in memory ----------------------------------------------------------------------------------------------------
@contextmanager
def rows_request(trainer: TrainerView) -> Iterator[Request]:
    """Write the first rows of each split to a file while a process reads them; raise a SigmaError if there are none."""
    splits = trainer.splits()
    if not splits:
        raise SigmaStateError("the data of this run are not here.")
    arrays = {
        f"{split}/{section}": values
        for split, count in splits.items()
        for section, values in copy_rows(trainer, split, count).items()
    }
    about = {"classes": [*map(str, trainer.classes())], "columns": trainer.columns()}
    with TemporaryDirectory(prefix="sigma-rows-") as folder:
        path = Path(folder, "rows.npz")
        np.savez(path, **arrays)  # type: ignore[arg-type]
        yield {"kind": "rows", "rows": str(path), **about}


def copy_rows(trainer: TrainerView, split: str, count: int) -> dict[str, np.ndarray]:
    """Return the first rows of a split, as many as have NUMBERS, a piece at a time."""
    first = trainer.rows(split, range(min(1, count)))
    width = sum(max(1, int(values.size)) for values in first.values())
    most = min(count, max(1, NUMBERS // max(1, width)))
    pieces = [trainer.rows(split, range(at, min(most, at + PIECE))) for at in range(0, most, PIECE)]
    return {name: join_pieces([piece[name] for piece in pieces]) for name in first}


def join_pieces(pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Return pieces as one array, of objects as texts."""
    whole = np.concatenate(pieces)
    return whole.astype(str) if whole.dtype.kind == "O" else whole
