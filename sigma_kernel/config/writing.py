"""Write a configuration as TOML again: every default filled in, every component as ``distribution:name``."""

from __future__ import annotations

from typing import Any

import tomlkit

from sigma_kernel.config.choice import plain
from sigma_kernel.config.schema import Configuration


def resolved(configuration: Configuration) -> str:
    """Return the text of a file that means exactly this configuration, whatever plugins are installed later."""
    return tomlkit.dumps(_readable(plain(configuration)))


def _readable(value: Any) -> Any:
    """Leave out empty tables, and give a string of several lines the form of several lines."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if inner != {}}
    return tomlkit.string(f"\n{value}", multiline=True) if isinstance(value, str) and "\n" in value else value
