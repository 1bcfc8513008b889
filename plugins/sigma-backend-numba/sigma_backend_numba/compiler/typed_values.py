"""Typed values: widening, conversion, arithmetic and comparison.

Integers are computed in 64 bits, like NumPy's scalars; ``i4(x + y)`` marks where they wrap.  ``contract`` is the only
freedom of floating-point arithmetic: ``a * b + c`` may be one instruction, and NaN and infinity are kept.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from attrs import frozen

ir: Any = import_module("llvmlite.ir")  # without type annotations
BIT, BYTE, WIDE = ir.IntType(1), ir.IntType(8), ir.IntType(64)
LANES = (1, 2, 3, 4, 8, 16)  # elements of a vector
TYPES: dict[str, Any] = {
    "b1": BIT, "i1": BYTE, "i2": ir.IntType(16), "i4": ir.IntType(32), "i8": WIDE, "u4": ir.IntType(32), "u8": WIDE,
    "f4": ir.FloatType(), "f8": ir.DoubleType(),
}  # fmt: skip
TYPES |= {f"{kind}x{n}": ir.VectorType(TYPES[kind], n) for kind in ("f4", "f8", "i4") for n in LANES}  # vectors
UNSIGNED = ("b1", "u4", "u8")
FLOATS = frozenset(kind for kind in TYPES if kind[0] == "f")
BYTES = {"f4": 4, "f8": 8, "i4": 4}
WIDTHS = {"b1": 1, "i1": 8, "i4": 32, "i8": 64, "u4": 32, "u8": 64}
SCALARS = {"int8": "i1", "int32": "i4", "int64": "i8", "uint32": "u4", "uint64": "u8", "float32": "f4", "float64": "f8"}
SIGNS = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@frozen
class Value:
    """A number, or a pointer to numbers (kind ``*f4``)."""

    kind: str
    ir: Any


def ir_type(kind: str) -> Any:
    """Return the LLVM type of a kind."""
    return TYPES[kind[1:]].as_pointer() if kind.startswith("*") else TYPES[kind]


def number(value: Any, kind: str = "") -> Value:
    """Return a Python or NumPy number as a value."""
    if not kind:
        if isinstance(value, np.generic):
            kind = SCALARS.get(str(value.dtype), "b1")
        else:
            kind = "b1" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"
    if kind in FLOATS:
        return Value(kind, ir.Constant(TYPES[kind], float(np.float32(value)) if kind == "f4" else float(value)))
    return Value(kind, ir.Constant(TYPES[kind], int(value)))


def convert(b: Any, value: Value, kind: str) -> Value:
    """Convert a value to another kind: integers wrap, fractions are truncated."""
    if value.kind == kind:
        return value
    if isinstance(value.ir, ir.Constant) and _is_finite_number(value.ir.constant) and (kind != "b1"):
        constant = value.ir.constant
        if kind in FLOATS or value.kind not in FLOATS:
            return number(constant, kind)
    return Value(kind, _conversion(b, value, kind))


def _is_finite_number(constant: Any) -> bool:
    return isinstance(constant, (int, float)) and math.isfinite(constant)


def _conversion(b: Any, value: Value, kind: str) -> Any:
    to, source = TYPES[kind], value.kind
    if kind == "b1":
        return b.fcmp_unordered("!=", value.ir, ir.Constant(TYPES[source], 0.0)) if source in FLOATS else b.icmp_signed(
            "!=", value.ir, ir.Constant(TYPES[source], 0)
        )  # fmt: skip
    if source in FLOATS and kind in FLOATS:
        return b.fpext(value.ir, to) if kind == "f8" else b.fptrunc(value.ir, to)
    if source in FLOATS:
        return b.fptoui(value.ir, to) if kind in UNSIGNED else b.fptosi(value.ir, to)
    if kind in FLOATS:
        return b.uitofp(value.ir, to) if source in UNSIGNED else b.sitofp(value.ir, to)
    if WIDTHS[kind] < WIDTHS[source]:
        return b.trunc(value.ir, to)
    if WIDTHS[kind] == WIDTHS[source]:
        return value.ir
    return b.zext(value.ir, to) if source in UNSIGNED else b.sext(value.ir, to)


def common(x: str, y: str) -> str:
    """Return the common kind of two operands."""
    if x == y and (x in FLOATS or x == "b1" or "x" in x):
        return x
    if x in FLOATS or y in FLOATS:
        return "f8"
    return "u8" if {x, y} <= {"u4", "u8"} else "i8"


def arithmetic(b: Any, sign: str, x: Value, y: Value) -> Value:
    """Return the result of an operator."""
    kind = common(x.kind, y.kind)
    if kind == "b1" and sign not in ("&", "|", "^"):
        kind = "i8"
    kind = "f8" if sign == "/" and kind not in FLOATS else kind
    first, second = convert(b, x, kind).ir, convert(b, y, kind).ir
    if kind in FLOATS:
        make = {"+": b.fadd, "-": b.fsub, "*": b.fmul, "/": b.fdiv}[sign]
        return Value(kind, make(first, second, flags=("contract",)))
    if sign in ("//", "%"):
        return Value(kind, _divide_and_floor(b, sign, kind, first, second))
    simple = {"&": b.and_, "|": b.or_, "^": b.xor, "<<": b.shl, ">>": b.lshr if kind == "u8" else b.ashr}
    if sign in simple:
        return Value(kind, simple[sign](first, second))
    make = {"+": b.add, "-": b.sub, "*": b.mul}[sign]
    return Value(kind, make(first, second))


def _divide_and_floor(b: Any, sign: str, kind: str, x: Any, y: Any) -> Any:
    """Return a quotient or remainder of integers, rounded down."""
    if kind == "u8":
        return b.udiv(x, y) if sign == "//" else b.urem(x, y)
    zero = ir.Constant(WIDE, 0)
    rest = b.srem(x, y)
    off = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(rest, y), zero))
    if sign == "%":
        return b.add(rest, b.select(off, y, zero))
    return b.sub(b.sdiv(x, y), b.zext(off, WIDE))


def compare(b: Any, sign: str, x: Value, y: Value) -> Value:
    """Return the result of a comparison; only NaN is unequal to itself."""
    kind = common(x.kind, y.kind)
    first, second = convert(b, x, kind).ir, convert(b, y, kind).ir
    if kind in FLOATS:
        return Value("b1", (b.fcmp_unordered if sign == "!=" else b.fcmp_ordered)(sign, first, second))
    return Value("b1", (b.icmp_unsigned if kind in UNSIGNED else b.icmp_signed)(sign, first, second))


def negative(b: Any, x: Value) -> Value:
    """Return the negated number."""
    if x.kind in FLOATS:
        return Value(x.kind, b.fneg(x.ir, flags=("contract",)))
    wide = convert(b, x, "i8")
    return Value("i8", b.neg(wide.ir))


def select_value(b: Any, condition: Value, x: Value, y: Value) -> Value:
    """Select without a branch; both choices are converted to the kind of the first."""
    other = y if x.kind.startswith("*") else convert(b, y, x.kind)
    return Value(x.kind, b.select(truth(b, condition), x.ir, other.ir))


def truth(b: Any, x: Value) -> Any:
    """Return a condition as a bit."""
    return convert(b, x, "b1").ir
