"""The hash chain of a journal: each line ends in a hash of itself and of the previous hash.

The first line holds the format and the hash of the configuration.  Lines that were changed, swapped or removed by
accident are detected; lines missing at the very end only if a checkpoint holds a later hash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaCheckpointError, SigmaError, said
from sigma_kernel.training.checkpoints.encoding import packed, unpacked
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.files import digest, get_bytes

FORMAT = 3
CONFIGURATION = re.compile('"configuration": "([0-9a-f]{64})"')
HASH = ', "hash": "'  # separates a row and its hash
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


def read(path: Path, log: Callable[[str], Any]) -> list[str]:
    """Read the lines of a journal and verify the chain; drop an incomplete last line, and log that.

    Raises SigmaCheckpointError for a file that is not a journal, is empty, or was changed.
    """
    *lines, rest = get_bytes(path).decode(errors="replace").split("\n")
    if not lines:
        raise SigmaCheckpointError(f"{path}: is empty. {WITHOUT}")
    _check_format(path, lines[0])
    before = ""
    for number, line in enumerate(lines, 1):
        if not _follows(before, line):
            raise SigmaCheckpointError(
                f"{path}:{number}: does not follow from the lines before it: one of them was changed, or lines are "
                f"missing or out of order. {WITHOUT}"
            )
        before = hash_of(line)
    if rest:
        log(f"{path}:{len(lines) + 1}: incomplete, as after a crash: this last line is dropped")
    return lines


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


def _lost(lines: Sequence[str]) -> dict[str, Any]:
    return dict(json.loads(lines[0]).get("lost", {}))


def start(lines: Sequence[str], trainer: str) -> int:
    """Return the number of rows that a trainer had in a lost journal."""
    return int(_lost(lines).get(trainer, ("", 0))[1])


def lost(path: Path, lines: Sequence[str], held: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines missing at the end of a journal, recovered from checkpoints, given newest first.

    Raises SigmaCheckpointError if the checkpoints do not hold all of them.
    """
    known, found, end = {hash_of(line) for line in lines}, list[str](), hash_of(lines[-1])
    known |= {head for head, _ in _lost(lines).values()}
    heads = {chain["trainer"]: chain["head"] for chain in reversed(held)}  # the newest of each
    while not known.issuperset(heads.values()):
        more = next(filter(None, (_after(end, chain["rows"]) for chain in held)), None)
        if more is None:
            raise SigmaCheckpointError(
                f"{path}: is cut: it ends at line {len(lines)}, and a checkpoint was saved after lines that follow. "
                + WITHOUT
            )
        known, found, end = known | {hash_of(line) for line in more}, [*found, *more], hash_of(more[-1])
    return found


def _after(end: str, rows: Sequence[str]) -> list[str]:
    """Return the lines that continue the chain from a last line."""
    found: list[str] = []
    for row in rows:
        if isinstance(row, str) and _follows(end, row):
            found, end = [*found, row], hash_of(row)
    return found


def configured(lines: Iterable[str]) -> list[str]:
    """Return the hash of the current configuration, preceded by the previous one if the file may still have that.

    That is so if nothing follows the change in the journal: a crash may have come between the row and the file.
    """
    hashes, idle = list[str](), True
    for line in lines:
        for now in CONFIGURATION.findall(line):
            if now not in hashes[-1:]:
                hashes, idle = [*hashes[-1:], now], True
        idle = idle and '"event": "resumed"' in line
    return hashes if idle else hashes[-1:]


def rows(path: Path, lines: Sequence[str], trainer: str) -> list[dict[str, Any]]:
    """Return the rows of one trainer, each with its index as ``place``.

    Raises SigmaCheckpointError for an invalid row or command.
    """
    found = [_row(f"{path}:{number}", line) for number, line in enumerate(lines[1:], 2)]
    mine = (row for row in found if row["trainer"] == trainer)
    return [{**row, "place": place} for place, row in enumerate(mine, start(lines, trainer))]


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
