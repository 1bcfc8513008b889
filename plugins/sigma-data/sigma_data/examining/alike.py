"""The rule for pictures that are equal or nearly so, above all those in two splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field

from sigma_data.examining.rows import EXAMPLES, DataRule, ExaminedRows, Severity
from sigma_kernel import Finding

SIDE = 16  # pixels of a thumbnail
LEAST = 32  # pixels of a side, below which different pictures are alike
ALIKE = 0.99  # correlation of thumbnails of the same picture
LIKELY = 0.97  # correlation of coarse thumbnails from which on the others are compared
CONTRAST = 4.0  # standard deviation of grey values, of 255, below which a picture is blank
MOST = 50_000  # pictures that are compared, all with all
BLOCK = 1024  # pictures that are compared with all later ones at a time
CROWD = 1 << 20  # pairs that are looked at together
SPARSE = 1 << 16  # pairs that are compared one by one
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


def choose_clear(thumbnails: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the rows that are compared, which are not blank; of more than MOST, one in so many, evenly spaced."""
    _, contrast = describe_pictures(thumbnails)
    clear = np.flatnonzero(contrast > CONTRAST / 255 * max(1.0, float(np.abs(thumbnails).max(initial=0))))
    step = max(1, -(-len(clear) // MOST))
    return clear[::step], step


def find_pairs(thumbnails: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield pairs of rows with pictures that are alike, (pairs, 2), the earlier first; of some rows, in order."""
    fine, coarse = (describe_pictures(thumbnails[rows], side)[0] for side in (SIDE, SIDE // 2))
    for start in range(0, len(rows), BLOCK):
        likely = np.triu(coarse[start : start + BLOCK] @ coarse[start:].T, 1) >= LIKELY
        crowds = np.cumsum(likely.sum(axis=1)) // CROWD
        for piece in np.split(np.arange(len(likely)), np.flatnonzero(np.diff(crowds)) + 1):
            first, second = np.nonzero(likely[piece])
            if len(first) <= SPARSE:
                alike = np.einsum("ij,ij->i", fine[start + piece[first]], fine[start + second]) >= ALIKE
            else:
                alike = (fine[start + piece] @ fine[start:].T)[first, second] >= ALIKE
            yield rows[start + np.stack([piece[first[alike]], second[alike]], axis=1)]


@define(eq=False)
class AlikePairs:
    """What is counted of the pairs of pictures that are alike, and the first of them.

    ``shared`` are the rows with a picture like one of the training, or of another split if nothing is trained on;
    ``copies`` those like an earlier one of the same split; ``conflicts`` is the number of pairs with two classes.
    """

    rows: ExaminedRows
    splits: np.ndarray  # the number of the split of each row
    shared: np.ndarray
    copies: np.ndarray
    conflicts: int = 0
    examples: dict[str, list[tuple[int, int]]] = field(factory=dict)  # by split
    copied: list[tuple[int, int]] = field(factory=list)
    odd: list[tuple[int, int]] = field(factory=list)

    @classmethod
    def compare(cls, rows: ExaminedRows, thumbnails: np.ndarray, chosen: np.ndarray) -> AlikePairs:
        """Return what is counted of the pairs of some rows."""
        result = cls(rows, rows.split_of_rows, np.zeros(len(rows), bool), np.zeros(len(rows), bool))
        for pairs in find_pairs(thumbnails, chosen):
            result.add(pairs)
        return result

    def add(self, pairs: np.ndarray) -> None:
        """Count pairs."""
        first, second, names = self.splits[pairs[:, 0]], self.splits[pairs[:, 1]], [*self.rows.splits]
        shared = across = first != second
        if "training" in names:
            shared = across & ((first == names.index("training")) | (second == names.index("training")))
        self.shared[pairs[shared]] = True
        self.copies[pairs[~across, 1]] = True
        _keep_first(self.copied, pairs[~across])
        for name in self.rows.other_splits:
            inside = shared & ((first == names.index(name)) | (second == names.index(name)))
            _keep_first(self.examples.setdefault(name, []), pairs[inside])
        if self.rows.classes is not None:
            odd = pairs[self.rows.classes[pairs[:, 0]] != self.rows.classes[pairs[:, 1]]]
            self.conflicts += len(odd)
            _keep_first(self.odd, odd)


def _keep_first(held: list[tuple[int, int]], pairs: np.ndarray) -> None:
    held += [(first, second) for first, second in pairs[: EXAMPLES - len(held)].tolist()]


def find_alike(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for pictures that are alike in two splits, and for others; for labels that they disagree on."""
    if rows.pictures is None:
        return
    chosen, step = choose_clear(rows.pictures)
    pairs = AlikePairs.compare(rows, rows.pictures, chosen)
    about, rest = ("at least about ", f" One picture in {step} was compared.") if step > 1 else ("", "")
    for name, held in rows.other_splits.items():
        count = min(len(held), step * int(pairs.shared[held].sum()))
        if count:
            severity: Severity = "error" if count >= 10 * FEW * len(held) else "warning"
            text = (
                f"{about}{count:,} of {len(held):,} pictures of {name!r} are nearly the same as one of 'training': "
                "figures there measure what was learned by heart. Delete the copies, or set `group` to the part of the "
                f"path that they share.{rest}"
            )
            yield Finding("alike", severity, text, rows.pairs(pairs.examples[name]))
    if count := min(len(rows), step * int(pairs.copies.sum())):
        text = f"{about}{count:,} pictures are nearly the same as another one. Delete the copies.{rest}"
        yield Finding("alike", "note", text, rows.pairs(pairs.copied))
    if pairs.conflicts:
        text = (
            f"{about}{step * pairs.conflicts:,} pairs of pictures that are nearly the same have different classes. "
            f"Correct their labels.{rest}"
        )
        yield Finding("alike", "warning", text, rows.pairs(pairs.odd))


RULES = (
    DataRule(
        "alike", "data", "pictures of 32 pixels and more that are equal or nearly so, in two splits or with "
        "two classes",
        "delete the copies, or set `group`", find_alike,
    ),
)  # fmt: skip
