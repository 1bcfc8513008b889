"""Requests for the map of the data: rows on a plane, by their inputs or a layer's outputs; and decision surfaces."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.protocol.data import check_rows, iteration, typical_rows
from sigma_monitor_control.protocol.moments import origin
from sigma_monitor_control.protocol.positions import METHODS, UmapProcess, align, check_umap, embed, project
from sigma_monitor_control.protocol.reading import Later, select_trainer
from sigma_monitor_control.protocol.row_history import row_history
from sigma_monitor_control.protocol.sampling import (
    INPUTS,
    PLANE,
    draw_sample,
    find_excluded,
    plane_of,
    read_labels,
    read_losses,
    read_values,
)
from sigma_monitor_control.protocol.values import to_json

MOST_POINTS = 10_000  # of a map
SIDE, MOST_SIDE = 64, 256  # points of a surface along each axis
AIR = 0.08  # around the points, as a share of their range
MOST_SHARES = 40  # classes of a surface
MOST_MAPS = 8  # of a view, whose positions are kept for the next ones
EMBEDDER = Aside()  # UMAP takes minutes: one map after another, while other requests are answered

Map = tuple[str, str, str | None, int, int]  # what it is of, the method, the split, how many rows, the seed

_placed: WeakKeyDictionary[Any, dict[tuple[str, Map], np.ndarray]] = WeakKeyDictionary()  # the last positions, by view
_gate = threading.Lock()  # of that


# -- the map -----------------------------------------------------------------------------------------------------------
def map_rows(
    view: View,
    of: str = INPUTS,
    method: str = "pca",
    split: str | None = None,
    count: int = 2000,
    seed: int = 0,
    losses: bool = False,
    trainer: str | None = None,
) -> Later:
    """Return rows on a plane, by their ``inputs``, by the outputs of a layer, or on the ``plane`` of two inputs.

    At most ``count`` rows of a split, or of all, are drawn by ``seed``: the same each time. A later map is turned to be
    like the last one. ``losses`` are computed as well, of all rows of the splits.
    """
    name = select_trainer(view, trainer)
    if method not in METHODS or not 3 <= count <= MOST_POINTS or seed < 0:
        raise SigmaConfigError(f"map: 'method' is {' or '.join(METHODS)}, 'count' 3 to {MOST_POINTS}, 'seed' from 0.")
    if split is not None:
        check_rows(view, name, split)
    subjects = [INPUTS, PLANE, *(layer.name for layer in view.trainer(name).network())]
    if of not in subjects:
        raise SigmaConfigError(f"map: there is no layer {of!r:.100}.{suggest_name(of, subjects, 'There is')}")
    slow = method == "umap" and of != PLANE
    if slow:
        check_umap()
    embedding, about = UmapProcess(), (of, method, split, count, seed)
    return Later(lambda: _map_rows(view, name, about, losses, embedding), EMBEDDER.do if slow else None, embedding.stop)


def _map_rows(view: View, trainer: str, about: Map, losses: bool, embedding: UmapProcess) -> dict[str, Any]:
    of, method, split, count, seed = about
    columns = _column_names(view, trainer) if of == PLANE else []
    at, splits = iteration(view, trainer), view.trainer(trainer).splits()
    sizes = {name: rows for name, rows in splits.items() if rows and split in (None, name)}
    if not sizes:
        raise SigmaConfigError("map: the data of this run are not here, or have no rows.")
    sample, values = read_values(view, trainer, of, draw_sample(sizes, count, seed))
    positions, shares = _place(view, (trainer, about), values, embedding)
    label, classes = read_labels(view, trainer, sample)
    loss, right = read_losses(view, trainer, sample) if losses else (None, None)
    return {
        "at": at, "of": of, "method": method, "total": sum(sizes.values()), "splits": [*sample.splits],
        "shares": shares, "columns": columns, "classes": to_json(classes), "label": pack(label, "<f4"),
        "split": pack(sample.split, "u1"), "row": pack(sample.rows, "<u4"),
        "x": pack(positions[:, 0], "<f4"), "y": pack(positions[:, 1], "<f4"),
        "loss": None if loss is None else pack(loss, "<f4"), "right": None if right is None else pack(right, "i1"),
        "excluded": pack(find_excluded(view, trainer, sample), "u1"),
    }  # fmt: skip


def _place(
    view: View, which: tuple[str, Map], values: np.ndarray, embedding: UmapProcess
) -> tuple[np.ndarray, list[float]]:
    """Return the positions of rows, like those of the last map of the same rows, and the shares of their variance."""
    of, method, *_, seed = which[1]
    if of == PLANE:
        return values.astype(np.float64), []
    earlier = _placed.get(origin(view), {}).get(which)
    earlier = None if earlier is None or len(earlier) != len(values) else earlier
    if method == "pca":
        positions, shares = project(values)
    else:
        positions, shares = embed(values, seed, earlier, embedding), []
    positions = positions if earlier is None else align(positions, earlier)
    _keep(origin(view), which, positions)
    return positions, shares


def _keep(view: View, which: tuple[str, Map], positions: np.ndarray) -> None:
    """Keep the positions of a map for the next one like it, and those of the last few maps."""
    with _gate:
        maps = _placed.setdefault(view, {})
        maps.pop(which, None)
        maps[which] = positions
        for oldest in [*maps][:-MOST_MAPS]:
            del maps[oldest]


def pack(values: np.ndarray, type_: str) -> str:
    """Return numbers of a type as text."""
    return b64encode(np.ascontiguousarray(values, type_).tobytes()).decode()


def _column_names(view: View, trainer: str) -> list[str]:
    """Return the names of the two inputs of a plane."""
    columns, shapes = view.trainer(trainer).columns(), plane_of(view, trainer)
    names = [columns.get(name, [f"{name} {i + 1}" for i in range(prod(shape))]) for name, shape in shapes.items()]
    return [str(name) for own in names for name in own]


# -- decisions ---------------------------------------------------------------------------------------------------------
def surface(view: View, size: int = SIDE, trainer: str | None = None) -> Later:
    """Return what the network predicts on a grid of its two inputs: probabilities of classes, or values.

    ``shares`` are bytes, row by row from the least of the second input, of each class if there are several.
    """
    name = select_trainer(view, trainer)
    if not 2 <= size <= MOST_SIDE:
        raise SigmaConfigError(f"surface: 'size' is 2 to {MOST_SIDE} (got {size}).")
    plane_of(view, name)
    return Later(lambda: _surface(view, name, size))


def _surface(view: View, trainer: str, size: int) -> dict[str, Any]:
    at, rows = iteration(view, trainer), typical_rows(view, trainer)
    if not rows:
        raise SigmaConfigError("surface: the data of this run are not here, which give its range.")
    shapes = plane_of(view, trainer)
    points = np.concatenate([np.asarray(rows[name], np.float64).reshape(len(rows[name]), -1) for name in shapes], 1)
    low, high = find_range(points)
    outputs = view.trainer(trainer).predict(make_grid(low, high, size, shapes, rows))
    values = np.asarray(next(iter(outputs.values())), np.float64).reshape(size * size, -1)
    ends = {"low": low.tolist(), "high": high.tolist(), "columns": _column_names(view, trainer)}
    return {"at": at, "size": size, **ends, **describe_surface(values)}


def find_range(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest finite value of each column, with some air."""
    finite = np.where(np.isfinite(points), points, np.nan)
    low, high = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)
    air = np.where(high > low, (high - low) * AIR, 0.5)
    return low - air, high + air


def make_grid(
    low: np.ndarray, high: np.ndarray, size: int, shapes: Mapping[str, tuple[int, ...]], rows: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the points of a grid as samples, by section, with the types of rows that are floats."""
    first, second = np.meshgrid(*np.linspace(low, high, size).T)
    points, grid, start = np.stack([first.ravel(), second.ravel()], axis=1), dict[str, np.ndarray](), 0
    for name, shape in shapes.items():
        own = points[:, start : start + prod(shape)].reshape(size * size, *shape)
        grid[name] = own.astype(rows[name].dtype) if rows[name].dtype.kind == "f" else own
        start += prod(shape)
    return grid


def describe_surface(values: np.ndarray) -> dict[str, Any]:
    """Return predictions as bytes: shares of classes where they sum to 1, else the first number over its range."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    several = 1 < finite.shape[1] <= MOST_SHARES and finite.min() >= 0 and np.allclose(finite.sum(axis=1), 1, atol=1e-3)
    shown = finite if several else finite[:, :1]
    low, high = (0.0, 1.0) if shown.min() >= 0 and shown.max() <= 1 else (float(shown.min()), float(shown.max()))
    scaled = np.rint((shown - low) / ((high - low) or 1.0) * 255)
    return {"classes": shown.shape[1], "least": low, "greatest": high, "shares": pack(scaled, "u1")}


ROWS: Mapping[str, Callable[..., Any]] = {"row_history": row_history, "map": map_rows, "surface": surface}
