"""What a session leaves for people: history, messages, and the files of its run folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.training.history.journal import Journal, Lines
from sigma_kernel.training.history.metrics import Samples


@define(eq=False)
class History(Mapping[str, np.ndarray]):
    """What was measured: ``training.*`` once an iteration, everything else whenever it was published."""

    _parts: dict[str, list[np.ndarray]] = field(factory=dict)

    def record(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add one or several values of each name."""
        for name, values in measured.items():
            self._parts.setdefault(name, []).append(values)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.concatenate(self._parts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


@define(eq=False)
class Messages:
    """What was said to people, numbered, so that each monitor can read on from where it was."""

    _said: deque[tuple[int, str]] = field(factory=lambda: deque(maxlen=1000))
    _count: Iterator[int] = field(factory=lambda: iter(range(1, 2**62)))

    def say(self, text: str) -> None:
        """Add a message."""
        self._said.append((next(self._count), text))

    def after(self, number: int) -> list[tuple[int, str]]:
        """Return the messages that came after a number."""
        return [(n, text) for n, text in list(self._said) if n > number]


@define(eq=False)
class Records:
    """Where a session writes; without a folder it only remembers."""

    trainer: str
    say: Callable[[str], None] = lambda text: None
    history: History = field(factory=History)
    journal: Journal = field(factory=Journal)
    samples: Samples = field(factory=lambda: Samples(Lines()))
    position: int = 0  # rows of the journal that are this trainer's
    early: deque[Mapping[str, Any]] = field(factory=lambda: deque(maxlen=1000))  # before there was a journal

    def open(self, journal: Journal, metrics: Lines) -> None:
        """Write into the files of a run folder from now on."""
        self.journal, self.samples = journal, Samples(metrics)
        while self.early:
            self.event(self.early.popleft())

    def head(self, moment: Moment) -> dict[str, Any]:
        """Return what every row starts with."""
        return {"trainer": self.trainer, "iteration": moment.iteration, "epoch": moment.epoch, "seconds": moment.second}

    def measured(self, values: Mapping[str, np.ndarray]) -> None:
        """Take what a burst recorded, one value an iteration, or what a hook published."""
        self.history.record(values)
        self.samples.add(values)

    def row(self, moment: Moment, force: bool) -> None:
        """Write a row of metrics if it is time, or if forced to."""
        self.samples.write(self.head(moment), force)

    def event(self, row: Mapping[str, Any]) -> None:
        """Write a row into the journal."""
        if self.journal.path is None:
            self.early.append(row)
        else:
            self.journal.append(row)
            self.position += 1
