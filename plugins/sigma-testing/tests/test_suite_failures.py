"""What a suite says about a component that fails: which one, what was expected, what came, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import define, frozen

import sigma_testing as testing
from sigma_kernel.contracts import (
    Context,
    Iterator,
    Layer,
    Merger,
    Modifier,
    Parameter,
    Schedule,
    live,
)
from sigma_kernel.graph import Node, Spec
from sigma_testing import (
    IteratorSuite,
    LayerSuite,
    MergerSuite,
    ModifierSuite,
    ScheduleSuite,
    Suite,
)

from .faults import FAILURES


# -- components that fail ----------------------------------------------------------------------------------------------
class Undecorated(Layer):
    rate: float = live(0.5)

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return inputs[0] * 0.5


@define(eq=False)
class Unmakeable(Layer):
    def __attrs_post_init__(self) -> None:
        raise ValueError("no such gate")

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return inputs[0]


@define(eq=False)
class Misspelt(Layer):
    def parameters(self, *inputs: Spec, **_: Any) -> Mapping[str, Parameter]:
        return {"weights": Parameter(inputs[0].shape)}

    def forward(self, context: Context, *inputs: Node, **_: Any) -> Node:
        return inputs[0] * context.parameters["weight"]


@define(eq=False)
class Nothing(Modifier):
    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        return parameter * 1.0


@frozen
class Single(Schedule):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return np.ones(len(iterations), np.float32)


class Unseeded(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.random.default_rng().permutation(rows)


class Mean(Merger):
    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        return np.asarray(sum(parts) / len(parts))


class OfLayer(LayerSuite):
    made: type[Layer]

    def make(self) -> Layer:
        return self.made()


def of(made: type[Layer]) -> Suite:
    return type("OfLayer", (OfLayer,), {"made": made})()


class OfModifier(ModifierSuite):
    def make(self) -> Modifier:
        return Nothing()


class OfSchedule(ScheduleSuite):
    def make(self) -> Schedule:
        return Single()


class OfIterator(IteratorSuite):
    def make(self) -> Iterator:
        return Unseeded()


class OfMerger(MergerSuite):
    def make(self) -> Merger:
        return Mean()

    def test_of_a_persons_own(self) -> None:
        raise AssertionError("as it is")


def said(suite: Suite, test: str, **given: Any) -> str:
    """Return the first line of a failure."""
    with pytest.raises(FAILURES) as caught:
        getattr(suite, test)(**given)
    return str(caught.value).partition("\n")[0]


HERE = __name__
MISSING = f"layer 0-it ({HERE}.Misspelt): KeyError: 'weight'. Correct its code"


@pytest.mark.parametrize(
    ("suite", "test", "sentence"),
    [
        (of(Undecorated), "test_its_settings_are_fields_of_its_class",
         f"{HERE}.Undecorated: expected that its settings are fields of its class, but: rate: declared with field() or "
         "live() in a class that attrs did not make. Decorate the class with attrs.define or attrs.frozen."),
        (of(Unmakeable), "test_it_can_be_made_and_used",
         "OfLayer: expected that it can be made and used, but: ValueError: no such gate. Correct what it raises: the "
         "other tests need it."),
        (of(Misspelt), "test_it_can_be_made_and_used",
         f"{HERE}.Misspelt: expected that it can be made and used, but: {MISSING}. Correct what it raises: the other "
         "tests need it."),
        (of(Misspelt), "test_the_same_key_gives_the_same_bits",
         f"OfLayer: it cannot be made and used ({MISSING}); see test_it_can_be_made_and_used"),
        (OfModifier(), "test_it_modifies_something_and_every_live_setting_has_an_effect",
         f"{HERE}.Nothing: expected that it modifies something and every live setting has an effect, but: values "
         "around 100 stay as they are. Use every live setting, from `settings`, on values around 100."),
        (OfSchedule(), "test_there_is_one_finite_factor_for_each_iteration",
         f"{HERE}.Single: expected that there is one finite factor for each iteration, but: factors of 40 iterations "
         "are float32 of shape (40,). Return float64, one factor per iteration."),
        (OfIterator(), "test_the_order_depends_on_the_arguments_alone",
         f"{HERE}.Unseeded: expected that the order depends on the arguments alone, but: Arrays are not equal, "
         "Mismatched elements: "),
        (OfMerger(), "test_equal_shards_give_what_one_of_them_would",
         f"{HERE}.Mean: expected that equal shards give what one of them would, but: Not equal to tolerance "
         "rtol=1e-12, atol=0, Mismatched elements: 12 / 12 (100%). Divide by the weights, or add the parts, which are "
         "weighted already."),
        (OfMerger(), "test_of_a_persons_own", "as it is"),
    ],
)  # fmt: skip
def test_a_failure_says_which_component_and_what_was_expected_and_came(suite: Suite, test: str, sentence: str) -> None:
    assert said(suite, test).startswith(sentence)


@pytest.mark.parametrize("made", [Unmakeable, Misspelt])
def test_a_component_that_cannot_be_used_fails_in_one_test_and_the_others_are_skipped(made: type[Layer]) -> None:
    suite, outcomes = of(made), dict[str, str]()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_") and "request" not in inspect.signature(test).parameters:
            try:
                test()
            except FAILURES as error:
                outcomes[name] = "skipped" if isinstance(error, pytest.skip.Exception) else "failed"
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    assert failed == {"test_it_can_be_made_and_used"}
    assert len(outcomes) > 14


def test_a_sound_component_that_fails_one_test_passes_the_others() -> None:
    suite = OfMerger()
    suite.test_it_can_be_made_and_used()
    suite.test_its_settings_are_fields_of_its_class()
    suite.test_equal_operands_give_equal_bits()


SUITES = [getattr(testing, name) for name in dir(testing) if name.endswith("Suite")]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_every_test_of_a_suite_says_what_to_do_in_one_sentence(suite: type) -> None:
    assert issubclass(suite, Suite)
    tests = [test for name, test in inspect.getmembers(suite, inspect.isfunction) if name.startswith("test_")]
    silent = [test.__name__ for test in tests if not (test.__doc__ or "").rstrip().endswith(".")]
    assert tests
    assert silent == []
