"""Read single keys from the terminal, and always restore its settings."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from attrs import define, field

MOST = 32  # bytes per read: enough for typing, not for pasting
LINES = termios.ICANON | termios.ECHO  # terminal flags to switch off
BACKGROUND = {signal.SIGTTIN, signal.SIGTTOU}  # stop a process in the background that touches its terminal


def terminal() -> int | None:
    """Return the terminal that keys can be read from; None if there is none, or an interactive interpreter reads it."""
    if hasattr(sys, "ps1"):
        return None
    try:
        number = sys.stdin.fileno()
        return number if os.isatty(number) else None
    except (AttributeError, ValueError, OSError):  # there is none, or it is closed or replaced
        return None


def trains_in_thread(name: str) -> bool:
    """Return whether an environment of a name trains in a thread, so that the main thread may read the terminal."""
    mine = threading.current_thread()
    return any(thread.name == f"sigma-{name}" and thread is not mine for thread in threading.enumerate())


@define(eq=False)
class Keyboard:
    """Single keys of a terminal, within the context; Ctrl-C and Ctrl-Z work as before.

    The terminal is restored at the end of the context, and at the end of the process at the latest. While the process
    is in the background, or another reader is ``busy``, nothing is read or changed.
    """

    number: int | None
    busy: Callable[[], bool] = lambda: False
    _before: list[Any] | None = field(default=None, init=False)

    def __enter__(self) -> Keyboard:
        if self.number is not None:
            signal.pthread_sigmask(signal.SIG_BLOCK, BACKGROUND)  # of this thread alone
            atexit.register(self.restore)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.restore()
        if self.number is not None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, BACKGROUND)
            atexit.unregister(self.restore)

    @property
    def can_read(self) -> bool:
        """Return whether keys can be read now: there is a terminal, and the process is in its foreground."""
        try:
            return self.number is not None and os.tcgetpgrp(self.number) == os.getpgrp()
        except OSError:  # it has hung up
            return False

    @property
    def heard(self) -> bool:
        """Return whether keys act now."""
        return self.can_read and not self.busy()

    def read(self) -> str:
        """Return the keys that were pressed since the last time, without waiting."""
        if self.number is None or not self.heard:
            self.restore()
            return ""
        try:
            self._take(self.number)
            ready, _, _ = select.select([self.number], [], [], 0)
            return _decode_keys(os.read(self.number, MOST)) if ready else ""
        except (OSError, termios.error):
            return ""

    def restore(self) -> None:
        """Restore the terminal, unless the process is in the background: then the shell owns it."""
        before, self._before = self._before, None
        if before is not None and self.number is not None and self.can_read:
            try:
                termios.tcsetattr(self.number, termios.TCSANOW, before)
            except (OSError, termios.error):
                return

    def _take(self, number: int) -> None:
        """Switch off lines and echo; again if a shell has switched them on meanwhile, as after Ctrl-Z."""
        now = termios.tcgetattr(number)
        if self._before is not None and not now[3] & LINES:
            return
        self._before, changed = now, [*now]
        changed[3] &= ~LINES
        changed[6] = [*now[6]]
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 0, 0
        termios.tcsetattr(number, termios.TCSANOW, changed)


def _decode_keys(found: bytes) -> str:
    """Return the typed keys; none for the escape sequence of an arrow or another special key."""
    return "" if found.startswith(b"\x1b") else found.decode("ascii", "ignore")
