"""Words for products of bfloat16 with AVX-512: numbers are packed in pairs, and multiplied in vector registers.

A pair is a word of 32 bits.  Vectors of words have the kind of vectors of float32, and so do words in memory.

A vector holds one pair of the inner axis of each of 16 columns.  It is multiplied by a pair of a row, and the products
are added to 16 sums of float32, first those of the second numbers and then those of the first (AMD64 Architecture
Programmer's Manual, VDPBF16PS).  The processor rounds to nearest after each, and flushes denormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sigma_backend_numba.compiler.lanes import (
    FLOATS_OF,
    SIDE,
    WORD,
    WORDS_OF,
    broadcast_word,
    call_intrinsic,
    offset_pointer,
    store_lanes,
    write_loop,
)
from sigma_backend_numba.compiler.tile_sizes import DOT_DEEP, DOT_FEW
from sigma_backend_numba.compiler.typed_values import TYPES, WIDE, Value, ir

VECTORS = 2  # of a block of sums: those stay in registers, and hide the latency of additions


class _Bfloat(ir.Type):  # type: ignore[misc]  # llvmlite has no such type
    """LLVM's type of a number of bfloat16."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bfloat)

    def __hash__(self) -> int:
        return hash(_Bfloat)


_PAIRS = ir.VectorType(_Bfloat(), 2 * SIDE)


def _join_vectors(b: Any, x: Value, y: Value) -> Any:
    """Return the rounded numbers of one vector, and then those of another; NaN stays NaN."""
    return call_intrinsic(b, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", _PAIRS, [y.ir, x.ir])


def _pairs(b: Any, x: Value, y: Value) -> Value:
    """Return 16 words: a number of ``x`` and then one of ``y`` in each."""
    joined = _join_vectors(b, x, y)
    turns = ir.Constant(ir.VectorType(WORD, 2 * SIDE), [k // 2 + k % 2 * SIDE for k in range(2 * SIDE)])
    return _words(b, b.shuffle_vector(joined, joined, turns))


def _halves(b: Any, x: Value, y: Value) -> Value:
    """Return 16 words: two neighbours of ``x`` in each of the first 8, of ``y`` in the others."""
    return _words(b, _join_vectors(b, x, y))


def _words(b: Any, pairs: Any) -> Value:
    return Value("f4x16", b.bitcast(pairs, FLOATS_OF))


def _add_dot_product(b: Any, total: Value, x: Value, y: Value) -> Value:
    """Return 16 sums, to which the products of both numbers of each word are added."""
    return Value("f4x16", _dot(b, total.ir, b.bitcast(x.ir, _PAIRS), b.bitcast(y.ir, _PAIRS)))


def _dot(b: Any, total: Any, x: Any, y: Any) -> Any:
    return call_intrinsic(b, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS_OF, [total, x, y])


def _neighbours(b: Any, pointer: Value) -> Value:
    """Return the word of a number of bfloat16 and the next one, at any address."""
    word = b.load(b.bitcast(pointer.ir, WORD.as_pointer()), align=2)
    return Value("f4", b.bitcast(word, TYPES["f4"]))


def _single(b: Any, pointer: Value) -> Value:
    """Return the word of a number of bfloat16 and zero."""
    return Value("f4", b.bitcast(b.zext(b.load(pointer.ir, align=2), WORD), TYPES["f4"]))


def _dots(rows: int) -> Callable[..., None]:
    """Write, or add, a block of this many rows and 32 columns of the result."""

    def meaning(
        b: Any, left: Value, right: Value, count: Value, to: Value, apart: Value, most: Value, columns: Value,
        scale: Value, added: Value,
    ) -> None:  # fmt: skip
        with b.goto_entry_block():
            sums = [[b.alloca(FLOATS_OF) for _ in range(VECTORS)] for _ in range(rows)]
        for place in (place for row in sums for place in row):
            b.store(ir.Constant(FLOATS_OF, None), place)
        with write_loop(b, count.ir) as pair:
            of_row, of_column = (
                offset_pointer(b, left.ir, b.mul(pair, _wide_constant(DOT_DEEP))),
                b.mul(pair, _wide_constant(VECTORS * SIDE)),
            )
            under = [
                _vector(b, offset_pointer(b, right.ir, b.add(of_column, _wide_constant(k * SIDE))))
                for k in range(VECTORS)
            ]
            for r, row in enumerate(sums):
                factor = b.bitcast(broadcast_word(b, b.load(offset_pointer(b, of_row, r))), _PAIRS)
                for place, other in zip(row, under, strict=True):
                    b.store(_dot(b, b.load(place), factor, b.bitcast(other, _PAIRS)), place)
        by = b.bitcast(broadcast_word(b, b.bitcast(scale.ir, WORD)), FLOATS_OF)
        for r, row in enumerate(sums):
            with b.if_then(b.icmp_signed("<", _wide_constant(r), most.ir)):
                for k, place in enumerate(row):
                    target = Value(
                        "*f4",
                        offset_pointer(b, to.ir, b.add(b.mul(apart.ir, _wide_constant(r)), _wide_constant(k * SIDE))),
                    )
                    here = Value("i8", b.sub(columns.ir, _wide_constant(k * SIDE)))
                    store_lanes(b, target, Value("f4x16", b.fmul(b.load(place), by)), here, added)

    return meaning


def _wide_constant(number: int) -> Any:
    return ir.Constant(WIDE, number)


def _vector(b: Any, pointer: Any) -> Any:
    return b.load(b.bitcast(pointer, WORDS_OF.as_pointer()), align=4)


WORDS: dict[str, Callable[..., Value | None]] = {
    "joined_pairs": _pairs, "joined_halves": _halves, "dots": _dots(DOT_DEEP), "few_dots": _dots(DOT_FEW),
    "dotted": _add_dot_product, "neighbours": _neighbours, "single": _single,
}  # fmt: skip
