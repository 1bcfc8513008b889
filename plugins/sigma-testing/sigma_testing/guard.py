"""The guard around every test of a suite: the state of the process that a component must leave as it is."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import Any, TextIO

import numpy as np
import pytest
from attrs import define

SECONDS = 300.0  # of a test, after which it is said to hang
PATIENCE = 2.0  # seconds for threads to end
SIGNALS = (signal.SIGINT, signal.SIGTERM)
OWN = "sigma-"  # begins the names of Sigma's own threads, some of which wait for further work
DRAWS, NUMPY_DRAWS = "Python's global random numbers", "NumPy's global random numbers"
VARIABLES = "the environment variables"
RULES = {
    "the working directory": "Write with full paths.",
    "np.seterr()": "Use `with np.errstate(...)`.",
    NUMPY_DRAWS: "Draw from np.random.default_rng(seed), or from what the contract gives.",
    DRAWS: "Draw from random.Random(seed), or from what the contract gives.",
    VARIABLES: "Pass values as settings.",
    "the signal handlers": "Leave signals to the environment.",
}


def _take_state() -> dict[str, Any]:
    words = np.random.get_state()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    return {
        "the working directory": os.getcwd(),
        "np.seterr()": np.geterr(),
        NUMPY_DRAWS: (words[1].tobytes(), *words[2:]),  # type: ignore[index]
        DRAWS: random.getstate(),
        VARIABLES: {n: x for n, x in os.environ.items() if n != "PYTEST_CURRENT_TEST"},
        "the signal handlers": handlers,
    }


def _restore(state: Mapping[str, Any], words: Any) -> None:
    os.chdir(state["the working directory"])
    np.seterr(**state["np.seterr()"])
    np.random.set_state(words)
    random.setstate(state[DRAWS])
    for name in {*os.environ} - {*state[VARIABLES], "PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(state[VARIABLES])
    if threading.current_thread() is threading.main_thread():
        for number, handler in state["the signal handlers"].items():
            signal.signal(number, handler)


@contextmanager
def guard(prints: bool = False, seconds: float = SECONDS) -> Iterator[None]:
    """Assert that the state of the process is the same at the end, and restore it; ``prints``: output is allowed.

    Threads may end a little later, and modules that are imported may draw random numbers and add environment variables,
    as those of JAX, scikit-learn and PyTorch do. What takes longer than so many seconds fails, in the main thread of
    systems that have timers.
    """
    before, words, threads = _take_state(), np.random.get_state(), {*threading.enumerate()}
    modules = {*sys.modules}
    try:
        with _time_limit(seconds), _listening(prints) as output:
            yield
        now = _take_state()
        excused = () if {*sys.modules} <= modules else (DRAWS, NUMPY_DRAWS)
        if excused:
            before[VARIABLES] = now[VARIABLES] | before[VARIABLES]
        for what, value in before.items():
            assert what in excused or now[what] == value, f"it changes {what} of the process. {RULES[what]}"
        remedy = (
            "Return what there is to say, or log it; what a reference in your test prints counts too: redirect that"
        )
        assert not output.text, f"it prints {output.text[:40]!r}. {remedy}."
        left = ", ".join(thread.name for thread in _wait_for_threads(threads))
        assert not left, f"it leaves threads that run on: {left}. Join them before it returns."
    finally:
        _restore(before, words)


def _wait_for_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Return the threads that were begun meanwhile and do not end, but for Sigma's own."""
    end = time.monotonic() + PATIENCE
    new = [thread for thread in {*threading.enumerate()} - before if not thread.name.startswith(OWN)]
    for thread in new:
        while thread.ident is None and time.monotonic() < end:  # it is about to start, and cannot be joined
            time.sleep(0.001)
        with suppress(RuntimeError):  # it did not start in all that time
            thread.join(max(0.0, end - time.monotonic()))
    return [thread for thread in new if thread.is_alive()]


@define
class Listener:
    """Standard output that notes the beginning of what is written, and passes it on."""

    to: TextIO
    text: str = ""

    def write(self, text: str) -> int:
        """Write a text."""
        self.text = self.text or text
        return self.to.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.to, name)


@contextmanager
def _listening(prints: bool) -> Iterator[Listener]:
    listener = Listener(sys.stdout)
    with ExitStack() as stack:
        if not prints:
            stack.enter_context(redirect_stdout(listener))
        yield listener


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise an error in the main thread, again and again, once a test has taken too long."""
    if not _may_set_timer():
        yield
        return

    def fail(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"it has not ended after {seconds:g} seconds. Look for a loop without an end.", pytrace=False)

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _may_set_timer() -> bool:
    """Return whether this is the main thread, and nobody else, such as pytest-timeout, uses the timer."""
    main = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
