"""Files within the columns of saved datasets, such as pictures and sounds: bytes in memory-mapped files of Arrow."""

from __future__ import annotations

import io
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from sigma_data import File
from sigma_data.arrays import Arrays
from sigma_data.pictures.folder import Picture, picture_at
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import open_place
from sigma_data.tables.batches import reading
from sigma_huggingface.folder import find_columns, list_files, split_saved
from sigma_huggingface.targets import Wanted, read_labels
from sigma_kernel import SigmaConfigError, SigmaDataError

NOUNS = {"Image": "pictures", "Audio": "sounds"}
ROW = ": row "  # between the name of a file of Arrow and the number of a row


@frozen(eq=False)
class MappedFile:
    """One file of Arrow: the bytes of each row, or else the path of its file; and its size and time of change."""

    path: Path
    stamp: tuple[int, int]
    contents: Any = field(repr=False)
    paths: Any = field(repr=False)

    @classmethod
    def open(cls, path: Path, column: str, noun: str) -> MappedFile:
        """Map a column of a file to memory; raises SigmaDataError for one that is damaged, or holds no files."""
        with File(path).open(), reading(str(path)):
            stamp, stream = _stamp(path), pa.ipc.open_stream(pa.memory_map(str(path)))
            kind = stream.schema.field(column).type if column in stream.schema.names else pa.null()
            names = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
            if not pa.types.is_struct(kind) or names != {"bytes": pa.binary(), "path": pa.string()}:
                raise SigmaDataError(f"{path}: column {column!r} holds no {noun}, but {kind}. Save the dataset again.")
            batches = [batch[column] for batch in stream]
            for values in batches:
                values.validate(full=True)  # Arrow does not look whether offsets lie within before it follows them
            whole = pa.chunked_array(batches, kind)
            return cls(path, stamp, pc.struct_field(whole, "bytes"), pc.struct_field(whole, "path"))

    def check_unchanged(self) -> None:
        """Raise SigmaDataError if the file has changed since it was mapped."""
        if _stamp(self.path) != self.stamp:
            raise SigmaDataError(f"{self.path}: has changed while it was read. Read it again when it is complete.")


@frozen(eq=False)
class SavedFiles(LabelledPictures):
    """Files in a column, with their labels; ``shards`` are by path below the folder, ``groups`` those of the rows."""

    root: Path = field(kw_only=True)
    shards: dict[str, MappedFile] = field(kw_only=True, repr=False)
    groups: tuple[Hashable, ...] | None = field(default=None, kw_only=True)

    def select_groups(self, rows: np.ndarray) -> tuple[Hashable, ...] | None:
        """Return the group of each of some rows; None if there are no groups."""
        return None if self.groups is None else tuple(self.groups[row] for row in rows)

    @contextmanager
    def open_all(self) -> Iterator[Any]:
        """Return the function that opens a file, from any thread."""
        yield self._open

    @contextmanager
    def _open(self, picture: Picture) -> Iterator[IO[bytes]]:
        name, _, row = picture.path.rpartition(ROW)
        shard = self.shards[name]
        shard.check_unchanged()
        if (content := shard.contents[int(row)]).is_valid:
            yield io.BytesIO(content.as_buffer())
            return
        path = shard.paths[int(row)].as_py()
        if path is None:
            raise FileNotFoundError("the row holds no file")
        with open_place(self.root) as open_file, open_file(picture_at(self.root, path)) as stream:
            yield stream


def read_files(folder: Path, kind: str, column: str, wanted: Wanted) -> SavedFiles:
    """Return the files of a saved dataset, or of its splits, in a column of a kind; by default in the only one.

    Raises SigmaConfigError if it is not clear which column is meant, and SigmaDataError for damaged datasets.
    """
    parts = split_saved(folder)
    folders = [*parts.values()] or [folder]
    labels, shards = read_labels(folders, wanted), _open_shards(folder, folders, kind, column)
    every = _list_rows(shards)
    if len(every) != labels.rows:
        raise SigmaDataError(f"{folder}: has changed while it was read. Read it again when it is complete.")
    pictures = [every[row] for row in labels.kept]
    named = Arrays(targets=labels.targets)
    return SavedFiles(pictures, named, labels.divide([*parts]), root=folder, shards=shards, groups=labels.groups)


def read_inputs(folder: Path, kind: str, column: str) -> SavedFiles:
    """Return the files of a single saved dataset without targets, all 0."""
    shards = _open_shards(folder, [folder], kind, column)
    if not (files := _list_rows(shards)):
        raise SigmaDataError(f"{folder}: has no row. Check the folder.")
    return SavedFiles(files, Arrays(targets=np.zeros(len(files), np.int32)), {}, root=folder, shards=shards)


def _open_shards(root: Path, folders: Sequence[Path], kind: str, column: str) -> dict[str, MappedFile]:
    """Return the files of Arrow of saved datasets, by path below the folder, in the order of their rows."""
    name = column or choose_column(folders[0], kind)
    files = [path for folder in folders for path in list_files(folder)]
    return {str(path.relative_to(root)): MappedFile.open(path, name, NOUNS[kind]) for path in files}


def choose_column(folder: Path, kind: str) -> str:
    """Return the only column of a kind of features; raises SigmaConfigError if there are several, or none."""
    columns = find_columns(folder, kind)
    if len(columns) != 1:
        what = f"has the columns {', '.join(columns)}" if columns else "has no column"
        raise SigmaConfigError(f"{folder}: {what} of {NOUNS[kind]}. Name one as `column`.")
    return columns[0]


def _list_rows(shards: Mapping[str, MappedFile]) -> list[Picture]:
    """Return a file for each row, which is as large as its bytes."""
    files = []
    for name, shard in shards.items():
        sizes = np.asarray(pc.fill_null(pc.binary_length(shard.contents), -1)).tolist()
        files += [Picture(f"{name}{ROW}{row}", size, shard.stamp[1]) for row, size in enumerate(sizes)]
    return files


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns
