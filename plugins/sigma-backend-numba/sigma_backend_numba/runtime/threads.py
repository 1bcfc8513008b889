"""What threads of one burst need: pieces of work to claim, and denormal numbers counted as 0 while they compute.

A stage is over when all of its pieces are done, not when all threads have come by: a thread that has lost its core and
holds no piece holds up nobody.  Who waits for a piece spins first, gives its core away then, and sleeps at last: on a
busy machine the one that holds the piece may need this very core.  Denormals and pauses are known on x86-64 and
aarch64; elsewhere a waiting thread spins without a pause, and denormals stay.
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
SPINS, YIELDS = 1000, 50  # of a waiting thread: before it gives its core away, and before it sleeps
NAP = 20  # microseconds
UNITS = 16  # bits of a ticket that number pieces; those above number stages
ZERO_X86, ZERO_ARM = 0x8040, 1 << 24  # MXCSR: flush to zero, denormals are zero; FPCR: flush to zero
_void, _word, _wide = ir.VoidType(), ir.IntType(32), ir.IntType(64)

if platform.system() == "Windows":
    _kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]  # there only
    _give_way, _nap = _kernel.SwitchToThread, _kernel.Sleep
else:
    _give_way, _nap = ctypes.CDLL(None).sched_yield, ctypes.CDLL(None).usleep
for _name, _address in {"sigma_yield": _give_way, "sigma_nap": _nap}.items():
    llvm.add_symbol(_name, ctypes.cast(_address, ctypes.c_void_p).value)
give_way = types.ExternalFunction("sigma_yield", types.intc())
nap = types.ExternalFunction("sigma_nap", types.intc(types.uintc))
_REST = np.uint32(0 if platform.system() == "Windows" else NAP)


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


@intrinsic
def swapped(context: Any, counter: Any, before: Any, after: Any) -> Any:
    """Change a number that other threads see, if it still is what it was; say whether it was."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.extract_value(b.cmpxchg(*args, "acq_rel", "acquire"), 1)

    return types.boolean(counter, types.int64, types.int64), generate


@intrinsic
def publish(context: Any, counter: Any, value: Any) -> Any:
    """Set a number that other threads see."""

    def generate(target: Any, b: Any, sig: Any, args: Any) -> Any:
        b.store_atomic(args[1], args[0], "release", 8)
        return target.get_dummy_value()

    return types.void(counter, types.int64), generate


@driver
def rest(spins: Any) -> Any:
    """Wait a little, the longer the more often it was done."""
    if spins < SPINS:
        pause()
    elif spins < SPINS + YIELDS:
        give_way()
    else:
        nap(_REST)
    return spins + 1


@driver
def claim(ticket: Any, stage: Any, units: Any) -> Any:
    """Return the number of a piece of a stage that nobody else does, or -1 when all of its pieces are done."""
    spins = 0
    while True:
        word = seen(ticket)
        number = word & np.int64((1 << UNITS) - 1)
        if word >> np.int64(UNITS) > stage:
            return np.int64(-1)
        if number >= units:
            spins = rest(spins)
        elif swapped(ticket, word, word + np.int64(1)):
            return number


@driver
def finish(ticket: Any, done: Any, stage: Any, units: Any) -> None:
    """Note that a piece is done; the last one opens the next stage."""
    if arrive(done) + np.int64(1) == units:
        publish(done, np.int64(0))
        publish(ticket, (stage + np.int64(1)) << np.int64(UNITS))
