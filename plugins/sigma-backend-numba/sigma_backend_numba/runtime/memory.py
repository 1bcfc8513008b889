"""Typed raw pointers, and how generated functions are compiled.

A pointer costs neither unboxing nor index checks, and its type is one word.  A task promises that no two of its
pointers overlap, which is what lets the compiler vectorise its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sigma_backend_numba.runtime.libraries import Compiler, intrinsic, ir, njit, types

i1, i4, i8, u4, f4, f8 = np.int8, np.int32, np.int64, np.uint32, np.float32, np.float64
_FAST = {"contract"}  # a * b + c in one instruction; nothing that hides NaN or infinity
_BARE = {"no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}


class _Apart(Compiler):  # type: ignore[misc]  # numba has no types
    """A compiler for functions whose pointers never overlap; the flag is not among njit's options."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.state.flags.noalias = True


task: Callable[..., Any] = njit(pipeline_class=_Apart, fastmath=_FAST, no_cpython_wrapper=True, **_BARE)
driver: Callable[..., Any] = njit(fastmath=_FAST, no_cpython_wrapper=True, **_BARE)
_CALL = types.int64(types.int64, types.int64, types.int64, types.int64)


def program(cached: bool) -> Callable[[Any], Any]:
    """Return the decorator of a whole burst: (table, steps, thread, threads) -> steps done."""
    compiled: Callable[[Any], Any] = njit(_CALL, nogil=True, cache=cached, **_BARE)
    return compiled


def _pointer(kind: Any) -> Any:
    pointer = types.CPointer(kind)

    @intrinsic
    def as_pointer(context: Any, address: Any) -> Any:
        """Take an address for a pointer."""
        return pointer(types.int64), lambda target, b, sig, args: b.inttoptr(args[0], target.get_value_type(pointer))

    return as_pointer


as_f4, as_f8, as_i4, as_i8, as_u4, as_b1 = map(
    _pointer, (types.float32, types.float64, types.int32, types.int64, types.uint32, types.int8)
)


@intrinsic
def at(context: Any, pointer: Any, offset: Any) -> Any:
    """Move a pointer by so many elements."""
    return pointer(pointer, types.int64), lambda target, b, sig, args: b.gep(args[0], [args[1]])


@intrinsic
def sel(context: Any, condition: Any, x: Any, y: Any) -> Any:
    """Choose without a branch."""
    return x(types.boolean, x, x), lambda target, b, sig, args: b.select(*args)


@intrinsic
def radd(context: Any, x: Any, y: Any) -> Any:
    """Add to a sum whose order of terms is free: so that it may be vectorised."""
    return x(x, x), lambda target, b, sig, args: b.fadd(*args, flags=("reassoc", "contract", "nsz"))


@intrinsic
def copied(context: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy so many bytes between pointers of any type."""

    def generate(context: Any, b: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        function = b.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
        ends = [b.bitcast(x, byte) for x in args[:2]]
        b.call(function, [*ends, args[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(target, source, types.int64), generate


@driver
def within(index: Any, side: Any, fault: Any) -> Any:
    """Return an index counted from the start; one outside of the side is reported, and stands for 0."""
    place: Any = sel(index < i8(0), index + side, index)
    if place < i8(0) or place >= side:
        fault[0] = i8(1)
        place = i8(0)
    return place


@driver
def span(offset: Any, stride: Any, side: Any, count: Any) -> Any:
    """Return from which to before which window ``number * stride + offset`` lies inside of a side."""
    first: Any = min(max((stride - 1 - offset) // stride, i8(0)), count)
    last = min(max((side - 1 - offset) // stride + 1, first), count)
    return first, last


@intrinsic
def address(context: Any, pointer: Any) -> Any:
    """Take a pointer for an address."""
    return types.int64(pointer), lambda target, b, sig, args: b.ptrtoint(args[0], ir.IntType(64))
