"""Handwritten NumPy training loop: preallocated arrays, most operations in place.

It supports chains of dense layers with relu and dropout, one cost, and two optimisers.  It starts from the same
parameters as Sigma, sees the same batches and drops the same elements, so that its losses equal Sigma's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
from attrs import frozen

from sigma_bench.contest import Contestant
from sigma_bench.philox import Philox
from sigma_bench.work import Part, Workload
from sigma_kernel.errors import SigmaConfigError


class NumpyLoop(Contestant):
    """The loop; SigmaConfigError for work that it does not support."""

    name = "numpy-loop"

    def __init__(self, work: Workload) -> None:
        _check(work)
        self._inputs = np.asarray(work.inputs.reshape(len(work.inputs), -1), work.precision)
        self._labels = work.labels.astype(np.intp)
        self._batch = np.empty((work.batch_size, self._inputs.shape[1]), work.precision)
        self._slopes = np.empty((work.batch_size, _classes(work)), work.precision)
        self._stages = [stage for part in work.parts for stage in _stages(work, part)]
        self._first = next(i for i, stage in enumerate(self._stages) if stage.updates)
        self._batches = work.batches()
        self._losses: list[float] = []

    @property
    def losses(self) -> np.ndarray:
        """Return the loss of every iteration so far."""
        return np.array(self._losses)

    def run(self, iterations: int) -> None:
        """Train for this many more iterations."""
        for rows in islice(self._batches, iterations):
            self._losses.append(self._step(rows, len(self._losses)))

    def _step(self, rows: np.ndarray, iteration: int) -> float:
        x = self._inputs.take(rows, axis=0, out=self._batch[: len(rows)], mode="clip")
        seen = [x]
        for stage in self._stages:
            x = stage.forward(x, iteration)
            seen.append(x)
        slope = self._slopes[: len(rows)]
        loss = cross_entropy(x, self._labels[rows], slope)
        for i in reversed(range(self._first, len(self._stages))):
            self._stages[i].learn(seen[i], slope)
            slope = self._stages[i].backward(slope) if i > self._first else slope
        for stage in self._stages:
            for update in stage.updates:
                update()
        return loss


def cross_entropy(scores: np.ndarray, labels: np.ndarray, slope: np.ndarray) -> float:
    """Return the mean of ``-log softmax(scores)[label]``, and write its gradient."""
    every = np.arange(len(labels))
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=slope)
    chosen = slope[every, labels]
    np.exp(slope, out=slope)
    sums = slope.sum(axis=1, keepdims=True)
    slope /= sums
    slope[every, labels] -= 1
    slope /= len(labels)
    return float(np.mean(np.log(sums[:, 0]) - chosen))


# -- stages ------------------------------------------------------------------------------------------------------------
class Stage(Protocol):
    """One stage of the forward and the backward pass."""

    @property
    def updates(self) -> Sequence[Callable[[], None]]:
        """Return the update of each parameter."""

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return the value; x may be overwritten, except by a stage that needs it for its gradients."""

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Write the gradients of the parameters."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the input; the given one may be overwritten."""


class Sums:
    """Dense layer."""

    def __init__(self, work: Workload, layer: str) -> None:
        self.weights, self.biases = (work.parameters[f"{layer}.{name}"].copy() for name in ("weights", "biases"))
        self.slopes = [np.empty_like(x) for x in (self.weights, self.biases)]
        inputs, units = self.weights.shape
        self.value, self.slope = (np.empty((work.batch_size, n), work.precision) for n in (units, inputs))
        pairs = zip((self.weights, self.biases), self.slopes, strict=True)
        self.updates = [_update(work, x, slope) for x, slope in pairs]

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return the sums."""
        value = self.value[: len(x)]
        np.matmul(x, self.weights, out=value)
        value += self.biases
        return value

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Write the gradients of weights and biases."""
        np.matmul(x.T, slope, out=self.slopes[0])
        slope.sum(axis=0, out=self.slopes[1])

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the input."""
        np.matmul(slope, self.weights.T, out=self.slope[: len(slope)])
        return self.slope[: len(slope)]


class Relu:
    """``max(x, 0)``, in place.  Elements that are dropped afterwards have gradient 0 anyway."""

    updates: Sequence[Callable[[], None]] = ()

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return x with negative elements set to 0."""
        self.value = x
        np.maximum(x, 0, out=x)
        return x

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Do nothing: there are no parameters."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the gradient where x was positive."""
        slope *= self.value > 0
        return slope


class Mask:
    """Dropout, in place: the bits below ``rate * 2^32`` drop their elements."""

    updates: Sequence[Callable[[], None]] = ()

    def __init__(self, work: Workload, part: Part) -> None:
        rate = np.float32(part.settings["rate"])
        self.scale = 1 / (1 - np.dtype(work.precision).type(part.settings["rate"]))
        self.threshold = np.uint32(min(rate * np.float32(2**32), np.float32(2**32 - 256)))
        width = int(np.prod(part.shape))
        self.philox = Philox(work.key, part.settings["stream"], work.batch_size * width)
        self.mask = np.empty((work.batch_size, width), work.precision)

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return x with elements dropped."""
        mask, bits = self.mask[: len(x)], self.philox.bits(iteration, x.size).reshape(x.shape)
        np.multiply(bits >= self.threshold, self.scale, out=mask)
        x *= mask
        return x

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Do nothing: there are no parameters."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the elements kept."""
        slope *= self.mask[: len(slope)]
        return slope


# -- updates -----------------------------------------------------------------------------------------------------------
@frozen
class DescentUpdate:
    """``x <- x - rate * slope``; the slope is overwritten."""

    x: np.ndarray
    slope: np.ndarray
    rate: np.floating[Any]

    def __call__(self) -> None:
        """Update the parameter."""
        np.multiply(self.slope, self.rate, out=self.slope)
        np.subtract(self.x, self.slope, out=self.x)


@frozen
class Adaptive:
    """``s <- s + slope^2``, ``x <- x - rate * slope / (sqrt(s) + epsilon)``."""

    x: np.ndarray
    slope: np.ndarray
    total: np.ndarray
    rate: np.floating[Any]
    epsilon: np.floating[Any]
    spare: np.ndarray

    def __call__(self) -> None:
        """Update the parameter."""
        spare = np.multiply(self.slope, self.slope, out=self.spare)
        np.add(self.total, spare, out=self.total)
        np.sqrt(self.total, out=spare)
        spare += self.epsilon
        np.divide(self.slope, spare, out=spare)
        spare *= self.rate
        np.subtract(self.x, spare, out=self.x)


def _update(work: Workload, x: np.ndarray, slope: np.ndarray) -> Callable[[], None]:
    number, settings = np.dtype(work.precision).type, work.rule.settings
    rate = number(settings["learning_rate"])
    if work.rule.name == "gradient_descent":
        return DescentUpdate(x, slope, rate)
    total = np.full_like(x, settings["initial_accumulator"])
    return Adaptive(x, slope, total, rate, number(settings["epsilon"]), np.empty_like(x))


# -- supported work ----------------------------------------------------------------------------------------------------
def cannot(where: str, what: str) -> SigmaConfigError:
    """Return the error for work that the loop does not support."""
    return SigmaConfigError(
        f"peer 'numpy-loop': {where}: it does not support {what}. It supports chains of input, flatten, dropout, "
        "dense (with relu), output and softmax_cross_entropy, trained by gradient_descent or adagrad. Leave it out."
    )


def _check(work: Workload) -> None:
    if work.rule.name not in ("gradient_descent", "adagrad"):
        raise cannot("optimiser", work.rule.name)
    for part in work.parts:
        if part.kind not in ("affine", "activation", "dropout", "flatten"):
            raise cannot(part.layer, part.kind)
        if part.kind == "activation" and part.settings["name"] != "relu":
            raise cannot(part.layer, f"the activation {part.settings['name']!r}")
        if part.kind == "affine" and not part.settings["bias"]:
            raise cannot(part.layer, "sums without biases")
        if part.kind == "affine" and len(part.shape) != 1:
            raise cannot(part.layer, "samples with several axes; put flatten() before")


def _classes(work: Workload) -> int:
    last = [part.layer for part in work.parts if part.kind == "affine"][-1]
    return int(work.parameters[f"{last}.weights"].shape[1])


def _stages(work: Workload, part: Part) -> list[Stage]:
    """Return the stages of a part; rows are flat from the beginning."""
    if part.kind == "affine":
        return [Sums(work, part.layer)]
    if part.kind == "dropout":
        return [Mask(work, part)]
    return [Relu()] if part.kind == "activation" else []
