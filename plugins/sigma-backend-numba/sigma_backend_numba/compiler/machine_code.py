"""Optimise LLVM for this processor, emit it as an object file, and load it as a function.

Several threads do so at once, each for a module in a context of its own.  External functions are resolved by symbol, so
that object files can be kept on disk.  ``$SIGMA_NUMBA_OPTIMISATION`` is
LLVM's level, 0 to 3, for tests: at 0, programs compile in less than half the time, are slow, and round differently.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

from sigma_backend_numba.compiler.blas_library import blas
from sigma_backend_numba.compiler.processor import llvm, processor
from sigma_backend_numba.compiler.units import ProgramText, ProgramUnit
from sigma_backend_numba.compiler.workers import run_apart
from sigma_backend_numba.scalars import FROM_C

Burst = Callable[[int, int, int, int], int]
Kernels = Mapping[str, Callable[[], tuple[str, str]]]  # by symbol: LLVM's text, and the name in it
FOR_KERNELS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cosh exp2 fabs fma fmax fmin hypot lgamma log10 log2"
    " nearbyint rint round sinh sqrt tan tgamma trunc"
)
SPEED = int(os.environ.get("SIGMA_NUMBA_OPTIMISATION", "3"))
# Short rows are read as whole vectors and shuffled, instead of gathered and scattered, which Zen 4 does slowly.
INTERLEAVED = "-enable-masked-interleaved-mem-accesses"
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)  # releases the GIL
_engines: list[Any] = []  # a function is valid as long as its engine exists
_lock = threading.RLock()
_targets = threading.local()  # of each thread, by level


def _target(speed: int) -> Any:
    """Return this thread's target machine."""
    machines, level = vars(_targets), f"level {speed}"
    if level not in machines:
        machines[level] = _make_target(speed)
    return machines[level]


def _make_target(speed: int) -> Any:
    with _lock:
        _prepare()
    name, features = processor()
    return llvm().Target.from_default_triple().create_target_machine(name, features, opt=speed, jit=True)


@cache
def _prepare() -> None:
    """Initialise LLVM, and register the external functions that programs call."""
    llvm().initialize_native_target()
    llvm().initialize_native_asmprinter()
    llvm().set_option("sigma", INTERLEAVED)
    _register()


@cache
def _layout() -> tuple[str, str]:
    """Return the names of the target and of how its data lie in memory."""

    def read() -> tuple[str, str]:
        target = _target(SPEED)
        return target.triple, str(target.target_data)

    return run_apart(read)


def _register() -> None:
    """Register the external functions that programs call."""
    if platform.system() == "Windows":
        kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]  # Windows only
        symbols = {"sigma_yield": kernel.SwitchToThread, "sigma_nap": kernel.Sleep}
    else:
        process = ctypes.CDLL(None)
        symbols = {"sigma_yield": process.sched_yield, "sigma_nap": process.usleep}
    symbols |= {"sigma_sgemm": blas().sgemm, "sigma_dgemm": blas().dgemm}
    for name, function in (symbols | _functions()).items():
        llvm().add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


@cache
def _functions() -> dict[str, Any]:
    """Return the functions of the C library that programs and kernels may call, for both precisions."""
    library = _mathematics()
    every = (each for name in (*FROM_C, *FOR_KERNELS.split()) for each in (name, f"{name}f"))
    return {name: getattr(library, name) for name in every if hasattr(library, name)}


def _mathematics() -> ctypes.CDLL:
    """Return the C library's mathematical functions."""
    if platform.system() == "Windows":
        return ctypes.CDLL("ucrtbase")
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:  # without such a file they are part of the C library
        return ctypes.CDLL(None)


def translate_unit(source: ProgramText, unit: ProgramUnit) -> tuple[str, list[ProgramUnit]]:
    """Return a unit as LLVM's text, and the units that it calls."""
    from sigma_backend_numba.compiler.translate import Module  # not needed if the code is cached

    triple, layout = _layout()
    with _lock, _collect_after(0):
        translated = Module(source)
        translated.translate(unit)
        translated.ir.triple, translated.ir.data_layout = triple, layout
        assembly, called = str(translated.ir), [*translated.called]
        del translated
    return assembly, called


@contextmanager
def _collect_after(generation: int) -> Iterator[None]:
    """Free the objects of llvmlite that a block made, which refer to each other, by the collector.

    It does not run in the block, so that they stay in the youngest generation. To search all, with what planning left,
    takes up to a second in a process with many objects.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(generation)
        if enabled:
            gc.enable()


def emit_code(assembly: str, kernels: Kernels = MappingProxyType({}), level: int = 3) -> tuple[bytes, set[str]]:
    """Return the object code of LLVM's text, and the symbols of those kernels that it calls and that are linked in.

    A kernel that calls anything local to its process stays external.  ``level`` is the highest of LLVM's levels.
    """
    speed = min(SPEED, level)
    called = [symbol for symbol in kernels if f'@"{symbol}"' in assembly]
    with llvm().create_context() as context, llvm().parse_assembly(assembly, context) as module:
        within = {symbol for symbol in called if _link_kernel(module, context, symbol, kernels[symbol])}
        module.verify()
        _optimise(module, speed)
        return _emit_object(module, speed), within


def _emit_object(module: Any, speed: int) -> bytes:
    """Return a module as an object file."""
    library = llvm().ffi.lib
    with llvm().ffi.OutputString() as error:
        buffer = _bypass_lock("LLVMPY_TargetMachineEmitToMemory")(_target(speed), module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _bypass_lock(name: str) -> Any:
    """Return a function of llvmlite's library that several threads may call at once, each for its own context.

    llvmlite lets one thread into LLVM at a time, as the context that it takes by default is one for all.
    """
    locked = getattr(llvm().ffi.lib, name)
    function = getattr(ctypes.CDLL(llvm().ffi.lib._name), name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def free_memory() -> None:
    """Return freed memory to the system, if the C library keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if platform.system() == "Linux" else None
    if trim is not None:
        trim(0)


def _optimise(module: Any, speed: int) -> None:
    options = llvm().create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization = options.slp_vectorization = True
    with llvm().create_pass_builder(_target(speed), options) as builder:
        _bypass_lock("LLVMPY_RunNewModulePassManager")(builder.getModulePassManager(), module, builder)


def _link_kernel(module: Any, context: Any, symbol: str, make: Callable[[], tuple[str, str]]) -> bool:
    """Link a kernel into a module under its symbol, if it calls only the C library; return whether it was linked."""
    with _lock:
        code, name = make()
    with llvm().parse_assembly(code, context) as kernel:
        kernel.get_function(name).name = symbol
        for own in (*kernel.functions, *kernel.global_variables):
            if not own.is_declaration and own.name != symbol:
                own.linkage = "internal"
        _optimise(kernel, SPEED)  # what remains of Numba's own functions is used
        outside = (x.name for x in (*kernel.functions, *kernel.global_variables) if x.is_declaration)
        if not all(map(_found_everywhere, outside)):
            return False
        module.link_in(kernel)
    module.get_function(symbol).linkage = "internal"
    return True


def _found_everywhere(name: str) -> bool:
    """Return whether a name is available in every process: a registered function, or an LLVM intrinsic."""
    _, intrinsic, rest = name.rpartition("llvm.")
    base = rest.partition(".")[0]
    return base in _functions() or (bool(intrinsic) and not hasattr(_mathematics(), base))


def load_burst(codes: Sequence[bytes], addresses: Mapping[str, int] = MappingProxyType({})) -> Burst:
    """Load the burst of object files, given the addresses of external functions by symbol."""
    return run_apart(_load, codes, addresses)


def _load(codes: Sequence[bytes], addresses: Mapping[str, int]) -> Burst:
    with _lock:
        for symbol, address in addresses.items():
            llvm().add_symbol(symbol, address)
        target = _make_target(SPEED)  # which the engine destroys, if it is destroyed
        module = llvm().parse_assembly("")
        module.triple = target.triple
        engine = llvm().create_mcjit_compiler(module, target)
        for code in codes:
            engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return _CALL(engine.get_function_address("burst"))
