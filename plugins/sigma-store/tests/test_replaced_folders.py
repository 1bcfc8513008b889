"""The folder of a run is replaced while the run writes to it: nothing of another folder is touched, nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.contracts.storing import Checkpoint, Retention
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store.checkpoints import store
from sigma_store.checkpoints.store import list_checkpoints
from sigma_store.checkpoints.writer import Saver
from sigma_store.curves_file import CurvesFile
from sigma_store.files import put_text
from sigma_store.folders import WrittenFolder
from sigma_store.journal import Lines
from sigma_store.run_folder import lock, open_lock
from sigma_testing.checkpoints import newest_checkpoint
from sigma_testing.journals import read_journal
from sigma_testing.steering import decisive, steered_environment
from sigma_training.commands.save import Save

RATE = "trainer.optimiser.learning_rate"
REPLACED = "a link or another folder is in place of the run's. Put that back, or move this away to recreate it."


def on(sigma: Environment) -> Path:
    assert sigma.run_folder is not None
    return sigma.run_folder


def contents(folder: Path) -> dict[str, Any]:
    """Return all that a folder holds, with the times of the last changes."""
    return {
        str(path.relative_to(folder)): (path.is_dir() or path.read_bytes(), path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def theirs(run: Path) -> Path:
    """Return the folder of somebody else's run, with the names of a run folder, next to that of ours."""
    outside = run.parent.parent / "outside"
    shutil.copytree(run, outside)
    for path in (path for path in outside.rglob("*") if path.is_file()):
        path.write_text("theirs")
    for number in range(13):
        (outside / "checkpoints" / "trainer" / str(number)).mkdir(parents=True, exist_ok=True)
    return outside


SWAPS: dict[str, Callable[[Path, Path], Any]] = {
    "link": lambda run, outside: run.symlink_to(outside),
    "folder": lambda run, outside: outside.rename(run),
    "link to an empty folder": lambda run, outside: [
        shutil.rmtree(outside),
        outside.mkdir(),
        run.symlink_to(outside),
    ],
    "link to a file": lambda run, outside: [
        shutil.rmtree(outside),
        outside.write_text("theirs"),
        run.symlink_to(outside),
    ],
    "link to nothing": lambda run, outside: [shutil.rmtree(outside), run.symlink_to(outside)],
}


def swap(sigma: Environment, how: str, seen: dict[str, Any]) -> None:
    """Replace the run folder, once all is written."""
    sigma.send("save")
    sigma._runner.wait_for_checkpoints()
    run = on(sigma)
    outside = theirs(run)
    run.rename(run.with_name("moved"))
    SWAPS[how](run, outside)
    seen |= {"path": run if how == "folder" else outside, "before": contents(run)}


def back(sigma: Environment) -> None:
    """Put the run's own folder back."""
    run = on(sigma)
    run.unlink() if run.is_symlink() else run.rename(run.with_name("theirs"))
    run.with_name("moved").rename(run)


def save(sigma: Environment) -> None:
    sigma.trainer("trainer").session.commands.send(Save())


@pytest.mark.parametrize("how", list(SWAPS))
def test_a_run_whose_folder_is_replaced_ends_with_one_sentence_and_its_last_checkpoint_is_intact(
    tmp_path: Path, how: str
) -> None:
    seen: dict[str, Any] = {}
    with steered_environment({4: lambda s: swap(s, how, seen), 6: save, 9: save}) as sigma:
        sigma.folder = tmp_path / "runs"
        with pytest.raises(SigmaCheckpointError, match="Earlier checkpoints are intact") as error:
            sigma.run()
        run, alarms = on(sigma), [text for _, text in sigma.messages.entries_after(0) if "ALARM" in text]
    assert sigma.state == "failed"
    assert "\n" not in str(error.value)
    assert "/proc/" not in "".join([str(error.value), *alarms])
    if how in ("link", "folder"):
        assert f"cannot be written: {run}: {REPLACED}" in str(error.value)
    assert len(alarms) == 3, alarms  # of the journal, the metrics and the checkpoints: each says it once
    assert contents(run) == seen["before"]
    moved = run.with_name("moved")
    assert newest_checkpoint(moved, "trainer")[0] == moved / "checkpoints" / "trainer" / "4"


@pytest.mark.parametrize("how", ["link", "folder"])
def test_a_run_goes_on_without_loss_once_its_own_folder_is_put_back(tmp_path: Path, how: str) -> None:
    seen: dict[str, Any] = {}

    def refused(sigma: Environment) -> None:
        sigma._runner.wait_for_checkpoints()  # else the checkpoint of iteration 5 may meet the folder that was put back
        with pytest.raises(SigmaStateError, match=re.escape(f"though applied: {on(sigma)}: {REPLACED}")):
            sigma.set(RATE, 0.2)
        assert contents(on(sigma)) == seen["before"]
        back(sigma)

    with steered_environment(
        {4: lambda s: swap(s, how, seen), 5: save, 6: refused, 8: lambda s: s.set(RATE, 0.1)}
    ) as sigma:
        sigma.folder = tmp_path / "runs"
        assert sigma.run().status == "finished"
        run, wanted = on(sigma), decisive(sigma.trainer("trainer"))
    assert [row["value"] for row in read_journal(run) if row.get("command") == "set"] == [0.2, 0.1]
    assert [path.name for path in list_checkpoints(run, "trainer")] == ["4", "12"]
    with steered_environment() as again:
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("trainer")) == wanted


def test_a_run_whose_folder_is_given_by_a_link_is_resumed_and_keeps_to_that_folder(tmp_path: Path) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
    run, link = on(sigma), tmp_path / "link"
    outside = theirs(run)
    link.symlink_to(run)

    def point_elsewhere(sigma: Environment) -> None:
        sigma._runner.wait_for_checkpoints()
        link.unlink()
        link.symlink_to(outside)

    with steered_environment(last=8) as again:
        again.resume(link)
        assert again.run().iterations == 8
    before, ours = contents(outside), contents(run)
    with steered_environment({10: point_elsewhere}, last=12) as late:
        late.resume(link)
        with pytest.raises(SigmaCheckpointError, match=re.escape(REPLACED)):
            late.run()
    assert contents(outside) == before
    assert ours.keys() <= contents(run).keys()


def test_the_plugins_and_the_curves_of_a_run_are_not_written_to_another_folder(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
        swap(sigma, "link", seen)
        for write in (sigma._records.note_plugins, sigma._records.draw):
            with pytest.raises(SigmaStateError, match=re.escape(REPLACED)):
                write(sigma._records.run)
        assert contents(on(sigma)) == seen["before"]


def test_a_folder_that_is_replaced_between_two_runs_is_refused(tmp_path: Path) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
        run = on(sigma)
        outside = theirs(run)
        before = contents(outside)
        run.rename(run.with_name("moved"))
        run.symlink_to(outside)
        with pytest.raises(SigmaStateError, match=re.escape(f"{run}: {REPLACED}")):
            sigma.run()
        assert contents(outside) == before


def test_a_folder_that_is_removed_between_two_runs_is_made_again(tmp_path: Path) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
        shutil.rmtree(on(sigma))
        sigma.run()
        assert list_checkpoints(on(sigma), "trainer")


def test_the_folder_that_is_resumed_after_another_was_refused_is_locked(tmp_path: Path) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
    run, damaged = on(sigma), tmp_path / "damaged"
    shutil.copytree(run, damaged)
    (damaged / "config.toml").write_text("name = 'y'\n")
    with steered_environment(last=8) as again:
        with pytest.raises(SigmaCheckpointError, match="was changed since"):
            again.resume(damaged)
        again.resume(run)
        with pytest.raises(SigmaStateError, match="another run writes to it"):
            lock(WrittenFolder(run))
        lock(WrittenFolder(damaged)).close()
        again.run()
    assert [path.name for path in list_checkpoints(run, "trainer")] == ["4", "8"]


# -- each writer of files ----------------------------------------------------------------------------------------------
WRITERS: dict[str, Callable[[Path, WrittenFolder], Any]] = {
    "a text": lambda run, home: put_text(run / "summary.json", "x", home),
    "a new file of lines": lambda run, home: Lines(run / "journal.jsonl", folder=home),
    "a new file of curves": lambda run, home: CurvesFile(run / "curves.bin", folder=home),
    "the lock file": lambda run, home: os.close(open_lock(home)),
    "the lock": lambda run, home: lock(home).close(),
    "a checkpoint": lambda run, home: store.write(run / "checkpoints" / "trainer" / "7", Checkpoint({}, {}), run=home),
    "a checkpoint that is removed": lambda run, home: store.remove(run / "checkpoints" / "trainer" / "1", home),
    "checkpoints that are left over": lambda run, home: store.recover(run, pytest.fail, home),
    "a checkpoint that is set aside": lambda run, home: Saver(
        run / "checkpoints" / "trainer", refuse, run=home
    ).set_aside(0, 0),
    "a checkpoint that is no longer retained": lambda run, home: retain_one(run, home),
}


def refuse(text: str) -> None:
    """Raise the alarm of a saver."""
    raise SigmaStateError(text)


def retain_one(run: Path, home: WrittenFolder) -> None:
    saver = Saver(run / "checkpoints" / "trainer", refuse, run=home, retention=Retention(last=1))
    saver._clear(2)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder with two checkpoints, one that was left over, and another folder of that kind beside it."""
    run = tmp_path / "runs" / "run"
    for number in "12":
        store.write(run / "checkpoints" / "trainer" / number, Checkpoint({}, {}, score=None, keep=False))
    (run / "checkpoints" / "trainer" / ".3.part").mkdir()
    for name in ("summary.json", "journal.jsonl", "curves.bin"):
        (run / name).touch()
    theirs(run)
    return run


def test_a_folder_that_was_moved_is_the_run_s_when_it_comes_back_after_another_was_made(run: Path) -> None:
    home, moved = WrittenFolder(run), run.with_name("moved")
    with home.open():
        run.rename(moved)
    assert home.make()
    put_text(run / "summary.json", "made again", home)
    shutil.rmtree(run)
    moved.rename(run)
    put_text(run / "summary.json", "back", home)
    assert (run / "summary.json").read_text() == "back"
    assert not home.make()


@pytest.mark.parametrize("what", list(WRITERS))
def test_another_folder_in_place_of_the_one_that_was_opened_first_is_not_written_to(run: Path, what: str) -> None:
    home, outside = WrittenFolder(run), run.parent.parent / "outside"
    with home.open():
        before = contents(outside)
    run.rename(run.with_name("moved"))
    run.symlink_to(outside)
    with pytest.raises((SigmaStateError, SigmaCheckpointError), match=re.escape(REPLACED.removesuffix("."))):
        WRITERS[what](run, home)
    assert contents(outside) == before


@pytest.mark.parametrize("what", list(WRITERS))
def test_a_folder_that_is_replaced_once_it_is_open_is_written_to_where_it_is(
    run: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    outside, opened = run.parent.parent / "outside", WrittenFolder.open
    before, ours = contents(outside), contents(run)

    @contextmanager
    def late(self: WrittenFolder, *names: str, make: bool = False) -> Iterator[Path]:
        with opened(self, *names, make=make) as path:
            if not run.is_symlink():
                run.rename(run.with_name("moved"))
                run.symlink_to(outside)
            yield path

    monkeypatch.setattr(WrittenFolder, "open", late)
    with suppress(SigmaStateError):  # what is opened again is refused
        WRITERS[what](run, WrittenFolder(run))
    assert contents(outside) == before
    assert run.is_symlink()
    waits = what in ("a new file of lines", "a new file of curves", "the lock")  # for the run's own folder
    assert (contents(run.with_name("moved")) == ours) == waits


def test_a_run_writes_to_its_own_folder_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with steered_environment(last=4) as sigma:
        sigma.folder = Path("runs")
        sigma.run()
        monkeypatch.chdir(tmp_path / "there")
        (on(sigma) / "summary.json").unlink()
        sigma.trainers["trainer"].fit(iterations=3)
        assert on(sigma).parent == tmp_path / "here" / "runs"
        assert (on(sigma) / "summary.json").exists()
    assert not [*(tmp_path / "there").iterdir()]


def test_a_copy_in_place_of_the_folder_is_refused_until_it_is_moved_away(tmp_path: Path) -> None:
    with steered_environment(last=4) as sigma:
        sigma.folder = tmp_path / "runs"
        sigma.run()
        run = on(sigma)
        shutil.move(run, tmp_path / "first")
        shutil.copytree(tmp_path / "first", run)
        with pytest.raises(SigmaStateError, match=re.escape(f"{run}: {REPLACED}")):
            sigma.trainers["trainer"].fit(iterations=3)
        shutil.move(run, tmp_path / "copy")
        sigma.trainers["trainer"].fit(iterations=3)
        assert {"config.toml", "journal.jsonl", "summary.json"} <= {path.name for path in run.iterdir()}
