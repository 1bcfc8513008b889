"""Groups of workers keep their invariants: kills, freezes, zombies, and messages that are lost, late or doubled."""

from __future__ import annotations

from sigma_testing import draw_schedule
from tests.reliability.amount import SEED, amount
from tests.reliability.groups import simulate_groups


def test_groups_keep_their_invariants_under_faults() -> None:
    seeds = range(SEED, SEED + amount(100, 1_000, 100_000))
    events, violations = simulate_groups(seeds)
    assert violations == []
    assert events > 100 * len(seeds)


def test_many_workers_make_progress_although_messages_are_lost_and_late() -> None:
    slow = draw_schedule(8779)
    assert (slow.workers, slow.loss, slow.late, slow.delay, slow.lost_after) == (31, 0.1, 0.3, 0.3, 5.0)
    assert simulate_groups([slow.seed])[1] == []


def test_an_error_of_the_user_ends_a_run_although_its_message_is_lost() -> None:
    assert simulate_groups([7550, 14135])[1] == []


def test_schedules_have_all_sizes_and_faults() -> None:
    schedules = [draw_schedule(seed) for seed in range(1_000)]
    assert {1, 2, 8} <= {each.workers for each in schedules}
    assert max(each.workers for each in schedules) > 150
    kinds = {fault.kind for each in schedules for fault in each.faults}
    assert kinds == {"kill", "kill_all", "freeze", "isolate", "cut", "accuse", "resize", "sleep"}
    assert all(each.at_least <= each.workers <= each.shards for each in schedules)
