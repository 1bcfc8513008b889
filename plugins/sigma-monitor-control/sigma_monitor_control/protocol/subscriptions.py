"""Subscriptions: what is new since the last event, when an interval has passed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import define, field

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol import reading
from sigma_monitor_control.protocol.naming import is_pattern, within
from sigma_monitor_control.protocol.values import plain

LEAST, MOST = 0.1, 3600.0  # seconds between two events
MOST_PATTERNS = 100
POINTS = 2000  # of one series in an event


class Subscription(Protocol):
    """What answers a request with events."""

    every: float

    def event(self) -> Any | None:
        """Return what is new, or None."""


@define(eq=False)
class Watching:
    """The values that some patterns match, whenever one of them has changed."""

    view: View
    patterns: list[str]
    every: float
    _known: dict[str, Any] = field(factory=dict)

    def event(self) -> dict[str, Any] | None:
        """Return the values that are new or have changed; those that are not published yet and arrays are left out."""
        found = {one.address: one for pattern in self.patterns for one in _present(self.view, pattern)}
        values = {address: plain(one.value) for address, one in found.items() if one.value is not None}
        new = {address: value for address, value in values.items() if self._known.get(address) != value}
        self._known = values
        return {"second": reading.status(self.view)["seconds"], "values": new} if new else None


def _present(view: View, pattern: str) -> list[Any]:
    return view.entries(pattern)


def watch(view: View, patterns: list[str], every: float = 1.0, trainer: str | None = None) -> Watching:
    """Send the values that patterns or short names mean, whenever one of them has changed."""
    if not 0 < len(patterns) <= MOST_PATTERNS:
        raise SigmaConfigError(f"watch: needs 1 to {MOST_PATTERNS} patterns (got {len(patterns)}).")
    return Watching(view, [_resolved(view, pattern, trainer) for pattern in patterns], _interval("watch", every))


def _resolved(view: View, pattern: str, trainer: str | None) -> str:
    """Return a pattern from the root, or the address that a short name means."""
    full = within(pattern, trainer)
    return full if is_pattern(full) else reading.matched(view, pattern, trainer)[0].address


def _interval(do: str, every: float) -> float:
    if not LEAST <= every <= MOST:
        raise SigmaConfigError(f"{do}: 'every' must be {LEAST} to {MOST:.0f} seconds (got {every}).")
    return every


@define(eq=False)
class Following:
    """All that a dashboard shows: status, series, journal, messages, tickets and states, as far as they are new."""

    view: View
    addresses: list[str]
    every: float
    after: dict[str, int]
    _seen: dict[str, Any] = field(factory=dict)  # status and states, as they were sent
    _numbers: dict[str, int] = field(factory=lambda: {"journal": 0, "messages": 0, "tickets": 0})
    _open: set[int] = field(factory=set)  # tickets that were queued when they were sent

    def event(self) -> dict[str, Any] | None:
        """Return what is new."""
        news = {
            **self._changed("status", reading.status(self.view)),
            **self._changed("states", {name: reading.states(self.view, name) for name in self.view.trainers()}),
            **self._rows("journal", reading.journal),
            **self._rows("messages", reading.messages),
            **self._tickets(),
            **self._series(),
        }
        return news or None

    def _changed(self, name: str, now: Any) -> dict[str, Any]:
        before, self._seen[name] = self._seen.get(name), now
        return {} if before == now else {name: now}

    def _rows(self, name: str, read: Callable[[View, int], list[Any]]) -> dict[str, Any]:
        found = read(self.view, self._numbers[name])
        self._numbers[name] = found[-1][0] if found else self._numbers[name]
        return {name: found} if found else {}

    def _tickets(self) -> dict[str, Any]:
        """Return the tickets that are new, and those that were queued and are not any more."""
        seen = self._numbers["tickets"]
        found = reading.tickets(self.view, min([seen, *(number - 1 for number in self._open)]))
        news = [
            one for one in found if one["number"] > seen or (one["number"] in self._open and one["state"] != "queued")
        ]
        self._open = {one["number"] for one in found if one["state"] == "queued"}
        self._numbers["tickets"] = max([seen, *(one["number"] for one in found)])
        return {"tickets": news} if news else {}

    def _series(self) -> dict[str, Any]:
        found = reading.series(self.view, self.addresses, self.after, POINTS)
        self.after = {address: one["next"] for address, one in found.items()}
        new = {address: one for address, one in found.items() if one["stretches"]}
        return {"series": new} if new else {}


def follow(
    view: View, every: float = 0.5, addresses: list[str] | None = None, after: dict[str, int] | None = None
) -> Following:
    """Send all that a dashboard shows, as far as it is new; the first event has everything that is kept."""
    wanted = addresses or []
    reading.series(view, wanted, dict.fromkeys(wanted, 2**62), 1)  # which raises for too many, or an unknown one
    return Following(view, wanted, _interval("follow", every), dict(after or {}))


SUBSCRIBES: Mapping[str, Callable[..., Subscription]] = {"watch": watch, "follow": follow}
