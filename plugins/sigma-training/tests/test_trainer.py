"""A trainer: its settings before use, errors for missing or invalid ones, and initial values."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel import Component
from sigma_kernel.contracts import Initialiser, Parameter
from sigma_kernel.environment import Environment
from sigma_kernel.errors import (
    SigmaComponentError,
    SigmaConfigError,
    SigmaDataError,
    SigmaError,
    SigmaNetworkError,
    SigmaStateError,
)  # fmt: skip
from sigma_step.model import LAYERS
from sigma_testing.null import NullBackend
from sigma_testing.steering import Sweep, small_environment, state_bytes
from sigma_training.data.dataset import Rows
from sigma_training.trainer import NetworkTrainer

Deep = Callable[..., Environment]


@frozen
class Fill(Initialiser):
    """Fill with one value, or with a wrong shape."""

    value: float = 1.0
    shape: tuple[int, ...] | None = None

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        return np.full(self.shape or parameter.shape, self.value)


class Draws(Initialiser):
    """Records its random source."""

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        return np.asarray(draws.uniform(parameter.shape))


# -- missing or invalid settings ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"data": None}, SigmaConfigError, "trainer: there is no data to train on. Set data, such as Arrays(inputs="),
        ({"data": {"training": None, "validation": 1}}, SigmaConfigError, "trainer: there is no data to train on."),
        ({"network": None}, SigmaNetworkError, "trainer: there is no network. Set one, such as Input(4) + Dense(3)"),
        ({"batch_size": 0}, SigmaConfigError, "trainer.batch_size: must be a whole number of at least 1 (got 0)."),
        ({"batch_size": 2.5}, SigmaConfigError, "trainer.batch_size: must be a whole number of at least 1 (got 2.5)."),
        ({"batch_size": True}, SigmaConfigError, "trainer.batch_size: must be a whole number of at least 1 (got Tru"),
        ({"batch_size": 24}, SigmaDataError, "data: a batch of 24 is larger than the data, 23 rows."),
        ({"last_batch": "skip"}, SigmaConfigError, "trainer.last_batch: must be 'keep' or 'drop' (got 'skip')."),
        ({"precision": "float16"}, SigmaConfigError, "trainer: the backend has no precision 'float16'. It has float32"),
        ({"backend": "numpi"}, SigmaConfigError, "backend 'numpi': no plugin offers it."),
        ({"backend": {"device": 1}}, SigmaConfigError, "trainer.backend.type: is missing. Give it the name of a"),
    ],
)  # fmt: skip
def test_a_missing_or_invalid_setting_is_refused(
    settings: dict[str, Any], error: type[SigmaError], message: str
) -> None:
    with small_environment(Sweep()) as sigma:
        for name, value in settings.items():
            setattr(sigma.trainer("trainer"), name, value)
        with pytest.raises(error) as raised:
            sigma.run()
        assert message in str(raised.value)
        assert sigma.state == "created"


def test_a_refused_configuration_can_be_corrected() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        network, trainer.network = trainer.network, None
        with pytest.raises(SigmaNetworkError):
            trainer.fit(epochs=1)
        trainer.network = network
        assert len(trainer.fit(epochs=1)["training.loss"]) == 5


def test_a_section_that_the_network_reads_must_be_in_the_data(deep: Deep, layers: SimpleNamespace) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        trainer.network = layers.Input("images") + layers.Dense(1) + layers.SquaredDifference()
        with pytest.raises(SigmaDataError) as error:
            trainer.fit(epochs=1)
    assert str(error.value).startswith(
        "trainer: the network reads section 'images'; the data has inputs, targets. Name"
    )


def test_targets_are_checked_by_the_cost_that_reads_them(deep: Deep, layers: SimpleNamespace) -> None:
    class Strict(layers.SquaredDifference):  # type: ignore[misc,name-defined]
        def check(self, targets: np.ndarray, output: Any) -> None:
            if targets.max() > 100:
                raise SigmaDataError(f"targets: too large for {output}.")

    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        trainer.network = layers.Input() + layers.Dense(1) + Strict()
        trainer.data["validation"].block(0)["targets"][3] = 1000
        with pytest.raises(SigmaDataError, match=r"targets: too large for float32\[1\]"):
            trainer.evaluate()


@pytest.mark.parametrize(("name", "value"), [("batch_size", 7), ("optimiser", None), ("hooks", {}), ("seed", 3)])
def test_settings_are_fixed_once_they_are_used(name: str, value: Any) -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        setattr(trainer, name, getattr(trainer, name))
        trainer.prepare()
        with pytest.raises(SigmaStateError, match=f"trainer.{name}: is fixed, as the trainer is prepared."):
            setattr(trainer, name, value)


# -- backends and operators --------------------------------------------------------------------------------------------
class Device(NullBackend):
    """A backend with a setting."""

    made: ClassVar[list[int]] = []

    def __init__(self, device: int = 0) -> None:
        if device > 3:
            raise ValueError(f"there is no device {device}")
        self.made.append(device)


class Catalogue:
    """Knows one backend, one operator and one trainer."""

    def load(self, kind: str, name: str) -> Any:
        known = {"backend:device": Device, "operator:sweep": Sweep, "trainer:default:training": NetworkTrainer}
        return known[f"{kind}:{name}"]

    def resolve(self, kind: str, name: str) -> Component:
        return Component(kind, name, f"{__name__}:{name.title()}", "One of this module.", distribution="tests")


@pytest.mark.parametrize("backend", ["device", {"type": "device", "device": 0}, Device(), Device])
def test_components_are_objects_names_or_tables(backend: Any) -> None:
    sigma = Environment("small", catalogue=Catalogue())  # type: ignore[arg-type]
    other = small_environment(Sweep(), splits=["training"]).trainer("trainer")
    trainer = sigma.create_trainer(backend=backend, operator="sweep", data=other.data, network=other.network)
    trainer.batch_size, trainer.optimiser = 5, other.optimiser
    trainer.fit(epochs=1)
    assert isinstance(trainer.session.setup.programs.backend, Device)
    assert trainer.session.backend_name in ("device", "Device")


def test_settings_that_a_component_refuses_are_reported_with_its_name() -> None:
    sigma = Environment("small", catalogue=Catalogue())  # type: ignore[arg-type]
    wrong = [({"device": 9}, "there is no device 9"), ({"divice": 0}, "has no setting 'divice'. Did")]
    for table, what in wrong:
        with pytest.raises(SigmaConfigError, match=f"^t.*.backend: {what}"):
            sigma.create_trainer(
                f"t{what[0]}", backend={"type": "device", **table}, data=Rows({"x": np.ones(3)})
            ).prepare()


# -- initial values ----------------------------------------------------------------------------------------------------
def _start(deep: Deep, **settings: Any) -> dict[str, np.ndarray]:
    with deep(**settings) as sigma:
        return dict(sigma.trainer("trainer").session.snapshot().arrays)


def test_the_most_specific_initialiser_applies_and_may_match_kinds_of_layers(deep: Deep) -> None:
    rules = {
        "all": ("**", Fill(1.0)),
        "weights": ("<dense>.weights", Fill(2.0)),
        "last": ("4-dense.weights", Fill(3.0)),
    }
    found = _start(deep, initialisers=rules)
    values = {name.removeprefix(LAYERS): float(v.ravel()[0]) for name, v in found.items() if name.startswith(LAYERS)}
    assert values == {
        "1-dense.weights": 2.0, "1-dense.bias": 1.0, "4-dense.weights": 3.0, "4-dense.bias": 1.0, "2-track.mean": 1.0,
    }  # fmt: skip


def test_a_layers_own_initialiser_applies_without_a_rule(deep: Deep) -> None:
    found = _start(deep)
    assert set(found[f"{LAYERS}1-dense.bias"]) == {np.float32(0.1)}
    assert len(set(found[f"{LAYERS}1-dense.weights"].ravel())) == 12


def test_each_parameter_draws_its_own_numbers(deep: Deep) -> None:
    found = _start(deep, initialisers={"all": ("**", Draws())})
    firsts = [float(v.ravel()[0]) for name, v in found.items() if name.startswith(LAYERS)]
    assert len(set(firsts)) == len(firsts) == 5


def test_the_seed_determines_the_drawn_data(deep: Deep) -> None:
    one, again, other = (_start(deep, seed=seed) for seed in (5, 5, 5 + 2**40))
    name = f"{LAYERS}1-dense.weights"
    assert one[name].tobytes() == again[name].tobytes()
    assert one[name].tobytes() != other[name].tobytes()
    assert other["random.key"].tolist() == [5, 2**8]


def test_an_initialiser_of_another_shape_is_refused(deep: Deep) -> None:
    with pytest.raises(
        SigmaComponentError,
        match=r"^initialisers.x \(\S+Fill\): values\(\) must return numbers of shape \(4,\) for 1-dense.bias \(got",
    ):
        _start(deep, initialisers={"x": ("1-dense.bias", Fill(shape=(2,)))})


def test_an_initialiser_that_matches_nothing_is_refused(deep: Deep) -> None:
    with pytest.raises(SigmaConfigError, match="trainer.initialisers.x: '9-dense.bias' matches no parameter."):
        _start(deep, initialisers={"x": ("9-dense.bias", Fill())})


def test_the_same_seed_trains_the_same_bits_and_another_seed_others(deep: Deep) -> None:
    found = []
    for seed in (3, 3, 4):
        with deep(seed=seed) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert found[0] == found[1]
    assert found[0] != found[2]
