"""Requests that steer: each sends a command of a closed list, with arguments of known types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sigma_kernel.contracts import Ticket, View
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, near
from sigma_monitor_control.protocol.arguments import check_arguments
from sigma_monitor_control.protocol.naming import qualify_name
from sigma_monitor_control.protocol.reading import match_entries, select_trainer
from sigma_monitor_control.protocol.values import parse_value


def set(view: View, pattern: str, value: Any, trainer: str | None = None) -> Ticket:
    """Set what a pattern or a short name means."""
    found = match_entries(view, pattern, trainer, settable=True)
    if not any(one.settable for one in found):
        raise SigmaAddressError(f"{', '.join(one.address for one in found[:3])}: is read-only.")
    full = found[0].address if len(found) == 1 else qualify_name(pattern, trainer)
    return view.send("set", pattern=full, value=parse_value(value, found[0].type))


# What ``command`` sends.  The parameters after the first are the arguments.
def pause(view: View, trainer: str | None = None) -> Ticket:
    """Pause after the current burst."""
    return _send_command(view, "pause", trainer)


def go(view: View, trainer: str | None = None) -> Ticket:
    """Continue after a pause."""
    return _send_command(view, "go", trainer)


def step(view: View, count: int = 1, scale: str = "iteration", trainer: str | None = None) -> Ticket:
    """Train for some iterations or epochs, then pause again."""
    return _send_command(view, "step", trainer, count=count, scale=scale)


def stop(view: View, trainer: str | None = None) -> Ticket:
    """End training."""
    return _send_command(view, "stop", trainer)


def save(view: View, trainer: str | None = None) -> Ticket:
    """Write a checkpoint."""
    return _send_command(view, "save", trainer)


def rewind(view: View, to: int, scale: str = "iteration", trainer: str | None = None) -> Ticket:
    """Restore the newest state at or before a moment."""
    return _send_command(view, "rewind", trainer, to=to, scale=scale)


def reset(view: View, trainer: str | None = None) -> Ticket:
    """Restore the initial state."""
    return _send_command(view, "reset", trainer)


def undo(view: View, trainer: str | None = None) -> Ticket:
    """Undo the last change."""
    return _send_command(view, "undo", trainer)


def attach(view: View, name: str, hook: str | dict[str, Any], trainer: str | None = None) -> Ticket:
    """Add a hook."""
    return _send_command(view, "attach", trainer, name=name, hook=hook)


def detach(view: View, name: str, trainer: str | None = None) -> Ticket:
    """Remove a hook."""
    return _send_command(view, "detach", trainer, name=name)


def swap(view: View, slot: str, component: str | dict[str, Any], trainer: str | None = None) -> Ticket:
    """Replace a component."""
    return _send_command(view, "swap", trainer, slot=slot, component=component)


def exclude(view: View, rows: list[int], split: str = "training", trainer: str | None = None) -> Ticket:
    """Leave rows of a split out from the next epoch on."""
    return _send_command(view, "exclude", trainer, rows=rows, split=split)


def include(view: View, rows: list[int], split: str = "training", trainer: str | None = None) -> Ticket:
    """Take rows that were excluded in again."""
    return _send_command(view, "include", trainer, rows=rows, split=split)


def relabel(
    view: View,
    rows: list[int],
    label: str | bool | float | list[Any] | dict[str, Any] | None,
    split: str = "training",
    trainer: str | None = None,
) -> Ticket:
    """Give rows of a split another label, as it stands in the data; null for that of the data again."""
    return _send_command(view, "relabel", trainer, rows=rows, label=label, split=split)


def _send_command(view: View, command: str, trainer: str | None, **arguments: Any) -> Ticket:
    which = {} if trainer is None else {"trainer": select_trainer(view, trainer)}
    return view.send(command, **arguments, **which)


COMMANDS: Mapping[str, Callable[..., Ticket]] = {
    one.__name__: one
    for one in (
        set, pause, go, step, stop, save, rewind, reset, undo, attach, detach, swap, exclude, include, relabel,
    )
}  # fmt: skip


def command(view: View, name: str, arguments: dict[str, Any] | None = None, trainer: str | None = None) -> Ticket:
    """Send a command by its name."""
    if name not in COMMANDS:
        raise SigmaConfigError(
            f"command {name!r:.100}: unknown.{near(name, COMMANDS)} Known are {', '.join(COMMANDS)}."
        )
    called, everything = COMMANDS[name], {"trainer": trainer, **(arguments or {})}
    return called(view, **check_arguments(name, called, everything))


STEERS: Mapping[str, Callable[..., Ticket]] = {"set": set, "command": command}
