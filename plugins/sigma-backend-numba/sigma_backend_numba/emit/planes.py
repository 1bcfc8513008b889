"""Samples laid out for windows: each channel becomes a plane with zeros around it, in which a window is a plain shift.

Positions of windows are counted along the plane, row after row, so that an element of a window is always at the same
distance from the window's position.  The zeros after a row are those before the next one, too.  Windows that move by
several elements at a time get one plane for each remainder of the elements' numbers, in which they move by one.  Where
the zeros would take many positions, there is a copy of the planes for each element of a window along the last axis,
moved by so much that rows of positions follow each other without zeros between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve, frozen

from sigma_backend_numba.emit.task import indent
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES


@frozen
class Axis:
    """One axis of planes: element ``v`` with remainder ``r`` is element ``v * stride + r * gap - low`` of the sample.

    A row has ``length`` elements, its zeros included, and begins ``pitch`` after the one before.
    """

    side: int
    stride: int
    low: int
    remainders: int
    gap: int
    length: int
    pitch: int

    def inner_range(self, remainder: int) -> tuple[int, int]:
        """Return the first element inside the sample, and the one after the last."""
        offset = remainder * self.gap - self.low
        first = min(max(-(offset // self.stride), 0), self.length)
        return first, min(max((self.side - 1 - offset) // self.stride + 1, first), self.length)

    def span(self, k: int) -> tuple[list[str], str, str]:
        """Return lines that find these bounds for remainder ``r<k>``, and the bounds."""
        if self.remainders == 1:
            first, last = self.inner_range(0)
            return [], str(first), str(last)
        call = f"span(r{k} * {self.gap} - {self.low}, {self.stride}, {self.side}, {self.length})"
        return [f"first{k}, last{k} = {call}"], f"first{k}", f"last{k}"

    def element(self, k: int, v: str) -> str:
        """Return the number of an element in the sample."""
        moved = f"{v} * {self.stride}" if self.stride != 1 else v
        return f"{moved} + r{k} * {self.gap} - {self.low}" if self.remainders > 1 else f"{moved} - {self.low}"


@frozen
class Planes:
    """The planes of a channel, one for each combination of remainders, and copies of them, moved by ``shifts``."""

    axes: tuple[Axis, ...]
    shifts: Sequence[int] = (0,)

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the distances between neighbours along each axis."""
        return tuple(prod(axis.pitch for axis in self.axes[k + 1 :]) for k in range(len(self.axes)))

    @property
    def extent(self) -> int:
        """Return the elements of one plane."""
        return sum((axis.length - 1) * step for axis, step in zip(self.axes, self.steps, strict=True)) + 1

    @property
    def blocks(self) -> tuple[int, ...]:
        """Return the distances between the planes of neighbouring remainders along each axis."""
        counts = [axis.remainders for axis in self.axes]
        return tuple(self.extent * prod(counts[k + 1 :]) for k in range(len(counts)))

    @property
    def copy_distance(self) -> int:
        """Return the distance between copies: the elements of the planes of a channel in one of them."""
        return self.extent * prod(axis.remainders for axis in self.axes)

    @property
    def size(self) -> int:
        """Return the elements of all planes of a channel."""
        return self.copy_distance * len(self.shifts)

    @property
    def moves(self) -> tuple[int, ...]:
        """Return the distances between the elements of a window along each axis."""
        return self.steps if len(self.shifts) == 1 else (*self.steps[:-1], self.copy_distance)

    @property
    def row_elements(self) -> int:
        """Return the elements of one plane that whole rows take: more or fewer than the plane has."""
        return self.axes[0].length * self.steps[0]

    def distances(self, result: Sequence[int]) -> int:
        """Return the positions of windows, counted along the plane, given how many there are along each axis."""
        return sum((side - 1) * step for side, step in zip(result, self.steps, strict=True)) + 1

    def write_fill(self, to: str, sample: str, channels: int | str, dtype: str) -> list[str]:
        """Return loops that copy a sample to its planes, with zeros around it."""
        pairs = [(k, block) for k, (axis, block) in enumerate(zip(self.axes, self.blocks, strict=True))
                 if axis.remainders > 1]  # fmt: skip
        lines = list[str]()
        for number, shift in enumerate(self.shifts):
            begin = [f"c * {self.size} + {number * self.copy_distance}", *(f"r{k} * {block}" for k, block in pairs)]
            copy = Copy(self._shift(shift), to, sample, dtype, literal(0, dtype))
            lines += [f"b = {' + '.join(begin)}", *copy.rows(0, "b", "c")]
            if self.row_elements < self.extent:
                lines += copy.zeros(f"b + {self.row_elements}", f"b + {self.extent}")
        return wrap_in_loops([("c", channels), *((f"r{k}", self.axes[k].remainders) for k, _ in pairs)], lines)

    def _shift(self, shift: int) -> Planes:
        """Return planes whose elements are those of the sample that many places further along the last axis."""
        *others, last = self.axes
        return Planes((*others, evolve(last, low=last.low - shift)))

    def write_back(self, plane: str, apart: int, sample: str, channels: int, dtype: str) -> list[str]:
        """Return loops that copy planes, which are ``apart``, back to the sample: those of the current remainders."""
        lines = [f"b = c * {apart}", *Copy(self, plane, sample, dtype, "").rows(0, "b", "c")]
        return wrap_in_loops([("c", channels)], lines)


@frozen
class Copy:
    """The text that copies the rows of a sample to a plane, or back if there is no ``zero`` to put around them."""

    planes: Planes
    plane: str
    sample: str
    dtype: str
    zero: str

    def rows(self, k: int, base: str, place: str) -> list[str]:
        """Return lines that copy all rows along an axis; ``base`` is their start, ``place`` their number."""
        axis, step = self.planes.axes[k], self.planes.steps[k]
        lines, first, last = axis.span(k)
        place = f"({place}) * {axis.side}"
        if k == len(self.planes.axes) - 1:
            lines += self._elements(k, base, place, first, last)
        else:
            inner = [f"q{k} = {place} + {axis.element(k, f'v{k}')}", f"b{k} = {base} + v{k} * {step}"]
            inner += self.rows(k + 1, f"b{k}", f"q{k}")
            lines += [f"for v{k} in range({first}, {last}):", *indent(inner)]
        if self.zero and first != "0":
            lines += self.zeros(base, f"{base} + {first} * {step}")
        end = axis.length if k == 0 else axis.pitch
        if self.zero and last != str(end):
            lines += self.zeros(f"{base} + {last} * {step}", f"{base} + {end * step}")
        return lines

    def _elements(self, k: int, base: str, place: str, first: str, last: str) -> list[str]:
        axis = self.planes.axes[k]
        if axis.remainders == axis.stride == 1:  # as many elements in every row
            to, given = f"at({self.plane}, {base} + {first})", f"at({self.sample}, {place} + {axis.element(k, first)})"
            to, given = (to, given) if self.zero else (given, to)
            return [f"copied({to}, {given}, {(int(last) - int(first)) * BYTES[self.dtype]})"]
        to, given = f"{self.plane}[{base} + v{k}]", f"{self.sample}[{place} + {axis.element(k, f'v{k}')}]"
        to, given = (to, given) if self.zero else (given, to)
        return [f"for v{k} in range({first}, {last}):", f"    {to} = {given}"]

    def zeros(self, begin: str, end: str) -> list[str]:
        """Return a loop that writes zeros."""
        return [f"for z in range({begin}, {end}):", f"    {self.plane}[z] = {self.zero}"]


def wrap_in_loops(loops: Sequence[tuple[str, int | str]], lines: list[str]) -> list[str]:
    """Return lines within loops over these names."""
    heads = [f"{'    ' * depth}for {name} in range({count}):" for depth, (name, count) in enumerate(loops)]
    return [*heads, *indent(lines, len(loops))]
