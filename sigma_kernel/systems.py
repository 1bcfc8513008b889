"""Refuse to run where Sigma is not supported, before anything else is imported; valid syntax for older Pythons, too."""

from __future__ import annotations

import sys

OLDEST = (3, 11)  # of Python
LOCKLESS = ("win32", "emscripten", "wasi")  # systems where run folders cannot be locked


def check_system(version: tuple[int, ...] = sys.version_info[:3], platform: str = sys.platform) -> None:
    """Raise ImportError for an older Python, and on systems that cannot lock the files of a run."""
    if version < OLDEST:
        raise ImportError(f"Sigma needs Python 3.11 or newer (this is {'.'.join(map(str, version))}). Install it.")
    if platform in LOCKLESS:
        raise ImportError(f"Sigma needs Linux or macOS (this is {platform}). On Windows, use its Subsystem for Linux.")
