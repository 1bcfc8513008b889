"""Local files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from attrs import field, frozen

from sigma_kernel import SigmaDataError, Source
from sigma_kernel.errors import suggest_name


@frozen
class File(Source):
    """Read a local file; SigmaDataError if it is missing, not a regular file, or not readable.

    Args:
        path: Path of the file; in a configuration, a relative one starts in the directory of the configuration.
    """

    path: Path = field(converter=Path)
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return str(self.path)

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Return the open file."""
        if not self.path.exists():
            raise SigmaDataError(f"{self.name}: there is no such file.{self._hint()}")
        if not self.path.is_file():  # a pipe or a device might never end
            raise SigmaDataError(f"{self.name}: is not a regular file. Give the path of one.")
        try:
            return self.path.open("rb")
        except OSError as error:
            raise SigmaDataError(f"{self.name}: cannot be read: {error.strerror}.") from None

    def _hint(self) -> str:
        folder = self.path.parent
        if not folder.is_dir():
            return f" Nor is there a folder {str(folder)!r}. Check the path."
        return suggest_name(self.path.name, (path.name for path in folder.iterdir())) or " Check the path."
