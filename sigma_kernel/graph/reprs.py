"""Short representations of objects that hold arrays."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from attrs import fields


def brief(made: Any) -> str:
    """Return an attrs object on one line: the ``__repr__`` of classes that hold arrays."""
    shown = [f"{f.alias}={_short(getattr(made, f.name))}" for f in fields(type(made)) if f.repr and f.name[0] != "_"]
    return f"{type(made).__name__}({shorten(', '.join(shown), 400, placeholder=' ...')})"


def _short(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__}({value.shape}, {value.dtype})"
    if isinstance(value, Mapping | list | tuple) and len(value) > 4:
        return f"{type(value).__name__} of {len(value)}"
    return shorten(repr(value), 80, placeholder=" ...")
