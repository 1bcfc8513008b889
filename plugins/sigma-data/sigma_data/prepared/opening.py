"""Decide whether a table is read in blocks, and name its entry in the cache by its files and all settings."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sigma_data.encoded import describe_encoder
from sigma_data.prepared.code import hash_code, hash_package
from sigma_data.prepared.files import LocalFiles, Original
from sigma_data.prepared.queries import find_query, is_database
from sigma_data.prepared.remote import DownloadedFile, RemoteFile
from sigma_data.sources.fsspec_file import FsspecFile
from sigma_data.sources.url import Url
from sigma_data.tables import name_place, open_table
from sigma_kernel import Encoder, SigmaConfigError

VERSION = 1  # of what is in an entry
LARGE = 1 << 30  # bytes of numbers from which on a table is read in blocks
UNCHANGING = {"path", "block_rows", "memory", "cache", "lanes", "class_weights", "past"}  # not in arrays


def find_block_files(
    place: Any, form: Mapping[str, Any], block_rows: int | None, cache: Path | None = None
) -> Original | None:
    """Return the table at a place if it is read in blocks; None if it is in memory.

    Raises SigmaConfigError if blocks are asked for of a table of which one content cannot be told from another, and
    SigmaDataError for a path where there is none.
    """
    original = _find_original(place, form, cache)
    if block_rows is None:
        return original if original is not None and original.count_bytes() > LARGE else None
    if original is None:
        if isinstance(place, Path) or "database" in form:
            open_table(place, **form)  # which says what is missing
        raise SigmaConfigError(
            "block_rows: only tables in files and databases are read in blocks, at places that tell when they change. "
            "Leave it out, give the sha256 of the file, or save the table as Parquet."
        )
    return original


def _find_original(place: Any, form: Mapping[str, Any], cache: Path | None) -> Original | None:
    """Return the table at a place; None if it cannot be told whether it has changed, and if there is none."""
    if "database" in form or is_database(place, form):
        return find_query(form.get("database", place), form.get("query"), cache)
    if isinstance(place, FsspecFile):
        return RemoteFile.find(place, form)
    return DownloadedFile(place, form) if isinstance(place, Url) else LocalFiles.find(place, form)


def open_prepared(data: Any, original: Original) -> Any:
    """Return the PreparedTable of a data set in these files; one that is not local is copied before."""
    preparing, entries = import_module("sigma_data.prepared.preparing"), import_module("sigma_data.prepared.entries")
    stamps = original.describe()
    key = preparing.name_entry([VERSION, _describe_versions(), stamps, _describe_settings(data)])
    encoders = {name: encoder for name, encoder in data.columns.items() if isinstance(encoder, Encoder)}
    entry = entries.PreparedEntry.in_folder(data.cache, key)
    original.copy_to(entry)
    return preparing.PreparedTable(name_place(data.path), original, stamps, entry, data.block_dtype, encoders)


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
