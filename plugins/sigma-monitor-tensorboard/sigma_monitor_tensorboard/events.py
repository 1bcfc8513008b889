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

from sigma_kernel.contracts import HistogramValue, Media, PictureValue, SoundValue, TableValue, TextValue

NUMBERS = count()  # distinguishes the files of one process in a second
MOST = 2**20  # elements of an array that are counted in a histogram
BINS = 64
TEXT = "/text_summary"  # which tensorboardX adds to the tags of texts
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


def media_label(kind: str, name: str) -> str:
    """Return the key of media among last steps: a number may have the same name."""
    return f"{kind}:{tag(name)}"


SHOWN_AS = {"picture": "image", "sound": "audio", "histogram": "histo", "text": "tensor", "table": "tensor"}


def last_steps(directory: Path) -> dict[str, int]:
    """Return the last step of each number in the event files of a directory, by its tag, and of other values.

    The latter have the keys of :func:`media_label`, with the fields of ``SHOWN_AS`` as kinds.
    """
    steps: dict[str, int] = {}
    for path in sorted(directory.glob("events.*")):
        for event in read_events(path):
            if event.HasField("session_log"):  # which hides the steps from its own on
                steps = {label: min(step, event.step - 1) for label, step in steps.items()}
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    steps[value.tag] = event.step
                for kind in {*SHOWN_AS.values()}:
                    if value.HasField(kind):
                        steps[f"{kind}:{value.tag.removesuffix(TEXT)}"] = event.step
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

    def media(self, name: str, step: int, value: Media, when: float) -> None:
        """Add a value that a hook has published, at a time in seconds since 1970; a table is a text in Markdown."""
        label = tag(name)
        if isinstance(value, PictureValue):
            height, width, channels = value.pixels.shape
            image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=value.encode())
            self._add(step, Summary(value=[Summary.Value(tag=label, image=image)]), when)
        elif isinstance(value, SoundValue):
            length, channels = value.samples.shape
            sound = Summary.Audio(
                sample_rate=value.rate, num_channels=channels, length_frames=length,
                encoded_audio_string=value.encode(), content_type=value.media_type,
            )  # fmt: skip
            self._add(step, Summary(value=[Summary.Value(tag=label, audio=sound)]), when)
        elif isinstance(value, HistogramValue):
            self._add(step, _histogram(label, value), when)
        elif isinstance(value, TableValue | TextValue):
            text = (
                _markdown(value) if isinstance(value, TableValue) else f"    {'    '.join(value.text.splitlines(True))}"
            )
            self._add(step, summary.text(label, text), when)

    def settings(self, values: Mapping[str, bool | float | str], measured: Sequence[str]) -> None:
        """Add hyper-parameters, and the names of the numbers by which runs are compared."""
        for record in summary.hparams(dict(values), {tag(name): 0.0 for name in measured}):
            self._add(0, record)

    def _add(self, step: int, found: Any, when: float | None = None) -> None:
        self._writer.write_event(Event(wall_time=time.time() if when is None else when, step=step, summary=found))

    def flush(self) -> None:
        """Write everything to the disk."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything to the disk, and close the file."""
        self._writer.close()


def _histogram(label: str, value: HistogramValue) -> Any:
    """Return a histogram by its counts; sums are those of the middles of its bins."""
    middles, counts, edges = (value.edges[1:] + value.edges[:-1]) / 2, value.counts, value.edges
    sums = {"sum": float(counts @ middles), "sum_squares": float(counts @ middles**2)}
    return summary.histogram_raw(
        label, min=edges[0], max=edges[-1], num=counts.sum(), **sums, bucket_limits=edges[1:].tolist(),
        bucket_counts=counts.tolist(),
    )  # fmt: skip


def _markdown(table: TableValue) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    cells = (
        [str("" if cell is None else cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in lines
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
