"""Predict in one thread, with the rows of all requests that wait joined.

Every row is computed by itself, so that its bits are those of a prediction of this row alone, whatever is asked at the
same time.  Joined rows share what a call costs beside them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.errors import SigmaError

Arrays = Mapping[str, np.ndarray]
MOST = 256  # rows of requests that are joined


@frozen(eq=False)
class Waiting:
    """Rows by section that wait, and what will be predicted for them."""

    rows: Arrays
    answer: Future[Arrays] = field(factory=Future)

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.rows.values())))

    @property
    def form(self) -> tuple[object, ...]:
        """Return what rows must share to be joined: shape and type by section."""
        return tuple((name, values.shape[1:], values.dtype) for name, values in self.rows.items())


@define(eq=False)
class Batcher:
    """Predict for rows as they come.

    Args:
        predict: Returns the outputs by name for rows by section.
        most: Rows to join, at most; a request with more is predicted by itself.
    """

    predict: Callable[[Arrays], Arrays]
    most: int = MOST
    _queue: SimpleQueue[Waiting | None] = field(factory=SimpleQueue, init=False)
    _thread: threading.Thread = field(init=False)

    @_thread.default
    def _(self) -> threading.Thread:
        return threading.Thread(target=self._work, name="sigma-serve", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Answer what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def submit(self, rows: Arrays) -> Future[Arrays]:
        """Have rows predicted; the future holds the outputs by name, or a SigmaError."""
        waiting = Waiting(rows)
        self._queue.put(waiting)
        return waiting.answer

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            together, last = self._gather(first)
            for group in _group(together):
                self._answer(group)
            if last:
                return

    def _gather(self, first: Waiting) -> tuple[list[Waiting], bool]:
        """Return what waits, up to the limit of rows, and whether nothing follows."""
        together, count = [first], first.count
        while count < self.most:
            try:
                following = self._queue.get_nowait()
            except Empty:
                break
            if following is None:
                return together, True
            together.append(following)
            count += following.count
        return together, False

    def _answer(self, group: Sequence[Waiting]) -> None:
        group = [waiting for waiting in group if waiting.answer.set_running_or_notify_cancel()]
        if len(group) > 1:
            try:
                self._answer_joined(group)
            except SigmaError:  # of one of them, which is refused alone
                _answer_each(self.predict, group)
        else:
            _answer_each(self.predict, group)

    def _answer_joined(self, group: Sequence[Waiting]) -> None:
        names = group[0].rows
        outputs = self.predict({name: np.concatenate([waiting.rows[name] for waiting in group]) for name in names})
        begin = 0
        for waiting in group:
            end = begin + waiting.count
            waiting.answer.set_result({name: values[begin:end] for name, values in outputs.items()})
            begin = end


def _group(together: Sequence[Waiting]) -> list[list[Waiting]]:
    """Return requests by the form of their rows."""
    groups: dict[tuple[object, ...], list[Waiting]] = {}
    for waiting in together:
        groups.setdefault(waiting.form, []).append(waiting)
    return [*groups.values()]


def _answer_each(predict: Callable[[Arrays], Arrays], group: Sequence[Waiting]) -> None:
    for waiting in group:
        try:
            outputs = predict(waiting.rows)
        except Exception as error:  # raised where the answer is awaited
            waiting.answer.set_exception(error)
        else:
            waiting.answer.set_result(outputs)
