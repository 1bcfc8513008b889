"""What the commands share that take a recipe or a configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from sigma_kernel.config import Configuration, Document, override, parse, read, structured
from sigma_kernel.contracts import Recipe
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.launcher.later import later
from sigma_kernel.plugins.catalogue import catalogue

beyond = later("sigma_kernel.launcher.partial:beyond")  # is asked only where something is wrong


def recipe_or_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument RECIPE|FILE and the option ``--set``."""
    help_text = "Override one key, such as --set trainer.optimiser.learning_rate=0.1 (repeatable)."
    command = click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help=help_text)(command)
    return click.argument("what", metavar="RECIPE|FILE")(command)


def opened(what: str, overrides: Iterable[str] = ()) -> Document:
    """Return the document that a recipe's name or a file's path stands for, after overrides."""
    document = read(Path(what)) if _is_file(what) else parse(recipe(what).text, f"{what}.toml")
    for assignment in overrides:
        document = override(document, assignment)
    return document


def understood(document: Document) -> Configuration:
    """Return what a document means; raises one error for every mistake that can be told."""
    return structured(document, catalogue(), beyond)


def recipe(name: str) -> Recipe:
    """Return a recipe of a plugin."""
    found = catalogue().load("recipe", name)
    if not isinstance(found, Recipe):
        raise SigmaPluginError(f"recipe {name!r}: its plugin offers {found!r}, which is no Recipe.")
    return found


def offered(kind: str, name: str) -> bool:
    """Return whether an installed plugin offers a component."""
    return any(component.name == name for component in catalogue().components(kind))


def _is_file(what: str) -> bool:
    looks = what.endswith(".toml") or os.sep in what or "/" in what
    return looks or (Path(what).is_file() and not offered("recipe", what))
