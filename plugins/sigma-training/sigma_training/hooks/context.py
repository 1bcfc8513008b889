"""What every context of a hook offers: files of the run, and measurements of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from sigma_kernel.contracts import Media, Metric, RowLosses
from sigma_kernel.contracts.media import describe_media
from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Spec
from sigma_step.model import Model
from sigma_step.steps import Steps
from sigma_training.evaluator import Evaluator

P = ParamSpec("P")
R = TypeVar("R")


class MeasuringContext(ABC):
    """The part of a context that is the same in the training thread and in the background.

    They differ in the parameters at which the model is measured.
    """

    name: str  # of the hook

    @abstractmethod
    def log(self, text: str) -> None:
        """Log a message for people."""

    @property
    @abstractmethod
    def stored_run(self) -> StoredRun | None:
        """Return the stored run, if there is one."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """Return the model."""

    @abstractmethod
    def measure(
        self, what: str, act: Callable[Concatenate[Evaluator, Steps, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of a method of the evaluator; ``what`` says in an error what it does."""

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""
        return None if self.stored_run is None else self.stored_run.path

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file of the run, if it has a folder."""
        return None if self.stored_run is None else self.stored_run.write(name, data, durable=False)

    def describe_media(self, address: str, value: Media) -> tuple[Mapping[str, Any], bytes] | None:
        """Return the description and the bytes of media to publish; log that they are too many, and return None."""
        try:
            return describe_media(f"hook {self.name!r}: {address}", value)
        except SigmaConfigError as error:  # no reason to end training
            self.log(str(error))
            return None

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""
        return self.measure("evaluate", Evaluator.evaluate, on, metrics)

    def losses(self, on: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split of the data."""
        return self.measure("measure losses", Evaluator.losses, on, most)

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return the specs of one sample of an input section, and of one row of a layer's output."""
        return self.model.ends(layer, section)

    def excite(self, samples: np.ndarray, directions: np.ndarray, **at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for samples of an input section, and its slopes along directions."""
        return self.measure("excite", Evaluator.excite, samples, directions, **at)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return the continuation of a text."""
        return self.measure("generate text", Evaluator.generate, text, length, temperature, seed)
