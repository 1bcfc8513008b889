"""Compile in a thread what a later tier of the backend runs, once training is on its way there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from attrs import define, field

from sigma_kernel.threads import COMPILING
from sigma_step.steps import Programs

T = TypeVar("T")
SHARE = 1 / 3  # of the iterations before the next tier, after which its programs are compiled


@define(eq=False)
class AheadCompiler:
    """Compile programs of the next tier, one after the other, until it is closed."""

    _programs: Programs | None = field(default=None, init=False)
    _executor: ThreadPoolExecutor | None = field(default=None, init=False)
    _lock: Lock = field(factory=Lock, init=False)  # programs are submitted by several threads

    def look_ahead(self, programs: Programs, iteration: int, end: Callable[[T], int | None], run: T) -> None:
        """Begin if there is a next tier, not far away, and training does not end before it: at the ``end`` of a run."""
        if programs is self._programs or (start := programs.next_tier(iteration)) is None:
            return
        if iteration >= SHARE * start and ((last := end(run)) is None or last > start):
            self.begin(programs, iteration)

    def begin(self, programs: Programs, iteration: int) -> None:
        """Begin to compile for the next tier what the present one runs."""
        with self._lock:
            self._programs = programs
            self._executor = self._executor or ThreadPoolExecutor(1, COMPILING)
        programs.compile_ahead(iteration, self._submit)

    def _submit(self, compile_program: Callable[..., object], *key: Any) -> None:
        with self._lock:
            if self._executor is not None:
                self._executor.submit(compile_program, *key)

    def close(self) -> None:
        """Compile nothing more; a program that is being compiled is finished."""
        with self._lock:
            executor, self._executor, self._programs = self._executor, None, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
