"""Commands: typed, checked before they are queued, and written in the journal's form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.commands.types import KINDS, StepBy, command

EXAMPLES: dict[str, dict[str, Any]] = {
    "set": {"pattern": "optimiser.learning_rate", "value": 0.1},
    "step": {"count": 3, "scale": "epoch"},
    "rewind": {"to": 3},
    "attach": {"name": "it", "hook": {"type": "count", "by": 2}},
    "detach": {"name": "it"},
    "swap": {"slot": "optimiser", "component": "adam"},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_command_can_be_rebuilt_from_its_journal_row(name: str) -> None:
    made = command(name, EXAMPLES.get(name, {}))
    written = json.loads(json.dumps(made.to_dict()))
    assert written.pop("command") == name
    assert command(name, written) == made


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "stopp",
            {},
            "command 'stopp': unknown. Did you mean 'stop'? Known are set, pause, go, step, stop, save, rewind, reset, "
            "attach, detach, swap, undo.",
        ),
        ("stop", {"when": 3}, "command 'stop': has no 'when'."),
        ("set", {"patern": "x", "value": 1}, "command 'set': has no 'patern'. Did you mean 'pattern'?"),
        ("set", {"pattern": "x"}, "command 'set': needs pattern, value."),
        ("step", {"count": 0}, "command 'step': count: must be at least 1 (got 0)."),
        ("step", {"count": True}, "command 'step': count: must be a whole number (got True)."),
        ("rewind", {"to": -1}, "command 'rewind': to: must be at least 0 (got -1)."),
        (
            "rewind",
            {"to": 1, "scale": "second"},
            "command 'rewind': scale: must be 'iteration' or 'epoch' (got 'second').",
        ),
        ("step", {"count": 2.5}, "command 'step': count: must be a whole number (got 2.5)."),
        ("step", {"scale": "second"}, "command 'step': scale: must be 'iteration' or 'epoch' (got 'second')."),
    ],
)
def test_a_malformed_command_is_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaStateError) as error:
        command(name, arguments)
    assert str(error.value) == message


def test_steps_are_one_iteration_by_default() -> None:
    assert command("step", {}) == StepBy(1, "iteration")


@pytest.mark.parametrize("score", ["banana", True])
def test_a_score_that_is_not_a_number_is_refused_before_it_is_queued(score: Any) -> None:
    with pytest.raises(SigmaStateError, match="command 'save': score: must be a number"):
        command("save", {"score": score})
