"""``sigma components`` and ``sigma recipes``: list the components and recipes of the installed plugins."""

from __future__ import annotations

import shutil
import textwrap
from typing import Any

import click

from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.specs import KINDS, is_kind, place_of
from sigma_kernel.tables import align_rows
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import document, json_option, table, toml

describe = lazy_function("sigma_run.config.description:describe")  # heavy imports that lists do not need

WIDE = 100  # columns of text at most


class KindArgument(click.Choice[str]):
    """One of the kinds of the kernel, or of a plugin."""

    def convert(self, value: str, parameter: click.Parameter | None, context: click.Context | None) -> str:
        """Return the kind; refuse another word, and name the kinds of the kernel."""
        return value if is_kind(value) else super().convert(value, parameter, context)


@click.command()
@click.argument("kind", required=False, type=KindArgument(list(KINDS)), metavar="[KIND]")
@click.argument("name", required=False)
@json_option
def components(kind: str | None, name: str | None, as_json: bool) -> None:
    """List the components of the installed plugins: all of them, those of one KIND, or the settings of one by NAME."""
    if kind and name:
        description = describe(kind, name)
        document(description) if as_json else _show(description)
        return
    records = sorted(catalogue().components(kind), key=lambda c: (place_of(c.kind), c.name, c.distribution))
    if as_json:
        document({"components": [component._asdict() for component in records]})
    else:
        table((component.kind, component.name, component.distribution, component.summary) for component in records)


def _show(found: dict[str, Any]) -> None:
    title = f"{found['kind']} {found['distribution']}:{found['name']}: {found['about']}"
    click.echo(textwrap.fill(title, _width()))
    first, *others = found["doc"].split("\n\n")
    for paragraph in filter(None, [" ".join(first.split()).removeprefix(found["about"]).strip(), *others]):
        plain = all(line[:1].strip() for line in paragraph.splitlines())  # no code, which keeps its lines
        click.echo(f"\n{textwrap.fill(' '.join(paragraph.split()), _width()) if plain else paragraph}")
    settings = [[entry["name"], entry["type"], _default(entry)] for entry in found["settings"]]
    head, *rows = align_rows([["SETTING", "TYPE", "DEFAULT"], *settings])
    for row, setting in zip(rows, found["settings"], strict=True):
        if setting is found["settings"][0]:
            click.echo(f"\n{head}")
        click.echo(row)
        if text := _notes(setting):
            click.echo(textwrap.indent(textwrap.fill(text, _width() - 4), "    "))


def _width() -> int:
    """Return the columns of text: those of the terminal, up to ``WIDE``."""
    return max(40, min(WIDE, shutil.get_terminal_size().columns))


def _notes(setting: dict[str, Any]) -> str:
    """Return the notes on a setting besides its type and default."""
    choices = ", ".join(map(_toml, setting["choices"]))
    notes = [
        setting["doc"],
        f"{'One of' if setting['closed'] else 'Such as'} {choices}." if choices else "",
        f"Must be {setting['must'].removesuffix('.')}." if setting["must"] and not choices else "",
        f"`sigma components {setting['kind']}` lists the names." if setting["kind"] else "",
        f"Keys: {', '.join(inner['name'] for inner in setting['settings'])}." if setting["settings"] else "",
        "Can be changed during a run." if setting["live"] else "",
    ]
    return " ".join(filter(None, notes))


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
    records = sorted(catalogue().components("recipe"), key=lambda c: (c.name, c.distribution))
    if as_json:
        document({"recipes": [component._asdict() for component in records]})
    else:
        table((component.name, component.distribution, component.summary) for component in records)
