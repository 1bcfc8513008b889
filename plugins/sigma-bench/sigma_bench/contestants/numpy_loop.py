"""What someone who knows NumPy would write by hand: one loop, arrays made once, most operations in place.

It knows chains of dense layers with relu and dropout, one cost, and two optimisers.  It starts from the same
parameters as Sigma, sees the same batches and drops the same elements, so that its losses are Sigma's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
from attrs import define, frozen

from sigma_bench.contest import Contestant
from sigma_bench.philox import Philox
from sigma_bench.work import Work
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network import Placed
from sigma_kernel.training.step import LAYERS, SLOTS
from sigma_layers import Dense, Dropout, Flatten, Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adagrad, GradientDescent


class NumpyLoop(Contestant):
    """The loop.  Work that it is not written for is a SigmaConfigError."""

    name = "numpy-loop"

    def __init__(self, work: Work) -> None:
        _check(work)
        self._space = Space(work.precision)
        self._inputs, self._labels = _rows(work)
        self._batch = self._space.empty(work.batch_size, self._inputs.shape[1])
        self._slopes = self._space.empty(work.batch_size, *work.shapes[work.layers[-2].name])
        self._stages = [stage for placed in work.layers for stage in _stages(work, placed, self._space)]
        self._first = next(i for i, stage in enumerate(self._stages) if stage.updates)
        self._batches = work.batches()
        self._losses: list[float] = []

    @property
    def losses(self) -> np.ndarray:
        """Return the loss of every iteration so far."""
        return np.array(self._losses)

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of all arrays that the loop keeps, but for the data."""
        return self._space.nbytes

    def run(self, iterations: int) -> None:
        """Train for so many more iterations."""
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
    """Return the mean of ``-log softmax(scores)[label]``, and write its slope."""
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
    """One step of the forward pass, and of the way back."""

    @property
    def updates(self) -> Sequence[Callable[[], None]]:
        """Return what makes a step of each parameter."""

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return the value; x may be overwritten, but by a stage that learns from it."""

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Write the slopes of parameters."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the slope of the input; the other may be overwritten."""


@define
class Space:
    """Make arrays, and count their bytes."""

    dtype: str
    nbytes: int = 0

    def empty(self, *shape: int) -> np.ndarray:
        """Return an array to be filled."""
        array: np.ndarray = self.add(np.empty(shape, self.dtype))
        return array

    def add(self, array: Any) -> Any:
        """Count something that has bytes, and return it."""
        self.nbytes += array.nbytes
        return array


class Sums:
    """Weighted sums of all features."""

    def __init__(self, work: Work, address: str, space: Space) -> None:
        names = [f"{address}.weights", f"{address}.biases"]
        self.weights, self.biases = (space.add(work.state[LAYERS + name].copy()) for name in names)
        self.slopes = [space.empty(*x.shape) for x in (self.weights, self.biases)]
        self.value, self.slope = (space.empty(work.batch_size, side) for side in reversed(self.weights.shape))
        pairs = zip(names, (self.weights, self.biases), self.slopes, strict=True)
        self.updates = [_update(work, name, x, slope, space) for name, x, slope in pairs]

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return the sums."""
        value = self.value[: len(x)]
        np.matmul(x, self.weights, out=value)
        value += self.biases
        return value

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Write the slopes of weights and biases."""
        np.matmul(x.T, slope, out=self.slopes[0])
        slope.sum(axis=0, out=self.slopes[1])

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the slope of the input."""
        np.matmul(slope, self.weights.T, out=self.slope[: len(slope)])
        return self.slope[: len(slope)]


class Relu:
    """``max(x, 0)``, in place.  Elements that are dropped afterwards have no slope anyway."""

    updates: Sequence[Callable[[], None]] = ()

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return x without what is negative."""
        self.value = x
        np.maximum(x, 0, out=x)
        return x

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Learn nothing."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the slope where x was positive."""
        slope *= self.value > 0
        return slope


class Mask:
    """Dropout, in place: the bits below ``rate * 2^32`` drop their elements."""

    updates: Sequence[Callable[[], None]] = ()

    def __init__(self, work: Work, placed: Placed, space: Space) -> None:
        rate = np.float32(placed.layer.rate)
        self.scale = 1 / (1 - np.dtype(work.precision).type(placed.layer.rate))
        self.threshold = np.uint32(min(rate * np.float32(2**32), np.float32(2**32 - 256)))
        width = int(np.prod(work.shapes[placed.name]))
        key, stream = work.state["random.key"], work.streams[placed.name]
        self.philox = space.add(Philox(key, stream, work.batch_size * width))
        self.mask = space.empty(work.batch_size, width)

    def forward(self, x: np.ndarray, iteration: int) -> np.ndarray:
        """Return x without what is dropped."""
        mask, bits = self.mask[: len(x)], self.philox.bits(iteration, x.size).reshape(x.shape)
        np.multiply(bits >= self.threshold, self.scale, out=mask)
        x *= mask
        return x

    def learn(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Learn nothing."""

    def backward(self, slope: np.ndarray) -> np.ndarray:
        """Return the slope of what was kept."""
        slope *= self.mask[: len(slope)]
        return slope


# -- updates -----------------------------------------------------------------------------------------------------------
@frozen
class Descent:
    """``x <- x - rate * slope``; the slope is overwritten."""

    x: np.ndarray
    slope: np.ndarray
    rate: np.floating[Any]

    def __call__(self) -> None:
        """Make a step."""
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
        """Make a step."""
        spare = np.multiply(self.slope, self.slope, out=self.spare)
        np.add(self.total, spare, out=self.total)
        np.sqrt(self.total, out=spare)
        spare += self.epsilon
        np.divide(self.slope, spare, out=spare)
        spare *= self.rate
        np.subtract(self.x, spare, out=self.x)


def _update(work: Work, name: str, x: np.ndarray, slope: np.ndarray, space: Space) -> Callable[[], None]:
    number, optimiser = np.dtype(work.precision).type, work.optimiser
    rate = number(optimiser.learning_rate)
    if type(optimiser) is GradientDescent:
        return Descent(x, slope, rate)
    total = space.add(work.state[f"{SLOTS}{name}.accumulator"].copy())
    return Adaptive(x, slope, total, rate, number(optimiser.epsilon), space.empty(*x.shape))


# -- what it is written for --------------------------------------------------------------------------------------------
def cannot(where: str, what: str) -> SigmaConfigError:
    """Return the error about work that the loop is not written for."""
    return SigmaConfigError(
        f"peer 'numpy-loop': {where}: it does not know {what}. It is written for chains of input, flatten, dropout, "
        "dense (with relu), output and softmax_cross_entropy, trained by gradient_descent or adagrad. Leave it out."
    )


def _check(work: Work) -> None:
    first, *_, last = work.layers
    chain = [(), *((placed.name,) for placed in work.layers[:-1])]
    if [tuple(placed.sources) for placed in work.layers] != chain:
        raise cannot("network", "branches")
    if type(last.layer) is not SoftmaxCrossEntropy:
        raise cannot(last.name, f"the cost {type(last.layer).__name__}")
    if last.layer.class_weights is not None or last.layer.weight != 1:
        raise cannot(last.name, "weights of classes or costs")
    if work.block[last.layer.targets].ndim != 1 or len(work.shapes[work.layers[-2].name]) != 1:
        raise cannot(last.name, "targets other than one label for each sample")
    if first.layer.dtype not in (None, work.precision):
        raise cannot(first.name, f"inputs of {first.layer.dtype}")
    if not any(type(placed.layer) in (Dense, Output) for placed in work.layers):
        raise cannot("network", "networks without parameters")
    _check_optimiser(work.optimiser)


def _check_optimiser(optimiser: Any) -> None:
    if type(optimiser) not in (GradientDescent, Adagrad):
        raise cannot("optimiser", type(optimiser).__name__)
    for name in ("settings", "schedules", "modifiers", "transforms"):
        if getattr(optimiser, name):
            raise cannot("optimiser", name)


def _rows(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of numbers and one label for each sample."""
    inputs = work.block[work.layers[0].layer.section]
    labels = work.block[work.layers[-1].layer.targets]
    return np.asarray(inputs.reshape(len(inputs), -1), work.precision), labels.astype(np.intp)


def _stages(work: Work, placed: Placed, space: Space) -> list[Stage]:
    """Return what a layer becomes."""
    layer = placed.layer
    if type(layer) in (Input, Flatten, SoftmaxCrossEntropy):
        return []
    if type(layer) is Dropout:
        return [Mask(work, placed, space)]
    if type(layer) not in (Dense, Output):
        raise cannot(placed.name, f"the layer {type(layer).__name__}")
    return _dense(work, placed, space) if type(layer) is Dense or layer.units else []


def _dense(work: Work, placed: Placed, space: Space) -> list[Stage]:
    layer, sums = placed.layer, len(work.shapes[placed.sources[0]])
    activation = str(layer.activation).rpartition(":")[2]  # a stored configuration says whose it is
    if activation not in ("identity", "relu"):
        raise cannot(placed.name, f"the activation {activation!r}")
    if layer.share or not layer.bias:
        raise cannot(placed.name, "shared parameters, or sums without biases")
    if sums != 1:
        raise cannot(placed.name, "samples with several axes; put flatten() before")
    return [Sums(work, placed.name, space), *([Relu()] if activation == "relu" else [])]
