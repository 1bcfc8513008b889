"""What a person says of a run: a name, tags, a note, a star, and whether it is archived.

It is in one small file of the run folder, which training neither reads nor writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen
from attrs.validators import deep_iterable, instance_of, matches_re, max_len

from sigma_kernel.contracts.storing import Log, StoredRun
from sigma_kernel.encoding import json_document
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.stored import read_document

MARKS = "marks.json"
TAG = r"[\w.-]{1,40}"
TITLE, NOTE, TAGS = 100, 10_000, 50  # characters, characters, and how many


def _sort_tags(tags: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(tags, list | tuple):
        raise TypeError("tags are a list")
    return tuple(sorted({*tags}))


@frozen(kw_only=True)
class Marks:
    """The marks of a run; a new run has none."""

    title: str = field(default="", validator=[instance_of(str), max_len(TITLE), matches_re(r"[^\x00-\x1f\x7f]*+")])
    tags: tuple[str, ...] = field(
        default=(), converter=_sort_tags, validator=[max_len(TAGS), deep_iterable(matches_re(TAG))]
    )
    note: str = field(default="", validator=[instance_of(str), max_len(NOTE)])
    starred: bool = field(default=False, validator=instance_of(bool))
    archived: bool = field(default=False, validator=instance_of(bool))

    def to_plain(self) -> dict[str, Any]:
        """Return the marks that the run has as JSON values."""
        return {name: [*value] if name == "tags" else value for name, value in asdict(self).items() if value}


def read_marks(stored: StoredRun, log: Log) -> Marks:
    """Return the marks of a run; none, which is logged, if their file is damaged."""
    values = {name: value for name, value in read_document(stored, MARKS, log).items() if name != "format"}
    try:
        return make_marks(stored.place, values)
    except SigmaConfigError as error:
        log(f"{error} The marks of the run are not shown.")
        return Marks()


def write_marks(stored: StoredRun, marks: Marks) -> None:
    """Write the marks of a run, which may train meanwhile; raise SigmaStateError on failure."""
    stored.write(MARKS, json_document(marks.to_plain()))


def make_marks(place: Path | str, values: Mapping[str, Any]) -> Marks:
    """Return marks of plain values; raise SigmaConfigError for what cannot be one."""
    wrong = next((name for name in values if not _is_mark(name, values[name])), None)
    if wrong is not None:
        raise SigmaConfigError(f"{place}: {_describe_mistake(wrong, values[wrong])}")
    return Marks(**values)


def _is_mark(name: str, value: Any) -> bool:
    try:
        Marks(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def _describe_mistake(name: str, value: Any) -> str:
    got = f"(got {value!r:.60})"
    return {
        "title": f"the name is a line of at most {TITLE} characters {got}.",
        "tags": f"at most {TAGS} tags, each of at most 40 letters, digits, '.', '-' and '_' {got}.",
        "note": f"the note is a text of at most {NOTE:,} characters {got}.",
        "starred": f"starred is true or false {got}.",
        "archived": f"archived is true or false {got}.",
    }.get(name, f"the marks are title, tags, note, starred and archived (got {name!r:.60}).")
