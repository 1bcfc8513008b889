"""Stand in for another process: what differs there, in this one."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SALT = 0x5DEECE66D


@contextmanager
def other_process(number: int) -> Iterator[None]:
    """Let ``os.getpid`` return another number, and ``hash`` those of texts, as with another seed of hashes."""
    getpid, hash_of, own = os.getpid, builtins.hash, os.getpid() + number

    def hash_elsewhere(value: Any) -> int:
        return hash_of(value) ^ (number * SALT if isinstance(value, str) else 0)

    os.getpid, builtins.hash = lambda: own, hash_elsewhere
    try:
        yield
    finally:
        os.getpid, builtins.hash = getpid, hash_of
