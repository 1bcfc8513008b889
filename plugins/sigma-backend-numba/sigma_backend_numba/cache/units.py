"""Find the units of a program on disk; otherwise compile them, and keep them for other programs.

The symbol of a unit is a digest of its text and of what it is called with.  It covers the source of the compiler and of
the runtime, the version of LLVM and its level of optimisation, and the processor, but not how texts are written.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from sigma_backend_numba.cache import files
from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.compiler.machine_code import Kernels, emit_code, free_memory, translate_unit
from sigma_backend_numba.compiler.processor import cores, processor
from sigma_backend_numba.compiler.units import ProgramText
from sigma_backend_numba.compiler.workers import Workers

CALLS = 1  # LLVM's level for parts of a burst, which call tasks and compute nothing
Emitted = tuple[bytes, set[str]]  # object code, and the symbols of kernels that are linked in


def assemble(source: ProgramText, kernels: Kernels, keep: bool = True) -> tuple[list[bytes], set[str]]:
    """Return the object code of a program's units, the burst first, and the symbols of kernels that are linked in.

    The burst and its parts are compiled for this program; other units are looked up if they are to be kept.  This
    thread translates units, while others emit the code of those that are translated.
    """
    calls: dict[str, Callable[[], Emitted]] = {}
    waiting = [source.burst]
    with Workers(_count_threads()) as workers:
        while waiting:
            if (unit := waiting.pop()).symbol not in calls:
                name = f"{unit.symbol}.o" if keep and not source.is_own(unit) else ""
                entry = files.read(name) if name else None
                if entry is None:
                    assembly, called = translate_unit(source, unit)
                    references = [source.reference(unit, other) for other in called] if name else []
                    level = CALLS if source.is_leg(unit.name) else 3
                    call = workers.submit(_emit_and_store, assembly, kernels, references, name, level)
                    calls[unit.symbol] = call.result
                else:
                    (references, joined, _), (code,) = unpack(entry)
                    called = [source.resolve(unit, reference) for reference in references]
                    calls[unit.symbol] = partial(_give_back, code, joined)
                waiting += called
        results = [call() for call in calls.values()]
    free_memory()
    return [code for code, _ in results], {symbol for _, joined in results for symbol in joined}


def _emit_and_store(assembly: str, kernels: Kernels, references: Sequence[Any], name: str, level: int) -> Emitted:
    """Return the code of a unit and the kernels linked into it; store them under a name, if there is one."""
    code, joined = emit_code(assembly, kernels, level)
    if name:
        files.write(name, pack([references, sorted(joined)], [code]))
    return code, joined


def _give_back(code: bytes, joined: Sequence[str]) -> Emitted:
    """Return what the cache has of a unit."""
    return code, {*joined}


def _count_threads() -> int:
    """Return the number of threads that emit code: one beside a training that goes on meanwhile."""
    return cores() if threading.current_thread() is threading.main_thread() else 1


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
    """Return a digest of what units depend on besides their texts, and what is said ``about`` the meanings of names."""
    return hashlib.sha256("\0".join([about, makers(), *describe_target()]).encode()).hexdigest()


def describe_target() -> tuple[str, ...]:
    """Return what code is compiled for: LLVM's level of optimisation, the system and the processor."""
    return str(machine_code.SPEED), platform.system(), platform.machine(), *processor()


@cache
def makers() -> str:
    """Return the source of what compiles units, and of what they call, and LLVM's version."""
    root = Path(__file__).parents[1]
    sources = (root / "scalars.py", *(path for part in ("compiler", "runtime") for path in (root / part).rglob("*.py")))
    return "\0".join([importlib.metadata.version("llvmlite"), *(path.read_text("utf-8") for path in sorted(sources))])
