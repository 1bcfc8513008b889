"""``sigma components`` and ``sigma recipes``: list the components and recipes of the installed plugins."""

from __future__ import annotations

from typing import Any

import click

from sigma_kernel.launcher.later import later
from sigma_kernel.launcher.output import document, json_option, table, toml
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.specs import KINDS, Component

details = later("sigma_kernel.launcher.settings:details")  # heavy imports that lists do not need


@click.command()
@click.argument("kind", required=False, type=click.Choice(list(KINDS)), metavar="[KIND]")
@click.argument("name", required=False)
@json_option
def components(kind: str | None, name: str | None, as_json: bool) -> None:
    """List the components of the installed plugins: all of them, those of one KIND, or the settings of one by NAME."""
    if kind and name:
        _one(catalogue().resolve(kind, name), as_json)
        return
    rank = list(KINDS).index
    found = sorted(catalogue().components(kind), key=lambda one: (rank(one.kind), one.name, one.distribution))
    if as_json:
        document({"components": [component._asdict() for component in found]})
    else:
        table((component.kind, component.name, component.distribution, component.summary) for component in found)


def _one(component: Component, as_json: bool) -> None:
    found = details(component)
    if as_json:
        document(component._asdict() | found)
        return
    click.echo(f"{component.kind} {component.full_name}: {found['about']}")
    rows = [[one["name"], one["type"], _default(one)] for one in found["settings"]]
    if rows:
        click.echo()
        table([["SETTING", "TYPE", "DEFAULT"], *rows])


def _default(setting: dict[str, Any]) -> str:
    if setting["required"]:
        return "(required)"
    return "" if setting["default"] is None else _toml(setting["default"])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return toml(value) if isinstance(value, str | bool) else str(value)


@click.command()
@json_option
def recipes(as_json: bool) -> None:
    """List the ready-to-run configurations; train one with `sigma run NAME`."""
    found = sorted(catalogue().components("recipe"), key=lambda one: (one.name, one.distribution))
    if as_json:
        document({"recipes": [component._asdict() for component in found]})
    else:
        table((component.name, component.distribution, component.summary) for component in found)
