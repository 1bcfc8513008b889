"""Sigma as a contestant: the configuration as ``sigma run`` trains it, hooks included, on one backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sigma_bench.contest import Contestant
from sigma_kernel import catalogue
from sigma_kernel.contracts import Backend, Hook
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import Dropout
from sigma_run.config import Configuration, Document, build, load_configuration, prepare
from sigma_training.trainer import expect_trainer

Hooks = Mapping[str, Hook]


class SoleTrainer:
    """The single trainer of a configuration, prepared on a backend: the named one, or the configured one if empty.

    ``kept`` chooses its hooks.  Raises SigmaConfigError for an unknown backend, and for several trainers.
    """

    def __init__(
        self, configuration: Configuration, backend: str | Backend, kept: Callable[[Hooks], Hooks], what: str = "diff"
    ) -> None:
        self.environment = build(configuration)
        if len(self.environment.trainers) != 1:
            listed = ", ".join(self.environment.trainers)
            raise SigmaConfigError(f"{what}: takes a single trainer (got {listed}). Keep one of them.")
        [self.trainer] = map(expect_trainer, self.environment.trainers.values())
        self._place(backend, configuration)
        self.trainer.hooks = dict(kept(self.trainer.hooks))
        prepare(configuration, self.environment)
        session = self.trainer.session
        self.name = backend if isinstance(backend, str) and backend else session.backend_name

    def _place(self, backend: str | Backend, configuration: Configuration) -> None:
        """Replace the backend, with its settings, unless it is the requested one."""
        configured = configuration.trainers[self.trainer.name].backend or configuration.run.backend
        same = isinstance(backend, str) and backend and catalogue().resolve("backend", backend).full_name
        if backend != "" and same != configured.name:
            self.trainer.backend = backend

    @property
    def backend(self) -> Backend:
        """Return the backend."""
        return self.trainer.session.setup.programs.backend

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return a copy of the state."""
        return self.trainer.session.snapshot().arrays

    def fit(self, iterations: int) -> None:
        """Train for this many more iterations."""
        self.trainer.fit(iterations=iterations)

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()


class Sigma(SoleTrainer, Contestant):
    """A trainer and its operator; only hooks that stop training are left out: the rounds end it.

    Without ``drops``, all dropout rates are 0.
    """

    def __init__(self, configuration: Configuration, backend: str = "", drops: bool = True) -> None:
        super().__init__(configuration, backend, _lasting, "bench")
        if not drops:
            session = self.trainer.session
            layers = session.setup.model.network.layers
            for rate in [f"network.layers.{p.name}.rate" for p in layers if type(p.layer) is Dropout]:
                session.commands.set(rate, 0.0)

    def run(self, iterations: int) -> None:
        """Train for this many more iterations, continuing whenever a hook stops training."""
        goal = self._iteration + iterations
        while (left := goal - self._iteration) > 0:
            self.trainer.fit(iterations=left)

    @property
    def _iteration(self) -> int:
        return self.trainer.session.moment.iteration

    @property
    def epoch(self) -> tuple[int, int]:
        """Return the rows and the iterations of an epoch."""
        feed = self.trainer.session.setup.feed
        rows, iterations = len(feed.dataset), feed.iterations_per_epoch
        return rows if feed.keep_last else iterations * feed.batch_size, iterations

    @property
    def losses(self) -> np.ndarray:
        """Return the loss of every iteration so far."""
        return self.trainer.history["training.loss"]


def _lasting(hooks: Hooks) -> Hooks:
    return {name: hook for name, hook in hooks.items() if not _ends(hook)}


def _ends(hook: Hook) -> bool:
    """Return whether a hook is there to stop training, or would keep a stopped trainer from continuing."""
    return hook.ends or type(hook).has_ended is not Hook.has_ended


def make_contestant(document: Document, backend: str, drops: bool) -> Sigma:
    """Return the contestant for a configuration that is not validated yet."""
    return Sigma(load_configuration(document, catalogue()), backend, drops)
