"""A replay detects changes of the journal, and reports where they begin."""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from sigma_kernel.clock import Moment, TimeScale, TimeStep, after, every
from sigma_kernel.contracts import Hook, HookContext, Monitor, View, Work
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.signals import SAVING
from sigma_testing.journals import forge_journal
from sigma_testing.null import NullBackend
from sigma_testing.steering import (
    Crash,
    Descent,
    Sweep,
    crash,
    decisive,
    small_environment,
    steered_environment,
    train_until_crash,
)
from sigma_training.commands.stop import StopTraining
from sigma_training.history.recorder import Recorder
from sigma_training.history.replay import Replay, tail, without_interruptions
from sigma_training.history.rewind import RewindBuffer
from sigma_training.session.current import CurrentRun


@pytest.fixture(autouse=True)
def one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write one digest only, at the end, however fast the machine is."""
    monkeypatch.setattr(RewindBuffer, "due", lambda self: False)


@define(eq=False, kw_only=True)
class End(Hook):
    every: TimeStep = after(4, "epoch")

    def fire(self, context: HookContext) -> None:
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


def _replayed(run: Path) -> dict[str, str]:
    with _small() as sigma:
        return sigma.replay(run)[1]


def _last_digest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in reversed(rows) if row.get("event") == "digest")


def test_an_unmodified_journal_replays_without_a_difference(tmp_path: Path) -> None:
    run = _run(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert _replayed(run) == {}
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@define(eq=False)
class Meddler(Monitor):
    """Try to send commands, and record the answers."""

    talks: bool
    refused: list[str] = field(factory=list)
    done: threading.Event = field(factory=threading.Event)

    def watch(self, view: View) -> None:
        for name, arguments in MEDDLING.items():
            try:
                view.send(name, **arguments).result(60)
            except SigmaStateError as error:
                self.refused.append(str(error))
        self.done.set()


MEDDLING: dict[str, dict[str, Any]] = {
    "set": {"pattern": "trainer.optimiser.learning_rate", "value": 0.5}, "pause": {}, "stop": {}, "save": {},
    "reset": {}, "detach": {"name": "end", "trainer": "trainer"}, "undo": {}, "rewind": {"to": 0},
}  # fmt: skip


def test_commands_are_refused_during_a_replay(tmp_path: Path) -> None:
    run, loud, quiet = _run(tmp_path), Meddler(True), Meddler(False)
    with _small() as sigma:
        sigma.monitors = {"loud": loud, "quiet": quiet}
        assert sigma.replay(run)[1] == {}
        with pytest.raises(SigmaStateError, match="cannot set in a replay. Resume the run instead"):
            sigma.set("trainer.optimiser.learning_rate", 0.5)
    assert loud.done.wait(60)
    assert loud.refused == [
        f"environment {sigma.name!r}: cannot {name} in a replay. Resume the run instead." for name in MEDDLING
    ]
    assert quiet.refused == []


def test_a_save_by_signal_does_not_affect_the_replay(tmp_path: Path) -> None:
    run, heard = _run(tmp_path), []

    @define(eq=False)
    class Signalling(Meddler):
        def watch(self, view: View) -> None:
            sigma._runner._heed(sigma._runner._active[0], SAVING[0])
            heard.extend(text for _, text in view.messages(0))
            self.done.set()

    class Waiting(Sweep):
        def train(self, work: Work) -> None:
            assert loud.done.wait(60)  # else the replay may end before the monitor begins
            super().train(work)

    with small_environment(Waiting(), hooks={"end": End()}) as sigma:
        sigma.monitors = {"loud": (loud := Signalling(True))}
        assert sigma.replay(run)[1] == {}
    assert heard == ["nothing is saved, as no run folder is written"]


def test_a_tampered_digest_is_reported_with_its_address(tmp_path: Path) -> None:
    run = _run(tmp_path)
    forge_journal(run, lambda rows: _last_digest(rows)["state"].update({"network.layers.weights": "0" * 16}))
    (said,) = _replayed(run).values()
    assert said.startswith("iteration 20 (epoch 4): network.layers.weights differ")


def test_a_tampered_loss_is_reported_with_its_iteration(tmp_path: Path) -> None:
    run = _run(tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        row = _last_digest(rows)
        assert len(row["losses"]) >= 24
        row["losses"] = row["losses"][:-24] + "00000000" + row["losses"][-16:]

    forge_journal(run, change)
    (said,) = _replayed(run).values()
    assert said == "iteration 20 (epoch 4): losses differ, first seen in the loss of iteration 18"


def test_a_tampered_command_in_the_journal_is_detected(tmp_path: Path) -> None:
    run = _run(tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row.get("command") == "set")["value"] = 0.03

    forge_journal(run, change)
    (said,) = _replayed(run).values()
    assert "network.layers" in said
    assert "first seen in the loss of iteration 2" in said


def test_a_run_of_several_trainers_is_replayed_and_only_the_one_that_differs_is_named(tmp_path: Path) -> None:
    with _pair() as sigma:
        sigma.folder = tmp_path
        sigma.prepare()
        sigma.set("other.optimiser.learning_rate", 0.02)
        sigma.run()
        wanted = [decisive(trainer) for trainer in sigma.trainers.values()]
        run = sigma.run_folder
    assert run is not None
    with _pair() as again:
        assert again.replay(run)[1] == {}
        assert [decisive(trainer) for trainer in again.trainers.values()] == wanted
    forge_journal(run, lambda rows: next(row for row in rows if row.get("command") == "set").update(value=0.03))
    with _pair() as again:
        assert list(again.replay(run)[1]) == ["other"]


def _pair() -> Environment:
    sigma = _small()
    first = sigma.trainer("trainer")
    settings = {"operator": Sweep(), "batch_size": 5, "epochs": inf, "hooks": {"end": End()}}
    other = sigma.create_trainer("other", backend=NullBackend(), **settings)
    other.data, other.network, other.optimiser = first.data, first.network, Descent(learning_rate=0.1)
    return sigma


def test_a_trainer_fitted_twice_can_be_replayed_and_resumed(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        sigma.set("trainer.optimiser.learning_rate", 0.02)
        trainer.fit(iterations=7)
        wanted, run = decisive(trainer), sigma.run_folder
        trainer.fit(epochs=2)
        later = decisive(trainer)
    assert run is not None
    whole = tmp_path / "whole"
    run.rename(whole)
    with small_environment(Sweep()) as again:
        assert again.replay(whole)[1] == {}
        assert decisive(again.trainer("trainer")) == later
    for path in (whole / "checkpoints" / "trainer").iterdir():
        if path.name != "12":
            shutil.rmtree(path)
    rows = (whole / "journal.jsonl").read_text().splitlines(keepends=True)
    third = [n for n, row in enumerate(rows) if '"begin"' in row][2]
    (whole / "journal.jsonl").write_text("".join(rows[:third]))
    with small_environment(Sweep()) as again:
        again.resume(whole)
        assert decisive(again.trainer("trainer")) == wanted
        again.trainer("trainer").fit(epochs=2)
        assert decisive(again.trainer("trainer")) == later
    with small_environment(Sweep()) as last:
        assert last.replay(whole)[1] == {}
        assert decisive(last.trainer("trainer")) == later


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"command": "detach", "name": "missing"}, "detach: there is no hook 'missing'"),
        ({"command": "go"}, "cannot go while"),
        ({"command": "stop", "cause": ""}, "it changes nothing"),
    ],
)
def test_an_inserted_command_that_cannot_apply_is_reported(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    run = _run(tmp_path)
    head = {"trainer": "trainer", "iteration": 20, "epoch": 4, "seconds": 1.0}

    def change(rows: list[dict[str, Any]]) -> None:
        end = next(n for n, row in enumerate(rows) if row.get("event") == "end")
        rows.insert(end + 1, {**head, **more})

    forge_journal(run, change)
    (said,) = _replayed(run).values()
    assert said.startswith("iteration 20 (epoch 4): {")
    assert f"cannot be replayed: {why}" in said or f"cannot be replayed: trainer: {why}" in said


def test_a_row_that_the_replay_never_meets_ends_it_as_a_difference(tmp_path: Path) -> None:
    run = _run(tmp_path)
    head = {"trainer": "trainer", "iteration": 7, "epoch": 1, "seconds": 1.0}

    def change(rows: list[dict[str, Any]]) -> None:
        later = next(n for n, row in enumerate(rows) if row.get("iteration", 0) > 7)
        rows.insert(later, {**head, "event": "fired", "hook": "gone", "scope": ""})

    forge_journal(run, change)
    (said,) = _replayed(run).values()
    assert said.startswith('iteration 7 (epoch 1): {"event": "fired", "hook": "gone"')
    assert "is in the journal; the replay has gone on to iteration" in said


# -- by the wall clock -------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Until(Hook):
    """End training by what the clock shows, after a longer step at half of the time."""

    every: TimeStep = every(0.01, "second")
    ends = True

    def fire(self, context: HookContext) -> None:
        if 0.5 <= context.moment.second < 0.55:
            context.command("set", pattern="optimiser.learning_rate", value=context.moment.second / 10)
        if context.moment.second >= 1.0:
            context.command("stop")


@pytest.mark.parametrize("pace", [0.0, 0.007, 0.3])
@pytest.mark.parametrize("again", [False, True], ids=["whole", "resumed"])
def test_a_hook_that_acts_by_the_clock_acts_in_a_replay_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: float, again: bool
) -> None:
    def small() -> Environment:
        return small_environment(Sweep(), hooks={"until": Until()})

    monkeypatch.setattr(CurrentRun, "read_stopwatch", lambda self: 0.007)
    with small() as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(iterations=90 if again else None)
        run = sigma.run_folder
        assert run is not None
        whole = decisive(sigma.trainer("trainer"))
    if again:
        with small() as sigma:
            sigma.resume(run)
            sigma.trainer("trainer").fit(epochs=9999)
            whole = decisive(sigma.trainer("trainer"))
    monkeypatch.setattr(CurrentRun, "read_stopwatch", lambda self: pace)
    with small() as sigma:
        assert sigma.replay(run)[1] == {}
        arrays, values = decisive(sigma.trainer("trainer"))
        assert (arrays, values["clock"], values["live"]) == (whole[0], whole[1]["clock"], whole[1]["live"])
    assert values["live"]["optimiser.weights.learning_rate"] != 0.05
    assert values["clock"]["iteration"] >= 100


# -- ended early -------------------------------------------------------------------------------------------------------
def _rate(value: float) -> Callable[[Environment], Any]:
    return lambda sigma: sigma.set("trainer.optimiser.learning_rate", value)


def _stop(sigma: Environment) -> None:
    """Stop from another thread, as Ctrl-C does."""
    thread = threading.Thread(target=sigma.trainer("trainer").session.commands.send, args=[StopTraining("interrupted")])
    thread.start()
    thread.join()


def _post_stop(sigma: Environment) -> None:
    """Stop as a signal does, without a lock."""
    sigma.trainer("trainer").session.commands.post(StopTraining("interrupted"))


CHANGES = {4: _rate(0.02), 8: _rate(0.2)}


def _crashed(folder: Path) -> Path:
    """Return a run with a checkpoint at iteration 2 and two commands, that crashed at 10."""
    with steered_environment({2: lambda s: s.send("save"), **CHANGES, 10: crash}) as sigma:
        return train_until_crash(sigma, folder)


def _whole(**settings: Any) -> Any:
    with steered_environment(CHANGES, **settings) as plain:
        plain.run()
        return decisive(plain.trainer("trainer"))


@pytest.mark.parametrize("edits", [[], ["other=1"]])
@pytest.mark.parametrize("way", [_stop, _post_stop])
def test_a_stop_during_replay_ends_at_once_and_loses_nothing(
    tmp_path: Path, way: Callable[[Environment], Any], edits: list[str]
) -> None:
    run = _crashed(tmp_path)
    with steered_environment({6: way}) as early:
        early.resume(run, edits)
        early.run()
        assert early.trainer("trainer").session.moment.iteration == 6
        assert early.get("trainer.optimiser.learning_rate") == 0.02
        with pytest.raises(SigmaStateError, match="Resume it from its folder again"):
            early.run()
    with steered_environment({}) as late:
        late.resume(run)
        assert late.trainer("trainer").session.moment.iteration == 6
        late.run()
        assert decisive(late.trainer("trainer")) == _whole()
        assert not [text for _, text in late.messages.entries_after(0) if "differs" in text]
    with steered_environment({}) as last:
        assert last.replay(run)[1] == {}
        assert decisive(last.trainer("trainer")) == _whole()


@pytest.mark.parametrize("goal", [{"iterations": 3}, {"iterations": 0}, {"epochs": 1}])
def test_a_fit_that_ends_during_replay_leaves_the_rest_to_the_next_resume(tmp_path: Path, goal: dict[str, int]) -> None:
    run = _crashed(tmp_path)
    with steered_environment({}) as early:
        early.resume(run)
        early.trainer("trainer").fit(**goal)
        assert early.trainer("trainer").session.moment.iteration == 2 + goal.get("iterations", 3)
        with pytest.raises(SigmaStateError, match="Resume it from its folder again"):
            early.trainer("trainer").fit(**goal)
    with steered_environment({}) as late:
        late.resume(run)
        late.run()
        assert decisive(late.trainer("trainer")) == _whole()
    with steered_environment({}) as last:
        assert last.replay(run)[1] == {}
        assert decisive(last.trainer("trainer")) == _whole()


# -- hooks at the end --------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Farewell(Hook):
    every: TimeStep = TimeStep(TimeScale.STOP)

    def fire(self, context: HookContext) -> None:
        context.memory["times"] = context.memory.get("times", 0) + 1
        context.command("save")


def _farewell(folder: Path) -> Environment:
    sigma = small_environment(Sweep(), hooks={"bye": Farewell()})
    sigma.folder = folder
    return sigma


def _gone(self: Recorder, moment: Moment, force: bool, edited: Sequence[str]) -> None:
    if force and moment.iteration == 7:
        raise Crash


def test_stop_hooks_that_ran_before_a_crash_do_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _farewell(tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=7)
        whole = decisive(sigma.trainer("trainer"))
        sigma.trainer("trainer").fit(iterations=7)
        assert sigma.trainer("trainer").session.state.memory["bye"]["hook"] == {"times": 2}
    with monkeypatch.context() as patch, _farewell(tmp_path) as sigma:
        patch.setattr(Recorder, "row", _gone)
        with pytest.raises(Crash):
            sigma.trainer("trainer").fit(iterations=7)
        run = sigma.run_folder
    assert run is not None
    with _farewell(tmp_path) as late:
        late.resume(run)
        late.run()
        assert decisive(late.trainer("trainer")) == whole
        late.trainer("trainer").fit(iterations=7)
        assert late.trainer("trainer").session.state.memory["bye"]["hook"] == {"times": 2}
    with _farewell(tmp_path) as again:
        assert again.replay(run)[1] == {}


# -- new settings ------------------------------------------------------------------------------------------------------
def test_a_crash_under_new_settings_loses_no_change_that_users_made(tmp_path: Path) -> None:
    run = _crashed(tmp_path)
    with steered_environment({6: crash}) as first:
        first.resume(run, ["other=1"])
        with pytest.raises(Crash):
            first.run()
    with steered_environment({}) as late:
        late.resume(run)
        late.run()
        assert decisive(late.trainer("trainer")) == _whole()
        assert not [text for _, text in late.messages.entries_after(0) if "differs" in text]


def test_a_run_resumed_with_new_settings_is_replayed_even_without_that_checkpoint(tmp_path: Path) -> None:
    run = _crashed(tmp_path)
    with steered_environment({11: lambda s: s.send("save")}) as late:
        late.resume(run, ["other=1"])
        late.run()
        wanted = decisive(late.trainer("trainer"))
    shutil.rmtree(run / "checkpoints" / "trainer" / "2")
    with steered_environment({}) as again:
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("trainer")) == wanted


def test_a_run_resumed_twice_has_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    run = _crashed(tmp_path)
    for at, stop in ((11, lambda s: s.stop()), (12, crash)):
        with steered_environment({at: stop}, last=14) as sigma:
            sigma.resume(run)
            if at == 11:
                sigma.run()
            else:
                with pytest.raises(Crash):
                    sigma.run()
    with steered_environment({}, last=14) as last, steered_environment({}, last=14) as again:
        last.resume(run)
        last.run()
        assert decisive(last.trainer("trainer")) == _whole(last=14)
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("trainer")) == _whole(last=14)


def test_a_command_that_no_longer_applies_under_new_settings_is_reported_and_training_continues(tmp_path: Path) -> None:
    script = {2: lambda s: s.send("save"), 4: lambda s: s.detach("end"), 5: _rate(0.02), 6: crash}
    with steered_environment(script, hooks={"end": End()}) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with steered_environment({}) as again:
        again.resume(run, ["hooks={}"])
        again.run()
        assert again.trainer("trainer").session.moment.iteration == 12
        assert again.get("trainer.optimiser.learning_rate") == 0.02  # later rows are replayed
        (said,) = (text for _, text in again.messages.entries_after(0))
        assert "a replayed command was refused: detach: there is no hook 'end'" in said


# -- rows --------------------------------------------------------------------------------------------------------------
STOP = [{"command": "stop"}, {"command": "save", "by": "stop"}, {"event": "digest", "by": "stop"}]
RESUMED = {"event": "resumed"}
END = {"event": "end"}
WORK = [{"event": "begin"}, {"command": "set"}, {"event": "digest"}]


@pytest.mark.parametrize("cut", [[], [END], [*STOP, END], [{"command": "stop"}, END], STOP])
def test_a_comparison_ignores_the_rows_of_an_interruption(cut: list[dict[str, Any]]) -> None:
    assert without_interruptions([*WORK, *cut, RESUMED, {"command": "go"}]) == [*WORK, {"command": "go"}]
    assert _due([*WORK, *cut, RESUMED], 1) == WORK[1:]


def test_a_stop_by_a_hook_is_not_an_interruption() -> None:
    rows = [*WORK, {"command": "stop", "by": "end"}, END]
    assert without_interruptions([*rows, RESUMED]) == rows[:-1]


def _due(rows: list[dict[str, Any]], position: int) -> list[dict[str, Any]]:
    """Return the rows to replay, without their positions."""
    placed = [{**row, "place": place} for place, row in enumerate(rows)]
    return [{name: value for name, value in row.items() if name != "place"} for row in tail(placed, position)]


def _edited(at: int) -> dict[str, Any]:
    return {**RESUMED, "at": at, "edits": ["a=1"]}


BY = {"command": "save", "by": "a"}
FIRED = {"event": "fired"}


def test_only_external_commands_are_replayed_under_new_settings() -> None:
    again = [{**row, "again": True} for row in (WORK[1], FIRED)]
    assert _due([*WORK, BY, FIRED, *STOP, END, _edited(0)], 0) == again
    assert _due([*WORK, BY, FIRED, _edited(2)], 2) == again[1:]


def test_rows_not_replayed_before_a_second_crash_are_replayed_after_it() -> None:
    rows = [*WORK, BY, FIRED, _edited(0), WORK[0], WORK[1]]  # under new settings, only the first of two was
    later = [*rows, BY, RESUMED]
    assert _due([*rows, RESUMED], 0) == [*WORK[:2], {**FIRED, "again": True}]
    assert _due(later, len(rows)) == [BY, {**FIRED, "again": True}]
    assert _due([*rows, FIRED, RESUMED], len(rows)) == [FIRED]
    assert _due([*rows, _edited(0)], 0) == [{**row, "again": True} for row in (WORK[1], FIRED)]


def test_losses_are_compared_over_the_shorter_sequence() -> None:
    row = {"event": "digest", "iteration": 9, "epoch": 0, "state": {"a": "1"}}
    replay = Replay(deque([{**row, "place": 0, "losses": "aaaaaaaabbbbbbbb"}]))
    assert replay.met({**row, "losses": "bbbbbbbb", "seconds": 3.0})
    assert replay.differs is None
