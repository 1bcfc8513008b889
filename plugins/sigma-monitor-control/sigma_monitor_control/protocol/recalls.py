"""Requests for moments without a kept state: another process computes them again, to be shown as kept ones are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from attrs import define, field

import sigma_run  # for `recall`, which is imported when it is used
from sigma_kernel.contracts import Branch, Checkpoint, View
from sigma_kernel.errors import SigmaStateError
from sigma_monitor_control.protocol.reading import branches, select_trainer

MOST_BYTES = 64 * 2**20  # of the states of a view; at least one is held
MOST = 16  # of them


@define(eq=False)
class RecalledMoment:
    """A moment of a trainer that is computed again, or was."""

    trainer: str
    place: int  # of its branch, among those of the trainer: a reset begins another with the same number
    iteration: int
    handle: sigma_run.RecallHandle
    state: Checkpoint | None = field(default=None, init=False)
    why: str = field(default="", init=False)  # it could not be computed
    is_cancelled: bool = field(default=False, init=False)

    @property
    def key(self) -> tuple[str, int, int]:
        """Return which moment it is."""
        return self.trainer, self.place, self.iteration

    @property
    def is_over(self) -> bool:
        """Return whether the process has ended; take its result then."""
        if self.state is None and not self.why and self.handle.wait(0.0):
            try:
                self.state = self.handle.state()
            except Exception as error:  # whatever it was, clients are told
                self.why = str(error) or type(error).__name__
        return self.state is not None or bool(self.why)

    def cancel(self) -> None:
        """End the process."""
        self.is_cancelled = True
        self.handle.cancel()

    def describe(self) -> dict[str, Any]:
        """Return where it stands, as JSON values."""
        over, state = self.is_over, self.state
        return {
            "iteration": self.iteration,
            "epoch": None if state is None else state.values["clock"]["epoch"],
            "reached": self.handle.iteration,
            "state": "done" if state else "running" if not over else "cancelled" if self.is_cancelled else "failed",
            "why": self.why,
        }


@define(eq=False)
class RecalledMoments:
    """The moments of a view that are computed again: one at a time, and the last few of them that were."""

    moments: list[RecalledMoment] = field(factory=list)
    gate: threading.Lock = field(factory=threading.Lock)

    def begin(self, moment: RecalledMoment) -> None:
        """Add a moment in place of an earlier attempt; drop the oldest states beyond the limits."""
        self.moments = [moment, *keep_newest([each for each in self.moments if each.key != moment.key])]

    def running(self) -> RecalledMoment | None:
        """Return the one that is being computed."""
        return next((moment for moment in self.moments if not moment.is_over), None)


_recalled: WeakKeyDictionary[Any, RecalledMoments] = WeakKeyDictionary()  # by view
_gate = threading.Lock()  # of that


def keep_newest(moments: list[RecalledMoment]) -> list[RecalledMoment]:
    """Return the first moments, whose states are within the limits together."""
    kept, size = list[RecalledMoment](), 0
    for moment in moments[: MOST - 1]:
        size += sum(array.nbytes for array in moment.state.arrays.values()) if moment.state is not None else 0
        if size > MOST_BYTES:
            break
        kept.append(moment)
    return kept


def recalled_moments(view: View) -> RecalledMoments:
    """Return the moments of a view."""
    with _gate:
        return _recalled.setdefault(view, RecalledMoments())


def list_branches(view: View, trainer: str) -> list[Branch]:
    """Return the branches of a trainer, the present one last."""
    return [Branch(**branch) for branch in branches(view, trainer)] or [Branch(0)]


def find_branch(line: Sequence[Branch], iteration: int) -> int:
    """Return the place of the branch on which an iteration led to the present state; the present branch is the last."""
    place = len(line) - 1
    while iteration <= line[place].start:
        parents = [at for at in range(place) if line[at].number == line[place].parent]
        if not parents:
            break
        place = parents[-1]
    return place


def find_recalled(view: View, trainer: str, iteration: int) -> Checkpoint | None:
    """Return the state of a moment on the way to the present, if it was computed again."""
    own = [moment for moment in recalled_moments(view).moments if moment.iteration == iteration and moment.is_over]
    key = (trainer, find_branch(list_branches(view, trainer), iteration), iteration) if own else None
    return next((moment.state for moment in own if moment.key == key), None)


def recalls(view: View, trainer: str | None = None) -> list[Any]:
    """Return the moments of a trainer, on the way to its present state, that are computed again or were, newest first.

    Each has the ``state`` running, done, failed or cancelled, and the iteration that it has ``reached``.
    """
    name = select_trainer(view, trainer)
    own = [moment for moment in recalled_moments(view).moments if moment.trainer == name]
    line = list_branches(view, name) if own else []
    return [moment.describe() for moment in own if moment.place == find_branch(line, moment.iteration)]


def recall(view: View, at: int, trainer: str | None = None) -> dict[str, Any]:
    """Begin to compute an iteration again, in another process at the lowest priority; return where that stands.

    Raises SigmaStateError for a run without a folder, and while another moment is computed.
    """
    name, own = select_trainer(view, trainer), recalled_moments(view)
    if view.folder is None:
        raise SigmaStateError("recall: this run has no folder, by which a moment is computed again. Give it one.")
    with own.gate:
        if (other := own.running()) is not None:
            raise SigmaStateError(f"recall: iteration {other.iteration} is being computed. Wait, or cancel that.")
        line, data = list_branches(view, name), getattr(view, "data", None)  # where data were moved to, if known
        place = find_branch(line, at)
        branch = line[place].number
        handle = sigma_run.recall(view.folder, at, branch=branch, trainer=name, data=data, log=lambda text: None)
        own.begin(moment := RecalledMoment(name, place, at, handle))
    return moment.describe()


def cancel_recall(view: View) -> bool:
    """End the process that computes a moment again; return whether there was one."""
    if (moment := recalled_moments(view).running()) is None:
        return False
    moment.cancel()
    return True


READS_RECALLS: Mapping[str, Callable[..., Any]] = {"recalls": recalls}
RECALLS: Mapping[str, Callable[..., Any]] = {"recall": recall, "cancel_recall": cancel_recall}  # in the scope ``steer``
