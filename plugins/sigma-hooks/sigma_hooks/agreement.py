"""Compare arrays with those of the reference, within a tolerance derived from rounding errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

Arrays = Mapping[str, np.ndarray]


@frozen
class Difference:
    """The element of an array that differs most from the reference, compared with its tolerance."""

    address: str
    place: tuple[int, ...]
    found: float
    wanted: float
    allowed: float

    @property
    def distance(self) -> float:
        """Return the distance; infinity if only one of both is finite."""
        return float(distances(np.array(self.found), np.array(self.wanted)))

    @property
    def share(self) -> float:
        """Return the distance as a share of the tolerance; beyond 1, the arrays differ."""
        return float(_share(np.array(self.distance), np.array(self.allowed)))

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.place))}]" if self.place else ""
        return (
            f"{self.address}{where} is {self.found:.9g} and should be {self.wanted:.9g}: off by "
            f"{abs(self.found - self.wanted):.2g}, where {self.allowed:.2g} is allowed"
        )


def differences(found: Arrays, wanted: Arrays, moved: Sequence[Arrays], tolerance: float) -> list[Difference]:
    """Return the worst element of each array that differs, in the order of ``wanted``; see :func:`deviations`."""
    return [deviation for deviation in deviations(found, wanted, moved, tolerance) if deviation.share > 1]


def deviations(found: Arrays, wanted: Arrays, moved: Sequence[Arrays], tolerance: float) -> list[Difference]:
    """Return the worst element of each array, in the order of ``wanted``; an empty array has none.

    ``moved`` are the reference's results with perturbed rounding.  The tolerance of an element is ``tolerance`` times
    the sum of its largest distance to them, the root mean square of these distances over its array, and one unit in
    its last place.
    """
    pairs = (
        (name, value, _tolerances(value, [run[name] for run in moved], tolerance)) for name, value in wanted.items()
    )
    return [_worst(name, found[name], value, allowed) for name, value, allowed in pairs if value.size]


def _tolerances(wanted: np.ndarray, moved: Sequence[np.ndarray], tolerance: float) -> np.ndarray:
    """Return the tolerance of each element; infinity where rounding decides whether it is finite."""
    if not wanted.size:
        return np.zeros(wanted.shape)
    each = np.stack([distances(array, wanted) for array in moved])
    finite = each[np.isfinite(each)]
    with np.errstate(over="ignore"):
        usual = np.sqrt(np.mean(np.square(finite))) if finite.size else 0.0
        return np.asarray(tolerance * (each.max(0) + usual + _unit(wanted)))


def _unit(wanted: np.ndarray) -> np.ndarray:
    """Return one unit in the last place of each element; 0 for integers and for elements that are not finite."""
    if wanted.dtype.kind != "f":
        return np.zeros(wanted.shape)
    return np.where(np.isfinite(wanted), np.abs(np.asarray(wanted, np.float64)) * np.finfo(wanted.dtype).eps, 0.0)


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return absolute differences in float64: 0 between equal infinities or NaNs, infinity if only one is one."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(
            (x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf)
        )


def _share(over: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return distances as shares of the tolerance: 0 where any distance is allowed."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = np.where(over > 0, over / allowed, 0.0)
    return np.nan_to_num(shares, nan=0.0, posinf=np.inf)


def _worst(name: str, found: np.ndarray, wanted: np.ndarray, allowed: np.ndarray) -> Difference:
    shares = _share(distances(found, wanted), allowed)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(shares)), shares.shape))
    return Difference(name, place, float(found[place]), float(wanted[place]), float(allowed[place]))
