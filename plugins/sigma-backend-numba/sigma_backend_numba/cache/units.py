"""Find the units of a program on disk; otherwise compile them, and keep them for other programs.

The symbol of a unit is a digest of its text and of what it is called with.  It covers the source of the compiler and of
the runtime, the version of LLVM and its level of optimisation, and the processor, but not how texts are written.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sigma_backend_numba.cache import files
from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.compiler.machine_code import Kernels, compile_unit, free_memory
from sigma_backend_numba.compiler.processor import processor
from sigma_backend_numba.compiler.units import ProgramText, ProgramUnit


def assemble(source: ProgramText, kernels: Kernels, keep: bool = True) -> tuple[list[bytes], set[str]]:
    """Return the object code of a program's units, the burst first, and the symbols of kernels that are linked in.

    The burst is compiled for this program; other units are looked up if they are to be kept.
    """
    code, waiting, joined = compile_unit(source, source.burst, kernels)
    codes = {source.burst.symbol: code}
    while waiting:
        if (unit := waiting.pop()).symbol not in codes:
            entry = (files.read(f"{unit.symbol}.o") if keep else None) or _compile_and_store(
                source, unit, kernels, keep
            )
            (references, own, _), (codes[unit.symbol],) = unpack(entry)
            joined.update(own)
            waiting += [source.resolve(unit, reference) for reference in references]
    free_memory()
    return [*codes.values()], joined


def _compile_and_store(source: ProgramText, unit: ProgramUnit, kernels: Kernels, keep: bool) -> bytes:
    """Return references to the units that a unit calls, the kernels linked into it, and its code; store them."""
    code, called, joined = compile_unit(source, unit, kernels)
    entry = pack([[source.reference(unit, other) for other in called], sorted(joined)], [code])
    if keep:
        files.write(f"{unit.symbol}.o", entry)
    return entry


def pack(head: Sequence[Any], codes: Sequence[bytes]) -> bytes:
    """Return a line of JSON, followed by codes."""
    return json.dumps([*head, [*map(len, codes)]]).encode() + b"\n" + b"".join(codes)


def unpack(entry: bytes) -> tuple[list[Any], list[bytes]]:
    """Return what was packed, the lengths of the codes included."""
    line, _, rest = entry.partition(b"\n")
    head, codes, begin = json.loads(line), [], 0
    for size in head[-1]:
        codes.append(rest[begin : begin + size])
        begin += size
    return head, codes


def key(about: str) -> str:
    """Return what units depend on besides their texts, and what is said ``about`` the meanings of names."""
    return "\0".join([about, makers(), *describe_target()])


def describe_target() -> tuple[str, ...]:
    """Return what code is compiled for: LLVM's level of optimisation, the system and the processor."""
    return str(machine_code.SPEED), platform.system(), platform.machine(), *processor()


@cache
def makers() -> str:
    """Return the source of what compiles units, and of what they call, and LLVM's version."""
    root = Path(__file__).parents[1]
    sources = (root / "scalars.py", *(path for part in ("compiler", "runtime") for path in (root / part).rglob("*.py")))
    return "\0".join([importlib.metadata.version("llvmlite"), *(path.read_text("utf-8") for path in sorted(sources))])
