"""What the bits of a run depend on besides the project's code: the processor, and versions of libraries."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

CPUINFO = Path("/proc/cpuinfo")
LIBRARIES = {"numpy": ("numpy",), "numba": ("numpy", "numba", "llvmlite", "scipy-openblas32")}


def machine(backend: str) -> dict[str, str]:
    """Return what the bits of a backend depend on, by name."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload]
    about = {"processor": f"{platform.machine()} {_line('model name')}", "features": _short(_line("flags"))}
    about |= {"cores": str(_cores()), "libc": " ".join(platform.libc_ver())}
    return about | {"BLAS": f"{blas['name']} {blas['version']}"} | dict(_versions(LIBRARIES[backend]))


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return what differs between two machines, as a sentence, or "" if nothing does."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    rows = [f"{name} was {then.get(name, 'missing')}, and is {now.get(name, 'missing')} here" for name in names]
    return "Bits are compared only on the machine that recorded them: " + "; ".join(rows) + "." if rows else ""


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _versions(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "missing"


def _line(name: str) -> str:
    """Return the value of a line of the processor's description, where the system has one."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    found = re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.processor()


def _short(text: str) -> str:
    return hashlib.sha256(" ".join(sorted(text.split())).encode()).hexdigest()[:16]
