"""The simulator of groups finds each fault that is planted in their state machines."""

from __future__ import annotations

from importlib import import_module
from inspect import getsource
from types import ModuleType

import pytest

import sigma_testing
from sigma_testing import InvariantError, simulate_asynchronous_group, simulate_group
from sigma_testing.group import asynchronous
from sigma_training.group import member
from sigma_training.group.asynchronous import SumWindow

MODULES = ("shares", "silence", "group", "member")  # of sigma_training.group, in import order
SEEDS = 1000  # drawn at most to find a fault
ACTIONS = {each.__name__: each for each in (member.MemberAction, *member.MemberAction.__subclasses__())}
OLD_JOIN = """        if order.generation < self.generation:
            return []
        actions = self._begin_generation(order) if order.generation > self.generation else []
"""

FAULTS: dict[str, tuple[str, str, str]] = {  # a module, what it says, and what it says with the fault
    # -- generations and fences --
    "a generation is not counted": ("group", "self.generation += 1", "self.generation += 0"),
    "results of an old generation count": ("group", "not self.computing or event.commit.generation != self.generation",
                                           "self.burst is None"),
    "results of an earlier burst count": ("group", "!= self.generation or late:", "!= self.generation:"),
    "results outlive a generation": ("group", "self.joined, self.computed, self.cuts = set(), {}, set()",
                                     "self.joined, self.cuts = set(), set()"),
    "members outlive a generation": ("group", "self.joined, self.computed, self.cuts = set(), {}, set()",
                                     "self.computed, self.cuts = {}, set()"),
    "an old generation is joined": ("group", "event.generation != self.generation or worker in self.joined",
                                    "worker in self.joined"),
    "a lost worker is admitted again": ("group", "return _fence(event)", "self.roster[event.worker] = STARTING"),
    "a zombie is not told to leave": ("group", '[LeaveOrder(event.worker, "no longer a member")]', "[]"),
    "numbers of workers are used again": ("group", "first, self.numbers = self.numbers, self.numbers +",
                                          "first, self.numbers = len(self.roster), len(self.roster) +"),
    "a lost member does not end a generation": ("group", "self.broken |= self.roster.pop(worker) == MEMBER",
                                                "self.roster.pop(worker)"),
    "workers join during a burst": ("group", "is_open = self._is_settled() and (self.burst is None or",
                                    "is_open = len(self.joined) == len(self.members) and (True or"),
    "each newcomer begins a generation": ("group", "is_open = self._is_settled() and",
                                          "is_open = not self.computing and"),
    "nobody may join a short group": ("group", "(self.burst is None or len(self.members) < self.at_least)",
                                      "self.burst is None"),
    # -- bursts and shards --
    "a burst from elsewhere is computed": ("group", "if event.begin != here:", "if False:"),
    "a burst is committed before all have computed": ("group", "len(self.computed) == len(self.members)",
                                                      "len(self.computed) >= len(self.members) - 1"),
    "records of members are lost": ("group", "[report.records for report in reports]", "[reports[0].records]"),
    "a burst without iterations never counts": ("group", "event.commit.position <= self.commit.position",
                                                "event.commit.position.iteration <= self.commit.position.iteration"),
    "a burst is committed and begun again": ("group", "= reports[0].commit, None, False",
                                             "= reports[0].commit, self.burst, False"),
    "a burst is ordered before all have joined": ("group", "if len(self.joined) < len(self.members) or not",
                                                  "if not"),
    "a burst is ordered while the group is short": ("group", "if self.keeping or self.paused or self.burst is None",
                                                    "if self.keeping or self.burst is None"),
    "a shard has two workers": ("shares", "range(*bounds[place : place + 2])",
                                "range(bounds[place] and bounds[place] - 1, bounds[place + 1])"),
    "a shard has no worker": ("shares", "+ [shards]", "+ [shards - 1]"),
    "a worker is never mapped": ("shares", "count = len(members)", "count = max(1, len(members) - 1)"),
    "live values are those of the beginning": ("group", "group.burst.end, group.burst.live,",
                                               "group.burst.end, dict.fromkeys(group.burst.live, 0),"),
    "members do not hear of a commit": ("group", '[*orders, self._notice("committed"', '[self._notice("committed"'),
    "a state is measured by the first alone": ("group", "[report.records for report in reports]",
                                               "[reports[0].records]"),
    "what is measured counts as earlier": ("group", "event.commit.position <= self.commit.position",
                                           "event.commit.position.iteration <= self.commit.position.iteration"),
    # -- states --
    "a state is copied from a lost worker": ("group", "self.holders &= {*self.members}", "self.holders |= set()"),
    "the group never goes back": ("group", "notices += [] if self.holders else self._rewind()", "notices += []"),
    "the group always goes back": ("group", "notices += [] if self.holders else self._rewind()",
                                   "notices += self._rewind()"),
    "a burst outlives its state": ("group", "self.commit, self.burst = self.kept, None", "self.commit = self.kept"),
    "any state is kept": ("group", "if event.commit != self.commit:", "if False:"),
    "a lost worker sends the state to keep": ("group", "        self.keeper = None\n", ""),
    "the state of a short group is not kept": ("group", "self.keeping |= self.commit != self.kept", "pass"),
    "a pause has no end": ("group", "            self.paused = short\n", ""),
    "a state is not replaced": ("group", "self.commit = self.kept = event.commit", "self.kept = event.commit"),
    "a replaced state is held already": ("group", "        self.holders.clear()\n        return self._proceed()",
                                         "        return self._proceed()"),
    "a replaced state begins no generation": ("group", "self.keeping, self.broken = False, True",
                                              "self.keeping = False"),
    "a burst is withdrawn while it is computed": ("group", "if self.is_waiting:", "if self.burst is not None:"),
    "a burst is never withdrawn": ("group", "if self.is_waiting:", "if False:"),
    # -- time --
    "silent workers are members for ever": ("group", "if silent := self._silence.silent():", "if silent := []:"),
    "nobody is heard": ("group", "            self._silence.hear(event.worker)\n", ""),
    "silence is counted too soon": ("silence", ">= self.patience)", ">= self.patience / 8)"),
    "a suspended operator loses its workers": ("silence", "min(max(seconds - self._last, 0.0), self.step)",
                                               "max(seconds - self._last, 0.0)"),
    "orders are not repeated": ("group", "if event.seconds - self._sent < self._silence.step / 2:", "if True:"),
    "workers that do not reach each other stay": ("group", "dict.fromkeys(choose_outcasts(self.cuts)",
                                                  "dict.fromkeys(choose_outcasts(())"),
    # -- ends --
    "an error of the user is a loss": ("group", "return self._fail(event.traceback, event.worker)",
                                       "return self._lose({event.worker: event.traceback})"),
    "a failed run goes on": ("group", ', *self._end("failed", "the run has failed")]', "]"),
    "workers stay after the end": ("group", "        return leaving\n", "        return []\n"),
    "fewer workers are never reached": ("group", "[: max(self._surplus(), 0)]\n\n    def _form",
                                        "[:0]\n\n    def _form"),
    # -- in the worker --
    "a worker joins an old generation": ("member", OLD_JOIN, OLD_JOIN.partition("return []\n")[2].replace(">", "!=")),
    "a worker follows old orders": ("member", "if not self.joined or message.generation != self.generation:",
                                    "if not self.joined:"),
    "a worker applies what is not committed": ("member", "or self.beside.commit != commit:", ":"),
    "a worker never applies": ("member", "self.commit, self.beside = commit, None\n        return [PromoteState()]",
                               "return []"),
    "a worker keeps an old result": ("member", "self.running, self.beside = order.generation, None, None",
                                     "self.running = order.generation, None"),
    "a worker computes on another state": ("member", "if order.commit != self.commit:\n            return []  # of",
                                           "if False:\n            return []  # of"),
    "a worker claims to hold a state": ("member", "self.commit == order.commit\n        return actions",
                                        "True\n        return actions"),
    "a worker computes a burst twice": ("member", "if self.running is not None:\n", "if False:\n"),
    "a worker waits for a dead operator": ("member", "if self._silence.silent():", "if False:"),
    "a worker does not answer": ("member", "return [WorkerAlive(self.worker)]\n\n    def _on_leave",
                                 "return []\n\n    def _on_leave"),
    "a worker stays": ("member", "return self._end(order.reason)", "return []"),
}  # fmt: skip


def plant(module: str = "", old: str = "", new: str = "") -> dict[str, ModuleType]:
    """Return the modules of groups, with one text in one of them replaced."""
    planted: dict[str, ModuleType] = {}
    for name in MODULES:
        text = getsource(import_module(f"sigma_training.group.{name}"))
        if name == module:
            assert text.count(old) == 1, f"{text.count(old)} of {old!r}"
            text = text.replace(old, new)
        copy = planted[name] = ModuleType(f"planted_{name}")
        exec(compile(text, f"{name}.py", "exec"), vars(copy))
        vars(copy).update(ACTIONS if name == "member" else {})
        for earlier in planted.values():
            shared = {key: value for key, value in vars(earlier).items() if key in vars(copy) and _is_own(value)}
            vars(copy).update(shared)
    return planted


def _is_own(value: object) -> bool:
    return getattr(value, "__module__", "").startswith("planted_") and not isinstance(value, ModuleType)


def simulate_groups(planted: dict[str, ModuleType], seeds: int = SEEDS) -> list[int]:
    """Simulate schedules of the planted modules; return the numbers of events."""
    machines = planted["group"].WorkerGroup, planted["member"].GroupMember
    return [simulate_group(seed, *machines) for seed in range(seeds)]


@pytest.mark.long_cases("a burst from elsewhere is computed")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_group_is_found(fault: str) -> None:
    planted = plant(*FAULTS[fault])
    with pytest.raises(InvariantError, match="^seed "):
        simulate_groups(planted)


def test_the_same_modules_without_a_fault_keep_all_invariants() -> None:
    planted = plant()
    assert planted["group"].assign_shards is planted["shares"].assign_shards  # not the one that is installed
    assert simulate_groups(planted, 40) == [simulate_group(seed) for seed in range(40)]


class Wide(SumWindow):
    """A worker computes one iteration too many before it waits."""

    @property
    def waits(self) -> bool:
        return self.computed == self.end or self.computed - self.taken > self.staleness + 1


class Shut(SumWindow):
    """A worker ends at once after a loss that is not finite, and others wait for it."""

    def close(self) -> None:
        self.end = max(self.computed, self.taken)


class Fresh(SumWindow):
    """A worker says that its gradients lack nothing."""

    def compute(self) -> tuple[int, int]:
        return super().compute()[0], 0


@pytest.mark.parametrize("window", [Wide, Shut, Fresh])
def test_a_fault_in_how_far_workers_are_ahead_is_found(
    window: type[SumWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "SumWindow", window)
    with pytest.raises(InvariantError, match="^seed "):
        sum(simulate_asynchronous_group(seed, 2) for seed in range(SEEDS))


def test_workers_that_are_ahead_keep_all_invariants() -> None:
    assert sum(simulate_asynchronous_group(seed, 1 + seed % 5) for seed in range(40)) > 4000


def test_the_simulator_is_public() -> None:
    assert {"simulate_group", "InvariantError", "draw_schedule"} <= {*dir(sigma_testing)}
