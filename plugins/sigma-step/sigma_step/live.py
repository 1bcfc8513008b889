"""Live values: the settings that are inputs of the step, so that changing one never recompiles.

The value in force is a settable base times a schedule, a function of the clock.  A setting of the optimiser exists
once for each parameter, as ``optimiser.<address>.<setting>``; the group's value fans out to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from attrs import Factory, field, frozen

from sigma_kernel.arrays import readable
from sigma_kernel.contracts import Schedule, Step
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaError, expect, introduce_errors
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.tracing import LOG, LiveSetting
from sigma_kernel.registry.registry import Kind

UNKNOWN_END = (
    "needs the length of the run, and nothing says when this one ends. Set `epochs` to a number, train with "
    "fit(epochs=...), or give the schedule a time, such as '10 epochs'."
)


@frozen
class Span:
    """Consecutive iterations: those before the first, how many, whole epochs before, and where the present one is.

    ``end`` is the iteration at which training ends, if that is known.
    """

    first: int
    n: int = 1
    epoch: int = 0
    done: int = 0  # iterations of the present epoch before the first
    per_epoch: int = 1
    end: int | None = None

    @property
    def iterations(self) -> np.ndarray:
        """Return the number of iterations completed before each."""
        return self.first + np.arange(self.n)

    @property
    def epochs(self) -> np.ndarray:
        """Return the number of epochs completed before each, with fractions."""
        return self.epoch + (self.done + np.arange(self.n)) / self.per_epoch


@frozen
class LiveValue:
    """A live value: configured base, range and schedule."""

    setting: LiveSetting
    base: float
    schedule: Schedule | None = None


def _check_bases(live: Live) -> dict[str, float]:
    """Return the configured base of each live value; raise SigmaConfigError for one that the precision cannot hold."""
    for base, name in {value.base: name for name, value in reversed(live.values.items())}.items():
        check_fits(name, base, live.dtype)
    return {name: value.base for name, value in live.values.items()}


@frozen(eq=False)
class Live:
    """The live values of a state: their definitions, and the current ``base`` of each.

    Raises SigmaConfigError for a configured base that the precision cannot hold.
    """

    values: dict[str, LiveValue]
    dtype: str
    base: Mapping[str, float] = field(default=Factory(_check_bases, takes_self=True))
    _ready: dict[str, Any] = field(factory=dict, init=False)  # cached: backends recognise arrays by identity

    def with_base(self, base: Mapping[str, float]) -> Live:
        """Return live values with new bases, already checked by :class:`Number`; ignore unknown names."""
        return Live(self.values, self.dtype, {name: base.get(name, old) for name, old in self.base.items()})

    def values_at(self, step: Step, span: Span) -> dict[str, Any]:
        """Return the values in force for iterations of a step: one scalar, or one for each if there is a schedule."""
        ready = self._ready
        return {
            name: ready[name] if name in ready else self._value(name, span)
            for name in step.steer
            if name.removesuffix(LOG) in self.base
        }

    def _value(self, name: str, span: Span) -> Any:
        own = name.removesuffix(LOG)
        value = np.asarray(self.base[own] * self._factors(own, span), self.dtype)
        if own != name:
            with np.errstate(divide="ignore"):  # of 0: a power of it is 0, which -inf gives
                value = np.asarray(np.log(value, dtype=np.float64), self.dtype)
        if self.values[own].schedule is None:
            self._ready[name] = value
        return value

    def _factors(self, name: str, span: Span) -> Any:
        if (schedule := self.values[name].schedule) is None:
            return 1.0
        if schedule.needs_end and span.end is None:
            raise SigmaConfigError(f"{name}: its schedule {UNKNOWN_END}")
        with introduce_errors(f"schedule of {name}", schedule):
            if schedule.needs_end and span.end is not None:
                schedule = schedule.with_end(span.end)
            factors = schedule.factors(span.iterations, span.epochs)
            floats = getattr(factors, "shape", None) == (span.n,) and factors.dtype.kind == "f"
            expect(floats, f"factors() must return floats of shape ({span.n},)", factors)
        return factors


# -- what they can be set to ------------------------------------------------------------------------------------------
def check_fits(where: str, value: Any, dtype: str, error: type[SigmaError] = SigmaConfigError) -> None:
    """Raise an error for a finite number, or an array of them, that a precision cannot hold."""
    with np.errstate(over="ignore"):
        if isinstance(value, Real | np.ndarray) and np.isinf(np.asarray(value).astype(dtype)).any():
            raise error(f"{where}: {value!r:.200} is too large for {dtype}. Choose a smaller number.")


@frozen
class Number(Kind):
    """The kind of a live value: a number in its range."""

    setting: LiveSetting = field(kw_only=True)
    dtype: str = field(kw_only=True)

    def check(self, address: str, value: Any) -> Any:
        """Return the value as a number; raise SigmaAddressError if it is out of range, or beyond the precision."""
        number = self.setting.check(address, value)
        check_fits(address, number, self.dtype, SigmaAddressError)
        return number


def number_kind(setting: LiveSetting, dtype: str) -> Number:
    """Return the kind of a live value, with the range of its setting."""
    limits = (setting.low, setting.high, setting.above, setting.below)
    return Number(float, *limits, setting.doc, setting=setting, dtype=dtype)


@frozen
class Elements(Kind):
    """The kind of a parameter: numbers in its shape, or a single one to fill it."""

    spec: Spec = field(kw_only=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the parameter."""
        return self.spec.shape

    def __str__(self) -> str:
        return f"numbers, {self.spec}, or one for all"

    def check(self, address: str, value: Any) -> Any:
        """Return the value; raise SigmaAddressError for a wrong shape, non-numbers, or values beyond the precision."""
        shape, dtype, new = self.spec.shape, self.spec.dtype, readable(value)
        if new.dtype.kind not in "fiu" or new.shape not in ((), shape):
            got = f"{new.dtype} of shape {new.shape}" if new.dtype.kind != "O" else repr(value)[:200]
            raise SigmaAddressError(f"{address}: holds {dtype} of shape {shape} (got {got}).")
        check_fits(address, new, dtype, SigmaAddressError)
        return value
