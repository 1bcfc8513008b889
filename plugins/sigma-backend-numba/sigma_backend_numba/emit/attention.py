"""Write attention and its gradients head by head: a block of queries at a time, its scores in the cache.

For each block of queries, the scores of all keys that it may see are computed, turned into weights, and used.  If
attention is causal, scores of keys after the last query of a block are skipped, and weights of keys after the last
query of a tile, unless an operand is not finite: a weight of 0 times infinity is NaN.  The backward pass computes
scores and weights again.  Products are tiles in registers; matrices whose sides do not fit these are copied to scratch,
with zeros around them.  Products of two operands that are rounded to bfloat16 are dot products of pairs where the
processor has these; weights are not rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

from attrs import define, field, frozen

from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.attention_layout import AttentionLayout, round_up, tile
from sigma_backend_numba.emit.shifted_products import add_product
from sigma_backend_numba.emit.single_ops import Writer
from sigma_backend_numba.emit.task import Task, indent
from sigma_backend_numba.lower.layout import require_layout, source
from sigma_backend_numba.scalars import SHORT, literal
from sigma_kernel.graph import BYTES, Node, ops

SLOW = 2  # cost of our products, as a multiple of a large one's
EXP = 4  # cost of an exponential, as a multiple of an addition


@frozen
class HeadProduct:
    """The text of ``to = left @ right`` by tiles; sides must be multiples of a tile's.

    Rows and columns may be texts: then columns are a multiple of a tile.  Elements of ``left`` are ``down`` and
    ``along`` apart.  The inner axis begins at ``first``; its ends may depend on the row ``ii`` where a tile begins.  If
    ``paired``, elements are words of two numbers of bfloat16 along the inner axis.
    """

    dtype: str
    to: tuple[str, int]
    left: tuple[str, int, int]
    right: tuple[str, int]
    added: bool = False
    first: str = "0"
    paired: bool = False

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
                    *indent(self._tile(high, count, lanes, inner), 2),
                ]
        return lines

    def _tile(self, high: int, count: int, lanes: int, inner: int | str) -> list[str]:
        (left, down, along), (right, leading), (to, apart) = self.left, self.right, self.to
        every = [(r, c) for r in range(high) for c in range(count)]
        lines = [f"s{r}_{c} = spread{lanes}({literal(0, self.dtype)})" for r, c in every]
        body = [f"b{c} = wide{lanes}(at({right}, kk * {leading} + jj + {c * lanes}))" for c in range(count)]
        for r in range(high):
            body.append(f"l{r} = spread{lanes}({left}[(ii + {r}) * {down} + kk * {along}])")
            body += [add_product(f"s{r}_{c}", f"l{r}", f"b{c}", self.paired) for c in range(count)]
        lines += [f"for kk in range({self.first}, {inner}):", *indent(body)]
        for r, c in every:
            place = f"at({to}, (ii + {r}) * {apart} + jj + {c * lanes})"
            lines.append(f"put({place}, {f'wide{lanes}({place}) + ' if self.added else ''}s{r}_{c})")
        return lines


def _multiply_columns(layout: AttentionLayout, to: str, left: tuple[str, str], right: str) -> list[str]:
    """Return lines that multiply a block of rows of an operand, and a pointer to these, by the columns of another."""
    name, rows = left
    inner, columns = layout.terms(name), (layout.transposed[right], layout.keys)
    start = (rows, layout.given[name].row_stride, 1)
    if layout.is_paired:
        start = (f"at({layout.words[name]}, i0 * {inner})", inner, 1)
    product = HeadProduct(layout.node.dtype, (to, layout.keys), start, columns, paired=layout.is_paired)
    return product.lines(layout.block, "n", inner)


@define(eq=False)
class ScoreText:
    """The text of the scores of a block of queries, and of the weights that they become."""

    layout: AttentionLayout
    along: int = field(default=0, init=False)  # stride of the mask along the keys

    def limits(self) -> list[str]:
        """Return the line that limits the keys of a block."""
        layout, step = self.layout, tile()[1] * self.layout.lanes
        if not layout.causal:
            return [f"n = i8({layout.keys})"]
        last = f"min((i0 + {layout.block + step - 1}) // {step} * {step}, {layout.keys})"
        return [f"n = sel(odd == odd, {last}, {layout.keys})", f"past = sel(odd == odd, i0, {layout.keys})"]

    @property
    def visible_keys(self) -> str:
        """Return the text of the keys that some rows of queries may see, the keys of a block at most."""
        return f"min(past + ii + {tile()[0]}, n)" if self.layout.causal else "n"

    @property
    def block_queries(self) -> str:
        """Return the number of queries in a block: the last one may be shorter."""
        layout = self.layout
        short = layout.queries % layout.block
        return f"min({layout.block}, {layout.queries} - i0)" if short else str(layout.block)

    def weights(self, scores: str) -> list[str]:
        """Return lines that compute the scores of a block, and from them the weights: exponentials, still to scale."""
        layout = self.layout
        q, dtype = layout.given["q"], layout.node.dtype
        lines = [f"rows = at({q.used}, i0 * {q.row_stride})"]
        lines += _multiply_columns(layout, scores, ("q", "rows"), "k")
        exponential, step = "exponential" if dtype == "float32" else "exp", tile()[1] * layout.lanes
        inside = [
            f"row = at({scores}, i * {layout.keys})", *self.key_limit(), *self.mask_row(),
            *self.masked_row("row", literal(ops.HIDDEN[dtype], dtype)), *self.largest_score(),
            f"for b in range(0, n, {step}):", f"    for j in range(b, b + {step}):",
            f"        row[j] = {exponential}(row[j] - high)",
            *self.row_sum(self.wide("row")), f"by = {self.broadcast(f'{literal(1, dtype)} / total')}",
            *self.vectors([f"put(at(row, j), {self.seen_only(self.wide('row') + ' * by', literal(0, dtype))})"]),
            *self.masked_row("row", literal(0, dtype)),
        ]  # fmt: skip
        return [*lines, f"for i in range({self.block_queries}):", *indent(inside)]

    # -- rows of scores, a vector at a time ----------------------------------------------------------------------------
    def wide(self, row: str) -> str:
        """Return the text that loads a vector of a row."""
        return f"wide{self.layout.lanes}(at({row}, j))"

    def broadcast(self, value: str) -> str:
        """Return the text of a vector of equal numbers."""
        return f"spread{self.layout.lanes}({value})"

    def vectors(self, lines: list[str]) -> list[str]:
        """Return a loop over the keys that a block of queries may see."""
        return [f"for j in range(0, n, {self.layout.lanes}):", *indent(lines)]

    def row_sum(self, value: str, before: Sequence[str] = ()) -> list[str]:
        """Return lines that add up the vectors of a row."""
        start = f"sums = {self.broadcast(literal(0, self.layout.node.dtype))}"
        return [start, *self.vectors([*before, f"sums += {value}"]), "total = summed(sums)"]

    def key_limit(self) -> list[str]:
        """Return the line that counts the keys which a query sees, a mask aside."""
        layout = self.layout
        count = f"min(i0 + i + 1, {layout.count})" if layout.causal else str(layout.count)
        return [f"seen = {self.broadcast(f'{SHORT[layout.node.dtype]}({count})')}"] if layout.has_hidden_scores else []

    def seen_only(self, vector: str, other: str) -> str:
        """Return the text of a vector of a row, with another number for keys that a query does not see."""
        if not self.layout.has_hidden_scores:
            return vector
        return f"sel({self.wide(self.layout.order)} < seen, {vector}, {self.broadcast(other)})"

    def mask_row(self) -> list[str]:
        """Return the line that finds the row of the mask for a query."""
        layout = self.layout
        if layout.mask is None:
            return []
        placement, shape = require_layout(layout.mask), layout.mask.shape
        lead = len(layout.batch) + 2 - len(shape)
        steps = [(lead + i, step) for i, step in enumerate(placement.strides) if shape[i] != 1]
        pointer, rest = layout.task.part(source(layout.mask), placement.offset)
        where = {axis: step for axis, step in steps if step}
        terms = [str(rest)] + [f"h{axis} * {step}" for axis, step in where.items() if axis < len(layout.batch)]
        if len(layout.batch) in where:
            terms.append(f"(i0 + i) * {where[len(layout.batch)]}")
        self.along = where.get(len(layout.batch) + 1, 0)
        return [f"allowed = at({pointer}, {' + '.join(terms)})"]

    def masked_row(self, row: str, value: str) -> list[str]:
        """Return lines that set the masked entries."""
        each = f"    {row}[j] = sel(allowed[j * {self.along}] != 0, {row}[j], {value})"
        return [f"for j in range(min(n, {self.layout.count})):", each] if self.layout.mask is not None else []

    def largest_score(self) -> list[str]:
        """Return lines that scale a row of scores, and find the largest.

        NaN aside: the exponentials of a row with one are all NaN.
        """
        dtype = self.layout.node.dtype
        least, scale = literal(-float("inf"), dtype), self.broadcast(literal(1.0 / sqrt(self.layout.widths[0]), dtype))
        value = self.seen_only(f"{self.wide('row')} * {scale}", least)
        inside = [f"x = {value}", "put(at(row, j), x)", "top = sel(x > top, x, top)"]
        return [f"top = {self.broadcast(least)}", *self.vectors(inside), "high = highest(top)"]


@frozen(eq=False)
class GradientText:
    """The text of the gradients of queries, keys and values: the contribution of a block of queries."""

    layout: AttentionLayout
    scores: ScoreText

    def lines(self, weights: str, flows: str) -> list[str]:
        """Return lines that add a block's part to the gradients."""
        layout, scores = self.layout, self.scores
        g, q, k, dtype = layout.given["g"], layout.given["q"], layout.given["k"], layout.node.dtype
        dq, dk, dv = (layout.made[f"d{name}"] for name in "qkv")
        keys, block = layout.keys, layout.block
        lines = [f"slopes = at({g.used}, i0 * {g.row_stride})"]
        lines += _multiply_columns(layout, flows, ("g", "slopes"), "v")
        lines += [f"for i in range({scores.block_queries}):", *indent(self._slopes(weights, flows))]
        if layout.queries % block:  # rows that are no queries may hold NaN
            for room in (weights, flows):
                lines += [f"for j in range({scores.block_queries} * {keys}, {block * keys}):"]
                lines += [f"    {room}[j] = {literal(0, dtype)}"]
        to = f"at({dq.used}, i0 * {dq.row_stride})"
        product = HeadProduct(dtype, (to, dq.row_stride), (flows, keys, 1), (k.used, k.row_stride))
        lines += product.lines(block, dq.wide, scores.visible_keys)
        first = "max(ii - past, 0)" if layout.causal else "0"  # no query before sees a key
        for result, left, right, x in ((dk, flows, "rows", q), (dv, weights, "slopes", g)):
            head_product = HeadProduct(
                dtype, (result.used, result.row_stride), (left, 1, keys), (right, x.row_stride), True, first
            )
            lines += head_product.lines("n", result.wide, block)
        return lines

    def _slopes(self, weights: str, flows: str) -> list[str]:
        """Return lines that compute the gradients of a row of scores."""
        layout, scores = self.layout, self.scores
        nothing = literal(0, layout.node.dtype)
        scale = scores.broadcast(literal(1.0 / sqrt(layout.widths[0]), layout.node.dtype))
        kept = [f"x = {scores.seen_only(scores.wide('flow'), nothing)}", "put(at(flow, j), x)"]
        slope = f"{scores.wide('row')} * ({scores.wide('flow')} - by) * {scale}"
        return [
            f"row = at({weights}, i * {layout.keys})", f"flow = at({flows}, i * {layout.keys})",
            *scores.key_limit(), *scores.mask_row(), *scores.masked_row("flow", nothing),
            *scores.row_sum(f"{scores.wide('row')} * x", kept), f"by = {scores.broadcast('total')}",
            *scores.vectors([f"put(at(flow, j), {scores.seen_only(slope, nothing)})"]),
            *scores.masked_row("flow", nothing),
        ]  # fmt: skip


def _result_lines(layout: AttentionLayout, scores: ScoreText, weights: str) -> list[str]:
    """Return lines that add up the values of a block by their weights."""
    o, v, dtype = layout.made["o"], layout.given["v"], layout.node.dtype
    to, left = (f"at({o.used}, i0 * {o.row_stride})", o.row_stride), (weights, layout.keys, 1)
    product = HeadProduct(dtype, to, left, (v.used, v.row_stride))
    return product.lines(layout.block, round_up(layout.widths[1], layout.lanes), scores.visible_keys)


def _write(layout: AttentionLayout) -> None:
    """Write the task."""
    heads, queries, widths, task = prod(layout.batch), layout.queries, layout.widths, layout.task
    count = heads * queries * layout.keys * (0.6 if layout.causal else 1.0)
    flops = count * 2 * ((3 * widths[0] + 2 * widths[1]) if layout.back else sum(widths))
    task.share(SLOW * costs.product(flops) + EXP * costs.loop(count), heads)
    weights, *flows = (task.room(layout.block * layout.keys, layout.node.dtype) for _ in range(1 + layout.back))
    inside, scores = [*layout.head_lines(), *layout.places, *layout.preparation()], ScoreText(layout)
    inside += [f"for i0 in range(0, {round_up(queries, layout.block)}, {layout.block}):"]
    block = [*scores.limits(), *scores.weights(weights)]
    block += GradientText(layout, scores).lines(weights, *flows) if flows else _result_lines(layout, scores, weights)
    inside += [*indent(block), *(line for operand in layout.made.values() for line in operand.write_copy(back=True))]
    task.lines += [*layout.starting, "for z in range(lo, hi):", *indent(inside)]


def attend(task: Task, node: Node) -> None:
    """Write attention."""
    _write(AttentionLayout(task, node, back=False))


def attend_back(task: Task, node: Node) -> None:
    """Write the gradients of attention."""
    _write(AttentionLayout(task, node, back=True))


WRITERS: dict[str, Writer] = {"attend": attend, "attend_back": attend_back}
