"""What a notebook prints of an object fits on a screen, whatever was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import numpy as np
import pytest

from sigma_kernel import Environment, Node, TimeStep, functions as f
from sigma_kernel.graph import constant
from sigma_kernel.plugins.catalogue import catalogue, load as load_component
from sigma_kernel.settings import brief
from sigma_run import load
from sigma_run.config import build, load as read

TEXT = """
format = 1

[run]
name = "small"

[data]
dataset = "digits"

[network]
architecture = 'input(8, 8) + flatten() + 8 * dense(30) + output(10) + softmax_cross_entropy()'

[trainer]
optimiser = "adam"

[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""


PACKAGES = [
    "sigma_kernel",
    "sigma_run",
    "sigma_run.config",
    *(f"sigma_kernel.{name}" for name in ("contracts", "graph", "curves")),
]
ROOMS = [
    f"sigma_{name}" for name in ("data", "hooks", "layers", "optimisers", "initialisers", "operator_local", "plot")
]
ROOMS += [f"sigma_{name}" for name in ("monitor_console", "bench", "recipes", "backend_numpy", "backend_numba")]
PLAIN = {int: 7, float: 0.25, bool: True, str: "1 epoch", Path: Path("/some/where"), TimeStep: TimeStep("stop")}


def short(thing: Any) -> str:
    text = repr(thing)
    assert len(text) < 500, text[:2000]
    assert text.count("\n") < 10
    return text


def test_an_environment_and_its_trainers_say_what_they_are_and_how_far_they_got() -> None:
    data = {"inputs": np.zeros((5000, 40), np.float32), "targets": np.zeros(5000, np.int32)}
    with Environment("many") as sigma:
        for i in range(7):
            sigma.create_trainer(f"t{i}", data=data)
        assert short(sigma.trainer("t0")) == "Trainer('t0', no network)"
        assert short(sigma) == (
            "Environment('many', created, Trainer('t0', no network), Trainer('t1', no network), "
            "Trainer('t2', no network), Trainer('t3', no network), Trainer('t4', no network), and 2 more)"
        )


@pytest.mark.rooms
def test_what_a_run_leaves_prints_in_a_few_lines(tmp_path: Path) -> None:
    with build(read(TEXT), catalogue(), tmp_path) as sigma:
        sigma.run()
        trainer = sigma.trainer("trainer")
        assert short(sigma).startswith("Environment('small', stopped, Trainer('trainer', ")
        assert short(trainer).endswith(f", epoch 2, iteration {trainer.session.moment.iteration})")
        assert sigma.run_folder is not None
        model = load(sigma.run_folder)
        assert short(model).startswith("Trained('trainer', sigma-layers:input(8, 8) + ")
        assert short(model).endswith(f"{trainer.session.moment.iteration})")
        assert short(model.checkpoint).startswith("Checkpoint(")
        assert short(model.history.curve("training.loss")).startswith("Curve(")
        for thing in (trainer.session, trainer.session.setup, trainer.session.state, trainer.session.setup.model):
            short(thing)
        assert short(trainer.network[0]).startswith("input(8, 8) + ")
        assert short(model.network).startswith("Network(sigma-layers:input(8, 8) + ")
        assert model.network.summary() == trainer.summary()
        assert str(model.network.summary()).splitlines()[-1].split() == ["total", "8,770"]
        short(300 * trainer.network[0])
        for thing in (
            trainer.history,
            model.history,
            sigma.registry,
            trainer.session.setup.feed,
            sigma.summary(),
            trainer.summary(),
        ):
            short(thing)


def public() -> dict[str, type]:
    """Return the attrs classes and tuples that packages export, without abstract ones."""
    modules = [import_module(name) for name in PACKAGES + ROOMS]
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in dir(module)}
    return {
        name: one
        for name, one in found.items()
        if isinstance(one, type) and one.__module__.startswith("sigma_") and attrs.has(one) and not isabstract(one)
    }


def example(type_: Any) -> Any:
    """Return a value of a type: large where it may be, as arrays, tables and lists."""
    origin = get_origin(type_) or type_
    if origin in PLAIN:
        return PLAIN[origin]
    if type_ == tuple[int, ...]:
        return (3, 224, 224)  # a shape
    if origin is Node:
        return f.sum(constant(1.0) + 2.0)
    if origin is Literal:
        return get_args(type_)[0]
    if origin in (Union, UnionType):
        return example(get_args(type_)[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {f"name{i}": np.zeros((100, 100)) for i in range(60)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple(example(one) for one in get_args(type_) if one is not ... for _ in range(300))
    return np.zeros((100, 100))


def held(made: type, component: bool) -> Any:
    """Return an object of a class without making it: a component has its defaults, others hold what is large."""
    types, thing = get_type_hints(made), made.__new__(made)
    for field in attrs.fields(made):
        value = field.default if component else attrs.NOTHING
        if isinstance(value, attrs.Factory):
            value = {} if value.takes_self else value.factory()
        if value is attrs.NOTHING:
            value = PLAIN.get(types[field.name], "x") if component else example(types[field.name])
        object.__setattr__(thing, field.name, value)
    return thing


@pytest.mark.rooms
def test_every_public_class_prints_in_a_few_lines_whatever_it_holds() -> None:
    components, tried = {one for each in catalogue().components() if isinstance(one := load_component(each), type)}, 0
    for name, made in public().items():
        written = getattr(made.__repr__, "__code__", None)
        if written is None or (written.co_filename.endswith(".py") and made.__repr__ is not brief):
            continue  # not that of attrs: prints no fields, or those that the tests above print
        text, tried = repr(held(made, made in components)), tried + 1
        assert len(text) < 500, name
        assert text.count("\n") < 10, name
    assert tried > 100
