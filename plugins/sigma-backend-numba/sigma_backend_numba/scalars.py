"""The table of scalar ops: for each, its text in generated code, its C symbol and whether it is costly.

Every expression has the dtype of its node: the generated language would widen integers otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from attrs import frozen

from sigma_kernel.graph import Node

SHORT = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "uint32": "u4", "bool": "b1"}
FLOATING = ("float32", "float64")
Text = Callable[[Node, Sequence[str]], str]


def literal(value: float, dtype: str) -> str:
    """Return a number as text of its dtype."""
    if dtype == "bool":
        return repr(bool(value))
    if dtype not in FLOATING:
        return f"{SHORT[dtype]}({int(value)})"
    if math.isnan(value) or math.isinf(value):
        return f"{SHORT[dtype]}({'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'})"
    return f"{SHORT[dtype]}({float(value)!r})"


def lowest(dtype: str) -> str:
    """Return the lowest number of a dtype."""
    least = {"int32": -(2**31), "int64": -(2**63), "uint32": 0}
    return literal(least.get(dtype, -math.inf), dtype) if dtype != "int64" else "i8(-9223372036854775807 - 1)"


def write_cast(text: str, source: str, to: str) -> str:
    """Return a value in another dtype: integers wrap, floats are clamped to the range of an integer dtype."""
    if source == to:
        return text
    if source == "bool":
        return f"sel({text}, {literal(1, to)}, {literal(0, to)})"
    if to == "bool":
        return f"({text} != {literal(0, source)})"
    cut = "cut_" if source in FLOATING and to not in FLOATING else ""
    return f"{cut}{SHORT[to]}({text})"


def arithmetic(op: str, dtype: str, x: str, y: str) -> str:
    """Return the sum, difference, product or quotient of two numbers."""
    sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[op]
    return f"({x} {sign} {y})" if dtype in FLOATING else f"{SHORT[dtype]}({x} {sign} {y})"


def _arithmetic(node: Node, x: Sequence[str]) -> str:
    return arithmetic(node.op, node.dtype, *x)


def _larger(node: Node, x: Sequence[str]) -> str:
    """Compare with a literal in one instruction: it is not NaN."""
    compared = {"maximum": "<=", "minimum": ">="}[node.op]
    second = node.inputs[1]
    if second.op == "constant" and second.attrs["value"] == second.attrs["value"]:
        return f"sel({x[0]} {compared} {x[1]}, {x[1]}, {x[0]})"
    return f"{'larger' if node.op == 'maximum' else 'smaller'}({x[0]}, {x[1]})"


def _negative(node: Node, x: Sequence[str]) -> str:
    return f"(-{x[0]})" if node.dtype in FLOATING else f"{SHORT[node.dtype]}(-i8({x[0]}))"


def _remainder(node: Node, x: Sequence[str]) -> str:
    name = "modulo" if node.dtype in FLOATING else "remainder"
    return f"{SHORT[node.dtype]}({name}({x[0]}, {x[1]}))"


def _size(node: Node, x: Sequence[str]) -> str:
    return x[0] if node.dtype == "uint32" else f"{SHORT[node.dtype]}(abs({x[0]}))"


def _sign(node: Node, x: Sequence[str]) -> str:
    zero, unit = literal(0, node.dtype), literal(1, node.dtype)
    if node.dtype == "uint32":
        return f"sel({x[0]} > {zero}, {unit}, {zero})"
    if node.dtype not in FLOATING:
        return f"sel({x[0]} > {zero}, {unit}, sel({x[0]} < {zero}, {literal(-1, node.dtype)}, {zero}))"
    return f"sign({x[0]}, {zero}, {unit})"


def _floor(node: Node, x: Sequence[str]) -> str:
    return f"floor({x[0]})" if node.dtype in FLOATING else x[0]


def _write_narrowing(node: Node, x: Sequence[str]) -> str:
    rounded = f"to_{node.attrs['dtype']}({write_cast(x[0], node.dtype, 'float32')})"
    return write_cast(rounded, "float32", node.dtype)


def _pattern(pattern: str) -> Text:
    return lambda node, x: pattern.format(*x)


@frozen
class Scalar:
    """One scalar op: ``text`` writes it, ``symbol`` is its name in the C library (float32 appends an f).

    The result of a ``costly`` op is stored rather than computed twice.
    """

    text: Text
    symbol: str = ""
    costly: bool = False


def _function(symbol: str, fast: str = "") -> Scalar:
    """Return a call of a C library function, or of our own for float32."""

    def text(node: Node, x: Sequence[str]) -> str:
        return f"{fast if fast and node.dtype == 'float32' else symbol}({', '.join(x)})"

    return Scalar(text, symbol, costly=True)


SCALARS: dict[str, Scalar] = {
    "add": Scalar(_arithmetic),
    "sub": Scalar(_arithmetic),
    "mul": Scalar(_arithmetic),
    "div": Scalar(_arithmetic, costly=True),
    "maximum": Scalar(_larger),
    "minimum": Scalar(_larger),
    "mod": Scalar(_remainder, "fmod", costly=True),
    "neg": Scalar(_negative),
    "abs": Scalar(_size),
    "sign": Scalar(_sign),
    "floor": Scalar(_floor, "floor"),
    "sqrt": Scalar(_pattern("root({0})"), costly=True),
    "exp": _function("exp", "exponential"),
    "log": _function("log", "logarithm"),
    "tanh": _function("tanh", "tangent"),
    **{name: _function(name) for name in ("expm1", "log1p", "sin", "cos", "erf", "pow")},
    "equal": Scalar(_pattern("({0} == {1})")),
    "greater": Scalar(_pattern("({0} > {1})")),
    "greater_equal": Scalar(_pattern("({0} >= {1})")),
    "logical_and": Scalar(_pattern("({0} & {1})")),
    "logical_or": Scalar(_pattern("({0} | {1})")),
    "logical_not": Scalar(_pattern("(not {0})")),
    "is_finite": Scalar(_pattern("(abs({0}) < inf)")),
    "where": Scalar(_pattern("sel({0}, {1}, {2})")),
    "iota": Scalar(lambda node, x: literal(0, node.dtype)),  # scalars only: larger ones are computed in nests
    "cast": Scalar(lambda node, x: write_cast(x[0], node.inputs[0].dtype, node.dtype)),
    "reduce_precision": Scalar(_write_narrowing),
    "copy": Scalar(lambda node, x: x[0]),
    "later": Scalar(lambda node, x: x[0]),  # a barrier: it waits for its second operand
    "call": Scalar(lambda node, x: f"{node.attrs['symbol']}({', '.join(x)})", costly=True),  # see ``kernels``
}
COSTLY = frozenset({*(op for op, row in SCALARS.items() if row.costly), "random_bits"})
FROM_C = tuple(row.symbol for row in SCALARS.values() if row.symbol)


def text(node: Node, operands: Sequence[str]) -> str:
    """Return the expression of an elementwise node, given those of its operands."""
    return SCALARS[node.op].text(node, operands)
