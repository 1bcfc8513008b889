"""Open files that somebody else may have written, regular ones alone, without waiting; print text from them."""

from __future__ import annotations

import os
import re
import stat
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import BinaryIO

IRREGULAR = "not a regular file"
BUFFER = 1 << 17  # bytes that are read at a time: lines may be long
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def open_regular(path: Path, most: int | None = None) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes; never follow a link, wait for a pipe, or open a device.

    Raises OSError, whose ``strerror`` says why. The second look is for a file that is replaced in between.
    """
    _check(path.lstat(), most)
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(os.fstat(handle), most)
        return os.fdopen(handle, "rb", BUFFER)
    except BaseException:
        os.close(handle)
        raise


def _check(about: os.stat_result, most: int | None) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError(EINVAL, IRREGULAR)
    if most is not None and about.st_size > most:
        raise OSError(EFBIG, f"{about.st_size:,} bytes, and {most:,} are read at most")


def printable(text: str) -> str:
    """Return a text whose control characters, but tabs and new lines, are written as escapes of JSON.

    Those of direction are among them. A terminal would act on them, so that a stranger's file could hide or forge text.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
