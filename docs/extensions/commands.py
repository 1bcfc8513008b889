"""The table of live commands, from their classes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs

from extensions.components import markdown, offered
from sigma_kernel import Environment, catalogue
from sigma_run import describe


def text(_: str = "") -> str:
    """Return a table of the commands that the rooms offer, as MyST: how each is sent from Python, and what it does."""
    head = "| command | effect | can be undone |\n|---|---|---|\n"
    return head + "".join(map(row, offered("command")))


def row(record: Any) -> str:
    """Return the row of a command, given its record."""
    command_class: Any = catalogue().load("command", record.full_name)
    effect = " ".join(markdown(describe("command", record.full_name)["doc"]).split())
    return f"| `{call(command_class)}` | {effect} | {'yes' if command_class.undoable else 'no'} |\n"


def call(command_class: Any) -> str:
    """Return the call that sends a command: of the method of an environment that has its name, or of ``send``."""
    name, fields = command_class.command, list_fields(attrs.fields(command_class), command_class.by_hand)
    return (
        f"{name}({', '.join(fields)})"
        if hasattr(Environment, name)
        else f"send({', '.join([json.dumps(name), *fields])})"
    )


def list_fields(fields: Iterable[Any], by_hand: Iterable[str]) -> list[str]:
    """Return the arguments of a command: its fields, with their defaults, but those that only hooks choose."""
    given = [field for field in fields if field.name not in by_hand]
    given.sort(key=lambda field: field.default is not attrs.NOTHING)
    return [one.name if one.default is attrs.NOTHING else f"{one.name}={json.dumps(one.default)}" for one in given]
