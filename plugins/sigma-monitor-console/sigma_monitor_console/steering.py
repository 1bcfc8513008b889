"""The effects of keys, and the results of commands, in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field
from rich.cells import cell_len, set_cell_size

from sigma_kernel.contracts import Ticket, View

HELP = "p pause  s iteration  e epoch  w save  q stop  ? hide"
SHORT = "p pause s iter e epoch w save q stop"
HINT = "? keys"
WAITING = ("paused", "failed")  # for a command to go on


def pause(view: View) -> None:
    """Pause, or go on: also after a failure."""
    view.send("go" if view.status() in WAITING else "pause")


def step(scale: str) -> Callable[[View], None]:
    """Return what trains for one iteration or epoch, then pauses; training that is not paused is paused first."""

    def send(view: View) -> None:
        if view.status() not in WAITING:
            view.send("pause")
        view.send("step", count=1, scale=scale)

    return send


KEYS: Mapping[str, Callable[[View], object]] = {
    "p": pause,
    "s": step("iteration"),
    "e": step("epoch"),
    "w": lambda view: view.send("save"),
    "q": lambda view: view.send("stop"),
}


@define(eq=False)
class Steering:
    """Send the commands of keys, and report the fate of the last command of any sender."""

    view: View
    helps: bool = False
    _before: int = field(init=False)  # the last ticket of before
    _last: Ticket | None = field(default=None, init=False)

    @_before.default
    def _(self) -> int:
        return max((ticket.number for ticket in self.view.tickets()), default=0)

    def press(self, keys: str) -> None:
        """Act on keys; unknown ones do nothing."""
        for key in keys.lower():
            if key == "?":
                self.helps = not self.helps
            elif key in KEYS:
                KEYS[key](self.view)

    def line(self, width: int) -> str:
        """Return the help, or else the fate of the last command, or else a hint; at most ``width`` columns."""
        new = self.view.tickets(self._before if self._last is None else self._last.number)
        self._last = new[-1] if new else self._last
        text = HINT if self._last is None else fate(self._last)
        if self.helps:
            text = HELP if cell_len(HELP) <= width else SHORT
        return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def fate(ticket: Ticket) -> str:
    """Return the result of a command: pending, applied, or refused with the reason."""
    if ticket.state == "queued":
        return f"{_describe_command(ticket)}: pending"
    if ticket.state == "refused":
        return f"{_describe_command(ticket)} refused: {_to_one_line(ticket.why)}"
    moments = sorted({moment.iteration for moment in ticket.moments.values()})
    return f"{_describe_command(ticket)} applied" + (f" @ iteration {', '.join(map(str, moments))}" if moments else "")


def _describe_command(ticket: Ticket) -> str:
    """Return a command with its first arguments."""
    values = [value for name, value in ticket.arguments.items() if name != "trainer" and value is not None]
    return _to_one_line(" ".join([ticket.command, *(str(value)[:40] for value in values[:2])]))


def _to_one_line(text: str) -> str:
    """Return text in one line, without characters that a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
