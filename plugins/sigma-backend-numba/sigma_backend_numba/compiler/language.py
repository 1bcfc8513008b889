"""The language of generated programs and of the runtime: built-in words, and decorators for routines.

The language is a subset of Python: numbers, typed pointers, ``for ... in range``, ``while``, ``if`` and calls.  A word
is a name that the translator knows; a routine is a function of the runtime, read as source and never run by Python.
``for ... in row`` is a loop over neighbours, which LLVM computes in vectors and does not write out.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import define, frozen

NUMBERS = ("i1", "i4", "i8", "u4", "u8", "f4", "f8")


@frozen
class LanguageWord:
    """A built-in name of the language.  It can be called for the sake of linters only."""

    name: str

    def __call__(self, *arguments: Any) -> Any:
        """Raise: Python does not run routines."""
        raise TypeError(f"{self.name} exists in compiled code only")


@frozen
class Outside:
    """An external function: its symbol, the kind of its result ("" for none) and the kinds of its operands."""

    symbol: str
    result: str
    operands: tuple[str, ...]


@define(eq=False, slots=False)
class Routine:
    """A function in the language: compiled separately (``task``, ``compact``), or inlined (``driver``)."""

    function: Callable[..., Any]
    kind: str

    def __call__(self, *arguments: Any) -> Any:
        """Raise: Python does not run routines."""
        raise TypeError(f"{self.function.__name__} runs in compiled code only")

    @property
    def names(self) -> Mapping[str, Any]:
        """Return the names that the routine may use, with their meanings."""
        return self.function.__globals__

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """Return the syntax tree of the routine."""
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body
        assert isinstance(definition, ast.FunctionDef)
        return definition


def driver(function: Callable[..., Any]) -> Routine:
    """Mark a routine that is inlined into its caller."""
    return Routine(function, "driver")


def task(function: Callable[..., Any]) -> Routine:
    """Mark a routine whose pointers never overlap; it returns nothing."""
    return Routine(function, "task")


def compact(function: Callable[..., Any]) -> Routine:
    """Mark a task with explicit vectors: its loops are not vectorised, which makes it quick to compile."""
    return Routine(function, "compact")


i1, i4, i8, u4, u8, f4, f8 = map(LanguageWord, NUMBERS)
as_f4, as_f8, as_i4, as_i8, as_u4, as_b1 = map(LanguageWord, ("as_f4", "as_f8", "as_i4", "as_i8", "as_u4", "as_b1"))
at, address, copied = map(LanguageWord, ("at", "address", "copied"))
sel, radd, root, floor, nearest = map(LanguageWord, ("sel", "radd", "root", "floor", "nearest"))
wide, spread, put = map(LanguageWord, ("wide", "spread", "put"))  # 64 bytes at once
fetch = LanguageWord("fetch")
as_float, as_bits = LanguageWord("as_float"), LanguageWord("as_bits")
arrive, seen, swapped, publish = map(LanguageWord, ("arrive", "seen", "swapped", "publish"))
pause, control, restore = map(LanguageWord, ("pause", "control", "restore"))
