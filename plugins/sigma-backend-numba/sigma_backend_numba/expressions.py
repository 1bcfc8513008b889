"""The text of each elementwise op in generated code, and of the numbers in it.

Every expression has the dtype of its node: numba would widen integers otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sigma_kernel.graph.node import Node

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
    """Return the number that no number of a dtype lies below."""
    least = {"int32": -(2**31), "int64": -(2**63), "uint32": 0}
    return literal(least.get(dtype, -math.inf), dtype) if dtype != "int64" else "i8(-9223372036854775807 - 1)"


def converted(text: str, source: str, to: str) -> str:
    """Return a value in another dtype: integers wrap, floats are cut off, at the ends of a range too."""
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
    """Compare with a number in one instruction: it is not NaN."""
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
    zero, one = literal(0, node.dtype), literal(1, node.dtype)
    if node.dtype == "uint32":
        return f"sel({x[0]} > {zero}, {one}, {zero})"
    if node.dtype not in FLOATING:
        return f"sel({x[0]} > {zero}, {one}, sel({x[0]} < {zero}, {literal(-1, node.dtype)}, {zero}))"
    return f"sign({x[0]}, {zero}, {one})"


def _floor(node: Node, x: Sequence[str]) -> str:
    return f"floor({x[0]})" if node.dtype in FLOATING else x[0]


def _library(name: str, fast: str = "") -> Text:
    """Return a function of the C library, or of our own for float32."""

    def text(node: Node, x: Sequence[str]) -> str:
        if fast and node.dtype == "float32":
            return f"{fast}({x[0]})"
        return f"{name}({', '.join(x)})"

    return text


def _pattern(pattern: str) -> Text:
    return lambda node, x: pattern.format(*x, t=SHORT.get(node.dtype, ""))


EXPRESSIONS: dict[str, Text] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), _arithmetic),
    **dict.fromkeys(("maximum", "minimum"), _larger),
    "pow": _library("pow"),
    "mod": _remainder,
    "neg": _negative,
    "abs": _size,
    "sign": _sign,
    "floor": _floor,
    "exp": _library("exp", "exponential"),
    "log": _library("log", "logarithm"),
    "tanh": _library("tanh", "tangent"),
    **{name: _library(name) for name in ("expm1", "log1p", "sin", "cos", "erf")},
    "sqrt": _pattern("root({0})"),
    "equal": _pattern("({0} == {1})"),
    "greater": _pattern("({0} > {1})"),
    "greater_equal": _pattern("({0} >= {1})"),
    "logical_and": _pattern("({0} & {1})"),
    "logical_or": _pattern("({0} | {1})"),
    "logical_not": _pattern("(not {0})"),
    "is_finite": _pattern("(abs({0}) < inf)"),
    "where": _pattern("sel({0}, {1}, {2})"),
    "iota": lambda node, x: literal(0, node.dtype),  # of one element: of more, nests count
}
COSTLY = frozenset({
    "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "erf", "pow", "div", "mod", "random_bits",
})  # fmt: skip  # worth a place in memory rather than a second time


def text(node: Node, operands: Sequence[str]) -> str:
    """Return the value of an elementwise node, given those of its operands."""
    if node.op == "copy":
        return operands[0]
    if node.op == "cast":
        return converted(operands[0], node.inputs[0].dtype, node.dtype)
    return EXPRESSIONS[node.op](node, operands)
