"""The rule for pictures that are equal or nearly so, above all those in two splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sigma_data.examining.rows import DataRule, ExaminedRows, Severity
from sigma_kernel import Finding

SIDE = 16  # pixels of a thumbnail
LEAST = 32  # pixels of a side, below which different pictures are alike
ALIKE = 0.99  # correlation of thumbnails of the same picture
LIKELY = 0.97  # correlation of coarse thumbnails from which on the others are compared
CONTRAST = 4.0  # standard deviation of grey values, of 255, below which a picture is blank
MOST = 50_000  # pictures that are compared, all with all
BLOCK = 1024  # pictures that are compared with all later ones at a time
CROWD = 1 << 20  # pairs that are enough
FEW = 0.01  # share of a split from which on its figures are off


def shrink(pictures: np.ndarray) -> np.ndarray:
    """Return grey thumbnails, (rows, SIDE, SIDE), float32, as means of rectangles.

    ``pictures`` are (rows, height, width) or (rows, channels, height, width), each side at least SIDE.
    """
    grey: Any = pictures.astype(np.float32)
    grey = grey.mean(axis=1) if grey.ndim == 4 else grey
    for axis in (1, 2):
        edges = np.linspace(0, grey.shape[axis], SIDE + 1).astype(int)
        shape = [1, 1, 1]
        shape[axis] = SIDE
        grey = np.add.reduceat(grey, edges[:-1], axis) / np.diff(edges).reshape(shape)
    return np.asarray(grey, np.float32)


def describe_pictures(thumbnails: np.ndarray, side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of which the product is the correlation of two pictures, and the contrast of each.

    ``thumbnails`` are (rows, SIDE, SIDE). Brightness and a gradient over the whole picture are taken out, as a sky has.
    """
    factor = SIDE // side
    small: Any = thumbnails.reshape(len(thumbnails), side, factor, side, factor).mean(axis=(2, 4))
    flat = small.reshape(len(small), side**2)
    y, x = np.mgrid[0:side, 0:side]
    plane, _ = np.linalg.qr(np.stack([np.ones(side**2), x.ravel(), y.ravel()], axis=1).astype(np.float32))
    flat = flat - (flat @ plane) @ plane.T
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9), flat.std(axis=1)


def find_pairs(thumbnails: np.ndarray) -> np.ndarray:
    """Return pairs of rows with pictures that are alike, (pairs, 2), the earlier first; blank pictures have none.

    Of more than MOST pictures, evenly spaced ones are compared; at most CROWD pairs are returned.
    """
    fine, contrast = describe_pictures(thumbnails)
    clear = np.flatnonzero(contrast > CONTRAST / 255 * max(1.0, float(np.abs(thumbnails).max(initial=0))))
    rows = clear[:: max(1, -(-len(clear) // MOST))]
    coarse, _ = describe_pictures(thumbnails[rows], SIDE // 2)
    pairs, count = [np.zeros((0, 2), int)], 0
    for start in range(0, len(rows), BLOCK):
        product = np.triu(coarse[start : start + BLOCK] @ coarse[start:].T, 1)
        first, second = (rows[start + places] for places in np.nonzero(product >= LIKELY))
        alike = np.einsum("ij,ij->i", fine[first], fine[second]) >= ALIKE
        pairs.append(np.stack([first[alike], second[alike]], axis=1))
        count += int(alike.sum())
        if count > CROWD:
            break
    return np.concatenate(pairs)[:CROWD]


def find_alike(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for pictures that are alike in two splits, and for others; for labels that they disagree on."""
    if rows.pictures is None:
        return
    pairs = find_pairs(rows.pictures)
    splits = rows.split_of_rows
    across = splits[pairs[:, 0]] != splits[pairs[:, 1]]
    names = [*rows.splits]
    for name, held in rows.other_splits.items():
        number = names.index(name)
        inside = pairs[across & (splits[pairs] == number).any(axis=1)]
        inside = inside[(splits[inside] == names.index("training")).any(axis=1)] if "training" in names else inside
        count = len(np.unique(inside[splits[inside] == number]))
        if count:
            severity: Severity = "error" if count >= 10 * FEW * len(held) else "warning"
            text = (
                f"{count:,} of {len(held):,} pictures of {name!r} are nearly the same as one of 'training': figures "
                "there measure what was learned by heart. Delete the copies, or set `group` to the part of the path "
                "that they share."
            )
            yield Finding("alike", severity, text, rows.pairs(_tuples(inside)))
    if len(same := pairs[~across]):
        text = f"{len(np.unique(same[:, 1])):,} pictures are nearly the same as another one. Delete the copies."
        yield Finding("alike", "note", text, rows.pairs(_tuples(same)))
    if rows.classes is not None and len(odd := pairs[rows.classes[pairs[:, 0]] != rows.classes[pairs[:, 1]]]):
        text = f"{len(odd):,} pairs of pictures that are nearly the same have different classes. Correct their labels."
        yield Finding("alike", "warning", text, rows.pairs(_tuples(odd)))


def _tuples(pairs: np.ndarray) -> Sequence[tuple[int, int]]:
    return [(first, second) for first, second in pairs.tolist()]


RULES = (
    DataRule(
        "alike", "data", "pictures of 32 pixels and more that are equal or nearly so, in two splits or with "
        "two classes",
        "delete the copies, or set `group`", find_alike,
    ),
)  # fmt: skip
