"""Components for these tests, in a catalogue of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from attrs import define, field, validators

from sigma_kernel import functions as f
from sigma_kernel.clock import TimeStep
from sigma_kernel.contracts import (
    Backend,
    CostLayer,
    Dataset,
    Hook,
    Initialiser,
    Iterator,
    Layer,
    Monitor,
    Operator,
    Optimiser,
    Parameter,
    Preprocessor,
    Schedule,
    Source,
    Transform,
    live,
)  # fmt: skip
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.discovery import Plugin
from sigma_kernel.plugins.specs import Component
from sigma_training.trainer import NetworkTrainer


@define
class Plain(Backend):
    device: int = 0

    def lower(self, graph: Any, donate: Any) -> Any:
        return None

    def to_device(self, host: Any) -> Any:
        return host

    def to_host(self, array: Any) -> Any:
        return array


@define
class Alone(Operator):
    workers: int = field(default=1, validator=validators.ge(1))

    def train(self, session: Any) -> None:
        return


@define
class FileSource(Source):
    path: Path
    name: str = "file"

    def open(self) -> Any:
        return self.path.open("rb")


@define
class Table(Dataset):
    """Sections from files."""

    sources: Sequence[Source] = ()
    columns: tuple[int, ...] = ()
    ends: tuple[float, float] = (0.0, 1.0)
    folder: Path | None = None
    split: Mapping[str, float] = field(factory=dict)
    scale: float = 1.0
    mode: Literal["fast", "slow"] = "fast"
    header: bool = True

    def __attrs_post_init__(self) -> None:
        if self.scale == 13.0:
            raise SigmaConfigError("thirteen is not served here")

    sections: ClassVar[Any] = {}
    blocks: ClassVar[Any] = 1

    def rows(self, block: int) -> int:
        return 20

    def block(self, block: int) -> Any:
        return {"inputs": np.zeros((20, 4)), "targets": np.zeros((20, 2))}


@define(eq=False)
class Halve(Schedule):
    """A factor."""

    interval: TimeStep
    then: Schedule | None = None

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return np.ones(len(iterations))


@define(eq=False, kw_only=True)
class Descent(Optimiser):
    learning_rate: float = live(0.1, low=0.0)
    momentum: float = live(0.0, low=0.0, below=1.0)

    def build(self, objective: Any) -> Any:
        return None


@define
class Normal(Initialiser):
    deviation: float = field(validator=validators.ge(0))
    mean: float = 0.0

    def values(self, address: str, parameter: Any, draws: Any) -> Any:
        return np.zeros(parameter.shape)


@define(eq=False, kw_only=True)
class Score(Hook):
    on: str = "validation"
    top: int = field(default=1, validator=validators.ge(1))

    def fire(self, context: Any) -> None:
        return


@define
class Watch(Monitor):
    port: int = 80

    def watch(self, view: Any) -> None:
        return


@define
class Centre(Preprocessor):
    section: str = "inputs"

    def fit(self, blocks: Any) -> Any:
        return {}

    def apply(self, values: Any, state: Any) -> Any:
        return values


@define
class Columns(Centre):
    which: str | int | tuple[str, ...] = field(kw_only=True)


@define(eq=False)
class Shorten(Transform):
    def apply(self, gradients: Any, objective: Any, owner: str) -> Any:
        return gradients


@define
class Backwards(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> Any:
        return np.arange(rows)[::-1]


@define(eq=False)
class Start(Layer):
    size: int = 1
    section: ClassVar[str] = "inputs"
    dtype: ClassVar[Any] = None
    role: ClassVar[str] = "input"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    def forward(self, context: Any, x: Any) -> Any:
        return x


@define(eq=False)
class Dense(Layer):
    size: int = 1

    def parameters(self, x: Any) -> Any:
        return {"weights": Parameter((*x.shape, self.size))}

    def forward(self, context: Any, x: Any) -> Any:
        return x @ context.parameters["weights"]


@define(eq=False, kw_only=True)
class Cost(CostLayer):
    def forward(self, context: Any, output: Any, targets: Any) -> Any:
        return f.mean(f.square(output - targets))


OBJECTS: dict[tuple[str, str], Any] = {
    ("backend", "plain"): Plain, ("backend", "numpy"): Plain, ("operator", "local"): Alone,
    ("source", "file"): FileSource, ("dataset", "table"): Table,
    ("schedule", "halve"): Halve,
    ("optimiser", "descent"): Descent, ("initialiser", "normal"): Normal, ("hook", "score"): Score,
    ("monitor", "watch"): Watch, ("preprocessor", "centre"): Centre, ("iterator", "backwards"): Backwards,
    ("layer", "input"): Start, ("layer", "dense"): Dense, ("layer", "cost"): Cost, ("modifier", "centre"): Centre,
    ("preprocessor", "columns"): Columns, ("modifier", "shorten"): Shorten, ("trainer", "network"): NetworkTrainer,
}  # fmt: skip


class Shelf(Catalogue):
    """A catalogue of the objects above."""

    objects: ClassVar[dict[tuple[str, str], Any]] = OBJECTS

    def load(self, kind: str, name: str) -> object:
        return OBJECTS[kind, self.resolve(kind, name).name]


@pytest.fixture
def shelf() -> Shelf:
    """Return a catalogue with components of many kinds."""
    roles = {"local": "operator", "network": "training"}
    records = tuple(
        Component(kind, name, "acme.things:Thing", "A thing.", "acme", default_for=roles.get(name, ""))
        for kind, name in OBJECTS
    )
    return Shelf((Plugin("acme", "1.0", records),))
