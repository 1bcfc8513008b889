"""A run as a widget of a notebook: charts, the values at any moment, and live values."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import field, frozen

from sigma_kernel import Environment, EnvironmentView
from sigma_kernel.contracts import Trainer
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_monitor_control.protocol import READ, SCOPES
from sigma_monitor_web.layout import check
from sigma_monitor_web.modules import assemble_module
from sigma_monitor_web.monitor import OneRun
from sigma_monitor_web.shelf import Shelf
from sigma_monitor_web.talk import Talk
from sigma_monitor_web.viewers import Viewers

NEEDED = ("anywidget", "traitlets")


@frozen(eq=False)
class WatchedRun:
    """The run of a widget: what serves it, its name there, and the trainer that is shown first."""

    source: OneRun | Shelf
    run: str = ""
    trainer: str = ""
    over: threading.Event = field(factory=threading.Event)  # set once nobody watches any more

    def talk(self, steer: bool) -> Talk:
        """Return a new conversation, as a page of the dashboard has one."""
        return self.source.talk(self.run, SCOPES if steer else frozenset({READ}))

    def end(self) -> None:
        """End the threads and the processes of the source."""
        self.over.set()
        self.source.end()


def find_run(run: Any) -> WatchedRun:
    """Return the run of an environment, of a trainer's environment, or of a run folder.

    Raises SigmaConfigError for anything else.
    """
    environment = run.host if isinstance(run, Trainer) else run
    if isinstance(environment, Environment):
        over = threading.Event()
        trainer = next((name for name, own in environment.trainers.items() if own is run), "")
        return WatchedRun(OneRun(EnvironmentView(environment, over)), trainer=trainer, over=over)
    if not isinstance(run, str | os.PathLike):
        raise SigmaConfigError(
            f"watch: {type(run).__name__!r} is no run. Give an environment, a trainer, or the folder of a run."
        )
    path = Path(run).absolute()
    if not path.is_dir():
        raise SigmaConfigError(f"{run}: not a directory. Pass the folder of a run, such as 'runs/digits-...'.")
    shelf = Shelf(path.parent)
    try:
        shelf.path(path.name)
    except SigmaConfigError:
        shelf.end()
        raise SigmaConfigError(f"{run}: not a run folder. Pass one that `sigma runs` lists.") from None
    return WatchedRun(shelf, path.name)


def lay_out(charts: Sequence[str | Sequence[str]]) -> list[dict[str, Any]]:
    """Return the layout of a page with these charts; none of its own without any.

    Raises SigmaConfigError unless each chart is a pattern of addresses, or a list of patterns.
    """
    if isinstance(charts, str):
        charts = [charts]
    patterns = [[chart] if isinstance(chart, str) else chart for chart in charts]
    tabs = [{"view": "train", "charts": [{"patterns": own} for own in patterns]}] if patterns else []
    check({"format": 1, "tabs": tabs}, "charts", ())
    return tabs


@cache
def make_widget_class() -> Any:
    """Return the class of widgets; raise SigmaPluginError if anywidget is not installed."""
    try:
        anywidget, traitlets = map(import_module, NEEDED)
    except ImportError as error:
        raise SigmaPluginError(
            f"watch: needs anywidget ({error}). Install it: pip install 'sigma-monitor-web[notebook]'."
        ) from None

    def close(self: Any) -> None:
        if self.watched is not None and not self.watched.over.is_set():  # closed once, also by a collector of garbage
            self.viewers.end()
            self.watched.end()
        anywidget.AnyWidget.close(self)

    synced = {"about": traitlets.Dict(), "tabs": traitlets.List()}
    body = {
        "__doc__": "A run in a notebook: charts, the values at any moment, live values; `close()` ends it.",
        "__module__": __name__,
        "__repr__": lambda self: f"RunWidget({self.about['name']!r})",
        "_esm": assemble_module(),
        "viewers": None,
        "watched": None,
        "close": close,
        **{name: trait.tag(sync=True) for name, trait in synced.items()},
    }
    return type("RunWidget", (anywidget.AnyWidget,), body)


def watch(run: Any, charts: Sequence[str | Sequence[str]] = (), *, steer: bool = True) -> Any:
    """Return a widget that shows a run in a notebook, and steers it: charts, values at any moment, live values.

    It is the dashboard in a cell, such as JupyterLab's: curves from the store of the run in at most as many
    points as there are pixels, commands on the way that those of the dashboard and of the shell take. ::

        sigma.run_async()
        sm.watch(sigma)

    Args:
        run: An environment, one of its trainers, or a run folder, whether it trains in another process or has ended.
        charts: A pattern of addresses for each chart, such as ``"validation.*"``, or a list of patterns; by default
            what the run is about, as in the dashboard.
        steer: Whether the widget also sends commands.

    Raises SigmaConfigError for what is no run, and SigmaPluginError without anywidget.
    """
    make, tabs = make_widget_class(), lay_out(charts)
    watched = find_run(run)
    source = watched.source
    about = {
        "where": source.where,
        "process": os.getpid(),
        "name": watched.run or source.name,
        "trainer": watched.trainer,
    }
    widget = make(about=about, tabs=tabs)
    widget.watched, widget.viewers = watched, Viewers(lambda: watched.talk(steer), widget.send)
    widget.on_msg(lambda _, content, buffers: widget.viewers.take(content))
    return widget
