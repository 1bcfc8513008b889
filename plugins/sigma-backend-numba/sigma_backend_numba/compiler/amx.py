"""Words for products of bfloat16 with AMX: numbers are packed in pairs, and multiplied in tile registers.

A tile has 16 rows of 64 bytes.  Of the eight, four hold sums of 16 x 16 float32, two hold 16 rows of 32 numbers of the
first operand, and two hold 16 rows of 16 pairs of the second (Intel 64 and IA-32 Architectures Software Developer's
Manual, TDPBF16PS).  The processor adds in float32, and flushes denormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sigma_backend_numba.compiler.lanes import SIDE, VOID, WORD, WORDS_OF, call_intrinsic, equal_words, put
from sigma_backend_numba.compiler.typed_values import BYTE, WIDE, Value, ir

_POINTER = BYTE.as_pointer()


def _round_words(b: Any, x: Value) -> Any:
    """Return words whose upper halves are numbers rounded to nearest, ties to even; NaN stays NaN."""
    bits = b.bitcast(x.ir, WORDS_OF)
    odd = b.and_(b.lshr(bits, equal_words(16)), equal_words(1))
    even = b.add(b.add(bits, equal_words(0x7FFF)), odd)
    return b.select(b.fcmp_unordered("uno", x.ir, x.ir), b.or_(bits, equal_words(0x400000)), even)


def _pairs(b: Any, to: Value, x: Value, y: Value) -> None:
    """Store 16 words: a number of ``x`` and then one of ``y`` in each."""
    low, high = b.lshr(_round_words(b, x), equal_words(16)), b.and_(_round_words(b, y), equal_words(-65536))
    put(b, to, b.or_(low, high))


def _halves(b: Any, to: Value, x: Value, y: Value) -> None:
    """Store 16 words: two neighbours of ``x`` in each of the first 8, of ``y`` in the others."""
    short = ir.VectorType(ir.IntType(16), SIDE)
    halves = [b.trunc(b.lshr(_round_words(b, operand), equal_words(16)), short) for operand in (x, y)]
    both = ir.Constant(ir.VectorType(WORD, 2 * SIDE), list(range(2 * SIDE)))
    put(b, to, b.shuffle_vector(*halves, both))


def _tile(number: int) -> Any:
    return ir.Constant(BYTE, number)


def _ready(b: Any, form: Value) -> None:
    """Set the form of the tiles: all have 16 rows of 64 bytes."""
    words = [1, 0, 0, 0, *[64 << 16 | 64] * 4, *[0] * 4, *[0x10101010] * 2, 0, 0]
    put(b, form, ir.Constant(WORDS_OF, words))
    call_intrinsic(b, "llvm.x86.ldtilecfg", VOID, [b.bitcast(form.ir, _POINTER)])


def _release_tiles(b: Any) -> None:
    """Release the tiles, so that switching threads need not save them."""
    call_intrinsic(b, "llvm.x86.tilerelease", VOID, [])


def _clear_sums(b: Any) -> None:
    """Begin four sums."""
    for number in range(4):
        call_intrinsic(b, "llvm.x86.tilezero", VOID, [_tile(number)])


def _multiply_tiles(b: Any, *operands: Value) -> None:
    """Add the products of two tiles of the first operand and two of the second to the four sums."""
    _add_products(b, operands, _line())


def _multiply_rows(b: Any, *given: Value) -> None:
    """Add such products; the rows of the second operand are as many words apart as the last argument says."""
    *operands, apart = given
    _add_products(b, operands, b.mul(apart.ir, ir.Constant(WIDE, 4)))


def _add_products(b: Any, operands: Sequence[Value], apart: Any) -> None:
    """Load four tiles, and add their products; rows of the last two are ``apart`` bytes apart."""
    for number, place in enumerate(operands, 4):
        step = _line() if number < 6 else apart
        call_intrinsic(b, "llvm.x86.tileloadd64", VOID, [_tile(number), b.bitcast(place.ir, _POINTER), step])
    for number in range(4):
        operands_of = [_tile(number), _tile(4 + number // 2), _tile(6 + number % 2)]
        call_intrinsic(b, "llvm.x86.tdpbf16ps", VOID, operands_of)


def _store_sums(b: Any, to: Value) -> None:
    """Store the four sums, one after the other."""
    for number in range(4):
        place = b.gep(to.ir, [ir.Constant(WIDE, number * SIDE * SIDE)], inbounds=True)
        call_intrinsic(b, "llvm.x86.tilestored64", VOID, [_tile(number), b.bitcast(place, _POINTER), _line()])


def _line() -> Any:
    return ir.Constant(WIDE, 4 * SIDE)


WORDS: dict[str, Callable[..., None]] = {
    "pairs": _pairs, "halves": _halves, "tiles_ready": _ready, "tiles_done": _release_tiles,
    "tiles_cleared": _clear_sums, "tiles_multiplied": _multiply_tiles, "rows_multiplied": _multiply_rows,
    "tiles_kept": _store_sums,
}  # fmt: skip
