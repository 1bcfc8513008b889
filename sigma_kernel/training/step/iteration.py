"""One iteration as it was, for hooks that do it again in another way and compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Burst
from sigma_kernel.training.data.feed import Batches
from sigma_kernel.training.step.live import Live
from sigma_kernel.training.step.programs import Programs


@frozen(eq=False)
class Iteration:
    """Copies of the state before an iteration, of its batch and its live values; by which burst it ran; its outcome."""

    programs: Programs
    burst: Callable[[Any, Batches], Burst]  # given what is like a session
    before: dict[str, np.ndarray]
    batches: Batches  # one minibatch, all rows of its block
    live: Live
    moment: Moment
    outcome: dict[str, np.ndarray] = field(factory=dict)

    @classmethod
    def begun(cls, session: Any, burst: Callable[[Any, Batches], Burst], batches: Batches) -> Iteration:
        """Return the iteration that is about to run."""
        backend, live, rows = session.programs.backend, Live(session.live.values, session.live.dtype), batches.rows[0]
        live.restore(session.live.base)
        block = {n: backend.to_host(backend.take(batches.block[n], rows)) for n in session.model.sections}
        alone = Batches(block, np.arange(len(rows), dtype=np.int32)[None])
        before = {name: backend.to_host(value) for name, value in session.arrays.items()}
        return cls(session.programs, burst, before, alone, live, session.clock.moment)

    def ended(self, result: Burst) -> Iteration:
        """Return it with its outcome."""
        return evolve(self, outcome=outcome(result, self.programs.backend))


def outcome(result: Burst, backend: Backend) -> dict[str, np.ndarray]:
    """Return what one iteration came to: the new state, ``training.loss`` and the totals of metrics, by name."""
    measured = {f"training.{name.removeprefix('metrics.')}": values[0] for name, values in result.ring.items()}
    return {**{name: backend.to_host(value) for name, value in result.state.items()}, **measured}
