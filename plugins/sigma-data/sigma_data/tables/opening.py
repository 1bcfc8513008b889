"""Open a table of any format, at any place."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sigma_data.sources.compressed import Compressed, compression
from sigma_data.sources.file import File
from sigma_data.sources.fsspec_file import FsspecFile
from sigma_data.sources.unpacked import read_all
from sigma_data.tables.batches import RecordBatches
from sigma_data.tables.spreadsheet import is_spreadsheet, open_spreadsheet
from sigma_kernel import SigmaConfigError, SigmaDataError, Source
from sigma_kernel.errors import suggest_name

FORMATS = {
    "csv": "text:open_text", "parquet": "parquet:open_parquet", "arrow": "ipc:open_ipc",
    "stream": "ipc:open_stream", "json": "json_lines:open_json", "orc": "orc:open_orc",
}  # fmt: skip
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"ORC": "orc", b"\xff\xff\xff\xff": "stream"}
OLD_FEATHER = b"FEA1"  # whose parser in Arrow follows any offset
SQLITE = b"SQLite format 3\0"
DATABASES = ("sqlite", "postgresql", "postgres", "snowflake", "grpc")  # schemes of addresses
JSON = (".json", ".jsonl", ".ndjson")
NESTED = 3  # compressions within each other


def open_table(
    place: Any,
    *,
    format: str | None = None,
    member: str | None = None,
    limit: int = 1 << 30,
    query: str | None = None,
    database: str | None = None,
    exact: Sequence[str] = (),
    sheet: str | None = None,
    strict: bool = True,
    **text: Any,
) -> RecordBatches:
    """Return the rows of a table.

    Raises SigmaDataError, with file and place, for what cannot be read; SigmaConfigError for settings that do not fit.

    Args:
        place: Path or pattern of paths, address, source, Arrow object, or frame.
        format: One of csv, parquet, arrow (Feather), stream, json, orc; by default found from the first bytes.
        member: Member of an archive; needed if it has several.
        limit: Most bytes that a compressed file may unpack to.
        query: Query of a database.
        database: Path or address of a database, instead of ``place``.
        exact: Columns of a delimited text in which whole numbers with leading zeros stay texts.
        sheet: Sheet of a spreadsheet; needed if it has several.
        strict: Whether settings for another kind of file are an error; if not, they are ignored.
        **text: Dialect of a delimited text where it is not to be found from its first bytes: ``delimiter``,
            ``decimal``, ``thousands``, ``encoding``, ``header``.
    """
    if unknown := {*text} - {"delimiter", "decimal", "thousands", "encoding", "header"}:
        raise SigmaConfigError(f"open_table: there is no setting {sorted(unknown)[0]!r}.")
    if format is not None and format not in FORMATS:
        raise SigmaConfigError(f"format: there is no {format!r}.{suggest_name(format, FORMATS)} {', '.join(FORMATS)}.")
    scheme = place.partition("://")[0] if isinstance(place, str) and "://" in place else ""
    if database is not None or (scheme and (query is not None or scheme in DATABASES)):
        return _sql(database or place, query)
    read = partial(_open_source, format=format, member=member, limit=limit, query=query, exact=exact, sheet=sheet)
    read = partial(read, text=text, refuse=_refuse_settings if strict else _ignore_settings)
    return _open_place(FsspecFile(place) if scheme else place, read)


def open_alike(place: Any, form: Mapping[str, Any], exact: Sequence[str] = ()) -> RecordBatches:
    """Return the rows of a table to predict from, by the settings of that of the training, of any format.

    Settings for another kind of file are ignored; raises errors as ``open_table`` for all others.
    """
    return open_table(place, **{**form, "exact": (*form.get("exact", ()), *exact), "strict": False})


def _open_place(place: Any, read: Callable[..., RecordBatches]) -> RecordBatches:
    if isinstance(place, Source):
        return read(place)
    if not isinstance(place, str | os.PathLike):
        opened: RecordBatches = _load("objects:open_object")(place)
        return opened
    return _open_path(Path(place), read)


def _open_path(path: Path, read: Callable[..., RecordBatches]) -> RecordBatches:
    folder = import_module("sigma_data.tables.folder")
    if path.is_dir():
        files, base = folder.list_files(path), path
    elif not path.exists() and glob.has_magic(str(path)):
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file())
        base = Path(*path.parts[: next(i for i, part in enumerate(path.parts) if glob.has_magic(part))])
        if not files:
            raise SigmaDataError(f"{path}: no file has such a name. Check the pattern.")
    else:
        return read(File(path))
    opened: RecordBatches = folder.open_files(files, base, str(path), lambda one: read(File(one), exact=()))
    return opened


def _open_source(
    source: Source,
    *,
    format: str | None,
    member: str | None,
    limit: int,
    query: str | None,
    exact: Sequence[str],
    sheet: str | None,
    text: dict[str, Any],
    refuse: Callable[[Source, str, dict[str, Any]], None],
) -> RecordBatches:
    for depth in range(NESTED + 1):
        source, packed, head = _look_into(source, limit)
        if packed in (None, "workbook"):
            break
        archive = packed in ("zip", "tar")
        source = Compressed(source, member=member if archive else None, limit=limit)
        member = None if archive else member
        if depth == NESTED:
            raise SigmaDataError(f"{source.name}: is compressed more than {NESTED} times. Unpack it.")
    refuse(source, f"no archive, and has no {member!r}", {"member": member})
    if packed == "workbook":
        refuse(source, "a spreadsheet", {"query": query, "format": format, **text})
        return open_spreadsheet(source, sheet, limit)
    refuse(source, "no spreadsheet", {"sheet": sheet})
    if head.startswith(SQLITE) and format is None:
        return _sql(source.name, query) if isinstance(source, File) else _refuse_packed(source)
    refuse(source, "no database", {"query": query})
    kind = format or _format_of(head, source.name)
    if kind != "csv":
        refuse(source, f"no delimited text, but {kind}", text)
    opened: RecordBatches = _load(FORMATS[kind])(source, **({**text, "exact": exact} if kind == "csv" else {}))
    return opened


def _look_into(source: Source, limit: int) -> tuple[Source, str | None, bytes]:
    """Return a source, its compression or ``workbook``, and its first bytes.

    One that is a zip archive within another file is read into memory, as the list of its members is at the end.
    """
    with source.open() as stream:
        packed, seekable = compression(stream), stream.seekable()
        if packed == "zip" and seekable and is_spreadsheet(stream):
            return source, "workbook", b""
        head = b"" if packed else stream.read(64)
    if packed == "zip" and not seekable:
        return _look_into(read_all(source, limit), limit)
    return source, packed, head


def _refuse_settings(source: Source, what: str, settings: dict[str, Any]) -> None:
    """Raise SigmaConfigError for the first setting that has a value and does not suit the format."""
    if given := [name for name, value in settings.items() if value is not None]:
        raise SigmaConfigError(f"{given[0]}: {source.name} is {what}. Leave `{given[0]}` out.")


def _ignore_settings(source: Source, what: str, settings: dict[str, Any]) -> None:
    """Do nothing about settings that do not suit the format."""


def _refuse_packed(source: Source) -> RecordBatches:
    raise SigmaDataError(f"{source.name}: is a compressed database. Unpack it.")


def _format_of(head: bytes, name: str) -> str:
    """Return the format of a file by its first bytes, or by its name where those say nothing."""
    if kind := next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None):
        return kind
    if head.startswith(OLD_FEATHER):
        raise SigmaDataError(f"{name}: is in the first version of Feather. Write it again, as version 2 or Parquet.")
    if not head:
        raise SigmaDataError(f"{name}: the file is empty. Check the path.")
    plain = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    named = any(end in JSON for end in Path(name).suffixes)
    return "json" if plain.startswith(b'{"') or (named and plain.startswith((b"{", b"["))) else "csv"


def _sql(database: str, query: str | None) -> RecordBatches:
    opened: RecordBatches = _load("sql:open_query")(database, query)
    return opened


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"sigma_data.tables.{module}"), name)
    return function
