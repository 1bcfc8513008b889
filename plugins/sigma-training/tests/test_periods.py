"""When a run trained, by the clock on the wall: rows of the journal have times, and periods follow from them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np
import pytest

from sigma_kernel.periods import Period, Periods, find_times, read_periods
from sigma_testing.journals import read_journal
from sigma_testing.steering import crash, steered_environment, train_until_crash

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def periods(*rows, branch=0):
    found = Periods(branch)
    for row in rows:
        found.take(row)
    return found.found


def row(second, time, **more):
    return {"trainer": "trainer", "seconds": second, "time": time, **more}


def test_training_without_a_pause_is_one_period_however_many_rows_there_are():
    assert periods(row(0.0, 1000.0), row(10.2, 1010.0), row(60.0, 1060.5)) == [Period(0, 0.0, 1000.0, 60.0)]


def test_a_pause_ends_a_period_and_rows_meanwhile_begin_none():
    found = periods(row(0.0, 1000.0), row(10.0, 1010.0, command="pause"), row(10.0, 1100.0, command="set"),
                    row(10.0, 1200.0, command="go"), row(15.0, 1205.0))  # fmt: skip
    assert found == [Period(0, 0.0, 1000.0, 10.0), Period(0, 10.0, 1200.0, 5.0)]


def test_a_pause_that_no_row_tells_of_comes_after_the_training():
    found = periods(row(0.0, 1000.0, command="step"), row(20.0, 1500.0, command="step"))
    assert found == [Period(0, 0.0, 1000.0, 20.0), Period(0, 20.0, 1500.0)]


def test_short_pauses_add_up_to_one():
    rows = [row(10.0 * n, 1000.0 + 10.4 * n) for n in range(6)]
    found = periods(*rows)
    assert [one.second for one in found] == [0.0, 30.0]
    assert max(abs(one["time"] - found[int(n > 2)].time - (one["seconds"] - found[int(n > 2)].second))
               for n, one in enumerate(rows)) <= 1.0  # fmt: skip


def test_a_rewind_begins_a_period_of_its_branch_at_the_second_that_it_goes_back_to():
    back = row(50.0, 1050.0, command="rewind", to=7, branch=1, parent=0, to_seconds=20.0)
    assert periods(row(0.0, 1000.0), back, row(30.0, 1060.0)) == [
        Period(0, 0.0, 1000.0, 50.0), Period(1, 20.0, 1050.0, 10.0),
    ]  # fmt: skip
    reset = row(50.0, 1050.0, command="reset")
    assert periods(row(0.0, 1000.0), reset, row(5.0, 1055.0))[-1] == Period(0, 0.0, 1050.0, 5.0)


def test_a_resume_repeats_what_came_after_its_checkpoint():
    found = periods(row(0.0, 1000.0), row(90.0, 1090.0), row(60.0, 5000.0, event="resumed"), row(80.0, 5020.0))
    assert found == [Period(0, 0.0, 1000.0, 90.0), Period(0, 60.0, 5000.0, 20.0)]


def test_a_clock_that_was_set_back_stands_still():
    found = periods(row(0.0, 1000.0), row(10.0, 1010.0), row(20.0, 500.0))
    assert found == [Period(0, 0.0, 1000.0, 20.0), Period(0, 20.0, 1020.0)]


@pytest.mark.parametrize("time", [None, "noon", float("nan")])
def test_rows_of_earlier_versions_and_damaged_ones_are_passed_over(time):
    assert periods(row(0.0, time), row(1.0, time, command="rewind", branch=2)) == []
    assert periods(row(1.0, time, command="rewind", branch=2), row(4.0, 1000.0)) == [Period(2, 4.0, 1000.0)]


def test_a_run_knows_its_times_while_it_trains_and_after_a_resume(tmp_path):
    began, script = time.time(), {6: lambda sigma: time.sleep(0.01), 8: lambda sigma: sigma.rewind(5), 11: crash}
    sigma = steered_environment(script)
    run = train_until_crash(sigma, tmp_path)
    first = sigma.trainer("trainer").view.periods()
    assert [period.branch for period in first] == [0, 1]
    assert began <= first[0].time <= first[1].time <= time.time()
    assert 0.01 <= first[0].seconds < time.time() - began
    assert 0 < first[1].second < first[0].seconds
    time.sleep(1.2)
    with steered_environment() as again:
        again.resume(run)
        again.run()
        found = again.trainer("trainer").view.periods()
    rows = [row for row in read_journal(run) if row["trainer"] == "trainer"]
    assert [period.branch for period in found] == [0, 1, 1]
    assert found[:2] == first
    assert found[2].time - (found[1].time + found[1].seconds) > 1.2
    assert periods(*rows)[-1] == found[-1]
    assert all(began - 0.001 <= row["time"] <= time.time() for row in rows)


def test_times_are_those_of_the_periods_of_a_branch() -> None:
    periods = [Period(0, 0.0, NOON, 10.0), Period(0, 10.0, NOON + 100, 5.0), Period(1, 5.0, NOON + 200, 9.0)]
    found = find_times(periods, 0, np.array([0.0, 4.0, 9.5, 10.0, 12.0])) - NOON
    np.testing.assert_allclose(found, [0.0, 4.0, 9.5, 100.0, 102.0])
    found = find_times(periods, 1, np.array([4.0, 5.0, 14.0])) - NOON
    np.testing.assert_allclose(found, [np.nan, 200.0, 209.0])
    assert np.isnan(find_times(periods, 2, np.array([1.0]))).all()


def test_what_a_resume_repeats_has_the_later_times() -> None:
    periods = [Period(0, 0.0, NOON, 10.0), Period(0, 8.0, NOON + 60, 5.0), Period(0, 4.0, NOON + 120, 20.0)]
    np.testing.assert_allclose(find_times(periods, 0, np.array([3.0, 4.0, 9.0])) - NOON, [3.0, 120.0, 125.0])


def test_rows_without_a_trainer_or_a_time_are_no_periods() -> None:
    assert read_periods([{"event": "begin"}, {"trainer": "a", "iteration": 1, "seconds": 2.0}]) == {}
