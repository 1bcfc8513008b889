"""Requests that steer: each sends a command, whose fields are its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sigma_kernel import catalogue
from sigma_kernel.contracts import PatternCommand, Ticket, View
from sigma_kernel.errors import SigmaAddressError
from sigma_monitor_control.protocol.arguments import check_values, fields_for_people
from sigma_monitor_control.protocol.naming import qualify_name
from sigma_monitor_control.protocol.reading import match_entries, select_trainer
from sigma_monitor_control.protocol.values import parse_value

LONGEST_NAME = 64  # characters of a sender


def set(view: View, pattern: str, value: Any, trainer: str | None = None, who: str = "") -> Ticket:
    """Set the values of a pattern or a short name."""
    return command(view, "set", {"pattern": pattern, "value": value}, trainer, who)


def command(
    view: View, name: str, arguments: dict[str, Any] | None = None, trainer: str | None = None, who: str = ""
) -> Ticket:
    """Send a command by its name; raise SigmaConfigError if no plugin offers it. The journal names its sender."""
    command_class: Any = catalogue().load("command", name)
    types, defaults = fields_for_people(command_class)
    required, everything = [*types.keys() - defaults], {"trainer": trainer, **(arguments or {})}
    given = {**defaults, **check_values(name, {**types, "trainer": str | None}, required, everything)}
    trainer = given.pop("trainer", None)
    if issubclass(command_class, PatternCommand):
        return view.send(name, **_from_root(view, given, trainer), **_sender(who))
    which = {} if trainer is None else {"trainer": select_trainer(view, trainer)}
    return view.send(name, **given, **which, **_sender(who))


def _sender(who: str) -> dict[str, str]:
    """Return the sender as an argument, cut to a line that people can read; nothing for one without a name."""
    name = "".join(sign for sign in who if sign.isprintable())[:LONGEST_NAME]
    return {"who": name} if name else {}


def _from_root(view: View, given: Mapping[str, Any], trainer: str | None) -> dict[str, Any]:
    """Return arguments with the full address of a short name, and a value of the type that is there."""
    pattern, sets = given["pattern"], "value" in given
    entries = match_entries(view, pattern, trainer, settable=sets)
    if sets and not any(entry.settable for entry in entries):
        raise SigmaAddressError(f"{', '.join(entry.address for entry in entries[:3])}: is read-only.")
    full = entries[0].address if len(entries) == 1 else qualify_name(pattern, trainer)
    value = {"value": parse_value(given["value"], entries[0].type)} if sets else {}
    return {**given, "pattern": full, **value}


STEERS: Mapping[str, Callable[..., Ticket]] = {"set": set, "command": command}
