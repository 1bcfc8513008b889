"""The table ``[search]`` of a configuration file: how many trials, of which settings, for which value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, prod
from typing import Any, Literal

from attrs import Attribute, evolve, field, frozen

from sigma_kernel import TimeStep, every
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge
from sigma_run.config import Document, load_table

Number = int | float
UNITS = ("epoch", "iteration")  # that do not depend on time


def _check_low(dimension: Dimension, attribute: Attribute[Any], low: Number | None) -> None:
    if dimension.choices is not None and (low, dimension.high, dimension.step, dimension.log) != (
        None,
        None,
        None,
        False,
    ):
        raise ValueError("there are choices as well. Give either choices, or low and high.")
    if dimension.choices is None and (low is None or dimension.high is None):
        raise ValueError("needs low and high, or choices.")
    if low is not None and not isfinite(low):
        raise ValueError(f"must be finite (got {low}).")
    if low is not None and dimension.log and low <= 0:
        raise ValueError(f"must be above 0, as log is true (got {low}).")


def _check_high(dimension: Dimension, attribute: Attribute[Any], high: Number | None) -> None:
    if high is not None and dimension.low is not None and not dimension.low < high < float("inf"):
        raise ValueError(f"must be finite and above low (got {high}, and low is {dimension.low}).")


def _check_step(dimension: Dimension, attribute: Attribute[Any], step: Number | None) -> None:
    if step is None:
        return
    if dimension.log:
        raise ValueError("a range with log has no steps. Leave out one of them.")
    if not 0 < step < float("inf"):
        raise ValueError(f"must be a number above 0 (got {step}).")
    if dimension.is_whole and not isinstance(step, int):
        raise ValueError(f"must be a whole number, as low and high are (got {step}).")


def _check_choices(dimension: Dimension, attribute: Attribute[Any], choices: Sequence[Any] | None) -> None:
    if choices is not None and len(choices) < 1:
        raise ValueError("must have at least one value.")


@frozen(kw_only=True)
class Dimension:
    """The values that a setting may have: a range, whole numbers if ``low`` and ``high`` are, or ``choices``."""

    low: Number | None = field(default=None, validator=_check_low)
    high: Number | None = field(default=None, validator=_check_high)
    log: bool = False
    step: Number | None = field(default=None, validator=_check_step)
    choices: Sequence[Any] | None = field(default=None, validator=_check_choices)

    @property
    def is_whole(self) -> bool:
        """Return whether its values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> list[Any]:
        """Return the values that are validated before training: the ends of a range, or all choices."""
        return [self.low, self.high] if self.choices is None else [*self.choices]

    def points(self) -> list[Any] | None:
        """Return the values of a grid; None for a range without steps."""
        if self.choices is not None:
            return [*self.choices]
        low, high, step = self.low, self.high, self.step
        if low is None or high is None or (step is None and (self.log or not self.is_whole)):
            return None
        count = int((high - low) / (step or 1) + 1e-9) + 1
        return [low + index * (step or 1) for index in range(count)]


def _check_from(pruning: Pruning, attribute: Attribute[Any], step: TimeStep) -> None:
    if step.scale.value not in UNITS:
        raise ValueError("must be in epochs or iterations, such as '5 epochs'.")


@frozen(kw_only=True)
class Pruning:
    """When a trial is given up: below the median of earlier ones, or by successive halving.

    Args:
        type: The rule.
        from_: The first comparison.
        every: How often values are recorded and compared.
        startup: Trials that have to finish before the median counts.
        factor: Of how many trials halving keeps one, and how much longer that trains before the next comparison.
    """

    type: Literal["median", "halving"]
    from_: TimeStep = field(default=every(1, "epoch"), validator=_check_from)
    every: TimeStep = field(default=every(1, "epoch"), validator=_check_from)
    startup: int = field(default=5, validator=ge(1))
    factor: int = field(default=3, validator=ge(2))

    @property
    def first_count(self) -> float:
        """Return the count of the first comparison."""
        return self.from_.first

    @property
    def counts_iterations(self) -> bool:
        """Return whether that is a count of iterations, else of epochs."""
        return self.from_.scale.value == "iteration"


def _check_goal(settings: SearchSettings, attribute: Attribute[Any], maximise: str | None) -> None:
    if maximise is None and settings.minimise is None:
        raise ValueError("has no goal. Set maximise or minimise to the address of a value.")
    if maximise is not None and settings.minimise is not None:
        raise ValueError("there is minimise as well. Give one of them.")


def _check_space(settings: SearchSettings, attribute: Attribute[Any], space: Mapping[str, Dimension]) -> None:
    if not space:
        raise ValueError("has no settings to search. Give each its values in [search.space], by its address.")
    for address, dimension in space.items():
        if settings.sampler == "grid" and dimension.points() is None:
            raise ValueError(f"{address}: a grid needs choices or a step. Give one, or take the sampler random.")


def _check_trials(settings: SearchSettings, attribute: Attribute[Any], trials: int | None) -> None:
    if trials is None and settings.sampler != "grid":
        raise ValueError("has no number of trials. Set trials; only a grid has a number of its own.")
    if trials is not None and trials < 1:
        raise ValueError(f"must be at least 1 (got {trials}).")


@frozen(kw_only=True)
class SearchSettings:
    """``[search]``: what is searched, and how.

    Args:
        trials: How many; that of a grid is at most the number of its points.
        parallel: How many train at the same time, each in a process.
        maximise: Address of the value of which a trial should reach the most.
        minimise: Address of the value of which a trial should reach the least.
        sampler: Who proposes values: ``grid`` (all, in order), ``random``, or ``tpe`` (from the outcomes so far).
        prune: When a trial is given up; by default never.
        attempts: How often a trial begins that fails, or whose process is lost.
        space: The values of each setting that is searched, by its address.
    """

    trials: int | None = field(default=None, validator=_check_trials)
    parallel: int = field(default=1, validator=ge(1))
    maximise: str | None = field(default=None, validator=_check_goal)
    minimise: str | None = None
    sampler: Literal["grid", "random", "tpe"] = "tpe"
    prune: Pruning | None = None
    attempts: int = field(default=3, validator=ge(1))
    space: Mapping[str, Dimension] = field(factory=dict, validator=_check_space)

    @property
    def value(self) -> str:
        """Return the address of the value."""
        return self.maximise or self.minimise or ""

    @property
    def count(self) -> int:
        """Return the number of trials."""
        points = prod(len(dimension.points() or ()) for dimension in self.space.values())
        numbers = [self.trials, points if self.sampler == "grid" else None]
        return min(number for number in numbers if number is not None)


def read_settings(document: Document) -> SearchSettings:
    """Return the settings of the table ``[search]``; raise one SigmaConfigError for all its mistakes."""
    if "search" not in document.values:
        raise SigmaConfigError(f"{document.name}: has no table [search]. Add one, with trials, maximise and space.")
    try:
        return load_table(_rename(document, "from", "from_"), "search", SearchSettings)
    except SigmaConfigError as error:
        raise SigmaConfigError(str(error).replace("from_", "from")) from None


def _rename(document: Document, name: str, other: str) -> Document:
    """Return a document with another name of a key of ``[search] prune``, as a word of Python names no field."""
    table = document.values["search"]
    prune = table.get("prune") if isinstance(table, Mapping) else None
    if not isinstance(prune, Mapping):
        return document
    head = ("search", "prune")
    renamed = {other if key == name else key: value for key, value in prune.items()}
    places = {(*head, other) if path == (*head, name) else path: line for path, line in document.places.items()}
    return evolve(document, values={**document.values, "search": {**table, "prune": renamed}}, places=places)
