"""The run folder while it is removed or the disk is full: no loss is silent, and acknowledged commands are kept."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store import appending, chain
from sigma_store.checkpoints import store as checkpoint
from sigma_store.files import put_text
from sigma_store.folders import WrittenFolder
from sigma_store.run_folder import lock
from sigma_testing.journals import read_journal
from sigma_testing.steering import decisive, steered_environment
from sigma_training.commands.save import Save

RATE = "trainer.optimiser.learning_rate"


def told(sigma: Environment) -> list[str]:
    return [text for _, text in sigma.messages.entries_after(0)]


def rate(value: float) -> Callable[[Environment], Any]:
    return lambda sigma: sigma.set(RATE, value)


def on(sigma: Environment) -> Path:
    assert sigma.run_folder is not None
    return sigma.run_folder


def leave_as_killed(sigma: Environment, parent: Path) -> None:
    """Copy the run folder to `killed`, once the checkpoint that is written in the background is complete."""
    saver = sigma.trainer("trainer").session.checkpoints.saver
    assert saver is not None
    saver.wait()
    shutil.copytree(on(sigma), parent / "killed")


# -- removed -----------------------------------------------------------------------------------------------------------
REMOVED: dict[str, Callable[[Path], Any]] = {
    "journal": lambda run: (run / "journal.jsonl").unlink(),
    "metrics": lambda run: (run / "curves.bin").unlink(),
    "both": lambda run: [(run / name).unlink() for name in ("journal.jsonl", "curves.bin")],
    "folder": shutil.rmtree,
    "folders": lambda run: shutil.rmtree(run.parent),
    "renamed": lambda run: run.rename(run.with_name("elsewhere")),
}


@pytest.mark.parametrize("how", list(REMOVED))
def test_removed_files_of_a_run_folder_are_restored_and_reported(tmp_path: Path, how: str) -> None:
    def remove(sigma: Environment) -> None:
        sigma._runner.wait_for_checkpoints()
        REMOVED[how](on(sigma))

    script = {2: lambda s: s.send("save"), 4: rate(0.2), 6: remove, 8: rate(0.1)}
    with steered_environment(script, last=14) as sigma:
        sigma.folder, sigma.configuration = tmp_path / "runs", "name = 'x'\n"
        assert sigma.run().status == "finished"
        run, wanted = on(sigma), decisive(sigma.trainer("trainer"))
        assert [text for text in told(sigma) if "ALARM" in text and "was removed or replaced" in text]
        if os.name == "posix":
            assert not [text for text in told(sigma) if "cannot" in text]
    assert (run / "config.toml").read_text() == "name = 'x'\n"
    names = {*[".lock", "checkpoints", "config.toml", "journal.jsonl", "curves.bin", "plugins.json", "summary.json"]}
    assert {path.name for path in run.iterdir()} - {"curves.svg"} == names
    with steered_environment(last=14) as again:
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("trainer")) == wanted
    with steered_environment(last=16) as late:
        late.resume(run)
        late.run()
        assert late.get(RATE) == 0.1


def test_a_removed_run_folder_is_recreated_and_locked_again(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(sigma: Environment) -> None:
        with pytest.raises(SigmaStateError, match="another run writes to it") as error:
            lock(WrittenFolder(on(sigma)))
        seen.append(str(error.value))

    with steered_environment({3: lambda s: shutil.rmtree(on(s)), 5: rate(0.1), 6: look}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
    assert seen


def test_a_run_ends_with_an_error_if_its_folder_cannot_be_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(sigma: Environment) -> None:
        shutil.rmtree(tmp_path / "runs")
        (tmp_path / "runs").write_text("a file in its place")

    with steered_environment({3: remove}) as sigma:
        sigma.folder = tmp_path / "runs"
        with pytest.raises(SigmaCheckpointError, match="cannot be written"):
            sigma.run()
        assert sigma.state == "failed"
        assert len([text for text in told(sigma) if "journal.jsonl: cannot be written" in text]) == 1


# -- acknowledged ------------------------------------------------------------------------------------------------------
def full(handle: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_a_command_that_cannot_be_journalled_is_refused_with_a_message_and_kept_by_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(sigma: Environment) -> None:
        monkeypatch.setattr(appending, "_add", full)
        with pytest.raises(
            SigmaStateError,
            match="the last 1 rows cannot be written, .*, though applied: No space left on device. Free",
        ):
            sigma.set(RATE, 0.2)
        assert sigma.get(RATE) == 0.2  # requests are answered
        with pytest.raises(SigmaStateError, match="cannot be written"):
            sigma.send("save")
        leave_as_killed(sigma, tmp_path)
        monkeypatch.undo()
        sigma.set(RATE, 0.1)

    with steered_environment({5: refused}) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
        said = told(sigma)
    assert [text.partition("journal.jsonl: ")[2] for text in said if "journal.jsonl: " in text] == [
        "cannot be written: No space left on device. Free disk space. Training continues.",
        "can be written again; 3 queued rows are written.",
    ]
    assert [row["value"] for row in read_journal(on(sigma)) if row.get("command") == "set"] == [0.2, 0.1]
    with steered_environment() as again, steered_environment({5: rate(0.2)}) as plain:
        again.resume(tmp_path / "killed", log=lambda text: None)
        again.run()
        plain.run()
        assert decisive(again.trainer("trainer")) == decisive(plain.trainer("trainer"))
        assert 0.2 in [row.get("value") for row in read_journal(tmp_path / "killed")]


def test_a_command_is_acknowledged_once_it_is_on_disk_and_training_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk, came = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def fsync(handle: int) -> None:
        came.set()
        assert on_disk.wait(30)

    def send(sigma: Environment) -> None:
        monkeypatch.setattr(appending.os, "fsync", fsync)
        threads.append(threading.Thread(target=sigma.set, args=[RATE, 0.2]))
        threads[0].start()
        while not sigma.trainer("trainer").session.queue.awaits("set"):
            time.sleep(0.001)

    def look(sigma: Environment) -> None:
        assert sigma.get(RATE) == 0.2  # it has been applied, and training is three iterations further
        assert came.wait(30)
        assert threads[0].is_alive()
        on_disk.set()
        threads[0].join(30)
        assert not threads[0].is_alive()
        monkeypatch.undo()

    with steered_environment({4: send, 7: look}) as sigma:
        sigma.folder = tmp_path
        sigma.run()


def test_a_run_without_commands_never_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with steered_environment() as sigma:
        sigma.folder = tmp_path
        trainer, waited = threading.current_thread(), []
        fsync = os.fsync

        def watch(handle: int) -> None:
            waited.append(threading.current_thread())
            fsync(handle)

        sigma.open_run()
        monkeypatch.setattr(appending.os, "fsync", watch)
        session = sigma.trainer("trainer").session
        session.queue.claim()
        session.loop.begin(iterations=10)
        while session.loop.boundary():
            session.loop.advance(1)
            session.loop.settle()
        assert trainer not in waited
        session.loop.end()


def test_a_checkpoint_is_written_after_the_journal_rows_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    write, fsync = checkpoint.write, os.fsync

    def watched(path: Path, state: Any, *log: Any) -> Path:
        rows = (path.parents[2] / "journal.jsonl").read_text()
        assert state.chain["head"] in rows
        order.append("checkpoint")
        return write(path, state, *log)

    def slow(handle: int) -> None:
        time.sleep(0.01)
        fsync(handle)
        order.append("rows")

    with steered_environment({4: lambda s: s.trainer("trainer").session.commands.send(Save())}) as sigma:
        monkeypatch.setattr("sigma_store.checkpoints.writer.write", watched)
        sigma.folder = tmp_path
        sigma.run()
    assert order


# -- non-finite numbers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0])
@pytest.mark.parametrize("saved", [False, True])
def test_non_finite_settings_survive_resume_and_replay(tmp_path: Path, value: float, saved: bool) -> None:
    def act(sigma: Environment) -> None:
        sigma.attach("s", {"type": "sigma-hooks:switch", "name": "s"})
        sigma.set("trainer.switch.s", value)
        if saved:
            sigma.send("save")
        leave_as_killed(sigma, tmp_path)

    with steered_environment({3: act}) as sigma:
        sigma.folder = tmp_path
        sigma.run()
    for move in ("replay", "resume"):
        with steered_environment() as again:
            if move == "replay":
                assert again.replay(on(sigma))[1] == {}
            else:
                again.resume(tmp_path / "killed", log=lambda text: None)
                again.run()
            found = again.get("trainer.switch.s")
            assert np.array(found).tobytes() == np.array(value).tobytes()
            assert not [text for text in told(again) if "differs" in text]


def test_non_finite_parameters_round_trip_bit_for_bit(tmp_path: Path) -> None:
    wanted = np.array([[np.nan], [-0.0], [0.1]], np.float32)

    def act(sigma: Environment) -> None:
        sigma.set("trainer.network.layers.weights", wanted)
        leave_as_killed(sigma, tmp_path)
        sigma.stop()

    with steered_environment({3: act}) as sigma:
        sigma.folder = tmp_path
        sigma.run()

    def refuse(text: str) -> Any:
        raise ValueError(text)

    for path in (*on(sigma).rglob("*.json"), on(sigma) / "journal.jsonl"):
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
            json.loads(line, parse_constant=refuse)
    path = tmp_path / "killed" / "journal.jsonl"
    (row,) = (r for r in chain.read(path, pytest.fail).rows("trainer") if r.get("command") == "set")
    assert row["value"].tobytes() == wanted.tobytes()


def test_a_link_in_place_of_a_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "summary.json").symlink_to(tmp_path / "outside")
    with pytest.raises(SigmaStateError, match="summary.json: is a link, and nothing is written through"):
        put_text(tmp_path / "summary.json", "x")
    assert (tmp_path / "summary.json").is_symlink()
    assert not (tmp_path / "outside").exists()
