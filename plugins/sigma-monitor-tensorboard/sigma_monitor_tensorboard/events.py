"""Event files: one for each branch of a trainer, written in the thread of the monitor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field
from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

NUMBERS = count()  # distinguishes the files of one process in a second
MOST = 2**20  # elements of an array that are counted in a histogram
BINS = 64
HEAD, TAIL = 12, 4  # bytes of a record before its data (the length and its checksum), and after it


def tag(name: str) -> str:
    """Return the tag of a name: TensorBoard groups tags by the text before the first slash."""
    return name.replace(".", "/")


def read_events(path: Path) -> Iterator[Any]:
    """Yield the events of a file, up to a record that was cut off when its process ended."""
    with path.open("rb") as file:
        while len(head := file.read(HEAD)) == HEAD:
            size = int.from_bytes(head[:8], "little")
            record = file.read(size + TAIL)
            if len(record) < size + TAIL:
                return
            yield Event.FromString(record[:size])


def last_steps(directory: Path) -> dict[str, int]:
    """Return the last step of each number in the event files of a directory, by its tag."""
    steps: dict[str, int] = {}
    for path in sorted(directory.glob("events.*")):
        for event in read_events(path):
            if event.HasField("session_log"):  # which hides the steps from its own on
                steps = {label: min(step, event.step - 1) for label, step in steps.items()}
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    steps[value.tag] = event.step
    return steps


@define(eq=False)
class Events:
    """An event file in a directory, which TensorBoard shows as a run.

    Args:
        directory: The directory; made if it is missing.
        purge: Step from which on older files of the directory are hidden.
    """

    directory: Path
    purge: int | None = None
    _writer: Any = field(init=False)

    @_writer.default
    def _(self) -> Any:
        self.directory.mkdir(parents=True, exist_ok=True)
        writer = EventsWriter(str(self.directory / "events"), f".{os.getpid()}.{next(NUMBERS):06}")
        if self.purge is not None:
            log = SessionLog(status=SessionLog.START)
            writer.write_event(Event(wall_time=time.time(), step=self.purge, session_log=log))
        return writer

    def scalars(self, name: str, steps: np.ndarray, values: np.ndarray, times: np.ndarray) -> None:
        """Add values of a number, with their steps and their times in seconds since 1970."""
        label = tag(name)
        for step, value, when in zip(steps.tolist(), values.tolist(), times.tolist(), strict=True):
            record = Summary(value=[Summary.Value(tag=label, simple_value=value)])
            self._writer.write_event(Event(wall_time=when, step=step, summary=record))

    def histogram(self, name: str, step: int, values: np.ndarray) -> None:
        """Add the histogram of the finite elements of an array; of a large one, of elements at equal distances."""
        flat = np.asarray(values).reshape(-1)
        flat = flat[:: max(1, -(-flat.size // MOST))].astype(np.float64)
        finite = flat[np.isfinite(flat)]
        if finite.size:
            self._add(step, summary.histogram(tag(name), finite, BINS))

    def picture(self, name: str, step: int, pixels: np.ndarray) -> None:
        """Add a picture, uint8 ``(height, width)`` or ``(height, width, channels)`` with 1 or 3 channels."""
        self._add(step, summary.image(tag(name), pixels, dataformats="HW" if pixels.ndim == 2 else "HWC"))

    def text(self, name: str, step: int, text: str) -> None:
        """Add a text, as Markdown."""
        self._add(step, summary.text(tag(name), text))

    def settings(self, values: Mapping[str, bool | float | str], measured: Sequence[str]) -> None:
        """Add hyper-parameters, and the names of the numbers by which runs are compared."""
        for record in summary.hparams(dict(values), {tag(name): 0.0 for name in measured}):
            self._add(0, record)

    def _add(self, step: int, found: Any) -> None:
        self._writer.write_event(Event(wall_time=time.time(), step=step, summary=found))

    def flush(self) -> None:
        """Write everything to the disk."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything to the disk, and close the file."""
        self._writer.close()
