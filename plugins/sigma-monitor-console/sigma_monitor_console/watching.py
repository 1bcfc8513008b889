"""The base of all console displays: readings with speeds, and messages."""

from __future__ import annotations

import time

from attrs import define, evolve, field
from rich.console import Console

from sigma_kernel.contracts import View
from sigma_kernel.errors import printable
from sigma_monitor_console.layout import Look
from sigma_monitor_console.reading import Speed, read
from sigma_monitor_console.sparks import Trend


@define(eq=False)
class Watch:
    """Base of all displays: speeds, and messages since the last look."""

    view: View
    console: Console
    interval: float
    trends: dict[str, Trend] = field(factory=dict, init=False)
    speeds: dict[str, Speed] = field(factory=dict, init=False)
    told: int = field(default=0, init=False)

    def look(self) -> list[Look]:
        """Return each trainer's reading, with its speed in words, or else the status of the run."""
        now, status, looks = time.monotonic(), self.view.status(), []
        for reading in read(self.view):
            last = self.speeds.get(reading.name, Speed(reading.iteration, now))
            self.speeds[reading.name] = last.advance(reading.iteration, now)
            words = self.speeds[reading.name].words(reading.goal)
            looks.append(Look(reading, words if status == "running" else (status,)))
        return looks

    def curves(self, look: Look) -> Look:
        """Return a look with the curves of its values, as far as they were measured."""
        curves = {}
        for name in look.reading.values:
            address = f"{look.reading.name}.{'training.loss' if name == 'loss' else name}"
            trend = self.trends.setdefault(address, Trend(address))
            trend.read(self.view)
            curves[name] = trend
        return evolve(look, reading=evolve(look.reading, curves=curves))

    def news(self) -> list[str]:
        """Return the messages since the last reading, without control characters."""
        messages = self.view.messages(self.told)
        self.told = messages[-1][0] if messages else self.told
        return [printable(text) for _, text in messages]
