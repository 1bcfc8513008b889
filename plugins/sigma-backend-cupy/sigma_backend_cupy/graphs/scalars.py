"""The table of scalar ops: for each, its text in CUDA C++."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sigma_kernel.graph import Node

CTYPES = {
    "float32": "float", "float64": "double", "int32": "int", "int64": "wide", "uint32": "word", "bool": "bool",
    "bfloat16": "bfloat16", "float16": "float16",
}  # fmt: skip
FLOATING = ("float32", "float64")
Text = Callable[[Node, Sequence[str]], str]


def literal(value: float, dtype: str) -> str:
    """Return a number as text of its dtype."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in FLOATING:
        whole = int(value)
        return f"{whole}u" if dtype == "uint32" else _integer_literal(whole, "ll" if dtype == "int64" else "")
    end, zero = ("f", "0.0f") if dtype == "float32" else ("", "0.0")
    number = float(np.float32(value)) if dtype == "float32" else float(value)
    if math.isnan(number):
        return f"({zero} / {zero})"
    if math.isinf(number):
        return f"({'-' if number < 0 else ''}1.0{end} / {zero})"
    text = str(np.float32(value)) if dtype == "float32" else repr(number)
    return f"{text}{end}" if number > 0 or not math.copysign(1.0, number) < 0 else f"({text}{end})"


def _integer_literal(value: int, end: str) -> str:
    """Return an integer; the lowest one of a type is no literal of C."""
    least = -(2**63) if end else -(2**31)
    return f"({value + 1}{end} - 1{end})" if value == least else f"({value}{end})" if value < 0 else f"{value}{end}"


def lowest(dtype: str) -> str:
    """Return the lowest number of a dtype."""
    return literal({"int32": -(2**31), "int64": -(2**63), "uint32": 0}.get(dtype, -math.inf), dtype)


def write_cast(text: str, source: str, to: str) -> str:
    """Return a value in another dtype: integers wrap, floats are clipped to the range of an integer dtype."""
    if source == to:
        return text
    if to == "bool":
        return f"({text} != {literal(0, source)})"
    if to in ("bfloat16", "float16"):
        return f"sg_{to}({write_cast(text, source, 'float32')})"
    if source in FLOATING and to not in FLOATING:
        return f"sg_{CTYPES[to]}({text})"
    return f"({CTYPES[to]})({text})"


def _sign(sign: str, name: str) -> Text:
    def text(node: Node, x: Sequence[str]) -> str:
        own = node.dtype in ("int32", "int64")
        return f"{name}({x[0]}, {x[1]})" if own else f"({x[0]} {sign} {x[1]})"

    return text


def _function(name: str) -> Text:
    """Return a call of a C function, whose name for float32 ends in f."""
    return lambda node, x: f"{name}{'f' if node.dtype == 'float32' else ''}({', '.join(x)})"


def _pattern(pattern: str) -> Text:
    return lambda node, x: pattern.format(*x)


def _write_narrowing(node: Node, x: Sequence[str]) -> str:
    rounded = f"sg_to_{node.attrs['dtype']}({write_cast(x[0], node.dtype, 'float32')})"
    return write_cast(rounded, "float32", node.dtype)


def _random(node: Node, x: Sequence[str]) -> str:
    width = math.prod(node.shape[1:])
    first, second, iteration, row, scan, element = x
    number = f"(uwide){row} * {width}u + (uwide)({element})"
    return f"sg_random({number}, {node.attrs['stream']}u, {iteration}, {scan}, {first}, {second})"


SCALARS: Mapping[str, Text] = {
    "add": _sign("+", "sg_add"),
    "sub": _sign("-", "sg_sub"),
    "mul": _sign("*", "sg_mul"),
    "div": _pattern("({0} / {1})"),
    "mod": _pattern("sg_mod({0}, {1})"),
    "maximum": _pattern("sg_maximum({0}, {1})"),
    "minimum": _pattern("sg_minimum({0}, {1})"),
    "neg": lambda node, x: f"(-{x[0]})" if node.dtype in FLOATING else f"sg_neg({x[0]})",
    "abs": _pattern("sg_abs({0})"),
    "sign": _pattern("sg_sign({0})"),
    "floor": lambda node, x: _function("floor")(node, x) if node.dtype in FLOATING else x[0],
    **{name: _function(name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "erf", "pow")},
    "equal": _pattern("({0} == {1})"),
    "greater": _pattern("({0} > {1})"),
    "greater_equal": _pattern("({0} >= {1})"),
    "logical_and": _pattern("({0} && {1})"),
    "logical_or": _pattern("({0} || {1})"),
    "logical_not": _pattern("(!{0})"),
    "is_finite": _pattern("({0} - {0} == 0)"),
    "where": _pattern("({0} ? {1} : {2})"),
    "cast": lambda node, x: write_cast(x[0], node.inputs[0].dtype, node.dtype),
    "reduce_precision": _write_narrowing,
    "copy": lambda node, x: x[0],
    "stop": lambda node, x: x[0],
    "random_bits": _random,
}
