"""Validators of settings: accepted values, and the error message for others."""

from __future__ import annotations

import re

import numpy as np
import pytest
from attrs import define, field, validators

from sigma_data import Stream
from sigma_hooks import Accuracy, EarlyStop, Loss, SaveCheckpoint
from sigma_initialisers import Gaussian
from sigma_kernel import Environment, settings, when
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaDataError, SigmaNetworkError, suggest_name
from sigma_kernel.network.network import Network
from sigma_kernel.settings import phrase
from sigma_layers import Dense, Dropout, Input
from sigma_optimisers import Adam

pytestmark = pytest.mark.rooms


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stream([], keep="nope"), "Stream.keep: must be 'blocks' or 'one' (got 'nope')."),
        (lambda: Stream([], block_rows=0), "Stream.block_rows: must be at least 1 (got 0)."),
        (lambda: Stream([], block_rows="many"), "Stream.block_rows: must be a number (got 'many')."),
        (lambda: Stream([], names=()), "Stream.names: must not be empty."),
        (lambda: Loss(on_error="nope"), "Loss.on_error: must be 'fail' or 'mute' or 'ignore' (got 'nope')."),
        (lambda: Loss(budget=0.0), "Loss.budget: must be more than 0.0 (got 0.0)."),
        (lambda: Accuracy(top=0), "Accuracy.top: must be at least 1 (got 0)."),
        (lambda: EarlyStop("a", patience=-1), "EarlyStop.patience: must be at least 1 (got -1)."),
        (lambda: SaveCheckpoint(last=0), "SaveCheckpoint.last: must be at least 1 (got 0)."),
        (lambda: Adam(learning_rate="0.1"), "Adam.learning_rate: must be a finite number (got '0.1')."),
        (lambda: Dropout(float("nan")), "Dropout.rate: must be a finite number (got nan)."),
        (lambda: Gaussian(-1.0), "Gaussian.deviation: must be at least 0 (got -1.0)."),
    ],
)  # fmt: skip
def test_an_invalid_setting_of_a_component_gives_one_error_sentence(make, message):
    with pytest.raises(SigmaConfigError) as caught:
        make()
    assert str(caught.value) == message


@define
class Anything:
    low: int = field(default=1, validator=[settings.ge(1), settings.lt(5)])
    high: float = field(default=1.0, validator=settings.optional(settings.and_(settings.gt(0.0), settings.le(2.0))))
    name: str = field(default="a", validator=settings.matches_re(r"\w", "one letter"))
    ways: tuple[str, ...] = field(default=("x",), validator=settings.deep_iterable(settings.in_(("x", "y"))))
    two: tuple[int, ...] = field(default=(1, 2), validator=settings.min_len(2))
    count: int = field(default=1, validator=settings.whole)
    factor: float = field(default=1.0, validator=settings.finite)
    text: str = field(default="a", validator=settings.instance_of(str, "a string"))


@pytest.mark.parametrize(
    ("name", "right", "wrong", "message"),
    [
        ("low", 4, 5, "must be less than 5 (got 5)."),
        ("low", 1, 0, "must be at least 1 (got 0)."),
        ("high", None, 2.5, "must be at most 2.0 (got 2.5)."),
        ("high", 2.0, 0.0, "must be more than 0.0 (got 0.0)."),
        ("high", 0.1, float("nan"), "must be more than 0.0 (got nan)."),
        ("name", "b", "bc", "must be one letter (got 'bc')."),
        ("name", "b", None, "must be one letter (got None)."),
        ("ways", ["y", "x"], ["y", "z"], "must be 'x' or 'y' (got 'z')."),
        ("ways", (), 3, "must be a list (got 3)."),
        ("two", (1, 2, 3), (1,), "must have a length of at least 2 (got 1)."),
        ("count", -3, True, "must be a whole number (got True)."),
        ("factor", -2, float("inf"), "must be a finite number (got inf)."),
        ("factor", 1e30, "1", "must be a finite number (got '1')."),
        ("text", "", 1, "must be a string (got 1)."),
    ],
)  # fmt: skip
def test_each_validator_accepts_what_its_message_says(name, right, wrong, message):
    assert getattr(Anything(**{name: right}), name) == right
    with pytest.raises(SigmaConfigError, match=rf"^Anything\.{name}: {re.escape(message)}$"):
        Anything(**{name: wrong})


def test_a_validator_may_raise_an_error_of_another_class():
    @define
    class Wide:
        units: int = field(validator=settings.must(lambda value: value > 0, "positive", SigmaNetworkError))

    with pytest.raises(SigmaNetworkError, match=r"^Wide.units: must be positive \(got 0\).$"):
        Wide(0)


def test_type_errors_of_attrs_are_reported_in_plain_words_for_files():
    @define
    class Raw:
        a: str = field(default="x", validator=validators.in_(("x", "y")))
        b: str = field(default="x", validator=validators.matches_re("[a-z]"))
        c: int = field(default=1, validator=validators.ge(1))
        d: tuple[int, ...] = field(default=(1,), validator=validators.min_len(1))

    told = {}
    for name, wrong in {"a": "z", "b": "3", "c": 0, "d": ()}.items():
        with pytest.raises(ValueError, match=name) as caught:
            Raw(**{name: wrong})
        told[name] = phrase(caught.value)
    assert told == {
        "a": "must be 'x' or 'y' (got 'z')",
        "b": "must have the form [a-z] (got '3')",
        "c": "must be at least 1 (got 0)",
        "d": "must not be empty",
    }


# -- environments and trainers -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", "../x", None, 3, ".hidden", "a b"])
def test_an_environment_name_must_be_a_valid_folder_name(name):
    with pytest.raises(SigmaConfigError, match=rf"Environment.name: must be a name of letters.*got {name!r}"):
        Environment(name)


def test_an_environment_refuses_an_invalid_precision():
    with pytest.raises(SigmaConfigError, match=r"Environment.precision: must be 'float32' or .*got 'banana'"):
        Environment("a", precision="banana")


@pytest.mark.parametrize("wanted", ["float16", "int32"])
def test_only_float_types_are_offered_as_precisions(wanted):
    with Environment("a") as sigma:
        trainer = sigma.create_trainer(precision=wanted, data={"inputs": [[1.0]]}, network="input(1) + dense(1)")
        with pytest.raises(
            SigmaConfigError,
            match=rf"no precision '{wanted}'. It has float32, float64, mixed_bfloat16, mixed_float16.$",
        ):
            trainer.prepare()


def test_a_seed_may_be_a_numpy_integer_and_nothing_else():
    assert type(Environment("a", seed=np.int64(3)).seed) is int
    with Environment("a") as sigma:
        assert sigma.create_trainer("b", seed=np.uint64(2**64 - 1)).seed == 2**64 - 1
        for seed in ("a", -1, 1.5, True, 2**64):
            with pytest.raises(SigmaConfigError, match=rf"seed: must be a whole number .*got {seed!r}"):
                sigma.create_trainer(f"c{seed}".replace(".", ""), seed=seed)
            with pytest.raises(SigmaConfigError, match="seed: must be a whole number"):
                sigma.trainer("b").seed = seed


def test_a_misspelt_trainer_setting_suggests_the_right_one():
    with Environment("a") as sigma, pytest.raises(SigmaConfigError, match="'optimizer'. Did you mean 'optimiser'?"):
        sigma.create_trainer().optimizer = Adam()


def test_values_are_found_by_patterns_from_the_root():
    with Environment("a") as sigma:
        sigma.registry.bind("one.rate", lambda: 1.0)
        sigma.registry.bind("two.rate", lambda: 2.0)
        assert sigma.find("**.rate") == {"one.rate": 1.0, "two.rate": 2.0}
        with pytest.raises(SigmaAddressError, match=r"^'\*\*.rate': is a pattern. Use a plain address, or find\(\)"):
            sigma.get("**.rate")
        with pytest.raises(SigmaAddressError, match="^3 is not an address. Pass a string"):
            sigma.get(3)


def test_a_condition_starts_with_an_address_and_not_a_criterion():
    with pytest.raises(SigmaAddressError, match="^3 is not an address. Pass a string"):
        when(3)
    with pytest.raises(SigmaConfigError, match="'epoch reaches 5': is not an address. Pass criteria to"):
        when("epoch reaches 5")


# -- numbers that a precision cannot represent -------------------------------------------------------------------------
def _trainer(sigma, rate=0.1, scale=1.0):
    data = {"inputs": np.ones((4, 2)) * scale, "targets": np.zeros(4, int)}
    network = "input(2) + output(2) + softmax_cross_entropy()"
    return sigma.create_trainer(data=data, network=network, optimiser=Adam(rate))


@pytest.mark.filterwarnings("error")
def test_a_number_that_the_precision_cannot_hold_is_refused():
    with (
        Environment("a") as sigma,
        pytest.raises(SigmaConfigError, match="learning_rate: 1e.308 is too large for float32"),
    ):
        _trainer(sigma, rate=1e308).prepare()
    with Environment("a", precision="float64") as sigma:
        _trainer(sigma, rate=1e308).prepare()


@pytest.mark.filterwarnings("error")
def test_data_beyond_the_precision_are_distinguished_from_non_finite_data():
    with Environment("a") as sigma, pytest.raises(SigmaDataError, match="row 0, column 0: 1e.300 is too large for"):
        _trainer(sigma, scale=1e300).prepare()


def test_an_empty_name_is_not_a_layer_name():
    with pytest.raises(SigmaNetworkError, match="'' cannot name a layer"):
        Network.build(Input(4) + Dense(3, name=""))


@pytest.mark.parametrize("value", [10**400, float("nan"), float("-inf"), "1", True, None])
def test_integers_beyond_floats_are_not_finite_numbers(value):
    @define
    class Owner:
        rate: float = field(validator=settings.finite)

    with pytest.raises(SigmaConfigError, match=r"^Owner.rate: must be a finite number \(got"):
        Owner(value)
    assert Owner(np.float32(0.5)).rate == 0.5


def test_without_a_similar_name_all_are_listed() -> None:
    assert suggest_name("z" * 9, ["elu", "Elu"], "There are") == " There are elu, Elu."


@pytest.mark.parametrize(("name", "similar"), [("ReLU", "relu"), ("RELU", "relu"), ("Tanh", "tanh"), ("gelU", "GELU")])
def test_a_suggestion_ignores_upper_and_lower_case(name: str, similar: str) -> None:
    assert suggest_name(name, ["elu", "relu", "tanh", "GELU"]) == f" Did you mean {similar!r}?"


def test_a_folder_that_is_no_path_is_refused():
    with pytest.raises(SigmaConfigError, match=r"^folder: must be a path \(got 3\)\.$"):
        Environment("run", folder=3)


@pytest.mark.parametrize("share", [{"weights": 3}, {3: "2-dense.weights"}, "2-dense.weights"])
def test_shared_parameters_that_are_no_addresses_are_refused(share):
    with pytest.raises(SigmaConfigError, match=r"^Dense\.share: must be addresses of parameters by name, such as"):
        Dense(8, share=share)
