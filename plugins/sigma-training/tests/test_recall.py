"""Recall: the bits of a moment, computed again from the journal, are those of a run that was stopped there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaDifferenceError, SigmaStateError
from sigma_store.run_folder import FolderStore
from sigma_testing.journals import read_journal
from sigma_testing.steering import crash, decisive, steered_environment, train_until_crash
from sigma_training.history.rewind import RewindBuffer
from sigma_training.lifecycle import recall_moment
from sigma_training.runs import resume as resuming
from sigma_training.runs.moments import RunMoment, find_part, split_parts
from sigma_training.trainer import NetworkTrainer

pytestmark = pytest.mark.usefixtures("shop")

Script = Mapping[int, Callable[[Environment], Any]]
HOOKS: dict[str, Any] = {"it": "count", "lower": {"type": "follow", "after": "training.loss"}}
LAST = 12


@pytest.fixture(autouse=True)
def always_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RewindBuffer, "due", lambda self: True)


def trainer(sigma: Environment) -> NetworkTrainer:
    return sigma.trainer("trainer")


def _set(value: float) -> Callable[[Environment], Any]:
    return lambda sigma: sigma.set("trainer.optimiser.learning_rate", value)


EDITS: dict[int, Callable[[Environment], Any]] = {
    0: _set(0.04),
    2: lambda s: s.attach("more", {"type": "count", "into": "more"}),
    4: lambda s: s.swap("optimiser", {"type": "heavy", "learning_rate": 0.02}),
    6: lambda s: s.set("trainer.**.weights", 0.5),
    7: _set(0.3),
    8: lambda s: s.undo(),
}
SAVED = {**EDITS, 3: lambda s: s.save("third"), 7: lambda s: (_set(0.3)(s), s.save())}
LEFT = {**EDITS, 9: lambda s: s.rewind(5), 10: _set(0.1), 11: lambda s: s.detach("it")}
TWICE = {**LEFT, 11: lambda s: s.rewind(0)}


def recalled(folder: Path, at: int, branch: int | None = None, **settings: Any) -> Any:
    """Return the state of a moment of a run, which another environment computes."""
    run = FolderStore().open(folder, _silent, lambda stored: None)
    with steered_environment(last=99, **{"hooks": HOOKS, **settings}) as other:
        journal = run.excerpt(["trainer"], _silent)
        recall_moment(trainer(other).lifecycle, run, journal, RunMoment(at, branch), _silent)
        assert trainer(other).session.moment.iteration == at
        return decisive(trainer(other))


def _silent(text: str) -> None:
    pass


def stopped(script: Script, at: int) -> Any:
    """Return the state of a run that ends at an iteration, before anything is commanded there."""
    earlier = {number: act for number, act in script.items() if number < at}
    with steered_environment(earlier, last=at, hooks=HOOKS) as sigma:
        sigma.run()
        return decisive(trainer(sigma))


def train(script: Script, folder: Path, last: int = LAST, **settings: Any) -> Path:
    """Train to the end in a folder; return the run folder."""
    with steered_environment(script, last=last, **{"hooks": HOOKS, **settings}) as sigma:
        sigma.folder = folder
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


def numbers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints" / "trainer").iterdir())


def without(script: Script, *commands: int) -> Script:
    return {number: act for number, act in script.items() if number not in commands}


def test_moments_between_edits_have_the_bits_of_a_run_that_was_stopped_there(tmp_path: Path) -> None:
    folder = train(EDITS, tmp_path)
    assert numbers(folder) == ["12"]  # all of them are computed from the beginning
    for at in range(1, LAST + 1):
        assert recalled(folder, at) == stopped(EDITS, at), at


def test_moments_after_checkpoints_are_computed_from_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = train(SAVED, tmp_path)
    begun = list[str]()
    restore = resuming.fit
    monkeypatch.setattr(resuming, "fit", lambda path, *given: (begun.append(Path(path).name), restore(path, *given)))
    for at in range(1, LAST + 1):
        assert recalled(folder, at) == stopped(EDITS, at), at
    assert begun == ["3"] * 5 + ["7"] * 5  # at 3 itself, and before 7 was changed at 7


def test_the_beginning_is_the_initial_state(tmp_path: Path) -> None:
    folder = train(EDITS, tmp_path)
    with steered_environment(hooks=HOOKS) as new:
        first = decisive(trainer(new))
    arrays, values = recalled(folder, 0)
    assert arrays == first[0]
    assert values["live"] == first[1]["live"]  # the rate was set at 0


@pytest.mark.parametrize("at", range(1, LAST + 1))
def test_moments_after_a_rewind_are_those_of_the_present_branch(at: int, tmp_path: Path) -> None:
    folder = train(LEFT, tmp_path)
    expected = stopped(EDITS, at) if at < 5 else stopped_on(LEFT, at)
    assert recalled(folder, at) == expected


def stopped_on(script: Script, at: int) -> Any:
    """Return the state of a run that never took the branch that was left, and ends at an iteration."""
    later = {n: act for n, act in script.items() if n > 9}
    return stopped({**{n: act for n, act in script.items() if n < 5}, **later}, at)


@pytest.mark.parametrize("at", [5, 6, 7, 8, 9])
def test_moments_of_a_branch_that_was_left_are_those_before_it_was(at: int, tmp_path: Path) -> None:
    assert recalled(train(LEFT, tmp_path), at, branch=0) == stopped(EDITS, at)


@pytest.mark.parametrize(("at", "branch"), [(0, None), (7, None), (7, 0), (8, 1), (11, 1)])
def test_moments_of_several_branches(at: int, branch: int | None, tmp_path: Path) -> None:
    folder = train(TWICE, tmp_path)
    expected = {None: lambda: stopped(without(EDITS, *EDITS), at), 0: lambda: stopped(EDITS, at)}
    found = recalled(folder, at, branch)
    assert found == expected.get(branch, lambda: stopped_on(LEFT, at))() if at else found


@pytest.mark.parametrize("at", [3, 6, 8, 10, 12])
def test_moments_of_a_run_that_was_killed_and_resumed(at: int, tmp_path: Path) -> None:
    with steered_environment({**SAVED, 9: crash}, hooks=HOOKS) as sigma:
        folder = train_until_crash(sigma, tmp_path)
    with steered_environment({10: _set(0.2)}, last=LAST, hooks=HOOKS) as again:
        again.resume(folder)
        again.run()
    assert recalled(folder, at) == stopped({**EDITS, 10: _set(0.2)}, at)


def test_moments_of_a_run_that_trains(tmp_path: Path) -> None:
    found = list[Any]()
    script = {**SAVED, 10: lambda s: found.extend(recalled(s.run_folder, at) for at in (2, 6, 8))}
    folder = train(script, tmp_path)
    assert found == [stopped(EDITS, at) for at in (2, 6, 8)]
    assert recalled(folder, LAST) == stopped(EDITS, LAST)  # nothing has changed its bits


def test_hooks_that_depend_on_the_clock_fire_as_they_did(tmp_path: Path) -> None:
    clocked = {**HOOKS, "it": {"type": "count", "every": "0.000001 seconds"}}
    folder = train(without(EDITS, 2), tmp_path, hooks=clocked)
    rows = [row for row in read_journal(folder) if row.get("event") == "fired" and row["iteration"] <= 6]
    arrays, values = recalled(folder, 6, hooks=clocked)
    assert values["published"]["count"] == len(rows)
    assert arrays == stopped(without(EDITS, 2), 6)[0]


@pytest.mark.parametrize(
    ("at", "branch", "why"),
    [
        (13, None, "iteration 13 of branch 1 is not known. It is from 5 to 12"),
        (3, 1, "iteration 3 of branch 1 is not known. It is from 5 to 12"),
        (10, 0, "iteration 10 of branch 0 is not known. It is from 0 to 9"),
        (5, 2, "has no branch 2. There are: 0, 1"),
    ],
)
def test_moments_that_a_run_does_not_know_are_refused(at: int, branch: int | None, why: str, tmp_path: Path) -> None:
    folder = train(LEFT, tmp_path)
    with pytest.raises(SigmaStateError, match=re.escape(why)):
        recalled(folder, at, branch)


def test_a_copy_that_differs_is_refused(tmp_path: Path) -> None:
    folder = train(EDITS, tmp_path)
    with pytest.raises(SigmaDifferenceError, match="trainer: differs from the journal. At iteration 1 "):
        recalled(folder, 11, seed=1)


def test_parts_of_a_journal_are_between_rewinds_and_resets() -> None:
    commands = [("begin", 0), ("rewind", 9, 5, 1), ("set", 6), ("reset", 8), ("rewind", 4, 0, 2), ("set", 3)]
    rows = [_row(place, *about) for place, about in enumerate(commands)]
    parts = split_parts(rows)
    found = [(part.branch, part.start, part.end, part.place, len(part.rows)) for part in parts]
    assert found == [(0, 0, 9, 0, 1), (1, 5, 8, 2, 1), (1, 0, 4, 4, 0), (2, 0, 3, 5, 1)]
    assert find_part("trainer", parts, RunMoment(2)) is parts[3]
    assert find_part("trainer", parts, RunMoment(2, 1)) is parts[2]


def _row(place: int, what: str, iteration: int, to: int = 0, branch: int = 0) -> dict[str, Any]:
    row = {"iteration": iteration, "place": place}
    if what == "begin":
        return {**row, "event": what}
    return {**row, "command": what, **({"to": to, "branch": branch, "parent": branch - 1} if what == "rewind" else {})}


@pytest.mark.parametrize("at", [6, 8, 9])
def test_moments_after_the_last_row_of_a_branch_are_computed_on(at: int, tmp_path: Path) -> None:
    folder = train({9: lambda s: s.rewind(5)}, tmp_path, hooks={})
    rows = [row["iteration"] for row in read_journal(folder)]
    assert 5 in rows
    assert not {6, 7, 8}.intersection(rows)
    with steered_environment(last=at) as plain:
        plain.run()
        assert recalled(folder, at, branch=0, hooks={}) == decisive(trainer(plain))
