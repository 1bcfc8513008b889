"""What a suite says about a component that fails: which one, what was expected, what came, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field, frozen

import sigma_testing as testing
from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import (
    Context,
    Hook,
    HookContext,
    Iterator,
    Layer,
    Merger,
    Modifier,
    Parameter,
    Preprocessor,
    Schedule,
    live,
)
from sigma_kernel.graph import Node, Spec
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.discovery import Plugin
from sigma_kernel.plugins.specs import Component
from sigma_testing import (
    HookSuite,
    IteratorSuite,
    LayerSuite,
    MergerSuite,
    ModifierSuite,
    PreprocessorSuite,
    ScheduleSuite,
    Suite,
    saving,
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


@define(eq=False)
class Bare(Hook):
    every: TimeStep = every(1, "iteration")
    priority = 5  # which no setting has then

    def fire(self, context: HookContext) -> None:
        context.log("fired")


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


class OfHook(HookSuite):
    def make(self) -> Hook:
        return Bare()


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
        (OfHook(), "test_its_settings_are_fields_of_its_class",
         f"{HERE}.Bare: expected that its settings are fields of its class, but: priority: set in the class without "
         "its annotation, which changes no setting. Annotate it as where it was declared: `priority: int = 5`."),
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
         "around 100 stay as they are. Let it, and each live setting in `settings`, change values around 100."),
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


# -- what files of runs hold -------------------------------------------------------------------------------------------
@frozen
class Shifted(Preprocessor):
    """Values minus a setting, which a file may not hold."""

    by: Any = 1.0

    def fit(self, blocks: Any) -> dict[str, np.ndarray]:
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return values - np.float32(1.0)


@frozen
class Converted(Shifted):
    """As above, with an array that is loaded as one."""

    by: Any = field(default=0.0, converter=np.asarray)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (Shifted(2.5), ""),
        (Shifted((1, [2.0, None], {"a": True})), ""),
        (Shifted(Path("rows.csv")), "by = PosixPath('rows.csv') is loaded as 'rows.csv'. Convert it"),
        (Shifted({"a", "b"}), "cannot be saved (an object of set cannot be imported by a name"),
        (Shifted(b"ab"), "by = b'ab' cannot be saved (an object of bytes cannot be imported by a name"),
        (Shifted({1: 2.0}), "by = {1: 2.0} is loaded as {'1': 2.0}. Convert it, as with field(converter=...)"),
        (Shifted(np.ones(2)), "by = array([1., 1.]) is loaded as [1.0, 1.0]. Convert it"),
        (Converted([1.0, 2.0]), ""),
        (Shifted(lambda x: x), ""),  # which has no name: nothing is compared
    ],
)
def test_a_setting_that_a_file_of_a_run_does_not_hold_is_named(
    made: Preprocessor, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfPreprocessor(PreprocessorSuite):
        def make(self) -> Preprocessor:
            return made

        def values(self) -> np.ndarray:
            return np.ones((4, 2), np.float32)

    records = [Component("preprocessor", n, f"{HERE}:{n.title()}", "Shift.", "acme") for n in ("shifted", "converted")]
    monkeypatch.setattr(saving, "catalogue", lambda: Catalogue([Plugin("acme", "1", components=records)]))
    if words:
        assert words in said(OfPreprocessor(), "test_its_settings_can_be_saved_and_loaded")
    else:
        OfPreprocessor().test_its_settings_can_be_saved_and_loaded()
