"""Write attention and its gradients head by head: a block of queries at a time, its scores in the cache.

For each block of queries, the scores of all keys that it may see are computed, turned into weights, and used.  If
attention is causal, scores of keys after the last query of a block are skipped, and weights of keys after the last
query of a tile, unless an operand is not finite: a weight of 0 times infinity is NaN.  The backward pass computes
scores and weights again.  Products are tiles in registers; matrices whose sides do not fit these are copied to scratch,
with zeros around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

from attrs import define, field, frozen

from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.register_tiles import turned
from sigma_backend_numba.emit.single_ops import Writer
from sigma_backend_numba.emit.task import Task, indented
from sigma_backend_numba.lower.attention import order, shapes, starts
from sigma_backend_numba.lower.layout import laid, regular, source
from sigma_backend_numba.scalars import SHORT, literal
from sigma_kernel.graph import BYTES, Node, Shape, ops

BLOCK, FEW, MANY = 32, 16, 2048  # queries of a block, and of one with many keys
WIDE_TILE, NARROW_TILE = (8, 2), (4, 1)  # rows and vectors of a tile with 32 registers of 64 bytes, and with others
SLOW = 2  # cost of our products, as a multiple of a large one's
EXP = 4  # cost of an exponential, as a multiple of an addition


def tile() -> tuple[int, int]:
    """Return the rows of a tile, and its vectors in a row."""
    return WIDE_TILE if registers() == 512 else NARROW_TILE


def up(number: int, unit: int) -> int:
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
    def apart(self) -> int:
        """Return the stride of the rows that products use."""
        return self.wide if self.room else self.stride

    @property
    def used(self) -> str:
        """Return the name of the matrix that products use."""
        return self.room or self.name

    def copied(self, back: bool = False) -> list[str]:
        """Return lines that copy the matrix into its padded room, or back from there."""
        near, far = f"{self.room}[r * {self.wide} + c]", f"{self.name}[r * {self.stride} + c]"
        to, value = (far, near) if back else (near, far)
        loops = [f"for r in range({self.rows}):", f"    for c in range({self.columns}):", f"        {to} = {value}"]
        return loops if self.room else []


@frozen
class HeadProduct:
    """The text of ``to = left @ right`` by tiles; sides must be multiples of a tile's.

    Rows and columns may be texts: then columns are a multiple of a tile.  Elements of ``left`` are ``down`` and
    ``along`` apart.  The inner axis begins at ``first``; its ends may depend on the row ``ii`` where a tile begins.
    """

    dtype: str
    to: tuple[str, int]
    left: tuple[str, int, int]
    right: tuple[str, int]
    added: bool = False
    first: str = "0"

    def lines(self, rows: int | str, columns: int | str, inner: int | str) -> list[str]:
        """Return the loops."""
        (high, vectors), lanes = tile(), AT_ONCE // BYTES[self.dtype]
        whole = columns if isinstance(columns, str) else columns // (vectors * lanes) * vectors * lanes
        lines = []
        for count, start, stop in ((vectors, 0, whole), (1, whole, columns)):
            if start != stop:
                lines += [f"for jj in range({start}, {stop}, {count * lanes}):"]
                lines += [
                    f"    for ii in range(0, {rows}, {high}):",
                    *indented(self._tile(high, count, lanes, inner), 2),
                ]
        return lines

    def _tile(self, high: int, count: int, lanes: int, inner: int | str) -> list[str]:
        (left, down, along), (right, leading), (to, apart) = self.left, self.right, self.to
        every = [(r, c) for r in range(high) for c in range(count)]
        lines = [f"s{r}_{c} = spread{lanes}({literal(0, self.dtype)})" for r, c in every]
        body = [f"b{c} = wide{lanes}(at({right}, kk * {leading} + jj + {c * lanes}))" for c in range(count)]
        for r in range(high):
            body.append(f"l{r} = spread{lanes}({left}[(ii + {r}) * {down} + kk * {along}])")
            body += [f"s{r}_{c} += l{r} * b{c}" for c in range(count)]
        lines += [f"for kk in range({self.first}, {inner}):", *indented(body)]
        for r, c in every:
            place = f"at({to}, (ii + {r}) * {apart} + jj + {c * lanes})"
            lines.append(f"put({place}, {f'wide{lanes}({place}) + ' if self.added else ''}s{r}_{c})")
        return lines


@define(eq=False)
class AttentionHeads:
    """The text of attention, or of its gradients (``back``), over batches of heads."""

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

    def __attrs_post_init__(self) -> None:
        """Name the matrices."""
        (high, vectors), dtype = tile(), self.node.dtype
        *_, q, k, v = self._operands[:4] if self.back else self._operands[:3]
        value = self._operands[0].shape if self.back else self._batched((q, k, v))
        self.batch, self.keys = value[:-2], up(k.shape[-2], vectors * self.lanes)
        self.block = min(BLOCK if self.keys <= MANY else FEW, up(q.shape[-2], high))
        rows = {"q": up(q.shape[-2], self.block), "k": self.keys, "v": self.keys, "g": up(q.shape[-2], self.block)}
        for name, x in zip("gqkv" if self.back else "qkv", self._operands, strict=False):
            strides = laid(x).strides
            self._place(name, x, strides, laid(x).offset)
            if name != ("v" if self.back else "k"):
                self.given[name] = self._matrix(name, x.shape[-2:], rows[name], strides[-2])
        if self.back:
            for name, shape, start in zip("qkv", shapes(self._operands), starts(self._operands), strict=True):
                self._result(f"d{name}", shape, rows[name], start)
        else:
            self._result("o", value, rows["q"], 0)
        self.transposed = {name: self.task.room(self.keys * x.shape[-1], dtype) for name, x in self._turned}
        for name, x in self._turned:
            self.starting += self._zeroed(self.transposed[name], self.keys * x.shape[-1])
        if self._limited:
            self.order = self.task.room(self.keys, dtype)
            self.starting += [f"for r in range({self.keys}):", f"    {self.order}[r] = {SHORT[dtype]}(r)"]

    transposed: dict[str, str] = field(init=False)
    order: str = field(default="", init=False)  # the numbers of the keys

    @property
    def _operands(self) -> tuple[Node, ...]:
        return self.node.inputs

    @property
    def _turned(self) -> list[tuple[str, Node]]:
        """Return the operands that products read by columns."""
        k, v = self._operands[2:4] if self.back else self._operands[1:3]
        return [("k", k), ("v", v)] if self.back else [("k", k)]

    @property
    def lanes(self) -> int:
        """Return the numbers in a vector."""
        return AT_ONCE // BYTES[self.node.dtype]

    @property
    def mask(self) -> Node | None:
        """Return the mask, if there is one."""
        return next(iter(self._operands[4 if self.back else 3 :]), None)

    @property
    def causal(self) -> bool:
        """Return whether a query sees no key after it."""
        return bool(self.node.attrs["causal"])

    def _batched(self, operands: tuple[Node, ...]) -> Shape:
        """Return the shape of the result from that in which it is stored."""
        axes = order(len(self.node.shape))
        back = sorted(range(len(axes)), key=axes.__getitem__)
        return tuple(self.node.shape[axis] for axis in back)

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
        (rows, columns), wide = sides, up(sides[1], self.lanes)
        if (high, wide) == (rows, columns):
            return Matrix(name, rows, columns, high, wide, stride)
        room = self.task.room(high * wide, self.node.dtype)
        self.starting += self._zeroed(room, high * wide)
        return Matrix(name, rows, columns, high, wide, stride, room)

    def _zeroed(self, room: str, count: int) -> list[str]:
        return [f"for r in range({count}):", f"    {room}[r] = {literal(0, self.node.dtype)}"]

    # -- text ----------------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Write the task."""
        heads, queries, widths = prod(self.batch), self._queries, self._widths
        scores = heads * queries * self.keys * (0.6 if self.causal else 1.0)
        flops = scores * 2 * ((3 * widths[0] + 2 * widths[1]) if self.back else sum(widths))
        self.task.share(SLOW * costs.product(flops) + EXP * costs.loop(scores), heads)
        rooms = [self.task.room(self.block * self.keys, self.node.dtype) for _ in range(1 + self.back)]
        inside = [*self._head(), *self.places, *self._prepared()]
        inside += [f"for i0 in range(0, {up(queries, self.block)}, {self.block}):"]
        inside += indented([*self._seen(), *self._weights(rooms[0]), *self._used(rooms)])
        inside += [line for matrix in self.made.values() for line in matrix.copied(back=True)]
        self.task.lines += [*self.starting, "for z in range(lo, hi):", *indented(inside)]

    @property
    def _queries(self) -> int:
        return self._operands[1 if self.back else 0].shape[-2]

    @property
    def _widths(self) -> tuple[int, int]:
        """Return the sides of a key and of a value."""
        _, k, v = self._operands[1:4] if self.back else self._operands[:3]
        return k.shape[-1], v.shape[-1]

    @property
    def _count(self) -> int:
        """Return the number of keys."""
        return self._turned[0][1].shape[-2]

    def _head(self) -> list[str]:
        """Return lines that find the place of a head in the batch."""
        lines, rest = [], "z"
        for axis in reversed(range(len(self.batch))):
            lines += [f"h{axis} = {rest} % {self.batch[axis]}", f"y{axis} = {rest} // {self.batch[axis]}"]
            rest = f"y{axis}"
        return lines

    def _prepared(self) -> list[str]:
        """Return lines that lay out the operands of a head, and tell whether all of them are finite."""
        lines = [line for matrix in self.given.values() for line in matrix.copied()]
        for name, x in self._turned:
            rows, columns = x.shape[-2:]
            to = (self.transposed[name], self.keys)
            lines += turned(self.node.dtype, to, (name, laid(x).strides[-2]), str(columns), rows)
        for name in ("dk", "dv"):
            if matrix := self.made.get(name):
                lines += [f"for r in range({matrix.high}):", f"    for c in range({matrix.wide}):"]
                lines += [f"        {matrix.used}[r * {matrix.apart} + c] = {literal(0, self.node.dtype)}"]
        return [*lines, *(self._tested() if self.causal else [])]

    def _tested(self) -> list[str]:
        """Return lines that tell whether a factor of 0 may give NaN."""
        lanes, dtype = self.lanes, self.node.dtype
        nothing, none = literal(0, dtype), f"spread{lanes}({literal(0, dtype)})"
        lines, single = [f"odd0 = {none}", f"odd1 = {none}"], []
        for name, x in zip("gqkv" if self.back else "qkv", self._operands, strict=False):
            (rows, columns), apart = x.shape[-2:], laid(x).strides[-2]
            head, whole = f"for r in range({rows}):", columns // lanes * lanes
            places = [(c, c // lanes % 2) for c in range(0, whole, lanes)]
            each = [f"    odd{k} += wide{lanes}(at({name}, r * {apart} + {c})) * {none}" for c, k in places]
            lines += [head, *each] if each else []
            rest = f"        odd = radd(odd, {name}[r * {apart} + c] * {nothing})"
            single += [head, f"    for c in range({whole}, {columns}):", rest] if columns > whole else []
        return [*lines, "odd = summed(odd0 + odd1)", *single]

    def _seen(self) -> list[str]:
        """Return the line that limits the keys of a block."""
        step = tile()[1] * self.lanes
        if not self.causal:
            return [f"n = i8({self.keys})"]
        last = f"min((i0 + {self.block + step - 1}) // {step} * {step}, {self.keys})"
        return [f"n = sel(odd == odd, {last}, {self.keys})", f"past = sel(odd == odd, i0, {self.keys})"]

    @property
    def _last(self) -> str:
        """Return the text of the keys that some rows of queries may see, the keys of a block at most."""
        return f"min(past + ii + {tile()[0]}, n)" if self.causal else "n"

    def _weights(self, scores: str) -> list[str]:
        """Return lines that compute the scores of a block, and from them the weights: exponentials, still to scale."""
        q, k, dtype = self.given["q"], self._widths[0], self.node.dtype
        lines = [f"rows = at({q.used}, i0 * {q.apart})"]
        lines += HeadProduct(dtype, (scores, self.keys), ("rows", q.apart, 1), (self.transposed["k"], self.keys)).lines(
            self.block, "n", k
        )
        exponential, step = "exponential" if dtype == "float32" else "exp", tile()[1] * self.lanes
        inside = [
            f"row = at({scores}, i * {self.keys})", *self._limit(), *self._allowed(),
            *self._masked("row", literal(ops.HIDDEN[dtype], dtype)), *self._largest(),
            f"for b in range(0, n, {step}):", f"    for j in range(b, b + {step}):",
            f"        row[j] = {exponential}(row[j] - high)",
            *self._summed(self._wide("row")), f"by = {self._spread(f'{literal(1, dtype)} / total')}",
            *self._vectors([f"put(at(row, j), {self._seen_only(self._wide('row') + ' * by', literal(0, dtype))})"]),
            *self._masked("row", literal(0, dtype)),
        ]  # fmt: skip
        return [*lines, f"for i in range({self._own}):", *indented(inside)]

    @property
    def _own(self) -> str:
        """Return the number of queries in a block: the last one may be shorter."""
        short = self._queries % self.block
        return f"min({self.block}, {self._queries} - i0)" if short else str(self.block)

    # -- rows of scores, a vector at a time ----------------------------------------------------------------------------
    def _wide(self, row: str) -> str:
        return f"wide{self.lanes}(at({row}, j))"

    def _spread(self, value: str) -> str:
        return f"spread{self.lanes}({value})"

    def _vectors(self, lines: list[str]) -> list[str]:
        """Return a loop over the keys that a block of queries may see."""
        return [f"for j in range(0, n, {self.lanes}):", *indented(lines)]

    def _summed(self, value: str, before: Sequence[str] = ()) -> list[str]:
        """Return lines that add up the vectors of a row."""
        start = f"sums = {self._spread(literal(0, self.node.dtype))}"
        return [start, *self._vectors([*before, f"sums += {value}"]), "total = summed(sums)"]

    @property
    def _limited(self) -> bool:
        """Return whether a row holds scores that no query sees: of later keys, or of none."""
        return self.causal or self.keys > self._count

    def _limit(self) -> list[str]:
        """Return the line that counts the keys which a query sees, a mask aside."""
        count = f"min(i0 + i + 1, {self._count})" if self.causal else str(self._count)
        return [f"seen = {self._spread(f'{SHORT[self.node.dtype]}({count})')}"] if self._limited else []

    def _seen_only(self, vector: str, other: str) -> str:
        """Return the text of a vector of a row, with another number for keys that a query does not see."""
        return f"sel({self._wide(self.order)} < seen, {vector}, {self._spread(other)})" if self._limited else vector

    def _allowed(self) -> list[str]:
        """Return the line that finds the row of the mask for a query."""
        if self.mask is None:
            return []
        found, shape = laid(self.mask), self.mask.shape
        lead = len(self.batch) + 2 - len(shape)
        steps = [(lead + i, step) for i, step in enumerate(found.strides) if shape[i] != 1]
        pointer, rest = self.task.part(source(self.mask), found.offset)
        where = {axis: step for axis, step in steps if step}
        terms = [str(rest)] + [f"h{axis} * {step}" for axis, step in where.items() if axis < len(self.batch)]
        if len(self.batch) in where:
            terms.append(f"(i0 + i) * {where[len(self.batch)]}")
        self.along = where.get(len(self.batch) + 1, 0)
        return [f"allowed = at({pointer}, {' + '.join(terms)})"]

    along: int = field(default=0, init=False)  # stride of the mask along the keys

    def _masked(self, row: str, value: str) -> list[str]:
        """Return lines that set what the mask hides."""
        each = f"    {row}[j] = sel(allowed[j * {self.along}] != 0, {row}[j], {value})"
        return [f"for j in range(min(n, {self._count})):", each] if self.mask is not None else []

    def _largest(self) -> list[str]:
        """Return lines that scale a row of scores, and find the largest.

        NaN aside: the exponentials of a row with one are all NaN.
        """
        dtype = self.node.dtype
        least, scale = literal(-float("inf"), dtype), self._spread(literal(1.0 / sqrt(self._widths[0]), dtype))
        value = self._seen_only(f"{self._wide('row')} * {scale}", least)
        inside = [f"x = {value}", "put(at(row, j), x)", "top = sel(x > top, x, top)"]
        return [f"top = {self._spread(least)}", *self._vectors(inside), "high = highest(top)"]

    def _used(self, rooms: list[str]) -> list[str]:
        """Return lines that use the weights of a block: for the result, or for the gradients."""
        if self.back:
            return self._gradients(*rooms)
        o, dtype = self.made["o"], self.node.dtype
        v, (wide, apart) = self._operands[2], self._values()
        product = HeadProduct(
            dtype, (f"at({o.used}, i0 * {o.apart})", o.apart), (rooms[0], self.keys, 1), (wide, apart)
        )
        return product.lines(self.block, up(v.shape[-1], self.lanes), self._last)

    def _values(self) -> tuple[str, int]:
        return self.given["v"].used, self.given["v"].apart

    def _gradients(self, weights: str, flows: str) -> list[str]:
        """Return lines that add a block's part to the gradients."""
        g, q, k, dtype = self.given["g"], self.given["q"], self.given["k"], self.node.dtype
        dq, dk, dv = (self.made[f"d{name}"] for name in "qkv")
        keys, block = self.keys, self.block
        turned = (self.transposed["v"], keys)
        lines = [f"slopes = at({g.used}, i0 * {g.apart})"]
        lines += HeadProduct(dtype, (flows, keys), ("slopes", g.apart, 1), turned).lines(block, "n", self._widths[1])
        lines += [f"for i in range({self._own}):", *indented(self._slopes(weights, flows))]
        if self._queries % block:  # rows that are no queries may hold NaN
            for room in (weights, flows):
                lines += [f"for j in range({self._own} * {keys}, {block * keys}):"]
                lines += [f"    {room}[j] = {literal(0, dtype)}"]
        to = f"at({dq.used}, i0 * {dq.apart})"
        lines += HeadProduct(dtype, (to, dq.apart), (flows, keys, 1), (k.used, k.apart)).lines(
            block, dq.wide, self._last
        )
        first = "max(ii - past, 0)" if self.causal else "0"  # no query before sees a key
        for result, left, right, x in ((dk, flows, "rows", q), (dv, weights, "slopes", g)):
            made = HeadProduct(dtype, (result.used, result.apart), (left, 1, keys), (right, x.apart), True, first)
            lines += made.lines("n", result.wide, block)
        return lines

    def _slopes(self, weights: str, flows: str) -> list[str]:
        """Return lines that compute the gradients of a row of scores."""
        nothing = literal(0, self.node.dtype)
        scale = self._spread(literal(1.0 / sqrt(self._widths[0]), self.node.dtype))
        kept = [f"x = {self._seen_only(self._wide('flow'), nothing)}", "put(at(flow, j), x)"]
        slope = f"{self._wide('row')} * ({self._wide('flow')} - by) * {scale}"
        return [
            f"row = at({weights}, i * {self.keys})", f"flow = at({flows}, i * {self.keys})",
            *self._limit(), *self._allowed(), *self._masked("flow", nothing),
            *self._summed(f"{self._wide('row')} * x", kept), f"by = {self._spread('total')}",
            *self._vectors([f"put(at(flow, j), {self._seen_only(slope, nothing)})"]), *self._masked("flow", nothing),
        ]  # fmt: skip


def attend(task: Task, node: Node) -> None:
    """Write attention."""
    AttentionHeads(task, node, back=False).write()


def attend_back(task: Task, node: Node) -> None:
    """Write the gradients of attention."""
    AttentionHeads(task, node, back=True).write()


WRITERS: dict[str, Writer] = {"attend": attend, "attend_back": attend_back}
