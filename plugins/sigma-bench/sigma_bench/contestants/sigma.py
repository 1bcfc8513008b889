"""Sigma itself, on one backend: the configuration as ``sigma run`` would train it, its hooks included."""

from __future__ import annotations

import numpy as np

from sigma_bench.contest import Contestant
from sigma_kernel.config import Configuration, build, prepare
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins import catalogue


class Sigma(Contestant):
    """A trainer and its operator, on the backend of that name, or on its own if that is empty.

    Only hooks that are there to end training are left out: rounds say when it ends.  Raises SigmaConfigError for a
    backend that nobody offers, and where there are several trainers.
    """

    def __init__(self, configuration: Configuration, backend: str = "") -> None:
        self.environment = build(configuration)
        if len(self.environment.trainers) != 1:
            listed = ", ".join(self.environment.trainers)
            raise SigmaConfigError(f"bench: it measures one trainer, and here are {listed}. Keep one of them.")
        [self.trainer] = self.environment.trainers.values()
        self._place(backend)
        self.name = backend or self.trainer.backend_name
        self.trainer.hooks = {name: hook for name, hook in self.trainer.hooks.items() if not hook.ends}
        prepare(configuration, self.environment)

    def _place(self, backend: str) -> None:
        """Replace the backend, settings and all, if it is not the one that is wanted."""
        configured = self.trainer.backend
        assert isinstance(configured, dict)  # as configurations write it
        if backend and catalogue().resolve("backend", backend).full_name != configured["type"]:
            self.trainer.backend = backend

    def run(self, iterations: int) -> None:
        """Train for so many more iterations, again and again where a hook stops it on the way."""
        goal = self._done + iterations
        while (left := goal - self._done) > 0:
            self.trainer.fit(iterations=left)

    @property
    def _done(self) -> int:
        return self.trainer.session.clock.moment.iteration

    @property
    def losses(self) -> np.ndarray:
        """Return the loss of every iteration so far."""
        return self.trainer.history["training.loss"]

    @property
    def peak_bytes(self) -> int:
        """Return the working memory of the largest program, as its backend planned it."""
        return self.trainer.session.programs.peak_bytes()

    def close(self) -> None:
        """End the environment."""
        self.environment.close()
