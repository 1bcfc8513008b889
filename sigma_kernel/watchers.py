"""The monitors of an environment, each in its own thread, and their end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial

from attrs import define, field, frozen

from sigma_kernel.contracts import Monitor, View
from sigma_kernel.errors import error_text
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_kernel.threads import in_thread

PROGRESS = "default:progress"  # the monitor that shows progress, if no other talks
CONTROL = "default:steering"  # the monitor through which other shells steer; SIGMA_CONTROL=off starts none
ViewUntil = Callable[[threading.Event], View]  # of the environment, until an event is set


@frozen(eq=False)
class MonitorThreads:
    """The monitors that watch one run, by name, until it is over."""

    over: threading.Event = field(factory=threading.Event)
    threads: dict[str, Future[None]] = field(factory=dict)

    def end(self, seconds: float) -> None:
        """Tell the monitors that the run is over, and give them so much time to end."""
        self.over.set()
        wait(self.threads.values(), seconds)


@define(eq=False)
class Watchers:
    """The monitors of an environment; a failure is logged, and affects nothing else."""

    log: Callable[[str], object]
    _watch: MonitorThreads = field(factory=MonitorThreads, init=False)
    _started: dict[str, Monitor] = field(factory=dict, init=False)  # the monitors of the last run

    def start(self, monitors: Mapping[str, Monitor], view: ViewUntil) -> None:
        """Start the monitors that do not watch already."""
        for name, monitor in monitors.items():
            if name not in self._watch.threads:
                self._started[name] = monitor
                observe = partial(self._observe, name, partial(monitor.watch, view(self._watch.over)))
                self._watch.threads[name] = in_thread(observe, f"sigma-{name}")

    def is_attended(self) -> bool:
        """Return whether a client that could steer a failed run is connected to a monitor."""
        return any(monitor.is_attended() for monitor in self._started.values())

    def take(self) -> MonitorThreads:
        """Return the monitors that watch now, to be ended; others may be started at once."""
        watch, self._watch = self._watch, MonitorThreads()
        return watch

    def announce_end(self) -> None:
        """Tell the monitors that the run is over."""
        self._watch.over.set()

    def linger(self, monitors: Mapping[str, Monitor], view: ViewUntil) -> None:
        """Keep monitors serving a finished run, one after the other, until their last viewers leave."""
        for name, monitor in monitors.items():
            self._observe(name, partial(monitor.linger, view(threading.Event())), "")

    def _observe(self, name: str, observe: Callable[[], None], more: str = "; training continues") -> None:
        try:
            observe()
        except Exception as error:  # a failing monitor must not disturb training
            self.log(f"monitor {name!r} failed: {error_text(error)}{more}")


def find_progress_monitor(
    catalogue: Catalogue, progress: bool | None, monitors: Mapping[str, Monitor]
) -> dict[str, Monitor]:
    """Return the monitor that shows progress, if that is wanted and no other monitor writes to the terminal."""
    if progress is None:
        progress = is_seen() and catalogue.offers("monitor", PROGRESS)
    if not progress or any(monitor.talks for monitor in monitors.values()):
        return {}
    return _default_monitor(catalogue, PROGRESS)


def find_steering_monitor(catalogue: Catalogue, allowed: bool) -> dict[str, Monitor]:
    """Return the monitor through which other shells steer, if that is allowed and one is installed."""
    offered = allowed and os.environ.get("SIGMA_CONTROL") != "off" and catalogue.offers("monitor", CONTROL)
    return _default_monitor(catalogue, CONTROL) if offered else {}


def _default_monitor(catalogue: Catalogue, role: str) -> dict[str, Monitor]:
    """Return the default monitor for a role, by its name."""
    name = catalogue.resolve("monitor", role).name
    return {name: Resolver(catalogue)(Monitor, role, name)}


def is_seen() -> bool:
    """Return whether standard error is a terminal, or the output of a notebook."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
