"""Load the values of a file as settings: what TOML cannot express is a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.choice import Choice
from sigma_kernel.plugins.components import kind_of
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.plugins.loading import ANYTHING, Loader, component_words, words
from sigma_kernel.settings.mistakes import Mismatch
from sigma_kernel.settings.records import Setting

NAMED, MOST = ("hook", "monitor"), 1_000  # kinds whose components need names, for their addresses and files


@define(eq=False)
class FileLoader(Loader):
    """Load what files express, and nothing else: components become choices, with their defaults filled in."""

    folder: Path = field(factory=Path.cwd)

    def accept(self, value: Any, type_: Any) -> Any:
        """Refuse a value that is not of a type."""
        name = words(type_)
        beyond = f"{getattr(type_, '__name__', type_)}, which TOML cannot express: set it from Python"
        raise Mismatch(beyond if name == ANYTHING else name, value)

    def complete(self, value: Any, kind: str, wanted: Any) -> Any:
        """Refuse a value that is no name, and no table."""
        raise Mismatch(component_words(kind), value)

    def make(self, name: str, factory: Any, values: Mapping[str, Any], key: str) -> Choice[Any]:
        """Return the choice of a component, once its own validators have run."""
        choice = Choice(name, values, factory, key)
        choice.prepare()
        return choice

    def write_default(self, setting: Setting) -> dict[str, Any]:
        """Return the default of a setting if a file can express it; a component is left to its owner."""
        default = setting.default
        with suppress(SigmaConfigError):
            if kind_of(type(default)) is None and Dumper().dump(default) is not None:
                return {setting.name: default}
        return {}

    def list_unnamed(self, value: Any, inner: Any) -> list[Any] | None:
        """Return components in a list, unless their kind needs names."""
        if isinstance(value, Mapping) and len(value) > MOST and kind_of(inner) in NAMED:
            raise ValueError(f"{MOST:,} {kind_of(inner)}s are allowed at most (got {len(value):,}). Leave some out.")
        return value if isinstance(value, list) and kind_of(inner) not in NAMED else None
