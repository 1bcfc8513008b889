"""The configuration that the trials of a search share, as TOML: a trial is the run of the file with its settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from attrs import evolve

from sigma_run.config import Configuration, Document, parse_key, resolved_toml

Place = tuple[str, ...]
TYPE = "type"


def write_base(configuration: Configuration, space: Iterable[str], folder: Path | None = None) -> str:
    """Return the configuration with every default, but for those of components whose type is searched.

    Another type has other settings and defaults: of such a component, only the settings in the file are written.  For
    trials below ``folder``, or else for the folder of the file, paths in its project are relative.
    """
    text = tomlkit.parse(resolved_toml(configuration, folder))
    for path in map(parse_key, space):
        if len(path) > 1 and path[-1] == TYPE:
            _remove_defaults(text, configuration.document.values, path[:-1])
    return tomlkit.dumps(text)


def place_base(document: Document, configuration: Configuration, space: Iterable[str]) -> Document:
    """Return the document that the trials share; mistakes are said of the lines of the file."""
    return evolve(document, values=tomllib.loads(write_base(configuration, space)))


def _remove_defaults(text: Any, values: Mapping[str, Any], path: Place) -> None:
    """Remove the settings of a table that are not in the file, or the whole table."""
    *above, name = path
    for key in above:
        text, values = _look_up(text, key), _look_up(values, key)
    if name not in text or not isinstance(text[name], Mapping):
        return
    written = values.get(name)
    if written is None:
        del text[name]
        return
    names = {*written} if isinstance(written, Mapping) else {TYPE}
    for key in [key for key in text[name] if key not in names]:
        del text[name][key]


def _look_up(table: Any, key: str) -> Mapping[str, Any]:
    """Return the table at a key; an empty one if there is none."""
    below = table.get(key)
    return below if isinstance(below, Mapping) else {}
