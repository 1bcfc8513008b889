"""Groups of workers: what is refused, what ends a run, and what each event is answered by; schedules: sigma-testing."""

from __future__ import annotations

import pytest

from sigma_kernel.contracts import (
    Advance,
    ApplyOrder,
    Commit,
    ComputeOrder,
    Dismiss,
    JoinOrder,
    KeepOrder,
    KeepState,
    LeaveOrder,
    Notice,
    PingOrder,
    Position,
    ReplaceState,
    Resize,
    StartOrder,
    StateKept,
    Tick,
    WorkerAlive,
    WorkerComputed,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
    WorkerReady,
)
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_training.group.group import WorkerGroup
from sigma_training.group.member import EndWorker, GroupMember
from sigma_training.group.shares import assign_shards, choose_outcasts

START = Commit(Position())


def at(iteration: int) -> Position:
    return Position(0, iteration)


def advance(begin: int, end: int, **live: float) -> Advance:
    return Advance(at(begin), at(end), live)


def group(workers: int = 2, **settings: float) -> WorkerGroup:
    """Return a group whose workers have joined."""
    made = WorkerGroup(shards=4, **settings)
    made.on(Resize(workers))
    for worker in range(workers):
        made.on(WorkerReady(worker))
    join(made, 0)
    join(made, *range(workers))  # the first was alone in its generation
    return made


def join(made: WorkerGroup, *workers: int) -> list[object]:
    """Return the answers to workers that join the present generation."""
    generation = made.generation
    return [answer for worker in workers for answer in made.on(WorkerJoined(worker, generation))]


def report(made: WorkerGroup, end: int, *digests: str) -> list[object]:
    """Return the answer to the last of several reports."""
    answers = [made.on(WorkerComputed(w, Commit(at(end), made.generation), d)) for w, d in enumerate(digests)]
    assert not any(answers[:-1])
    return [*answers[-1]]


# -- shards ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("members", [(0,), (3, 7), (0, 1, 2), tuple(range(7))])
def test_each_shard_has_one_worker_and_workers_have_as_many_but_for_one(members):
    shares = assign_shards(7, members)
    assert [shard for member in members for shard in shares[member]] == [*range(7)]
    assert max(map(len, shares.values())) - min(map(len, shares.values())) <= 1


def test_few_workers_leave_when_links_are_cut():
    assert choose_outcasts([]) == []
    assert choose_outcasts([frozenset((1, 2))]) == [2]
    assert choose_outcasts([frozenset((0, other)) for other in (1, 2, 3)]) == [0]
    assert choose_outcasts([frozenset((0, 1)), frozenset((2, 3))]) == [1, 3]


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_more_workers_than_shards_are_refused_with_the_remedy_and_change_nothing():
    made = group(2)
    with pytest.raises(SigmaConfigError, match="workers = 5: more than shards = 4, .*Set shards = 5 or more"):
        made.on(Resize(5))
    assert made.size == 2
    assert WorkerGroup().shards == 1


def test_fewer_workers_than_at_least_are_refused():
    with pytest.raises(SigmaConfigError, match="workers = 1: fewer than at_least = 2"):
        WorkerGroup(shards=4, at_least=2).on(Resize(1))


def test_a_burst_during_another_one_or_into_the_past_is_refused():
    made = group()
    with pytest.raises(SigmaStateError, match="Advance to iteration 0: the group is at iteration 0"):
        made.on(advance(0, 0))
    made.on(advance(0, 3))
    with pytest.raises(SigmaStateError, match="and computes as far as 3. Wait"):
        made.on(advance(0, 5))


def test_a_state_is_not_replaced_while_a_burst_is_computed():
    made = group()
    made.on(advance(0, 3))
    with pytest.raises(SigmaStateError, match="the state is replaced while a burst is computed. Wait for its notice"):
        made.on(ReplaceState(Commit(Position(0, 0, 1), made.generation)))
    assert made.commit == START


def test_a_burst_that_was_decided_before_the_group_went_back_is_refused():
    made = group()
    made.on(advance(0, 3))
    report(made, 3, "a", "a")
    for worker in (0, 1):
        made.on(WorkerLost(worker))
    [refusal] = made.on(advance(3, 6))
    assert (refusal.kind, refusal.position, made.burst) == ("refused", at(0), None)
    assert refusal.text == f"a burst from {at(3)}: the group is at {at(0)}"
    assert made.on(advance(0, 3)) == []
    assert made.burst == advance(0, 3)
    [refusal] = made.on(Advance(Position(0, 0, 1), at(3)))  # of another version of the data
    assert (refusal.kind, made.burst) == ("refused", advance(0, 3))


# -- bursts ------------------------------------------------------------------------------------------------------------
def test_a_burst_is_committed_once_all_members_have_the_same_result():
    made = group()
    orders = made.on(advance(0, 3, learning_rate=0.1))
    shares = {0: (0, 1), 1: (2, 3)}
    assert orders == [ComputeOrder(w, made.generation, START, at(3), {"learning_rate": 0.1}, shares) for w in (0, 1)]
    apply_0, apply_1, notice = report(made, 3, "a", "a")
    commit = Commit(at(3), made.generation)
    assert (apply_0, apply_1) == (ApplyOrder(0, made.generation, commit), ApplyOrder(1, made.generation, commit))
    assert notice == Notice("committed", made.generation, at(3), records=[None, None])


def test_a_state_is_measured_by_a_burst_that_raises_its_version_and_all_members_report():
    made = group()
    end = Position(0, 0, 1)
    assert {order.end for order in made.on(Advance(at(0), end))} == {end}
    commit = Commit(end, made.generation)
    assert made.on(WorkerComputed(0, commit, "", "first")) == []
    *orders, notice = made.on(WorkerComputed(1, commit, "", "second"))
    assert orders == [ApplyOrder(worker, made.generation, commit) for worker in (0, 1)]
    assert (notice.kind, notice.position, notice.records) == ("committed", end, ["first", "second"])
    assert made.on(WorkerComputed(1, commit, "", "second")) == []  # it comes late
    with pytest.raises(SigmaStateError, match="to iteration 0: the group is at iteration 0"):
        made.on(Advance(end, end))


def test_a_burst_ends_early_if_all_members_say_so():
    made = group()
    made.on(advance(0, 8))
    assert isinstance(report(made, 5, "a", "a")[-1], Notice)  # the loss was not finite
    assert made.commit.position == at(5)


def test_workers_with_different_bits_end_the_run_and_are_named():
    made = group()
    made.on(advance(0, 3))
    notice, *leaving = report(made, 3, "a", "b")
    assert notice.kind == "failed"
    assert notice.text.startswith("workers 0 and 1 differ after iteration 3")
    assert [type(order) for order in leaving] == [LeaveOrder, LeaveOrder]
    assert made.on(Tick(1.0)) == []


def test_a_member_that_is_lost_before_the_commit_has_its_shards_computed_by_others():
    made = group()
    made.on(advance(0, 3))
    made.on(WorkerComputed(0, Commit(at(3), made.generation)))
    first = made.generation
    lost, leave, generation, join = made.on(WorkerLost(1, "the process has ended"))
    assert (lost.kind, lost.worker, lost.text) == ("lost", 1, "the process has ended")
    assert leave == LeaveOrder(1, "the process has ended")
    assert (generation.kind, generation.generation, generation.text) == ("generation", first + 1, "0")
    assert join == JoinOrder(0, first + 1, START, (0,), 0)
    [order] = made.on(WorkerJoined(0, first + 1))
    assert order.shards == {0: (0, 1, 2, 3)}
    assert made.on(WorkerComputed(1, Commit(at(3), first))) == [LeaveOrder(1, "no longer a member")]


def test_an_error_of_the_user_ends_the_run_at_once_with_its_traceback_and_worker():
    made = group()
    made.on(advance(0, 3))
    notice, *leaving = made.on(WorkerFailed(1, "Traceback ..."))
    assert notice == Notice("failed", made.generation, at(0), 1, "Traceback ...")
    assert [order.worker for order in leaving] == [0, 1]


# -- states ------------------------------------------------------------------------------------------------------------
def test_a_group_that_is_short_keeps_its_state_and_computes_once_it_is_not():
    made = group(at_least=2)
    made.on(advance(0, 3))
    report(made, 3, "a", "a")
    made.on(advance(3, 6))
    answers = made.on(WorkerLost(0))
    assert [answer.kind for answer in answers if isinstance(answer, Notice)] == ["lost", "generation", "paused"]
    assert made.on(WorkerJoined(1, made.generation)) == [KeepOrder(1, made.generation, made.commit)]
    assert made.on(StateKept(made.commit)) == []
    assert made.on(Resize(2)) == [StartOrder(2)]  # numbers are not used again
    _, *joins = made.on(WorkerReady(2))
    assert [(order.worker, order.donor) for order in joins] == [(1, 1), (2, 1)]
    made.on(WorkerJoined(1, made.generation))
    notice, *orders = made.on(WorkerJoined(2, made.generation))
    assert (notice.kind, notice.worker) == ("joined", 2)
    assert [order.end for order in orders] == [at(6), at(6)]


def test_a_group_that_has_lost_all_goes_back_to_the_state_that_the_operator_holds():
    made = group()
    made.on(advance(0, 3))
    report(made, 3, "a", "a")
    made.on(KeepState())
    made.on(StateKept(made.commit))
    made.on(advance(3, 6))
    report(made, 6, "b", "b")
    made.on(WorkerLost(0))
    answers = made.on(WorkerLost(1))
    assert [(answer.kind, answer.position) for answer in answers if isinstance(answer, Notice)][-2:] == [
        ("rewound", at(3)),
        ("paused", at(3)),
    ]
    made.on(Resize(1))
    assert made.on(WorkerReady(2))[-1].donor is None


def test_silence_is_a_loss_but_not_while_the_operator_was_suspended():
    made = group(lost_after=4.0)
    made.on(Tick(0.0))
    assert made.on(Tick(500.0)) == [PingOrder(0), PingOrder(1)]
    made.on(WorkerJoined(0, made.generation))  # any sign of life
    kinds = [[answer.kind for answer in made.on(Tick(500.0 + t)) if isinstance(answer, Notice)] for t in (1, 2, 3)]
    assert kinds == [[], [], ["lost", "generation"]]
    assert made.members == (0,)


def test_who_spoke_right_before_a_tick_was_not_silent_since_the_one_before():
    made = group(lost_after=4.0)
    made.on(Tick(0.0))
    made.on(Tick(1.0))
    join(made, 0, 1)  # at any time until the next tick
    kinds = {t: [one.kind for one in made.on(Tick(t)) if isinstance(one, Notice)] for t in (2.0, 3.0, 4.0, 5.0, 6.0)}
    assert [t for t in kinds if "lost" in kinds[t]] == [6.0]
    member = GroupMember(0, 4.0)
    member.on(Tick(0.0))
    member.on(PingOrder(0))  # likewise
    ended = {t: any(isinstance(one, EndWorker) for one in member.on(Tick(t))) for t in (1.0, 2.0, 3.0, 4.0, 5.0)}
    assert [t for t in ended if ended[t]] == [5.0]


def test_patience_grows_with_each_loss_by_silence_and_shrinks_with_each_commit():
    made, seconds, texts = group(4, lost_after=4.0), 0.0, list[str]()
    made.on(Tick(seconds))
    while len(made.members) > 1:
        seconds += 1.0
        silent = made.members[-1]
        join(made, *made.members[:-1])  # they speak
        lost = [answer for answer in made.on(Tick(seconds)) if isinstance(answer, Notice) and answer.kind == "lost"]
        assert {answer.worker for answer in lost} <= {silent}
        texts += [f"{answer.text}, {seconds:g}" for answer in lost]
    assert texts == ["silent for 4 s, 4", "silent for 8 s, 12", "silent for 16 s, 28"]
    join(made, 0)
    patiences = list[float]()
    for end in (1, 2, 3):
        made.on(advance(end - 1, end))
        report(made, end, "a")
        patiences.append(made._silence.patience)
    assert patiences == [8.0, 4.0, 4.0]


def test_workers_that_are_ready_wait_for_those_that_join_and_for_a_burst():
    made = WorkerGroup(shards=4)
    made.on(Resize(4))
    _, *joins = made.on(WorkerReady(2))
    assert [order.members for order in joins] == [(2,)]
    assert made.on(WorkerReady(0)) == made.on(WorkerReady(1)) == []
    _, generation, *joins = join(made, 2)  # all that are ready join at once
    assert (generation.text, [order.worker for order in joins]) == ("0, 1, 2", [0, 1, 2])
    made.on(advance(0, 3))
    assert made.on(WorkerReady(3)) == []
    orders = [answer for answer in join(made, 0, 1, 2) if isinstance(answer, ComputeOrder)]
    assert [order.worker for order in orders] == [0, 1, 2]
    *_, generation, _, _, _, last = report(made, 3, "a", "a", "a")
    assert (generation.text, last.worker, last.donor) == ("0, 1, 2, 3", 3, 0)


def test_fewer_workers_are_reached_between_bursts():
    made = group(3)
    made.on(advance(0, 3))
    assert made.on(Resize(1)) == []
    answers = report(made, 3, "a", "a", "a")
    assert LeaveOrder(2, "fewer workers are wanted") in answers
    assert made.members == (0,)


def test_all_leave_at_the_end():
    made = group()
    assert made.on(Dismiss()) == [LeaveOrder(0, "training has ended"), LeaveOrder(1, "training has ended")]
    assert made.on(WorkerReady(0)) == [LeaveOrder(0, "no longer a member")]


# -- the worker --------------------------------------------------------------------------------------------------------
def test_a_worker_ends_within_its_patience_if_the_operator_is_gone():
    member = GroupMember(0, patience=5.0)
    assert member.on(StartOrder(0)) == [WorkerReady(0)]
    member.on(JoinOrder(0, 1, START, (0,), None))
    answers = [member.on(Tick(float(second))) for second in range(7)]
    assert answers == [[], [], [], [], [], [EndWorker("no word from the operator for 5 s")], []]
    assert GroupMember(1).on(WorkerLost(1, "the connection is closed")) == [EndWorker("the connection is closed")]


def test_a_worker_repeats_an_error_of_the_user_until_it_is_to_leave():
    member, failure = GroupMember(0), WorkerFailed(0, "Traceback ...")
    member.on(JoinOrder(0, 1, START, (0,), None))
    assert member.on(Tick(0.0)) == []
    assert member.on(failure) == [failure]
    assert member.on(Tick(1.0)) == member.on(Tick(2.0)) == [failure]
    assert member.on(LeaveOrder(0, "the run has failed")) == [EndWorker("the run has failed")]
    assert member.on(Tick(3.0)) == []


def test_a_process_that_is_started_again_under_its_number_is_lost_by_silence():
    made = group(lost_after=4.0)
    made.on(advance(0, 3))
    for second in range(40):
        made.on(Tick(float(second)))
        made.on(WorkerReady(1))  # it holds no state, and does not compute
        made.on(WorkerAlive(0))
        if 1 not in made.roster:
            break
    assert [*made.roster] == [0]


def test_more_workers_at_least_than_shards_are_refused():
    with pytest.raises(SigmaConfigError, match=r"at_least = 3: 2 shards are for as many workers\."):
        WorkerGroup(shards=2, at_least=3)
