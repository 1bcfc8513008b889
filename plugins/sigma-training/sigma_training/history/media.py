"""Record media that hooks publish, within a budget of bytes, and show them in notebooks.

Where the budget does not last, older media go, the older the further apart, and the log says so.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Protocol
from weakref import WeakValueDictionary

from attrs import define, evolve, field, frozen

from sigma_kernel.contracts.media import BUDGET, FOLDER, Media, MediaEntry, decode_media
from sigma_kernel.contracts.storing import Log, Row, RowWriter, StoredRun, join_media, thin
from sigma_kernel.errors import SigmaAddressError, SigmaStateError, suggest_name

LEAST = 65536  # bytes that a value counts for at least: each is a file, and of these there are not too many either
MOST_MOMENTS = 1000  # of a name
KEPT = 0.75  # of the moments of a name, or of the bytes of names, where some have to go
SHOWN = 12  # values of a name that a notebook shows

Place = tuple[str, int, int]  # of a value: its name, branch and iteration


class MediaPlace(Protocol):
    """Where media are: a stored run, or memory."""

    media_log: RowWriter

    def write(self, name: str, data: bytes, durable: bool = True) -> Any:
        """Write named bytes."""

    def read(self, name: str) -> bytes | None:
        """Return named bytes."""

    def remove(self, name: str) -> None:
        """Remove named bytes."""

    def media_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of media."""

    def version(self, name: str) -> Any:
        """Return what changes with the rows."""


@define(eq=False)
class _MemoryRows(RowWriter):
    memory: MediaMemory
    is_behind = False

    def append(self, row: Row) -> None:
        self.memory.append(row)


@define(eq=False)
class MediaMemory:
    """Media of a trainer whose run is not stored, or by a store that keeps none."""

    rows: list[Row] = field(factory=list)
    files: dict[str, bytes] = field(factory=dict)
    media_log: RowWriter = field(init=False)
    _changes: int = field(default=0, init=False)

    @media_log.default
    def _(self) -> RowWriter:
        return _MemoryRows(self)

    def append(self, row: Row) -> None:
        """Keep a row of a value; drop those that a row of removed ones names."""
        if "removed" in row:
            gone = {tuple(place) for place in row["removed"]}
            self.rows = [kept for kept in self.rows if (kept["name"], kept["branch"], kept["iteration"]) not in gone]
        else:
            self.rows.append(row)
        self._changes += 1

    def write(self, name: str, data: bytes, durable: bool = True) -> None:
        """Keep named bytes."""
        self.files[name] = data

    def read(self, name: str) -> bytes | None:
        """Return named bytes."""
        return self.files.get(name)

    def remove(self, name: str) -> None:
        """Drop named bytes."""
        self.files.pop(name, None)

    def media_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows so far."""
        return iter([*self.rows])

    def version(self, name: str) -> int:
        """Return the number of changes of the rows."""
        return self._changes


# -- what has to go ----------------------------------------------------------------------------------------------------
def select_surplus(entries: Sequence[MediaEntry], most: int) -> list[MediaEntry]:
    """Return which media have to go so that the others have at most so many bytes, and names not too many moments.

    They are of the names that have most bytes; the first and the newest moment of a name stay as long as any other.
    Where one moment of each name is too much, names go whose newest moment is the oldest.
    """
    names = defaultdict[str, list[MediaEntry]](list)
    for entry in entries:
        names[entry.name].append(entry)
    kept = {name: _thin_entries(own) if len(own) > MOST_MOMENTS else own for name, own in names.items()}
    while sum(map(_total, kept.values())) > most and any(len(own) > 1 for own in kept.values()):
        widest = max((name for name, own in kept.items() if len(own) > 1), key=lambda name: _total(kept[name]))
        kept[widest] = _thin_entries(kept[widest])
    total = sum(map(_total, kept.values()))
    if total > most:
        for name in sorted(kept, key=lambda name: kept[name][-1].iteration)[:-1]:
            if total > KEPT * most:
                total -= _total(kept.pop(name))
    stay = {id(entry) for own in kept.values() for entry in own}
    return [entry for entry in entries if id(entry) not in stay]


def _total(entries: Sequence[MediaEntry]) -> int:
    return sum(max(LEAST, entry.size) for entry in entries)


def _thin_entries(entries: Sequence[MediaEntry]) -> list[MediaEntry]:
    """Return some of the media of a name: the newest, and of those before ever fewer."""
    moments = {entry.iteration for entry in entries}
    if len(moments) == 1:
        return [*entries[-1:]]
    stay = {*thin(moments, max(1, int(KEPT * len(moments))))}
    return [entry for entry in entries if entry.iteration in stay]


# -- recording ---------------------------------------------------------------------------------------------------------
@define(eq=False)
class MediaKeys:
    """Which bytes of a run are listed, and where: equal values share a file, also those of several trainers."""

    holders: dict[str, set[tuple[str, Place]]] = field(factory=lambda: defaultdict(set))  # trainers and places, by key
    keys: dict[tuple[str, Place], set[str]] = field(factory=lambda: defaultdict(set))  # and the other way round

    def add(self, trainer: str, entries: Iterable[MediaEntry]) -> None:
        """Add values of a trainer."""
        for entry in entries:
            holder = trainer, (entry.name, entry.branch, entry.iteration)
            self.holders[entry.key].add(holder)
            self.keys[holder].add(entry.key)

    def remove(self, trainer: str, places: Iterable[Place]) -> list[str]:
        """Remove what a trainer has at some places; return the keys that nothing has any more."""
        free = list[str]()
        for holder in ((trainer, place) for place in places):
            for key in self.keys.pop(holder, ()):
                self.holders[key].discard(holder)
                if not self.holders[key]:
                    del self.holders[key]
                    free.append(key)
        return free


_shared: WeakValueDictionary[int, MediaKeys] = WeakValueDictionary()  # by the identity of a run, while trainers hold it


@define(eq=False)
class MediaRecorder:
    """The media of one trainer: those that hooks publish, in its stored run or in memory."""

    trainer: str
    log: Callable[[str], None] = lambda text: None
    most: int = BUDGET  # bytes
    shelf: MediaPlace = field(factory=MediaMemory)
    _entries: dict[Place, MediaEntry] = field(factory=dict, init=False)  # that are there
    _total: int = field(default=0, init=False)  # bytes of these
    _listed: tuple[Any, list[MediaEntry]] = field(default=(None, []), init=False)  # at a version
    _failing: bool = field(default=False, init=False)  # whether the last value could not be written
    _unwritten: set[str] = field(factory=set, init=False)  # keys of values that could not be written
    _thinned: int = field(default=0, init=False)  # values that had to go
    _keys: MediaKeys | None = field(default=None, init=False)  # of the run

    def limit(self, most: int) -> None:
        """Keep at most so many bytes from now on."""
        self.most = most

    def open(self, run: StoredRun | None) -> None:
        """Write to a stored run from now on, if it keeps media; what was published before follows."""
        if run is None or not run.media_log.is_kept:
            return
        former, self.shelf = self.shelf, run
        self._entries.clear()
        self._keys = None
        for entry in run.media(self.trainer, log=self.log):
            self._entries[entry.name, entry.branch, entry.iteration] = entry
        self._listed_keys().add(self.trainer, self._entries.values())
        self._total = _total([*self._entries.values()])
        if isinstance(former, MediaMemory):
            for row in former.rows:
                self._append(row, former.read(f"{FOLDER}{row['key']}"))

    def keep(self, head: Row, name: str, about: Mapping[str, Any], data: bytes | None) -> None:
        """Keep a value by its description; ``head`` is its trainer and moment, its branch, session and start.

        Without ``data``, it is one whose bytes are there. A disk that is full is logged once: values are left out.
        """
        if self.most and not (data is None and self._lacks_bytes(about["key"])):
            self._append({**head, "name": name, **about}, data)

    def _lacks_bytes(self, key: str) -> bool:
        """Return whether bytes that were to be there are not: the disk was full, or a replay repeats the row alone."""
        in_memory = isinstance(self.shelf, MediaMemory)
        return key in self._unwritten or (in_memory and self.shelf.read(f"{FOLDER}{key}") is None)

    def _append(self, row: Row, data: bytes | None) -> None:
        try:
            if data is not None:
                self.shelf.write(f"{FOLDER}{row['key']}", data, durable=False)
            self.shelf.media_log.append(row)
        except SigmaStateError as error:
            self._complain(error)
            return
        self._failing = False
        names = ("trainer", "name", "iteration", "epoch", "seconds", "branch", "kind", "key", "size")
        entry = MediaEntry(**{key: row[key] for key in names})
        place = entry.name, entry.branch, entry.iteration
        if (before := self._entries.pop(place, None)) is not None:
            self._total -= _total([before])
        self._entries[place] = entry
        self._listed_keys().add(self.trainer, [entry])
        self._total += _total([entry])
        if self._total > self.most or len(self._entries) > MOST_MOMENTS:
            self._make_room(row)

    def _listed_keys(self) -> MediaKeys:
        """Return which bytes of the run are listed; its rows are read once, by the first of its trainers."""
        if self._keys is None:
            self._keys = _shared.get(id(self.shelf)) or MediaKeys()
            if not self._keys.keys:
                for entry in join_media(self.shelf.media_rows(lambda text: None)):
                    self._keys.add(entry.trainer, [entry])
            _shared[id(self.shelf)] = self._keys
        return self._keys

    def _complain(self, error: SigmaStateError) -> None:
        """Log that values are left out, once until one is written again."""
        if not self._failing:
            self.log(f"ALARM: media of {self.trainer} are left out: {error} Training continues.")
        self._failing = True

    def _make_room(self, head: Row) -> None:
        """Remove what is too much; say so first, in the row that no reader misses, and in the log."""
        gone = select_surplus([*self._entries.values()], self.most)
        if not gone:
            return
        places = [(entry.name, entry.branch, entry.iteration) for entry in gone]
        self.shelf.media_log.append({"trainer": self.trainer, "removed": [[*place] for place in places]})
        if not self._thinned:
            self.log(
                f"{self.trainer}: media have more than media_bytes = {self.most:,}, or {MOST_MOMENTS:,} moments of a"
                " name. From now on older ones are removed, the older the further apart."
            )
        self._thinned += len(gone)
        for place in places:
            del self._entries[place]
        self._total = _total([*self._entries.values()])
        try:
            for key in self._listed_keys().remove(self.trainer, places):
                self.shelf.remove(f"{FOLDER}{key}")
        except SigmaStateError as error:  # files that stay are no longer listed
            self.log(str(error))

    def write(self, name: str, data: bytes) -> None:
        """Write bytes of media, which :meth:`keep` lists then; those that a full disk has no room for are left out."""
        if not self.most:
            return
        try:
            self.shelf.write(name, data, durable=False)
            self._unwritten.discard(name.removeprefix(FOLDER))
        except SigmaStateError as error:
            self._unwritten.add(name.removeprefix(FOLDER))
            self._complain(error)

    # -- reading -------------------------------------------------------------------------------------------------------
    def version(self) -> Any:
        """Return what changes with each value."""
        return self.shelf.version("media")

    def entries(self) -> list[MediaEntry]:
        """Return what is there, in order of branches and iterations; other threads may call this."""
        version = self.version()
        if version != self._listed[0]:
            entries = join_media(self.shelf.media_rows(lambda text: None))
            self._listed = version, [entry for entry in entries if entry.trainer == self.trainer]
        return self._listed[1]

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a value; None if they are no longer there."""
        return self.shelf.read(f"{FOLDER}{key}")

    def gallery(self) -> Gallery:
        """Return what is there."""
        return Gallery(self.entries(), self.read)


# -- showing -----------------------------------------------------------------------------------------------------------
@frozen(eq=False, repr=False)
class Gallery(Sequence[Media]):
    """Media of a trainer, by their moments; values are read when they are asked for.  A notebook shows some of each.

    ``gallery.entries`` has name, moment and branch of each.
    """

    entries: Sequence[MediaEntry] = ()
    read: Callable[[str], bytes | None] = lambda key: None

    def names(self) -> list[str]:
        """Return the names, in the order in which they were published first."""
        return [*dict.fromkeys(entry.name for entry in self.entries)]

    def select(self, name: str) -> Gallery:
        """Return those of a name; raise SigmaAddressError if there are none."""
        if name and name not in self.names():
            raise SigmaAddressError(
                f"media: none has the name {name!r}.{suggest_name(name, self.names(), 'There are:')}"
            )
        return evolve(self, entries=[entry for entry in self.entries if name in ("", entry.name)])

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return evolve(self, entries=self.entries[place])
        return decode_media(self.entries[place], self.read(self.entries[place].key))

    def __repr__(self) -> str:
        counts = [f"{name} ({sum(entry.name == name for entry in self.entries)})" for name in self.names()]
        return f"Gallery({', '.join(counts)})"

    def _repr_html_(self) -> str:
        return "".join(_show_row(name, self.select(name)) for name in self.names())


def read_gallery(run: StoredRun, trainer: str) -> Gallery:
    """Return the media of a trainer in a stored run; what is damaged is a warning."""
    return Gallery(run.media(trainer, log=warnings.warn), lambda key: run.read(f"{FOLDER}{key}"))


def _show_row(name: str, own: Gallery) -> str:
    """Return some values of a name as HTML, evenly chosen, in a row."""
    count = min(SHOWN, len(own))
    places, figures = [round(n * (len(own) - 1) / max(1, count - 1)) for n in range(count)], list[str]()
    for place in places:
        entry = own.entries[place]
        when = f"epoch {entry.epoch}, iteration {entry.iteration:,}" + (
            f", branch {entry.branch}" if entry.branch else ""
        )
        caption = escape(f"{when}: {entry.caption}" if entry.caption else when)
        figures.append(f'<figure style="margin:0">{own[place].html()}<figcaption>{caption}</figcaption></figure>')
    more = f", {len(places)} of {len(own):,}" if len(places) < len(own) else ""
    row = '<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-end">'
    return f"<section><h4>{escape(name)}{more}</h4>{row}{''.join(figures)}</div></section>"
