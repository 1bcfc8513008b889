"""Write a configuration as TOML, with every default filled in and every component as ``distribution:name``."""

from __future__ import annotations

from typing import Any

import tomlkit

from sigma_kernel.config.choice import plain
from sigma_kernel.config.schema import Configuration


def resolved(configuration: Configuration) -> str:
    """Return TOML that reads back as exactly this configuration, whatever plugins are installed later."""
    return tomlkit.dumps(_readable(plain(configuration)))


def _readable(value: Any) -> Any:
    """Omit empty tables, and write strings of several lines as multi-line strings."""
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items() if inner != {}}
    return tomlkit.string(f"\n{value}", multiline=True) if isinstance(value, str) and "\n" in value else value
