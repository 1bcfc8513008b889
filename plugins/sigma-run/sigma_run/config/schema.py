"""The schema of configuration files: one attrs class per table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
from attrs import Attribute, define, field, frozen

from sigma_kernel import settings
from sigma_kernel.clock import EVENTS, TimeScale, TimeStep
from sigma_kernel.contracts import (
    Augmentation,
    Backend,
    Dataset,
    Hook,
    Initialiser,
    Iterator,
    Metric,
    Monitor,
    Operator,
    Optimisation,
    Optimiser,
    Preprocessor,
    Rewriting,
)
from sigma_kernel.network.architecture import Architecture
from sigma_kernel.plugins.choice import Choice
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.settings.mistakes import Faults
from sigma_run.config.document import Document
from sigma_training import notation


class ArchitectureText(str):
    """The text form of an architecture, ready to be made."""

    def __init__(self, text: str) -> None:
        self.ready: list[list[Architecture]] = []  # the ends of the network that reading has made

    def make(self, load: Callable[[str, str], Any]) -> list[Architecture]:
        """Return the ends of the network, which are made once; another call makes others."""
        return self.ready.pop() if self.ready else notation.parse(self, load)


METRIC = settings.matches_re(  # after the output that is measured, or a pattern of several
    r"([\w*-]++\.)?+[A-Za-z0-9][A-Za-z0-9_+-]*+", "a name of letters, digits, - and _, after an output and a dot"
)


def tables(check: Callable[[Any, Any, str], Any] = settings.NAME, *others: Callable[[Any, Any, Any], None]) -> Any:
    """Return a field for a table of named tables, which other validators may check as well."""

    def names(owner: Any, attribute: Any, value: Mapping[str, Any]) -> None:
        faults = Faults()
        for name in value:
            with faults.locate(name):
                check(owner, attribute, name)
        faults.raise_all()

    return field(factory=dict, validator=[names, *others])


def _one_or_several(owner: Any, attribute: Any, value: Mapping[str, Optimisation]) -> None:
    faults = Faults()
    if owner.optimiser is None and not value:
        with faults.locate("optimiser"):
            raise ValueError("is missing. Give it an optimiser, or several as optimisers.NAME.")
    faults.raise_all()
    if owner.optimiser is not None and value:
        raise ValueError("there is an optimiser as well. Give one optimiser, or several with names.")


def _counts(owner: Any, attribute: Attribute[Any], value: TimeStep | None) -> None:
    if value is not None and (value.scale in EVENTS or value.scale is TimeScale.SECOND):
        raise ValueError(f"cannot be every {value.scale.value}. Use iterations, epochs or samples")


@frozen(kw_only=True)
class Run:
    """``[run]``: settings of the whole run."""

    name: str = field(default="run", validator=settings.NAME)
    seed: int = field(default=0, validator=[settings.ge(0), settings.lt(2**64)])
    precision: settings.Precision = field(default="float32", converter=settings.precision)
    folder: Path = field(factory=lambda: Path("runs").absolute())
    prefer: Sequence[str] = field(factory=list)  # distributions whose components ambiguous names mean
    plugins: Sequence[str] = field(factory=list)  # distributions that are told when the run begins, ends or fails
    control: bool = True  # whether other shells may steer
    backend: Choice[Backend]
    operator: Choice[Operator]
    verify: TimeStep | None = field(default=None, validator=settings.require(_counts, "a time step"))


@frozen(kw_only=True)
class Data:
    """``[data]``: other keys are settings of the dataset."""

    slot: ClassVar[str] = "dataset"

    dataset: Choice[Dataset]
    validation_split: float | Mapping[str, Any] | None = None  # of data without splits of their own
    batch_size: int | None = field(default=None, validator=settings.optional(settings.ge(1)))  # None: the trainer's
    last_batch: Literal["keep", "drop"] = "keep"
    iterator: Choice[Iterator] | None = None
    preprocessors: Mapping[str, Choice[Preprocessor]] = tables()
    augmentations: Mapping[str, Choice[Augmentation]] = tables()


@frozen(kw_only=True)
class NetworkTable:
    """``[network]``: the architecture as text, and rewritings of its graph."""

    architecture: ArchitectureText
    rewritings: Mapping[str, Choice[Rewriting]] = tables()


@frozen(kw_only=True)
class Rule:
    """``[initialisers.NAME]``: the parameters that it matches; other keys are settings of the initialiser."""

    slot: ClassVar[str] = "type"

    match: str
    type: Choice[Initialiser]


@frozen(kw_only=True)
class Training:
    """``[trainer]``: one optimiser or several; ``backend`` and ``operator`` override those of ``[run]``.

    Several optimisers update one after another if ``order`` lists them.

    Training ends after ``epochs`` in total, resumed runs included, unless a hook ends it before. With ``baselines =
    false``, the summary of the run has none. Media of hooks are kept up to ``media_bytes``.
    """

    optimiser: Choice[Optimiser] | None = None
    optimisers: Mapping[str, Optimisation] = tables(settings.NAME, _one_or_several)
    order: Sequence[str] | None = None
    epochs: int | float | None = field(default=None, validator=settings.optional(settings.epochs))
    metrics: Mapping[str, Choice[Metric]] = tables(METRIC)
    baselines: bool | None = None
    media_bytes: int | None = field(default=None, validator=settings.optional(settings.ge(0)))
    backend: Choice[Backend] | None = None
    operator: Choice[Operator] | None = None


@frozen(kw_only=True)
class TrainerTable(Training):
    """``[trainers.NAME]``: one of several trainers."""

    data: Data
    network: NetworkTable
    initialisers: Mapping[str, Rule] = tables()
    hooks: Mapping[str, Choice[Hook]] = tables()


@define(kw_only=True, eq=False)
class _Common:
    """Keys of every configuration file."""

    format: Literal[1]
    run: Run
    monitors: Mapping[str, Choice[Monitor]] = tables()
    document: Document = field(init=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and Dumper().dump(self) == Dumper().dump(other)


@define(kw_only=True, eq=False)
class Single(_Common):
    """A file with one trainer, whose tables are at the top level."""

    data: Data
    network: NetworkTable
    initialisers: Mapping[str, Rule] = tables()
    trainer: Training
    hooks: Mapping[str, Choice[Hook]] = tables()

    __repr__ = settings.brief

    @property
    def trainers(self) -> Mapping[str, TrainerTable]:
        """Return the trainer by its name."""
        names = [a.name for a in attrs.fields(TrainerTable)]
        parts: Any = {name: getattr(self, name, getattr(self.trainer, name, None)) for name in names}
        return {"trainer": TrainerTable(**parts)}


@define(kw_only=True, eq=False)
class Several(_Common):
    """A file with several trainers, each with its own tables."""

    trainers: Mapping[str, TrainerTable] = tables()

    __repr__ = settings.brief


# A file after reading: components resolved to choices, defaults filled in.  Compares by value.
Configuration = Single | Several
