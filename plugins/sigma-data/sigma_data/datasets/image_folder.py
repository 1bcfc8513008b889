"""Your own folder of pictures as a data set."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import converters, define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.picture_table import LabelTable, read_listed
from sigma_data.datasets.splits import Divided, Loaded, shares
from sigma_data.pictures.blocks import Decoding, deal, list_faults
from sigma_data.pictures.decoding import Fit, PictureForm
from sigma_data.pictures.faults import check_faults, describe_left_out
from sigma_data.pictures.labelled import LabelledPictures, read_folders, split_folders
from sigma_data.pictures.rows import Pictures
from sigma_data.pictures.samples import PictureSamples
from sigma_data.pictures.sizes import free_memory, parse_size
from sigma_data.profiling.pictures import inspect_pictures
from sigma_data.splitting import fold_names, split
from sigma_kernel import Inspection, Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import finite, ge, in_, le, optional

DEFAULT = {"training": 0.8, "validation": 0.2}
REMEDY = "Replace or delete them, or set broken = 'skip' to leave them out."


def _shares(owner: Any, attribute: Any, value: Mapping[str, float]) -> None:
    if value:
        shares(owner, attribute, value)


def _expression(owner: Any, attribute: Any, value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise SigmaConfigError(f"ImageFolder.group: {value!r} is no regular expression: {error}.") from None


@define(eq=False)
class ImageFolder(Divided):
    """Pictures in folders, one for each class, or listed with their labels in a table.

    ``inputs`` have the shape (3, height, width), in grey (1, height, width). Any PNG, JPEG, GIF, BMP, TIFF or WebP file
    is read, of animations the first frame, and brought to one size: turned as its EXIF data say, blended with the
    background where it is transparent, rounded to 8 bits, and resized without aliasing. Rows are in the order of their
    paths. Hidden files are left out. Pictures are decoded by several threads, kept as bytes, and scaled block by block.

    Folders named ``training`` (or ``train``), ``validation`` (``val``) and ``test`` above those of the classes are
    splits. ``split`` then divides the first of them.

    Sets that need more than ``memory`` are decoded once, to files in a cache from which later runs read. More than 256
    MiB of pictures, as floats, are several blocks, each with its share of every folder.

    Needs Pillow: ``python -m pip install "sigma-data[images]"``.

    Args:
        folder: Folder of the pictures, or a zip archive of it, which is not extracted; in a configuration, a relative
            one starts in the directory of the configuration.
        size: Height and width to which pictures are brought.
        colours: Colours to convert to: ``rgb`` or ``grey``.
        fit: How pictures of another ratio of sides fit: ``crop`` cuts off what is beyond the middle, ``pad`` adds
            margins of the background, ``stretch`` changes the ratio.
        scale: Factor on the bytes of pixels; 1 keeps bytes, for a preprocessor.
        background: Value from 0 to 255 of all channels behind transparent pixels and in margins.
        broken: What pictures that cannot be decoded do: raise an error that lists them, or are left out with a warning.
        group: Regular expression that finds the group of a picture in its path below the folder, such as a person;
            the pictures of a group stay in one split. The group is what its parentheses match, or all that matches.
        table: Table of paths and labels, a CSV file or a data frame; the folders then have no meaning.
        column: Column of the table with paths below the folder.
        target: Column to predict, or several, such as one of 0 and 1 for each label.
        targets: What the target holds: classes, which become sorted class indices, numbers, or either.
        separator: Separator of several labels in the target; the targets are then 0 or 1 for each label.
        largest: Most pixels of a file, checked before it is decoded.
        memory: Most bytes of decoded pictures that are kept in memory, such as "2 GB"; by default half of what is free.
        cache: Folder for decoded pictures; by default one in the user's cache directory, or in ``$SIGMA_CACHE``.
        threads: Number of threads that decode; by default one for each processor.
        split: Share of the pictures of each split, by its name; by default 0.8 for training and 0.2 for validation, or
            the splits that the folders make.
    """

    folder: Path = field(converter=Path)
    size: tuple[int, int] = field(converter=tuple, kw_only=True)
    colours: Literal["rgb", "grey"] = field(default="rgb", validator=in_(("rgb", "grey")), kw_only=True)
    fit: Fit = field(default="crop", validator=in_(("crop", "pad", "stretch")), kw_only=True)
    scale: float = field(default=1 / 255, validator=finite, kw_only=True)
    background: int = field(default=255, validator=[ge(0), le(255)], kw_only=True)
    broken: Literal["refuse", "skip"] = field(default="refuse", validator=in_(("refuse", "skip")), kw_only=True)
    group: str = field(default="", validator=_expression, kw_only=True)
    table: Path | Any = field(default=None, kw_only=True, repr=False)
    column: str = field(default="path", kw_only=True)
    target: str | tuple[str, ...] = field(default="label", kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    separator: str = field(default="", kw_only=True)
    largest: int = field(default=1 << 26, validator=ge(1), kw_only=True)
    memory: int | None = field(
        default=None, converter=parse_size, validator=optional(ge(0)), kw_only=True,
        metadata={"accepts": int | str | None},
    )  # fmt: skip
    cache: Path | None = field(default=None, converter=converters.optional(Path), kw_only=True)
    threads: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    split: Mapping[str, float] = field(factory=dict, validator=_shares, kw_only=True)
    _groups: tuple[str, ...] | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a size that is none."""
        if len(self.size) != 2 or any(type(side) is not int or not 1 <= side <= 1 << 14 for side in self.size):
            raise SigmaConfigError(f"ImageFolder.size: must be a height and a width in pixels (got {self.size!r}).")

    # -- splits --------------------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only the names of folders are read."""
        parts = split_folders(self.folder) if self.table is None else []
        names = (*(self.split or DEFAULT),) if not parts else (*(self.split or ["training"]), *parts[1:])
        return names if self.fold is None else fold_names(names)

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        listed = self._list()
        return self._decode(listed, self._divide(listed)), listed.labels.class_names("targets")

    def all_rows(self) -> tuple[Pictures, tuple[Label, ...]]:
        """Return all rows; raises SigmaConfigError if the folders are splits."""
        listed = self._list()
        if listed.parts:
            raise SigmaConfigError(
                f"{self.folder}: its folders are splits already: {', '.join(listed.parts)}. Set `split`, or move them."
            )
        rows = self._decode(listed, {"training": np.arange(len(listed.pictures))})["training"]
        numbers = np.concatenate(rows.rows_of_labels)
        self._groups = listed.find_groups(self.group, numbers) if self.group else None
        return rows, listed.labels.class_names("targets")

    @property
    def paths(self) -> list[str]:
        """Return the path of each picture below the folder, in the order of the labels."""
        return [picture.path for picture in self._list().pictures]

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row, if there are groups."""
        return self._groups

    def _list(self) -> LabelledPictures:
        if self.table is None:
            return read_folders(self.folder)
        target = (self.target,) if isinstance(self.target, str) else tuple(self.target)
        table = LabelTable(self.table, self.column, target, self.targets, self.separator)
        return read_listed(self.folder, table)

    def _divide(self, listed: LabelledPictures) -> dict[str, np.ndarray]:
        """Return the rows of each split."""
        fixed = dict(listed.parts)
        if fixed and not self.split:
            if self.fold is not None:
                raise SigmaConfigError(
                    f"{self.folder}: its folders are splits already: {', '.join(fixed)}. Set `split` to divide "
                    "the training folder into folds, or move them."
                )
            return fixed
        rows = fixed.pop("training", np.arange(len(listed.pictures)))
        named = self.split if self.fold is None else fold_names(self.split)
        if twice := [name for name in fixed if name in named]:
            raise SigmaConfigError(f"ImageFolder.split: {twice[0]!r} is a folder already. Drop it, or move the folder.")
        groups = listed.find_groups(self.group, rows) if self.group else None
        labels = listed.labels.encode("targets", 0).arrays["targets"]
        numbered = Arrays(row=rows, targets=labels[rows])
        divided = split(numbered, self.split or DEFAULT, self.split_by, self.seed, groups=groups, fold=self.fold)
        return {**{name: part.block(0)["row"] for name, part in divided.items()}, **fixed}

    def profile(self) -> Inspection:
        """Return what the folder holds, as ``sigma data show`` prints it."""
        return inspect_pictures(self.folder)

    # -- rows ----------------------------------------------------------------------------------------------------------
    @property
    def _form(self) -> PictureForm:
        return PictureForm(*self.size, self.colours, self.fit, self.background, self.largest)

    def _decode(self, listed: LabelledPictures, parts: Mapping[str, np.ndarray]) -> dict[str, Pictures]:
        """Return the rows of each part, decoded."""
        memory = free_memory() // 2 if self.memory is None else self.memory
        dealt = [(name, rows) for name, part in parts.items() for rows in deal(part, self._form)]
        decoding = Decoding(self.folder, self._form, memory, self.cache, self.threads)
        blocks = decoding.decode_all([[listed.pictures[row] for row in rows] for _, rows in dealt])
        faults = list_faults(blocks)
        if self.broken == "refuse":
            check_faults(self.folder, faults, len(listed.pictures), REMEDY)
        notes = describe_left_out(faults, listed.others)
        kept = [
            (name, block.pixels, rows[block.places])
            for (name, rows), block in zip(dealt, blocks, strict=True)
            if len(block.places)
        ]
        if empty := [name for name in parts if name not in {name for name, *_ in kept}]:
            raise SigmaDataError(f"{self.folder}: the split {empty[0]!r} has no picture that can be used. Add some.")
        return {
            part: Pictures(
                [pixels for name, pixels, _ in kept if name == part], [rows for name, _, rows in kept if name == part],
                listed.labels, self.scale, self._samples.to_plain(), notes,
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
