"""Peak memory of a process."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path


def forget(reset: Path = Path("/proc/self/clear_refs")) -> None:
    """Reset the peak if the system supports it, to exclude memory for preparing data."""
    if reset.exists():
        reset.write_text("5")


def peak_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Return the peak resident set size of this process, in bytes; 0 if the system does not report it.

    On Linux, ``ru_maxrss`` is inherited from the parent process, so the process's own count is read instead.
    """
    if status.exists():
        match = re.search(r"^VmHWM:\s*+(\d++) kB$", status.read_text(), re.MULTILINE)
        return int(match[1]) * 1024 if match else 0
    if sys.platform == "win32":
        return 0
    resource = import_module("resource")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
