"""Show progress in a notebook: one output, updated in place, whose last state is saved with the notebook."""

from __future__ import annotations

from collections import deque
from html import escape
from importlib import import_module
from typing import Any

from attrs import define, field, frozen

from sigma_monitor_console.layout import lines
from sigma_monitor_console.watching import Watch

WIDTH = 100  # columns of the output
MESSAGES = 10  # the latest ones are shown
PAUSE = 0.25  # seconds between two updates


def notebook() -> Any | None:
    """Return IPython's module of displays, or None if it is not installed."""
    try:
        return import_module("IPython.display")
    except ImportError:
        return None


@frozen
class Shown:
    """Text that a notebook shows in a fixed pitch."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<pre style="margin:0;line-height:1.4">{escape(self.text)}</pre>'


@define(eq=False)
class NotebookWatch(Watch):
    """Show the latest messages and the trainers, in one output that changes in place."""

    ipython: Any
    latest: deque[str] = field(factory=lambda: deque(maxlen=MESSAGES), init=False)

    def run(self) -> None:
        """Update the output until the run is over."""
        before = self._render()
        handle = self.ipython.display(before, display_id=True)
        over = False
        while not over:
            over = self.view.wait(PAUSE)
            now = self._render()
            if now != before:
                handle.update(now)
            before = now

    def _render(self) -> Shown:
        self.latest.extend(self.news())
        drawn = ("".join(text for text, _ in line) for line in lines(self.look(), WIDTH))
        return Shown("\n".join([*self.latest, *drawn]))
