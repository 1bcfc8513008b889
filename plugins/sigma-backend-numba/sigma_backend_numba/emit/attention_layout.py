"""Place the matrices of attention: those of each head, and the copies padded with zeros.

Products are tiles in registers; matrices whose sides do not fit these are copied to scratch.
"""

from __future__ import annotations

from attrs import define, field, frozen

from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.emit.register_tiles import write_transpose
from sigma_backend_numba.emit.task import Task
from sigma_backend_numba.lower.attention import order, shapes, starts
from sigma_backend_numba.lower.layout import regular, require_layout, source
from sigma_backend_numba.lower.paired_products import PAIRED
from sigma_backend_numba.scalars import SHORT, literal
from sigma_kernel.graph import BYTES, Node, Shape

BLOCK, FEW, MANY = 32, 16, 2048  # queries of a block, and of one with many keys
WIDE_TILE, NARROW_TILE = (8, 2), (4, 1)  # rows and vectors of a tile with 32 registers of 64 bytes, and with others


def tile() -> tuple[int, int]:
    """Return the rows of a tile, and its vectors in a row."""
    return WIDE_TILE if registers() == 512 else NARROW_TILE


def round_up(number: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-number // unit) * unit


@frozen
class Matrix:
    """The matrix of one head: its name in the text, its sides, the sides that products use, the stride of rows."""

    name: str
    rows: int
    columns: int
    high: int
    wide: int
    stride: int
    room: str = ""

    @property
    def row_stride(self) -> int:
        """Return the stride of the rows that products use."""
        return self.wide if self.room else self.stride

    @property
    def used(self) -> str:
        """Return the name of the matrix that products use."""
        return self.room or self.name

    def write_copy(self, back: bool = False) -> list[str]:
        """Return lines that copy the matrix into its padded room, or back from there."""
        near, far = f"{self.room}[r * {self.wide} + c]", f"{self.name}[r * {self.stride} + c]"
        to, value = (far, near) if back else (near, far)
        loops = [f"for r in range({self.rows}):", f"    for c in range({self.columns}):", f"        {to} = {value}"]
        return loops if self.room else []


@define(eq=False)
class AttentionLayout:
    """The matrices of attention, or of its gradients (``back``), over batches of heads."""

    task: Task
    node: Node
    back: bool
    given: dict[str, Matrix] = field(factory=dict, init=False)
    made: dict[str, Matrix] = field(factory=dict, init=False)
    starting: list[str] = field(factory=list, init=False)  # before all heads
    places: list[str] = field(factory=list, init=False)  # pointers to the matrices of a head
    batch: Shape = field(init=False)
    block: int = field(init=False)
    keys: int = field(init=False)  # rounded up to whole tiles
    transposed: dict[str, str] = field(init=False)
    words: dict[str, str] = field(factory=dict, init=False)  # rows of pairs of numbers of bfloat16
    order: str = field(default="", init=False)  # the numbers of the keys

    def __attrs_post_init__(self) -> None:
        """Name the matrices."""
        (high, vectors), dtype = tile(), self.node.dtype
        q, k = self.operands[1:3] if self.back else self.operands[:2]
        value = self.operands[0].shape if self.back else self._result_shape
        self.batch, self.keys = value[:-2], round_up(k.shape[-2], vectors * self.lanes)
        self.block = min(BLOCK if self.keys <= MANY else FEW, round_up(q.shape[-2], high))
        rows = {
            "q": round_up(q.shape[-2], self.block),
            "k": self.keys,
            "v": self.keys,
            "g": round_up(q.shape[-2], self.block),
        }
        for name, x in self.matrices.items():
            strides = require_layout(x).strides
            self._place(name, x, strides, require_layout(x).offset)
            if name != ("v" if self.back else "k"):
                self.given[name] = self._matrix(name, x.shape[-2:], rows[name], strides[-2])
        if self.back:
            for name, shape, start in zip("qkv", shapes(self.operands), starts(self.operands), strict=True):
                self._result(f"d{name}", shape, rows[name], start)
        else:
            self._result("o", value, rows["q"], 0)
        self.transposed = {name: self.task.room(self.keys * self.terms(name), dtype) for name in self.column_operands}
        for name in self.column_operands:
            self.starting += self._write_zeros(self.transposed[name], self.keys * self.terms(name))
        for name in ("qkgv" if self.back else "qk") if self.is_paired else "":
            self.words[name] = self.task.room(rows[name] * self.terms(name), dtype)
            self.starting += self._write_zeros(self.words[name], rows[name] * self.terms(name))
        if self.has_hidden_scores:
            self.order = self.task.room(self.keys, dtype)
            self.starting += [f"for r in range({self.keys}):", f"    {self.order}[r] = {SHORT[dtype]}(r)"]

    @property
    def operands(self) -> tuple[Node, ...]:
        """Return the gradient of the result, if given, then queries, keys, values, and the mask, if there is one."""
        return self.node.inputs

    @property
    def matrices(self) -> dict[str, Node]:
        """Return the operands but the mask, by name."""
        return dict(zip("gqkv" if self.back else "qkv", self.operands, strict=False))

    @property
    def is_paired(self) -> bool:
        """Return whether products of two operands are dot products of bfloat16."""
        return PAIRED in self.node.attrs

    def terms(self, name: str) -> int:
        """Return the terms of a product with the rows of an operand: words, if numbers are paired."""
        columns = self.matrices[name].shape[-1]
        return -(-columns // 2) if self.is_paired else columns

    @property
    def column_operands(self) -> str:
        """Return the names of the operands that products read by columns."""
        return "kv" if self.back else "k"

    @property
    def lanes(self) -> int:
        """Return the numbers in a vector."""
        return AT_ONCE // BYTES[self.node.dtype]

    @property
    def mask(self) -> Node | None:
        """Return the mask, if there is one."""
        return next(iter(self.operands[4 if self.back else 3 :]), None)

    @property
    def causal(self) -> bool:
        """Return whether a query sees no key after it."""
        return bool(self.node.attrs["causal"])

    @property
    def _result_shape(self) -> Shape:
        """Return the shape of the result from that in which it is stored."""
        axes = order(len(self.node.shape))
        back = sorted(range(len(axes)), key=axes.__getitem__)
        return tuple(self.node.shape[axis] for axis in back)

    @property
    def queries(self) -> int:
        """Return the number of queries."""
        return self.operands[1 if self.back else 0].shape[-2]

    @property
    def widths(self) -> tuple[int, int]:
        """Return the sides of a key and of a value."""
        _, k, v = self.operands[1:4] if self.back else self.operands[:3]
        return k.shape[-1], v.shape[-1]

    @property
    def count(self) -> int:
        """Return the number of keys."""
        return self.matrices["k"].shape[-2]

    @property
    def has_hidden_scores(self) -> bool:
        """Return whether a row holds scores that no query sees: of later keys, or of none."""
        return self.causal or self.keys > self.count

    # -- matrices ------------------------------------------------------------------------------------------------------
    def _place(self, name: str, x: Node, strides: tuple[int, ...], offset: int) -> None:
        """Write the pointer to the matrix of a head."""
        pointer, rest = self.task.part(source(x), offset)
        lead = len(self.batch) + 2 - len(x.shape)
        steps = [(lead + i, step) for i, step in enumerate(strides[:-2]) if x.shape[i] != 1]
        terms = [str(rest)] + [f"h{axis} * {step}" for axis, step in steps if step]
        self.places.append(f"{name} = at({pointer}, {' + '.join(terms)})")

    def _result(self, name: str, shape: Shape, high: int, start: int) -> None:
        """Name a result, which is stored in another order of axes."""
        axes = order(len(shape))
        steps = dict(zip(axes, regular(tuple(shape[axis] for axis in axes)).strides, strict=True))
        terms = [str(start)] + [f"h{axis} * {steps[axis]}" for axis in range(len(shape) - 2) if shape[axis] != 1]
        self.places.append(f"{name} = at({self.task.storage(self.node)}, {' + '.join(terms)})")
        self.made[name] = self._matrix(name, shape[-2:], high, steps[len(shape) - 2])

    def _matrix(self, name: str, sides: Shape, high: int, stride: int) -> Matrix:
        (rows, columns), wide = sides, round_up(sides[1], self.lanes)
        if (high, wide) == (rows, columns):
            return Matrix(name, rows, columns, high, wide, stride)
        room = self.task.room(high * wide, self.node.dtype)
        self.starting += self._write_zeros(room, high * wide)
        return Matrix(name, rows, columns, high, wide, stride, room)

    def _write_zeros(self, room: str, count: int) -> list[str]:
        return [f"for r in range({count}):", f"    {room}[r] = {literal(0, self.node.dtype)}"]

    # -- text ----------------------------------------------------------------------------------------------------------
    def head_lines(self) -> list[str]:
        """Return lines that find the place of a head in the batch."""
        lines, rest = [], "z"
        for axis in reversed(range(len(self.batch))):
            lines += [f"h{axis} = {rest} % {self.batch[axis]}", f"y{axis} = {rest} // {self.batch[axis]}"]
            rest = f"y{axis}"
        return lines

    def preparation(self) -> list[str]:
        """Return lines that lay out the operands of a head, and check whether all of them are finite."""
        lines = [line for matrix in self.given.values() for line in matrix.write_copy()]
        for name in self.words:
            x = self.matrices[name]
            given = f"{name}, {require_layout(x).strides[-2]}, {x.shape[-2]}, {x.shape[-1]}"
            lines.append(f"pair_neighbours({self.words[name]}, {given})")
        for name in self.column_operands:
            x, inner, to = self.matrices[name], self.terms(name), (self.transposed[name], self.keys)
            start = (self.words[name], inner) if self.is_paired else (name, require_layout(x).strides[-2])
            lines += write_transpose(self.node.dtype, to, start, str(inner), x.shape[-2])
        for name in ("dk", "dv"):
            if matrix := self.made.get(name):
                lines += [f"for r in range({matrix.high}):", f"    for c in range({matrix.wide}):"]
                lines += [f"        {matrix.used}[r * {matrix.row_stride} + c] = {literal(0, self.node.dtype)}"]
        return [*lines, *(self._finite_test() if self.causal else [])]

    def _finite_test(self) -> list[str]:
        """Return lines that check whether a factor of 0 may give NaN."""
        lanes, dtype = self.lanes, self.node.dtype
        nothing, none = literal(0, dtype), f"spread{lanes}({literal(0, dtype)})"
        lines, single = [f"odd0 = {none}", f"odd1 = {none}"], []
        for name, x in self.matrices.items():
            (rows, columns), apart = x.shape[-2:], require_layout(x).strides[-2]
            head, whole = f"for r in range({rows}):", columns // lanes * lanes
            places = [(c, c // lanes % 2) for c in range(0, whole, lanes)]
            each = [f"    odd{k} += wide{lanes}(at({name}, r * {apart} + {c})) * {none}" for c, k in places]
            lines += [head, *each] if each else []
            rest = f"        odd = radd(odd, {name}[r * {apart} + c] * {nothing})"
            single += [head, f"    for c in range({whole}, {columns}):", rest] if columns > whole else []
        return [*lines, "odd = summed(odd0 + odd1)", *single]
