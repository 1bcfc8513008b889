"""The monitor ``tensorboard``: event files that grow while a run trains."""

from __future__ import annotations

import time
from pathlib import Path

from attrs import define, field

from sigma_kernel.contracts import Monitor, View
from sigma_kernel.settings import ge, gt
from sigma_monitor_tensorboard.writing import Writing


@define(eq=False)
class TensorboardMonitor(Monitor):
    """Write event files for TensorBoard: measured values, histograms of parameters, pictures, settings and commands.

    Of more than ``most`` values of a number between two polls, neighbours are joined to their last one.

    Args:
        folder: Directory of the event files, in the run folder unless it is absolute.
        interval: Seconds between two polls of the run.
        histograms: Seconds between two histograms of each parameter; 0 for none.
        most: Values of each number that are written at a look.
    """

    folder: str = "tensorboard"
    interval: float = field(default=1.0, validator=gt(0.0))
    histograms: float = field(default=30.0, validator=ge(0.0))
    most: int = field(default=500, validator=ge(2))

    def watch(self, view: View) -> None:
        """Write until the run is over."""
        folder = self._folder(view)
        if folder is None:
            view.log("tensorboard: the run has no folder, so nothing is written. Give this monitor an absolute folder.")
            return
        writing, drawn, over = Writing(view, folder, self.most), time.monotonic(), False
        try:
            while not over:
                over = view.wait(self.interval)
                writing.look()
                if self.histograms and (over or time.monotonic() - drawn >= self.histograms):
                    drawn = time.monotonic()
                    writing.histograms()
                writing.flush()
        finally:
            writing.close()

    def _folder(self, view: View) -> Path | None:
        path = Path(self.folder).expanduser()
        if path.is_absolute():
            return path
        return None if view.folder is None else view.folder / path
