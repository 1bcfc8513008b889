"""Digest a kernel: its code and everything that it reads.  Kernels that differ in a constant have different digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def identity(kernel: Any) -> str:
    """Return a digest of a function: its code, its closure, and the globals and functions that it names."""
    return hashlib.sha256("\0".join(_parts(kernel, set())).encode()).hexdigest()


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    if hasattr(value, "py_func"):  # decorated by Numba
        yield repr(sorted(value.targetoptions.items()))
        value = value.py_func
    if id(value) in seen:
        return
    if isinstance(value, FunctionType):
        seen.add(id(value))
        for read in (value.__code__, value.__defaults__, value.__kwdefaults__, *_cells(value), *_globals(value)):
            yield from _parts(read, seen)
    elif isinstance(value, CodeType):
        yield value.co_code.hex()
        yield repr(value.co_names)
        for constant in value.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(value, ModuleType):
        yield f"{value.__name__} {getattr(value, '__version__', '') or _text(value)}"
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    else:
        yield repr(value)


def _cells(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


def _globals(function: FunctionType) -> list[Any]:
    return [function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__]


def _names(code: CodeType) -> list[str]:
    """Return the names that code reads, including those in nested functions."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return [*code.co_names, *(name for code_object in inner for name in _names(code_object))]


def _text(module: ModuleType) -> str:
    """Return the source of a module that has no version."""
    path = Path(getattr(module, "__file__", None) or "")
    return path.read_text("utf-8") if path.suffix == ".py" else ""
