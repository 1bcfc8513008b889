"""What threads of one burst need: a barrier, and denormal numbers counted as 0 while they compute.

Both exist on x86-64 and aarch64; elsewhere a waiting thread only yields, and denormals stay.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np

from sigma_backend_numba.runtime.libraries import cgutils, intrinsic, ir, llvm, types
from sigma_backend_numba.runtime.memory import driver

MACHINE = platform.machine().lower()
X86, ARM = MACHINE in ("x86_64", "amd64"), MACHINE in ("aarch64", "arm64")
SPINS = 2000  # before a waiting thread gives its core away
ZERO_X86, ZERO_ARM = 0x8040, 1 << 24  # MXCSR: flush to zero, denormals are zero; FPCR: flush to zero
_void, _word, _wide = ir.VoidType(), ir.IntType(32), ir.IntType(64)

if platform.system() == "Windows":
    _give_way = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]  # there only
else:
    _give_way = ctypes.CDLL(None).sched_yield
llvm.add_symbol("sigma_yield", ctypes.cast(_give_way, ctypes.c_void_p).value)
give_way = types.ExternalFunction("sigma_yield", types.intc())


def _function(b: Any, name: str, result: Any, *operands: Any) -> Any:
    return cgutils.get_or_insert_function(b.module, ir.FunctionType(result, operands), name)


@intrinsic
def arrive(context: Any, counter: Any) -> Any:
    """Add one to a counter that other threads see."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.atomic_rmw("add", args[0], ir.Constant(_wide, 1), "acq_rel")

    return types.int64(counter), generate


@intrinsic
def seen(context: Any, counter: Any) -> Any:
    """Read a counter that other threads change."""
    return types.int64(counter), lambda target, b, sig, args: b.load_atomic(args[0], "acquire", 8)


@intrinsic
def pause(context: Any) -> Any:
    """Let the processor know that this thread waits."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        if X86:
            b.call(_function(b, "llvm.x86.sse2.pause", _void), [])
        elif ARM:
            b.call(_function(b, "llvm.aarch64.hint", _void, _word), [ir.Constant(_word, 1)])
        return target.get_dummy_value()

    return types.void(), generate


def _control_x86(b: Any, name: str, value: Any = None) -> Any:
    byte = ir.IntType(8).as_pointer()
    place = cgutils.alloca_once(b, _word)
    if value is not None:
        b.store(b.trunc(value, _word), place)
    b.call(_function(b, name, _void, byte), [b.bitcast(place, byte)])
    return b.zext(b.load(place), _wide)


@intrinsic
def control(context: Any) -> Any:
    """Return the word that controls floating-point arithmetic."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        if X86:
            return _control_x86(b, "llvm.x86.sse.stmxcsr")
        return b.call(_function(b, "llvm.aarch64.get.fpcr", _wide), []) if ARM else ir.Constant(_wide, 0)

    return types.int64(), generate


@intrinsic
def restore(context: Any, word: Any) -> Any:
    """Set the word that controls floating-point arithmetic."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        if X86:
            _control_x86(b, "llvm.x86.sse.ldmxcsr", args[0])
        elif ARM:
            b.call(_function(b, "llvm.aarch64.set.fpcr", _void, _wide), args)
        return target.get_dummy_value()

    return types.void(types.int64), generate


@driver
def flush() -> Any:
    """Count denormals as 0 from now on; return what :func:`restore` takes."""
    before = control()
    restore(before | np.int64(ZERO_X86 if X86 else ZERO_ARM))
    return before


@driver
def barrier(counter: Any, target: Any) -> None:
    """Wait until the counter, which every thread raises by one, reaches a number."""
    arrive(counter)
    spins = 0
    while seen(counter) < target:
        pause()
        spins += 1
        if spins > SPINS:
            give_way()
            spins = SPINS - 10
