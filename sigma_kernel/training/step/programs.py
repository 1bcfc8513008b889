"""Compile the steps of a model on first use, and cache the programs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Backend, Program, Step
from sigma_kernel.training.step.model import Model

Compiled = tuple[Step, Program]


@define(eq=False)
class Programs:
    """The compiled steps of a model, compiled on first use; safe to use from several threads."""

    model: Model
    backend: Backend
    compiling: bool = field(default=False, init=False)
    _made: dict[Any, Compiled] = field(factory=dict, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def get(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        """Return a step and its program: of a kind, such as ``Model.training``, with its arguments."""
        key = (kind, *about)
        if key not in self._made:  # no lock for a cached one: another thread may be compiling
            with self._lock:
                if key not in self._made:
                    self._made[key] = self._compiled(kind, *about)
        return self._made[key]

    def _compiled(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        self.compiling = True
        try:
            step = kind(self.model, *about)
            return step, self.backend.compile(step)
        finally:
            self.compiling = False
