"""Keys and the fate of commands."""

from __future__ import annotations

import pytest

from sigma_kernel.contracts import Ticket
from sigma_monitor_console.steering import HELP, Steering
from sigma_testing import FakeView


def _sent(view: FakeView) -> list[tuple[str, dict[str, object]]]:
    return [(ticket.command, dict(ticket.arguments)) for ticket in view.sent]


@pytest.mark.parametrize(
    ("state", "key", "sent"),
    [
        ("running", "p", [("pause", {})]), ("paused", "p", [("go", {})]), ("running", "w", [("save", {})]),
        ("running", "q", [("stop", {})]), ("running", "Q", [("stop", {})]), ("running", "xyz?", []),
        ("paused", "s", [("step", {"count": 1, "scale": "iteration"})]),
        ("running", "e", [("pause", {}), ("step", {"count": 1, "scale": "epoch"})]),
    ],
)  # fmt: skip
def test_a_key_sends_its_command(state: str, key: str, sent: list[tuple[str, dict[str, object]]]) -> None:
    view = FakeView(state=state)
    Steering(view).press(key)
    assert _sent(view) == sent


def test_the_line_tells_what_became_of_the_last_command() -> None:
    view = FakeView(refusals={"save": "nothing to\nsave \x1b[31min"})
    steering = Steering(view)
    assert steering.line(80) == "? keys"
    steering.press("p")
    assert steering.line(80) == "pause applied @ iteration 7"
    steering.press("w")
    assert steering.line(80) == "save refused: nothing to save  [31min"
    view.sent.append(Ticket(3, "set", {"pattern": "trainer.rate", "value": 0.5, "trainer": None}))
    assert steering.line(80) == "set trainer.rate 0.5: pending"
    assert steering.line(12) == "set trainer…"


def test_commands_of_before_are_not_told() -> None:
    view = FakeView()
    view.send("pause")
    assert Steering(view).line(80) == "? keys"


def test_the_help_is_shown_until_it_is_asked_for_again() -> None:
    steering = Steering(FakeView())
    steering.press("?")
    assert steering.line(80) == HELP
    assert len(steering.line(40)) <= 40
    assert all(f"{key} " in steering.line(40) for key in "psewq")
    steering.press("?")
    assert steering.line(80) == "? keys"
