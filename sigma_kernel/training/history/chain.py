"""The hash chain of a journal: each line ends in a hash of itself and of the previous hash.

The first line holds the format and the hash of the configuration.  Lines that were changed, swapped or removed by
accident are detected; lines missing at the very end only if a checkpoint holds a later hash.  A checkpoint holds a
bookmark, from which a resume reads the lines that follow: those before it are only verified when all are read.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from attrs import field, frozen
from attrs.validators import and_, deep_mapping, ge, instance_of

from sigma_kernel.errors import SigmaCheckpointError, SigmaError, said
from sigma_kernel.training.checkpoints.encoding import packed, unpacked
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.files import digest, get_bytes

FORMAT = 3
CONFIGURATION = re.compile('"configuration": "([0-9a-f]{64})"')
HASH = ', "hash": "'  # separates a row and its hash
LONGEST_HEAD = 1 << 12  # bytes within which a first line ends, if the lines after it are not read
COUNT, TEXT = (int, type(None)), str
HEAD: dict[str, Any] = {"trainer": TEXT, "iteration": int, "epoch": int}
EVENTS: dict[str, dict[str, Any]] = {  # fields required in rows that are replayed
    "begin": {"epochs": COUNT, "iterations": COUNT},
    "fired": {"hook": TEXT, "scope": TEXT},
    "digest": {"state": dict, "losses": TEXT},
    "resumed": {"from": int, "at": COUNT, "edits": list},
}
COPY = "Restore the file from a copy"
WITHOUT = f"{COPY}, or move it away: the run then resumes from its newest checkpoint, without what came after it."


_COUNT = and_(instance_of(int), ge(0))
_BY_TRAINER = deep_mapping(instance_of(str), _COUNT, instance_of(dict))


@frozen(kw_only=True)
class Bookmark:
    """The end of a line, from which a journal can be read, and what is known of the lines before it.

    Rows and sessions are counted by trainer; those of a lost journal are included.
    """

    offset: int = field(default=0, validator=_COUNT)  # in bytes
    lines: int = field(default=0, validator=_COUNT)
    hash: str = field(default="", validator=instance_of(str))
    configuration: str = field(default="", validator=instance_of(str))
    rows: Mapping[str, int] = field(factory=dict, validator=_BY_TRAINER)
    sessions: Mapping[str, int] = field(factory=dict, validator=_BY_TRAINER)

    @classmethod
    def saved(cls, document: Any) -> Bookmark:
        """Return the bookmark that a checkpoint holds; the beginning if it holds none, as those of older versions."""
        try:
            return cls(**document)
        except (TypeError, ValueError):
            return START

    def after(self, line: str, row: Mapping[str, Any] | None = None) -> Bookmark:
        """Return the bookmark after one more line, which holds a row; it is parsed if that is not at hand."""
        row = json.loads(line) if row is None else row
        lost = {name: count for name, (_, count) in row.get("lost", {}).items()}  # of a first line
        rows, sessions = {**self.rows, **lost}, {**self.sessions, **lost}
        if (name := row.get("trainer")) is not None:
            rows[name] = rows.get(name, 0) + 1
            sessions[name] = sessions.get(name, 0) + (row.get("event") == "resumed")
        return Bookmark(
            offset=self.offset + len(line) + 1,
            lines=self.lines + 1,
            hash=hash_of(line),
            configuration=row.get("configuration", self.configuration),
            rows=rows,
            sessions=sessions,
        )


START = Bookmark()


@frozen
class Excerpt:
    """The verified lines of a journal since a bookmark; the last ``missing`` of them are not in the file."""

    path: Path
    lines: Sequence[str]
    start: Bookmark = START
    missing: int = 0

    def end(self) -> Bookmark:
        """Return the bookmark at the end of the file."""
        return reduce(Bookmark.after, self.lines[: len(self.lines) - self.missing], self.start)

    def before(self) -> Bookmark:
        """Return the bookmark before the first row."""
        return self.start if self.start.lines else self.start.after(self.lines[0])

    def rows(self, trainer: str) -> list[dict[str, Any]]:
        """Return the rows of one trainer, each with its index as ``place``.

        Raises SigmaCheckpointError for an invalid row or command.
        """
        lines, before = self.lines if self.start.lines else self.lines[1:], self.before()
        found = [_row(f"{self.path}:{number}", line) for number, line in enumerate(lines, before.lines + 1)]
        mine = (row for row in found if row["trainer"] == trainer)
        return [{**row, "place": place} for place, row in enumerate(mine, before.rows.get(trainer, 0))]


def first(configuration: str, lost: Mapping[str, tuple[str, int]] | None = None) -> str:
    """Return the first line, with the hash of the configuration.

    If the previous journal was ``lost``, it holds, by trainer, the newest hash in checkpoints, and the number of rows.
    """
    return chained("", encoded({"format": FORMAT, "configuration": configuration, "lost": lost or {}}))


def chained(before: str, row: str) -> str:
    """Return a JSON row with its hash appended; ``before`` is the hash of the previous line."""
    return f'{row[:-1]}{HASH}{digest((before + row).encode())[:16]}"}}'


def hash_of(line: str) -> str:
    """Return the hash at the end of a line."""
    return line[-18:-2]


def _follows(before: str, line: str) -> bool:
    return chained(before, line.rpartition(HASH)[0] + "}") == line


def read(path: Path, log: Callable[[str], Any], start: Bookmark = START) -> Excerpt:
    """Read the lines of a journal after a bookmark and verify the chain; drop an incomplete last line, and log that.

    Raises SigmaCheckpointError for a file that is not a journal, is empty, or was changed.
    """
    *lines, rest = _text(path, start).split("\n")
    if not (lines or start.lines):
        raise SigmaCheckpointError(f"{path}: is empty. {WITHOUT}")
    _check_format(path, _text(path, START, LONGEST_HEAD).partition("\n")[0] if start.lines else lines[0])
    before = start.hash
    for number, line in enumerate(lines, start.lines + 1):
        if not _follows(before, line):
            raise SigmaCheckpointError(
                f"{path}:{number}: does not follow from the lines before it: one of them was changed, or lines are "
                f"missing or out of order. {WITHOUT}"
            )
        before = hash_of(line)
    if rest:
        log(f"{path}:{start.lines + len(lines) + 1}: incomplete, as after a crash: this last line is dropped")
    return Excerpt(path, lines, start)


def _text(path: Path, start: Bookmark, count: int = sys.maxsize) -> str:
    """Return the text after a bookmark; raise SigmaCheckpointError if another line than that of its hash ends there."""
    end = f'{start.hash}"}}\n' if start.lines else ""
    text = get_bytes(path, start=max(0, start.offset - len(end)), count=count).decode(errors="replace")
    if not text.startswith(end):
        raise SigmaCheckpointError(f"{path}: line {start.lines} is not that which a checkpoint names. {WITHOUT}")
    return text[len(end) :]


def _check_format(path: Path, line: str) -> None:
    """Raise SigmaCheckpointError if this version cannot read the format in the first line."""
    try:
        head = json.loads(line)
        form, _ = head["format"], [(known.strip(), int(place)) for known, place in head.get("lost", {}).values()]
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{path}:1: is not the first line of a journal: {said(error)}. {WITHOUT}") from error
    if form != FORMAT:
        raise SigmaCheckpointError(
            f"{path}: has format {form!r:.20}, not {FORMAT} as this version reads. Use the sigma-kernel that wrote it."
        )


def completed(part: Excerpt, held: Sequence[Mapping[str, Any]]) -> Excerpt:
    """Return a journal with the lines missing at its end, recovered from checkpoints, given newest first.

    Raises SigmaCheckpointError if the checkpoints do not hold all of them.
    """
    hashes = [part.start.hash, *map(hash_of, part.lines)]
    before = {} if part.start.lines else json.loads(part.lines[0]).get("lost", {})
    known, found, end = {*hashes, *(head for head, _ in before.values())}, list[str](), hashes[-1]
    heads = {chain["trainer"]: chain["head"] for chain in reversed(held)}  # the newest of each
    while not known.issuperset(heads.values()):
        more = next(filter(None, (_after(end, chain["rows"]) for chain in held)), None)
        if more is None:
            raise SigmaCheckpointError(
                f"{part.path}: is cut: it ends at line {part.start.lines + len(part.lines)}, and a checkpoint was "
                f"saved after lines that follow. {WITHOUT}"
            )
        known, found, end = known | {hash_of(line) for line in more}, [*found, *more], hash_of(more[-1])
    return Excerpt(part.path, [*part.lines, *found], part.start, len(found))


def _after(end: str, rows: Sequence[str]) -> list[str]:
    """Return the lines that continue the chain from a last line."""
    found: list[str] = []
    for row in rows:
        if isinstance(row, str) and _follows(end, row):
            found, end = [*found, row], hash_of(row)
    return found


def configured(part: Excerpt) -> list[str]:
    """Return the hash of the current configuration, preceded by the previous one if the file may still have that.

    That is so if nothing follows the change in the journal: a crash may have come between the row and the file.
    """
    hashes, idle = [part.start.configuration] if part.start.lines else [], False
    for line in part.lines:
        for now in CONFIGURATION.findall(line):
            if now not in hashes[-1:]:
                hashes, idle = [*hashes[-1:], now], True
        idle = idle and '"event": "resumed"' in line
    return hashes if idle else hashes[-1:]


def _row(place: str, line: str) -> dict[str, Any]:
    """Parse a line to a row, and check its fields."""
    try:
        row: dict[str, Any] = unpacked(json.loads(line))
        row.pop("hash")
        wanted = HEAD if "command" in row else {**HEAD, "event": TEXT, **EVENTS.get(row["event"], {})}
        if wrong := [name for name, kinds in wanted.items() if not isinstance(row.get(name), kinds)]:
            raise ValueError(f"{', '.join(wrong)} missing or wrong")
        if "command" in row:
            commands.from_dict(row)
    except (SigmaError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{place}: not a row of a journal: {said(error)} {COPY}.") from error
    return row


def encoded(row: Mapping[str, Any]) -> str:
    """Encode a row as one line of JSON; every value is restored bit for bit."""
    return json.dumps(packed(row), allow_nan=False)
