"""A table in a file that is not local: copied to its entry in the cache once, and prepared from there."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from attrs import field, frozen

from sigma_data.bounds import CHUNK
from sigma_data.pictures.progress import report
from sigma_data.prepared.entries import PreparedEntry
from sigma_data.prepared.files import PARQUET
from sigma_data.sources.file import File
from sigma_data.sources.fsspec_file import FsspecFile
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
    """A file at a place that fsspec knows, and what tells its content from another one."""

    source: FsspecFile
    identity: Any

    @classmethod
    def find(cls, source: FsspecFile) -> RemoteFile | None:
        """Return the file; None if its place does not tell one content from another."""
        identity = source.identify()
        return None if identity is None else cls(source, identity)

    def describe(self) -> list[Any]:
        """Return address, options and identity of the content that is there now."""
        return [self.source.address, {**self.source.options}, self.source.identify()]

    @property
    def is_columnar(self) -> bool:
        """Return whether it is Parquet."""
        return self.source.peek(len(PARQUET)) == PARQUET

    def copy_to(self, entry: PreparedEntry) -> None:
        """Copy the file to an entry of the cache, unless that needs none; raise SigmaDataError if it changes."""
        path = entry.folder / COPY
        with entry.hold_lock():
            is_complete = entry.read().get("complete") and (entry.folder / ASIDE).exists()
            if is_complete or path.exists():
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

    def locate(self, entry: PreparedEntry) -> CopiedFile | FsspecFile:
        """Return the copy, if there is one, else the file itself."""
        path: Path = entry.folder / COPY
        return CopiedFile(path, self.source.name) if path.exists() else self.source
