"""Write a configuration as TOML, with every default filled in and every component as ``distribution:name``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from sigma_kernel.plugins.dumping import Dumper
from sigma_run.config.location import places_in
from sigma_run.config.schema import Configuration

UNWRITTEN = "unwritten"  # the table of what could not be written, in place of a configuration


def resolved_toml(configuration: Configuration, folder: Path | None = None) -> str:
    """Return TOML that reads back as exactly this configuration, whatever plugins are installed later.

    For a run below a ``folder``, paths in its project are relative, so that the project can be moved.
    """
    return toml(Dumper(place=places_in(configuration, folder)).dump(configuration))


def toml(values: Any) -> str:
    """Return values as TOML, without what is None or an empty table."""
    return tomlkit.dumps(_readable(values))


def _readable(value: Any) -> Any:
    if isinstance(value, Mapping):
        table = {key: _readable(inner) for key, inner in value.items() if inner is not None}
        return {key: inner for key, inner in table.items() if inner != {}}
    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(f"\n{value}", multiline=True)
    literal = isinstance(value, str) and '"' in value and "'" not in value and value.isprintable()
    return tomlkit.string(value, literal=True) if literal else value
