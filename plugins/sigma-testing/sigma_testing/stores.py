"""Conformance suite for stores of runs, to inherit in a plugin's tests.

::

    class TestFolders(StoreSuite):
        def make(self) -> Store:
            return FolderStore()
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.contracts import Media, MediaEntry, TextValue
from sigma_kernel.contracts.media import describe_media
from sigma_kernel.contracts.storing import Checkpoint, Retention, Store, StoredRun
from sigma_kernel.curves import Window
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaStateError
from sigma_testing.suite import Suite

ARRAYS: dict[str, Any] = {"network.w": np.array([[1.5, -0.0], [np.inf, 1e-45]], np.float32), "steps": np.arange(3)}
TEXT = "format = 1\n"  # a configuration


def checkpoint(iteration: int) -> Checkpoint:
    """Return a checkpoint after some iterations."""
    values = {"clock": {"iteration": iteration, "epoch": 0}, "journal": 0, "branch": 0, "x": [0.1, None, "a"]}
    return Checkpoint({**ARRAYS, "iteration": np.array(iteration)}, values, {"sigma-kernel": "1"})


def row(iteration: int, **more: Any) -> dict[str, Any]:
    """Return a row of a journal."""
    place = {"iteration": iteration, "epoch": 0, "seconds": 0.0, "session": 1}
    return {"trainer": "trainer", **place, "command": "pause", "by": "", **more}


def metrics_row(iteration: int, values: np.ndarray, **place: int) -> dict[str, Any]:
    """Return a row of metrics."""
    where = {"trainer": "trainer", "iteration": iteration, "epoch": iteration // 10, "seconds": iteration / 2}
    last, low, high, mean = map(float, (values[-1], values.min(), values.max(), values.mean()))
    numbers = {"last": last, "low": low, "high": high, "mean": mean, "count": values.size}
    return {**where, "branch": 0, "session": 0, "start": 0, **place, "values": {"training.loss": numbers}}


def media_entry(iteration: int, value: Media, **more: Any) -> tuple[MediaEntry, bytes]:
    """Return the entry and the bytes of a value that was published at ``a.b``."""
    about, data = describe_media("a.b", value)
    return MediaEntry(**{"trainer": "trainer", "name": "a.b", "epoch": 0, "seconds": 0.5, "branch": 0,
                         "iteration": iteration, **about, **more}), data  # fmt: skip


def publish_media(run: StoredRun, iteration: int, **place: int) -> None:
    """Publish the number of an iteration as a text."""
    about, data = describe_media("a.b", TextValue(str(iteration)))
    run.write(f"media/{about['key']}", data, durable=False)
    moment = {"trainer": "trainer", "iteration": iteration, "epoch": 0, "seconds": 0.5}
    run.media_log.append({**moment, "branch": 0, "session": 0, "start": 0, **place, "name": "a.b", **about})


def _accept(label: str, found: Checkpoint) -> None:
    """Take any checkpoint."""


class StoreSuite(Suite):
    """Conformance tests of a store: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Store:
        """Return the store under test."""

    def create(self, place: Path) -> StoredRun:
        """Return a new run of the name ``small``, with an own file ``notes.txt``."""
        return self.make().create(place, "small", warnings.warn, lambda run: TEXT, self._fill)

    def _fill(self, run: StoredRun) -> None:
        run.write("notes.txt", "by hand\n")

    def open(self, run: StoredRun) -> StoredRun:
        """Return a run once more, as another process would."""
        return self.make().open(Path(run.place), warnings.warn, self._fill)

    def test_new_runs_are_listed_in_order_and_never_replace_one_another(self, tmp_path: Path) -> None:
        """Give each run its own place."""
        places = [Path(self.create(tmp_path).place) for _ in range(3)]
        assert len({*places}) == 3, "runs of the same name share a place."
        assert [*self.make().runs([tmp_path])] == places, "runs() yields all runs, oldest first."

    def test_a_run_of_an_exact_name_is_where_that_says_and_is_not_replaced(self, tmp_path: Path) -> None:
        """Raise SigmaConfigError for a place that is taken."""
        given = (tmp_path, "0", warnings.warn, lambda run: TEXT, self._fill, True)
        run = self.make().create(*given)
        assert Path(run.place) == tmp_path / "0", "an exact name is the last part of the place."
        with pytest.raises(SigmaConfigError):
            self.make().create(*given)
        assert self.open(run).read("notes.txt") == b"by hand\n", "the run that was there is not replaced."

    def test_one_process_at_a_time_writes_to_a_run(self, tmp_path: Path) -> None:
        """Raise SigmaStateError for the second, until the first releases the run."""
        run = self.create(tmp_path)
        run.lock()
        assert self.make().is_locked(Path(run.place)), "is_locked() is False while the run is locked."
        with pytest.raises(SigmaStateError):
            self.open(run).lock()
        run.release()
        assert not self.make().is_locked(Path(run.place)), "is_locked() is True after the run was released."
        other = self.open(run)
        other.lock()
        other.release()

    def test_checkpoints_are_read_back_bit_for_bit(self, tmp_path: Path) -> None:
        """Return equal arrays, values and versions, in the order of iterations."""
        run = self.create(tmp_path)
        for number in (12, 3):
            run.checkpoints("trainer").write(str(number), checkpoint(number))
        stored = self.open(run).checkpoints("trainer")
        assert stored.numbers() == [3, 12], "numbers() are the iterations, in order."
        assert self.open(run).trainers() == ["trainer"], "trainers() lists trainers with checkpoints."
        label, copy = stored.newest(warnings.warn, _accept)
        assert label == "12", "newest() returns the last iteration's checkpoint."
        expected = checkpoint(12)
        assert copy.arrays.keys() == expected.arrays.keys(), "arrays are missing, or were added."
        for name, array in expected.arrays.items():
            assert copy.arrays[name].tobytes() == np.asarray(array).tobytes(), f"{name}: has other bits."
            assert copy.arrays[name].dtype == array.dtype, f"{name}: has another dtype."
        assert copy.values == expected.values, "values differ."

    def test_a_missing_checkpoint_is_an_error(self, tmp_path: Path) -> None:
        """Raise SigmaCheckpointError."""
        stored = self.create(tmp_path).checkpoints("trainer")
        with pytest.raises(SigmaCheckpointError):
            stored.read("7", warnings.warn)
        with pytest.raises(SigmaCheckpointError):
            stored.newest(warnings.warn, _accept)

    def test_a_refused_checkpoint_is_passed_over(self, tmp_path: Path) -> None:
        """Return the next older one, and log why."""

        def refuse(label: str, found: Checkpoint) -> None:
            if label == "12":
                raise SigmaCheckpointError("12: does not fit. Use another.")

        run, messages = self.create(tmp_path), list[str]()
        for number in (3, 12):
            run.checkpoints("trainer").write(str(number), checkpoint(number))
        assert self.open(run).checkpoints("trainer").newest(messages.append, refuse)[0] == "3"
        assert messages == ["12: does not fit. Use another."], "the log says why a checkpoint is passed over."

    def test_checkpoints_that_are_set_aside_are_none_of_the_newest(self, tmp_path: Path) -> None:
        """Leave the older ones, and label the others by their branch."""
        run = self.create(tmp_path)
        stored = run.checkpoints("trainer")
        for number in (3, 12):
            stored.write(str(number), checkpoint(number))
        stored.set_aside(3, 1)
        assert stored.numbers() == [3], "a checkpoint after the iteration is still among the newest."
        assert stored.list_abandoned(12) == ["12.branch-1"], "list_abandoned() names the checkpoints set aside."
        copy = stored.read("12.branch-1", warnings.warn)
        assert int(copy.arrays["iteration"]) == 12, "a checkpoint that was set aside cannot be read."

    def test_rows_of_the_journal_are_read_back_in_order(self, tmp_path: Path) -> None:
        """Return every row that was durable, with its place."""
        run = self.create(tmp_path)
        rows = [row(number) for number in range(3)]
        for each in rows:
            run.journal.append(each)
        assert run.journal.durable() is None, "durable() returns why rows could be lost (there is no reason)."
        run.release()
        part = self.open(run).excerpt(["trainer"], warnings.warn)
        assert part.is_complete, "a whole journal is complete."
        journal = part.rows("trainer")
        assert [each["iteration"] for each in journal] == [0, 1, 2], "rows are missing, or in another order."
        assert part.rows("other") == [], "another trainer has no rows."

    def test_checkpoints_that_are_saved_are_kept_as_hooks_ask_for(self, tmp_path: Path) -> None:
        """Keep the last ones, the best by score, and marked ones; a later save without a score keeps that."""
        run = self.create(tmp_path)
        stored = run.checkpoints("trainer")
        stored.retention = Retention(last=1, best=1)
        for number, (score, keep) in enumerate(((0.5, True), (0.9, False), (0.1, False), (0.2, False), (None, False))):
            stored.save(number, evolve(checkpoint(number), score=score, keep=keep))
            stored.flush()
        assert self.open(run).checkpoints("trainer").numbers() == [0, 1, 4], "keep the marked, the best and the last."
        stored.save(1, checkpoint(1))
        run.flush()
        assert stored.read_manifest("1", warnings.warn)["score"] == 0.9, "a save without a score keeps the earlier one."
        assert stored.epochs() == {0: 0, 1: 0, 4: 0}, "epochs() maps iterations of checkpoints to epochs."

    def test_what_was_saved_does_not_change_with_what_was_given(self, tmp_path: Path) -> None:
        """Share no array with the caller, in either direction."""
        run, given = self.create(tmp_path), np.arange(3.0)
        run.checkpoints("trainer").write("3", evolve(checkpoint(3), arrays={"x": given}))
        run.keep_initial("trainer", {"x": given})
        given[:] = -1
        for _ in range(2):
            for arrays in (run.checkpoints("trainer").read("3", warnings.warn).arrays, run.initial("trainer")):
                assert arrays["x"].tolist() == [0.0, 1.0, 2.0], "an array is shared with the caller."
                arrays["x"][:] = -1
        assert run.initial("other") == {}, "another trainer has no initial values."

    def test_rows_of_metrics_become_curves(self, tmp_path: Path) -> None:
        """Yield the rows in their order; a number that is not finite is None."""
        run = self.create(tmp_path)
        for number, loss in ((10, 0.5), (20, float("nan"))):
            place = {"trainer": "trainer", "iteration": number, "epoch": 0, "seconds": 0.5}
            values = {"training.loss": {"last": loss, "low": loss, "high": loss}}
            run.metrics.append({**place, "branch": 0, "session": 0, "start": 0, "values": values})
        assert run.journal.durable() is None
        rows = [*self.open(run).metric_rows(warnings.warn)]
        assert [each["iteration"] for each in rows] == [10, 20], "rows are missing, or in another order."
        assert rows[1]["values"]["training.loss"]["last"] is None, "a number that is not finite reads back as None."
        curves = self.open(run).curves(warnings.warn)
        assert curves["trainer"].curves()["training.loss"].values[0] == 0.5

    def test_media_are_read_back_as_they_were_published(self, tmp_path: Path) -> None:
        """List them by branch and iteration, without those that were removed or replaced; keep none, or all of this."""
        run = self.create(tmp_path)
        if not run.media_log.is_kept:
            pytest.skip("this store keeps no media.")
        for number, place in ((1, {}), (2, {}), (3, {}), (2, {"branch": 1, "start": 1})):
            publish_media(run, number, **place)
        reader = self.open(run)
        assert [(entry.branch, entry.iteration) for entry in reader.media()] == [(0, 1), (0, 2), (0, 3), (1, 2)]
        assert [entry.is_left for entry in reader.media()] == [False, True, True, False], (
            "a branch was left at iteration 1."
        )
        assert [reader.medium(entry).encode() for entry in reader.media("trainer", "a.b")] == [b"1", b"2", b"3", b"2"]
        assert reader.media("trainer", "a") == reader.media("other") == [], "media have other names."
        before = reader.version("media")
        run.media_log.append({"trainer": "trainer", "removed": [["a.b", 0, 3]]})
        run.remove(f"media/{reader.media()[2].key}")
        run.remove("media/none.txt")
        assert reader.version("media") != before, "a version is that of before."
        assert [(entry.branch, entry.iteration) for entry in reader.media()] == [(0, 1), (0, 2), (1, 2)]
        publish_media(run, 2, branch=1, start=1, session=1)
        assert [(entry.branch, entry.iteration) for entry in reader.media()] == [(0, 1), (0, 2), (1, 2)], (
            "a resume replaces."
        )

    @pytest.mark.parametrize("most", [5, 40, 1000])
    def test_curves_are_answered_in_as_many_points_as_are_asked_for(self, tmp_path: Path, most: int) -> None:
        """Join neighbours without losing an extreme, a mean or a number of values; leave out what is not asked for."""
        run, draw = self.create(tmp_path), np.random.default_rng(0).normal(size=(300, 4))
        for number, own in enumerate(draw, 1):
            run.metrics.append(
                metrics_row(4 * number, own, start=0 if number <= 200 else 800, branch=int(number > 200))
            )
        assert run.journal.durable() is None
        branched = self.open(run).curves(warnings.warn, Window(names=["training.loss"], most=most))["trainer"]
        assert [*branched.lines] == ["training.loss"], "curves() has names that are not asked for."
        assert [branch.number for branch in branched.branches] == [0, 1], "a branch is missing."
        curve = branched.curves()["training.loss"]
        assert most / 8 <= len(curve.values) <= most or len(curve.values) == len(draw), "curves() has other points."
        assert (curve.low.min(), curve.high.max()) == (draw.min(), draw.max()), "an extreme is lost."
        assert curve.counts.sum() == draw.size, "a point does not say how many values it stands for."
        assert np.isclose(curve.means @ curve.counts / draw.size, draw.mean()), "the means are others."
        assert (curve.iterations[-1], curve.values[-1]) == (1200, draw[-1, -1]), "the newest value is missing."

    def test_curves_are_answered_for_a_part_of_an_axis(self, tmp_path: Path) -> None:
        """Return the points of the part, and one more at each side."""
        run = self.create(tmp_path)
        for number in range(1, 101):
            run.metrics.append(metrics_row(number, np.array([number])))
        assert run.journal.durable() is None
        for over, span in (("iteration", (20, 30)), ("second", (10.0, 15.0))):
            curves = self.open(run).curves(warnings.warn, Window(span=span, over=over))["trainer"].curves()
            assert curves["training.loss"].iterations.tolist() == [*range(19, 32)], f"another part over {over}s."

    def test_points_of_a_curve_are_read_on_from_a_cursor(self, tmp_path: Path) -> None:
        """Return those of a window without a cursor; with one, all that came since, on the branch where they came."""
        run = self.create(tmp_path)
        reader, cursor, seen = self.open(run), 0, list[tuple[int, int]]()
        assert reader.points("trainer", "training.loss", Window()) == (0, []), "there are points before the first."
        for number in range(1, 61):
            place = {"branch": 1, "start": 20} if number > 40 else {}
            run.metrics.append(metrics_row(number - 20 * (number > 40), np.array([number]), **place))
            if number % 15 == 0:
                assert run.journal.durable() is None
                cursor, stretches = reader.points("trainer", "training.loss", Window(), cursor)
                seen += [(stretch.branch, at) for stretch in stretches for at in stretch.curve.iterations.tolist()]
        wanted = [*((0, at) for at in range(1, 41)), *((1, at) for at in range(21, 41))]
        assert seen == wanted, "points are missing, or come twice."
        few = reader.points("trainer", "training.loss", Window(most=10))
        assert few[0] == cursor, "a cursor depends on the window."
        assert sum(stretch.curve.counts.sum() for stretch in few[1]) == 60

    def test_a_cursor_does_not_go_on_over_points_that_a_resume_replaced(self, tmp_path: Path) -> None:
        """Answer 0 without points however many the new session has by then, also if none is of that name."""
        run, wanted = self.create(tmp_path), Window()
        for number in range(1, 31):
            run.metrics.append(metrics_row(number, np.array([1.0])))
        assert run.journal.durable() is None
        again = self.open(run)
        again.lock()
        again.reopen(None, again.excerpt(["trainer"], warnings.warn))
        before, _ = again.points("trainer", "training.loss", wanted)
        for number in range(21, 61):
            values = {
                "other" if number == 21 else "training.loss": metrics_row(1, np.array([2.0]))["values"]["training.loss"]
            }
            again.metrics.append({**metrics_row(number, np.array([2.0]), session=1, start=20), "values": values})
            if number in (21, 22, 30, 60):
                assert again.journal.durable() is None
                points = again.points("trainer", "training.loss", wanted, before)
                assert points == (0, []), "points go on after those that were replaced."
        cursor, (stretch,) = again.points("trainer", "training.loss", wanted)
        assert stretch.curve.iterations.tolist() == [*range(1, 21), *range(22, 61)]
        again.metrics.append(metrics_row(61, np.array([3.0]), session=1, start=20))
        assert again.journal.durable() is None
        _, (added,) = again.points("trainer", "training.loss", wanted, cursor)
        assert added.curve.iterations.tolist() == [61], "a cursor of the new session does not go on."
        again.release()

    def test_rows_that_a_run_was_reopened_for_follow_those_that_are_there(self, tmp_path: Path) -> None:
        """Replace what a killed process measured after the start of the next one."""
        run = self.create(tmp_path)
        for number in range(1, 31):
            run.metrics.append(metrics_row(number, np.array([1.0 if number <= 20 else -9.0])))
        assert run.journal.durable() is None
        again = self.open(run)
        again.lock()
        again.reopen(None, again.excerpt(["trainer"], warnings.warn))
        again.metrics.append(metrics_row(25, np.array([2.0]), session=1, start=20))
        assert again.journal.durable() is None
        for most in (1000, 6):
            curve = self.open(run).curves(warnings.warn, Window(most=most))["trainer"].curves()["training.loss"]
            assert curve.counts.sum() == 21, "rows that were replaced are still there, or others are not."
            assert (curve.low.min(), curve.high.max()) == (1.0, 2.0)
        again.release()

    def test_a_run_goes_on_after_its_rows_with_a_configuration_that_is_committed(self, tmp_path: Path) -> None:
        """Append after the rows that are there; write a new configuration only once that is committed."""
        run = self.create(tmp_path)
        run.journal.append(row(0))
        assert run.journal.durable() is None
        run.release()
        again = self.open(run)
        again.lock()
        again.recover(warnings.warn)
        again.reopen(TEXT + "# new\n", again.excerpt(["trainer"], warnings.warn))
        resumed = {"event": "resumed", "from": 0, "at": 0, "edits": [], "configuration": again.journal.configuration}
        again.journal.append({name: value for name, value in row(1, **resumed).items() if name != "command"})
        assert again.read("config.toml") == TEXT.encode(), "the configuration is written by commit()."
        again.commit()
        again.release()
        assert self.open(run).read("config.toml") == (TEXT + "# new\n").encode(), "commit() writes the configuration."
        rows = self.open(run).excerpt(["trainer"], warnings.warn).rows("trainer")
        assert [each["iteration"] for each in rows] == [0, 1], "rows are missing, or in another order."

    def test_a_run_that_cannot_be_described_leaves_nothing(self, tmp_path: Path) -> None:
        """Raise what ``describe`` raised."""

        def fail(run: StoredRun) -> str:
            raise SigmaConfigError("small: cannot be described. Leave that out.")

        with pytest.raises(SigmaConfigError):
            self.make().create(tmp_path, "small", warnings.warn, fail, self._fill)
        assert [*self.make().runs([tmp_path])] == [], "a failed create() leaves a run behind."

    def test_there_is_nothing_to_open_where_no_run_is(self, tmp_path: Path) -> None:
        """Raise SigmaCheckpointError."""
        with pytest.raises(SigmaCheckpointError):
            self.make().open(tmp_path / "none", warnings.warn, self._fill)

    def test_named_bytes_are_whole(self, tmp_path: Path) -> None:
        """Replace bytes of the same name; other names do not exist."""
        run = self.create(tmp_path)
        for text in ("first", "second, which is longer"):
            run.write("summary.json", text)
        run.write("images/one.png", b"\x00\xff", durable=False)
        again = self.open(run)
        assert again.read("summary.json") == b"second, which is longer"
        assert again.read("images/one.png") == b"\x00\xff"
        assert again.read("notes.txt") == b"by hand\n", "create() fills the run."
        assert again.read("config.toml") == TEXT.encode(), "the configuration is the text of describe()."
        assert again.read("other.txt") is None, "read() returns None where there is nothing."

    def test_a_version_changes_with_what_it_is_of(self, tmp_path: Path) -> None:
        """Return another value after a write, the same one without, and None for what there is not."""
        run = self.create(tmp_path)
        reader = self.open(run)
        assert reader.version("summary.json") is None, "version() is None where there is nothing."
        run.write("summary.json", "first")
        run.journal.append(row(0))
        assert run.journal.durable() is None
        before = [reader.version(name) for name in ("summary.json", "journal")]
        assert None not in before, "version() is None where there is something."
        assert [reader.version(name) for name in ("summary.json", "journal")] == before, "nothing has changed."
        run.write("summary.json", "second, which is longer")
        run.journal.append(row(1))
        assert run.journal.durable() is None
        after = [reader.version(name) for name in ("summary.json", "journal")]
        assert all(old != new for old, new in zip(before, after, strict=True)), "a version is that of before."

    def test_the_rows_of_the_journal_can_be_shown(self, tmp_path: Path) -> None:
        """Yield all rows in their order."""
        run = self.create(tmp_path)
        for number in (0, 1):
            run.journal.append(row(number))
        assert run.journal.durable() is None
        rows = [each for each in self.open(run).journal_rows() if each.get("trainer") == "trainer"]
        assert [each["iteration"] for each in rows] == [0, 1], "rows are missing, or in another order."
