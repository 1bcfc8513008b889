"""Random graphs: every op of the kernel, with operands and results permuted, sliced, stretched and shared.

    case = drawn(seed)

A value of a given shape is made by views of any other value, so that the result of any op is read transposed, in part,
repeatedly and by several others, before and after products, reductions, folds and scans.  In half of the graphs all
sides are equal, because a wrong plan only shows where shapes do not distinguish values.  Some graphs end in gradients
of the first or the second order, and some in new values of the state, like a training step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.node import FLOATS, OPS, Graph, Node, symbol

ROWS = 20  # of a block


@frozen(eq=False)
class Case:
    """A step, its arrays, and how it runs: ``steps`` steps of a program, or as many calls of a function."""

    seed: int
    step: Step
    arrays: Mapping[str, np.ndarray]
    program: bool
    in_place: bool
    steps: int


@define(eq=False)
class Drawing:
    """The values so far, and the random source."""

    chance: np.random.Generator
    dtype: str
    sides: Sequence[int]
    pool: list[Node]
    keys: Sequence[Node] = ()
    streams: int = field(default=0, init=False)

    def one(self, choices: Sequence[Any]) -> Any:
        """Choose one item."""
        return choices[int(self.chance.integers(len(choices)))]

    def happens(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.chance.random() < probability)

    def shape(self, low: int = 1, high: int = 3) -> tuple[int, ...]:
        """Return a shape of some rank."""
        return tuple(self.one(self.sides) for _ in range(self.chance.integers(low, high + 1)))

    def value(self) -> Node:
        """Return an existing value, preferably a recent one."""
        return self.one(self.pool[-2:] if self.happens(0.6) else self.pool)  # type: ignore[no-any-return]

    def any(self) -> Node:
        """Return a value that has axes, or views of one in some shape."""
        x = self.value()
        return x if x.shape and self.happens(0.5) else self.fitted(x, self.shape())

    def axis(self, x: Node) -> int:
        """Return an axis of a value."""
        return int(self.chance.integers(len(x.shape)))

    def like(self, *sides: int) -> Node:
        """Return views of a value in a given shape."""
        return self.fitted(self.value(), sides)

    def fitted(self, x: Node, shape: Sequence[int]) -> Node:
        """Bring a value to a shape by views, sums and padding, with its axes in any order."""
        if self.happens(0.5) and len(x.shape) > 1:
            x = f.permute(x, [int(axis) for axis in self.chance.permutation(len(x.shape))])
        if x.shape != tuple(shape) and np.prod(x.shape) == np.prod(shape):
            return f.reshape(x, shape)
        while len(x.shape) > len(shape):
            x = f.sum(x, axis=0) if self.happens(0.4) else f.reshape(f.narrow(x, 0, 0, 1), x.shape[1:])
        x = f.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape)
        for axis, side in enumerate(shape):
            x = self._sided(x, axis, side)
        return f.stretch(x, shape)

    def _sided(self, x: Node, axis: int, side: int) -> Node:
        """Bring one side to a length, or to 1."""
        has = x.shape[axis]
        if has > side or (1 < has < side and self.happens(0.5)):
            count = side if has > side else 1
            step = 2 if has >= 2 * count and self.happens(0.3) else 1
            first = int(self.chance.integers(has - (count - 1) * step))
            return f.narrow(x, axis, first, first + (count - 1) * step + 1, step)
        if 1 < has < side:
            return f.pad(x, [0] * len(x.shape), [(side - has) * (k == axis) for k in range(len(x.shape))], value=0.25)
        return x

    def beside(self, x: Node) -> Node:
        """Return views of a value that broadcast to it or to another."""
        shape = [1 if self.happens(0.15) else side for side in x.shape]
        first = int(self.chance.integers(len(shape) + 1)) if self.happens(0.2) else 0
        return self.fitted(x if self.happens(0.3) else self.value(), shape[first:])

    def two(self) -> list[Node]:
        """Return two values of which one broadcasts to the other, in any order."""
        x = self.value()
        pair = [x, self.fitted(x, (*x.shape, 1)) if len(x.shape) == 1 and self.happens(0.3) else self.beside(x)]
        return pair if self.happens(0.5) else pair[::-1]

    def truths(self, x: Node) -> Node:
        """Return conditions that broadcast to a value."""
        one = self.one([ops.greater, ops.greater_equal, ops.equal])(x, self.beside(x))
        other = self.one([ops.logical_and, ops.logical_or])(one, ops.logical_not(f.less(x, 0.1)))
        return one if self.happens(0.5) else other  # type: ignore[no-any-return]

    def tamed(self, x: Node) -> Node:
        """Return a value scaled to smaller numbers."""
        return f.tanh(x) if self.happens(0.5) else x * 0.25

    def add(self, *found: Node) -> None:
        """Add a new value, sometimes with two axes swapped."""
        for x in found:
            turns = len(x.shape) > 1 and self.happens(0.3)
            self.pool.append(f.swap_axes(x, *self.one([(-1, -2), (-1, -2), (0, 1)])) if turns else x)


Move = Callable[[Drawing], Any]


# -- windows -----------------------------------------------------------------------------------------------------------
def _windows(draw: Drawing) -> tuple[Node, tuple[int, ...], dict[str, Any]]:
    """Return samples with channels, the sides of a window that fits, and a stride with padding."""
    sides = draw.shape(*[draw.one([3, 4])] * 2)
    x = draw.like(*sides[:2], *(max(side, 2) for side in sides[2:]))
    window = tuple(draw.one(range(1, min(side, 3) + 1)) for side in x.shape[2:])
    stride = window if draw.happens(0.3) else tuple(draw.one([1, 1, 2]) for _ in window)
    padding = tuple((0, 0) if draw.happens(0.5) else (draw.one(range(side)), 0) for side in window)
    return x, window, {"stride": stride, "padding": padding}


def _convolution(draw: Drawing) -> Node:
    x, window, how = _windows(draw)
    groups = x.shape[1] if draw.happens(0.2) else 1
    spare = [(side - 1) // max(k - 1, 1) or 1 for side, k in zip(x.shape[2:], window, strict=True)]
    how |= {"dilation": tuple(draw.one([1, 1, most]) for most in spare), "groups": groups}
    filters = x.shape[0] if draw.happens(0.3) else draw.one(draw.sides)  # samples and channels can be swapped
    w = draw.like(groups * filters, x.shape[1] // groups, *window)
    z = ops.convolution(x, w, **how)
    if draw.happens(0.5):
        return z
    g = draw.fitted(draw.one([z, draw.value()]), z.shape)
    op, operands, like = draw.one([(ops.convolution_input, (g, w), x), (ops.convolution_kernel, (x, g), w)])
    return op(*operands, shape=like.shape, **how)  # type: ignore[no-any-return]


def _pool(draw: Drawing) -> Node:
    x, window, how = _windows(draw)
    how |= {"window": window}
    kind = draw.one(["max_pool", "sum_pool", "pool_select", "pool_scatter", "sum_unpool"])
    if kind in ("max_pool", "sum_pool"):
        return OPS[kind](x, **how)
    index = ops.pool_argmax(draw.fitted(draw.value(), x.shape), **how)
    if kind == "pool_select":
        return ops.pool_select(x, index, **how)
    g = draw.like(*index.shape)
    return OPS[kind](*[g, index][: 1 + (kind == "pool_scatter")], shape=x.shape, **how)


def _parts(draw: Drawing) -> Node:
    """Pool samples, then the parts of one of them, of which there are as many as samples."""
    side = draw.one(draw.sides)
    first, then = ({"window": (1,) * n, "stride": (1,) * n, "padding": ((0, 0),) * n} for n in (2, 1))
    whole = ops.sum_pool(draw.like(side, side, *draw.shape(2, 2)), **first)
    return ops.max_pool(f.reshape(f.narrow(whole, 0, at := draw.one(range(side)), at + 1), whole.shape[1:]), **then)


# -- products, loops ---------------------------------------------------------------------------------------------------
def _product(draw: Drawing) -> Node:
    rows, columns, inner = (draw.one(draw.sides) for _ in range(3))
    batch = draw.shape(0, 2) if draw.happens(0.4) else ()
    lead = tuple(1 if draw.happens(0.2) else side for side in batch) if draw.happens(0.7) else ()
    x, y = draw.like(*batch, rows, inner), draw.like(*lead, inner, columns)
    return x @ y if draw.happens(0.7) else draw.like(*lead, columns, inner) @ f.swap_axes(x, -1, -2)


def _in_16_bits(draw: Drawing) -> Node:
    """Round whole numbers, or multiply them: others may round up on one backend and down on the other."""
    dtype, rows, columns, inner = draw.one(["bfloat16", "float16"]), *(draw.one(draw.sides) for _ in range(3))
    if draw.happens(0.3):
        return ops.reduce_precision(f.floor(draw.any() * 170.0), dtype=dtype)
    x, y = (f.floor(draw.like(*sides) * 17.0) for sides in ((rows, inner), (inner, columns)))
    return ops.mixed_matmul(x, y, dtype=dtype) * 0.01


def _shared(draw: Drawing) -> Sequence[Node]:
    """Read one value, most often a product, in several ways."""
    own = Drawing(draw.chance, draw.dtype, draw.sides, [_product(draw) if draw.happens(0.7) else draw.value()])
    for _ in range(3):
        moved(own, INSIDE[:4])
    return own.pool[draw.one([0, 1]) :]


def _both_ways(draw: Drawing) -> Node:
    """Read a square value along both axes at once, or a vector in all pairs."""
    side, function = draw.one(draw.sides), draw.one(UNARY)
    if draw.happens(0.5):
        x = function(draw.like(side, side))
        return draw.one(PLAIN)(x, f.swap_axes(x, 0, 1))  # type: ignore[no-any-return]
    x = f.sum(draw.like(side, draw.one(draw.sides)), 1) if draw.happens(0.7) else draw.like(side)
    return draw.one(PLAIN)(f.expand(x, 1), f.expand(function(x) if draw.happens(0.5) else x, 0))  # type: ignore[no-any-return]


def _by_rows(draw: Drawing) -> Sequence[Node]:
    """Read a value again, in a second pass over its rows."""
    rows, columns, inner = draw.shape(3, 3)
    x = draw.any() if draw.happens(0.3) else draw.like(rows, inner) @ draw.like(inner, columns)
    y = draw.one(UNARY)(x)
    return [_again(draw, x, y), y]


def _over_batch(draw: Drawing) -> Sequence[Node]:
    """Read a value, its sums over some axes, and differences from these, as norms and their gradients do."""
    x = draw.like(*draw.shape(2, 3))
    axes = [k for k in range(len(x.shape) - 1) if draw.happens(0.7)] or [0]
    sums, whole = [f.sum(x, axes, keepdims=True)], [x, draw.like(*x.shape)]
    if draw.happens(0.3):
        sums.append(draw.like(*sums[0].shape))
    for _ in range(draw.one([2, 3, 4, 6])):
        other = draw.one([sums, sums, whole])
        difference = draw.one(PLAIN)(draw.one(whole), draw.one(other))
        whole.append(draw.one(UNARY)(difference) if draw.happens(0.2) else difference)
        if draw.happens(0.2):
            whole.append(f.where(draw.truths(whole[-1]), whole[-1], draw.one(other)))
        if draw.happens(0.6):
            part = draw.one(whole[-2:]) * draw.one(whole[-2:] if draw.happens(0.5) else other)
            sums.append(draw.one([f.sum, f.sum, f.max])(part, axes, keepdims=True))
        if draw.happens(0.4):  # parts, or permuted ones, next to sums of the whole
            sums.append(draw.one(PLAIN)(draw.one(sums), draw.fitted(draw.one(whole), sums[0].shape)))
        if draw.happens(0.2):
            whole.append(draw.one(PLAIN)(draw.one(whole), draw.fitted(draw.one(other), x.shape)))
    return [*(z for z in (*whole, *sums) if draw.happens(0.3)), draw.one(sums), whole[-1]]


def _again(draw: Drawing, x: Node, y: Node) -> Node:
    """Return a value minus a reduction of its row, with another of its shape."""
    return draw.one(PLAIN)(y, x - draw.one([f.sum, f.max])(x, -1, keepdims=True))  # type: ignore[no-any-return]


def _scan(draw: Drawing) -> Sequence[Node]:
    """Scan with one or two carries and a random body."""
    inside = [draw.like(*draw.shape(1, 2)) for _ in range(draw.one([1, 2]))]
    length = draw.one(draw.sides)
    each = [draw.like(length, *draw.shape(1, 2)) for _ in range(draw.one([1, 1, 2]))]

    def body(*operands: Node) -> tuple[list[Node], list[Node]]:
        inner = Drawing(draw.chance, draw.dtype, draw.sides, list(operands))
        for _ in range(draw.one([1, 2, 3])):
            moved(inner, INSIDE)
        after = [inner.tamed(inner.like(*x.shape)) + x * 0.5 for x in operands[: len(inside)]]
        return after, [inner.value() for _ in range(draw.one([0, 1, 2]))]

    ends, stacks = f.scan(body, inside, each, [draw.like(*draw.shape(2, 2))], reverse=draw.happens(0.5))
    return [*ends, *stacks]


def _recurrence(draw: Drawing) -> Sequence[Node]:
    """Scan with a body whose rows are independent: products with weights, gates, constants for each row."""
    rows, wide, length = draw.one([2, 3, 4, 6]), draw.one(draw.sides), draw.one(draw.sides)
    starts = [draw.like(rows, wide) for _ in range(draw.one([1, 2]))]
    each = [draw.like(length, rows, draw.one([1, wide])), draw.like(length, 1, wide)]
    fixed = [draw.like(wide, 3 * wide), draw.like(rows, 1), draw.like(3 * wide)]

    def body(*operands: Node) -> tuple[list[Node], list[Node]]:
        (h, *_), (x, same, weights, each_row, shift) = operands[: len(starts)], operands[len(starts) :]
        number = f.cast(f.iota((rows, 1), 0, "int32"), draw.dtype) * 0.1
        sums = h @ weights + draw.one([shift, shift, each_row, number])
        one, two, three = draw.one([f.split, lambda z, n: f.split(z, n)[::-1]])(sums, 3)
        one, two = draw.one(UNARY)(one), f.sigmoid(two + f.where(x > 0.0, x, same))
        sides = f.concat(two * f.tanh(three), one * x, one) if draw.happens(0.5) else f.concat(one, sums, axis=1)
        after = draw.tamed(f.narrow(sides, 1, 0, wide) + f.max(sides, 1, keepdims=True))
        new = [draw.tamed(after + old * 0.5) for old in operands[: len(starts)]]
        return new, [x for x in (new[0], sides, two, f.swap_axes(one, 0, 1)) if draw.happens(0.5)]

    ends, stacks = f.scan(body, starts, each, fixed, reverse=draw.happens(0.5))
    return [*ends, *stacks]


# -- orders, matrices, spectra -----------------------------------------------------------------------------------------
def _ordered(draw: Drawing) -> Node:
    """Sort values, add them up or multiply them: places of sorted values may jump, and values do not."""
    x = draw.any()
    axis, turned = draw.axis(x), draw.happens(0.5)
    if draw.happens(0.3):
        return f.prod(f.tanh(x), axis)
    return f.sort(x, axis, descending=turned) if draw.happens(0.5) else f.cumsum(x * 0.5, axis, reverse=turned)


def _matrices(draw: Drawing) -> Node:
    """Solve for, or factor, a matrix far from a singular one."""
    side, batch = draw.one(draw.sides), draw.shape(0, 1)
    x = f.tanh(draw.like(*batch, side, side))
    near = x @ f.swap_axes(x, -1, -2) * 0.3 + f.eye(side, dtype=draw.dtype)
    return f.cholesky(near) if draw.happens(0.5) else f.solve(near, draw.like(*batch, side, draw.one(draw.sides)))


def _spectrum(draw: Drawing) -> Node:
    x = draw.any()
    axis = draw.axis(x)
    spectrum = draw.tamed(f.rfft(x, axis))
    return spectrum if draw.happens(0.3) else f.irfft(spectrum, x.shape[axis], axis)


# -- the table ---------------------------------------------------------------------------------------------------------
def _alone(function: Callable[[Node], Node]) -> Move:
    return lambda draw: function(draw.value() if draw.happens(0.5) else draw.any())


def _pair(function: Callable[[Node, Node], Node]) -> Move:
    return lambda draw: function(*draw.two())


def _reduced(draw: Drawing) -> Node:
    x, reduce = draw.any(), draw.one([f.sum, f.sum, f.max])
    axes = [k for k in range(len(x.shape)) if draw.happens(0.5)] or draw.axis(x)
    return reduce(x, axes, keepdims=draw.happens(0.3))  # type: ignore[no-any-return]


def _cast(draw: Drawing, x: Node) -> Node:
    other = draw.one(["int32", "int64", "float32", "float64", "bool", "uint32"])
    whole = ops.mod(f.cast(x * 3.0, "int64"), 5) if other == "uint32" else x * 3.0
    return f.cast(f.cast(whole, other), draw.dtype)


def _padded(draw: Drawing) -> Node:
    x = draw.like(*draw.shape(1, 2))
    low, high, between = ([draw.one([0, 0, 1]) for _ in x.shape] for _ in range(3))
    return f.pad(x, low, high, between, value=draw.one([0.0, -0.5]))


def _flat(draw: Drawing) -> Node:
    """Return a part of a vector of several values, or all of it."""
    parts = [draw.any() for _ in range(draw.one([2, 3]))]
    vector = f.concat(*(f.reshape(x, (-1,)) for x in parts))
    vector = f.tanh(vector) if draw.happens(0.5) else vector
    begin = prod(parts[0].shape)
    return draw.one([vector, f.reshape(f.narrow(vector, 0, begin, begin + prod(parts[1].shape)), parts[1].shape)])


def _gated(draw: Drawing) -> Node:
    return ops.barrier(draw.any(), draw.any())


def _joined(draw: Drawing) -> Node:
    if draw.happens(0.3):
        return _flat(draw)
    x = draw.any()
    axis = draw.axis(x)
    return f.concat(x, draw.like(*(draw.one(draw.sides) if k == axis else s for k, s in enumerate(x.shape))), axis=axis)


def _counted(draw: Drawing) -> Node:
    x = draw.any()
    return x + f.cast(f.iota(x.shape, draw.axis(x), "int32"), draw.dtype) * 0.1


def _beside_constants(draw: Drawing) -> Node:
    """Return a value with an array of numbers in part of its shape, on either side."""
    x = draw.any()
    shape = [1 if draw.happens(0.3) else side for side in x.shape]
    numbers = np.round(draw.chance.normal(size=shape[int(draw.chance.integers(len(shape) + 1)) :]), 3).astype(
        draw.dtype
    )
    return draw.one([lambda: x + numbers, lambda: numbers - x, lambda: x * numbers])()  # type: ignore[no-any-return]


def _looked_up(draw: Drawing) -> Node:
    x = draw.any()
    axis = draw.axis(x)
    index = f.argmax(draw.like(draw.one(draw.sides), x.shape[axis]), axis=1)
    index = f.expand(index, 0) if draw.happens(0.2) else index
    if draw.happens(0.5):
        return f.take(x, index, axis)
    return f.scatter_add(x, index, draw.like(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), axis)


def _integers(draw: Drawing) -> Node:
    """Return a product of small integers."""
    rows, inner, columns = draw.shape(3, 3)
    one, other = (f.argmax(draw.like(*side, 3), axis=2) for side in ((rows, inner), (inner, columns)))
    return f.cast(one @ other, draw.dtype)


def _chosen(draw: Drawing) -> Node:
    x = draw.value()
    truths = ops.is_finite(x) if draw.happens(0.2) else draw.truths(x)
    return f.where(truths, x, draw.beside(x)) if draw.happens(0.7) else f.cast(truths, draw.dtype) * x


def _dropped(draw: Drawing) -> Node:
    x = draw.any()
    draw.streams += 1
    if draw.happens(0.5):
        return ops.dropout(x, f.sum(f.full(0.3, (), x.dtype)), *draw.keys, stream=draw.streams)
    bits = ops.random_bits(*draw.keys, shape=x.shape, stream=draw.streams)
    return f.cast(bits, draw.dtype) * 2.0**-32 + x


def _classes(draw: Drawing) -> Node:
    x = draw.like(*draw.shape(1, 2), max(draw.one(draw.sides), 2))
    if draw.happens(0.5):
        return f.layer_norm(x, draw.like(x.shape[-1]), draw.like(x.shape[-1]), 0.1)
    return ops.softmax_cross_entropy(x, f.argmax(draw.like(*x.shape)))


def _attention(draw: Drawing) -> Node:
    rows, length, inner, width = draw.shape(4, 4)
    lead, causal = draw.shape(0, 1), draw.happens(0.3)
    length = rows if causal else length
    operands = [draw.like(*lead, *sides) for sides in ((rows, inner), (length, inner), (length, width))]
    return f.attention(*operands, draw.like(rows, length) > 0.0 if draw.happens(0.5) else None, causal)


UNARY: tuple[Callable[[Node], Node], ...] = (
    f.neg, f.abs, f.sign, f.sin, f.cos, f.tanh, f.erf, f.stop, f.relu, f.sigmoid, f.silu, f.gelu, f.softplus,
    lambda x: f.floor(x * 1.7 + 0.3), lambda x: f.exp(-f.abs(x)), lambda x: f.expm1(-f.abs(x)),
    lambda x: f.log(f.abs(x) + 0.5), lambda x: f.log1p(f.abs(x)), lambda x: f.sqrt(f.abs(x) + 0.3),
)  # fmt: skip
PLAIN = (ops.add, ops.sub, ops.mul, ops.maximum, ops.minimum)
SMALL: tuple[Move, ...] = (
    *map(_alone, UNARY), *map(_pair, PLAIN),
    _pair(lambda x, y: x / (f.abs(y) + 0.5)), _pair(lambda x, y: (f.abs(x) + 0.5) ** f.tanh(y)),
    _pair(lambda x, y: ops.mod(x, f.abs(y) + 0.7)), _chosen, lambda draw: _cast(draw, draw.value()), _counted,
    _beside_constants,
)  # fmt: skip
FORMS: tuple[Move, ...] = (lambda draw: draw.any(), _gated, _padded, _joined, _looked_up, _ordered)
REDUCTIONS: tuple[Move, ...] = (_reduced, _reduced, _reduced, lambda draw: f.softmax(draw.any(), -1))
PRODUCTS: tuple[Move, ...] = (_product, _product, _product, _product, _integers, _in_16_bits)
INSIDE = (SMALL, SMALL, FORMS, REDUCTIONS, PRODUCTS)
COMPOSITES: tuple[Move, ...] = (
    lambda draw: draw.one([f.softmax, f.log_softmax])(draw.any(), draw.one([0, -1])), _classes, _attention, _dropped,
    _scan, _scan, _recurrence,
)  # fmt: skip
MOVES = (
    *INSIDE,
    PRODUCTS,
    (_convolution, _pool),
    COMPOSITES,
    (_shared, _both_ways, _by_rows, _parts),
    (_over_batch,),
    (_matrices, _spectrum),
)


def moved(draw: Drawing, moves: Sequence[Sequence[Move]]) -> None:
    """Add one more value, or several."""
    found = draw.one(draw.one(moves))(draw)
    draw.add(*(found if isinstance(found, Sequence) else [found]))


# -- whole graphs ------------------------------------------------------------------------------------------------------
def drawn(seed: int) -> Case:
    """Return the case for a seed."""
    chance = np.random.default_rng(seed)
    sides = [int(n) for n in chance.integers(1, 6, 4)]
    if chance.random() < 0.5:
        sides = [int(chance.integers(2, 5))]
    elif chance.random() < 0.2:
        sides[0] = 17  # more columns than a vector has
    draw = Drawing(chance, str(chance.choice(["float32", "float64"])), sides, [])
    inputs = _inputs(draw)
    draw.keys = [x for name, x in inputs.items() if name[0] == "k"]
    for _ in range(draw.one([1, 2, 2, 3, 3, 4, 6])):
        moved(draw, MOVES)
    return _case(draw, seed, inputs, _outputs(draw, [x for name, x in inputs.items() if name[0] in "sd"]))


def _inputs(draw: Drawing) -> dict[str, Node]:
    """Return states, data of some samples, the parts of a key, and a rate; floats are added to the pool."""
    batch = draw.one(draw.sides)
    found = {f"state{k}": symbol(draw.shape(), draw.dtype) for k in range(draw.one([1, 2, 3]))}
    found |= {f"key{k}": symbol(shape, "uint32") for k, shape in enumerate([(2,), (), (), ()])}
    found |= {f"data{k}": symbol((batch, *draw.shape(0, 2)), draw.dtype) for k in range(draw.one([0, 1, 2]))}
    draw.pool += [x for x in found.values() if x.dtype in FLOATS]
    return found | {"rate": symbol((), draw.dtype)}


def _outputs(draw: Drawing, targets: Sequence[Node]) -> list[Node]:
    """Return some values, the last one included, and perhaps gradients, and their gradients."""
    chosen = [*draw.pool[-2:], *(draw.value() for _ in range(min(draw.one([1, 2, 3, 4]), len(draw.pool)) - 1))]
    for _ in range(draw.one([0, 0, 0, 1, 1, 2])):
        wanted = [x for x in targets if draw.happens(0.6)] or targets[:1]
        loss = f.sum(draw.tamed(chosen[0]) * draw.beside(chosen[0]))
        found = gradient(loss, wanted)
        draw.add(*found)
        chosen = [*found, *chosen]
    return chosen


def _case(draw: Drawing, seed: int, inputs: Mapping[str, Node], results: Sequence[Node]) -> Case:
    """Return results as a step that writes some of its states."""
    state, data = (tuple(name for name in inputs if name[0] in first) for first in ("sk", "d"))
    writes = tuple(name for name in state if name[0] == "s" and draw.happens(0.6))
    draw.pool += results
    new = {name: _new(draw, inputs[name], inputs["rate"]) for name in writes}
    results = [*results, *(_again(draw, inputs[name], x) for name, x in new.items() if draw.happens(0.4))]
    graph = Graph(tuple(inputs[name] for name in (*state, *data, "rate")), (*new.values(), *results))
    step = Step(graph, state, data, ("rate",), writes, tuple(f"result{k}" for k in range(len(results))))
    arrays = {name: _values(draw, x, name) for name, x in inputs.items()}
    return Case(seed, step, arrays, draw.happens(0.5), draw.happens(0.7), draw.one([1, 2, 3]))


def _new(draw: Drawing, state: Node, rate: Node) -> Node:
    """Return the next value of a state: a step along a value, or anything else."""
    other = draw.like(*state.shape)
    if alike := [x for x in draw.pool if _long(x) == _long(state) and draw.happens(0.4)]:
        one, two = (f.reshape(draw.one(found), state.shape) for found in (alike, [state, *alike]))
        return draw.one(PLAIN)(one, two)  # type: ignore[no-any-return]
    if len(state.shape) > 1 and draw.happens(0.4):  # a product that needs the storage of its operand or is subtracted
        inner = draw.one([state.shape[-1], draw.one(draw.sides)])
        same = inner == state.shape[-1] and draw.happens(0.5)
        other = (state if same else draw.like(*state.shape[:-1], inner)) @ draw.like(inner, state.shape[-1])
    elif draw.happens(0.1):
        other = f.take(state, f.argmax(draw.like(state.shape[0], state.shape[0]), axis=1), 0)
    return state - rate * other if draw.happens(0.6) else draw.tamed(other)


def _long(x: Node) -> list[int]:
    """Return the sides other than 1."""
    return [side for side in x.shape if side != 1]


def _values(draw: Drawing, x: Node, name: str) -> np.ndarray:
    """Return the values of an input: for data a block, of which each step takes some rows."""
    if x.dtype == "uint32":
        return draw.chance.integers(0, 2**31, x.shape).astype("uint32")
    shape = (ROWS, *x.shape[1:]) if name[0] == "d" else x.shape
    return np.asarray(0.05 if name == "rate" else draw.chance.normal(size=shape), x.dtype)
