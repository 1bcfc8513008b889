"""Stand in for another process: what differs there, in this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class Salted(str):
    """A text whose hash is another one, as in a process with another seed of hashes; it equals the text."""

    __slots__ = ()

    def __hash__(self) -> int:
        return str.__hash__(self) ^ 0x5DEECE66D


@contextmanager
def other_process(number: int) -> Iterator[None]:
    """Let processes have other numbers."""
    before, other = os.getpid, os.getpid() + number
    os.getpid = lambda: other
    try:
        yield
    finally:
        os.getpid = before
