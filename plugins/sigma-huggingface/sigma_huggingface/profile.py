"""Profile saved datasets: their columns, among them those of pictures, sounds and lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from sigma_data import File
from sigma_data.pictures.looking import look_at_pictures
from sigma_data.profiling.kinds import list_names
from sigma_data.profiling.pictures import LOOKED, PictureProfile
from sigma_data.profiling.profile import Profile, profile_table
from sigma_data.tables.batches import reading
from sigma_huggingface.files import SavedFiles, read_inputs
from sigma_huggingface.folder import FILES, find_columns, list_files, open_saved, read_classes, split_saved
from sigma_huggingface.nested import count_values
from sigma_kernel import SigmaConfigError

TARGETS = ("label", "labels", "target", "class", "category")


@frozen(slots=False, eq=False)
class SavedProfile:
    """A saved dataset: the profile of its columns, of the training split if there are splits.

    ``lengths`` are those of columns of lists; ``pictures`` and ``sounds`` are by column; ``parts`` has the rows of each
    split.
    """

    folder: Path
    profile: Profile
    lengths: Mapping[str, np.ndarray] = field(repr=False)
    sounds: Mapping[str, SavedFiles] = field(repr=False)
    parts: Mapping[str, int]
    classes: Mapping[str, list[str]] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> SavedProfile:
        """Read a saved dataset; raises SigmaDataError for a damaged one."""
        parts = split_saved(folder)
        first = parts.get("training", folder)
        source = open_saved(first)
        files = [column for kind in FILES for column in find_columns(first, kind)]
        table = source.read()
        lists = {name: table[name] for name in table.column_names if pa.types.is_nested(table[name].type)}
        profile = profile_table(table, folder.resolve().name)
        profile = evolve(profile, duplicates=0) if files or lists else profile  # which do not compare equal
        return cls(
            folder, profile, {name: _measure(x) for name, x in lists.items()},
            {column: read_inputs(first, "Audio", column) for column in find_columns(first, "Audio")},
            {name: count_rows(part) for name, part in parts.items()}, read_classes(first),
        )  # fmt: skip

    @property
    def training_folder(self) -> Path:
        """Return the folder of the training split, or of all rows."""
        return split_saved(self.folder).get("training", self.folder)

    @cached_property
    def pictures(self) -> dict[str, PictureProfile]:
        """Return the profile of each column of pictures."""
        return {column: self._look_at(column) for column in find_columns(self.training_folder, "Image")}

    def choose_inputs(self, target: str | None) -> tuple[str, str]:
        """Return the kind and the name of the column to predict a target from; ``table`` for all columns of a table."""
        for kind, columns in (("picture", self.pictures), ("sound", self.sounds)):
            if columns:
                return kind, next(iter(columns))
        others = {target, *self.lengths}
        plain = [column for column in self.profile.columns if column.name not in others and column.kind != "constant"]
        return ("sequence", next(iter(self.lengths))) if self.lengths and not plain else ("table", "")

    def find_target(self) -> str | None:
        """Return the column that is likely to be predicted: the only one with classes, or one of a usual name."""
        if len(self.classes) == 1:
            return next(iter(self.classes))
        names = [column.name for column in self.profile.columns]
        return next((name for name in names if name.lower() in TARGETS), None)

    def choose_target(self, wish: str | None) -> str:
        """Return the column to predict; raises SigmaConfigError if it is not clear."""
        target = wish or self.find_target()
        if target is None:
            names = list_names([column.name for column in self.profile.columns])
            question = "which column is to be predicted? Name it: --target"
            raise SigmaConfigError(f"{self.folder}: {question}. There are: {names}.")
        return target

    # -- for people ----------------------------------------------------------------------------------------------------
    @property
    def head(self) -> str:
        """Return the dataset in one line."""
        columns = len(self.profile.columns) + len(self.pictures) + len(self.sounds)
        splits = f"; {', '.join(f'{name} {rows:,}' for name, rows in self.parts.items())}" if self.parts else ""
        rows = sum(self.parts.values()) or count_rows(self.folder)
        return f"{self.folder}: {rows:,} rows, {columns:,} columns{splits}"

    def table(self) -> Iterator[list[str]]:
        """Yield the rows of a table for people, its header first."""
        header, *rows = self.profile.table()
        yield header
        for name, pictures in self.pictures.items():
            yield [name, "picture", "", "", "", pictures.head]
        for name, sounds in self.sounds.items():
            yield [name, "sound", "", "", "", f"{len(sounds.pictures):,} sounds"]
        for row, column in zip(rows, self.profile.columns, strict=True):
            lengths = self.lengths.get(column.name)
            yield row if lengths is None else [row[0], "list", row[2], "", "", f"{count_values(lengths)} values"]

    def to_json(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        pictures = {column: profile.to_json() for column, profile in self.pictures.items()}
        sounds = {column: len(files.pictures) for column, files in self.sounds.items()}
        return {**self.profile.to_json(), "splits": {**self.parts}, "pictures": pictures, "sounds": sounds}

    def _look_at(self, column: str) -> PictureProfile:
        """Return the profile of the pictures in a column, with a label for each class."""
        files = read_inputs(self.training_folder, "Image", column)
        target = self.find_target()
        labels = [""] * len(files.pictures)
        if target is not None and target in self.classes:
            labels = open_saved(self.training_folder).read([target])[target].to_pylist()
        total = len(files.pictures)
        some = [files.pictures[i * total // LOOKED] for i in range(LOOKED)] if total > LOOKED else files.pictures
        facts = look_at_pictures(self.training_folder, some, open_all=files.open_all)
        by_path = {file.path: label or "" for file, label in zip(files.pictures, labels, strict=True)}
        return PictureProfile(self.folder.resolve().name, by_path, facts, self.parts, ())


def _measure(column: Any) -> np.ndarray:
    lengths = pc.list_value_length(column).drop_null()
    return np.asarray(lengths, np.int64) if len(lengths) else np.zeros(1, np.int64)


def count_rows(folder: Path) -> int:
    """Return the number of rows of a saved dataset; raises SigmaDataError for a damaged one."""
    count = 0
    for path in list_files(folder):
        with File(path).open(), reading(str(path)):
            count += sum(batch.num_rows for batch in pa.ipc.open_stream(pa.memory_map(str(path))))
    return count
