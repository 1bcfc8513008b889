"""Registries: values by address, their types, observers, and concurrent use."""

from __future__ import annotations

import threading
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel.errors import SigmaAddressError
from sigma_kernel.registry.addresses import literal, matches
from sigma_kernel.registry.registry import NOTHING, Kind, Mark, Registry

NAMES = st.sampled_from(["a", "b", "ab", "a-1"])
ADDRESSES = st.lists(NAMES, min_size=1, max_size=4).map(".".join)
MASKS = st.sampled_from(["a", "b", "a*", "*b", "*", "**", "<t>", "a*<t,u>"])
PATTERNS = st.lists(MASKS, min_size=1, max_size=4).map(".".join)


def keep(registry: Registry, address: str, value: object, kind: Kind | None = None) -> None:
    """Bind a value that is stored outside the registry."""
    kept = [value]
    registry.bind(address, lambda: kept[0], lambda new: kept.__setitem__(0, new), kind)


def values(registry: Registry) -> dict[str, object]:
    """Return all values by address."""
    return dict(registry.find("**"))


def plant(addresses: list[str], tags: dict[str, set[str]] | None = None) -> Registry:
    """Return a registry with a number at each address that does not conflict with the others."""
    registry = Registry()
    for number, address in enumerate(addresses):
        if not any(f"{a}.".startswith(f"{address}.") or f"{address}.".startswith(f"{a}.") for a in values(registry)):
            keep(registry, address, number)
    for address, names in (tags or {}).items():
        if not any(f"{address}.".startswith(f"{a}.") for a in values(registry)):
            registry.branch(address, *names)
    return registry


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    found.branch("trainer.network.layers.2-dense", "dense", "layer")
    found.branch("trainer.network.layers.3-dropout", "dropout", "layer")
    keep(found, "trainer.network.layers.2-dense.weights", [1, 2])
    keep(found, "trainer.network.layers.3-dropout.rate", 0.5, Kind(float))
    keep(found, "trainer.optimiser.learning_rate", 0.1, Kind(float, low=0.0))
    keep(found, "trainer.loss", 1.5, Kind(float))
    return found


# -- reading -----------------------------------------------------------------------------------------------------------
def test_a_value_is_found_by_its_address_and_a_level_is_a_registry(registry):
    assert registry["trainer.loss"] == 1.5
    layers = registry["trainer.network.layers"]
    assert isinstance(layers, Registry)
    assert layers["3-dropout.rate"] == 0.5
    assert "3-dropout" in layers
    assert "*.rate" in layers
    assert "4-dense" not in layers


def test_find_returns_values_with_addresses_in_tree_order(registry):
    assert registry.find("**.layers.*.*") == [
        ("trainer.network.layers.2-dense.weights", [1, 2]),
        ("trainer.network.layers.3-dropout.rate", 0.5),
    ]
    assert registry.find("trainer*.loss") == [("trainer.loss", 1.5)]
    assert registry.find("trainer") == []
    assert list(values(registry))[-1] == "trainer.loss"


def test_tags_select_among_levels(registry):
    assert registry.find("**.*<dense>.*") == [("trainer.network.layers.2-dense.weights", [1, 2])]
    assert registry.addresses("**.<layer>.rate") == ["trainer.network.layers.3-dropout.rate"]
    assert registry.find("**.<layer,dense>.rate") == []
    assert registry.tags("trainer.network.layers.2-dense") == {"dense", "layer"}
    assert registry.tags("trainer.loss") == registry.tags("no.such") == frozenset()


@settings(deadline=None)
@given(
    st.lists(ADDRESSES, max_size=12), st.dictionaries(ADDRESSES, st.sets(st.sampled_from("tu")), max_size=4), PATTERNS
)
def test_a_pattern_finds_exactly_its_matches(addresses, tags, pattern):
    registry = plant(addresses, tags)
    expected = [(a, v) for a, v in registry.find("**") if matches(pattern, a, registry.tags)]
    assert registry.find(pattern) == expected
    assert registry.addresses(pattern) == [a for a, _ in expected]


@settings(deadline=None)
@given(st.lists(ADDRESSES, max_size=8), st.lists(ADDRESSES, min_size=1, max_size=8), PATTERNS)
def test_pattern_matches_are_cached_until_the_tree_changes(before, after, pattern):
    registry = plant(before)
    registry.find(pattern)
    for address in after:
        try:
            keep(registry, address, 0)
        except SigmaAddressError:
            continue
        assert registry.addresses(pattern) == [a for a in values(registry) if matches(pattern, a)]


def test_a_new_tag_is_found_by_patterns_that_were_cached(registry):
    assert registry.find("**.<slow>.rate") == []
    registry.branch("trainer.network.layers.3-dropout", "slow")
    assert [address for address, _ in registry.find("**.<slow>.rate")] == ["trainer.network.layers.3-dropout.rate"]


def test_results_of_find_belong_to_the_caller(registry):
    registry.addresses("**").clear()
    registry.find("**").clear()
    assert len(registry.addresses("**")) == 4


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("trainer.los", "no 'los' in 'trainer'. Did you mean 'loss'?"),
        ("triner.loss", "no 'triner' here. Did you mean 'trainer'?"),
        ("trainer.xyz", "no 'xyz' in 'trainer'. There is: network, optimiser, loss."),
        ("trainer.loss.x", "trainer.loss.x: goes beyond a value, which has no further levels."),
        ("trainer.*", "'trainer.*': is a pattern. Use a plain address, or find() for its matches."),
        ("trainer..loss", "'trainer..loss' is not an address: ''"),
    ],
)
def test_an_unknown_address_suggests_similar_names(registry, address, message):
    with pytest.raises(SigmaAddressError) as error:
        registry.get(address)
    assert str(error.value).startswith(message)


def test_an_empty_registry_says_that_it_is_empty():
    with pytest.raises(SigmaAddressError, match="no 'a' here. It is empty."):
        Registry().get("a")


# -- types of values ---------------------------------------------------------------------------------------------------
def test_a_learning_rate_must_be_a_number(registry):
    with pytest.raises(SigmaAddressError) as error:
        registry["trainer.optimiser.learning_rate"] = "banana"
    assert str(error.value) == "trainer.optimiser.learning_rate: must be a number, at least 0 (got 'banana')."
    assert registry["trainer.optimiser.learning_rate"] == 0.1


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (Kind(float), 3, 3.0),
        (Kind(float), Fraction(1, 4), 0.25),
        (Kind(float), np.float32(0.5), 0.5),
        (Kind(float), np.int64(2), 2.0),
        (Kind(int), np.int16(7), 7),
        (Kind(float), float("nan"), float("nan")),
        (Kind(float, low=0, below=1), 0, 0.0),
        (Kind(float, above=0, high=1), 1, 1.0),
        (Kind(bool), True, True),
        (Kind(str), "drop", "drop"),
        (Kind(), None, None),
        (Kind(dict), {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_that_fits_is_converted_to_the_declared_type(kind, value, kept):
    found = kind.check("a", value)
    assert type(found) is type(kept)
    assert found == kept or kept != kept


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Kind(float), True, "must be a number (got True)."),
        (Kind(float), np.True_, "must be a number (got"),
        (Kind(float), "1", "must be a number (got '1')."),
        (Kind(float), 10**400, "which is too large"),
        (Kind(float, low=0, below=1), 1, "must be a number, at least 0 and less than 1 (got 1)."),
        (Kind(float, above=0, high=10), 0, "must be a number, more than 0 and at most 10 (got 0)."),
        (Kind(float, low=0), float("nan"), "must be a number, at least 0 (got nan)."),
        (Kind(int), 1.0, "must be a whole number (got 1.0)."),
        (Kind(int), False, "must be a whole number (got False)."),
        (Kind(bool), 1, "must be true or false (got 1)."),
        (Kind(str), 1, "must be a string (got 1)."),
        (Kind(dict), 1, "must be a dict (got 1)."),
        (Kind(high=2), 3, "must be at most 2 (got 3)."),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_an_explanation(kind, value, message):
    with pytest.raises(SigmaAddressError) as error:
        kind.check("a.b", value)
    assert str(error.value).startswith("a.b: ")
    assert message in str(error.value)


def test_a_value_without_a_declared_type_may_become_anything():
    registry = Registry()
    keep(registry, "a", None)
    registry["a"] = [1]
    assert registry["a"] == [1]
    assert registry.kind("a") == Kind()
    assert str(Kind()) == "anything"


# -- writing -----------------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(st.lists(ADDRESSES, min_size=1, max_size=12), PATTERNS, st.integers())
def test_setting_a_pattern_sets_every_match_and_nothing_else(addresses, pattern, value):
    registry = plant(addresses)
    before = values(registry)
    hit = [a for a in before if matches(pattern, a)]
    if hit:
        assert registry.set(pattern, value) == hit
    else:
        with pytest.raises(SigmaAddressError):
            registry.set(pattern, value)
    assert values(registry) == {**before, **dict.fromkeys(hit, value)}


def test_setting_never_creates_a_new_address(registry):
    before = values(registry)
    for address in ("trainer.*.nothing", "**.nothing", "trainer.nothing", "other.nothing"):
        with pytest.raises(SigmaAddressError):
            registry.set(address, 1)
    with pytest.raises(SigmaAddressError):
        registry["trainer.nothing"] = 1
    assert values(registry) == before


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("trainer.los", "no 'los' in 'trainer'. Did you mean 'loss'?"),
        ("**.los", "**.los: matches no value. Nothing is called 'los'. Did you mean 'loss'?"),
        ("trainer.network", "trainer.network: is a registry. Give the address of a value in it."),
        ("*", "*: matches no value."),
        ("**.network.nothing.*", "**.network.nothing.*: matches no value. Nothing is called 'nothing'."),
    ],
)
def test_setting_an_unknown_address_suggests_similar_names(registry, pattern, message):
    with pytest.raises(SigmaAddressError) as error:
        registry.set(pattern, 1.0)
    assert str(error.value) == message


def test_all_matches_are_checked_before_the_first_is_set():
    registry, put = Registry(), []
    keep(registry, "a.x", 1.0)
    registry.bind("b.x", lambda: 2.0, put.append, Kind(float, high=5.0))
    with pytest.raises(SigmaAddressError, match="b.x: must be a number, at most 5"):
        registry.set("*.x", 9.0)
    registry.bind("c.x", lambda: 3.0)
    with pytest.raises(SigmaAddressError, match="c.x: is read-only"):
        registry.set("*.x", 4.0)
    assert registry["a.x"] == 1.0
    assert put == []


def test_a_value_is_read_and_written_through_its_functions():
    registry, rate = Registry(), {"value": 0.1}
    registry.branch("t").bind("rate", lambda: rate["value"], lambda new: rate.update(value=new), Kind(float, low=0.0))
    assert registry["t.rate"] == 0.1
    registry["t.rate"] = 1
    assert rate == {"value": 1.0}
    assert registry.find("**") == [("t.rate", 1.0)]
    with pytest.raises(SigmaAddressError, match="t.rate: must be a number, at least 0"):
        registry.set("**.rate", -1.0)


def test_a_value_not_published_yet_is_left_out_but_has_an_address():
    registry, published = Registry(), {}
    registry.bind("loss", lambda: published.get("loss", NOTHING))
    assert registry.find("*") == []
    assert registry.addresses("*") == ["loss"]
    assert "loss" in registry
    with pytest.raises(SigmaAddressError, match="loss: is not published yet"):
        registry.get("loss")
    published["loss"] = 0.5
    assert registry.find("*") == [("loss", 0.5)]


def test_a_value_and_a_level_cannot_share_an_address(registry):
    with pytest.raises(SigmaAddressError, match="trainer.loss: is a value, not a registry"):
        keep(registry, "trainer.loss.x", 1)
    with pytest.raises(SigmaAddressError, match="trainer.network: is a registry, which cannot be replaced by a value"):
        registry.bind("trainer.network", lambda: 1)


@pytest.mark.parametrize("address", ["a.*", "**", "<t>.b", "a#1", "", "a..b"])
def test_a_binding_or_branch_needs_a_plain_address(address):
    registry = Registry()
    for act in (lambda: registry.bind(address, int), lambda: registry.branch(address)):
        with pytest.raises(SigmaAddressError, match="Use a plain address|is not an address"):
            act()
    assert "**" not in registry


def test_removing_a_level_removes_everything_below_it(registry):
    registry.remove("trainer.network")
    assert registry.addresses("**") == ["trainer.optimiser.learning_rate", "trainer.loss"]
    registry.remove("trainer.loss")
    assert registry.addresses("**") == ["trainer.optimiser.learning_rate"]
    with pytest.raises(SigmaAddressError, match="no 'loss' in 'trainer'"):
        registry.remove("trainer.loss")


# -- observers ---------------------------------------------------------------------------------------------------------
def test_observers_are_notified_of_changes_with_relative_addresses(registry):
    told, above, tagged = [], [], []
    registry["trainer.network"].observe(lambda *event: told.append(event), "**.rate")
    registry.observe(lambda *event: above.append(event))
    registry.observe(lambda *event: tagged.append(event), "**.<dropout>.*")
    registry.set("**.rate", 0.25)
    registry["trainer.network.layers.3-dropout"].set("rate", 0.75)
    registry["trainer.loss"] = 1.0
    assert told == [("layers.3-dropout.rate", 0.5, 0.25), ("layers.3-dropout.rate", 0.25, 0.75)]
    assert tagged == [(f"trainer.network.{a}", old, new) for a, old, new in told]
    assert above == [*tagged, ("trainer.loss", 1.5, 1.0)]


def test_observers_are_notified_of_added_and_removed_values(registry):
    told = []
    registry.observe(lambda *event: told.append(event))
    registry.bind("trainer.new", lambda: 2)
    registry.bind("trainer.new", lambda: 3)
    registry.remove("trainer.new")
    registry.remove("trainer.network")
    assert told == [
        ("trainer.new", NOTHING, Mark.BOUND),
        ("trainer.new", Mark.BOUND, Mark.BOUND),
        ("trainer.new", Mark.BOUND, NOTHING),
        ("trainer.network.layers.2-dense.weights", Mark.BOUND, NOTHING),
        ("trainer.network.layers.3-dropout.rate", Mark.BOUND, NOTHING),
    ]


def test_a_value_is_read_for_observers_only_if_there_are_any():
    registry, reads, told = Registry(), [], []
    registry.bind("a", lambda: reads.append(1) or 7, lambda value: None)
    registry["a"] = 1
    assert reads == []
    registry.observe(lambda *event: told.append(event))
    registry["a"] = 2
    assert told == [("a", 7, 2)]


def test_observers_are_not_called_after_the_end(registry):
    told = []
    end = registry.observe(lambda *event: told.append(event))
    end()
    end()
    registry["trainer.loss"] = 0.0
    assert told == []


def test_an_observer_may_change_the_registry(registry):
    keep(registry, "trainer.double", 0.0)
    registry.observe(lambda _, old, new: registry.set("trainer.double", 2 * new), "trainer.loss")
    registry["trainer.loss"] = 4.0
    assert registry["trainer.double"] == 8.0


ACTIONS = st.one_of(
    st.tuples(st.just("put"), ADDRESSES, st.integers(0, 9)),
    st.tuples(st.just("set"), PATTERNS.filter(lambda p: not literal(p)), st.integers(0, 9)),
    st.tuples(st.just("remove"), ADDRESSES, st.none()),
)


@settings(deadline=None)
@given(st.lists(ACTIONS, max_size=20))
def test_observers_of_everything_can_reconstruct_the_tree(actions):
    registry, known = Registry(), {}

    def learn(address, old, new):
        before = known.pop(address, NOTHING)
        assert before == old or (before is not NOTHING and Mark.BOUND in (before, old))
        if new is not NOTHING:
            known[address] = new

    registry.observe(learn)
    for action, address, value in actions:
        try:
            if action == "remove":
                registry.remove(address)
            elif action == "set":
                registry.set(address, value)
            else:
                keep(registry, address, value)
        except SigmaAddressError:
            continue
        assert known.keys() == values(registry).keys()
        assert all(told in (Mark.BOUND, registry[address]) for address, told in known.items())


# -- threads -----------------------------------------------------------------------------------------------------------
def together(*actions) -> None:
    """Run functions at once, each in its own thread; raise the exception of one of them."""
    failures, start = [], threading.Barrier(len(actions))

    def act(action):
        start.wait()
        try:
            action()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_every_change_by_many_threads_is_observed_exactly_once():
    registry, told = Registry(), []
    keep(registry, "a", -1)
    registry.observe(lambda *event: told.append(event))

    def set_many(first):
        for value in range(first, first + 50):
            registry.set("*", value)

    together(*(lambda first=first: set_many(first) for first in (0, 1000, 2000, 3000)))
    assert Counter(new for _, _, new in told) == Counter(
        v for first in (0, 1000, 2000, 3000) for v in range(first, first + 50)
    )
    assert Counter(old for _, old, _ in told) == Counter([-1, *(new for _, _, new in told)]) - Counter([registry["a"]])


def test_threads_may_read_and_build_at_once():
    registry = Registry()

    def build(name):
        for i in range(150):
            keep(registry, f"{name}.x{i}.value", i)
            registry.branch(f"{name}.x{i}", "made")
        registry.remove(f"{name}.x0")

    def read():
        for _ in range(150):
            for address, value in registry.find("**.<made>.value"):
                assert address.endswith(f"x{value}.value")
            registry.addresses()

    together(lambda: build("a"), lambda: build("b"), read, read)
    assert len(registry.find("*.<made>.value")) == 298


def test_a_slow_observer_does_not_delay_other_threads():
    registry, asked, answer = Registry(), threading.Event(), threading.Event()
    registry.bind("slow", lambda: asked.set() or answer.wait(60))
    keep(registry, "quick", 1)

    def other():
        assert asked.wait(60)
        registry["quick"] = registry["quick"] + 1
        keep(registry, "new", 1)
        answer.set()

    together(lambda: registry.find("**"), other)
    assert registry["quick"] == 2


# -- plain values ------------------------------------------------------------------------------------------------------
def test_a_plain_value_is_put_set_watched_and_keeps_its_type():
    registry, seen = Registry(), []
    registry.put("notes.temperature", 0.5)
    registry.put("notes.any", [1])
    registry.observe(lambda *change: seen.append(change), "notes.temperature")
    registry.set("notes.*", 2)
    assert (registry["notes.temperature"], registry["notes.any"]) == (2.0, 2)
    assert seen == [("notes.temperature", 0.5, 2.0)]
    assert str(registry.kind("notes.temperature")) == "a number"
    with pytest.raises(SigmaAddressError, match=r"notes.temperature: must be a number \(got 'hot'\)."):
        registry.set("notes.temperature", "hot")


def test_a_plain_value_may_have_a_range():
    registry = Registry()
    registry.put("share", 0.5, Kind(float, low=0.0, high=1.0))
    with pytest.raises(SigmaAddressError, match="share: must be a number, at least 0 and at most 1"):
        registry.set("share", 2)
    with pytest.raises(SigmaAddressError, match="must be a number, at least 0"):
        registry.put("other", -1.0, Kind(float, low=0.0))


def test_a_plain_value_cannot_be_put_below_a_trainer():
    registry = Registry()
    trainer = registry.branch("first", "trainer")
    for put in (lambda: registry.put("first.note", 1), lambda: trainer.put("note", 1)):
        with pytest.raises(SigmaAddressError, match=r"first.note: belongs to the trainer. Add a `switch` hook"):
            put()
