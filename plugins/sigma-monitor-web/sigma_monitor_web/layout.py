"""The tabs of the dashboard and the panels on them, as a file; and the panels that plugins bring."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from sigma_kernel import Panel, catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_monitor_web.files import PAGE, PageFile, file

MOST = 1 << 20  # bytes


def layout(path: Path | None) -> PageFile:
    """Return the layout in a file, by default that of the page; raises SigmaConfigError if it is not one."""
    path = path or PAGE / "layout.json"
    try:
        with path.open("rb") as opened:
            text = opened.read(MOST + 1)
        found = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise SigmaConfigError(f"{path}: not a layout: {error}. Copy that of the page, and change the copy.") from error
    tabs = found.get("tabs") if isinstance(found, dict) and found.get("format") == 1 else None
    if len(text) > MOST or not isinstance(tabs, list) or not all(isinstance(tab, dict) for tab in tabs):
        raise SigmaConfigError(
            f"{path}: not a layout. It needs 'format': 1 and a list of 'tabs'; copy that of the page."
        )
    return file(text, ".json")


def panels() -> dict[str, tuple[Panel, PageFile]]:
    """Return the panels of the installed plugins by name, each with its module.

    Those that cannot be loaded are left out: ``sigma plugins doctor`` says why.
    """
    known, found = catalogue(), dict[str, tuple[Panel, PageFile]]()
    for component in known.components("panel"):
        with suppress(SigmaError):
            panel = known.load("panel", component.name)
            if isinstance(panel, Panel):
                found[component.name] = panel, file(panel.script.encode(), ".js")
    return found
