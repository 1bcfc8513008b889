"""The compiled steps of a session, and what they compute beside training: evaluation, prediction, observation."""

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
    """The steps of a model, each compiled when it is first wanted; several threads may ask at once."""

    model: Model
    backend: Backend
    compiling: bool = field(default=False, init=False)
    _made: dict[Any, Compiled] = field(factory=dict, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def get(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        """Return a step of the model and its program: of a kind, such as ``Model.training``, for such a batch."""
        key = (kind, *about)
        if key not in self._made:  # else nobody has to wait, though another thread may be compiling
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
