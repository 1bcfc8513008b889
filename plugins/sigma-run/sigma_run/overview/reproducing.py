"""The command lines that train a run again: by its recipe and what differs from it, or else by its configuration."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from sigma_kernel.contracts import Recipe
from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config.document import Document, override, parse
from sigma_run.config.reading import load_configuration
from sigma_run.config.stored import read_configuration
from sigma_run.config.stores import CONFIGURATION
from sigma_run.config.writing import UNWRITTEN, resolved_toml
from sigma_run.overview.describing import flat

MOST = 12  # settings on a command line; of more, the configuration is named
ELSEWHERE = ("monitors", "run.folder")  # who watches, and where runs are kept: no part of what is trained
PLAYBACK = ("pause", "go", "step", "stop", "save")  # commands that change nothing

Settings = Mapping[str, Any]


def reproduce_run(run: Path, stored: StoredRun) -> dict[str, Any]:
    """Return the ``command`` that trains a run again, that which ``replay``s it, its ``seed``, and its ``edits``.

    These are the commands given by hand, which only a replay repeats. Paths start in the working directory, if the run
    lies below. Raises SigmaConfigError for a run whose configuration cannot be read, or is not complete.
    """
    document = read_configuration(stored, run)
    if not document.values or UNWRITTEN in document.values:
        raise SigmaConfigError(
            f"{run}: was trained from Python, and its configuration does not hold all of it. Run that program again."
        )
    settings, place = _settings(document.values), _place(run)
    edits = sum(_is_edit(row) for row in stored.journal_rows())
    short = _by_recipe(settings, run)
    words = short if short is not None else [os.path.join(place, CONFIGURATION)]
    return {
        "command": shlex.join(["sigma", "run", *words]),
        "replay": shlex.join(["sigma", "replay", place, "--check"]),
        "seed": settings.get("run.seed"),
        "edits": edits,
    }


def _settings(values: Settings) -> dict[str, Any]:
    """Return the settings of what is trained, by dotted key."""
    return {key: value for key, value in flat(values) if not f"{key}.".startswith(tuple(f"{x}." for x in ELSEWHERE))}


def _place(run: Path) -> str:
    """Return the path of a run as it is typed in the working directory."""
    path, here = run.absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _is_edit(row: Mapping[str, Any]) -> bool:
    """Return whether a row of the journal is a change by hand."""
    return "command" in row and not row.get("by") and row["command"] not in PLAYBACK


# -- by a recipe -------------------------------------------------------------------------------------------------------
def _by_recipe(settings: Settings, run: Path) -> list[str] | None:
    """Return the recipe that a run is called by, and the options that make its settings of it; None if there is none.

    The settings are made again with these options, and compared.
    """
    name = settings.get("run.name")
    if not isinstance(name, str) or not catalogue().offers("recipe", name):
        return None
    try:
        document = _recipe(name)
        changed = _differences(settings, _resolve(document, run))
        if changed is None:
            return None
        assignments = [f"{key}={tomlkit.item(value).as_string()}" for key, value in changed.items()]
        seed = settings.get("run.seed", 0)
        for assignment in (*assignments, f"run.seed={seed}"):
            document = override(document, assignment)
        if _resolve(document, run) != settings:
            return None
    except SigmaError:  # of a recipe that has changed since, or a key that is none on a command line
        return None
    return [name, *(word for assignment in assignments for word in ("--set", assignment)), "--seed", str(seed)]


def _recipe(name: str) -> Document:
    recipe = catalogue().load("recipe", name)
    if not isinstance(recipe, Recipe):
        raise SigmaConfigError(f"recipe {name!r}: is none (got {recipe!r}). Update its plugin.")
    return parse(recipe.text, f"{name}.toml")


def _resolve(document: Document, run: Path) -> dict[str, Any]:
    """Return the settings of a document as a run folder keeps them, with every default."""
    return _settings(tomllib.loads(resolved_toml(load_configuration(document, catalogue()), run.parent)))


def _differences(settings: Settings, others: Settings) -> dict[str, Any] | None:
    """Return the settings that differ from others, but for the seed; None if some lack, or if they are many."""
    changed = {key: value for key, value in settings.items() if others.get(key) != value and key != "run.seed"}
    return changed if others.keys() <= settings.keys() and len(changed) <= MOST else None
