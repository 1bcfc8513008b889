"""Rewind: the bits of a run that never took the abandoned branch, its branches, checkpoints and replay."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store.checkpoints.store import read
from sigma_store.checkpoints.writer import Saver
from sigma_store.journal import JournalFile
from sigma_testing.doing import Do
from sigma_testing.journals import read_journal
from sigma_testing.steering import (
    Slow,
    Sweep,
    crash,
    decisive,
    small_environment,
    steered_environment,
    train_until_crash,
    wait_until,
)
from sigma_training.history import rewind
from sigma_training.history.rewind import RewindBuffer
from sigma_training.trainer import NetworkTrainer

pytestmark = pytest.mark.usefixtures("shop")

Script = Mapping[int, Callable[[Environment], Any]]


@pytest.fixture(autouse=True)
def always_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a snapshot of each epoch (every fifth iteration), whatever it costs."""
    monkeypatch.setattr(RewindBuffer, "due", lambda self: True)


def trainer(sigma: Environment) -> NetworkTrainer:
    return sigma.trainer("trainer")


def journal(run: Path | None) -> list[dict[str, Any]]:
    assert run is not None
    apart = ("trainer", "seconds", "time", "to_seconds", "epoch")
    return [{name: value for name, value in row.items() if name not in apart} for row in read_journal(run)]


def saved(run: Path | None) -> dict[str, int]:
    """Return the branch of each checkpoint by its folder name."""
    assert run is not None
    folders = sorted((run / "checkpoints" / "trainer").iterdir())
    return {path.name: read(path).values["branch"] for path in folders if "branch" not in path.name}


def _rate(value: float) -> Callable[[Environment], Any]:
    return lambda sigma: sigma.set("trainer.optimiser.learning_rate", value)


CHANGED: list[Callable[[Environment], Any]] = [
    _rate(0.5),
    lambda s: s.attach("more", {"type": "count", "into": "more"}),
    lambda s: s.detach("it"),
    lambda s: s.swap("optimiser", {"type": "heavy", "learning_rate": 0.02}),
    lambda s: s.swap("backend", "other"),
    lambda s: s.swap("iterator", "backwards"),
    lambda s: s.set("trainer.hooks.it.every", "2 iterations"),
    lambda s: s.set("trainer.**.weights", 0.5),
]


@pytest.mark.parametrize("change", CHANGED)
def test_commands_on_an_abandoned_branch_have_no_later_effect(
    change: Callable[[Environment], Any],
) -> None:
    hooks = {"it": "count", "lower": {"type": "follow", "after": "training.loss"}}
    with steered_environment({7: change, 9: lambda s: s.rewind(5)}, hooks=hooks) as sigma:
        sigma.run()
        found = decisive(trainer(sigma))
    with steered_environment(hooks=hooks) as plain:
        plain.run()
        assert decisive(trainer(plain)) == found


@pytest.mark.parametrize("change", CHANGED)
def test_undo_keeps_earlier_changes(change: Callable[[Environment], Any]) -> None:
    with steered_environment({3: change, 7: _rate(0.4), 9: lambda s: s.rewind(5)}, hooks={"it": "count"}) as sigma:
        sigma.run()
        found = decisive(trainer(sigma))
    with steered_environment({3: change}, hooks={"it": "count"}) as plain:
        plain.run()
        assert decisive(trainer(plain)) == found


def test_the_same_commands_after_a_rewind_give_the_bits_of_a_new_run(deep: Any) -> None:
    found = []
    for ways in ([(20, 0.3)], [(20, 0.6), (20, 0.3)]):
        with deep() as sigma:
            sigma.prepare()
            one = trainer(sigma)
            one.fit(iterations=10)
            for number, (iterations, rate) in enumerate(ways):
                if number:
                    assert sigma.rewind(10)["trainer"].iteration == 10
                sigma.set("trainer.optimiser.learning_rate", rate)
                one.fit(iterations=iterations)
            found.append(decisive(one))
    (bits, values), (others, other) = found
    assert bits == others
    assert other["published"] == values["published"]
    assert other["cursor"] == values["cursor"]


def test_a_rewind_restores_the_newest_snapshot_not_after_the_given_time() -> None:
    said: list[Any] = []
    script: Script = {
        9: lambda s: said.append(s.rewind(8)["trainer"].iteration),
        11: lambda s: said.append(s.rewind(2, "epoch")["trainer"].iteration),
    }
    with steered_environment(script) as sigma:
        sigma.run()
    assert said == [5, 10]


def test_a_rewind_to_a_time_without_snapshot_is_refused_with_the_available_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewind, "MOST", 2)
    monkeypatch.setattr(rewind, "MOST_BYTES", 1)
    with steered_environment() as sigma:
        sigma.run()
        before = decisive(trainer(sigma))
        with pytest.raises(SigmaStateError, match="no snapshot of iteration 4 or before; kept are iterations 10"):
            sigma.rewind(4)
        assert decisive(trainer(sigma)) == before


def test_a_rewind_goes_back_to_the_beginning_if_nothing_else_is_kept_before() -> None:
    with steered_environment({2: _rate(0.3), 7: _rate(0.2)}, hooks={"it": "count"}) as sigma:
        sigma.run()
        assert sigma.rewind(4)["trainer"].iteration == 0
        found = decisive(trainer(sigma))
    with steered_environment(last=0, hooks={"it": "count"}) as plain:
        plain.run()
        assert decisive(trainer(plain)) == found


def test_states_after_a_reset_are_not_those_before_it() -> None:
    with steered_environment({7: lambda s: s.reset()}) as sigma:
        sigma.run()
        assert sigma.rewind(9)["trainer"].iteration == 5
        states = [moment.iteration for moment, _ in trainer(sigma).recorder.past.states]
        assert states == [0, 5]


def test_a_snapshot_is_taken_within_an_epoch_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewind, "LATE", -1.0)
    with steered_environment() as sigma:
        sigma.run()
        states = [moment.iteration for moment, _ in trainer(sigma).recorder.past.states]
        assert states == [0, *range(1, 13)]


def test_undo_after_a_rewind_undoes_commands_before_that_time() -> None:
    with steered_environment({3: _rate(0.2), 7: _rate(0.4), 9: lambda s: [s.rewind(5), s.undo()]}) as sigma:
        sigma.run()
        assert sigma.get("trainer.optimiser.learning_rate") == 0.05


def test_a_run_rewound_from_another_thread_continues() -> None:
    with steered_environment(hooks={"slow": Slow()}, last=40) as sigma:
        sigma.run()
        assert sigma.rewind(20)["trainer"].iteration == 20
        sigma.run()
        assert trainer(sigma).session.moment.iteration == 40


# -- the tree of branches ----------------------------------------------------------------------------------------------
TWICE: Script = {
    7: lambda s: [s.set("trainer.optimiser.learning_rate", 0.4), s.attach("it", "count")],
    8: lambda s: [s.send("save", trainer="trainer"), s.rewind(5)],
    9: lambda s: s.set("trainer.optimiser.learning_rate", 0.1),
    11: lambda s: s.rewind(10),
    12: lambda s: s.rewind(5),
    13: lambda s: s.swap("optimiser", "heavy"),
}


def _twice(folder: Path, script: Script = TWICE, last: int = 14) -> Environment:
    sigma = steered_environment(script, last=last)
    sigma.folder = folder
    return sigma


def test_the_journal_records_the_tree_of_branches(tmp_path: Path) -> None:
    with _twice(tmp_path) as sigma:
        sigma.run()
        rows = journal(sigma.run_folder)
    assert [row for row in rows if row.get("command") == "rewind"] == [
        {"iteration": 8, "command": "rewind", "to": 5, "scale": "iteration", "branch": 1, "parent": 0},
        {"iteration": 11, "command": "rewind", "to": 10, "scale": "iteration", "branch": 2, "parent": 1},
        {"iteration": 12, "command": "rewind", "to": 5, "scale": "iteration", "branch": 3, "parent": 2},
    ]


def test_a_hook_may_rewind_at_the_event_of_another_command(tmp_path: Path) -> None:
    back = Do(does=lambda context: context.command("rewind", to=5), every=TimeStep("pause"))
    with small_environment(Sweep(), hooks={"slow": Slow(), "back": back}) as sigma:
        sigma.folder = tmp_path
        sigma.run_async()
        wait_until(lambda: sigma.trainer("trainer").session.moment.iteration > 7)
        sigma.pause()
        assert sigma.trainer("trainer").session.recorder.branch == 1
        assert sigma.trainer("trainer").session.moment.iteration == 5


def test_the_newest_checkpoint_after_a_rewind_is_of_the_new_branch(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(sigma: Environment) -> None:
        sigma.trainer("trainer").session.checkpoints.saver.flush()
        seen.append(saved(sigma.run_folder))

    script = {**TWICE, 8: lambda s: [s.send("save", trainer="trainer"), look(s), s.rewind(5), look(s)]}
    with _twice(tmp_path, script) as sigma:
        sigma.run()
        seen.append(saved(sigma.run_folder))
        assert sigma.run_folder is not None
        there = {path.name for path in (sigma.run_folder / "checkpoints" / "trainer").iterdir()}
    assert seen == [{"8": 0}, {"5": 1}, {"14": 3, "5": 3}]
    assert {"8.branch-0", "10.branch-2"} <= there


def test_a_run_with_rewinds_replays_to_the_same_result(tmp_path: Path) -> None:
    with _twice(tmp_path) as sigma:
        sigma.run()
        wanted, run = decisive(trainer(sigma)), sigma.run_folder
    assert run is not None
    with steered_environment(last=14) as again:
        _, differs = again.replay(run)
        assert differs == {}
        assert decisive(trainer(again)) == wanted
        assert trainer(again).session.recorder.branch == 3


LATER: Script = {7: TWICE[7], 9: lambda s: s.rewind(5), 12: lambda s: s.rewind(10), 13: TWICE[13]}


@pytest.mark.parametrize("stopped", [5, 9, 10, 12, 13])  # where the restored snapshot is kept afterwards
def test_a_run_with_rewinds_resumes_to_the_bits_of_an_uninterrupted_one(tmp_path: Path, stopped: int) -> None:
    with _twice(tmp_path / "whole", LATER) as plain:
        plain.run()
        wanted = decisive(trainer(plain))
    done: list[int] = []
    script = {at: _noted(done, at, steer) for at, steer in LATER.items()}
    script[stopped] = _noted(done, stopped, lambda s: [LATER.get(stopped, lambda _: None)(s), s.stop()])
    with _twice(tmp_path, script) as sigma:
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    with steered_environment({at: steer for at, steer in LATER.items() if at not in done}, last=14) as again:
        again.resume(run)
        again.run()
        assert decisive(trainer(again)) == wanted
        assert trainer(again).session.recorder.branch == 2


def _noted(done: list[int], at: int, steer: Callable[[Environment], Any]) -> Callable[[Environment], Any]:
    return lambda sigma: [done.append(at), steer(sigma)]


@pytest.mark.parametrize("set_aside", [True, False])
def test_a_crash_after_a_rewind_is_recovered_from_the_journal(tmp_path: Path, set_aside: bool) -> None:
    script: Script = {
        6: lambda s: s.send("save", trainer="trainer"), 8: lambda s: s.rewind(5), 9: _rate(0.2), 11: crash,
    }  # fmt: skip
    with _twice(tmp_path, script) as sigma:
        run = train_until_crash(sigma, tmp_path)
    checkpoints = run / "checkpoints" / "trainer"
    if not set_aside:  # the crash came immediately before it
        (checkpoints / "6.branch-0").rename(checkpoints / "6")
    with steered_environment(last=12) as again, steered_environment({9: _rate(0.2)}) as plain:
        again.resume(run)
        again.run()
        plain.run()
        assert decisive(trainer(again))[0] == decisive(trainer(plain))[0]


# -- crashes -----------------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Saves(Hook):
    """Save at every fourth iteration."""

    every: TimeStep = every(4, "iteration")
    score: float | None = None

    def fire(self, context: HookContext) -> None:
        context.command("save", score=self.score, keep=self.score is None)


OFTEN: Script = {
    3: lambda s: s.send("save", trainer="trainer"),
    7: lambda s: [s.set("trainer.optimiser.learning_rate", 0.4), s.attach("it", "count")],
    8: lambda s: s.rewind(5),
    9: lambda s: [s.set("trainer.optimiser.learning_rate", 0.1), s.send("save", trainer="trainer")],
    10: lambda s: [s.swap("optimiser", "heavy"), s.rewind(9), s.undo()],
    11: lambda s: s.rewind(5),  # over two branches
    12: lambda s: [s.send("save", trainer="trainer"), s.rewind(3), s.set("trainer.optimiser.learning_rate", 0.2)],
}


def _copied_at_each_row(monkeypatch: pytest.MonkeyPatch, to: Path) -> None:
    """Copy the run folder after each journal row, as a crash would leave it."""
    append, save = JournalFile.append, Saver.save

    def copying(self: JournalFile, row: Mapping[str, Any]) -> None:
        append(self, row)
        if self.path is not None:
            shutil.copytree(self.path.parent, to / str(len(list(to.iterdir()))))

    def waiting(self: Saver, number: int, checkpoint: Checkpoint) -> Path:
        path = save(self, number, checkpoint)
        self.wait()
        return path

    monkeypatch.setattr(JournalFile, "append", copying)
    monkeypatch.setattr(Saver, "save", waiting)


def _crashed_at_each_row(tmp_path: Path, script: Script, run: Path | None = None, **settings: Any) -> list[Path]:
    """Train or resume a run, and return the folders that a crash after each journal row would leave."""
    copies = tmp_path / "copies"
    copies.mkdir()
    with pytest.MonkeyPatch.context() as patch, steered_environment(script, last=14, **settings) as sigma:
        _copied_at_each_row(patch, copies)
        sigma.folder = tmp_path
        if run is not None:
            sigma.resume(run)
        sigma.run()
    return sorted(copies.iterdir(), key=lambda path: int(path.name))


def test_a_run_with_rewinds_resumes_after_a_crash_at_any_journal_row(tmp_path: Path) -> None:
    runs = _crashed_at_each_row(tmp_path, OFTEN, hooks={"saves": Saves()})
    assert len(runs) > 40
    for run in runs[::2]:
        _resumed_and_replayed(run, hooks={"saves": Saves()})


def test_a_run_that_crashed_between_the_saves_of_two_hooks_resumes_and_is_replayed(tmp_path: Path) -> None:
    hooks: dict[str, Hook] = {"a": Saves(), "b": Saves(score=1.0), "c": Saves(every=every(8, "iteration"))}
    runs = _crashed_at_each_row(tmp_path, {6: _rate(0.4), 10: lambda s: s.rewind(8)}, hooks=hooks)
    rows = [row for row in journal(runs[-1]) if row["iteration"] == 8 and row.get("by")]
    assert [(row["by"], row.get("command")) for row in rows[:4]] == [
        ("a", "save"), ("b", "save"), ("c", "save"), ("c", None),
    ]  # fmt: skip
    for run in runs:
        _resumed_and_replayed(run, hooks=hooks)


@define(eq=False, kw_only=True)
class SavesAndSets(Hook):
    """Save in the background, and then change a value."""

    every: TimeStep = every(5, "iteration")
    background: bool = True

    def fire(self, context: HookContext) -> None:
        context.command("save")
        context.command("set", pattern="optimiser.learning_rate", value=0.01 * context.moment.iteration)


def test_a_run_that_crashed_during_a_background_hook_resumes_and_is_replayed(tmp_path: Path) -> None:
    hooks: dict[str, Hook] = {"it": SavesAndSets(), "slow": Slow()}
    runs = _crashed_at_each_row(tmp_path, {}, hooks=hooks)
    assert [row for row in journal(runs[-1]) if row.get("by") == "it" and row.get("command") == "set"]
    for run in runs:
        _resumed_and_replayed(run, hooks=hooks)


def test_saves_of_hooks_at_the_same_event_are_one_checkpoint(tmp_path: Path) -> None:
    """A hook pauses training; the saves of hooks at that event are combined with those of the others."""
    pauses = Do(every=every(4, "iteration"), does=lambda context: context.command("pause"))
    goes = Do(every=TimeStep("pause"), does=lambda context: context.command("go"))
    hooks = {"a": pauses, "b": Saves(every=TimeStep("pause")), "c": goes, "d": Saves(score=1.0)}
    with steered_environment(last=5, hooks=hooks) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        found = read(Path(str(sigma.run_folder)) / "checkpoints" / "trainer" / "4")
    assert (found.score, found.keep) == (1.0, True)


def test_two_hooks_saving_at_once_make_one_checkpoint_with_both_policies(
    tmp_path: Path,
) -> None:
    with steered_environment(last=5, hooks={"a": Saves(score=1.0), "b": Saves()}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        found = read(Path(str(sigma.run_folder)) / "checkpoints" / "trainer" / "4")
    assert (found.score, found.keep) == (1.0, True)


def _resumed_and_replayed(run: Path, script: Script | None = None, **settings: Any) -> None:
    """Resume a crashed run, and replay it to the same bits."""
    with steered_environment(script, last=14, **settings) as again:
        again.resume(run, log=lambda text: None)
        again.run()
        assert not [text for _, text in again.messages.entries_after(0)], run.name
        wanted = decisive(trainer(again))
    with steered_environment(last=14, **settings) as replayed:
        assert replayed.replay(run)[1] == {}, run.name
        assert decisive(trainer(replayed)) == wanted, run.name


def test_a_rewind_without_a_later_checkpoint_is_replayed_from_the_beginning(tmp_path: Path) -> None:
    with _twice(tmp_path, {6: lambda s: s.send("save", trainer="trainer"), 8: lambda s: s.rewind(5)}) as sigma:
        sigma.run()
        wanted, run = decisive(trainer(sigma)), sigma.run_folder
    assert run is not None
    shutil.rmtree(run / "checkpoints" / "trainer" / "5")
    shutil.rmtree(run / "checkpoints" / "trainer" / "14")
    (run / "checkpoints" / "trainer" / "6.branch-0").rename(run / "checkpoints" / "trainer" / "6")
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if '"rewind"' in line)
    (run / "journal.jsonl").write_text("".join(lines[: end + 1]))
    said: list[str] = []
    with steered_environment(last=14) as again:
        again.resume(run, log=said.append)
        again.run()
        assert decisive(trainer(again)) == wanted
    assert "is on an abandoned branch" in said[0]
    assert "no checkpoint of 'trainer' to resume from: everything is replayed" in said[1]


def test_a_rewind_is_replayed_under_new_settings(tmp_path: Path) -> None:
    with steered_environment({8: lambda s: s.rewind(5)}, last=14) as plain:
        plain.run()
        wanted = decisive(trainer(plain))
    with steered_environment({2: lambda s: s.send("save"), 8: lambda s: s.rewind(5), 9: crash}, last=14) as sigma:
        run = train_until_crash(sigma, tmp_path)
    shutil.rmtree(run / "checkpoints" / "trainer" / "5")
    with steered_environment(last=14) as again:
        again.resume(run, ["other=1"], log=lambda text: None)
        again.run()
        assert not again.messages.entries_after(0)
        assert decisive(trainer(again)) == wanted
    assert [row["to"] for row in journal(run) if row.get("command") == "rewind"] == [5, 5]


def test_nothing_is_replayed_if_every_checkpoint_is_damaged(tmp_path: Path) -> None:
    with _twice(tmp_path, {}) as sigma:
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    (run / "checkpoints" / "trainer" / "14" / "manifest.json").write_text("")
    with steered_environment(last=14) as again, pytest.raises(SigmaCheckpointError, match="is damaged"):
        again.resume(run, log=lambda text: None)


def test_a_resumed_run_can_be_rewound_to_where_it_was_resumed(tmp_path: Path) -> None:
    with _twice(tmp_path, {}, last=7) as sigma:
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    with steered_environment({9: lambda s: s.rewind(7)}) as again, steered_environment() as plain:
        again.resume(run)
        again.run()
        plain.run()
        assert decisive(trainer(again))[0] == decisive(trainer(plain))[0]


def _stopped(folder: Path, script: Script, run: Path | None = None) -> Path:
    """Train or resume a run until the script stops it; return its folder."""
    with steered_environment(script, last=14) as sigma:
        if run is None:
            sigma.folder = folder
        else:
            sigma.resume(run)
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


BETWEEN: Script = {7: lambda s: [_rate(0.3)(s), s.stop()]}  # stopped between two changes at one iteration


@pytest.mark.parametrize("more", [[], [7], [8], [7, 9]])  # stopped again
def test_a_run_rewound_to_where_it_was_stopped_continues_and_is_replayed(tmp_path: Path, more: list[int]) -> None:
    run, to = _stopped(tmp_path, BETWEEN), max([7, *more])
    for at in more:
        run = _stopped(tmp_path, {at: lambda s, rate=0.2 + at / 100: [_rate(rate)(s), s.stop()]}, run)
    back: Script = {to: _rate(0.15), 11: lambda s: s.rewind(to), 12: lambda s: s.rewind(to), 13: lambda s: s.rewind(10)}
    for copy in _crashed_at_each_row(tmp_path, back, run)[::2]:
        _resumed_and_replayed(copy)


def test_a_run_rewound_to_where_its_replay_was_stopped_is_replayed(tmp_path: Path) -> None:
    script = {2: lambda s: s.send("save"), 4: _rate(0.2), 8: _rate(0.4), 11: crash}
    with steered_environment(script, last=14) as sigma:
        run = train_until_crash(sigma, tmp_path)
    for at in (6, 7):
        run = _stopped(tmp_path, {at: lambda s: s.stop()}, run)
    shutil.rmtree(run / "checkpoints" / "trainer" / "7")
    run = _stopped(tmp_path, {12: lambda s: s.rewind(6)}, run)
    _resumed_and_replayed(run)


# -- a read-only folder ------------------------------------------------------------------------------------------------
def test_a_checkpoint_that_cannot_be_set_aside_is_reported_and_the_rewind_still_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if ".branch-" in Path(target).name:
            raise OSError("the disk is read-only")
        return whole(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with _twice(tmp_path, {8: TWICE[8]}, last=12) as sigma:
        sigma.run()
        said = [text for _, text in sigma.messages.entries_after(0) if "ALARM" in text]
        assert trainer(sigma).session.moment.iteration == 12
    assert said == [
        "ALARM: checkpoint 8 cannot be set aside: the disk is read-only. Remove it by hand: it is on an abandoned "
        "branch, and would be taken for the newest."
    ]
