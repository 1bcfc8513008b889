"""The file of curves: whatever is asked of it, however large, and wherever it was cut or damaged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel.curves import Curve, Window
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_store import appending
from sigma_store.curves import CurvesReader, read_curves, rows
from sigma_store.curves_file import CurvesFile
from sigma_store.slots import FACTOR, SIZE

LOSS, SCORE = "training.loss", "validation.score"


def row(at: int, values: Mapping[str, Any], trainer: str = "a", **more: Any) -> dict[str, Any]:
    place = {"branch": 0, "session": 0, "start": 0}
    moment = {"trainer": trainer, "iteration": at, "epoch": at // 10, "seconds": at / 4}
    return {**moment, **place, **more, "values": {name: numbers(*of) for name, of in values.items()}}


def numbers(*measured: float) -> dict[str, float]:
    finite = [x for x in measured if np.isfinite(x)]
    return {
        "last": measured[-1], "low": min(finite, default=np.nan), "high": max(finite, default=np.nan),
        "mean": float(np.mean(finite)) if finite else np.nan, "count": len(finite),
    }  # fmt: skip


def written(run: Path, *given: Mapping[str, Any]) -> Path:
    file = CurvesFile(run / "curves.bin", pytest.fail)
    for one in given:
        file.append(one)
    return run


def curve(run: Path, name: str = LOSS, trainer: str = "a", **window: Any) -> Curve:
    return read_curves(run, pytest.fail, Window(**window))[trainer].curves()[name]


def steady(count: int, **more: Any) -> Iterator[dict[str, Any]]:
    """Yield rows of three values each, of a score in every fifth."""
    draw = np.random.default_rng(0).normal(size=(count, 3))
    for i in range(count):
        yield row(3 * i + 3, {LOSS: draw[i], **({SCORE: draw[i, :1]} if i % 5 == 0 else {})}, **more)


# -- what is asked for -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [1, 2, 7, 50, 333, 10_000])
def test_an_answer_has_no_more_points_than_asked_for_and_loses_no_extreme_and_no_value(
    most: int, tmp_path: Path
) -> None:
    run, draw = written(tmp_path, *steady(1000)), np.random.default_rng(0).normal(size=(1000, 3))
    for name, own in ((LOSS, draw), (SCORE, draw[::5, :1])):
        found = curve(run, name, most=most)
        assert min(len(own), most / FACTOR) <= len(found.values) <= most
        assert (found.low.min(), found.high.max()) == (own.min(), own.max())
        assert found.counts.sum() == own.size
        assert (found.means * found.counts).sum() / own.size == pytest.approx(own.mean(), abs=1e-12)
        assert (found.values[-1], found.iterations[-1]) == (own[-1, -1], 3000 if name == LOSS else 2988)
        ends = np.searchsorted(np.arange(3, 3001, 3 if name == LOSS else 15), found.iterations, "right")
        for start, end, low, mean in zip([0, *ends[:-1]], ends, found.low, found.means, strict=True):
            assert low == own[start:end].min()
            assert mean == pytest.approx(own[start:end].mean(), abs=1e-12)


def test_means_of_joined_points_are_finite_where_their_sum_is_not(tmp_path: Path) -> None:
    run = written(tmp_path, *(row(at, {LOSS: [1e308]}) for at in range(1000)))
    assert curve(run, most=7).means == pytest.approx(1e308)


@pytest.mark.parametrize("over", ["iteration", "epoch", "second"])
def test_a_range_is_answered_with_one_point_beyond_at_each_side(over: str, tmp_path: Path) -> None:
    run, per = written(tmp_path, *steady(1000)), {"iteration": 1.0, "epoch": 0.1, "second": 0.25}[over]
    found = curve(run, span=(900 * per, 1200 * per), over=over)
    assert found.iterations[0] <= 900 <= found.iterations[1]
    assert found.iterations[-2] <= 1200 + 10 * (over == "epoch")
    assert found.iterations[-1] >= 1200
    assert np.diff(found.iterations).tolist() == [3] * (len(found.iterations) - 1)
    few = curve(run, span=(900 * per, 1200 * per), over=over, most=10)
    assert 2 <= len(few.values) <= 10
    assert few.iterations[0] <= 900
    assert few.iterations[-1] >= 1200
    assert curve(run, span=(1e9, 2e9), over=over).iterations.tolist() == [3000]  # what lies nearest


def test_names_that_are_not_asked_for_are_left_out(tmp_path: Path) -> None:
    run = written(tmp_path, *steady(20))
    assert [*read_curves(run, pytest.fail, Window(names=[SCORE, "other"]))["a"].lines] == [SCORE]


def test_coarse_answers_end_a_branch_where_it_was_left(tmp_path: Path) -> None:
    before, after = steady(500), steady(300, branch=1, start=900)
    run = written(tmp_path, *before, *({**one, "iteration": one["iteration"] + 900} for one in after))
    for most in (5000, 100, 20):
        found = read_curves(run, pytest.fail, Window(most=most))["a"]
        assert [branch.number for branch in found.branches] == [0, 1]
        assert found.stretches(LOSS)[0].curve.iterations[-1] == 1500  # all of a branch that was left is there
        assert found.stretches(LOSS)[1].curve.iterations[-1] == 1800


def test_what_a_killed_session_measured_after_its_checkpoint_is_in_no_answer_however_coarse(tmp_path: Path) -> None:
    again = [row(at, {LOSS: [2.0]}, session=1, start=400) for at in range(403, 800, 3)]
    run = written(tmp_path, *(row(at, {LOSS: [1.0 if at <= 400 else -9.0]}) for at in range(1, 1000, 3)), *again)
    for most in (5000, 100, 20):
        found = curve(run, most=most)
        assert found.low.min() == 1.0
        assert found.counts.sum() == 134 + len(again)
        assert np.all(np.diff(found.iterations) > 0)


@pytest.mark.parametrize("most", [5000, 20])
def test_a_range_that_begins_beside_a_resume_has_the_point_before_it(most: int, tmp_path: Path) -> None:
    killed = (row(at, {LOSS: [1.0]}) for at in range(10, 1001, 10))
    run = written(tmp_path, *killed, *(row(at, {LOSS: [2.0]}, session=1, start=400) for at in range(450, 900, 10)))
    for span in ((420, 470), (401, 449), (405, 450)):
        found = curve(run, span=span, most=most)
        assert found.iterations.tolist() == [400, *range(450, span[1] // 10 * 10 + 11, 10)][: len(found.iterations)]
        assert found.iterations[0] == 400
        assert found.iterations[-1] >= span[1]


def test_two_trainers_and_changed_places_do_not_mix(tmp_path: Path) -> None:
    mixed = [
        row(at, {LOSS: [float(at)]}, "ab"[at % 2], **({"edited": ["training"]} if at > 60 else {})) for at in range(200)
    ]
    run = written(tmp_path, *mixed)
    for trainer, first in (("a", 0), ("b", 1)):
        assert curve(run, trainer=trainer).values.tolist() == [*range(first, 200, 2)]
        assert curve(run, trainer=trainer, most=30).counts.sum() == 100
    assert [*rows(run, pytest.fail)] == mixed


# -- as rows -----------------------------------------------------------------------------------------------------------
def test_rows_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    there = [*steady(40)]
    there[7] |= {"texts": {"text.sample": "ä\n" * 100}}
    there[9] |= {"texts": {"text.sample": ""}, "values": {}}
    there.insert(8, {**there[8], "values": {LOSS: numbers(0.5)}})  # of the same moment
    assert [*rows(written(tmp_path, *there), pytest.fail)] == there


def test_a_number_that_is_not_finite_is_none_in_a_row_and_nan_in_a_curve(tmp_path: Path) -> None:
    run = written(tmp_path, *(row(at, {LOSS: [x]}) for at, x in enumerate([1.0, np.nan, np.inf, 3.0, 5.0])))
    assert [one["values"][LOSS]["last"] for one in rows(run, pytest.fail)] == [1.0, None, None, 3.0, 5.0]
    assert np.isnan(curve(run).values).tolist() == [False, True, True, False, False]
    few = curve(run, most=2)
    assert (few.low.min(), few.high.max(), few.counts.tolist()) == (1.0, 5.0, [2, 1])


def test_the_points_of_a_name_are_read_without_those_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, read, real = [f"v{i}" for i in range(50)], list[int](), os.pread
    run = written(tmp_path, *(row(at, {name: [float(at)] for name in names}) for at in range(1, 21)))
    levels = CurvesReader(run).look_through(pytest.fail)
    monkeypatch.setattr(os, "pread", lambda handle, size, at: read.append(at) or real(handle, size, at))
    end, (stretch,) = levels.points("a", "v7", Window(), 0)
    monkeypatch.undo()
    assert (end, stretch.curve.iterations.tolist()) == (20, [*range(1, 21)])
    assert len(read) <= 20


# -- while it is written -----------------------------------------------------------------------------------------------
def test_a_reader_sees_what_was_added_and_reads_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, reader, read = CurvesFile(tmp_path / "curves.bin"), CurvesReader(tmp_path), list[int]()
    real = os.pread

    def pread(handle: int, size: int, at: int) -> bytes:
        read.append(len(data := real(handle, size, at)))
        return data

    for at, one in enumerate(steady(500)):
        file.append(one)
        if at % 100 == 99:
            monkeypatch.setattr(os, "pread", pread)
            assert reader.read(pytest.fail, Window(most=16))["a"].curves()[LOSS].iterations[-1] == one["iteration"]
            monkeypatch.undo()
    assert sum(read) < 1.2 * file.size


def test_a_reader_follows_a_file_that_was_replaced(tmp_path: Path) -> None:
    reader = CurvesReader(written(tmp_path, *steady(50)))
    assert len(reader.read(pytest.fail)["a"].curves()[LOSS].values) == 50
    (tmp_path / "curves.bin").unlink()
    written(tmp_path, *steady(7))
    assert len(reader.read(pytest.fail)["a"].curves()[LOSS].values) == 7


# -- cut, damaged, full ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    there = [*steady(30)]
    there[4] |= {"texts": {"said": "x" * 200}}
    return (written(tmp_path_factory.mktemp("run"), *there) / "curves.bin").read_bytes()


def test_a_file_that_ends_at_any_byte_is_read_up_to_there_and_continued(whole: bytes, tmp_path: Path) -> None:
    there = [*rows(written(tmp_path, *()), pytest.fail)]
    path, before = tmp_path / "curves.bin", 0
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        found = read_curves(tmp_path, pytest.fail)
        count = len(found["a"].curves().get(LOSS, curve_of_none()).values) if found else 0
        assert before <= count <= before + 1
        before = count
        if size % 11 == 0:
            written(tmp_path, row(1000, {LOSS: [7.0], "new": [8.0]}, session=1, start=99))
            after = read_curves(tmp_path, pytest.fail)["a"].curves()
            assert after[LOSS].values.tolist()[-1] == after["new"].values.tolist()[-1] - 1 == 7.0
            assert len(after[LOSS].values) == count + 1
    assert before == 30
    assert there == []


def curve_of_none() -> Curve:
    return Curve(*(np.zeros(0) for _ in range(6)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damage_loses_the_slots_that_it_hits_and_is_logged(whole: bytes, tmp_path_factory: Any, data: Any) -> None:
    run, at = tmp_path_factory.mktemp("run"), data.draw(st.integers(0, len(whole) // SIZE - 1))
    damage = data.draw(st.binary(min_size=1, max_size=SIZE))
    start = at * SIZE + data.draw(st.integers(0, SIZE - len(damage)))
    changed = whole[:start] + damage + whole[start + len(damage) :]
    (run / "curves.bin").write_bytes(changed)
    said: list[str] = []
    found = read_curves(run, said.append)
    if changed == whole:
        assert said == []
    else:
        assert said == [f"{run / 'curves.bin'}: 1 damaged slot is left out."]
    if found and at > 12:  # after what declares the names
        assert len(found["a"].curves()[LOSS].values) >= 29
    list(rows(run, said.append))


def test_zeros_that_a_crash_of_the_machine_left_are_damage(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "curves.bin").write_bytes(whole[: 40 * SIZE] + bytes(10 * SIZE) + whole[50 * SIZE :])
    said: list[str] = []
    found = read_curves(tmp_path, said.append)["a"].curves()[LOSS]
    assert said == [f"{tmp_path / 'curves.bin'}: 10 damaged slots are left out."]
    assert 20 < len(found.values) < 30


def test_points_whose_name_is_damaged_are_left_out_until_it_is_declared_again(whole: bytes, tmp_path: Path) -> None:
    place = whole.index(b'"name": "training.loss"') // SIZE * SIZE
    (tmp_path / "curves.bin").write_bytes(whole[:place] + bytes(SIZE) + whole[place + SIZE :])
    written(tmp_path, row(1000, {"other": [1.0], LOSS: [2.0]}, session=1, start=990))
    found = read_curves(tmp_path, lambda text: None)["a"].curves()
    assert found["other"].values.tolist() == [1.0]
    assert found[LOSS].values.tolist() == [2.0]


@pytest.mark.parametrize("text", [b'"name": "training.loss"', b'"trainer": "a"'])
def test_a_damaged_name_or_place_loses_no_more_than_1024_points(text: bytes, tmp_path: Path) -> None:
    run = written(tmp_path, *(row(at, {LOSS: [float(at)]}) for at in range(1, 3001)))
    assert [one["iteration"] for one in rows(run, pytest.fail)] == [*range(1, 3001)]
    assert curve(run).iterations.tolist() == [*range(1, 3001)]
    whole, place = (run / "curves.bin").read_bytes(), 0
    for lost in (1023, 0, 0):
        place = whole.index(text, place + 1)
        slot = place // SIZE * SIZE
        (run / "curves.bin").write_bytes(whole[:slot] + bytes(SIZE) + whole[slot + SIZE :])
        assert [one["iteration"] for one in rows(run, print)] == [*range(lost + 1, 3001)]
        found = read_curves(run, print)["a"].curves()[LOSS]
        assert found.iterations.tolist() == [*range(lost + 1, 3001)]
    assert whole.count(text) == 3


def test_rows_wait_for_a_full_disk_and_none_is_lost_or_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, real = list[str](), os.write
    file = CurvesFile(tmp_path / "curves.bin", said.append)

    def write(handle: int, data: bytes) -> int:
        if len(data) > 100:
            return real(handle, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    for at, one in enumerate(steady(60)):
        with monkeypatch.context() as full:
            if 20 <= at < 40:
                full.setattr(os, "write", write)
            file.append(one)
        assert file.is_behind is (20 <= at < 40)
        assert file.size % SIZE == 0
    assert [*rows(tmp_path, pytest.fail)] == [*steady(60)]
    assert len(said) == 2
    assert "cannot be written: No space left on device. Free disk space." in said[0]


def test_a_file_that_is_removed_while_it_is_written_is_restored(tmp_path: Path) -> None:
    file, said = CurvesFile(tmp_path / "curves.bin", lambda text: said.append(text)), list[str]()
    for at, one in enumerate(steady(30)):
        if at == 10:
            (tmp_path / "curves.bin").unlink()
        file.append(one)
    assert [*rows(tmp_path, pytest.fail)] == [*steady(30)]
    assert len(said) == 1


def test_metrics_that_are_missing_or_no_regular_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SigmaConfigError, match=r"curves\.bin: no metrics there\. Pass the folder of a run\."):
        read_curves(tmp_path, print)
    os.mkfifo(tmp_path / "curves.bin")
    for read in (read_curves, lambda *given: [*rows(*given)]):
        with pytest.raises(
            SigmaConfigError, match=r"no metrics there: not a regular file\. Pass the folder of a run\."
        ):
            read(tmp_path, print)  # type: ignore[operator]


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)])
def test_what_is_no_regular_file_is_not_continued(put: Callable[[Path], None], tmp_path: Path) -> None:
    put(path := tmp_path / "curves.bin")
    why = r"curves\.bin: not a regular file\. Restore it from a copy\."
    with pytest.raises(SigmaCheckpointError, match=why):
        CurvesFile(path)
    assert not (tmp_path / "elsewhere").exists()


def test_names_beyond_those_that_can_be_numbered_are_left_out_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_store.curves_file.MOST_SERIES", 2)
    said: list[str] = []
    file = CurvesFile(tmp_path / "curves.bin", said.append)
    for at in range(3):
        file.append(row(at, {name: [1.0] for name in "abcd"}))
    assert [*read_curves(tmp_path, pytest.fail)["a"].lines] == ["a", "b"]
    assert said == [f"{tmp_path / 'curves.bin'}: has values of 2 names, and takes no more: that of c is left out."]


def test_texts_that_are_too_long_to_be_read_are_left_out_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ("curves_file", "slots"):
        monkeypatch.setattr(f"sigma_store.{room}.LONGEST", 8)
    said: list[str] = []
    file, there = CurvesFile(tmp_path / "curves.bin", said.append), [*steady(5)]
    for one, count in zip(there, (10, 400, 450, 600, 20), strict=True):
        file.append({**one, "texts": {"said": "x" * count}})
    assert [len(one.get("texts", {}).get("said", "")) for one in rows(tmp_path, pytest.fail)] == [10, 400, 0, 0, 20]
    assert said == [f"{tmp_path / 'curves.bin'}: has no texts of more than 16 MiB: those of iteration 9 are left out."]


def test_the_parts_of_a_text_are_joined_once(tmp_path: Path) -> None:
    texts = {"said": "x" * 10_000_000}
    run, seconds = written(tmp_path, {**row(1, {LOSS: [1.0]}), "texts": texts}), time.process_time()
    (found,) = rows(run, pytest.fail)
    assert found["texts"] == texts
    assert time.process_time() - seconds < 10  # and not a minute


def test_the_file_is_opened_for_appending_alone(tmp_path: Path) -> None:
    path, sizes = written(tmp_path) / "curves.bin", list[bytes]()
    file = CurvesFile(path)
    for one in steady(50):
        before = path.read_bytes()
        file.append(one)
        assert path.read_bytes().startswith(before)
        sizes.append(before)
    assert appending.BLOCK > 0
