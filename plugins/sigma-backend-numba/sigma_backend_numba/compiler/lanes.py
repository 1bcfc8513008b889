"""Helpers and words for vectors of 16 numbers of 32 bits, of which the first few are read or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sigma_backend_numba.compiler import typed_values
from sigma_backend_numba.compiler.typed_values import TYPES, WIDE, Value, ir

SIDE = 16  # numbers of a vector
WORD, VOID = TYPES["i4"], ir.VoidType()
WORDS_OF, FLOATS_OF, _MASK = (ir.VectorType(kind, SIDE) for kind in (WORD, TYPES["f4"], ir.IntType(1)))


def call_intrinsic(b: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    """Call an intrinsic function of LLVM."""
    declaration = b.module.globals.get(name)
    kind = ir.FunctionType(result, [x.type for x in operands])
    return b.call(declaration or ir.Function(b.module, kind, name), operands)


def equal_words(number: int) -> Any:
    """Return a vector of equal words."""
    return ir.Constant(WORDS_OF, [number] * SIDE)


def broadcast_word(b: Any, word: Any) -> Any:
    """Broadcast a word to a vector."""
    vector = b.insert_element(ir.Constant(WORDS_OF, ir.Undefined), word, ir.Constant(WORD, 0))
    return b.shuffle_vector(vector, ir.Constant(WORDS_OF, ir.Undefined), equal_words(0))


def put(b: Any, to: Value, words: Any) -> None:
    """Store a vector of any kind."""
    b.store(words, b.bitcast(to.ir, words.type.as_pointer()), align=4)


def offset_pointer(b: Any, pointer: Any, elements: Any) -> Any:
    """Move a pointer by a number of elements."""
    distance = ir.Constant(WIDE, elements) if isinstance(elements, int) else elements
    return b.gep(pointer, [distance], inbounds=True)


@contextmanager
def write_loop(b: Any, stop: Any, step: int = 1) -> Iterator[Any]:
    """Repeat the code written inside for each number from 0 to below ``stop``."""
    with b.goto_entry_block():
        counter = b.alloca(WIDE)
    b.store(ir.Constant(WIDE, 0), counter)
    head, body, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    count = b.load(counter)
    b.cbranch(b.icmp_signed("<", count, stop), body, after)
    b.position_at_end(body)
    yield count
    b.store(b.add(count, ir.Constant(WIDE, step), flags=("nsw",)), counter)
    b.branch(head)
    b.position_at_end(after)


def _mask(b: Any, count: Value) -> Any:
    """Return which of 16 lanes are below a count."""
    every = broadcast_word(b, b.trunc(typed_values.convert(b, count, "i8").ir, WORD))
    return b.icmp_signed("<", ir.Constant(WORDS_OF, list(range(SIDE))), every)


def _load_first(b: Any, pointer: Value, count: Value) -> Value:
    """Load the first ``count`` of 16 numbers; the others are 0, and are not read."""
    operands = [pointer.ir, ir.Constant(WORD, 4), _mask(b, count), ir.Constant(FLOATS_OF, None)]
    return Value("f4x16", call_intrinsic(b, "llvm.masked.load.v16f32.p0", FLOATS_OF, operands))


def _store_first(b: Any, pointer: Value, x: Value, count: Value) -> None:
    """Store the first ``count`` of 16 numbers."""
    operands = [x.ir, pointer.ir, ir.Constant(WORD, 4), _mask(b, count)]
    call_intrinsic(b, "llvm.masked.store.v16f32.p0", VOID, operands)


def store_lanes(b: Any, pointer: Value, x: Value, count: Value, added: Value) -> None:
    """Store the first ``count`` of 16 numbers, or add them to those in memory."""
    lanes = _mask(b, count)
    also = b.select(added.ir, lanes, ir.Constant(lanes.type, None))
    operands = [pointer.ir, ir.Constant(WORD, 4), also, ir.Constant(FLOATS_OF, None)]
    before = call_intrinsic(b, "llvm.masked.load.v16f32.p0", FLOATS_OF, operands)
    call_intrinsic(
        b, "llvm.masked.store.v16f32.p0", VOID, [b.fadd(x.ir, before), pointer.ir, ir.Constant(WORD, 4), lanes]
    )


WORDS: dict[str, Callable[..., Value | None]] = {"some": _load_first, "stored": _store_first}
