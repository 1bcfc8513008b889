"""Decide whether a table is read in blocks, and name its entry in the cache by its files and all settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sigma_data.encoded import describe_encoder
from sigma_data.prepared.code import hash_code, hash_package
from sigma_data.prepared.files import LARGE, count_bytes, describe_files, is_columnar, list_table_files
from sigma_data.prepared.remote import COPY, RemoteFile
from sigma_data.sources.fsspec_file import FsspecFile
from sigma_data.tables import name_place, open_table
from sigma_kernel import Encoder, SigmaConfigError

VERSION = 1  # of what is in an entry
DENSEST = 64  # bytes of numbers in a byte of Parquet, as a rule at most: 8 bits of 8 bytes each
UNCHANGING = {"path", "block_rows", "memory", "cache", "class_weights", "past"}  # on which arrays do not depend


def find_block_files(
    place: Any, form: Mapping[str, Any], block_rows: int | None
) -> tuple[Path, ...] | RemoteFile | None:
    """Return the files of a table that is read in blocks; none for one that is in memory.

    Raises SigmaConfigError if blocks are asked for of anything else than files of which one content can be told from
    another, and SigmaDataError for a path where there is none.
    """
    files: tuple[Path, ...] | RemoteFile | None = None
    if "database" not in form:
        files = RemoteFile.find(place) if isinstance(place, FsspecFile) else list_table_files(place)
    if block_rows is None:
        return files if files and _is_large(place, form, files) else None
    if not files:
        if isinstance(place, Path) and "database" not in form:
            open_table(place, **form)  # which says what is missing
        raise SigmaConfigError(
            "block_rows: only tables in local files are read in blocks, and in files whose place tells "
            "when they change. Leave it out, give the sha256 of the file, or save the table as Parquet."
        )
    return files


def _is_large(place: Any, form: Mapping[str, Any], files: Sequence[Path] | RemoteFile) -> bool:
    """Return whether the numbers of Parquet files, or the characters of others, are many.

    A small file that is not local is not opened, as each opening of one with a hash transfers all of it.
    """
    if isinstance(files, RemoteFile):
        size = files.source.size
        if 0 < size <= LARGE // DENSEST:
            return False
        columnar = files.is_columnar
    else:
        size, columnar = count_bytes(files), is_columnar(files)
    if not columnar:
        return size > LARGE
    table = open_table(place, **form)
    return (table.rows or 0) * len(table.schema) * 8 > LARGE


def open_prepared(data: Any, files: tuple[Path, ...] | RemoteFile) -> Any:
    """Return the PreparedTable of a data set in these files; one that is not local is copied before."""
    preparing, entries = import_module("sigma_data.prepared.preparing"), import_module("sigma_data.prepared.entries")
    describe = files.describe if isinstance(files, RemoteFile) else partial(describe_files, files)
    stamps = describe()
    key = preparing.name_entry([VERSION, _describe_versions(), stamps, _describe_settings(data)])
    encoders = {name: encoder for name, encoder in data.columns.items() if isinstance(encoder, Encoder)}
    entry = entries.PreparedEntry.in_folder(data.cache, key)
    if isinstance(files, RemoteFile):
        files.copy_to(entry)
    return preparing.PreparedTable(
        name_place(data.path), (entry.folder / COPY,) if isinstance(files, RemoteFile) else files, stamps, describe,
        entry, partial(_open_files, data, files, entry), data.block_dtype, encoders,
    )  # fmt: skip


def _open_files(data: Any, files: tuple[Path, ...] | RemoteFile, entry: Any) -> Any:
    return open_table(files.locate(entry) if isinstance(files, RemoteFile) else data.path, **data.format)


def _describe_settings(data: Any) -> dict[str, Any]:
    """Return the settings of a data set that what is prepared depends on, as plain values."""
    return {
        own.alias: _describe(getattr(data, own.name))
        for own in attrs.fields(type(data))
        if own.init and own.alias not in UNCHANGING
    }


def _describe(value: Any) -> Any:
    if isinstance(value, Encoder):
        return [describe_encoder(value), hash_code(type(value))]
    if attrs.has(type(value)):
        return attrs.asdict(value)
    if isinstance(value, Mapping):
        return [[name, _describe(own)] for name, own in value.items()]
    return [_describe(own) for own in value] if isinstance(value, tuple | list) else value


def _describe_versions() -> list[str]:
    """Return the versions of what reads and encodes tables, and a hash of this package."""
    return [np.__version__, import_module("pyarrow").__version__, hash_package("sigma_data")]
