"""Encode a column of numbers: missing values replaced, then logarithm, limits and scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    FIX,
    fill_rule,
    read_batches,
    read_reals,
    read_with_gaps,
    refuse,
    refuse_missing,
)
from sigma_data.interpolation import interpolate, quantile_knots
from sigma_data.preprocessors.clip import tails
from sigma_data.preprocessors.log import signed_log
from sigma_data.preprocessors.robust import spread
from sigma_data.preprocessors.standardise import RowMoments
from sigma_data.sampling import MOST, sample_rows
from sigma_kernel import Encoder, SigmaDataError
from sigma_kernel.settings import in_, must, optional

WORDS = ("refuse", "mean", "median", "most_frequent")
REMEDY = "set missing = 'median' or another replacement, or leave the row out"
INFINITE = "Correct it, leave the row out, or set infinite = 'missing'."
SCALES = ("none", "standard", "robust", "quantile")
KNOTS = 1000
Read = Callable[[], Iterator[np.ndarray]]


def _is_limit(value: Any) -> bool:
    return bool(value[0] < value[1]) if isinstance(value, tuple | list) else 0 < value < 0.5


@frozen
class NumberEncoder(Encoder):
    """Encode numbers as themselves, scaled by statistics of the training rows that have a value.

    First, missing values are replaced; then numbers are limited, their logarithm is taken, and they are scaled.
    Quantiles and the most frequent value are exact for up to a million rows; of more, a random sample is read.

    Args:
        missing: What replaces missing values, also in rows to predict from: the mean, the median or the most frequent
            value, or this number; or ``refuse``: a missing value is an error.
        infinite: What infinite values do: raise an error, or count as missing.
        indicator: Add a number that is 1 where the value is missing, else 0.
        clip: Limits of the values, or the share of the training rows on either side of them, such as 0.01.
        log: Whether to take sign(x) log(1 + abs(x)), as the preprocessor ``log`` does.
        scale: What is subtracted and divided by: mean and deviation (``standard``), or median and interquartile range
            (``robust``); or ``quantile``: make the values normally distributed, as the preprocessor ``quantile`` does.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("number", "constant")
    missing: Literal["refuse", "mean", "median", "most_frequent"] | float = field(
        default="median", validator=fill_rule(*WORDS)
    )
    infinite: Literal["refuse", "missing"] = field(default="refuse", validator=in_(("refuse", "missing")), kw_only=True)
    indicator: bool = False
    clip: float | tuple[float, float] | None = field(
        default=None,
        validator=optional(must(_is_limit, "a share above 0 and below 0.5, or two numbers, the lower one first")),
    )
    log: bool = False
    scale: Literal["none", "standard", "robust", "quantile"] = field(default="standard", validator=in_(SCALES))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the replacement ``fill``, the limits ``low`` and ``high``, and the statistics of the scale."""
        read = _hold(partial(self._read_values, columns))
        state: dict[str, Any] = {}
        sample = sample_rows(read()) if self._needs_sample else np.zeros(0)
        if not any(map(len, read())):
            raise SigmaDataError(EMPTY)
        state["fill"] = self._fill(read, sample)
        if self.clip is not None:
            limits = tails(sample, self.clip) if isinstance(self.clip, float | int) else self.clip
            state["low"], state["high"] = map(float, limits)
        return state | self._scaling(
            lambda: (self._limit(values, state) for values in read()), self._limit(sample, state)
        )

    @property
    def _needs_sample(self) -> bool:
        by_rank = self.missing in ("median", "most_frequent") or self.scale in ("robust", "quantile")
        return by_rank or isinstance(self.clip, float | int)

    def _read_values(self, columns: Iterable[Any]) -> Iterator[np.ndarray]:
        """Yield the values that are not missing."""
        for values, missing in read_batches(columns, self._read):
            yield values if missing is None else values[~missing]

    def _read(self, column: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the numbers of a column, and which are missing; None if none is."""
        if self.infinite == "missing":
            values = read_reals(column)
            finite = np.isfinite(values)
            missing = None if finite.all() else ~finite
        else:
            values, missing = read_with_gaps(column, INFINITE)
        if self.missing == "refuse" and missing is not None:
            refuse_missing(missing, column, REMEDY)
        return values, missing

    def _fill(self, read: Read, sample: np.ndarray) -> float | None:
        """Return what replaces missing values; None if they are refused."""
        if self.missing == "mean":
            (mean,) = _compute_finite(lambda: [_moments(read()).mean], "set missing = 'median'")
            return float(mean)
        if self.missing == "median":
            return _median(sample)
        if self.missing == "most_frequent":
            values, counts = np.unique(sample, return_counts=True)
            return float(values[np.argmax(counts)])
        return None if isinstance(self.missing, str) else float(self.missing)

    def _limit(self, values: np.ndarray, state: Mapping[str, Any]) -> np.ndarray:
        """Return the values that are scaled."""
        if "low" in state:
            values = np.clip(values, state["low"], state["high"])
        return np.asarray(signed_log(values)) if self.log else values

    def _scaling(self, read: Read, sample: np.ndarray) -> dict[str, Any]:
        if self.scale == "quantile":
            knots, scores = quantile_knots(sample, KNOTS, normal=True)
            return {"knots": knots.tolist(), "scores": scores.tolist()}
        if self.scale == "none":
            return {}
        centre, width = _compute_finite(
            lambda: spread(sample, (0.25, 0.75)) if self.scale == "robust" else _moments(read()).scale,
            "set log = true or scale = 'none'",
        )
        return {"centre": float(centre), "width": float(width)}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the scaled numbers and, if set, the indicator."""
        values, missing = self._read(column)
        if state["fill"] is not None and missing is not None:
            values = np.where(missing, state["fill"], values)
        values = self._limit(values, state)
        if "knots" in state:
            values = interpolate(values, np.array(state["knots"]), np.array(state["scores"]))
        if "centre" in state:
            values = _scale(values, state, column)
        if not self.indicator:
            return values[:, None]
        return np.stack([values, np.zeros(len(values)) if missing is None else missing], axis=1)

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the name of the column and, if set, that of the indicator."""
        return (column, f"{column} is missing") if self.indicator else (column,)


def _hold(read: Read) -> Read:
    """Return a function that reads the same batches: those of a few rows are read once, and held."""
    held, rows = list[np.ndarray](), 0
    for values in read():
        held.append(values)
        rows += len(values)
        if rows > MOST:
            return read
    return lambda: iter(held)


def _compute_finite(compute: Callable[[], Sequence[np.ndarray]], remedy: str) -> Sequence[np.ndarray]:
    """Return statistics; raise SigmaDataError for numbers that are too large for them."""
    with np.errstate(over="ignore", invalid="ignore"):
        statistics = compute()
    if not np.isfinite(statistics).all():
        raise SigmaDataError(
            f"its numbers are so large that their mean or spread exceeds float64. Correct them, or {remedy}."
        )
    return statistics


def _scale(values: np.ndarray, state: Mapping[str, Any], column: Any) -> np.ndarray:
    """Return the scaled values; raise SigmaDataError for the first one that float64 cannot hold."""
    try:
        with np.errstate(over="raise"):
            scaled: np.ndarray = values - state["centre"]
            scaled /= state["width"]
    except FloatingPointError:
        with np.errstate(over="ignore"):
            beyond = np.isinf((values - state["centre"]) / state["width"])
        refuse(beyond, column, f"{{}} is too large to be scaled as the training rows are. {FIX}")
        raise
    return scaled


def _median(values: np.ndarray) -> float:
    """Return the median, as ``np.median`` does; values are put into another order, which saves the time of a copy."""
    half = len(values) // 2
    values.partition(half)
    if len(values) % 2:
        return float(values[half])
    low, high = values[:half].max(), values[half]
    with np.errstate(over="ignore"):
        middle = np.mean([low, high])
    return float(middle if np.isfinite(middle) else low / 2 + high / 2)


def _moments(batches: Iterable[np.ndarray]) -> RowMoments:
    return reduce(RowMoments.merge, map(RowMoments.from_block, filter(len, batches)))
