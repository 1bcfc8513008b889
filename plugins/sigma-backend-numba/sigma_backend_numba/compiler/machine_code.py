"""Optimise LLVM for this processor, emit it as an object file, and load it as a function.

External functions are resolved by symbol, so that object files can be kept on disk.  ``$SIGMA_NUMBA_OPTIMISATION`` is
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
_lock = threading.Lock()


@cache
def _target(speed: int) -> Any:
    llvm().initialize_native_target()
    llvm().initialize_native_asmprinter()
    llvm().set_option("sigma", INTERLEAVED)
    _register()
    name, features = processor()
    return llvm().Target.from_default_triple().create_target_machine(name, features, opt=speed, jit=True)


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


def compile_unit(
    source: ProgramText, unit: ProgramUnit, kernels: Kernels = MappingProxyType({})
) -> tuple[bytes, list[ProgramUnit], set[str]]:
    """Return the object code of a unit, the units that it calls, and the symbols of kernels that are linked into it.

    A kernel that calls anything local to its process stays external.
    """
    with _lock:
        assembly, called = _assembly(source, unit)
        code, joined = _emit_code(assembly, kernels)
        return code, called, joined


def _assembly(source: ProgramText, unit: ProgramUnit) -> tuple[str, list[ProgramUnit]]:
    """Return a unit as LLVM's text, and the units that it calls."""
    from sigma_backend_numba.compiler.translate import Module  # not needed if the code is cached

    with _collect_after(0):
        translated, target = Module(source), _target(SPEED)
        translated.translate(unit)
        translated.ir.triple, translated.ir.data_layout = target.triple, str(target.target_data)
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


def _emit_code(assembly: str, kernels: Kernels) -> tuple[bytes, set[str]]:
    """Return the object code of LLVM's text, and the symbols of those kernels that it calls and that are linked in."""
    module = llvm().parse_assembly(assembly)
    called = [symbol for symbol in kernels if f'@"{symbol}"' in assembly]
    within = {symbol for symbol in called if _link_kernel(module, symbol, *kernels[symbol]())}
    module.verify()
    _optimise(module)
    code: bytes = _target(SPEED).emit_object(module)
    return code, within


def free_memory() -> None:
    """Return freed memory to the system, if the C library keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if platform.system() == "Linux" else None
    if trim is not None:
        trim(0)


def _optimise(module: Any) -> None:
    options = llvm().create_pipeline_tuning_options(speed_level=SPEED)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm().create_pass_builder(_target(SPEED), options)
    builder.getModulePassManager().run(module, builder)


def _link_kernel(module: Any, symbol: str, code: str, name: str) -> bool:
    """Link a kernel into a module under its symbol, if it calls only the C library; return whether it was linked."""
    kernel = llvm().parse_assembly(code)
    kernel.get_function(name).name = symbol
    for own in (*kernel.functions, *kernel.global_variables):
        if not own.is_declaration and own.name != symbol:
            own.linkage = "internal"
    _optimise(kernel)  # what remains of Numba's own functions is used
    if not all(_found_everywhere(x.name) for x in (*kernel.functions, *kernel.global_variables) if x.is_declaration):
        return False
    kernel._owned = True  # LLVM destroys it: Ctrl-C before llvmlite notes that must not destroy it twice
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
    with _lock:
        for symbol, address in addresses.items():
            llvm().add_symbol(symbol, address)
        target = _target(SPEED)
        module = llvm().parse_assembly("")
        module.triple = target.triple
        module._owned = True  # by the engine, as above
        engine = llvm().create_mcjit_compiler(module, target)
        for code in codes:
            engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return _CALL(engine.get_function_address("burst"))
