"""A trained network as plain data, from which a trainer is made on demand.

An estimator is pickled, copied and sent to other processes, and must not hold the rows that it was trained on.  A
trainer of Sigma holds its data, threads and compiled programs.  So an estimator keeps the settings of its trainer and
a copy of its state, and a trainer on rows of zeros computes predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel import Environment, SigmaConfigError, SigmaStateError, Trainer
from sigma_kernel.contracts import Goals
from sigma_training import History, NetworkTrainer
from sigma_training.trainer import expect_trainer

SIZES = (1, 16, 256)  # rows of a batch to predict: few, as each is compiled once; the last batch is padded
Rows = dict[str, np.ndarray]  # by section: inputs, targets, and weights if there are any


class Holder(Environment):
    """An environment whose trainers hold networks, and rows of zeros instead of data."""

    def fit_trainer(self, trainer: Trainer, goals: Goals, progress: bool | None) -> None:
        """Raise SigmaStateError."""
        raise SigmaStateError(
            f"{self.name}: trainer_ holds the network and no data to train on. Call fit or partial_fit of the "
            "estimator."
        )


@define(eq=False, slots=False)
class TrainedNetwork:
    """The settings of a trainer and its state; ``blank`` has a row of zeros of each section."""

    name: str
    settings: Mapping[str, Any]
    blank: Rows
    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Any]
    _trainer: NetworkTrainer | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the trainer."""
        return {**vars(self), "_trainer": None}

    @property
    def epochs(self) -> int:
        """Return the number of epochs trained."""
        return int(self.values["clock"]["epoch"])

    @property
    def trainer(self) -> NetworkTrainer:
        """Return a trainer in this state, on rows of zeros; it is made on first use."""
        if self._trainer is None:
            rows = {name: values.repeat(SIZES[-1], axis=0) for name, values in self.blank.items()}
            network_trainer = trainer(self.name, self.settings, {"training": rows}, Holder, batch_size=SIZES[-1])
            self.restore(network_trainer)
            self._trainer = network_trainer
        return self._trainer

    def restore(self, made: NetworkTrainer) -> None:
        """Give a new trainer this state; raise SigmaConfigError if it has other arrays."""
        session = made.session
        fresh = session.ask(session.snapshot)
        for name in {*fresh.arrays, *self.arrays}:
            mine, wanted = (np.shape(table[name]) if name in table else None for table in (self.arrays, fresh.arrays))
            if mine != wanted:
                raise SigmaConfigError(
                    f"{self.name}: the shape of {name} is {wanted}, and {mine} in the network that was trained. Call "
                    "fit, or set the network and the optimiser back."
                )
        state = evolve(fresh, arrays=self.arrays, values={**fresh.values, **self.values})
        session.ask(lambda: session.restore(state))

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return the predictions for inputs, one row a sample."""
        full = len(inputs) - len(inputs) % SIZES[-1]
        parts = [self.trainer.predict(inputs[:full])] if full else []
        return (
            np.concatenate([*parts, self._predict_padded(inputs[full:])])
            if full < len(inputs) or not full
            else parts[0]
        )

    def _predict_padded(self, inputs: np.ndarray) -> np.ndarray:
        size = next(size for size in SIZES if len(inputs) <= size)
        rows = np.zeros((size, *inputs.shape[1:]), inputs.dtype)
        rows[: len(inputs)] = inputs
        outputs: np.ndarray = self.trainer.predict(rows)
        return outputs[: len(inputs)]


def trainer(
    name: str,
    settings: Mapping[str, Any],
    splits: Mapping[str, Rows],
    kind: type[Environment] = Environment,
    **more: Any,
) -> NetworkTrainer:
    """Return a new trainer on splits; nothing is written, and it cannot be steered."""
    return expect_trainer(kind(name, control=False).create_trainer(name, data=dict(splits), **{**settings, **more}))


def train_network(
    name: str,
    settings: Mapping[str, Any],
    splits: Mapping[str, Rows],
    epochs: int,
    before: TrainedNetwork | None = None,
    progress: bool = False,
    **more: Any,
) -> tuple[TrainedNetwork, History]:
    """Train on rows, from the state ``before`` if there is one; return the network and its history.

    Settings in ``more`` concern this training alone, such as the size of batches.
    """
    network_trainer = trainer(name, settings, splits, **more)
    try:
        if before is not None:
            before.restore(network_trainer)
        history = network_trainer.fit(epochs=epochs, progress=progress)
        state = network_trainer.session.ask(network_trainer.session.snapshot)
    finally:
        network_trainer.close()
    arrays = {name: values for name, values in state.arrays.items() if not name.startswith("kept.")}
    blank = {name: np.zeros((1, *values.shape[1:]), values.dtype) for name, values in splits["training"].items()}
    return TrainedNetwork(name, settings, blank, arrays, state.values), history
