"""Sizes of memory: those that users write, and what is free."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sigma_kernel import SigmaConfigError

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
FREE = 2**31  # bytes that count as free where the system does not say


def parse_size(value: Any) -> Any:
    """Return the bytes of a size such as ``"2 GB"`` or ``"512 MiB"``; raises SigmaConfigError for other texts."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*+([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*+([kmgt]?i?b)\s*+", value.lower())
    if match is None or match[2] == "ib":
        raise SigmaConfigError(f"memory: {value!r} is not a size. Write one such as '2 GB' or '512 MiB'.")
    return int(float(match[1]) * UNITS[match[2]])


def free_memory(system: Path = Path("/")) -> int:
    """Return the bytes of memory that are free, at most those that the control group of the process may use."""
    try:
        lines = (system / "proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        return _half_of_all()
    return min(free, _free_in_group(system / "sys/fs/cgroup", free))


def _half_of_all() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return FREE


def _free_in_group(group: Path, free: int) -> int:
    """Return the bytes that a control group (version 2) may still use; ``free`` if it has no limit."""
    try:
        most, used = (group / "memory.max").read_text().strip(), int((group / "memory.current").read_text())
        cached = re.search(r"^inactive_file (\d++)$", (group / "memory.stat").read_text(), re.MULTILINE)
    except OSError:
        return free
    return free if most == "max" else max(0, int(most) - used + (int(cached[1]) if cached else 0))
