"""``sigma set``, which knows the types of values; other commands are in ``live``."""

from __future__ import annotations

from typing import Any

import click

from sigma_monitor_control.client import Client
from sigma_monitor_control.commands.options import print_moments, show, steering
from sigma_monitor_control.discovery import connect_to_steer
from sigma_run.launcher import literal


@click.command("set")
@click.argument("pattern", metavar="PATTERN")
@click.argument("value", metavar="VALUE")
@steering
def set_values(pattern: str, value: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Set the values that PATTERN means to VALUE, at the next boundary.

    PATTERN is an address, its last levels where these are unique (learning_rate), or a pattern, in which `*` stands for
    any part: '**.frozen'. If it is ambiguous, the matches are listed and nothing changes. VALUE is a TOML literal:
    0.01, true, "2 epochs"; the quotes of a text can be left out.
    """
    with connect_to_steer(run) as client:
        typed = _parse_typed(client, pattern, trainer, value)
        moments = client.set(pattern, typed, trainer)
    print_moments(f"{pattern} = {show(typed)}", client.title, moments, as_json)


def _parse_typed(client: Client, pattern: str, trainer: str | None, text: str) -> Any:
    """Return a value of the type that an address has: a text needs no quotes."""
    value = literal(text)
    types = {entry["type"] for entry in client.entries(pattern, trainer)}
    return text if types == {"text"} and not isinstance(value, str) else value
