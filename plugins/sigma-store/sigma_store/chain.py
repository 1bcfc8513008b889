"""The hash chain of a journal: each line ends in a hash of itself and of the previous hash.

The first line holds the format and the hash of the configuration.  Lines that were changed, swapped or removed by
accident are detected; lines missing at the very end only if a checkpoint holds a later hash.  A checkpoint holds a
bookmark, from which a resume reads the lines that follow: those before it are only verified when all are read.

A journal may be large: its lines are read one by one, and those of digests again when they are compared.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any

from attrs import field, frozen
from attrs.validators import and_, deep_mapping, ge, instance_of

from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.encoding import pack, unpack
from sigma_kernel.errors import SigmaCheckpointError, error_text
from sigma_store.files import digest, get_bytes, get_lines

FORMAT = 3
CONFIGURATION = re.compile('"configuration": "([0-9a-f]{64})"')
HASH = ', "hash": "'  # separates a row and its hash
LARGE = ("state", "losses")  # fields of a row of digests that stay in the file until they are compared
COUNT, TEXT = (int, type(None)), str
HEAD: dict[str, Any] = {"trainer": TEXT, "iteration": int, "epoch": int}
FIELDS: dict[str, dict[str, Any]] = {  # required in rows of these events and commands, as a resume reads them
    "begin": {"epochs": COUNT, "iterations": COUNT},
    "fired": {"hook": TEXT, "scope": TEXT},
    "ages": {"ages": TEXT},
    "digest": {"state": dict, "losses": TEXT},
    "resumed": {"from": int, "at": COUNT, "edits": list},
    "rewind": {"to": int},
    "set": {"pattern": TEXT},
}
COPY = "Restore the file from a copy"
WITHOUT = f"{COPY}, or move it away: the run then resumes from its newest checkpoint, without what came after it."


_COUNT = and_(instance_of(int), ge(0))
_BY_TRAINER = deep_mapping(instance_of(str), _COUNT, instance_of(dict))


@frozen(kw_only=True)
class Bookmark:
    """The end of a line, from which a journal can be read, and a summary of the lines before it.

    Rows and sessions are counted by trainer; those of a lost journal are included.
    """

    offset: int = field(default=0, validator=_COUNT)  # in bytes
    lines: int = field(default=0, validator=_COUNT)
    hash: str = field(default="", validator=instance_of(str))
    configuration: str = field(default="", validator=instance_of(str))
    rows: Mapping[str, int] = field(factory=dict, validator=_BY_TRAINER)
    sessions: Mapping[str, int] = field(factory=dict, validator=_BY_TRAINER)

    @classmethod
    def from_document(cls, document: Any) -> Bookmark:
        """Return the bookmark that a checkpoint holds; the beginning if it holds none, as those of older versions."""
        try:
            return cls(**document)
        except (TypeError, ValueError):
            return START

    def advance(self, line: str, row: Mapping[str, Any] | None = None) -> Bookmark:
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
class Stored:
    """The place of a line of digests in a journal."""

    path: Path
    offset: int
    size: int
    before: str  # the hash of the previous line

    def read(self) -> dict[str, Any]:
        """Read the large fields of the row; raise SigmaCheckpointError if the line was changed meanwhile."""
        line = get_bytes(self.path, start=self.offset, count=self.size).decode(errors="replace")
        if not _follows(self.before, line):
            raise SigmaCheckpointError(f"{self.path}: was changed while it was replayed. {COPY}.")
        row = unpack(json.loads(line))
        return {name: row[name] for name in LARGE}


@frozen
class JournalExcerpt:
    """The verified lines of a journal since a bookmark: a ``count`` of them in the file, and ``more`` that it lacks.

    Those in the file are read each time that they are needed.
    """

    path: Path
    count: int = 0
    start: Bookmark = START
    more: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield all lines; raise SigmaCheckpointError if the file was changed meanwhile."""
        return chain(islice(_verified_lines(self.path, self.start), self.count), self.more)

    def end(self) -> Bookmark:
        """Return the bookmark at the end of the file."""
        return reduce(Bookmark.advance, islice(self.lines(), self.count), self.start)

    def first_bookmark(self) -> Bookmark:
        """Return the bookmark before the first row."""
        return self.start if self.start.lines else self.start.advance(next(self.lines()))

    @property
    def place(self) -> str:
        """Return where the journal is."""
        return str(self.path)

    @property
    def is_complete(self) -> bool:
        """Return whether it begins at the beginning."""
        return not self.start.lines

    def count_before(self, trainer: str) -> tuple[int, int]:
        """Return how many rows of a trainer came before, and how many of these began with a resume."""
        before = self.first_bookmark()
        return before.rows.get(trainer, 0), before.sessions.get(trainer, 0)

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Return whether it begins at the bookmark of a checkpoint, or before."""
        return Bookmark.from_document(checkpoint.chain.get("bookmark")).offset >= self.start.offset

    def rows(self, trainer: str) -> list[dict[str, Any]]:
        """Return the rows of one trainer, each with its index as ``place``; of digests, ``whole`` reads all fields.

        Raises SigmaCheckpointError for an invalid row.
        """
        before = self.first_bookmark()
        rows = (row for row in self._rows(before) if row["trainer"] == trainer)
        return [{**row, "place": place} for place, row in enumerate(rows, before.rows.get(trainer, 0))]

    def _rows(self, before: Bookmark) -> Iterator[dict[str, Any]]:
        """Yield the rows of all trainers; those of digests in the file hold a place in it instead of large fields."""
        offset, last, first = before.offset, before.hash, before.lines - self.start.lines
        for number, line in enumerate(islice(self.lines(), first, None), first + 1):
            row = _row(f"{self.path}:{self.start.lines + number}", line)
            if row.get("event") == "digest" and number <= self.count:
                light = {sys.intern(name): value for name, value in row.items() if name not in LARGE}
                row = {**light, "stored": Stored(self.path, offset, len(line), last)}
            yield row
            offset, last = offset + len(line) + 1, hash_of(line)


def first_line(configuration: str, lost: Mapping[str, tuple[str, int]] | None = None) -> str:
    """Return the first line, with the hash of the configuration.

    If the previous journal was ``lost``, it holds, by trainer, the newest hash in checkpoints, and the number of rows.
    """
    return chain_row("", encode_row({"format": FORMAT, "configuration": configuration, "lost": lost or {}}))


def chain_row(before: str, row: str) -> str:
    """Return a JSON row with its hash appended; ``before`` is the hash of the previous line."""
    return f'{row[:-1]}{HASH}{digest((before + row).encode())[:16]}"}}'


def hash_of(line: str) -> str:
    """Return the hash at the end of a line."""
    return line[-18:-2]


def _follows(before: str, line: str) -> bool:
    row = line[: -len(HASH) - 18]
    value = digest(f"{before}{row}}}".encode())[:16]
    return line[len(row) :] == f'{HASH}{value}"}}'


def read(
    path: Path, log: Callable[[str], Any], start: Bookmark = START, held: Sequence[Mapping[str, Any]] = ()
) -> JournalExcerpt:
    """Read the lines of a journal after a bookmark and verify the chain; drop an incomplete last line, and log that.

    A bookmark that does not fit stands for the beginning.  Lines missing at the end are recovered from what checkpoints
    ``held`` of it, newest first.  Raises SigmaCheckpointError for a file that is not a journal, is empty, or was
    changed or cut.
    """
    end = f'{start.hash}"}}\n'.encode()
    if get_bytes(path, start=max(0, start.offset - len(end)), count=len(end)) != end:
        start = START
    lost = _lost(path, next(get_lines(path), ""))
    hashes = [start.hash, *map(hash_of, _verified_lines(path, start, log))]
    more = _recover_lines(path, start.lines, hashes, {} if start.lines else lost, held)
    return JournalExcerpt(path, len(hashes) - 1, start, more)


def _verified_lines(path: Path, start: Bookmark, log: Callable[[str], Any] = lambda text: None) -> Iterator[str]:
    """Yield the complete lines after a bookmark, and log an incomplete one; raise SigmaCheckpointError for others."""
    before = start.hash
    for number, text in enumerate(get_lines(path, start.offset), start.lines + 1):
        line = text.removesuffix("\n")
        if line == text:
            log(f"{path}:{number}: incomplete, as after a crash: this last line is dropped")
            return
        if not _follows(before, line):
            raise SigmaCheckpointError(
                f"{path}:{number}: does not follow from the lines before it: one of them was changed, or lines are "
                f"missing or out of order. {WITHOUT}"
            )
        before = hash_of(line)
        yield line


def _lost(path: Path, line: str) -> dict[str, tuple[str, int]]:
    """Return the first line's record of a lost journal; raise SigmaCheckpointError if this version cannot read it."""
    if not line.endswith("\n"):
        raise SigmaCheckpointError(f"{path}: is empty. {WITHOUT}")
    try:
        head = json.loads(line)
        form = head["format"]
        lost = {name: (head_hash.strip(), int(place)) for name, (head_hash, place) in head.get("lost", {}).items()}
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(
            f"{path}:1: is not the first line of a journal: {error_text(error)}. {WITHOUT}"
        ) from error
    if form != FORMAT:
        raise SigmaCheckpointError(
            f"{path}: has format {form!r:.20}, not {FORMAT} as this version reads. Use the sigma-kernel that wrote it."
        )
    return lost


def _recover_lines(
    path: Path,
    first: int,
    hashes: Sequence[str],
    lost: Mapping[str, tuple[str, int]],
    held: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return the lines missing after those of these hashes; raise SigmaCheckpointError if checkpoints lack some."""
    all_hashes, lines, end = {*hashes, *(head for head, _ in lost.values())}, list[str](), hashes[-1]
    heads = {chain["trainer"]: chain["head"] for chain in reversed(held)}  # the newest of each
    while not all_hashes.issuperset(heads.values()):
        more = next(filter(None, (_continuation(end, chain["rows"]) for chain in held)), None)
        if more is None:
            raise SigmaCheckpointError(
                f"{path}: is cut: it ends at line {first + len(hashes) - 1}, and a checkpoint was saved after lines "
                f"that follow. {WITHOUT}"
            )
        all_hashes, lines, end = all_hashes | {hash_of(line) for line in more}, [*lines, *more], hash_of(more[-1])
    return lines


def _continuation(end: str, rows: Sequence[str]) -> list[str]:
    """Return the lines that continue the chain from a last line."""
    lines: list[str] = []
    for row in rows:
        if isinstance(row, str) and _follows(end, row):
            lines, end = [*lines, row], hash_of(row)
    return lines


def configuration_hashes(part: JournalExcerpt) -> list[str]:
    """Return the hash of the current configuration, preceded by the previous one if the file may still have that.

    That is so if nothing follows the change in the journal: a crash may have come between the row and the file.
    """
    hashes, idle = [part.start.configuration] if part.start.lines else [], False
    for line in part.lines():
        for now in CONFIGURATION.findall(line):
            if now not in hashes[-1:]:
                hashes, idle = [*hashes[-1:], now], True
        idle = idle and '"event": "resumed"' in line
    return hashes if idle else hashes[-1:]


def _row(place: str, line: str) -> dict[str, Any]:
    """Parse a line to a row, and check its fields; whether a command can be applied, only a replay needs to know."""
    try:
        row: dict[str, Any] = unpack(json.loads(line))
        row.pop("hash")
        what = "command" if "command" in row else "event"
        wanted = {**HEAD, what: TEXT, **FIELDS.get(row[what], {})}
        if wrong := [name for name, kinds in wanted.items() if not isinstance(row.get(name), kinds)]:
            raise ValueError(f"{', '.join(wrong)} missing or wrong")
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{place}: not a row of a journal: {error_text(error)} {COPY}.") from error
    return row


def encode_row(row: Mapping[str, Any]) -> str:
    """Encode a row as one line of JSON; every value is restored bit for bit."""
    return json.dumps(pack(row), allow_nan=False)
