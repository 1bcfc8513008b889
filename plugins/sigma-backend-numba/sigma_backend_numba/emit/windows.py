"""The windows of a convolution, and the planes in which they are plain shifts."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from attrs import evolve, frozen

from sigma_backend_numba.emit.planes import Axis, Planes
from sigma_kernel.graph import Node


@frozen
class Windows:
    """The windows over one sample: channels, sides, kernel, stride, lower padding, dilation, sides of the result."""

    channels: int
    filters: int
    sides: Sequence[int]
    kernel: Sequence[int]
    stride: Sequence[int]
    low: Sequence[int]
    dilation: Sequence[int]
    result: Sequence[int]
    groups: int

    @property
    def rank(self) -> int:
        """Return the number of spatial axes."""
        return len(self.kernel)

    @property
    def taps(self) -> int:
        """Return the number of elements of a window in one channel."""
        return prod(self.kernel)

    @property
    def group_sides(self) -> tuple[int, int]:
        """Return the channels and the filters of one group."""
        return self.channels // self.groups, self.filters // self.groups

    @property
    def work(self) -> float:
        """Return the floating-point operations of one sample."""
        return 2.0 * self.filters * prod(self.result) * self.group_sides[0] * self.taps

    @property
    def reach(self) -> tuple[int, ...]:
        """Return the distance from the first to the last element of a window, in steps of the stride."""
        spans = zip(self.kernel, self.dilation, self.stride, strict=True)
        return tuple((side - 1) * apart // step for side, apart, step in spans)

    def planes(self) -> Planes:
        """Return the planes of the operand."""
        return Planes(tuple(map(self._axis, range(self.rank))))

    def copies(self) -> Planes:
        """Return the planes of the operand with a copy for each element of a window along the last axis."""
        *others, side = self.planes().axes
        row = Axis(side.side, side.stride, side.low, 1, 1, self.result[-1], self.result[-1])
        return Planes((*others, row), range(0, self.kernel[-1] * self.dilation[-1], self.dilation[-1]))

    def _axis(self, k: int) -> Axis:
        stride, apart, length = self.stride[k], self.dilation[k], self.result[k] + self.reach[k]
        gap = gcd(stride, apart)
        count = max(i * apart % stride for i in range(self.kernel[k])) // gap + 1
        return share_zeros(Axis(self.sides[k], stride, self.low[k], count, gap, length, length), self.reach[k], k)

    def distance(self, planes: Planes, k: int, tap: str) -> str:
        """Return the text of the distance that an element of a window has along an axis from the window's position."""
        if len(planes.shifts) > 1 and k == self.rank - 1:
            return f"{tap} * {planes.copy_distance}"
        axis, moved = planes.axes[k], f"{tap} * {self.dilation[k]}"
        if axis.stride == 1:
            return f"{moved} * {planes.steps[k]}"
        far = f"{moved} // {axis.stride} * {planes.steps[k]}"
        return f"{moved} % {axis.stride} // {axis.gap} * {planes.blocks[k]} + {far}"

    def number(self, planes: Planes, k: int, tap: int) -> int:
        """Return that distance for a known element."""
        (far, left), axis = divmod(tap * self.dilation[k], self.stride[k]), planes.axes[k]
        return left // axis.gap * planes.blocks[k] + far * planes.steps[k]

    def slopes(self) -> Planes:
        """Return the planes of the gradient, from which the gradient of the operand is computed."""
        return Planes(tuple(map(self._slope, range(self.rank))))

    def slope_copies(self) -> Planes:
        """Return those planes with a copy for each distance of a window's elements along the last axis."""
        *others, side = self.slopes().axes
        row = evolve(side, length=self.remainder_sides[-1], pitch=self.remainder_sides[-1])
        return Planes((*others, row), range(self.reach[-1] + 1))

    def _slope(self, k: int) -> Axis:
        low, length = self.reach[k] - self.low[k] // self.stride[k], self.remainder_sides[k] + self.reach[k]
        return share_zeros(Axis(self.result[k], 1, low, 1, 1, length, length), self.reach[k], k)

    @property
    def remainder_sides(self) -> tuple[int, ...]:
        """Return how many elements of one remainder a sample has at most along each axis."""
        every = zip(self.sides, self.low, self.stride, strict=True)
        return tuple((side - 1 + low) // step - low // step + 1 for side, low, step in every)

    def operand(self, slopes: Planes) -> Planes:
        """Return the planes in which the gradient of the operand is computed."""
        every = zip(self.sides, self.stride, self.low, self.remainder_sides, slopes.axes, strict=True)
        return Planes(tuple(Axis(n, s, low % s, s, 1, count, x.pitch) for n, s, low, count, x in every))


def share_zeros(axis: Axis, most: int, k: int) -> Axis:
    """Let the zeros after a row be those before the next one."""
    ends = [axis.inner_range(r) for r in range(axis.remainders)]
    common = min(most, *(min(first, axis.length - last) for first, last in ends)) if k else 0
    return Axis(axis.side, axis.stride, axis.low, axis.remainders, axis.gap, axis.length, axis.length - common)


def windows(node: Node, x: Sequence[int], w: Sequence[int], result: Sequence[int]) -> Windows:
    """Return the windows of a convolution, given the shapes of its operand, kernel and result."""
    a = node.attrs
    low = tuple(before for before, _ in a["padding"])
    return Windows(x[1], w[0], x[2:], w[2:], a["stride"], low, a["dilation"], result[2:], a["groups"])
