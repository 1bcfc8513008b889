"""Write convolutions as matrix products: the windows of one sample at a time, as columns that fit into the cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import frozen

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.loops import epilogue, home
from sigma_backend_numba.emit.single_ops import Writer, operands
from sigma_backend_numba.emit.task import Task, indented
from sigma_backend_numba.scalars import SHORT, literal
from sigma_kernel.graph import Node


@frozen
class Windows:
    """The windows over one sample: channels, sides, kernel, stride, lower padding, dilation, sides of the result."""

    channels: int
    sides: Sequence[int]
    kernel: Sequence[int]
    stride: Sequence[int]
    low: Sequence[int]
    dilation: Sequence[int]
    result: Sequence[int]
    groups: int

    @property
    def columns(self) -> int:
        """Return the number of window positions."""
        return prod(self.result)

    @property
    def height(self) -> int:
        """Return the number of elements in a window of one group."""
        return self.channels // self.groups * prod(self.kernel)

    @property
    def area(self) -> int:
        """Return the number of elements of one sample."""
        return self.channels * prod(self.sides)

    @property
    def shifts(self) -> bool:
        """Return whether a column is the whole image, shifted, which makes its loop long."""
        return len(self.kernel) == 2 and tuple(self.stride) == (1, 1) and tuple(self.result) == tuple(self.sides)

    def gathered(self, columns: str, zero: str) -> list[str]:
        """Return loops that copy the windows of ``sample`` to columns (im2col)."""
        if not self.shifts:
            return self.walk(f"{columns}[r0 + o] = sample[{{q}}]", f"{columns}[r0 + o] = {zero}")
        inside = [
            "for o in range(0, first):", f"    {columns}[r0 + o] = {zero}",
            "for o in range(begin, end):", f"    {columns}[r0 + o] = sample[q0 + o]",
            f"for o in range(last, {self.columns}):", f"    {columns}[r0 + o] = {zero}", *self._edges(columns, zero),
        ]  # fmt: skip
        return self._shifted(inside)

    def scattered(self, columns: str, zero: str) -> list[str]:
        """Return loops that add columns to the elements of ``sample`` that they came from (col2im)."""
        if not self.shifts:
            return self.walk(f"sample[{{q}}] += {columns}[r0 + o]", None)
        adding = ["for o in range(begin, end):", f"    sample[q0 + o] += {columns}[r0 + o]"]
        return self._shifted([*self._edges(columns, zero), *adding])

    def _shifted(self, inside: list[str]) -> list[str]:
        """Return loops over shifted images; elements from ``begin`` to ``end`` lie inside the sample."""
        (height, width), (low, left), area = self.sides, self.low, self.columns
        lines = [
            f"d0, d1 = k0 * {self.dilation[0]} - {low}, k1 * {self.dilation[1]} - {left}",
            f"r0 = ((c * {self.kernel[0]} + k0) * {self.kernel[1]} + k1) * {area}",
            f"first = min(max(-d0, 0), {height}) * {width}", f"last = max({height} - max(d0, 0), 0) * {width}",
            f"move = d0 * {width} + d1", f"q0 = c * {area} + move",
            "begin, end = max(first, -move), min(last, " + f"{area} - move)", *inside,
        ]  # fmt: skip
        heads = [f"for c in range({self.channels}):", f"    for k0 in range({self.kernel[0]}):"]
        return [*heads, f"        for k1 in range({self.kernel[1]}):", *indented(lines, 3)]

    def _edges(self, columns: str, zero: str) -> list[str]:
        """Return loops over the positions at which a shifted row would read its neighbours."""
        height, width = self.sides
        return [
            f"for row in range(r0, r0 + {height * width}, {width}):",
            f"    for o in range(row, row + min(max(-d1, 0), {width})):", f"        {columns}[o] = {zero}",
            f"    for o in range(row + max({width} - max(d1, 0), 0), row + {width}):", f"        {columns}[o] = {zero}",
        ]  # fmt: skip

    def walk(self, inside: str, outside: str | None) -> list[str]:
        """Return loops over all pairs of a column element ``r`` and a sample element ``q``."""
        rank = len(self.kernel)
        lines = [f"for c in range({self.channels}):"]
        for k, side in enumerate(self.kernel):
            lines.append("    " * (k + 1) + f"for k{k} in range({side}):")
        row = "c"
        for k, side in enumerate(self.kernel):
            row = f"({row}) * {side} + k{k}"
        last = rank - 1
        lines.append("    " * (rank + 1) + f"first, last = span(k{last} * {self.dilation[last]} - {self.low[last]}, "
                     f"{self.stride[last]}, {self.sides[last]}, {self.result[last]})")  # fmt: skip
        place, at = "c", row
        depth, outsides = rank + 1, []
        for k in range(last):
            lines.append("    " * depth + f"for o{k} in range({self.result[k]}):")
            depth += 1
            lines.append("    " * depth + f"p{k} = o{k} * {self.stride[k]} + k{k} * {self.dilation[k]} - {self.low[k]}")
            place, at = f"({place}) * {self.sides[k]} + p{k}", f"({at}) * {self.result[k]} + o{k}"
            outsides.append(f"p{k} < 0 or p{k} >= {self.sides[k]}")
        return lines + indented(self._line(place, at, outsides, inside, outside), depth)

    def _line(self, place: str, at: str, outsides: list[str], inside: str, outside: str | None) -> list[str]:
        last = len(self.kernel) - 1
        width, side, stride = self.result[last], self.sides[last], self.stride[last]
        lines = [f"r0 = ({at}) * {width}"]
        if outside and outsides:
            lines += [
                f"if {' or '.join(outsides)}:",
                f"    for o in range({width}):",
                "        " + outside,
                "    continue",
            ]
        elif outsides:
            lines += [f"if {' or '.join(outsides)}:", "    continue"]
        lines.append(f"q0 = ({place}) * {side} + k{last} * {self.dilation[last]} - {self.low[last]}")
        if outside:
            lines += ["for o in range(0, first):", "    " + outside]
        lines += [
            "for o in range(first, last):",
            "    " + inside.format(q=f"q0 + o * {stride}" if stride != 1 else "q0 + o"),
        ]
        if outside:
            lines += [f"for o in range(last, {width}):", "    " + outside]
        return lines


def windows(node: Node, x: Sequence[int], w: Sequence[int], result: Sequence[int]) -> Windows:
    """Return the windows of a convolution, given the shapes of its operand, kernel and result."""
    attrs = node.attrs
    low = tuple(before for before, _ in attrs["padding"])
    return Windows(x[1], x[2:], w[2:], attrs["stride"], low, attrs["dilation"], result[2:], attrs["groups"])


def _gemm(node: Node, turned: tuple[bool, bool], sides: Sequence[str | int], a: str, b: str, c: str, beta: str) -> str:
    """Return a call of BLAS: sides m, n, k and the leading dimensions."""
    m, n, k, lda, ldb, ldc = sides
    name = "sgemm" if SHORT[node.dtype] == "f4" else "dgemm"
    one = literal(1, node.dtype)
    return f"{name}({turned[0]}, {turned[1]}, {m}, {n}, {k}, {one}, {a}, {lda}, {b}, {ldb}, {beta}, {c}, {ldc})"


def _work(shape: Sequence[int], how: Windows) -> float:
    return 2.0 * shape[0] * shape[1] * how.height * how.columns


def convolution(task: Task, node: Node) -> None:
    """Write the kernel times the columns of each sample, and the epilogue while the result is in the cache."""
    x, w = operands(task, node)
    how = windows(node, node.inputs[0].shape, node.inputs[1].shape, node.shape)
    samples, filters = node.shape[:2]
    each = filters // how.groups
    task.share(costs.product(_work(node.shape, how)), samples)
    columns = task.room(how.groups * how.height * how.columns, node.dtype)
    whole, place = filters * how.columns, home(task, node)
    result = task.storage(place) if place is not None else task.room(whole, node.dtype)
    to = f"at({result}, n * {whole})" if place is not None else result
    zero = literal(0, node.dtype)
    lines = [f"sample = at({x}, n * {how.area})", f"result = {to}"]
    lines += how.gathered(columns, zero)
    lines.append(f"for g in range({how.groups}):")
    sides = (each, how.columns, how.height, how.height, how.columns, how.columns)
    places = (
        f"at({w}, g * {each * how.height})", f"at({columns}, g * {how.height * how.columns})",
        f"at(result, g * {each * how.columns})",
    )  # fmt: skip
    lines.append("    " + _gemm(node, (False, False), sides, *places, zero))
    lines += epilogue(task, node, result, "" if place is not None else f"-n * {whole}", {0: ("n", "n + 1")})
    task.lines += ["for n in range(lo, hi):", *indented(lines)]


def convolution_input(task: Task, node: Node) -> None:
    """Write the gradient of the input: the gradient of each sample's columns, added to the elements they came from."""
    (g, w), out = operands(task, node), task.storage(node)
    how = windows(node, node.shape, node.inputs[1].shape, node.inputs[0].shape)
    samples, filters = node.inputs[0].shape[:2]
    each = filters // how.groups
    task.share(costs.product(_work(node.inputs[0].shape, how)), samples)
    columns = task.room(how.groups * how.height * how.columns, node.dtype)
    zero = literal(0, node.dtype)
    sides = (how.height, how.columns, each, how.height, how.columns, how.columns)
    places = (
        f"at({w}, g * {each * how.height})", f"at({g}, (n * {how.groups} + g) * {each * how.columns})",
        f"at({columns}, g * {how.height * how.columns})",
    )  # fmt: skip
    lines = [f"for g in range({how.groups}):", "    " + _gemm(node, (True, False), sides, *places, zero)]
    lines += [f"sample = at({out}, n * {how.area})", f"for q in range({how.area}):", f"    sample[q] = {zero}"]
    lines += how.scattered(columns, zero)
    task.lines += ["for n in range(lo, hi):", *indented(lines)]


def kernel_parts(task: Task, node: Node) -> None:
    """Write the gradient of the kernel in parts: each sums gradients times columns over a range of samples."""
    (x, g), out = operands(task, node), task.storage(node)
    how = windows(node, node.inputs[0].shape, node.shape[1:], node.inputs[1].shape)
    samples, filters = node.inputs[1].shape[:2]
    each, whole = filters // how.groups, prod(node.shape[1:])
    task.cost = costs.product(_work(node.inputs[1].shape, how))
    task.chunks = task.parts = node.attrs["parts"]
    task.extent = samples
    columns = task.room(how.groups * how.height * how.columns, node.dtype)
    zero, one = literal(0, node.dtype), literal(1, node.dtype)
    lines = [f"sample = at({x}, n * {how.area})"]
    lines += how.gathered(columns, zero)
    lines.append(f"for g in range({how.groups}):")
    sides = (each, how.height, how.columns, how.columns, how.columns, how.height)
    places = (
        f"at({g}, (n * {how.groups} + g) * {each * how.columns})", f"at({columns}, g * {how.height * how.columns})",
        f"at({out}, ch * {whole} + g * {each * how.height})",
    )  # fmt: skip
    lines.append("    " + _gemm(node, (False, True), sides, *places, one))
    first = f"if lo == ch * {samples} // {task.chunks}:"  # the first sample of this part
    task.lines += [first, f"    for q in range(ch * {whole}, (ch + 1) * {whole}):", f"        {out}[q] = {zero}"]
    task.lines += ["for n in range(lo, hi):", *indented(lines)]


WRITERS: dict[str, Writer] = {
    "convolution": convolution,
    "convolution_input": convolution_input,
    "kernel_parts": kernel_parts,
}
