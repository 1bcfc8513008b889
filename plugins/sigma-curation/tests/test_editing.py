"""Edits of the data, the batch size and the number of epochs during a run: when they act, and that all is repeated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_curation.edits import Edited
from sigma_kernel.clock import every
from sigma_kernel.contracts import Program, Step
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_store.curves import read_curves, rows as metric_rows
from sigma_testing.doing import Do
from sigma_testing.journals import forge_journal, read_journal
from sigma_testing.null import NullBackend
from sigma_testing.steering import (
    Sweep,
    crash,
    decisive,
    small_environment,
    state_bytes,
    steered_environment,
    train_until_crash,
    wait_until,
)
from sigma_training.data.dataset import Rows
from sigma_training.history.rewind import RewindBuffer
from sigma_training.session.session import Session
from sigma_training.trainer import NetworkTrainer

Script = Mapping[int, Callable[[Environment], Any]]
DRAW = np.random.default_rng(7)  # as small_environment draws its rows
X = DRAW.normal(size=(23, 3)).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32)


def trainer(sigma: Environment) -> NetworkTrainer:
    return sigma.trainer("trainer")


def session(sigma: Environment) -> Session:
    return trainer(sigma).session


def counts(sigma: Environment, split: str = "training") -> list[int]:
    return [sigma.get(f"trainer.data.{split}.{what}") for what in ("rows", "excluded", "relabelled")]


def on(*blocks: Any, epochs: int = 3, **settings: Any) -> dict[str, bytes]:
    """Return the arrays after training on other data."""
    with small_environment(Sweep(), **settings) as sigma:
        trainer(sigma).data = Rows(*blocks)
        trainer(sigma).fit(epochs=epochs)
        return state_bytes(trainer(sigma))


# -- what they do ------------------------------------------------------------------------------------------------------
def test_an_excluded_row_is_as_if_it_were_not_in_the_data() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.exclude([22, 4, 5])
        trainer(sigma).fit(epochs=3)
        assert counts(sigma) == [20, 3, 0]
        assert session(sigma).moment.iteration == 3 * 4
        kept = np.delete(np.arange(23), [4, 5, 22])
        assert state_bytes(trainer(sigma)) == on({"inputs": X[kept], "targets": Y[kept]})


def test_a_relabelled_row_is_as_if_the_data_held_that_label() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.relabel([3, 9], [0.25])
        trainer(sigma).fit(epochs=3)
        assert counts(sigma) == [23, 0, 2]
        changed = Y.copy()
        changed[[3, 9]] = 0.25
        assert state_bytes(trainer(sigma)) == on({"inputs": X, "targets": changed})
        assert (trainer(sigma).view.rows("training", [3])["targets"] == Y[3]).all()  # the data are as they were


def test_rows_of_several_blocks_are_numbered_over_all_and_an_empty_block_is_dropped() -> None:
    blocks = [{"inputs": X[rows], "targets": Y[rows]} for rows in (range(8), range(8, 13), range(13, 23))]
    with small_environment(Sweep()) as sigma:
        trainer(sigma).data = Rows(*blocks)
        sigma.exclude([*range(8, 13), 14])
        sigma.relabel(15, [0.5])
        trainer(sigma).fit(epochs=3)
        last = {"inputs": np.delete(X[13:], 1, 0), "targets": np.delete(Y[13:], 1, 0)}
        last["targets"][1] = 0.5
        assert state_bytes(trainer(sigma)) == on(blocks[0], last)
        assert [*trainer(sigma).view.losses().rows] == [*range(8), 13, *range(15, 23)]


def test_edits_act_when_the_next_epoch_begins() -> None:
    seen: list[tuple[int, int, int]] = []
    look = Do(
        every=every(1, "iteration"),
        does=lambda context: seen.append(
            (context.moment.iteration, context.moment.epoch, context.read("data.training.rows"))
        ),
        reads=["data.training.rows"],
    )
    with steered_environment({7: lambda sigma: sigma.exclude(range(13))}, last=14, hooks={"look": look}) as sigma:
        sigma.run()
    assert seen[:10] == [(n, n // 5, 23) for n in range(1, 11)]
    assert seen[10:] == [(11, 2, 10), (12, 3, 10), (13, 3, 10), (14, 4, 10)]  # two iterations an epoch


def test_two_edits_before_an_epoch_ends_act_together_and_the_last_one_wins() -> None:
    script: Script = {
        1: lambda sigma: [sigma.exclude([0, 1]), sigma.relabel(2, [0.5])],
        3: lambda sigma: [sigma.include(0), sigma.relabel(2, [0.75]), sigma.relabel(3, [1.0]), sigma.relabel(3, None)],
    }
    with steered_environment(script, last=12) as sigma:
        sigma.run()
        assert trainer(sigma).view.edits() == {"training": {"excluded": [1], "labels": {2: [0.75]}}}
        assert counts(sigma) == [22, 1, 1]
    changed = Y.copy()
    changed[2] = 0.75
    with steered_environment({4: lambda sigma: [sigma.exclude(1), sigma.relabel(2, [0.75])]}, last=12) as other:
        other.run()
        assert state_bytes(trainer(other)) == state_bytes(trainer(sigma))


def test_an_edit_in_the_last_epoch_waits_for_the_training_to_come() -> None:
    with (
        steered_environment({4: lambda sigma: sigma.exclude(1)}, last=99, epochs=1) as sigma,
        steered_environment({}, 99, epochs=1) as plain,
    ):
        sigma.run()
        plain.run()
        assert state_bytes(trainer(sigma)) == state_bytes(trainer(plain))
        assert counts(sigma) == [23, 0, 0]
        assert trainer(sigma).view.edits()["training"]["excluded"] == [1]
        trainer(sigma).fit(iterations=1)
        assert counts(sigma) == [22, 1, 0]


def test_an_edit_at_the_beginning_of_an_epoch_acts_at_once_also_while_paused() -> None:
    script: Script = {5: lambda sigma: [sigma.pause(), sigma.exclude(1), sigma.go()]}
    with steered_environment(script, last=6) as sigma:
        sigma.run()
        assert counts(sigma) == [22, 1, 0]


def test_hooks_measure_the_edited_split_and_evaluate_the_whole_one() -> None:
    found: list[float] = []
    measure = Do(does=lambda context: found.append(context.evaluate("validation", {})["loss"]), splits=["validation"])
    with small_environment(Sweep(), hooks={"measure": measure}) as sigma:
        sigma.exclude(range(1, 23), "validation")
        trainer(sigma).fit(epochs=1)
        prediction = X @ session(sigma).host("network.layers.weights")
        rows = ((prediction - Y) ** 2)[:, 0]
        assert found == [pytest.approx(rows[0], rel=1e-5)]
        assert trainer(sigma).evaluate("validation", edited=True)["loss"] == found[0]
        assert trainer(sigma).evaluate("validation")["loss"] == pytest.approx(rows.mean(), rel=1e-5)
        assert counts(sigma, "validation") == [1, 22, 0]
        assert counts(sigma) == [23, 0, 0]


def test_a_goal_in_epochs_holds_when_edits_change_their_length() -> None:
    with steered_environment({2: lambda sigma: sigma.exclude(range(13))}, last=99) as sigma:
        trainer(sigma).fit(epochs=4)
        assert (session(sigma).moment.epoch, session(sigma).moment.iteration) == (4, 5 + 3 * 2)
    with steered_environment({2: lambda sigma: sigma.exclude(range(13))}, last=99, epochs=3) as sigma:
        sigma.run()
        assert (session(sigma).moment.epoch, session(sigma).moment.iteration) == (3, 5 + 2 * 2)
        assert sigma.get("trainer.goal") == 9


def test_a_step_of_epochs_ends_with_an_epoch_of_another_length() -> None:
    paused: list[tuple[int, int]] = []
    stop = Do(
        every=every(1, "pause"),
        does=lambda context: [
            paused.append((context.moment.iteration, context.moment.epoch)),
            context.command("stop") if len(paused) > 1 else None,
        ],
    )
    script: Script = {2: lambda sigma: [sigma.exclude(range(13)), sigma.pause(), sigma.step(2, "epoch")]}
    with steered_environment(script, last=99, hooks={"stop": stop}) as sigma:
        sigma.run()
    assert paused == [(2, 0), (7, 2)]


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda s: s.exclude(23), "exclude: 'training': there is no row 23. Rows are numbered from 0 to 22."),
        (lambda s: s.relabel(23, [1.0]), "relabel: 'training': there is no row 23."),
        (lambda s: s.exclude(1, "tests"), "exclude: the data has no split 'tests'. There are: training, validation."),
        (lambda s: s.exclude(range(23)), "data: all 23 rows would be left out. Keep some."),
        (lambda s: s.exclude(range(23), "validation"), "data: all 23 rows would be left out. Keep some."),
        (lambda s: s.exclude(range(19)), "data: a batch of 5 is larger than the data, 4 rows. Choose a smaller"),
        (lambda s: s.exclude(2), "exclude: changes nothing, as these rows are left out already."),
        (lambda s: s.include(3), "include: changes nothing, as none of these rows is left out."),
        (lambda s: s.relabel(4, [0.5]), "relabel: changes nothing, as these rows have this label already."),
        (lambda s: s.relabel(5, None), "relabel: changes nothing, as these rows have this label already."),
        (lambda s: s.relabel(1, "cat"), "'targets' holds numbers, of shape (1,) (float32), which 'cat' is not."),
        (lambda s: s.relabel(1, 2.0), "section 'targets' holds numbers, of shape (1,) (float32), which 2.0 is not."),
        (lambda s: s.relabel(1, [[1.0], [2.0, 3.0]]), "(float32), which [[1.0], [2.0, 3.0]] is not."),
        (lambda s: s.relabel(1, [True]), "(float32), which [True] is not."),
        (lambda s: s.relabel(1, [1e300]), "(float32), which [1e+300] is not."),
        (lambda s: s.relabel(1, {"targest": 1}), "relabel: no labels are in 'targest'. Did you mean 'targets'?"),
        (lambda s: s.set("trainer.batch_size", 22), "data: a batch of 22 is larger than the data, 21 rows."),
        (lambda s: s.set("trainer.batch_size", 0), "trainer.batch_size: must be a whole number, at least 1 (got 0)."),
        (lambda s: s.set("trainer.batch_size", 2.5), "must be a whole number, at least 1 (got 2.5)."),
        (lambda s: s.set("trainer.epochs", 1), "trainer.epochs: epoch 1 is over already (1 are done). To end"),
        (lambda s: s.set("trainer.epochs", inf), "trainer.epochs: must be a whole number, at least 1 (got inf)."),
        (lambda s: s.set("trainer.data.training.rows", 3), "trainer.data.training.rows: is read-only."),
    ],
)
def test_a_refused_edit_is_explained_and_changes_nothing(move: Any, message: str) -> None:
    with steered_environment() as sigma:
        sigma.exclude([1, 2])
        sigma.relabel(4, [0.5])
        trainer(sigma).fit(epochs=1)
        before, addresses = decisive(trainer(sigma)), sigma.registry.addresses()
        with pytest.raises(SigmaError) as error:
            move(sigma)
        assert message in str(error.value)
        assert decisive(trainer(sigma)) == before
        assert sigma.registry.addresses() == addresses


@pytest.mark.parametrize("rows", [[7, 12], [0]])
def test_a_label_that_a_cost_refuses_is_named_with_the_row_that_was_meant(rows: list[int]) -> None:
    with Environment("classes", seed=0) as sigma:
        sigma.create_trainer(
            data={"inputs": X, "targets": np.arange(23) % 3}, network="input(3) + output(3) + softmax_cross_entropy()"
        )
        sigma.prepare()
        with pytest.raises(SigmaError, match=f"'targets', row {rows[0]}: label 12 is not one of 3 classes"):
            sigma.relabel(rows, 12)


def test_rows_without_numbers_that_stay_the_same_are_not_edited() -> None:
    class Collected(Rows):
        has_row_numbers = False

    with small_environment(Sweep()) as sigma:
        trainer(sigma).data = Collected({"inputs": X, "targets": Y})
        with pytest.raises(SigmaError, match="exclude: the rows of 'training' have no numbers that stay the same"):
            sigma.exclude(1)


def test_dropped_batches_count_as_rows_that_are_missing() -> None:
    blocks = [{"inputs": X[rows], "targets": Y[rows]} for rows in (range(12), range(12, 23))]
    with small_environment(Sweep(), batch_size=10, last_batch="drop") as sigma:
        trainer(sigma).data = Rows(*blocks)
        with pytest.raises(SigmaError, match="no block holds a whole batch of 10"):
            sigma.exclude([*range(3), *range(12, 15)])
        sigma.exclude(range(3))
        trainer(sigma).fit(epochs=2)
        assert session(sigma).moment.iteration == 2  # the first block has none


def test_an_edit_of_other_data_than_those_of_the_run_is_refused_on_resume(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        sigma.exclude(20)
        trainer(sigma).fit(epochs=1)
        run = sigma.run_folder
    with small_environment(Sweep(), rows=15) as again:
        assert run is not None
        with pytest.raises(SigmaError, match="the rows of 'training' have changed since the training: 23 then, 15 now"):
            again.resume(run)


# -- undo, rewind, reset -----------------------------------------------------------------------------------------------
def test_undo_takes_back_edits_from_the_next_epoch_on() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.exclude([1, 2])
        sigma.relabel(3, [0.5])
        sigma.set("trainer.batch_size", 4)
        trainer(sigma).fit(epochs=1)
        assert (counts(sigma), sigma.get("trainer.data.batch_size")) == ([21, 2, 1], 4)
        sigma.undo()
        sigma.undo()
        assert trainer(sigma).view.edits() == {"training": {"excluded": [1, 2], "labels": {}}}
        assert (counts(sigma), sigma.get("trainer.data.batch_size")) == ([21, 2, 1], 4)  # in force until then
        assert sigma.get("trainer.batch_size") == 5
        sigma.undo()
        trainer(sigma).fit(epochs=1)
        assert (counts(sigma), trainer(sigma).view.edits(), session(sigma).state.data) == ([23, 0, 0], {}, {})


def test_a_rewind_restores_the_edits_of_its_moment_and_a_reset_none() -> None:
    with small_environment(Sweep(), batch_size=5) as sigma:
        trainer(sigma).fit(epochs=1)
        sigma.exclude([1, 2])
        sigma.set("trainer.batch_size", 7)
        trainer(sigma).fit(epochs=2)
        later = decisive(trainer(sigma))[0]
        assert (counts(sigma), sigma.get("trainer.data.batch_size")) == ([21, 2, 0], 7)
        sigma.rewind(1, "epoch")
        assert (counts(sigma), sigma.get("trainer.data.batch_size")) == ([23, 0, 0], 5)
        assert trainer(sigma).view.edits() == {}
        sigma.exclude([1, 2])
        sigma.set("trainer.batch_size", 7)
        trainer(sigma).fit(epochs=2)
        assert decisive(trainer(sigma))[0] == later
        sigma.reset()
        assert (counts(sigma), sigma.get("trainer.batch_size"), trainer(sigma).view.edits()) == ([23, 0, 0], 5, {})


# -- replay and resume -------------------------------------------------------------------------------------------------
EDITS: Script = {
    2: lambda sigma: [sigma.exclude([1, 2, 3]), sigma.exclude(5, "validation")],
    4: lambda sigma: sigma.relabel(4, [0.5]),
    7: lambda sigma: sigma.set("trainer.batch_size", 4),
    8: lambda sigma: [sigma.include(2), sigma.undo(), sigma.exclude(9)],
    12: lambda sigma: sigma.set("trainer.epochs", 9),
    13: lambda sigma: sigma.undo(),
    17: lambda sigma: [sigma.relabel(4, None), sigma.relabel(6, [0.25], "validation")],
}


@pytest.mark.parametrize(("at", "saved"), [(3, None), (3, 2), (5, None), (8, 6), (9, 9), (11, 9), (18, 2), (18, None)])
def test_a_run_that_ends_in_any_epoch_is_resumed_with_its_edits(tmp_path: Path, at: int, saved: int | None) -> None:
    script = dict(EDITS)
    if saved is not None:
        first = script.get(saved, lambda sigma: None)
        script[saved] = lambda sigma: [first(sigma), sigma.send("save") if sigma.folder else None]
    with steered_environment(script, last=24) as sigma:
        sigma.run()
        wanted = decisive(trainer(sigma))
    late = {n: act for n, act in script.items() if n > at or (n == at and n != saved)}
    ended = {n: act for n, act in script.items() if n not in late}
    last = lambda sigma: [ended.get(at, lambda sigma: None)(sigma), crash(sigma)]  # noqa: E731
    with steered_environment({**ended, at: last}, last=24) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with steered_environment({n: (lambda sigma, act=act: act(sigma)) for n, act in late.items()}, last=24) as again:
        again.resume(run)
        again.run()
        assert not [text for _, text in again.messages.entries_after(0) if "differs" in text]
        mine, theirs = decisive(trainer(again)), wanted
        assert mine[0] == theirs[0]
        assert {name: mine[1][name] for name in ("changes", "data", "cursor")} == {
            name: theirs[1][name] for name in ("changes", "data", "cursor")
        }
    with small_environment(Sweep()) as replayed:
        assert replayed.replay(run)[1] == {}


KILLED = """
import os, signal, sys
from pathlib import Path
from sigma_testing.steering import steered_environment
script = {
    2: lambda sigma: [sigma.exclude([1, 2, 3]), sigma.relabel(4, [0.5])],
    7: lambda sigma: [sigma.set("trainer.batch_size", 4), sigma.send("save") if "save" in sys.argv else None],
    8: lambda sigma: sigma.include(2),
    int(sys.argv[2]): lambda sigma: os.kill(os.getpid(), signal.SIGKILL),
}
with steered_environment(script, last=24) as sigma:
    sigma.folder = Path(sys.argv[1])
    sigma.run()
"""


@pytest.mark.parametrize(("at", "saves"), [(3, ()), (9, ()), (9, ("save",)), (11, ("save",))])
def test_a_run_that_is_killed_while_edits_wait_is_resumed_with_them(tmp_path: Path, at: int, saves: Any) -> None:
    script: Script = {
        2: lambda sigma: [sigma.exclude([1, 2, 3]), sigma.relabel(4, [0.5])],
        7: lambda sigma: [sigma.set("trainer.batch_size", 4), sigma.send("save") if saves and sigma.folder else None],
        8: lambda sigma: sigma.include(2),
    }
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(at), *saves], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    (run,) = tmp_path.iterdir()
    with (
        steered_environment({n: act for n, act in script.items() if n > at}, last=24) as again,
        steered_environment(script, last=24) as plain,
    ):
        again.resume(run)
        again.run()
        plain.run()
        assert decisive(trainer(again))[0] == decisive(trainer(plain))[0]
        assert session(again).state.data == session(plain).state.data
        assert session(again).moment.epoch == session(plain).moment.epoch
    with small_environment(Sweep()) as replayed:
        assert replayed.replay(run)[1] == {}


def test_the_journal_says_when_what_came_into_force(tmp_path: Path) -> None:
    with steered_environment({7: lambda s: [s.exclude([1, 2]), s.set("trainer.batch_size", 4)]}, last=12) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()[1:]]
    found = [row for row in rows if row.get("command") in ("exclude", "set") or row.get("event") == "data"]
    assert [(row["iteration"], row["epoch"]) for row in found] == [(7, 1), (7, 1), (10, 2)]
    assert found[0]["rows"] == [1, 2]
    assert found[2]["batch_size"] == 4
    assert found[2]["splits"] == {"training": {"rows": 21, "excluded": 2, "relabelled": 0}}


def test_what_is_wanted_and_what_is_in_force_are_parts_of_the_digests(tmp_path: Path) -> None:
    with steered_environment({2: lambda s: [s.exclude(1), s.send("save")], 6: save}, last=7) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    states = {row["iteration"]: row["state"] for row in read_journal(run) if row.get("event") == "digest"}
    assert [name in states[2] for name in ("changes", "data")] == [True, False]
    assert [name in states[6] for name in ("changes", "data")] == [True, True]


def save(sigma: Environment) -> None:
    sigma.send("save")


def test_a_replay_notices_what_came_into_force_elsewhere_or_with_other_rows(tmp_path: Path) -> None:
    with steered_environment({2: lambda sigma: sigma.exclude([1, 2])}, last=8) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None

    def less(rows: list[dict[str, Any]]) -> None:
        (found,) = (row for row in rows if row.get("event") == "data")
        found["splits"]["training"]["excluded"] = 1

    forge_journal(run, less)
    with small_environment(Sweep()) as other:
        assert '"excluded": 1' in other.replay(run)[1]["trainer"].partition("the replay has")[0]


def test_commands_at_the_iteration_at_which_an_epoch_begins_are_replayed_in_their_order(tmp_path: Path) -> None:
    """An operator may send commands, after those of the boundary have put edits in force."""
    script: Script = {
        4: lambda sigma: sigma.exclude(1),
        5: lambda sigma: [sigma.send("save"), sigma.exclude(2), sigma.relabel(3, [0.5])],
    }
    with steered_environment(script, last=8) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
        assert counts(sigma) == [21, 2, 1]
    assert run is not None
    rows = [row.get("command", row.get("event")) for row in read_journal(run) if row["iteration"] == 5]
    assert [row for row in rows if row != "digest"] == ["data", "save", "exclude", "relabel", "data"]
    with small_environment(Sweep()) as again:
        assert again.replay(run)[1] == {}


# -- marks -------------------------------------------------------------------------------------------------------------
def test_metrics_on_edited_splits_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RewindBuffer, "due", lambda self: False)
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        trainer(sigma).fit(epochs=1)
        sigma.exclude([1, 2], "validation")
        trainer(sigma).fit(epochs=1)
        run = sigma.run_folder
    assert run is not None
    rows = [*metric_rows(run, pytest.fail)]
    assert "edited" not in rows[0]
    assert rows[-1]["edited"] == ["validation"]
    assert "training.loss" in read_curves(run, pytest.fail)["trainer"].lines  # those that do not know it
    summary = json.loads((run / "summary.json").read_text())
    assert summary["edited"] == {"validation": {"rows": 21, "excluded": 2, "relabelled": 0}}


def test_a_run_without_edits_is_written_as_before(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        trainer(sigma).fit(epochs=1)
        run = sigma.run_folder
    assert run is not None
    assert "edited" not in (run / "summary.json").read_text()
    assert not [row for row in metric_rows(run, pytest.fail) if "edited" in row]
    assert '"event": "data"' not in (run / "journal.jsonl").read_text()


# -- the batch size ----------------------------------------------------------------------------------------------------
def test_a_batch_size_acts_from_the_next_epoch_on_as_if_it_were_configured() -> None:
    with small_environment(Sweep()) as sigma, small_environment(Sweep(), batch_size=7) as other:
        sigma.prepare()
        sigma.set("trainer.batch_size", 7)
        for one in (sigma, other):
            trainer(one).fit(epochs=2)
        assert state_bytes(trainer(sigma)) == state_bytes(trainer(other))
        sigma.set("trainer.batch_size", 23)
        assert (sigma.get("trainer.batch_size"), sigma.get("trainer.data.batch_size")) == (23, 7)
        trainer(sigma).fit(epochs=1)
        assert session(sigma).moment.iteration == 2 * 4 + 1
        assert (sigma.get("trainer.batch_size"), sigma.get("trainer.data.batch_size")) == (23, 23)


class Watched(NullBackend):
    """Notes in which threads steps were compiled, and cannot compile one for 8 rows."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def compile(self, step: Step, in_place: bool = True) -> Program:
        inputs = dict(zip((*step.state, *step.data), step.graph.inputs, strict=False))
        if inputs["inputs"].shape[0] == 8:
            raise RuntimeError("no such step")
        self.threads.append(threading.get_ident())
        return super().compile(step, in_place)


def test_a_batch_size_is_compiled_in_the_thread_that_sends_it_before_it_is_queued() -> None:
    backend, began, sent = Watched(), threading.Event(), threading.Event()
    wait = Do(every=every(1, "iteration"), does=lambda context: [began.set(), sent.wait(30)])
    with small_environment(Sweep(), backend=backend, hooks={"wait": wait}, epochs=3) as sigma:
        training = threading.Thread(target=sigma.run)
        training.start()
        assert began.wait(30)
        before = len(backend.threads)
        sender = threading.Thread(target=lambda: sigma.set("trainer.batch_size", 4))
        sender.start()
        wait_until(lambda: len(backend.threads) == before + 2)
        assert backend.threads[before:] == [sender.ident] * 2  # for 4 rows, and for the last 3
        wait_until(lambda: session(sigma).queue.awaits("set"))  # else training may end before it comes
        assert sigma.get("trainer.batch_size") == 5
        sent.set()
        sender.join(30)
        training.join(30)
        assert not training.is_alive()
        assert sigma.get("trainer.data.batch_size") == 4


def test_a_batch_size_that_cannot_be_compiled_is_refused() -> None:
    with small_environment(Sweep(), backend=Watched()) as sigma:
        trainer(sigma).fit(epochs=1)
        before = decisive(trainer(sigma))
        with pytest.raises(SigmaError, match="no such step"):
            sigma.set("trainer.batch_size", 8)
        assert decisive(trainer(sigma)) == before
        trainer(sigma).fit(epochs=1)


def test_a_hook_may_set_the_batch_size(tmp_path: Path) -> None:
    grow = Do(every=every(1, "epoch"), does=lambda context: context.command("set", pattern="batch_size", value=10))
    with small_environment(Sweep(), hooks={"grow": grow}, epochs=2) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert session(sigma).moment.iteration == 5 + 3
        run = sigma.run_folder
    assert run is not None
    with small_environment(Sweep(), hooks={"grow": grow}, epochs=2) as again:
        assert again.replay(run)[1] == {}


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("set", {"pattern": "batch_size", "value": 99}, "a batch of 99 is larger than the data, 23 rows"),
        ("set", {"pattern": "epochs", "value": 1}, "epoch 1 is over already"),
        ("exclude", {"rows": [23]}, "there is no row 23"),
        ("exclude", {"rows": [*range(23)], "split": "validation"}, "all 23 rows would be left out"),
    ],
)
def test_what_a_hook_sends_is_checked_as_well(command: str, arguments: dict[str, Any], message: str) -> None:
    hook = Do(every=every(1, "epoch"), does=lambda context: context.command(command, **arguments), on_error="ignore")
    with small_environment(Sweep(), hooks={"hook": hook}, epochs=3) as sigma:
        sigma.run()
        assert message in str(sigma.messages.entries_after(0))
        assert session(sigma).moment.epoch == 3
        assert session(sigma).state.changes == {}


def test_predictions_and_evaluation_keep_the_configured_batch_size() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        sigma.set("trainer.batch_size", 7)
        trainer(sigma).fit(epochs=1)
        assert session(sigma).setup.evaluator.batch_size == 5
        assert session(sigma).snapshot().values["batch_size"] == 5


# -- the number of epochs ----------------------------------------------------------------------------------------------
def test_training_ends_after_the_number_of_epochs_that_was_set_last() -> None:
    with steered_environment({7: lambda sigma: sigma.set("trainer.epochs", 3)}, last=99, epochs=9) as sigma:
        sigma.run()
        assert session(sigma).moment.epoch == 3
        assert sigma.get("trainer.epochs") == 3
    with steered_environment({7: lambda sigma: sigma.set("trainer.epochs", 4)}, last=99, epochs=2) as sigma:
        sigma.run()
        assert session(sigma).moment.epoch == 4


def test_the_number_of_epochs_can_be_undone() -> None:
    script: Script = {6: lambda sigma: sigma.set("trainer.epochs", 9), 7: lambda sigma: sigma.undo()}
    with steered_environment(script, last=99, epochs=2) as sigma:
        sigma.run()
        assert session(sigma).moment.epoch == 2


def test_the_number_of_epochs_takes_the_place_of_the_goal_of_fit_but_not_of_later_ones() -> None:
    with steered_environment({2: lambda sigma: sigma.set("trainer.epochs", 3)}, last=99) as sigma:
        trainer(sigma).fit(epochs=2)
        assert session(sigma).moment.epoch == 3
        trainer(sigma).fit(iterations=2)
        assert (session(sigma).moment.epoch, session(sigma).moment.iteration) == (3, 17)


def test_a_configuration_that_is_changed_on_resume_replaces_what_was_set() -> None:
    with small_environment(Sweep(), epochs=2) as sigma:
        sigma.prepare()
        sigma.set("trainer.epochs", 3)
        sigma.set("trainer.batch_size", 4)
        trainer(sigma).fit(epochs=1)
        saved = session(sigma).snapshot()
    with small_environment(Sweep(), epochs=5) as again:
        again.prepare()
        session(again).restore(saved)
        assert (again.get("trainer.epochs"), again.get("trainer.batch_size")) == (5, 4)
    with small_environment(Sweep(), epochs=2, batch_size=6) as again:
        again.prepare()
        session(again).restore(saved)
        assert (again.get("trainer.epochs"), again.get("trainer.batch_size")) == (3, 6)
        assert again.get("trainer.data.batch_size") == 6


# -- for monitors ------------------------------------------------------------------------------------------------------
def test_losses_of_rows_are_measured_in_the_thread_that_asks_while_training_goes_on() -> None:
    began, asked = threading.Event(), threading.Event()
    wait = Do(every=every(1, "iteration"), does=lambda context: [began.set(), asked.wait(0.01)])
    with small_environment(Sweep(), hooks={"wait": wait}) as sigma:
        training = threading.Thread(target=sigma.run)
        training.start()
        assert began.wait(30)
        steps, _ = session(sigma).ask(lambda: (session(sigma).present.copy_steps(), None))
        assert not any(name.startswith("optimiser") for name in steps.arrays)
        losses = trainer(sigma).view.losses("training")
        asked.set()
        sigma.stop()
        training.join(30)
        assert losses.rows.tolist() == list(range(23))
        assert losses.predicted is None  # there are no layers
        now = trainer(sigma).view.losses("training", 3)
        errors = ((X @ session(sigma).host("network.layers.weights") - Y) ** 2)[:, 0]
        assert now.rows.tolist() == np.argsort(-errors, kind="stable")[:3].tolist()
        np.testing.assert_allclose(now.losses, np.sort(errors)[::-1][:3], rtol=1e-5)


def test_a_swap_does_not_wait_for_losses_that_are_being_measured() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        before = session(sigma).background.evaluator
        with before.alone:  # as while they are measured
            sigma.exclude(1)
            trainer(sigma).fit(epochs=1)
        assert session(sigma).background.evaluator is not before


def test_rows_are_returned_by_number_in_any_order() -> None:
    blocks = [{"inputs": X[rows], "targets": Y[rows]} for rows in (range(8), range(8, 23))]
    with small_environment(Sweep()) as sigma:
        trainer(sigma).data = Rows(*blocks)
        sigma.prepare()
        sigma.exclude([1, 9])
        trainer(sigma).fit(epochs=1)
        found = trainer(sigma).view.rows("training", [9, 1, 22, 9])
        assert np.array_equal(found["inputs"], X[[9, 1, 22, 9]])
        assert trainer(sigma).view.rows("training", [])["inputs"].shape == (0, 3)
        assert trainer(sigma).view.rows("training", [0], prepared=True)["inputs"].dtype == np.float32
        with pytest.raises(SigmaError, match="there is no row 23"):
            trainer(sigma).view.rows("training", [23])
        with pytest.raises(SigmaConfigError, match="no split 'tests'"):
            trainer(sigma).view.rows("tests", [1])


def test_edited_rows_keep_their_numbers() -> None:
    edited = Edited(Rows({"inputs": X, "targets": Y}), {"excluded": [0, 2], "labels": [[1, {"targets": [9.0]}]]})
    assert edited.numbers(0)[:3].tolist() == [1, 3, 4]
    assert edited.block(0)["targets"][0] == 9.0
    assert edited.counts == {"rows": 21, "excluded": 2, "relabelled": 1}
    assert Y[1] != 9.0
