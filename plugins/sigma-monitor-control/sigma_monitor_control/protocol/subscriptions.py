"""Subscriptions: the changes since the last event, after an interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Protocol

from attrs import define, field

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol import reading
from sigma_monitor_control.protocol.data import edits
from sigma_monitor_control.protocol.naming import is_pattern, qualify_name
from sigma_monitor_control.protocol.recalls import recalls
from sigma_monitor_control.protocol.values import to_json

LEAST, MOST = 0.1, 3600.0  # seconds between two events
MOST_PATTERNS = 100
MOST_ENTRIES = 10_000  # in an event, which then is no longer than it may be; of more, clients ask for some
ALIVE = 2.0  # seconds after which the status is sent, new or not
RARELY = 1.0  # seconds between two polls of states and branches, and of addresses
ANY = "any"  # the type of what has no value yet
SHARE = 100  # times as long as a poll of the addresses has taken passes until the next one


class Subscription(Protocol):
    """The source of a subscription's events."""

    every: float

    def event(self, now: float) -> Any | None:
        """Return the changes, or None."""


@define(eq=False)
class Watching:
    """The values that some patterns match, whenever one of them has changed."""

    view: View
    patterns: list[str]
    every: float
    _known: dict[str, Any] = field(factory=dict)

    def event(self, now: float) -> dict[str, Any] | None:
        """Return new and changed values; unpublished values and arrays are left out."""
        entries = {entry.address: entry for pattern in self.patterns for entry in _present(self.view, pattern)}
        values = {address: to_json(entry.value) for address, entry in entries.items() if entry.value is not None}
        new = {address: value for address, value in values.items() if self._known.get(address) != value}
        self._known = values
        return {"second": reading.status(self.view)["seconds"], "values": new} if new else None


def _present(view: View, pattern: str) -> list[Any]:
    return view.entries(pattern)


def watch(view: View, patterns: list[str], every: float = 1.0, trainer: str | None = None) -> Watching:
    """Send the values that patterns or short names mean, whenever one of them has changed."""
    if not 0 < len(patterns) <= MOST_PATTERNS:
        raise SigmaConfigError(f"watch: needs 1 to {MOST_PATTERNS} patterns (got {len(patterns)}).")
    return Watching(view, [_resolve_pattern(view, pattern, trainer) for pattern in patterns], _interval("watch", every))


def _resolve_pattern(view: View, pattern: str, trainer: str | None) -> str:
    """Return a pattern from the root, or the address that a short name means."""
    full = qualify_name(pattern, trainer)
    return full if is_pattern(full) else reading.match_entries(view, pattern, trainer)[0].address


def _interval(do: str, every: float) -> float:
    if not LEAST <= every <= MOST:
        raise SigmaConfigError(f"{do}: 'every' must be {LEAST} to {MOST:.0f} seconds (got {every}).")
    return every


@define(eq=False)
class Following:
    """All that a dashboard shows, as far as it is new, from the status and the series to the states and the edits."""

    view: View
    every: float
    trainer: str | None  # whose states and branches are shown; the states of all, by trainer, if it is None
    patterns: list[str]  # of the series: addresses that there may not be yet, and patterns
    most: int
    after: dict[str, int]  # cursors of the series
    numbers: dict[str, int]  # of the last journal row, message and ticket
    _seen: dict[str, Any] = field(factory=dict)  # the last sent version of fields sent as a whole
    _open: set[int] = field(factory=set)  # tickets that were queued when they were sent
    _told: float = field(default=-inf)  # when the status was sent last
    _looked: float = field(default=-inf)  # when states and branches were looked for last
    _listed: float = field(default=-inf)  # until when the addresses are not listed again
    _addresses: list[str] = field(factory=list)  # of the series

    def event(self, now: float) -> dict[str, Any] | None:
        """Return the changes; only the status if there were none for a while."""
        news = {
            **self._describe_change("status", reading.status(self.view)),
            **self._history(now),
            **self._entries(now),
            **self._recalls(),
            **self._edits(),
            **self._rows("journal", reading.journal),
            **self._rows("messages", reading.messages),
            **self._tickets(),
            **self._series(),
        }
        if not news and now - self._told >= ALIVE:
            news = {"status": self._seen["status"]}
        self._told = now if "status" in news else self._told
        return news or None

    def _describe_change(self, name: str, now: Any) -> dict[str, Any]:
        is_known, before = name in self._seen, self._seen.get(name)
        self._seen[name] = now
        return {} if is_known and before == now else {name: now}

    def _history(self, now: float) -> dict[str, Any]:
        """Return states, branches and periods, each as a whole if it has changed; checkpoints are on the disk."""
        if now - self._looked < RARELY:
            return {}
        self._looked = now
        if self.trainer is None:
            return self._describe_change(
                "states", {name: reading.states(self.view, name) for name in self.view.trainers()}
            )
        states, branches = (read(self.view, self.trainer) for read in (reading.states, reading.branches))
        return {
            **self._describe_change("states", states),
            **self._describe_change("branches", branches),
            **self._describe_change("periods", reading.periods(self.view, self.trainer)),
            **self._media(self.trainer),
        }

    def _media(self, trainer: str) -> dict[str, Any]:
        """Return what changes with media, once there are any: a page then asks for them."""
        version = to_json(self.view.trainer(trainer).media_version())
        return self._describe_change("media", version) if version or "media" in self._seen else {}

    def _entries(self, now: float) -> dict[str, Any]:
        """Return all entries if there are others than before, or some have their first value; match patterns again."""
        if now < self._listed:
            return {}
        began, entries, before = time.perf_counter(), self.view.entries(), self._seen.get("entries", {})
        types = {each.address: before.get(each.address, ANY) if each.type == ANY else each.type for each in entries}
        news = self._describe_change("entries", types)
        if news:
            matches = [address for pattern in self.patterns for address in self._look_up(pattern)]
            self._addresses = [*dict.fromkeys(matches)]
            news = {"entries": to_json(entries)} if len(entries) <= MOST_ENTRIES else {}
        self._listed = now + max(RARELY, SHARE * (time.perf_counter() - began))
        return news

    def _look_up(self, pattern: str) -> list[str]:
        """Return the addresses of numbers that a pattern matches; an address stands for itself, published or not."""
        if is_pattern(pattern):
            return [entry.address for entry in self.view.entries(pattern) if entry.type in reading.NUMERIC]
        return [pattern] if pattern.partition(".")[0] in self.view.trainers() else []

    def _edits(self) -> dict[str, Any]:
        if self.trainer is None:
            return {}
        self._seen.setdefault("edits", {})
        return self._describe_change("edits", edits(self.view, self.trainer))

    def _recalls(self) -> dict[str, Any]:
        """Return the moments that are computed again, as a whole if that has changed, once there are any."""
        if self.trainer is None:
            return {}
        now = recalls(self.view, self.trainer)
        return self._describe_change("recalls", now) if now or "recalls" in self._seen else {}

    def _rows(self, name: str, read: Callable[[View, int], list[Any]]) -> dict[str, Any]:
        rows = read(self.view, self.numbers[name])
        self.numbers[name] = rows[-1][0] if rows else self.numbers[name]
        return {name: rows} if rows else {}

    def _tickets(self) -> dict[str, Any]:
        """Return new tickets, and those no longer queued."""
        seen = self.numbers["tickets"]
        tickets = reading.tickets(self.view, min([seen, *(number - 1 for number in self._open)]))
        news = [
            row for row in tickets if row["number"] > seen or (row["number"] in self._open and row["state"] != "queued")
        ]
        self._open = {row["number"] for row in tickets if row["state"] == "queued"}
        self.numbers["tickets"] = max([seen, *(row["number"] for row in tickets)])
        return {"tickets": news} if news else {}

    def _series(self) -> dict[str, Any]:
        series = reading.series(self.view, self._addresses, self.after, self.most)
        again = {address for address, curve in series.items() if curve["whole"] and self.after.get(address)}
        self.after = {address: curve["next"] for address, curve in series.items()}
        new = {address: curve for address, curve in series.items() if curve["stretches"] or address in again}
        return {"series": new} if new else {}


def follow(
    view: View,
    every: float = 0.5,
    trainer: str | None = None,
    addresses: list[str] | None = None,
    after: dict[str, int] | None = None,
    most: int = reading.POINTS,
    journal: int = 0,
    messages: int = 0,
    tickets: int = 0,
) -> Following:
    """Send all content of a dashboard that is newer than the given cursors and numbers.

    ``addresses`` may be patterns, and what they match may be published later.
    """
    shown = reading.select_trainer(view, trainer) if trainer is not None or len(view.trainers()) == 1 else None
    numbers = {"journal": journal, "messages": messages, "tickets": tickets}
    return Following(view, _interval("follow", every), shown, addresses or [], most, dict(after or {}), numbers)


SUBSCRIBES: Mapping[str, Callable[..., Subscription]] = {"watch": watch, "follow": follow}
