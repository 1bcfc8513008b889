"""A table in a file that is not local: copied to its entry in the cache once, and prepared from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import IO, Any, ClassVar

from attrs import define, field, frozen

from sigma_data.bounds import CHUNK
from sigma_data.pictures.progress import report
from sigma_data.prepared.entries import PreparedEntry
from sigma_data.prepared.files import NUMBER, PARQUET, LocalFiles
from sigma_data.sources.file import File
from sigma_data.sources.fsspec_file import FsspecFile
from sigma_data.sources.url import Url
from sigma_data.tables import open_table
from sigma_kernel import SigmaDataError

COPY, ASIDE = "copy", "aside.parquet"  # of the file, and its columns that are not encoded


@frozen
class CopiedFile(File):
    """A local copy of a file, by the name of that."""

    address: str
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return self.address


@frozen
class RemoteFile:
    """A file at a place that fsspec knows, in this form, and what tells its content from another one."""

    source: FsspecFile
    form: Mapping[str, Any]
    identity: Any
    is_copied: ClassVar[bool] = True

    @classmethod
    def find(cls, source: FsspecFile, form: Mapping[str, Any]) -> RemoteFile | None:
        """Return the file; None if its place does not tell one content from another."""
        identity = source.identify()
        return None if identity is None else cls(source, form, identity)

    def describe(self) -> list[Any]:
        """Return address, options and identity of the content that is there now."""
        return [self.source.address, {**self.source.options}, self.source.identify()]

    def count_bytes(self) -> int:
        """Return the bytes of the numbers of Parquet, or of the file; a hash is not checked, and little is read."""
        if self.source.peek(len(PARQUET)) != PARQUET:
            return self.source.size
        with self.source.look() as stream:
            numbers: int = import_module("sigma_data.tables.parquet").count_numbers(stream, self.source.name)
        return numbers * NUMBER

    def copy_to(self, entry: PreparedEntry) -> None:
        """Copy the file to an entry of the cache, unless that needs none; raise SigmaDataError if it changes."""
        path = entry.folder / COPY
        with entry.hold_lock():
            if is_prepared(entry) or path.exists():
                return
            report(f"{self.source.name}: is copied to {path}.")
            with entry.replacing(COPY) as part, part.open("wb") as copy:
                self._write(copy)
            if self.source.identify() != self.identity:
                path.unlink()
                raise SigmaDataError(f"{self.source.name}: has changed while it was copied. Start again.")

    def _write(self, copy: IO[bytes]) -> None:
        """Write the content; errors of the local disk are not those of the place."""
        with self.source.open() as stream:
            failure = None
            while failure is None and (chunk := stream.read(CHUNK)):
                try:
                    copy.write(chunk)
                except OSError as error:
                    failure = error
        if failure is not None:
            raise failure

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the copy."""
        return (entry.folder / COPY,)

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows of the copy, if there is one, else of the file itself."""
        path: Path = entry.folder / COPY
        return open_table(CopiedFile(path, self.source.name) if path.exists() else self.source, **self.form)


@define(eq=False, slots=False)
class DownloadedFile:
    """A file at a URL, in this form, which is downloaded where sources keep it, and stays there."""

    source: Url
    form: Mapping[str, Any]
    is_copied: ClassVar[bool] = True

    @cached_property
    def path(self) -> Path:
        """Return the path of the download, whose hash was checked."""
        return self.source.fetch()

    def describe(self) -> list[Any]:
        """Return the hash of the content."""
        return ["sha256", self.source.sha256.lower()]

    def count_bytes(self) -> int:
        """Return the bytes of the numbers of Parquet, or of the characters of others."""
        return LocalFiles(CopiedFile(self.path, self.source.name), self.form, (self.path,)).count_bytes()

    def copy_to(self, entry: PreparedEntry) -> None:
        """Download the file, unless what is prepared needs it no more."""
        if not is_prepared(entry):
            self.list_files(entry)

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the download."""
        return (self.path,)

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows of the download."""
        return open_table(CopiedFile(self.path, self.source.name), **self.form)


def is_prepared(entry: PreparedEntry) -> bool:
    """Return whether an entry holds all that is read of a table that was copied."""
    return bool(entry.read().get("complete")) and (entry.folder / ASIDE).exists()
