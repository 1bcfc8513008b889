"""A replay finds what somebody changed in the journal, and says where it begins."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from sigma_kernel.clock import TimeStep, after
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_kernel.testing.steering import Sweep, small_environment
from sigma_kernel.training.chronicle import Past
from sigma_kernel.training.replay import Replay, seamless, tail


@pytest.fixture(autouse=True)
def one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one digest, at the end, however fast this machine is at the moment."""
    monkeypatch.setattr(Past, "due", lambda self: False)


@define(eq=False, kw_only=True)
class End(Hook):
    every: TimeStep = after(4, "epoch")

    def run(self, context: HookContext) -> None:
        context.command("stop")


def _small() -> Environment:
    return small_environment(Sweep(), hooks={"end": End()})


def _run(folder: Path) -> Path:
    with _small() as sigma:
        sigma.folder = folder
        sigma.prepare()
        sigma.set("trainer.optimiser.learning_rate", 0.02)
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


def _planted(run: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    path = run / "journal.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _replayed(run: Path) -> dict[str, str]:
    with _small() as sigma:
        return sigma.replay(run)[1]


def _last_digest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in reversed(rows) if row.get("event") == "digest")


def test_a_journal_that_nobody_touched_is_replayed_without_a_difference(tmp_path: Path) -> None:
    run = _run(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert _replayed(run) == {}
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_digest_that_was_changed_is_named_with_its_address(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _planted(run, lambda rows: _last_digest(rows)["state"].update({"network.layers.weights": "0" * 16}))
    (said,) = _replayed(run).values()
    assert said.startswith("iteration 20 (epoch 4): network.layers.weights differ")


def test_a_loss_that_was_changed_is_named_with_its_iteration(tmp_path: Path) -> None:
    run = _run(tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        row = _last_digest(rows)
        assert len(row["losses"]) >= 24
        row["losses"] = row["losses"][:-24] + "00000000" + row["losses"][-16:]

    _planted(run, change)
    (said,) = _replayed(run).values()
    assert said == "iteration 20 (epoch 4): losses differ, first seen in the loss of iteration 18"


def test_a_command_that_was_changed_is_found(tmp_path: Path) -> None:
    run = _run(tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row.get("command") == "set")["value"] = 0.03

    _planted(run, change)
    (said,) = _replayed(run).values()
    assert "network.layers" in said
    assert "first seen in the loss of iteration 2" in said


# -- rows --------------------------------------------------------------------------------------------------------------
STOP = [{"command": "stop"}, {"command": "save", "by": "stop"}, {"event": "digest", "by": "stop"}]
RESUMED = {"event": "resumed"}
END = {"event": "end"}
WORK = [{"event": "begin"}, {"command": "set"}, {"event": "digest"}]


@pytest.mark.parametrize("cut", [[], [END], [*STOP, END], [{"command": "stop"}, END], STOP])
def test_what_an_interruption_added_is_left_out(cut: list[dict[str, Any]]) -> None:
    assert seamless([*WORK, *cut, RESUMED, {"command": "go"}]) == [*WORK, {"command": "go"}]
    assert _due([*WORK, *cut, RESUMED], 1) == WORK[1:]


def test_a_stop_of_a_hook_is_no_interruption() -> None:
    rows = [*WORK, {"command": "stop", "by": "end"}, END]
    assert seamless([*rows, RESUMED]) == rows[:-1]


def _due(rows: list[dict[str, Any]], position: int) -> list[dict[str, Any]]:
    """Return what is still to be done, without the places of the rows."""
    placed = [{**row, "place": place} for place, row in enumerate(rows)]
    return [{name: value for name, value in row.items() if name != "place"} for row in tail(placed, position)]


def _edited(at: int) -> dict[str, Any]:
    return {**RESUMED, "at": at, "edits": ["a=1"]}


BY = {"command": "save", "by": "a"}
FIRED = {"event": "fired"}


def test_with_other_settings_only_what_came_from_outside_is_done_again() -> None:
    again = [{**row, "again": True} for row in (WORK[1], FIRED)]
    assert _due([*WORK, BY, FIRED, *STOP, END, _edited(0)], 0) == again
    assert _due([*WORK, BY, FIRED, _edited(2)], 2) == again[1:]


def test_what_was_not_done_again_before_the_next_crash_is_done_again_then() -> None:
    rows = [*WORK, BY, FIRED, _edited(0), WORK[0], WORK[1]]  # under other settings, only the first of two was
    later = [*rows, BY, RESUMED]
    assert _due([*rows, RESUMED], 0) == [*WORK[:2], {**FIRED, "again": True}]
    assert _due(later, len(rows)) == [BY, {**FIRED, "again": True}]
    assert _due([*rows, FIRED, RESUMED], len(rows)) == [FIRED]
    assert _due([*rows, _edited(0)], 0) == [{**row, "again": True} for row in (WORK[1], FIRED)]


def test_losses_are_compared_as_far_as_both_know_them() -> None:
    row = {"event": "digest", "iteration": 9, "epoch": 0, "state": {"a": "1"}}
    replay = Replay(deque([{**row, "place": 0, "losses": "aaaaaaaabbbbbbbb"}]))
    assert replay.met({**row, "losses": "bbbbbbbb", "seconds": 3.0})
    assert replay.differs is None
