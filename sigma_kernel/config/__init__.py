"""Configurations: TOML files that describe a run, checked as a whole before anything happens."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same table again, for type checkers
    from sigma_kernel.config.building import build as build, check_shapes as check_shapes, prepare as prepare
    from sigma_kernel.config.document import Document as Document, override as override, parse as parse, read as read
    from sigma_kernel.config.reading import load as load, structured as structured
    from sigma_kernel.config.schema import Configuration as Configuration
    from sigma_kernel.config.writing import resolved as resolved

_MODULES = {
    "building": "build check_shapes prepare",
    "document": "Document override parse read",
    "reading": "load structured",
    "schema": "Configuration",
    "writing": "resolved",
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
