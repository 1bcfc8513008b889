"""The lines of a journal: a chain, in which each ends in a hash of itself and of the hash before it.

The first line names the format and the hash of the configuration.  So a line that was changed, exchanged or taken out
by accident is found; only what is missing at the very end is not, unless a checkpoint says so.
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
from sigma_kernel.training.runs.files import digest, get_bytes

FORMAT = 3
CONFIGURATION = re.compile('"configuration": "([0-9a-f]{64})"')
HASH = ', "hash": "'  # what stands between a row and its hash
COUNT, TEXT = (int, type(None)), str
HEAD: dict[str, Any] = {"trainer": TEXT, "iteration": int, "epoch": int}
EVENTS: dict[str, dict[str, Any]] = {  # what belongs to those rows that are read again
    "begin": {"epochs": COUNT, "iterations": COUNT},
    "fired": {"hook": TEXT, "scope": TEXT},
    "digest": {"state": dict, "losses": TEXT},
    "resumed": {"from": int, "at": COUNT, "edits": list},
}
COPY = "Restore the file from a copy"
WITHOUT = f"{COPY}, or move it away: the run then resumes from its newest checkpoint, without what came after it."


def first(configuration: str, lost: Mapping[str, tuple[str, int]] | None = None) -> str:
    """Return the first line, with the hash of the configuration.

    Of a journal that was ``lost`` it says, by trainer, the newest hash that checkpoints know, and how many rows it had.
    """
    return chained("", encoded({"format": FORMAT, "configuration": configuration, "lost": lost or {}}))


def chained(before: str, row: str) -> str:
    """Return a row of JSON with the hash of all lines up to it, of which the last has the hash ``before``."""
    return f'{row[:-1]}{HASH}{digest((before + row).encode())[:16]}"}}'


def hash_of(line: str) -> str:
    """Return the hash at the end of a line."""
    return line[-18:-2]


def _follows(before: str, line: str) -> bool:
    return chained(before, line.rpartition(HASH)[0] + "}") == line


def read(path: Path, log: Callable[[str], Any]) -> list[str]:
    """Return the lines of a journal, checked one by one; a last line that is not whole is dropped, which is told.

    Raises SigmaCheckpointError for what is no journal, is empty, or was changed.
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
        log(f"{path}:{len(lines) + 1}: is not whole, as a crash leaves the last line: it is dropped")
    return lines


def _check_format(path: Path, line: str) -> None:
    """Raise SigmaCheckpointError for a first line that this version cannot read."""
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
    """Return how many rows a trainer had in a journal that was lost."""
    return int(_lost(lines).get(trainer, ("", 0))[1])


def lost(path: Path, lines: Sequence[str], held: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines that a journal has lost at its end, from what checkpoints hold of it, the newest first.

    Raises SigmaCheckpointError where that is not enough.
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
    """Return the lines that follow each other from an end on."""
    found: list[str] = []
    for row in rows:
        if isinstance(row, str) and _follows(end, row):
            found, end = [*found, row], hash_of(row)
    return found


def configured(lines: Iterable[str]) -> list[str]:
    """Return the hash of the present configuration, and before it that of the former one, if that may still be there.

    It may where nothing was done under the present one: a crash came between the row and the file.
    """
    hashes, idle = list[str](), True
    for line in lines:
        for now in CONFIGURATION.findall(line):
            if now not in hashes[-1:]:
                hashes, idle = [*hashes[-1:], now], True
        idle = idle and '"event": "resumed"' in line
    return hashes if idle else hashes[-1:]


def rows(path: Path, lines: Sequence[str], trainer: str) -> list[dict[str, Any]]:
    """Return the rows of one trainer, each with its ``place`` among them.

    Raises SigmaCheckpointError for what is no row, or holds a command that cannot be given.
    """
    found = [_row(f"{path}:{number}", line) for number, line in enumerate(lines[1:], 2)]
    mine = (row for row in found if row["trainer"] == trainer)
    return [{**row, "place": place} for place, row in enumerate(mine, start(lines, trainer))]


def _row(place: str, line: str) -> dict[str, Any]:
    """Return the row that a line holds, with all that belongs to it."""
    try:
        row: dict[str, Any] = unpacked(json.loads(line))
        row.pop("hash")
        wanted = HEAD if "command" in row else {**HEAD, "event": TEXT, **EVENTS.get(row["event"], {})}
        if wrong := [name for name, kinds in wanted.items() if not isinstance(row.get(name), kinds)]:
            raise ValueError(f"{', '.join(wrong)} missing or wrong")
        if "command" in row:
            commands.from_dict(row)
    except (SigmaError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(f"{place}: is no row of a journal: {said(error)} {COPY}.") from error
    return row


def encoded(row: Mapping[str, Any]) -> str:
    """Return a row as one line of JSON, from which every value comes back to the bit."""
    return json.dumps(packed(row), allow_nan=False)
