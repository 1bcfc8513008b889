"""What a configuration file holds: one attrs class for each of its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NewType

from attrs import Attribute, Factory, field, frozen, validators

from sigma_kernel.config.choice import REQUIRED, Choice
from sigma_kernel.config.document import Document
from sigma_kernel.config.structure import located
from sigma_kernel.contracts import (
    Backend,
    Dataset,
    Hook,
    Initialiser,
    Monitor,
    Operator,
    Optimiser,
    Order,
    Preprocessor,
)

ArchitectureText = NewType("ArchitectureText", str)
Precision = Literal["float32", "float64", "float16", "bfloat16"]


def chosen(contract: Any, default: Any = REQUIRED) -> Any:
    """Return a field that holds the choice of a component; a default may be its name."""
    return field(default=default, metadata={"type": contract})


def named(contract: Any) -> Any:
    """Return a field that holds choices by name; none, if left out."""
    return field(factory=dict, metadata={"type": Mapping[str, contract]}, validator=_names)


def _name(owner: Any, attribute: Attribute[Any], value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_+-]*", value):
        raise ValueError(f"must be a name of letters, digits, - and _ (got {value!r})")


def _names(owner: Any, attribute: Attribute[Any], value: Mapping[str, Any]) -> None:
    for name in value:
        try:
            _name(owner, attribute, name)
        except ValueError as error:
            raise located(error, (name,)) from None


@frozen(kw_only=True)
class Run:
    """``[run]``: what concerns the whole run."""

    name: str = field(default="run", validator=_name)
    seed: int = field(default=0, validator=[validators.ge(0), validators.lt(2**64)])
    precision: Precision = "float32"
    folder: Path = Factory(lambda: Path("runs").absolute())
    backend: Choice = chosen(Backend, "numpy")
    operator: Choice = chosen(Operator, "local")


@frozen(kw_only=True)
class Data:
    """``[data]``: the keys that are not named here are settings of the dataset."""

    dataset: Choice = chosen(Dataset)
    batch_size: int = field(default=100, validator=validators.ge(1))
    last_batch: Literal["keep", "drop"] = "keep"
    order: Choice | None = chosen(Order | None, None)
    preprocessors: Mapping[str, Choice] = named(Preprocessor)


@frozen(kw_only=True)
class Network:
    """``[network]``: the architecture in its text form."""

    architecture: ArchitectureText


@frozen(kw_only=True)
class Rule:
    """``[initialisers.NAME]``: the parameters it concerns, and what gives them their first values."""

    match: str
    type: Choice = chosen(Initialiser)


@frozen(kw_only=True)
class Training:
    """``[trainer]``: how it trains; ``backend`` and ``operator`` replace those of ``[run]``."""

    optimiser: Choice = chosen(Optimiser)
    backend: Choice | None = chosen(Backend | None, None)
    operator: Choice | None = chosen(Operator | None, None)


@frozen(kw_only=True)
class Trainer(Training):
    """``[trainers.NAME]``: one of several trainers."""

    data: Data
    network: Network
    initialisers: Mapping[str, Rule] = field(factory=dict, validator=_names)
    hooks: Mapping[str, Choice] = named(Hook)


@frozen(kw_only=True)
class File:
    """The whole file, with one trainer, whose tables stand at the top, or with several."""

    format: Literal[1]
    run: Run
    data: Data
    network: Network
    initialisers: Mapping[str, Rule] = field(factory=dict, validator=_names)
    trainer: Training
    hooks: Mapping[str, Choice] = named(Hook)
    monitors: Mapping[str, Choice] = named(Monitor)


@frozen(kw_only=True)
class Files:
    """The whole file, with several trainers."""

    format: Literal[1]
    run: Run
    trainers: Mapping[str, Trainer] = field(validator=_names)
    monitors: Mapping[str, Choice] = named(Monitor)


@frozen(kw_only=True)
class Configuration:
    """What a file means: every component chosen, every default filled in; equal if all of that is."""

    run: Run
    trainers: Mapping[str, Trainer]
    monitors: Mapping[str, Choice]
    document: Document = field(eq=False, repr=False)
