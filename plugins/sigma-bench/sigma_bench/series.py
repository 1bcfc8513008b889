"""Series of networks to benchmark: random ones, or scaled along one axis at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_run.config import Document, parse

GROWTH = (1, 2, 4, 8)
BATCHES = (10, 32, 64, 100, 128, 256)
OPTIMISERS = {"gradient_descent": 0.01, "momentum": 0.01, "adagrad": 0.01, "adam": 0.001}
ACTIVATIONS = ("relu", "relu", "tanh", "sigmoid")  # most nets have relu

TEMPLATE = """
format = 1

[run]
name = "{name}"
seed = {seed}
backend = "numba"

[data]
dataset = "synthetic"
rows = {net.rows}
shape = [{inputs}]
classes = {classes}
noise = 2.0
split = {{ training = 1.0 }}
batch_size = {net.batch}
last_batch = "drop"

[network]
architecture = "input({inputs}){hidden} + output({classes}) + softmax_cross_entropy()"

[initialisers.weights]
match = "**.weights"
type = "he_normal"

[trainer]
optimiser = {{ type = "{net.optimiser}", learning_rate = {rate} }}
"""


@frozen
class Net:
    """A dense network and its training."""

    widths: tuple[int, ...]  # of the inputs, of every hidden layer, and the classes
    batch: int = 50
    rows: int = 6000
    optimiser: str = "gradient_descent"
    activation: str = "relu"

    def document(self, name: str, seed: int = 0) -> Document:
        """Return the configuration."""
        hidden = "".join(f" + dense({width}, activation='{self.activation}')" for width in self.widths[1:-1])
        ends = {"inputs": self.widths[0], "classes": self.widths[-1], "rate": OPTIMISERS[self.optimiser]}
        text = TEMPLATE.format(net=self, name=name, seed=seed, hidden=hidden, **ends)
        return parse(text, f"{name}.toml")

    @property
    def work(self) -> int:
        """Return the number of multiplications in one forward pass."""
        return self.batch * sum(first * second for first, second in pairwise(self.widths))

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.widths))} {self.activation} {self.optimiser} batch {self.batch}"


def draw_networks(count: int, seed: int) -> Iterator[tuple[str, Document]]:
    """Yield this many random dense networks by name; the same seed gives the same networks."""
    draws = np.random.default_rng(seed)
    for number in range(count):
        net = _net(draws)
        yield f"random {number + 1}: {net}", net.document(f"random-{number + 1}", seed)


def _net(draws: np.random.Generator) -> Net:
    hidden = [_width(draws, 8, 1024) for _ in range(draws.integers(1, 6))]
    batch = int(draws.choice(BATCHES))
    return Net(
        widths=(_width(draws, 4, 1024), *hidden, int(draws.integers(2, 21))),
        batch=batch,
        rows=max(2000, 20 * batch),
        optimiser=str(draws.choice(list(OPTIMISERS))),
        activation=str(draws.choice(ACTIVATIONS)),
    )


def _width(draws: np.random.Generator, low: int, high: int) -> int:
    """Draw a width, uniform on a logarithmic scale."""
    return int(np.exp(draws.uniform(np.log(low), np.log(high))))


# -- growth ------------------------------------------------------------------------------------------------------------
SMALL = Net((128, 128, 128, 10))
AXES: dict[str, Callable[[int], Net]] = {
    "width": lambda times: evolve(SMALL, widths=(128, *(2 * [128 * times]), 10)),
    "depth": lambda times: evolve(SMALL, widths=(128, *(2 * times * [128]), 10)),
    "batch": lambda times: evolve(SMALL, batch=SMALL.batch * times),
    "data": lambda times: evolve(SMALL, rows=SMALL.rows * times),
}


def axes(names: Sequence[str]) -> list[str]:
    """Return axes by name; raises SigmaConfigError for an unknown name."""
    for name in names:
        if name not in AXES:
            raise SigmaConfigError(
                f"--grow {name}: there is no such axis.{suggest_name(name, AXES)} There are: {', '.join(AXES)}."
            )
    return list(names)


def grown(names: Iterable[str]) -> Iterator[tuple[str, Document]]:
    """Yield a small network, and for each axis the network scaled by two, four and eight."""
    for axis in names:
        for times in GROWTH:
            net = AXES[axis](times)
            yield f"{axis} x {times}", net.document(f"{axis}-{times}")


def works(names: Iterable[str]) -> list[float]:
    """Return the work of an iteration of each network, relative to the first one along its axis."""
    return [AXES[axis](times).work / AXES[axis](1).work for axis in names for times in GROWTH]
