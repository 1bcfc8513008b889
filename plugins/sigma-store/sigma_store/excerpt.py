"""Read the journal of a run folder, with what its checkpoints still hold of it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigma_kernel.contracts.storing import FOR_REPLAYS, Log
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.plain import strict
from sigma_store import chain
from sigma_store.chain import START, Bookmark, JournalExcerpt
from sigma_store.checkpoints.store import list_checkpoints, read_manifest
from sigma_store.files import LARGEST, digest, get_bytes
from sigma_store.folders import JOURNAL
from sigma_store.regular import open_regular

LARGEST_SHOWN, LONGEST_SHOWN = 1 << 28, 1 << 24  # bytes of a journal, and of a line, that are read to be shown


def history(run: Path, trainers: Collection[str], log: Log, whole: bool = True) -> JournalExcerpt:
    """Return the journal of a run, with the lines missing at its end that checkpoints still hold.

    If the ``whole`` is not wanted, it begins at the bookmarks of the newest checkpoints, where these fit.  Raises
    SigmaCheckpointError if the journal was changed or cut, or does not match ``config.toml``.
    """
    path, ends = run / "journal.jsonl", _ends(run, trainers)
    now = digest(get_bytes(run / "config.toml", LARGEST))
    if os.path.lexists(path):
        part = chain.read(path, log, START if whole else _bookmark(ends, trainers), ends)
        if part.more:
            log(f"{path}: has lost its last {len(part.more)} lines, which a checkpoint still holds: they are restored")
        hashes = chain.configuration_hashes(part)
    else:
        log(f"{path}: is missing: everything after the last checkpoint is lost")
        lost = {end["trainer"]: (end["head"], end["place"]) for end in reversed(ends)}
        part = JournalExcerpt(path, more=[chain.first_line(now, lost)])
        hashes = [end["configuration"] for end in ends[:1]]
    if hashes and now not in hashes:
        raise SigmaCheckpointError(
            f"{run / 'config.toml'}: was changed since the run wrote it: its sha256 begins with {now[:16]}, and not "
            f"with {hashes[-1][:16]}. Restore it from a copy; for other settings, use `sigma resume --set KEY=VALUE`."
        )
    return part


def readable_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a journal that are JSON, without their hashes; none of a file that cannot be read."""
    with suppress(OSError), open_regular(path, LARGEST_SHOWN) as file:
        for line in iter(lambda: file.readline(LONGEST_SHOWN), b""):
            with suppress(ValueError, RecursionError):
                row = json.loads(line.decode(errors="replace"))
                if isinstance(row, dict) and "format" not in row:
                    yield strict({name: value for name, value in row.items() if name != "hash"})


def read_journal(run: Path | str, **fields: Any) -> list[Mapping[str, Any]]:
    """Return the rows of the journal of a run folder whose fields have these values, such as ``command="set"``.

    Digests are left out, which replays compare, and so are hashes and what is damaged: nothing is verified.  The run
    may be written to meanwhile.  Raises SigmaConfigError if the folder has no journal.
    """
    path = Path(run) / JOURNAL
    if not path.is_file():
        raise SigmaConfigError(f"{path}: there is no journal. Pass the folder of a run.")
    shown = (row for row in readable_rows(path) if row.get("event") not in FOR_REPLAYS)
    return [row for row in shown if all(row.get(name) == value for name, value in fields.items())]


def _bookmark(ends: Sequence[Mapping[str, Any]], trainers: Collection[str]) -> Bookmark:
    """Return the first of the bookmarks in the newest checkpoints of all trainers, as far as known."""
    newest = {end["trainer"]: Bookmark.from_document(end.get("bookmark")) for end in reversed(ends)}
    return min((newest.get(name, START) for name in trainers), key=lambda one: one.offset, default=START)


def _ends(run: Path, trainers: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return the ends of the journal that checkpoints hold, newest first for each trainer."""
    ends: list[Mapping[str, Any]] = []
    for path in (path for name in trainers for path in reversed(list_checkpoints(run, name))):
        with suppress(SigmaCheckpointError):  # restoring it raises the error
            manifest = read_manifest(path, lambda text: None)
            about = {"trainer": path.parent.name, "place": manifest["values"].get("journal", 0)}
            ends += [{**manifest["chain"], **about}] if manifest["chain"] else []
    return ends
