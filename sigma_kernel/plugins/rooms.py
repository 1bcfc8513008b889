"""The components of the project's own rooms, so that errors can name the distribution to install, and from where.

``rooms.json`` holds names by distribution and kind: ``offered``, generated from the rooms' records by ``python -m
sigma_testing.generate``; the summaries of ``commands``, the ``defaults`` by kind and role, and the rooms of the
``default_set``, which sigma-ml requires; and, written by hand, ``planned``, and the ``reference`` among backends.
``moved`` has the former full names of components in other rooms, by kind. ``imports``, written by hand, says where
modules and names that plugins import have gone.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import metadata
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

PATH = Path(__file__).with_name("rooms.json")
CLONE = Path(__file__).parents[2] / "plugins"  # the folder of the rooms in a clone of the project
Table = dict[str, dict[str, str]]  # names separated by blanks, by distribution and kind


@cache
def _read_rooms() -> dict[str, Table]:
    return dict(json.loads(PATH.read_text("utf-8")))


def offers() -> Table:
    """Return the offered and planned components of the project's rooms."""
    return _read_rooms()["planned"] | _read_rooms()["offered"]


def default_set() -> list[str]:
    """Return the rooms of the default set, whose components short names mean."""
    return str(_read_rooms()["default_set"]).split()


def reference() -> str:
    """Return the name of the backend to use, or to install, if no other is preferred."""
    return next(named["backend"] for named in _read_rooms()["reference"].values())


def offering(kind: str, name: str) -> list[str]:
    """Return the rooms that offer a component of this kind and name."""
    return [distribution for distribution, kinds in offers().items() if name in kinds.get(kind, "").split()]


def default(kind: str, role: str) -> tuple[str, str]:
    """Return the room that offers the default component for a role, and its name; no room for an unknown role."""
    distribution, _, name = _read_rooms()["defaults"].get(kind, {}).get(role, f":{role}").rpartition(":")
    return distribution, name


def current_name(kind: str, distribution: str, name: str) -> tuple[str, str]:
    """Return the room and the name of a component, given its current or former ones."""
    room, _, now = _read_rooms()["moved"].get(kind, {}).get(f"{distribution}:{name}", "").rpartition(":")
    return (room, now) if room else (distribution, name)


def current_import(name: str) -> str:
    """Return where a module, or a name in one, is now, as ``module.name``; empty if it has not moved."""
    moved, rest = dict[str, str](_read_rooms()["imports"]), ""  # type: ignore[arg-type]
    while name:
        if name in moved:
            return moved[name] + rest
        name, _, last = name.rpartition(".")
        rest = f".{last}{rest}"
    return ""


def names(kind: str) -> set[str]:
    """Return the names of all components of a kind that rooms offer."""
    return {name for kinds in offers().values() for name in kinds.get(kind, "").split()}


def summary(distribution: str, command: str) -> str:
    """Return the summary of a room's command; empty for that of another plugin."""
    return _read_rooms()["commands"].get(distribution, {}).get(command, "")


def install(name: str, option: str = "", version: str = "") -> str:
    """Return how to install a distribution: the command, or that there is no release of it yet.

    The command names the directory from which it was installed, or its directory in a clone of the project, or else the
    distribution, with the ``version`` if one is given.
    """
    if name in _read_rooms()["planned"] and not (CLONE / name).is_dir():
        return "It is planned; there is no release yet."
    return " ".join(filter(None, ("python -m pip install", option, origin(name, version))))


def origin(name: str, version: str = "") -> str:
    """Return what pip installs a distribution from, quoted for a shell: options with a directory, or its name."""
    release = f"{name}=={version}" if version else name
    try:
        recorded = metadata.distribution(name).read_text("direct_url.json")  # PEP 610
    except metadata.PackageNotFoundError:
        return f"-e {_quote_path(CLONE / name)}" if (CLONE / name).is_dir() else release
    source = json.loads(recorded) if recorded else {}
    place = urlsplit(source.get("url", ""))
    if place.scheme != "file":
        return release
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return editable + _quote_path(Path(unquote(place.path)))


def _quote_path(path: Path) -> str:
    """Return a path as short as it can be written from the working directory, quoted where a shell needs that."""
    return quote(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path))
