"""Translate calls of built-in words to LLVM instructions, or to functions of the C library and of BLAS."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import Any

from sigma_backend_numba.compiler import typed_values
from sigma_backend_numba.compiler.language import NUMBERS, Outside
from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.compiler.typed_values import BYTE, FLOATS, TYPES, WIDE, Value, convert, ir, ir_type, number
from sigma_backend_numba.scalars import FROM_C

MACHINE = platform.machine().lower()
X86, ARM = MACHINE in ("x86_64", "amd64"), MACHINE in ("aarch64", "arm64")
Meaning = Callable[..., Value | None]
_VOID, _HALF = ir.VoidType(), TYPES["i4"]
_MATRIX = ("i4",) * 6
EXTERNAL = (
    Outside("sigma_yield", "i4", ()),
    Outside("sigma_nap", "i4", ("i4",)),
    Outside("sigma_sgemm", "", (*_MATRIX, "f4", "*f4", "i4", "*f4", "i4", "f4", "*f4", "i4")),
    Outside("sigma_dgemm", "", (*_MATRIX, "f8", "*f8", "i4", "*f8", "i4", "f8", "*f8", "i4")),
)


def function(b: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    """Declare an external function."""
    declaration = b.module.globals.get(name)
    return declaration or ir.Function(b.module, ir.FunctionType(result, operands), name)


def external(b: Any, outside: Outside, operands: Sequence[Value]) -> Value | None:
    """Call an external function."""
    wanted = outside.operands
    given = [x.ir if kind[0] == "*" else convert(b, x, kind).ir for x, kind in zip(operands, wanted, strict=True)]
    to = ir_type(outside.result) if outside.result else _VOID
    called = b.call(function(b, outside.symbol, to, [ir_type(kind) for kind in wanted]), given)
    return Value(outside.result, called) if outside.result else None


def c_function(b: Any, name: str, *operands: Value) -> Value:
    """Call a function of the C library, in the precision of its first operand."""
    kind = operands[0].kind if operands[0].kind in FLOATS else "f8"
    given = [_flush_denormal(b, kind, convert(b, x, kind).ir) for x in operands]
    called = function(b, name + ("f" if kind == "f4" else ""), TYPES[kind], [TYPES[kind]] * len(given))
    return Value(kind, b.call(called, given))


def _flush_denormal(b: Any, kind: str, x: Any) -> Any:
    """Replace a denormal number by a zero of its sign: the library would read bits that arithmetic here flushes to 0.

    LLVM does not know that, and would drop a comparison or a product of floats; so this is done with integers.
    """
    whole, exponent, sign = (_HALF, 0x7F800000, 1 << 31) if kind == "f4" else (WIDE, 0x7FF << 52, 1 << 63)
    bits = b.bitcast(x, whole)
    small = b.icmp_unsigned("==", b.and_(bits, ir.Constant(whole, exponent)), ir.Constant(whole, 0))
    return b.bitcast(b.select(small, b.and_(bits, ir.Constant(whole, sign)), bits), TYPES[kind])


def _unary(b: Any, name: str, x: Value) -> Value:
    """Call an intrinsic function of LLVM on a float."""
    kind = x.kind if x.kind in FLOATS else "f8"
    suffix = "f32" if kind == "f4" else "f64"
    called = function(b, f"llvm.{name}.{suffix}", TYPES[kind], [TYPES[kind]])
    return Value(kind, b.call(called, [convert(b, x, kind).ir], fastmath=("contract",)))


def _cut(kind: str) -> Meaning:
    """Convert a float to an integer, clamped to its range; NaN becomes 0."""
    way, width = "ui" if kind in typed_values.UNSIGNED else "si", typed_values.WIDTHS[kind]

    def meaning(b: Any, x: Value) -> Value:
        called = function(
            b, f"llvm.fpto{way}.sat.i{width}.f{8 * typed_values.BYTES[x.kind]}", TYPES[kind], [TYPES[x.kind]]
        )
        return Value(kind, b.call(called, [x.ir]))

    return meaning


def _size(b: Any, x: Value) -> Value:
    if x.kind in FLOATS:
        return _unary(b, "fabs", x)
    wide = convert(b, x, "i8")
    return typed_values.select_value(
        b, typed_values.compare(b, "<", wide, number(0)), typed_values.negative(b, wide), wide
    )


def _lesser(b: Any, x: Value, y: Value) -> Value:
    return typed_values.select_value(b, typed_values.compare(b, "<", y, x), y, x)


def _greater(b: Any, x: Value, y: Value) -> Value:
    return typed_values.select_value(b, typed_values.compare(b, ">", y, x), y, x)


def _pointer(kind: str) -> Meaning:
    return lambda b, x: Value(f"*{kind}", b.inttoptr(x.ir, ir_type(f"*{kind}")))


def _cast(kind: str) -> Meaning:
    return lambda b, x: convert(b, x, kind)


def _move_pointer(b: Any, pointer: Value, offset: Value) -> Value:
    """Move a pointer by a number of elements."""
    return Value(pointer.kind, b.gep(pointer.ir, [convert(b, offset, "i8").ir], inbounds=True))


def _lanes(pointer: Value) -> int:
    return AT_ONCE // typed_values.BYTES[pointer.kind[-2:]]


def _wide(lanes: int = 0) -> Meaning:
    """Load this many numbers as a vector, or 64 bytes of them."""
    return lambda b, pointer: _load_vector(b, pointer, lanes or _lanes(pointer))


def _load_vector(b: Any, pointer: Value, lanes: int) -> Value:
    kind = f"{pointer.kind[1:]}x{lanes}"
    place = b.bitcast(pointer.ir, TYPES[kind].as_pointer())
    return Value(kind, b.load(place, align=typed_values.BYTES[pointer.kind[1:]]))


def _broadcast(lanes: int = 0) -> Meaning:
    """Broadcast a number to a vector."""

    def meaning(b: Any, x: Value) -> Value:
        count = lanes or _lanes(x)
        kind = f"{x.kind}x{count}"
        empty, first = ir.Constant(TYPES[kind], ir.Undefined), ir.Constant(_HALF, 0)
        vector = b.insert_element(empty, x.ir, first)
        return Value(kind, b.shuffle_vector(vector, empty, ir.Constant(ir.VectorType(_HALF, count), [0] * count)))

    return meaning


def _put(b: Any, pointer: Value, values: Value) -> None:
    """Store a vector."""
    place = b.bitcast(pointer.ir, TYPES[values.kind].as_pointer())
    b.store(values.ir, place, align=typed_values.BYTES[pointer.kind[1:]])


def _alternate(lanes: int, first: int) -> Meaning:
    """Load every other one of twice as many numbers."""

    def meaning(b: Any, pointer: Value) -> Value:
        kind = pointer.kind[1:]
        both = ir.VectorType(TYPES[kind], 2 * lanes)
        values = b.load(b.bitcast(pointer.ir, both.as_pointer()), align=typed_values.BYTES[kind])
        mask = ir.Constant(ir.VectorType(_HALF, lanes), list(range(first, 2 * lanes, 2)))
        return Value(f"{kind}x{lanes}", b.shuffle_vector(values, ir.Constant(both, ir.Undefined), mask))

    return meaning


def _interleave(b: Any, pointer: Value, x: Value, y: Value) -> None:
    """Store the numbers of two vectors in turns."""
    lanes = x.ir.type.count
    mask = ir.Constant(ir.VectorType(_HALF, 2 * lanes), [k // 2 + k % 2 * lanes for k in range(2 * lanes)])
    both = b.shuffle_vector(x.ir, y.ir, mask)
    b.store(both, b.bitcast(pointer.ir, both.type.as_pointer()), align=typed_values.BYTES[pointer.kind[1:]])


def _transpose(lanes: int) -> Meaning:
    """Transpose this many rows of as many numbers: each round interleaves one half of the rows with the other."""

    def meaning(b: Any, to: Value, apart: Value, start: Value, leading: Value) -> None:
        rows = [
            _load_vector(b, _move_pointer(b, start, typed_values.arithmetic(b, "*", number(k), leading)), lanes)
            for k in range(lanes)
        ]
        masks = [[half * lanes // 2 + k // 2 + k % 2 * lanes for k in range(lanes)] for half in (0, 1)]
        mixes = [ir.Constant(ir.VectorType(_HALF, lanes), mask) for mask in masks]
        vectors = [row.ir for row in rows]
        for _ in range(lanes.bit_length() - 1):
            pairs = zip(vectors[: lanes // 2], vectors[lanes // 2 :], strict=True)
            vectors = [b.shuffle_vector(x, y, mix) for x, y in pairs for mix in mixes]
        for k, x in enumerate(vectors):
            place = _move_pointer(b, to, typed_values.arithmetic(b, "*", number(k), apart))
            _put(b, place, Value(f"{start.kind[1:]}x{lanes}", x))

    return meaning


def _fetch(b: Any, pointer: Value) -> None:
    """Prefetch memory into the cache."""
    byte = BYTE.as_pointer()
    called = function(b, "llvm.prefetch.p0i8", _VOID, [byte, _HALF, _HALF, _HALF])
    read, near, data = 0, 2, 1
    b.call(called, [b.bitcast(pointer.ir, byte), *(ir.Constant(_HALF, x) for x in (read, near, data))])


def _add_reorderable(b: Any, x: Value, y: Value) -> Value:
    """Add to a sum whose terms may be reordered, so that it can be vectorised."""
    return Value(x.kind, b.fadd(x.ir, y.ir, flags=("reassoc", "contract", "nsz")))


def _highest(b: Any, values: Value) -> Value:
    """Return the largest number in a vector that holds no NaN."""
    return _reduce_vector(b, "fmax", values, (), ("nnan",))


def _sum_vector(b: Any, values: Value) -> Value:
    """Return the sum of the numbers in a vector."""
    nothing = number(-0.0, values.kind.partition("x")[0])
    return _reduce_vector(b, "fadd", values, (nothing,), ("reassoc",))


def _reduce_vector(b: Any, name: str, values: Value, first: Sequence[Value], freedom: Sequence[str]) -> Value:
    kind, lanes = values.kind.split("x")
    wanted = [TYPES[x.kind] for x in (*first, values)]
    whole = f"llvm.vector.reduce.{name}.v{lanes}f{8 * typed_values.BYTES[kind]}"
    called = function(b, whole, TYPES[kind], wanted)
    return Value(kind, b.call(called, [x.ir for x in (*first, values)], fastmath=freedom))


def _copy_bytes(b: Any, target: Value, source: Value, size: Value) -> None:
    """Copy bytes between pointers of any type."""
    byte = BYTE.as_pointer()
    called = b.module.declare_intrinsic("llvm.memcpy", [byte, byte, WIDE])
    b.call(called, [b.bitcast(target.ir, byte), b.bitcast(source.ir, byte), size.ir, ir.Constant(ir.IntType(1), 0)])


def _arrive(b: Any, counter: Value) -> Value:
    """Increment an integer atomically; return its previous value."""
    return Value("i8", b.atomic_rmw("add", counter.ir, ir.Constant(WIDE, 1), "acq_rel"))


def _load_counter(b: Any, counter: Value) -> Value:
    """Load an integer atomically."""
    return Value("i8", b.load_atomic(counter.ir, "acquire", 8))


def _swap_counter(b: Any, counter: Value, before: Value, after: Value) -> Value:
    """Compare and swap an integer atomically; return whether it was swapped."""
    return Value("b1", b.extract_value(b.cmpxchg(counter.ir, before.ir, after.ir, "acq_rel", "acquire"), 1))


def _publish(b: Any, counter: Value, value: Value) -> None:
    """Store an integer atomically."""
    b.store_atomic(value.ir, counter.ir, "release", 8)


def _pause(b: Any) -> None:
    """Hint to the processor that this thread is spinning."""
    if X86:
        b.call(function(b, "llvm.x86.sse2.pause", _VOID, []), [])
    elif ARM:
        b.call(function(b, "llvm.aarch64.hint", _VOID, [_HALF]), [ir.Constant(_HALF, 1)])


def _control_x86(b: Any, name: str, value: Any = None) -> Any:
    byte = BYTE.as_pointer()
    with b.goto_entry_block():
        place = b.alloca(_HALF)
    if value is not None:
        b.store(b.trunc(value, _HALF), place)
    b.call(function(b, name, _VOID, [byte]), [b.bitcast(place, byte)])
    return b.zext(b.load(place), WIDE)


def _control(b: Any) -> Value:
    """Return the floating-point control word."""
    if X86:
        return Value("i8", _control_x86(b, "llvm.x86.sse.stmxcsr"))
    return Value("i8", b.call(function(b, "llvm.aarch64.get.fpcr", WIDE, []), [])) if ARM else number(0)


def _restore(b: Any, word: Value) -> None:
    """Set the floating-point control word."""
    if X86:
        _control_x86(b, "llvm.x86.sse.ldmxcsr", word.ir)
    elif ARM:
        b.call(function(b, "llvm.aarch64.set.fpcr", _VOID, [WIDE]), [word.ir])


WORDS: dict[str, Meaning] = {
    **{name: lambda b, *x, name=name: c_function(b, name, *x) for name in FROM_C},  # ``floor`` is replaced below
    **{kind: _cast(kind) for kind in NUMBERS}, **{f"cut_{kind}": _cut(kind) for kind in ("i4", "i8", "u4")},
    **{f"as_{kind}": _pointer(kind) for kind in ("f4", "f8", "i2", "i4", "i8", "u4")}, "as_b1": _pointer("i1"),
    "at": _move_pointer, "address": lambda b, pointer: Value("i8", b.ptrtoint(pointer.ir, WIDE)), "copied": _copy_bytes,
    "wide": _wide(), "spread": _broadcast(), "fetch": _fetch,
    **{f"wide{lanes}": _wide(lanes) for lanes in typed_values.LANES},
    **{f"spread{lanes}": _broadcast(lanes) for lanes in typed_values.LANES}, "put": _put,
    **{f"evens{lanes}": _alternate(lanes, 0) for lanes in typed_values.LANES},
    **{f"odds{lanes}": _alternate(lanes, 1) for lanes in typed_values.LANES}, "zipped": _interleave,
    **{f"turned{lanes}": _transpose(lanes) for lanes in typed_values.LANES},
    "highest": _highest, "summed": _sum_vector, "sel": typed_values.select_value, "radd": _add_reorderable,
    "abs": _size, "min": _lesser, "max": _greater,
    "root": lambda b, x: _unary(b, "sqrt", x), "floor": lambda b, x: _unary(b, "floor", x),
    "nearest": lambda b, x: _unary(b, "nearbyint", x),
    "as_float": lambda b, x: Value("f4", b.bitcast(convert(b, x, "i4").ir, TYPES["f4"])),
    "as_bits": lambda b, x: Value("i4", b.bitcast(x.ir, TYPES["i4"])),
    "arrive": _arrive, "seen": _load_counter, "swapped": _swap_counter, "publish": _publish,
    "pause": _pause, "control": _control, "restore": _restore,
    **{outside.symbol: lambda b, *x, outside=outside: external(b, outside, x) for outside in EXTERNAL},
}  # fmt: skip
