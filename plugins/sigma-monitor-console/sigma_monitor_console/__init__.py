"""Shows a Sigma run in the terminal, in notebooks, and in log files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigma_monitor_console.console import ConsoleMonitor as ConsoleMonitor

__all__ = ["ConsoleMonitor"]


def __getattr__(name: str) -> Any:
    if name != "ConsoleMonitor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sigma_monitor_console import console

    return console.ConsoleMonitor
