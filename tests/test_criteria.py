"""Criteria: the meaning of each word, memory, text form, and errors for invalid text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.criteria import VERBS, Both, Criterion, Either, For, Not, Question, when
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_kernel.registry.addresses import matches

NO_MOMENT = Moment()


def looked_up(values: Mapping[str, Any]) -> Any:
    """Return a lookup like a session's: a value or None, and for a pattern all matches by address."""

    def lookup(address: str) -> Any:
        if "*" in address:
            return {name: value for name, value in values.items() if matches(address, name)}
        return values.get(address)

    return lookup


def asked(criterion: Criterion, rows: Iterable[Mapping[str, Any]], memory: dict[str, Any] | None = None) -> list[bool]:
    """Evaluate once an epoch, on the values of each row."""
    memory = {} if memory is None else memory
    return [
        criterion.ask(looked_up(row), memory, Moment(iteration=10 * epoch, epoch=epoch, second=2.0 * epoch))
        for epoch, row in enumerate(rows, 1)
    ]


def about_x(criterion: Criterion, *values: float | None) -> list[bool]:
    return asked(criterion, [{"x": value} for value in values])


# -- the meaning of each word ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sentence", "holds"),
    [
        ("x reaches 2", [False, True, True]),
        ("x falls to 2", [True, True, False]),
        ("x above 2", [False, False, True]),
        ("x below 2", [True, False, False]),
        ("x equals 2", [False, True, False]),
    ],
)
def test_a_comparison_means_what_its_word_says(sentence: str, holds: list[bool]) -> None:
    assert [about_x(Criterion.parse(sentence), value)[0] for value in (1.5, 2.0, 2.5)] == holds


def test_increases_and_decreases_compare_with_the_last_time() -> None:
    values = (3.0, 3.5, 3.5, 2.0, 4.0)
    assert about_x(when("x").increases(), *values) == [False, True, False, False, True]
    assert about_x(when("x").decreases(), *values) == [False, False, False, True, False]


def test_comparisons_with_earlier_values_do_not_hold_the_first_time() -> None:
    assert about_x(when("x").increases(), 1.0) == [False]
    assert about_x(~when("x").increases(), 1.0) == [False]


def test_improves_compares_with_the_best_so_far() -> None:
    values = (3.0, 3.5, 2.0, 2.5, 2.0, 1.0)
    assert about_x(when("x").improves(), *values) == [True, False, True, False, False, True]
    assert about_x(when("x").improves(upwards=True), *values) == [True, True, False, False, False, False]


def test_by_requires_a_change_larger_than_the_amount() -> None:
    assert about_x(when("x").increases(by=1.0), 0.0, 1.0, 2.5) == [False, False, True]
    assert about_x(when("x").decreases(by=1.0), 0.0, -1.0, -2.5) == [False, False, True]
    assert about_x(when("x").improves(by=1.0), 5.0, 4.5, 4.0, 3.9) == [True, False, False, True]


def test_values_that_are_not_numbers_yet_are_ignored_and_not_remembered() -> None:
    assert about_x(when("x").improves(), math.nan, 2.0, math.nan, 1.0) == [False, True, False, True]
    assert about_x(when("x").increases(), 1.0, math.nan, 2.0) == [False, False, True]
    assert about_x(~when("x").above(1), math.nan) == [False]


def test_only_numeric_values_can_be_compared() -> None:
    with pytest.raises(SigmaConfigError, match=r"x above 1: needs a number \(got list\)."):
        about_x(when("x").above(1), [1.0, 2.0])  # type: ignore[arg-type]


def test_the_clock_is_read_directly() -> None:
    nothing: list[Mapping[str, Any]] = [{}, {}, {}]
    assert asked(when("epoch").reaches(2), nothing) == [False, True, True]
    assert asked(when("iteration").reaches(30), nothing) == [False, False, True]
    assert asked(when("seconds").above(2), nothing) == [False, True, True]


def test_two_values_are_compared_as_they_are_at_that_time() -> None:
    rows: list[dict[str, Any]] = [{"x": 1.0}, {"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 2.0}, {"x": math.nan, "y": 3.0},
                                  {"x": 1.0, "y": math.nan}, {"x": 2, "y": 3}, {"x": 3.0, "y": 2.0}]  # fmt: skip
    assert asked(when("x").below("y"), rows) == [False, True, False, False, False, True, False]
    assert asked(~when("x").below("y"), rows) == [False, False, True, False, False, False, True]
    assert asked(when("x").reaches("epoch"), [{"x": 1}, {"x": 1}, {"x": 3}]) == [True, False, True]
    assert asked(when("*.x", "all").above("y"), [{"a.x": 2, "b.x": 3, "y": 1}, {"a.x": 2, "b.x": 3, "y": 2}]) == [
        True,
        False,
    ]
    with pytest.raises(SigmaConfigError, match=r"x below y: needs a number \(got str\)."):
        asked(when("x").below("y"), [{"x": 1.0, "y": "low"}])


def test_once_holds_the_first_time_only_and_remembers_it() -> None:
    memory: dict[str, Any] = {}
    assert asked(when("x").above(1).once(), [{"x": x} for x in (None, 0, 2, 2)], memory) == [False, False, True, False]
    kept = json.loads(json.dumps(memory))  # as a checkpoint keeps it
    assert asked(when("x").above(1).once(), [{"x": 0}, {"x": 2}], kept) == [False, False]
    assert about_x(when("x").increases().once(), 1, 2, 3, 2, 3) == [False, True, False, False, False]


# -- for ---------------------------------------------------------------------------------------------------------------
def test_for_counts_consecutive_ticks() -> None:
    series = (5, 5, 0, 5, 5, 5, 5)
    lasting = when("x").above(1).for_(3, "epoch")
    assert about_x(lasting, *series) == [False, False, False, False, False, True, True]
    in_all = when("x").above(1).for_(3, "epochs", in_all=True)
    assert about_x(in_all, *series) == [False, False, False, True, True, True, True]


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=30), st.integers(1, 5))
def test_for_agrees_with_a_manual_count(series: list[bool], count: int) -> None:
    found = about_x(when("x").above(0).for_(count, "epoch"), *map(float, series))
    assert found == [i >= count and all(series[i - count : i]) for i in range(1, len(series) + 1)]
    in_all = about_x(when("x").above(0).for_(count, "epoch", in_all=True), *map(float, series))
    assert in_all == [sum(series[:i]) >= count for i in range(1, len(series) + 1)]


def test_for_counts_each_tick_once_however_often_it_is_evaluated() -> None:
    criterion, memory = when("x").increases().for_(2, "epoch"), {}
    found = []
    for epoch, x in ((1, 1), (1, 2), (1, 3), (2, 4), (2, 4), (3, 5), (3, 0)):
        found.append(criterion.ask(looked_up({"x": x}), memory, Moment(epoch=epoch)))
    assert found == [False, False, False, False, False, True, True]


def test_all_ticks_between_two_evaluations_count() -> None:
    criterion, memory = when("x").above(0).for_(100, "iterations"), {}
    found = [criterion.ask(looked_up({"x": 1}), memory, Moment(iteration=i)) for i in (60, 120, 158, 159, 200)]
    assert found == [False, False, False, True, True]


@pytest.mark.parametrize(("scale", "moment"), [("epoch", Moment(epoch=7)), ("second", Moment(second=90.0))])
def test_a_for_criterion_first_evaluated_late_has_not_held_since_the_start(scale: str, moment: Moment) -> None:
    assert not when("x").above(0).for_(5, scale).ask(looked_up({"x": 1}), {}, moment)


def test_a_missing_value_interrupts_a_for_criterion() -> None:
    assert about_x(when("x").above(0).for_(2, "epoch"), 1, None, 1, 1) == [False, False, False, True]


def test_a_for_criterion_is_unknown_until_its_value_is_known() -> None:
    lasting, memory = when("x").above(0).for_(2, "epoch"), {}
    for epoch, x, answer in (
        (1, None, None),
        (1, 1, None),
        (2, 1, False),
        (3, 1, True),
        (4, None, None),
        (5, -1, False),
    ):
        assert lasting.answer(looked_up({"x": x}), memory, Moment(epoch=epoch)) is answer
    assert about_x(~lasting, None, 1, -1) == [False, True, True]
    assert about_x(when("x").above(0).for_(1, "epoch", in_all=True), 1, None) == [True, True]


# -- and, or, not ------------------------------------------------------------------------------------------------------
TRUTH = {"yes": True, "no": False, "unknown": None}


def _of(name: str) -> Question:
    return when(name).above(0)


def _kleene(a: bool | None, b: bool | None) -> dict[str, bool | None]:
    """Kleene's strong logic, as minimum and maximum on no < unknown < yes."""
    order = [False, None, True]
    low, high = min(order.index(a), order.index(b)), max(order.index(a), order.index(b))
    return {"and": order[low], "or": order[high]}


@pytest.mark.parametrize("left", TRUTH)
@pytest.mark.parametrize("right", TRUTH)
def test_and_or_not_follow_kleenes_logic(left: str, right: str) -> None:
    values = {"yes": 1.0, "no": -1.0}
    lookup, wanted = looked_up(values), _kleene(TRUTH[left], TRUTH[right])
    assert (_of(left) & _of(right)).answer(lookup, {}, NO_MOMENT) is wanted["and"]
    assert (_of(left) | _of(right)).answer(lookup, {}, NO_MOMENT) is wanted["or"]
    turned = {True: False, False: True, None: None}[wanted["and"]]
    assert (~(_of(left) & _of(right))).answer(lookup, {}, NO_MOMENT) is turned


def test_an_unknown_criterion_does_not_hold() -> None:
    assert asked(_of("unknown"), [{}]) == [False]
    assert asked(~_of("unknown"), [{}]) == [False]


def test_and_and_or_always_evaluate_both_sides_so_that_each_keeps_its_memory() -> None:
    rows = [{"x": x, "gate": gate} for x, gate in ((1.0, -1), (5.0, -1), (4.0, 1), (6.0, 1))]
    assert asked(_of("gate") & when("x").increases(), rows) == [False, False, False, True]
    rows = [{"x": x, "gate": gate} for x, gate in ((1.0, 1), (5.0, 1), (4.0, -1), (6.0, -1))]
    assert asked(_of("gate") | when("x").increases(), rows) == [True, True, False, True]


def test_both_sides_of_a_criterion_have_separate_memory() -> None:
    twice = when("x").improves() & when("x").improves(by=10)
    assert about_x(twice, 100.0, 95.0, 89.0) == [True, False, True]


# -- patterns ----------------------------------------------------------------------------------------------------------
def test_any_and_all_consider_every_match() -> None:
    rows = [{"a.x": 1, "b.x": 1}, {"a.x": 3, "b.x": 1}, {"a.x": 3, "b.x": 3}]
    assert asked(when("*.x", "any").above(2), rows) == [False, True, True]
    assert asked(when("*.x", "all").above(2), rows) == [False, False, True]


def test_an_unknown_match_does_not_change_a_result_that_others_decide() -> None:
    rows = [{"a.x": 1}, {"a.x": 2, "b.x": 1}, {"a.x": 1, "b.x": 2}]
    assert asked(when("*.x", "any").increases(), rows) == [False, True, True]
    memory: dict[str, Any] = {}
    rising = when("*.x", "all").increases()
    answers = [rising.answer(looked_up(row), memory, NO_MOMENT) for row in rows]
    assert answers == [None, None, False]


def test_a_pattern_without_a_match_is_unknown() -> None:
    assert when("*.x", "all").above(2).answer(looked_up({}), {}, NO_MOMENT) is None


def test_each_match_has_its_own_memory() -> None:
    rows = [{"a.x": 1, "b.x": 9}, {"a.x": 2, "b.x": 10}]
    assert asked(when("*.x", "all").increases(), rows) == [False, True]


# -- memory ------------------------------------------------------------------------------------------------------------
RESERVED = {"and", "or", "not", "for", "by", "is", "once", "in", "any", "all", *" ".join(VERBS).split()}
names = st.from_regex(r"[a-z][a-z0-9_]{0,5}(-[a-z0-9]+)?", fullmatch=True).filter(lambda name: name not in RESERVED)
addresses = st.lists(names, min_size=1, max_size=3).map(".".join) | st.sampled_from(["epoch", "iteration", "second"])
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6).map(float)


FLUENT = ["reaches", "falls_to", "above", "below", "equals", "increases", "decreases", "improves"]


@st.composite
def questions(draw: Any, subjects: st.SearchStrategy[str] = addresses) -> Criterion:
    verb = draw(st.sampled_from(FLUENT))
    subject, quantifier = draw(subjects), ""
    if draw(st.integers(0, 3)) == 0:
        subject, quantifier = f"**.{subject}", draw(st.sampled_from(["any", "all"]))
    others = numbers if verb in ("increases", "decreases", "improves") else numbers | addresses
    return getattr(when(subject, quantifier), verb)(draw(others))


def criteria(subjects: st.SearchStrategy[str] = addresses) -> st.SearchStrategy[Criterion]:
    return st.recursive(
        questions(subjects),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
            st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
            inner.map(lambda one: ~one),
            inner.map(lambda one: one.once()),
            st.tuples(inner, st.integers(1, 4), st.sampled_from(["epoch", "iteration"]), st.booleans()).map(
                lambda made: made[0].for_(made[1], made[2], in_all=made[3])
            ),
        ),
        max_leaves=6,
    )


values = st.one_of(st.none(), st.integers(-3, 3), st.floats(-3, 3))
rows = st.lists(st.fixed_dictionaries({"x": values, "y.x": values, "z.y.x": values}), max_size=12)


@settings(deadline=None)
@given(criteria(st.just("x")), rows)
def test_memory_is_plain_data_and_the_only_state(criterion: Criterion, series: list[Mapping[str, Any]]) -> None:
    kept: dict[str, Any] = {}
    through_json: dict[str, Any] = {}
    for epoch, row in enumerate(series, 1):
        moment = Moment(iteration=2 * epoch, epoch=epoch)
        again = Criterion.parse(str(criterion))  # a criterion that was never evaluated before
        assert criterion.ask(looked_up(row), kept, moment) == again.ask(looked_up(row), through_json, moment)
        through_json = json.loads(json.dumps(kept, allow_nan=False))
        assert through_json == kept


# -- text form ---------------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(criteria())
def test_every_criterion_prints_text_that_parses_to_an_equal_one(criterion: Criterion) -> None:
    assert Criterion.parse(str(criterion)) == criterion


LEVELS = [*sorted(RESERVED), "epochs", "1", "1e5", "2-dense", "-", "_", "é", "inf", "nan", "in-all", "switch"]
PARTS = [*LEVELS, "*", "**", "*<dense>", "<dense>", "*-a", "a*b", "<a,b>"]
spans = st.tuples(st.floats(1e-9, 1e9) | st.integers(1, 10**6), st.sampled_from(["second", "samples", "iteration"]))


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map(".".join),
    st.sampled_from(["", "any", "all"]),
    st.sampled_from(FLUENT),
    numbers,
    st.none() | spans,
)
def test_keywords_numbers_and_wildcards_may_be_parts_of_an_address(
    address: str, quantifier: str, verb: str, number: float, span: tuple[float, str] | None
) -> None:
    try:
        criterion = getattr(when(address, quantifier), verb)(number)
        criterion = criterion.for_(*span) if span else criterion
    except SigmaConfigError:
        return  # refused in Python already: a pattern without its quantifier, a part of an iteration
    for one in (criterion, ~criterion, criterion & ~criterion, (criterion | criterion).for_(2, "epoch")):
        assert Criterion.parse(str(one)) == one


A, B, C = when("a").above(1), when("b").below(2), when("c").equals(3)


@pytest.mark.parametrize(
    ("sentence", "fluent"),
    [
        ("validation.accuracy reaches 0.98", when("validation.accuracy").reaches(0.98)),
        ("validation.accuracy is above .5", when("validation.accuracy").above(0.5)),
        ("x falls  to -1e-3", when("x").falls_to(-0.001)),
        ("x decreases by 0.1", when("x").decreases(by=0.1)),
        ("x improves upwards by 2", when("x").improves(2, upwards=True)),
        ("epochs reaches 3", when("epoch").reaches(3)),
        ("any *<dense>.weights above 5", when("*<dense>.weights", "any").above(5)),
        ("x increases for 5 epochs in all", when("x").increases().for_(5, "epoch", in_all=True)),
        ("x above 1 for 2.5 seconds", when("x").above(1).for_(2.5, "second")),
        ("a above 1 and b below 2 or c equals 3", (A & B) | C),
        ("a above 1 and (b below 2 or c equals 3)", A & (B | C)),
        ("a above 1 or b below 2 and c equals 3", A | (B & C)),
        ("not a above 1 and not (b below 2 and c equals 3)", ~A & ~(B & C)),
        ("(a above 1 or b below 2) for 1 iteration", (A | B).for_(1, "iteration")),
        ("training.loss below validation.loss", when("training.loss").below(when("validation.loss"))),
        ("x is above y-2.x for 2 epochs", when("x").above("y-2.x").for_(2, "epoch")),
        ("epoch reaches 2-dense", when("epoch").reaches("2-dense")),
        ("x below y once", when("x").below("y").once()),
        ("not x increases for 3 epochs", ~(when("x").increases().for_(3, "epoch"))),
        ("not x increases for 3 epochs once", ~(when("x").increases().for_(3, "epoch").once())),
        ("a above 1 and b below 2 once", A & B.once()),
        ("order above 1 or android below 2", when("order").above(1) | when("android").below(2)),
        (
            "validation.loss increases for 5 epochs and epoch reaches 10",
            when("validation.loss").increases().for_(5, "epoch") & when("epoch").reaches(10),
        ),
    ],
)
def test_a_criterion_as_text_equals_its_fluent_form(sentence: str, fluent: Criterion) -> None:
    assert Criterion.parse(sentence) == fluent


def test_criteria_print_as_the_text_that_users_write() -> None:
    assert str(when("validation.loss").increases().for_(5, "epoch") & when("epoch").reaches(10)) == (
        "validation.loss increases for 5 epochs and epoch reaches 10"
    )
    assert str((A | B) & ~C) == "(a above 1 or b below 2) and not c equals 3"
    assert str(~A.for_(3, "epoch")) == "not (a above 1 for 3 epochs)"
    assert str((~A).for_(3, "epoch")) == "(not a above 1) for 3 epochs"
    assert str(A & B.for_(3, "epoch")) == "a above 1 and (b below 2 for 3 epochs)"
    assert str(A.once() | B.once()) == "a above 1 once or (b below 2 once)"
    assert str(A.for_(3, "epoch").once()) == "a above 1 for 3 epochs once"
    assert str(when("x").above(1234567)) == "x above 1234567"
    assert str(when("x").above(0.1)) == "x above 0.1"


def test_criteria_are_built_from_the_classes_of_their_names() -> None:
    assert isinstance(A & B, Both)
    assert isinstance(A | B, Either)
    assert isinstance(~A, Not)
    assert isinstance(A.for_(1, "epoch"), For)


def test_each_address_is_reported_once() -> None:
    criterion = (when("x").above(1) & when("y").below(2)).for_(2, "epoch") | ~when("x").below(0)
    assert criterion.addresses() == ("x", "y")
    assert (when("x").above("z") & when("y").below("x")).once().addresses() == ("x", "z", "y")


# -- goals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("epoch reaches 10", 10),
        ("epoch reaches 2.5", 3),
        ("epoch reaches 10 or x above 3", 10),
        ("epoch reaches 10 or epoch reaches 7", 7),
        ("epoch reaches 10 and x above 3", None),
        ("not epoch reaches 10", None),
        ("iteration reaches 10", None),
        ("epoch above 10", None),
        ("epoch reaches x", None),
        ("epoch reaches 10 once", None),
    ],
)
def test_the_goal_of_a_criterion_is_where_it_is_certain_to_hold(sentence: str, goal: float | None) -> None:
    assert Criterion.parse(sentence).goal(TimeScale.EPOCH) == goal


# -- texts -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sentence", "holds"),
    [
        ('status equals "finished"', True),
        ("status equals 'stopped'", False),
        ('not status equals "x y"', True),
        ('loss equals "0.5"', False),  # a number is no text
        ('missing equals ""', False),
        ('not missing equals ""', False),  # nothing is known of it
        ('any tags.* equals "b"', True),
        ('all tags.* equals "b"', False),
        ("status equals 'a\"b'", False),
    ],
)
def test_texts_are_compared_whole(sentence: str, holds: bool) -> None:
    values = {"status": "finished", "loss": 0.5, "tags.*": {"tags.0": "a", "tags.1": "b"}}
    criterion = Criterion.parse(sentence)
    assert criterion.ask(values.get, {}, Moment()) is holds
    assert Criterion.parse(str(criterion)) == criterion


def test_the_fluent_form_compares_texts_too() -> None:
    assert when("status").is_text("done") == Criterion.parse("status equals 'done'")
    assert str(when("tags.*", "any").is_text("b")) == 'any tags.* equals "b"'
    for wrong in (3, "a\nb", "'\""):
        with pytest.raises(SigmaConfigError, match="needs a text of one line, with one kind of quotes"):
            when("status").is_text(wrong)


# -- errors ------------------------------------------------------------------------------------------------------------
VERB = "expected reaches, falls to, above, below, equals, increases, decreases, improves, improves upwards."


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "'': is not understood at its end; expected an address."),
        ("epoch", f"'epoch': is not understood at its end; {VERB}"),
        ("epoch reaches", "at its end; expected a number, another address."),
        ("epoch reaches @", "at '@'; expected a number, another address."),
        ("x above and y above 2", "at 'and'; expected a number, another address."),
        ("x increases by y", "at 'y'; expected a number."),
        ("x above *.y", "'*.y': a pattern needs the quantifier 'any' or 'all' (got '')."),
        ("x above 1 once for 3 epochs", "at 'for'; expected and, or. Did you mean 'or'?"),
        ("epoch reachs 10", f"at 'reachs'; {VERB} Did you mean 'reaches'?"),
        ("loss incrases", f"at 'incrases'; {VERB} Did you mean 'increases'?"),
        ("loss falls 3", f"at 'falls'; {VERB} Did you mean 'falls to'?"),
        ("x above 1 adn y above 2", "at 'adn'; expected for, and, or. Did you mean 'and'?"),
        ("x above 1 y above 2", "at 'y'; expected for, and, or."),
        ("x above 1 and", "at its end; expected an address."),
        ("(x above 1", "at its end; expected for, and, or, )."),
        ("x above 1)", "at ')'; expected for, and, or."),
        ("x @ 3", f"at '@'; {VERB}"),
        ("x above 1 for five epochs", "at 'five'; expected a number."),
        ("x above 1 for 5 epoch s", "at 's'; expected and, or."),
        (
            "x above 1 for 5 epocs",
            "'5.0 epocs': the unit must be epochs, iterations, samples or seconds. Did you mean 'epochs'?",
        ),
        ("x above 1 for 5 starts", "'5.0 starts': the unit must be epochs, iterations, samples or seconds."),
        ("x above 1 for 2.5 epochs", "2.5 epochs: must be a whole number."),
        ("x above 1 for 0 epochs", "must be a number above 0."),
        ("*.loss above 3", "'*.loss': a pattern needs the quantifier 'any' or 'all' (got '')."),
        ("x above 1e999", "x above: needs a finite number (got inf)."),
    ],
)
def test_an_invalid_criterion_is_refused_with_its_position(sentence: str, message: str) -> None:
    with pytest.raises(SigmaConfigError) as error:
        Criterion.parse(sentence)
    assert str(error.value).startswith(f"{sentence!r}: ")
    assert str(error.value).endswith(message)


def test_a_criterion_may_be_nested_deeply() -> None:
    assert Criterion.parse("(" * 3000 + "x above 1" + ")" * 3000) == when("x").above(1)


@settings(deadline=None)
@given(st.text(alphabet="ab .*<>()0159-+e\nreachsndotbyflwigc", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_criterion_or_is_refused_with_a_message(text: str) -> None:
    try:
        found = Criterion.parse(text)
    except SigmaConfigError:
        with pytest.raises(SigmaConfigError, match=f"^{re.escape(repr(text))}: "):
            Criterion.parse(text)
    else:
        assert Criterion.parse(str(found)) == found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: when("*.x"), "'any' or 'all'"),
        (lambda: when("x", "some"), "'any' or 'all'"),
        (lambda: when("a..b"), "is not an address"),
        (lambda: when("any"), "is a keyword of criteria"),
        (lambda: when("x").above(math.nan), "needs a finite number"),
        (lambda: when("x").increases(True), "needs a finite number"),
        (
            lambda: when("x").reaches("and"),
            "'and': is not comparable. Give a number or an address.",
        ),
        (lambda: when("x").reaches("1e5"), "'1e5': is not comparable"),
        (lambda: when("x").reaches(when("*.y", "any")), "'*.y': is not comparable"),
        (lambda: when("x").increases("y"), "needs a finite number (got 'y')"),  # type: ignore[arg-type]
        (lambda: when("x").reaches(None), "needs a finite number (got None)"),
        (lambda: when("x").above(1).for_(0, "epoch"), "above 0"),
        (lambda: when("x").above(1).for_(5, "start"), "'5 start': the unit must be"),
        (lambda: when("x").above(1).for_(1.5, "iteration"), "must be a whole number"),
    ],
)
def test_criteria_that_cannot_be_built_in_python_are_refused(make: Any, message: str) -> None:
    with pytest.raises(SigmaError) as error:
        make()
    assert message in str(error.value)


def test_what_is_taken_to_fall_is_found_in_any_criterion() -> None:
    sentence = "not (a.b improves by 1 for 2 epochs once) or c improves upwards and d decreases and any *.e improves"
    assert Criterion.parse(sentence).falling() == ("a.b", "*.e")
