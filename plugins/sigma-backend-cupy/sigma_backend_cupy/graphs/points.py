"""The index arithmetic of one kernel.

A point is the place of an element in an array in C order, as the name of a variable or a number. :class:`Points` writes
the statements that split a point into one index for each side and join indices again, and knows which points are the
same: a reshape, or a broadcast along the reduced axis, costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import define, field

Parts = tuple[str, ...]
Sides = tuple[int, ...]
NOWHERE = "?"  # the point of an operand that must be in memory, whole


@define(eq=False)
class Points:
    """Named indices, and the statements that compute them, by the loop that they belong to: 0 (outside) or 1."""

    kind: str = "int"
    lines: tuple[list[str], list[str]] = field(factory=lambda: ([], []))
    levels: dict[str, int] = field(factory=dict)
    _names: dict[str, str] = field(factory=dict)
    _split: dict[str, tuple[Parts, Sides]] = field(factory=dict)
    _parts: dict[tuple[str, Sides], Parts] = field(factory=dict)
    _joined: dict[tuple[Parts, Sides], str] = field(factory=dict)

    def level(self, *names: str) -> int:
        """Return the innermost loop that any of these names depends on; numbers depend on none."""
        return max((self.levels.get(name, 0) for name in names), default=0)

    def declare(self, name: str, level: int) -> None:
        """Name a variable of the kernel's own text."""
        self.levels[name] = level

    def name(self, text: str, *operands: str) -> str:
        """Return a variable with the value of an index expression."""
        if text not in self._names:
            level = self.level(*operands)
            name = self._names[text] = f"i{len(self._names)}"
            self.levels[name] = level
            self.lines[level].append(f"const {self.kind} {name} = {text};")
        return self._names[text]

    def parts(self, point: str, shape: Sequence[int]) -> Parts:
        """Return the index along each side."""
        sides = tuple(side for side in shape if side != 1)
        coordinates = iter(self._find_parts(point, sides))
        return tuple("0" if side == 1 else next(coordinates) for side in shape)

    def _find_parts(self, point: str, sides: Sides) -> Parts:
        if len(sides) < 2 or point == "0":
            return (point,) if len(sides) == 1 else ("0",) * len(sides)
        if (point, sides) not in self._parts:
            shape = self._split[point][1] if point in self._split else ()  # perhaps of a part of the array
            groups = _groups(shape, sides) if math.prod(shape) == math.prod(sides) else []
            parts = self._split_known(point, groups) if len(groups) > 1 else self._divide_point(point, sides)
            self._parts[point, sides] = parts
            self._joined.setdefault((parts, sides), point)
        return self._parts[point, sides]

    def _split_known(self, point: str, groups: Sequence[tuple[Sides, Sides]]) -> Parts:
        """Split a point whose indices are known, side by side where they agree."""
        shape, parts, at = self._split[point][0], list[str](), 0
        for have, want in groups:
            parts += self._find_parts(self.point(shape[at : at + len(have)], have), want)
            at += len(have)
        return tuple(parts)

    def _divide_point(self, point: str, sides: Sides) -> Parts:
        parts, stride = list[str](), math.prod(sides)
        for at, side in enumerate(sides):
            stride //= side
            quotient = f"{point} / {stride}" if stride > 1 else point
            parts.append(self.name(f"{quotient} % {side}" if at else quotient, point))
        return tuple(parts)

    def point(self, parts: Sequence[str], shape: Sequence[int]) -> str:
        """Return the point of indices."""
        parts, sides = _real(parts, shape)
        if not any(part != "0" for part in parts):
            return "0"
        if len(parts) == 1:
            return parts[0]
        if (parts, sides) not in self._joined:
            strides = [math.prod(sides[k + 1 :]) for k in range(len(sides))]
            terms = [f"{p} * {s}" if s > 1 else p for p, s in zip(parts, strides, strict=True) if p != "0"]
            self._joined[parts, sides] = point = self.name(" + ".join(terms), *parts)
            self._split.setdefault(point, (parts, sides))
        return self._joined[parts, sides]


def _real(parts: Sequence[str], shape: Sequence[int]) -> tuple[Parts, Sides]:
    """Drop sides of 1."""
    kept = [(part, side) for part, side in zip(parts, shape, strict=True) if side != 1]
    return tuple(part for part, _ in kept), tuple(side for _, side in kept)


def _groups(have: Sides, want: Sides) -> list[tuple[Sides, Sides]]:
    """Cut two factorings of a number into the shortest runs of equal products."""
    groups: list[tuple[Sides, Sides]] = []
    i = j = 0
    while i < len(have) or j < len(want):
        a, b, start = 1, 1, (i, j)
        while a != b or (i, j) == start:
            if i < len(have) and (a <= b or j >= len(want)):
                a, i = a * have[i], i + 1
            else:
                b, j = b * want[j], j + 1
        groups.append((have[start[0] : i], want[start[1] : j]))
    return groups
