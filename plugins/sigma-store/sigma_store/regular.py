"""Open untrusted files without blocking, only regular ones; print text from them."""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import BinaryIO

IRREGULAR = "not a regular file"
BUFFER = 1 << 17  # bytes that are read at a time: lines may be long


def open_regular(path: Path, most: int | None = None) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes; never follow a link, wait for a pipe, or open a device.

    Raises OSError with the reason in ``strerror``. The second check is for a file replaced in between.
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
