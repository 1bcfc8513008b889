"""The rule for pictures that are equal or nearly so, above all those in two splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sigma_data.examining.rows import DataRule, ExaminedRows, Severity
from sigma_kernel import Finding

SIDE = 16  # pixels of a thumbnail
LEAST = 32  # pixels of a side, below which different pictures are alike
BITS = 64  # of a perceptual hash
BANDS = 4  # of a hash; pictures that differ in fewer bits have one in common
ALIKE = 0.99  # correlation of thumbnails of the same picture
CONTRAST = 4.0  # standard deviation of grey values, of 255, below which a picture is blank
CROWD = 64  # pictures with one band that are compared with each other
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


def hash_pictures(thumbnails: np.ndarray) -> np.ndarray:
    """Return a perceptual hash of 64 bits: which of neighbouring parts is brighter (dHash: Krawetz, 2013)."""
    coarse = thumbnails.reshape(len(thumbnails), SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4))
    brighter = coarse > np.roll(coarse, 1, axis=2)
    return np.packbits(brighter.reshape(len(thumbnails), -1), axis=1).view(np.uint64)[:, 0]


def find_pairs(thumbnails: np.ndarray) -> np.ndarray:
    """Return pairs of rows with pictures that are alike, (pairs, 2), the earlier first; blank pictures have none."""
    hashes = hash_pictures(thumbnails)
    flat = thumbnails.reshape(len(thumbnails), -1).astype(np.float32)
    flat = flat - flat.mean(axis=1, keepdims=True)
    deviation = flat.std(axis=1)
    scale = CONTRAST / 255 * max(1.0, float(np.abs(thumbnails).max(initial=0)))
    clear = deviation > scale
    unit = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9)
    pairs = [_compare(hashes, band, clear, unit) for band in hashes.view(np.uint16).reshape(-1, BANDS).T]
    return np.unique(np.concatenate(pairs), axis=0)


def _compare(hashes: np.ndarray, band: np.ndarray, clear: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the pairs that are alike among rows whose hashes have this band in common."""
    rows = np.flatnonzero(clear)
    rows = rows[np.lexsort((hashes[rows], band[rows]))]
    pairs = []
    for step in range(1, CROWD):
        if step >= len(rows):
            break
        left, right = rows[:-step], rows[step:]
        same = band[left] == band[right]
        if not same.any():
            break
        left, right = left[same], right[same]
        alike = np.einsum("ij,ij->i", unit[left], unit[right]) >= ALIKE
        pairs.append(np.stack([left[alike], right[alike]], axis=1))
    return np.sort(np.concatenate(pairs), axis=1) if pairs else np.zeros((0, 2), int)


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
