"""Console monitor: progress bars on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from attrs import define, field, frozen
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from sigma_kernel.contracts import Monitor, View
from sigma_kernel.settings import gt
from sigma_monitor_console.keys import Keyboard, terminal, trains_in_thread
from sigma_monitor_console.layout import Look, lines
from sigma_monitor_console.notebook import NotebookWatch, notebook
from sigma_monitor_console.steering import Steering
from sigma_monitor_console.watching import Watch


def make_console() -> Console:
    """Return a console on standard error, which detects terminals, notebooks and NO_COLOR."""
    return Console(stderr=True)


@define(eq=False)
class ConsoleMonitor(Monitor):
    """Show the progress of training on standard error.

    Args:
        interval: Seconds between two plain lines, where there is no terminal; a terminal is redrawn ten times a second.
        keys: Whether keys steer the run, where a terminal is in the foreground: ``?`` lists them.
    """

    interval: float = field(default=10.0, validator=gt(0.0))
    keys: bool = True

    talks = True

    def watch(self, view: View) -> None:
        """Show progress until the run is over."""
        console = make_console()
        if console.is_jupyter and (ipython := notebook()) is not None:
            NotebookWatch(view, console, self.interval, ipython).run()
        elif console.is_terminal and not console.is_dumb_terminal:
            TerminalWatch(view, console, self.interval, self.keys).run()
        else:
            PipeWatch(view, console, self.interval).run()


class PipeWatch(Watch):
    """Write one line per interval, and every message, for pipes and files."""

    def run(self) -> None:
        """Write lines until the run is over."""
        over, last, written = False, time.monotonic(), list[str]()
        while not over:
            over = self.view.wait(min(0.2, self.interval))
            for text in self.news():
                self._line(text)
            if over or time.monotonic() - last >= self.interval:
                last = time.monotonic()
                before, written = written, [self._format_look(look) for look in self.look()]
                for line in written:
                    if not (over and line in before):  # the end may have been written already
                        self._line(line)

    def _format_look(self, look: Look) -> str:
        reading = look.reading
        start = f"{reading.name}  {reading.progress()}  iteration {reading.iteration}"
        return "  ".join([start, reading.numbers(), *look.words])

    def _line(self, text: str) -> None:
        print(text.rstrip(), file=sys.stderr, flush=True)


@frozen
class Drawn:
    """Trainers as lines of the width of the terminal, measured each time they are drawn, and a line below them."""

    looks: Sequence[Look]
    below: Callable[[int], str] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        for line in lines(self.looks, options.max_width, options.ascii_only):
            yield Text.assemble(*line, no_wrap=True, overflow="crop")
        if self.below is not None:
            yield Text(self.below(options.max_width), style="dim", no_wrap=True, overflow="crop")


@define(eq=False)
class TerminalWatch(Watch):
    """Draw the trainers with their curves, redrawn in place; messages scroll above, and keys steer."""

    keyed: bool = True

    def run(self) -> None:
        """Draw until the run is over."""
        steering = Steering(self.view)
        keys = Keyboard(terminal() if self.keyed else None, partial(trains_in_thread, self.view.name))
        with keys, Live(Drawn([]), console=self.console, auto_refresh=False) as screen, shown_again(self.console):
            over = False
            while not over:
                over = self.view.wait(0.1)
                steering.press(keys.read())
                for line in self.news():
                    screen.console.print(line, markup=False, highlight=False)
                below = steering.line if keys.heard and not over else None
                screen.update(Drawn([self.curves(look) for look in self.look()], below), refresh=True)


@contextmanager
def shown_again(console: Console) -> Iterator[None]:
    """Show the cursor at the end of a process that ends while it is hidden."""
    atexit.register(console.show_cursor)
    yield
    atexit.unregister(console.show_cursor)
