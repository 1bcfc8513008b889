"""What people type who know Keras, PyTorch or another library: the answer names what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_data import Csv, Mnist
from sigma_kernel import Environment, every
from sigma_kernel.contracts import Hook, HookContext, Initialiser, Layer, Metric, live
from sigma_kernel.errors import (
    SigmaAddressError,
    SigmaConfigError,
    SigmaError,
    SigmaStateError,
    SigmaTrainingError,
    suggest_name,
)
from sigma_kernel.plugins.catalogue import catalogue
from sigma_layers import Dense, Dropout, Input, SoftmaxCrossEntropy
from sigma_optimisers import Adam
from sigma_testing import NullBackend
from sigma_text import Text
from sigma_training.history.metrics import History


# -- similar names -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("loss", ["training.loss", "validation.loss"], "Did you mean 'training.loss' or 'validation.loss'?"),
        ("val_loss", ["training.loss", "validation.loss"], "Did you mean 'validation.loss'?"),
        ("val_acc", ["training.loss", "validation.accuracy"], "Sigma calls it 'validation.accuracy'."),
        ("train_loss", ["training.loss", "validation.loss"], "Did you mean 'training.loss'?"),
        ("val_accuracy", ["training.accuracy", "validation.accuracy"], "Did you mean 'validation.accuracy'?"),
        ("val_split", ["batch_size", "validation_split"], "Did you mean 'validation_split'?"),
        ("valu", ["value", "validation.u"], "Did you mean 'value'?"),
        ("LR", ["learning_rate", "lrs"], "Sigma calls it 'learning_rate'."),
        ("lr", ["left", "lrs"], "Did you mean 'lrs'?"),
        ("a", [f"{name}.a" for name in "bcdef"], "Did you mean 'b.a' or 'c.a' or 'd.a'?"),
        ("nothing", ["value"], ""),
        ("x" * 10**6, ["value"], ""),
    ],
)
def test_a_hint_names_what_is_meant(name: str, known: list[str], hint: str) -> None:
    assert suggest_name(name, known).strip() == hint


@pytest.mark.rooms
@pytest.mark.parametrize(
    ("kind", "theirs", "ours"),
    [
        ("optimiser", "SGD", "gradient_descent"), ("layer", "mean_squared_error", "squared_difference"),
        ("layer", "MSELoss", "squared_difference"), ("layer", "categorical_crossentropy", "softmax_cross_entropy"),
        ("layer", "CrossEntropyLoss", "softmax_cross_entropy"), ("layer", "linear", "dense"),
        ("activation", "linear", "identity"), ("activation", "swish", "silu"), ("layer", "MaxPooling2D", "max_pool"),
        ("layer", "Concatenate", "concat"), ("metric", "mae", "mean_absolute_error"), ("metric", "acc", "accuracy"),
        ("hook", "ModelCheckpoint", "checkpoint"), ("hook", "ReduceLROnPlateau", "reduce_on_plateau"),
        ("hook", "TerminateOnNaN", "nan_guard"), ("initialiser", "xavier_normal", "glorot_normal"),
        ("initialiser", "kaiming_uniform", "he_uniform"), ("schedule", "CosineDecay", "cosine"),
        ("schedule", "StepLR", "step"), ("preprocessor", "StandardScaler", "standardise"),
        ("dataset", "load_iris", "iris"),
    ],
)  # fmt: skip
def test_a_component_of_another_library_is_found(kind: str, theirs: str, ours: str) -> None:
    with pytest.raises(SigmaConfigError, match=rf"no plugin offers it\. Sigma calls it '{ours}'\.$"):
        catalogue().resolve(kind, theirs)


@pytest.mark.rooms
def test_names_of_other_libraries_lead_to_components_and_settings_that_exist() -> None:
    for one in catalogue().components():
        made: Any = catalogue().load(one.kind, one.full_name) if "=" in one.also_known_as else None
        for theirs in one.also_known_as.split():
            name, _, setting = theirs.partition("=")
            assert not setting or setting in [f.alias for f in made.__attrs_attrs__], f"{one.full_name}: {theirs}"
            assert setting or name not in [other.name for other in catalogue().components(one.kind)]


# -- settings of data sets ---------------------------------------------------------------------------------------------
@pytest.mark.rooms
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Text("a.txt", lenght=40), "Text: has no setting 'lenght'. Did you mean 'length'?"),
        (lambda: Text("a.txt", context=40), "Text: has no setting 'context'. Sigma calls it 'length'."),
        (lambda: Text(length=40), "Text.path: is missing. It has path,"),
        (lambda: Csv("a.csv", "y", splits={}), "Csv: has no setting 'splits'. Did you mean 'split'?"),
        (lambda: Csv("a.csv"), "Csv.target: is missing. It has path, target,"),
        (lambda: Mnist("a", "b"), "Mnist: too many positional arguments. It has "),
        (lambda: Csv("a.csv", "y", seed=1.5), "Csv.seed: must be a whole number (got 1.5). Use // or int()."),
    ],
)
def test_a_data_set_of_python_is_refused_with_its_settings(make: Callable[[], Any], words: str) -> None:
    catalogue().components()  # which have names of other libraries
    with pytest.raises(SigmaConfigError) as caught:
        make()
    assert str(caught.value).startswith(words)


# -- settings in Python ------------------------------------------------------------------------------------------------
@define(eq=False)
class Gate(Layer):
    """A layer with settings and no validators."""

    units: int
    _least: int = field(default=0, kw_only=True)
    rate: float = live(0.5)

    def forward(self, context: Any, x: Any) -> Any:
        return x


@define
class Flat(Initialiser):
    value: float

    def values(self, address: str, parameter: Any, draws: Any) -> np.ndarray:
        return np.full(parameter.shape, self.value)


@define(eq=False)
class Bare(Hook):
    every = every(1, "iteration")

    def fire(self, context: Any) -> None:
        context.log("fired")


@define(init=False)
class Own(Metric):
    k: float

    def __init__(self, **given: Any) -> None:
        if "k" not in given:
            raise TypeError("k is missing")
        self.k = given["k"]

    def totals(self, prediction: Any, targets: Any) -> Any:
        return prediction


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gate(unit=3), "Gate: has no setting 'unit'. Did you mean 'units'?"),
        (lambda: Gate(3, bias=True), "Gate: has no setting 'bias'. It has units, rate, name, share, recompute, least."),
        (lambda: Flat(valu=3), "Flat: has no setting 'valu'. Did you mean 'value'?"),
        (lambda: Adam(lr=0.1), "Adam: has no setting 'lr'. Sigma calls it 'learning_rate'."),
        (lambda: Environment(sed=1), "Environment: has no setting 'sed'. Did you mean 'seed'?"),
        (lambda: Gate(), "Gate.units: is missing. It has units, rate, name, share, recompute, least."),
        (
            lambda: Bare(),
            "Bare.every: is missing. The class sets it without its annotation. Write `every: TimeStep = ...`.",
        ),
        (
            lambda: Gate(3, 0.5, "a"),
            "Gate: too many positional arguments. It has units, rate, name, share, recompute, least.",
        ),
        (lambda: Gate(3.5), "Gate.units: must be a whole number (got 3.5). Use // or int()."),
        (lambda: Gate(units="64"), "Gate.units: must be a whole number (got '64'). Use // or int()."),
        (lambda: Gate(3, least=0.5), "Gate.least: must be a whole number (got 0.5). Use // or int()."),
        (lambda: Dense(64 / 2), "Dense.units: must be a whole number of at least 1 (got 32.0)."),  # its own validator
    ],
)
def test_a_wrong_setting_is_refused_where_the_object_is_made(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(SigmaError) as caught:
        make()
    assert str(caught.value) == words


def test_settings_that_fit_are_left_as_they_are() -> None:
    assert type(Gate(np.int64(3)).units) is np.int64
    assert (Gate(3, name="a").units, Own(k=2.5).k) == (3, 2.5)  # its own __init__ decides
    assert [*signature(Gate).parameters] == ["units", "rate", "name", "share", "recompute", "least"]
    with pytest.raises(TypeError, match="k is missing"):
        Own(j=2)


# -- a trainer ---------------------------------------------------------------------------------------------------------
X, Y = np.eye(4, dtype=np.float32), np.arange(4) % 2


def trainer(**settings: Any) -> Any:
    common = {"network": Input(4) + Dense(2) + SoftmaxCrossEntropy(), "optimiser": "adam", "backend": NullBackend()}
    return Environment("t").create_trainer(**{**common, "data": (X, Y), **settings})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "mse"}, "has no setting 'loss'. End the network with a cost, such as + SquaredDifference()."),
        ({"callbacks": []}, "has no setting 'callbacks'. Add hooks to trainer.hooks before training."),
        ({"learning_rate": 0.1}, "has no setting 'learning_rate'. It is a setting of the optimiser: {'type': 'adam',"),
        ({"model": None}, "has no setting 'model'. Sigma calls it 'network'."),
    ],
)
def test_a_trainer_says_where_settings_of_keras_belong(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SigmaConfigError, match=re.escape(f"trainer 'trainer': {words}")):
        trainer(**settings)
    made, (name, value) = trainer(), next(iter(settings.items()))
    with pytest.raises(SigmaConfigError, match=re.escape(words)):
        setattr(made, name, value)


@pytest.mark.rooms
def test_a_value_of_keras_is_answered_with_the_address_published_here() -> None:
    score = {"type": "accuracy", "on": "validation", "every": "1 epoch"}
    parts = {"training": (X, Y), "validation": (X, Y)}
    for stop in ({"type": "early_stop", "value": "val_loss"}, {"type": "stop", "when": "val_loss below 1"}):
        with pytest.raises(SigmaConfigError, match=r"reads 'val_loss'.* Did you mean 'validation\.loss'\?$"):
            trainer(data=parts, hooks={"score": score, "s": stop}).fit(1)
    with pytest.raises(SigmaConfigError, match=r"reads 'val_loss', .* Add the hook that does, such as evaluate, or"):
        trainer(hooks={"s": {"type": "early_stop", "value": "val_loss"}}).fit(1)


@pytest.mark.rooms
def test_a_history_names_the_nearest_values() -> None:
    hooks = {"score": {"type": "evaluate", "every": "1 epoch"}}
    history = trainer(data={"training": (X, Y), "validation": (X, Y)}, hooks=hooks).fit(1, progress=False)
    for look in (history.__getitem__, history.curve, lambda name: history.plot(name)):
        with pytest.raises(SigmaAddressError, match=r"^history: has no 'loss'\. Did you mean 'training\.loss' or 'val"):
            look("loss")
    with pytest.raises(KeyError):
        history["val"]
    assert "loss" not in history
    assert history.get("loss") is None
    with pytest.raises(SigmaAddressError, match=r"^history: has no 'loss'\. Measured was: none\.$"):
        History()["loss"]


def test_a_live_setting_of_a_layer_in_use_is_advised_by_its_own_address() -> None:
    first, second, adam = Dropout(0.1), Dropout(0.2), Adam()
    made = trainer(network=Input(4) + first + Dense(2) + second + SoftmaxCrossEntropy(), optimiser=adam)
    second.rate = 0.3
    made.fit(1, progress=False)
    address = "trainer.network.layers.3-dropout.rate"
    with pytest.raises(SigmaStateError, match=re.escape(f"by its address: environment.set('{address}', 0.4).")):
        second.rate = 0.4
    with pytest.raises(SigmaStateError, match=r"environment\.set\('trainer\.optimiser\.beta1', 0\.5\)"):
        adam.beta1 = 0.5
    with pytest.raises(SigmaStateError, match=r"layers\.1-dropout\.rate"):
        first.rate = 0.4
    assert made.registry[address.removeprefix("trainer.")] == 0.3


# -- what a hook publishes ---------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Publishing(Hook):
    what: Any
    every: Any = "1 epoch"

    @property
    def writes(self) -> list[str]:
        return ["score"]

    def fire(self, context: HookContext) -> None:
        context.publish("score", self.what)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(
    ("what", "named"),
    [
        (object(), "object"), ({1, 2}, "set"), ([{"a": object()}], "object"), (b"a", "bytes"),
        (np.array([object()]), "ndarray"), (np.array(["a"]), "ndarray"), (1j, "complex"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_written_down_is_refused_with_the_names_of_the_hook(
    what: Any, named: str, background: bool
) -> None:
    rule = rf"^hook 'mine' \([\w.]*test_hints.Publishing\) failed: {named}: cannot be written as JSON\. Use numbers"
    made = trainer(hooks={"mine": Publishing(what=what, background=background)})
    with pytest.raises(SigmaTrainingError, match=rule):
        made.fit(2, progress=False)


@pytest.mark.parametrize("what", [1, np.float32(2), True, "a", None, [1, (2.5,)], {"a": np.arange(3)}, np.ones((2, 2))])
def test_numbers_strings_lists_and_arrays_are_published(what: Any) -> None:
    made = trainer(hooks={"mine": Publishing(what=what)})
    made.fit(1, progress=False)
    np.testing.assert_equal(made.registry["score"], what)
