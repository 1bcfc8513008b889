"""The units of a program: functions that are compiled for themselves, so that programs share them.

A unit is identified by its text, the texts of the units that it calls, the kinds of its operands, and those operands
that are known numbers.  Its symbol is a digest of them.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from attrs import define, field, frozen

from sigma_backend_numba.compiler.language import Routine

CALL = re.compile(r"\b(?:task|leg)\d++\b")
LEG = "leg"  # what the names of parts of a burst begin with
BURST = "burst"
OPEN = "number"  # what the names of numbers begin with that a unit is not compiled for


@frozen
class ProgramUnit:
    """A function of a program's text or of the runtime, for operands of these kinds, some of which are known."""

    symbol: str
    name: str
    kinds: tuple[str, ...]
    numbers: tuple[int | None, ...]
    routine: Routine | None = field(default=None, eq=False)


@define(eq=False)
class ProgramText:
    """The text of a program, whose last function is the burst, and the meanings of the names in it."""

    text: str
    names: Mapping[str, Any]
    made_of: str = ""  # what else its units depend on
    trees: Mapping[str, ast.FunctionDef] = field(init=False)
    _lines: list[str] = field(init=False)
    _digests: dict[str, str] = field(factory=dict, init=False)

    @trees.default
    def _(self) -> Mapping[str, ast.FunctionDef]:
        return {tree.name: tree for tree in ast.parse(self.text).body if isinstance(tree, ast.FunctionDef)}

    @_lines.default
    def _(self) -> list[str]:
        return self.text.splitlines()

    @property
    def burst(self) -> ProgramUnit:
        """Return the unit that runs the program."""
        count = len(self.trees[BURST].args.args)
        return ProgramUnit(BURST, BURST, ("i8",) * count, (None,) * count)

    def is_own(self, unit: ProgramUnit) -> bool:
        """Return whether a unit is compiled for this program alone: it knows the places of values in memory."""
        return unit.name == BURST or self.is_leg(unit.name)

    def is_leg(self, name: str) -> bool:
        """Return whether a function is a part of the burst, which only calls tasks."""
        return name.startswith(LEG) and name in self.trees

    def unit(
        self, name: str, routine: Routine | None, kinds: tuple[str, ...], numbers: tuple[int | None, ...]
    ) -> ProgramUnit:
        """Return the unit of a function for such operands."""
        name = routine.function.__name__ if routine else name
        if routine is None and self.is_leg(name):
            return ProgramUnit(name, name, kinds, (None,) * len(kinds))
        if routine is None:
            given = zip(self.trees[name].args.args, numbers, strict=True)
            numbers = tuple(None if x.arg.startswith(OPEN) else number for x, number in given)
        text = f"{routine.function.__module__}.{name}" if routine else self._digest(name)
        parts = (self.made_of, text, *kinds, *map(str, numbers))
        symbol = "unit_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        return ProgramUnit(symbol, name, kinds, numbers, routine)

    def definition(self, unit: ProgramUnit) -> tuple[ast.FunctionDef, Mapping[str, Any]]:
        """Return the syntax tree of a unit, and the meanings of the names in it."""
        return (unit.routine.tree, unit.routine.names) if unit.routine else (self.trees[unit.name], self.names)

    def reference(self, caller: ProgramUnit, unit: ProgramUnit) -> list[Any]:
        """Return what names a unit for its caller, as JSON, whatever functions are called in a program."""
        if unit.routine is not None:
            return [f"{unit.routine.function.__module__}:{unit.name}", unit.kinds, unit.numbers]
        return [self._list_callees(caller.name).index(unit.name), unit.kinds, unit.numbers]

    def resolve(self, caller: ProgramUnit, reference: Sequence[Any]) -> ProgramUnit:
        """Return the unit that a reference names."""
        place, kinds, numbers = reference
        if isinstance(place, int):
            return self.unit(self._list_callees(caller.name)[place], None, tuple(kinds), tuple(numbers))
        module, _, name = place.partition(":")
        return self.unit(name, getattr(import_module(module), name), tuple(kinds), tuple(numbers))

    def _list_callees(self, name: str) -> list[str]:
        """Return the functions of the text that a function calls, in order."""
        return [*dict.fromkeys(CALL.findall(self._body(name)))]

    def _body(self, name: str) -> str:
        """Return the text of a function from its parameters on."""
        tree = self.trees[name]
        lines = self._lines[tree.lineno - 1 : tree.end_lineno]
        return "\n".join([lines[0].partition("(")[2], *lines[1:]])

    def _digest(self, name: str) -> str:
        """Return a digest of a function and of those that it calls, whatever they are called."""
        if name not in self._digests:
            text = CALL.sub(lambda call: self._digest(call[0]), self._body(name))
            self._digests[name] = hashlib.sha256(text.encode()).hexdigest()
        return self._digests[name]
