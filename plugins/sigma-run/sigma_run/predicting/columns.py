"""The columns of predictions: classes by name, their probabilities, numbers in the units of their targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Label
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.network import Network

BEFORE, SHARE = "predicted", "probability"  # the beginnings of names of columns


@frozen
class PredictionColumns:
    """Turn the predictions of a network into columns.

    A class is ``predicted``, by its name, and has a ``probability_<class>`` for each class; a number is
    ``predicted_<target>``.  With several outputs, all names hold that of the target, or of the output.

    Args:
        network: The network.
        labels: Labels of the classes by output, of those that have any.
        targets: Names of the columns that outputs predict, of those that have any.
    """

    network: Network
    labels: Mapping[str, Sequence[Label]] = field(factory=dict)
    targets: Mapping[str, Sequence[str]] = field(factory=dict)

    def cut(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the columns of predictions by output; raise SigmaConfigError if two have the same name."""
        pairs = [pair for output, values in outputs.items() for pair in self._columns(output, values, len(outputs))]
        name, times = Counter(name for name, _ in pairs).most_common(1)[0]
        if times > 1:
            raise SigmaConfigError(f"predict: {times} columns would be called {name!r}. Rename the classes or targets.")
        return dict(pairs)

    def _columns(self, output: str, values: np.ndarray, outputs: int) -> list[tuple[str, np.ndarray]]:
        flat, targets = values.reshape(len(values), -1), [*self.targets.get(output, ())]
        own = targets[0] if len(targets) == 1 else output
        chosen = self.network.classify(output, values) if values.ndim <= 2 else None
        if chosen is not None:
            alone = outputs == 1
            first = f"{BEFORE}_{targets[0]}" if len(targets) == 1 else BEFORE if alone else f"{BEFORE}_{own}"
            return self._class_columns(output, flat, chosen, (first, SHARE if alone else f"{SHARE}_{own}"))
        if any(cost.layer.decides and cost.sources[0] == output for cost in self.network.targeted_costs):
            return self._decisions(output, flat, outputs)
        return [*zip(self._number_names(output, values, outputs), flat.T, strict=True)]

    def _class_columns(
        self, output: str, flat: np.ndarray, chosen: tuple[np.ndarray, int], names: tuple[str, str]
    ) -> list[tuple[str, np.ndarray]]:
        """Return the class of each row, and the probability of each class."""
        places, count = chosen
        labels = self._labels(output, count) or range(count)
        shares = flat if flat.shape[1] == count else np.concatenate([1 - flat, flat], axis=1)  # of two classes
        classes = to_array(labels)[places]
        return [(names[0], classes), *((f"{names[1]}_{x}", shares[:, i]) for i, x in enumerate(labels))]

    def _decisions(self, output: str, flat: np.ndarray, outputs: int) -> list[tuple[str, np.ndarray]]:
        """Return for each of several labels whether a row has it, and its probability."""
        count = flat.shape[1]
        names = self.targets.get(output, ())
        labels = self._labels(output, count) or (names if len(names) == count else range(count))
        after = "" if outputs == 1 else f"_{output}"
        decided = [(f"{BEFORE}{after}_{label}", flat[:, i] > 0.5) for i, label in enumerate(labels)]
        return [*decided, *((f"{SHARE}{after}_{label}", flat[:, i]) for i, label in enumerate(labels))]

    def _labels(self, output: str, count: int) -> Sequence[Label]:
        labels = self.labels.get(output, ())
        return labels if len(labels) == count else ()

    def _number_names(self, output: str, values: np.ndarray, outputs: int) -> list[str]:
        count, targets = prod(values.shape[1:]), self.targets.get(output, ())
        if len(targets) == count:
            return [f"{BEFORE}_{target}" for target in targets]
        first = BEFORE if outputs == 1 else f"{BEFORE}_{output}"
        return [first] if count == 1 else [f"{first}_{i}" for i in range(count)]


def to_array(labels: Sequence[Any]) -> np.ndarray:
    """Return labels as an array of their type; of several types, as words."""
    kinds = {*map(type, labels)}
    return np.array([*labels] if len(kinds) == 1 else [*map(str, labels)])
