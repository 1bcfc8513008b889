"""Commands: typed, checked before they are queued, and written in the journal's form."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts.commanding import make_command
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_training.commands.step import StepBy
from sigma_training.plugin import COMMANDS

ROWS = "must be the number of a row, or several, counted from 0"
LABEL = "must be a word, finite numbers, or a table of these by section"
EXAMPLES: dict[str, dict[str, Any]] = {
    "set": {"pattern": "optimiser.learning_rate", "value": 0.1},
    "step": {"count": 3, "scale": "epoch"},
    "rewind": {"to": 3},
    "attach": {"name": "it", "hook": {"type": "count", "by": 2}},
    "detach": {"name": "it"},
    "swap": {"slot": "optimiser", "component": "adam"},
    "exclude": {"rows": [3, 4], "split": "validation"},
    "include": {"rows": [3, 4]},
    "relabel": {"rows": [3], "label": {"targets": [0.5]}},
}


def command(name: str, arguments: dict[str, Any]) -> Any:
    return make_command(Resolver(catalogue()), name, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_can_be_rebuilt_from_its_journal_row(name: str) -> None:
    made = command(name, EXAMPLES.get(name, {}))
    written = json.loads(json.dumps(made.to_row()))
    assert written.pop("command") == name
    assert command(name, written) == made


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("stop", {"when": 3}, "command 'stop': has no 'when'."),
        ("set", {"patern": "x", "value": 1}, "command 'set': has no 'patern'. Did you mean 'pattern'?"),
        ("set", {"pattern": "x"}, "command 'set': needs pattern, value."),
        ("step", {"count": 0}, "command 'step': count: must be at least 1 (got 0)."),
        ("step", {"count": True}, "command 'step': count: must be a whole number (got True)."),
        (
            "rewind",
            {"to": -1},
            "command 'rewind': to: must be a whole number from 0 on, or the name of a state (got -1).",
        ),
        (
            "rewind",
            {"to": 1, "scale": "second"},
            "command 'rewind': scale: must be 'iteration' or 'epoch' (got 'second').",
        ),
        ("step", {"count": 2.5}, "command 'step': count: must be a whole number (got 2.5)."),
        ("exclude", {"rows": []}, f"command 'exclude': rows: {ROWS} (got [])."),
        ("exclude", {"rows": "12"}, f"command 'exclude': rows: {ROWS} (got '12')."),
        ("exclude", {"rows": {"1": 2}}, f"command 'exclude': rows: {ROWS} (got {{'1': 2}})."),
        ("exclude", {"rows": True}, f"command 'exclude': rows: {ROWS} (got True)."),
        ("include", {"rows": [1, -1]}, f"command 'include': rows: {ROWS} (got [1, -1])."),
        ("include", {"rows": [1, 2.5]}, f"command 'include': rows: {ROWS} (got [1, 2.5])."),
        ("relabel", {"rows": None, "label": 1}, f"command 'relabel': rows: {ROWS} (got None)."),
        ("relabel", {"rows": 1}, "command 'relabel': needs rows, split, label."),
        ("relabel", {"rows": 1, "label": inf}, f"command 'relabel': label: {LABEL} (got inf)."),
        ("relabel", {"rows": 1, "label": b"cat"}, f"command 'relabel': label: {LABEL} (got b'cat')."),
        ("exclude", {"rows": 1, "split": 3}, "command 'exclude': split: must be a string (got 3)."),
        ("step", {"scale": "second"}, "command 'step': scale: must be 'iteration' or 'epoch' (got 'second')."),
    ],
)
def test_a_malformed_command_is_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaStateError) as error:
        command(name, arguments)
    assert str(error.value) == message


def test_an_unknown_command_is_refused_with_one_that_is_spelt_alike() -> None:
    with pytest.raises(SigmaConfigError, match=r"command 'stopp': no plugin offers it. Did you mean 'stop'\?"):
        command("stopp", {})


def test_steps_are_one_iteration_by_default() -> None:
    assert command("step", {}) == StepBy(1, "iteration")


@pytest.mark.parametrize("score", ["banana", True])
def test_a_score_that_is_not_a_number_is_refused_before_it_is_queued(score: Any) -> None:
    with pytest.raises(SigmaStateError, match="command 'save': score: must be a number"):
        command("save", {"score": score})


@pytest.mark.parametrize("rows", [7, [7], (7, 7), np.int64(7), np.array([7]), range(7, 8), {7}])
def test_rows_are_held_as_plain_numbers_in_order_and_each_once(rows: Any) -> None:
    assert command("exclude", {"rows": rows}).to_row() == {"command": "exclude", "rows": [7], "split": "training"}
    assert command("exclude", {"rows": [9, 2, 9]}).to_row()["rows"] == [2, 9]


@pytest.mark.parametrize("label", [np.int32(3), np.array(3), 3])
def test_labels_are_held_as_plain_values(label: Any) -> None:
    assert json.dumps(command("relabel", {"rows": 1, "label": label}).to_row()["label"]) == "3"
    assert command("relabel", {"rows": 1, "label": {"a": np.array([0.5])}}).to_row()["label"] == {"a": [0.5]}
