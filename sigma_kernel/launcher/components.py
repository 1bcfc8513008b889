"""``sigma components`` and ``sigma recipes``: what the installed plugins offer."""

from __future__ import annotations

import click

from sigma_kernel.launcher.output import document, json_option, table
from sigma_kernel.plugins import catalogue
from sigma_kernel.specs import KINDS, Component


def as_document(component: Component) -> dict[str, str]:
    """Return a component as JSON has it."""
    names = ("kind", "name", "distribution", "path", "summary")
    return {name: getattr(component, name) for name in names}


@click.command()
@click.argument("kind", required=False, type=click.Choice(KINDS), metavar="[KIND]")
@json_option
def components(kind: str | None, as_json: bool) -> None:
    """List what the installed plugins offer: all of it, or one KIND."""
    found = sorted(catalogue().components(kind), key=lambda one: (KINDS.index(one.kind), one.name, one.distribution))
    if as_json:
        document({"components": [as_document(component) for component in found]})
    else:
        table((component.kind, component.name, component.distribution, component.summary) for component in found)


@click.command()
@json_option
def recipes(as_json: bool) -> None:
    """List the ready-to-run configurations: `sigma run NAME` trains one."""
    found = sorted(catalogue().components("recipe"), key=lambda one: (one.name, one.distribution))
    if as_json:
        document({"recipes": [as_document(component) for component in found]})
    else:
        table((component.name, component.distribution, component.summary) for component in found)
