"""Read and write the tabs and panels of the dashboard as a file; load the panels of plugins."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel import Panel, catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError, suggest_name
from sigma_monitor_web.files import PAGE, PageFile, file

MOST = 1 << 20  # bytes
NAME = "layout.json"  # in a run folder
VIEWS = ("train", "network", "data", "try", "runs", "journal")
AXES = ("iteration", "epoch", "clock", "time")
MOST_SMOOTHING = 0.99
TALL = (48, 2000)  # pixels of a chart
COLUMNS = (1, 2, 3)
OF_CHARTS = ("charts", "axis", "log", "smoothing", "columns", "tight")

Check = Callable[[str, Any], None]


# -- the format --------------------------------------------------------------------------------------------------------
def check(found: Any, where: str, panels: Collection[str]) -> None:
    """Raise SigmaConfigError unless a document is a layout; ``where`` begins the message.

    Args:
        found: The content of the file.
        where: The file.
        panels: The names of the available panels.
    """
    if not isinstance(found, dict) or found.get("format") != 1:
        raise SigmaConfigError(f"{where}: not a layout. It needs 'format': 1 and a list of 'tabs'.")
    tab: dict[str, Check] = {
        "view": partial(_one_of, VIEWS),
        "panels": partial(_list, partial(_one_of, [*panels])),
        "charts": partial(_list, partial(_object, CHART, ("patterns",))),
        "axis": partial(_one_of, AXES),
        "log": _flag,
        "smoothing": partial(_number, 0.0, MOST_SMOOTHING),
        "columns": _columns,
        "tight": _flag,
    }
    _object({"format": _anything, "tabs": partial(_list, partial(_object, tab, ("view",)))}, ("tabs",), where, found)
    views = [tab["view"] for tab in found["tabs"]]
    for n, view in enumerate(views):
        if view in views[:n]:
            raise SigmaConfigError(f"{where}: tabs[{n}].view: {view!r} is used twice. Put its panels on one tab.")
        for name in OF_CHARTS if view != "train" else ():
            if name in found["tabs"][n]:
                raise SigmaConfigError(f"{where}: tabs[{n}].{name}: only 'train' has charts. Move it there.")


def _object(known: Mapping[str, Check], needed: Collection[str], where: str, found: Any) -> None:
    if not isinstance(found, dict):
        raise _wrong(where, "an object", found)
    for name, value in found.items():
        if name not in known:
            hint = suggest_name(str(name), known, "There are")
            raise SigmaConfigError(f"{where}: has no setting {name!r:.100}.{hint}")
        known[name](f"{where}: {name}" if name == "tabs" else f"{where}.{name}", value)
    for name in needed:
        if name not in found:
            raise SigmaConfigError(f"{where}: needs {name!r}.")


def _list(each: Check, where: str, found: Any) -> None:
    if not isinstance(found, list):
        raise _wrong(where, "a list", found)
    for n, element in enumerate(found):
        each(f"{where}[{n}]", element)


def _one_of(known: Collection[str], where: str, found: Any) -> None:
    if not isinstance(found, str) or found not in known:
        raise SigmaConfigError(f"{where}: there is no {found!r:.100}.{suggest_name(str(found), known, 'There is')}")


def _number(low: float, high: float, where: str, found: Any) -> None:
    if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
        raise _wrong(where, f"a number from {low:g} to {high:g}", found)


def _text(where: str, found: Any) -> None:
    if not isinstance(found, str) or not found:
        raise _wrong(where, "a text", found)


def _flag(where: str, found: Any) -> None:
    if not isinstance(found, bool):
        raise _wrong(where, "true or false", found)


def _patterns(where: str, found: Any) -> None:
    _list(_text, where, found)
    if not found:
        raise SigmaConfigError(f"{where}: is empty. Name an address, such as 'training.loss'.")


def _columns(where: str, found: Any) -> None:
    if isinstance(found, bool) or found not in COLUMNS:
        raise _wrong(where, "1, 2 or 3", found)


def _bounds(where: str, found: Any) -> None:
    _list(partial(_number, -math.inf, math.inf), where, found)
    if len(found) != 2 or not found[0] < found[1]:
        raise _wrong(where, "two numbers, the lower first", found)


def _anything(where: str, found: Any) -> None:
    """Accept anything; it was checked before."""


def _wrong(where: str, wanted: str, found: Any) -> SigmaConfigError:
    return SigmaConfigError(f"{where}: must be {wanted} (got {found!r:.100}).")


CHART: Mapping[str, Check] = {
    "patterns": _patterns,
    "hidden": partial(_list, _text),
    "log": _flag,
    "bounds": _bounds,
    "title": _text,
    "section": _text,
    "tall": partial(_number, *TALL),
}


# -- the file ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class PageLayout:
    """The layout of a server: from its file, or the page's default while there is none.

    Args:
        path: The file that the page may write; without one, layouts are not saved.
        panels: The names of the available panels.

    Raises SigmaConfigError if the file is not a layout.
    """

    path: Path | None = None
    panels: Collection[str] = ()
    shown: PageFile = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Read the file."""
        there = self.path if self.path is not None and os.path.lexists(self.path) else PAGE / NAME
        try:
            with there.open("rb") as opened:
                text = opened.read(MOST + 1)
            document = json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise SigmaConfigError(f"{there}: not a layout: {error}. Correct it, or remove it.") from error
        if len(text) > MOST:
            raise SigmaConfigError(f"{there}: not a layout: it is longer than {MOST:,} bytes. Remove it.")
        check(document, str(there), self.panels)
        self.shown = file(text, ".json")

    def save(self, found: Any) -> Path:
        """Write another layout atomically; return its path.

        Raises SigmaConfigError if it is not a layout, SigmaStateError if it cannot be written.
        """
        if self.path is None:
            raise SigmaStateError("layout: this run has no folder. Name a file: monitors.web.layout = 'layout.json'.")
        check(found, "layout", self.panels)
        text = f"{json.dumps(found, indent=1)}\n".encode()
        if self.path.is_symlink():
            raise SigmaStateError(f"{self.path}: is a link, and nothing is written through one. Remove it.")
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            part.unlink(missing_ok=True)
            with part.open("xb") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(opened.fileno())
            part.replace(self.path)
        except OSError as error:
            raise SigmaStateError(f"{self.path}: cannot be written: {error.strerror}. Name another file.") from error
        self.shown = file(text, ".json")
        return self.path


def panels() -> dict[str, tuple[Panel, PageFile]]:
    """Return the panels of the installed plugins by name, each with its module.

    Panels that cannot be loaded are left out: ``sigma plugins doctor`` gives the reason.
    """
    registry, pages = catalogue(), dict[str, tuple[Panel, PageFile]]()
    for component in registry.components("panel"):
        with suppress(SigmaError):
            panel = registry.load("panel", component.name)
            if isinstance(panel, Panel):
                pages[component.name] = panel, file(panel.script.encode(), ".js")
    return pages
