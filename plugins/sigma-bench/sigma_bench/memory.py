"""The most memory that a process holds."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path


def forget(reset: Path = Path("/proc/self/clear_refs")) -> None:
    """Count the peak from now on, where the system can: what data took to be made is no contestant's."""
    if reset.exists():
        reset.write_text("5")


def peak_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Return the largest resident set of this process, in bytes; 0 where the system does not tell.

    Linux hands ``ru_maxrss`` on from the process that started this one, so that its own count is read instead.
    """
    if status.exists():
        found = re.search(r"^VmHWM:\s*+(\d++) kB$", status.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    if sys.platform == "win32":
        return 0
    resource = import_module("resource")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
