"""Write a configuration as TOML, with every default filled in and every component as ``distribution:name``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tomlkit

from sigma_kernel.config.choice import plain
from sigma_kernel.config.schema import Configuration

UNWRITTEN = "unwritten"  # the table of what could not be written, in place of a configuration


def resolved(configuration: Configuration) -> str:
    """Return TOML that reads back as exactly this configuration, whatever plugins are installed later."""
    folder, text = configuration.document.folder, toml(plain(configuration))
    return text.replace(f'"{folder}{os.sep}', '"') if (folder / "journal.jsonl").exists() else text  # it can be moved


def toml(values: Any) -> str:
    """Return values as TOML, without what is None or an empty table."""
    return tomlkit.dumps(_readable(values))


def _readable(value: Any) -> Any:
    if isinstance(value, Mapping):
        found = {key: _readable(inner) for key, inner in value.items() if inner is not None}
        return {key: inner for key, inner in found.items() if inner != {}}
    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(f"\n{value}", multiline=True)
    literal = isinstance(value, str) and '"' in value and "'" not in value and value.isprintable()
    return tomlkit.string(value, literal=True) if literal else value
