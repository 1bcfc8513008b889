"""Console monitor: progress bars on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from attrs import define, field
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sigma_kernel.contracts import Monitor, View
from sigma_kernel.settings import gt
from sigma_monitor_console.reading import Reading, Speed, read


def make_console() -> Console:
    """Return a console on standard error, which detects terminals, notebooks and NO_COLOR."""
    return Console(stderr=True)


@define(eq=False)
class ConsoleMonitor(Monitor):
    """Show the progress of training on standard error.

    Args:
        interval: Seconds between two plain lines, where there is no terminal; a terminal is redrawn ten times a second.
    """

    interval: float = field(default=10.0, validator=gt(0.0))

    talks = True

    def watch(self, view: View) -> None:
        """Show progress until the run is over."""
        console = make_console()
        (_Live if console.is_terminal or console.is_jupyter else _Plain)(view, console, self.interval).run()


@define(eq=False)
class _Watch:
    """Base of both displays: speeds, and messages since the last look."""

    view: View
    console: Console
    interval: float
    speeds: dict[str, Speed] = field(factory=dict)
    told: int = 0

    def look(self) -> list[tuple[Reading, str]]:
        """Return each trainer's reading and its speed in words."""
        now, looks = time.monotonic(), []
        for reading in read(self.view):
            last = self.speeds.get(reading.name, Speed(reading.iteration, now))
            self.speeds[reading.name] = last.moved(reading.iteration, now)
            looks.append((reading, self.speeds[reading.name].words(reading.goal)))
        return looks

    def news(self) -> list[str]:
        """Return the messages since the last look."""
        found = self.view.messages(self.told)
        self.told = found[-1][0] if found else self.told
        return [text for _, text in found]


class _Plain(_Watch):
    """Write one line per interval, and every message, for pipes and files."""

    def run(self) -> None:
        """Write lines until the run is over."""
        over, last = False, time.monotonic()
        while not over:
            over = self.view.wait(min(0.2, self.interval))
            for text in self.news():
                self._line(text)
            if over or time.monotonic() - last >= self.interval:
                last = time.monotonic()
                self._lines()

    def _lines(self) -> None:
        for reading, speed in self.look():
            self._line(
                f"{reading.name}  {reading.progress()}  iteration {reading.iteration}  {reading.numbers()}  {speed}"
            )

    def _line(self, text: str) -> None:
        print(text.rstrip(), file=sys.stderr, flush=True)


class _Live(_Watch):
    """Draw one progress bar per trainer, redrawn in place; messages scroll above it."""

    def run(self) -> None:
        """Draw until the run is over."""
        text = [TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[numbers]}")]
        with Progress(*text, console=self.console, refresh_per_second=10) as progress:
            tasks: dict[str, Any] = {}
            over = False
            while not over:
                over = self.view.wait(0.1)
                for line in self.news():
                    progress.console.print(line, markup=False, highlight=False)
                self._draw(progress, tasks)

    def _draw(self, progress: Any, tasks: dict[str, Any]) -> None:
        status = self.view.status()
        for reading, speed in self.look():
            if reading.name not in tasks:
                tasks[reading.name] = progress.add_task(reading.name, total=None, numbers="")
            words = speed if status == "running" else status
            progress.update(
                tasks[reading.name],
                description=f"{reading.name}  {reading.progress()}",
                completed=reading.iteration,
                total=reading.goal,
                numbers=f"{reading.numbers()}  {words}",
            )
