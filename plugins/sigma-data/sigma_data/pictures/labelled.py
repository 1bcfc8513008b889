"""Pictures with their labels: the names of the folders that hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_data.arrays import Arrays
from sigma_data.labels import Codes, Labels, list_first
from sigma_data.pictures.decoding import ENDS
from sigma_data.pictures.folder import Picture, list_pictures, subfolders
from sigma_kernel import SigmaDataError

SPLITS = {  # names of folders that hold a split each
    "training": "training", "train": "training",
    "validation": "validation", "valid": "validation", "val": "validation",
    "test": "test", "testing": "test",
}  # fmt: skip


@frozen(eq=False)
class LabelledPictures:
    """Pictures in the order of their paths, and their targets.

    ``parts`` has the rows of each split that folders make, that for training first; ``others`` are files of other
    kinds.
    """

    pictures: Sequence[Picture]
    labels: Arrays
    parts: Mapping[str, np.ndarray]
    others: Sequence[str] = ()

    @property
    def classes(self) -> np.ndarray:
        """Return the name of the class of each."""
        names = np.array(self.labels.class_names("targets"), np.dtypes.StringDType())
        return np.asarray(names[self.labels.arrays["targets"]])

    def find_groups(self, expression: str, rows: np.ndarray) -> tuple[str, ...]:
        """Return the group of each of some rows: what an expression, or else its parentheses, match in the path."""
        groups = []
        for picture in (self.pictures[row] for row in rows):
            match = re.search(expression, picture.path)
            if match is None:
                raise SigmaDataError(
                    f"{picture.path}: the group {expression!r} is not in this path. Correct the expression."
                )
            groups.append("/".join(map(str, match.groups())) if match.groups() else match[0])
        return tuple(groups)


def split_folders(root: Path, ends: tuple[str, ...] = ENDS) -> list[str]:
    """Return the splits that the folders in a folder make, that for training first; none if these are classes."""
    parts = {SPLITS.get(name.lower(), "") for name in subfolders(root, ends)}
    return sorted(parts, key=[*SPLITS.values()].index) if "training" in parts and "" not in parts else []


def read_folders(root: Path, ends: tuple[str, ...] = ENDS, what: str = "picture") -> LabelledPictures:
    """Return the pictures, or other files with such ends, in the folders of their classes, perhaps in those of splits.

    Raises SigmaDataError for pictures outside of them, and for a class without pictures.
    """
    listing, parts = list_pictures(root, ends), split_folders(root, ends)
    depth = 1 if parts else 0
    names = [picture.path.split("/") for picture in listing.pictures]
    if not names:
        raise SigmaDataError(f"{root}: has no {what}s. Their names must end in {', '.join(ends)}.")
    if loose := ["/".join(path) for path in names if len(path) < depth + 2]:
        raise SigmaDataError(
            f"{root}: {list_first(loose)} is not in the folder of a class. Move it to one"
            f"{', or name a `table` of labels' if what == 'picture' else ''}."
        )
    classes = {path[depth] for path in names}
    places = [root / part for part in subfolders(root, ends)] if parts else [root]
    if empty := sorted({name for place in places for name in subfolders(place, ends)} - classes):
        raise SigmaDataError(f"{root}: the class {list_first(empty)} has no {what}s. Add some, or delete its folder.")
    codes = Codes(np.array([path[depth] for path in names], np.dtypes.StringDType()), f"{root}: folders")
    homes = np.array([SPLITS.get(path[0].lower(), "") for path in names])
    rows = {part: np.flatnonzero(homes == part) for part in parts}
    return LabelledPictures(listing.pictures, Arrays(targets=Labels.from_codes(codes)), rows, listing.others)
