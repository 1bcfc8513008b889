"""Optimise LLVM for this processor, emit it as an object file, and load it as a function.

External functions are resolved by symbol, so that object files can be kept on disk.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from sigma_backend_numba.compiler.blas_library import blas
from sigma_backend_numba.scalars import FROM_C

Burst = Callable[[int, int, int, int], int]
FOR_KERNELS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cosh exp2 fabs fma fmax fmin hypot lgamma log10 log2"
    " nearbyint rint round sinh sqrt tan tgamma trunc"
)
SPEED = 3  # how much LLVM does for it, of 0 to 3
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)  # it lets other Python threads run meanwhile
_engines: list[Any] = []  # a function lives as long as its engine
_lock = threading.Lock()


@cache
def _llvm() -> Any:
    """Return the library that makes machine code.  It has no types, and is not loaded before it is needed."""
    return import_module("llvmlite.binding")


@cache
def processor() -> tuple[str, str]:
    """Return the name of this processor and what it can do."""
    return _llvm().get_host_cpu_name(), _llvm().get_host_cpu_features().flatten()


@cache
def _target(speed: int) -> Any:
    _llvm().initialize_native_target()
    _llvm().initialize_native_asmprinter()
    _register()
    name, features = processor()
    return _llvm().Target.from_default_triple().create_target_machine(name, features, opt=speed, jit=True)


def _register() -> None:
    """Make known what programs call from outside."""
    if platform.system() == "Windows":
        kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]  # there only
        found = {"sigma_yield": kernel.SwitchToThread, "sigma_nap": kernel.Sleep}
    else:
        process = ctypes.CDLL(None)
        found = {"sigma_yield": process.sched_yield, "sigma_nap": process.usleep}
    found |= {"sigma_sgemm": blas().sgemm, "sigma_dgemm": blas().dgemm}
    for name, function in (found | _functions()).items():
        _llvm().add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


@cache
def _functions() -> dict[str, Any]:
    """Return the functions of the C library that programs and kernels may call, for both precisions."""
    library = _mathematics()
    every = (each for name in (*FROM_C, *FOR_KERNELS.split()) for each in (name, f"{name}f"))
    return {name: getattr(library, name) for name in every if hasattr(library, name)}


def _mathematics() -> ctypes.CDLL:
    """Return the mathematical functions of the C library."""
    if platform.system() == "Windows":
        return ctypes.CDLL("ucrtbase")
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:  # where there is no such file, they are part of the C library
        return ctypes.CDLL(None)


def compiled(
    text: str, names: Mapping[str, Any], kernels: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> tuple[bytes, set[str]]:
    """Return the object code of a program, and the symbols of the kernels that have become part of it.

    ``kernels`` are functions as text of LLVM, each with its name there.  One that calls what only its own process has
    stays outside.
    """
    from sigma_backend_numba.compiler.translate import Module  # not needed where the code is known already

    with _lock:
        target = _target(SPEED)
        translated = Module(names)
        translated.program(text)
        translated.ir.triple, translated.ir.data_layout = target.triple, str(target.target_data)
        module = _llvm().parse_assembly(str(translated.ir))
        within = {symbol for symbol, (code, name) in kernels.items() if _joined(module, symbol, code, name)}
        module.verify()
        _optimise(module)
        code: bytes = target.emit_object(module)
        return code, within


def _optimise(module: Any) -> None:
    options = _llvm().create_pipeline_tuning_options(speed_level=SPEED)
    options.loop_vectorization = options.slp_vectorization = True
    builder = _llvm().create_pass_builder(_target(SPEED), options)
    builder.getModulePassManager().run(module, builder)


def _joined(module: Any, symbol: str, code: str, name: str) -> bool:
    """Make a kernel part of a module under its symbol, if it calls nothing but the C library; return whether it is."""
    kernel = _llvm().parse_assembly(code)
    kernel.get_function(name).name = symbol
    for own in (*kernel.functions, *kernel.global_variables):
        if not own.is_declaration and own.name != symbol:
            own.linkage = "internal"
    _optimise(kernel)  # what is left of Numba's own afterwards is needed
    if not all(_found_everywhere(x.name) for x in (*kernel.functions, *kernel.global_variables) if x.is_declaration):
        return False
    module.link_in(kernel)
    module.get_function(symbol).linkage = "internal"
    return True


def _found_everywhere(name: str) -> bool:
    """Say whether every process finds what a kernel calls: a function that is made known here, or instructions."""
    _, intrinsic, rest = name.rpartition("llvm.")
    base = rest.partition(".")[0]
    return base in _functions() or (bool(intrinsic) and not hasattr(_mathematics(), base))


def loaded(code: bytes, addresses: Mapping[str, int] = MappingProxyType({})) -> Burst:
    """Return the burst of an object file, given where the functions lie that it calls by their symbols."""
    with _lock:
        for symbol, address in addresses.items():
            _llvm().add_symbol(symbol, address)
        target = _target(SPEED)
        module = _llvm().parse_assembly("")
        module.triple = target.triple
        engine = _llvm().create_mcjit_compiler(module, target)
        engine.add_object_file(_llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return _CALL(engine.get_function_address("burst"))
