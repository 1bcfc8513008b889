"""The list of media of a run folder, ``media.jsonl``; their bytes are files below ``media/``, named by their digests.

A file is whole before its line is written, so that a kill between the two leaves a file that no line names. Lines are
never changed: what had to make room for others is named by a later line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.media import KEY, KINDS
from sigma_kernel.contracts.storing import RowWriter
from sigma_kernel.errors import SigmaStateError
from sigma_store import files
from sigma_store.journal import Lines

FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "name": str, "iteration": int, "epoch": int, "seconds": (int, float), "branch": int, "session": int, "start": int,
    "kind": str, "key": str, "size": int, "caption": str, "facts": dict,
}  # fmt: skip  # of a row


@define(eq=False)
class MediaLines(RowWriter):
    """The rows of media, in a file that is made with the first of them."""

    make: Callable[[], Lines]
    _lines: Lines | None = field(default=None, init=False)

    @property
    def is_behind(self) -> bool:
        """Return whether rows are queued."""
        return self._lines is not None and self._lines.is_behind

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row; raise SigmaStateError if the file cannot be made."""
        if self._lines is None:
            try:
                self._lines = self.make()
            except OSError as error:
                remedy = "Free disk space, and make the folder writable"
                raise SigmaStateError(f"the list of media: cannot be made: {error.strerror}. {remedy}.") from error
        self._lines.append(row)


def read_media(path: Path, log: Callable[[str], Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of media; those that are damaged are left out, and their number is logged.

    Raises SigmaCheckpointError for a file that is not a regular one.
    """
    damaged = 0
    for line in files.get_lines(path) if os.path.lexists(path) else ():
        if not line.endswith("\n"):  # it is being written
            break
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if _is_row(row):
            yield row
        else:
            damaged += not (isinstance(row, dict) and "format" in row)
    if damaged:
        log(f"{path}: {damaged} damaged line{'s are' if damaged > 1 else ' is'} left out.")


def _is_row(row: Any) -> bool:
    """Return whether a line is a row: the file may come from anybody."""
    if not isinstance(row, dict) or not isinstance(row.get("trainer"), str):
        return False
    if "removed" in row:
        gone = row["removed"]
        return isinstance(gone, list) and all(isinstance(x, list) and [*map(type, x)] == [str, int, int] for x in gone)
    typed = all(isinstance(row.get(name), kind) for name, kind in FIELDS.items())
    return typed and row["kind"] in KINDS and KEY.fullmatch(row["key"]) is not None
