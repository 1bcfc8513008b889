"""Base class of data sets of pictures, which are decoded to one size."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import converters, define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.file_set import FileSet
from sigma_data.datasets.splits import Loaded, shares
from sigma_data.pictures.blocks import Decoding, deal, list_faults
from sigma_data.pictures.decoding import Fit, PictureForm
from sigma_data.pictures.faults import check_faults, describe_left_out
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture, open_place
from sigma_data.pictures.rows import Pictures
from sigma_data.pictures.samples import PictureSamples
from sigma_data.pictures.sizes import free_memory, parse_size
from sigma_data.splitting import fold_names, split
from sigma_kernel import Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import finite, ge, in_, le, optional

DEFAULT = {"training": 0.8, "validation": 0.2}
REMEDY = "Replace or delete them, or set broken = 'skip' to leave them out."


def _shares(owner: Any, attribute: Any, value: Mapping[str, float]) -> None:
    if value:
        shares(owner, attribute, value)


@define(eq=False, kw_only=True)
class PictureSet(FileSet):
    """Pictures of one folder, with their labels.

    Args:
        size: Height and width to which pictures are brought.
        colours: Colours to convert to: ``rgb`` or ``grey``.
        fit: How pictures of another ratio of sides fit: ``crop`` cuts off what is beyond the middle, ``pad`` adds
            margins of the background, ``stretch`` changes the ratio.
        scale: Factor on the bytes of pixels; 1 keeps bytes, for a preprocessor.
        background: Value from 0 to 255 of all channels behind transparent pixels and in margins.
        broken: What pictures that cannot be decoded do: raise an error that lists them, or are left out with a warning.
        largest: Most pixels of a file, checked before it is decoded.
        memory: Most bytes of decoded pictures that are kept in memory, such as "2 GB", and of those that are read ahead
            of training; by default half of what is free.
        cache: Folder for decoded pictures; by default one in the user's cache directory, or in ``$SIGMA_CACHE``.
        threads: Number of threads that decode; by default one for each processor.
        split: Share of the pictures of each split, by its name; by default 0.8 for training and 0.2 for validation, or
            the splits that the data have.
    """

    size: tuple[int, int] = field(converter=tuple)
    colours: Literal["rgb", "grey"] = field(default="rgb", validator=in_(("rgb", "grey")))
    fit: Fit = field(default="crop", validator=in_(("crop", "pad", "stretch")))
    scale: float = field(default=1 / 255, validator=finite)
    background: int = field(default=255, validator=[ge(0), le(255)])
    broken: Literal["refuse", "skip"] = field(default="refuse", validator=in_(("refuse", "skip")))
    largest: int = field(default=1 << 26, validator=ge(1))
    memory: int | None = field(
        default=None, converter=parse_size, validator=optional(ge(0)), metadata={"accepts": int | str | None}
    )
    cache: Path | None = field(default=None, converter=converters.optional(Path))
    threads: int | None = field(default=None, validator=optional(ge(1)))
    split: Mapping[str, float] = field(factory=dict, validator=_shares)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a size that is none."""
        if len(self.size) != 2 or any(type(side) is not int or not 1 <= side <= 1 << 14 for side in self.size):
            name = type(self).__name__
            raise SigmaConfigError(f"{name}.size: must be a height and a width in pixels (got {self.size!r}).")

    def open_files(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens pictures while the place is open."""
        return open_place(self.root)

    # -- splits --------------------------------------------------------------------------------------------------------
    @property
    def shares(self) -> Mapping[str, float]:
        """Return the shares of the pictures that are divided, those for training if there are splits; or nothing."""
        return self.split

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; no picture is read."""
        parts = self.list_splits()
        names = (*(self.shares or DEFAULT),) if not parts else (*(self.shares or ["training"]), *parts[1:])
        return names if self.fold is None else fold_names(names)

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        listed = self.list_files()
        return self._decode(listed, self._divide(listed)), listed.labels.class_names("targets")

    def all_rows(self) -> tuple[Pictures, tuple[Label, ...]]:
        """Return all rows; raises SigmaConfigError if the folders are splits."""
        listed = self.list_files()
        if listed.parts:
            raise SigmaConfigError(
                f"{self.root}: its folders are splits already: {', '.join(listed.parts)}. Set `split`, or move them."
            )
        rows = self._decode(listed, {"training": np.arange(len(listed.pictures))})["training"]
        numbers = np.concatenate(rows.rows_of_labels)
        self._groups = self.find_groups(listed, numbers)
        return rows, listed.labels.class_names("targets")

    @property
    def paths(self) -> list[str]:
        """Return the path of each picture below the folder, in the order of the labels."""
        return [picture.path for picture in self.list_files().pictures]

    def _divide(self, listed: LabelledPictures) -> dict[str, np.ndarray]:
        """Return the rows of each split."""
        fixed = dict(listed.parts)
        if fixed and not self.shares:
            if self.fold is not None:
                raise SigmaConfigError(
                    f"{self.root}: its folders are splits already: {', '.join(fixed)}. Set `split` to divide "
                    "the training folder into folds, or move them."
                )
            return fixed
        rows = fixed.pop("training", np.arange(len(listed.pictures)))
        named = self.shares if self.fold is None else fold_names(self.split)
        if twice := [name for name in fixed if name in named]:
            name = type(self).__name__
            raise SigmaConfigError(f"{name}.split: {twice[0]!r} is a folder already. Drop it, or move the folder.")
        groups = self.find_groups(listed, rows)
        labels = listed.labels.encode("targets", 0).arrays["targets"]
        numbered = Arrays(row=rows, targets=labels[rows])
        divided = split(numbered, self.shares or DEFAULT, self.split_by, self.seed, groups=groups, fold=self.fold)
        return {**{name: part.block(0)["row"] for name, part in divided.items()}, **fixed}

    # -- rows ----------------------------------------------------------------------------------------------------------
    @property
    def _form(self) -> PictureForm:
        return PictureForm(*self.size, self.colours, self.fit, self.background, self.largest)

    def _decode(self, listed: LabelledPictures, parts: Mapping[str, np.ndarray]) -> dict[str, Pictures]:
        """Return the rows of each part, decoded."""
        memory = free_memory() // 2 if self.memory is None else self.memory
        dealt = [(name, rows) for name, part in parts.items() for rows in deal(part, self._form)]
        decoding = Decoding(self.root, self._form, memory, self.cache, self.threads, self.open_files)
        blocks = decoding.decode_all([[listed.pictures[row] for row in rows] for _, rows in dealt])
        faults = list_faults(blocks)
        if self.broken == "refuse":
            check_faults(self.root, faults, len(listed.pictures), REMEDY)
        notes = describe_left_out(faults, listed.others)
        kept = [
            (name, block.pixels, rows[block.places])
            for (name, rows), block in zip(dealt, blocks, strict=True)
            if len(block.places)
        ]
        if empty := [name for name in parts if name not in {name for name, *_ in kept}]:
            raise SigmaDataError(f"{self.root}: the split {empty[0]!r} has no picture that can be used. Add some.")
        return {
            part: Pictures(
                [pixels for name, pixels, _ in kept if name == part], [rows for name, _, rows in kept if name == part],
                listed.labels, self.scale, self._samples.to_plain(), notes, memory,
            )
            for part in parts
        }  # fmt: skip

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the pictures of a file or a folder, in the order of their paths, in the form of the training."""
        return self._samples.read(path, shape, white)

    @property
    def _samples(self) -> PictureSamples:
        return PictureSamples(self._form, self.scale, self.threads)
