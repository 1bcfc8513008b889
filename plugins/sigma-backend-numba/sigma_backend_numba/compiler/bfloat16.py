"""Words for products of bfloat16 with AMX: numbers are packed in pairs, and multiplied in tile registers.

A tile has 16 rows of 64 bytes.  Of the eight, four hold sums of 16 x 16 float32, two hold 16 rows of 32 numbers of the
first operand, and two hold 16 rows of 16 pairs of the second (Intel 64 and IA-32 Architectures Software Developer's
Manual, TDPBF16PS).  The processor adds in float32, and flushes denormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sigma_backend_numba.compiler import typed_values
from sigma_backend_numba.compiler.typed_values import BYTE, TYPES, WIDE, Value, ir

SIDE = 16  # rows of a tile, and words of 32 bits in one
_WORD, _VOID = TYPES["i4"], ir.VoidType()
_WORDS, _FLOATS, _MASK = (ir.VectorType(kind, SIDE) for kind in (_WORD, TYPES["f4"], ir.IntType(1)))
_POINTER = BYTE.as_pointer()


def _called(b: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    found = b.module.globals.get(name)
    kind = ir.FunctionType(result, [x.type for x in operands])
    return b.call(found or ir.Function(b.module, kind, name), operands)


def _each(number: int) -> Any:
    return ir.Constant(_WORDS, [number] * SIDE)


def _mask(b: Any, count: Value) -> Any:
    """Return which of 16 lanes are below a count."""
    narrow = b.trunc(typed_values.converted(b, count, "i8").ir, _WORD)
    one = b.insert_element(ir.Constant(_WORDS, ir.Undefined), narrow, ir.Constant(_WORD, 0))
    every = b.shuffle_vector(one, ir.Constant(_WORDS, ir.Undefined), _each(0))
    return b.icmp_signed("<", ir.Constant(_WORDS, list(range(SIDE))), every)


def _some(b: Any, pointer: Value, count: Value) -> Value:
    """Load the first ``count`` of 16 numbers; the others are 0, and are not read."""
    operands = [pointer.ir, ir.Constant(_WORD, 4), _mask(b, count), ir.Constant(_FLOATS, None)]
    return Value("f4x16", _called(b, "llvm.masked.load.v16f32.p0", _FLOATS, operands))


def _stored(b: Any, pointer: Value, x: Value, count: Value) -> None:
    """Store the first ``count`` of 16 numbers."""
    operands = [x.ir, pointer.ir, ir.Constant(_WORD, 4), _mask(b, count)]
    _called(b, "llvm.masked.store.v16f32.p0", _VOID, operands)


def _rounded(b: Any, x: Value) -> Any:
    """Return words whose upper halves are numbers rounded to nearest, ties to even; NaN stays NaN."""
    bits = b.bitcast(x.ir, _WORDS)
    odd = b.and_(b.lshr(bits, _each(16)), _each(1))
    even = b.add(b.add(bits, _each(0x7FFF)), odd)
    return b.select(b.fcmp_unordered("uno", x.ir, x.ir), b.or_(bits, _each(0x400000)), even)


def _put(b: Any, to: Value, words: Any) -> None:
    b.store(words, b.bitcast(to.ir, words.type.as_pointer()), align=4)


def _pairs(b: Any, to: Value, x: Value, y: Value) -> None:
    """Store 16 words: a number of ``x`` and then one of ``y`` in each."""
    low, high = b.lshr(_rounded(b, x), _each(16)), b.and_(_rounded(b, y), _each(-65536))
    _put(b, to, b.or_(low, high))


def _halves(b: Any, to: Value, x: Value, y: Value) -> None:
    """Store 16 words: two neighbours of ``x`` in each of the first 8, of ``y`` in the others."""
    short = ir.VectorType(ir.IntType(16), SIDE)
    halves = [b.trunc(b.lshr(_rounded(b, each), _each(16)), short) for each in (x, y)]
    both = ir.Constant(ir.VectorType(_WORD, 2 * SIDE), list(range(2 * SIDE)))
    _put(b, to, b.shuffle_vector(*halves, both))


def _tile(number: int) -> Any:
    return ir.Constant(BYTE, number)


def _ready(b: Any, form: Value) -> None:
    """Set the form of the tiles: all have 16 rows of 64 bytes."""
    words = [1, 0, 0, 0, *[64 << 16 | 64] * 4, *[0] * 4, *[0x10101010] * 2, 0, 0]
    _put(b, form, ir.Constant(_WORDS, words))
    _called(b, "llvm.x86.ldtilecfg", _VOID, [b.bitcast(form.ir, _POINTER)])


def _done(b: Any) -> None:
    """Release the tiles, so that switching threads need not save them."""
    _called(b, "llvm.x86.tilerelease", _VOID, [])


def _cleared(b: Any) -> None:
    """Begin four sums."""
    for number in range(4):
        _called(b, "llvm.x86.tilezero", _VOID, [_tile(number)])


def _multiplied(b: Any, *operands: Value) -> None:
    """Add the products of two tiles of the first operand and two of the second to the four sums."""
    for number, place in enumerate(operands, 4):
        _called(b, "llvm.x86.tileloadd64", _VOID, [_tile(number), b.bitcast(place.ir, _POINTER), _line()])
    for number in range(4):
        operands_of = [_tile(number), _tile(4 + number // 2), _tile(6 + number % 2)]
        _called(b, "llvm.x86.tdpbf16ps", _VOID, operands_of)


def _kept(b: Any, to: Value) -> None:
    """Store the four sums, one after the other."""
    for number in range(4):
        place = b.gep(to.ir, [ir.Constant(WIDE, number * SIDE * SIDE)], inbounds=True)
        _called(b, "llvm.x86.tilestored64", _VOID, [_tile(number), b.bitcast(place, _POINTER), _line()])


def _line() -> Any:
    return ir.Constant(WIDE, 4 * SIDE)


WORDS: dict[str, Callable[..., Value | None]] = {
    "some": _some, "stored": _stored, "pairs": _pairs, "halves": _halves, "tiles_ready": _ready,
    "tiles_done": _done, "tiles_cleared": _cleared, "tiles_multiplied": _multiplied, "tiles_kept": _kept,
}  # fmt: skip
