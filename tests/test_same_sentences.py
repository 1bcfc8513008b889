"""The same mistake has the same sentence, whoever makes it: after its place, if it has one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaError
from sigma_kernel.views import EnvironmentView
from sigma_layers import Dense
from sigma_monitor_control.protocol import Conversation
from sigma_optimisers import Adam
from sigma_run import config
from sigma_run.config.writing import toml

NETWORK = "input(4) + output(3) + softmax_cross_entropy()"

# a table of an optimiser; where the mistake is in it, and what it is told
MISTAKES: list[tuple[Any, str, str]] = [
    ({"type": "adam", "learning_rat": 0.1}, "", "has no setting 'learning_rat'. Did you mean 'learning_rate'?"),
    ({"type": "adam", "lr": 0.1}, "", "has no setting 'lr'. Sigma calls it 'learning_rate'."),
    ({"type": "adam", "schedules": {"learning_rate": {"type": "cosine", "totl": "9 epochs", "total": "9 epochs"}}},
     ".schedules.learning_rate", "has no setting 'totl'. Did you mean 'total'?"),
    ({"type": "adam", "schedules": {"learning_rate": {"type": "one_cycle"}}}, ".schedules.learning_rate.total",
     "is missing. Give it a string. See `sigma components schedule one_cycle`."),
    ({"type": "adam", "learning_rate": "fast"}, ".learning_rate", "must be a number (got 'fast')"),
    ({"type": "adam", "amsgrad": 1}, ".amsgrad", "must be true or false (got 1)"),
    ({"type": "adam", "schedules": ["constant", 3]}, ".schedules[1]",
     "must be a schedule: its name, or a table with its `type` (got 3)"),
    ({"type": "adam", "learning_rate": -1}, ".learning_rate", "must be at least 0 (got -1.0)."),
    ({"type": "adam", "beta1": 1.0}, ".beta1", "must be at least 0 and less than 1 (got 1.0)."),
    ({"type": "adams"}, ".type", "optimiser 'adams': no plugin offers it. Did you mean 'adam'?"),
    ({"type": "relu"}, ".type", "optimiser 'relu': no plugin offers it. `sigma components optimiser` lists them."),
    ({"type": "adam", "transforms": {"clip": "cosine"}}, ".transforms.clip", "modifier 'cosine': no plugin offers it."),
]  # fmt: skip


def in_file(table: Any) -> str:
    text = toml({"format": 1, "data": {"dataset": "iris"}, "network": {"architecture": NETWORK},
                 "trainer": {"optimiser": table}})  # fmt: skip
    return of(lambda: config.load(text, name="f.toml")).partition(": ")[2]


def in_python(table: Any) -> str:
    with Environment("small") as sigma:
        return of(sigma.create_trainer(network=NETWORK, data="iris", optimiser=table, backend="numpy").prepare)


def sent(table: Any) -> str:
    with prepared() as sigma:
        return of(lambda: sigma.send("swap", slot="optimiser", component=table))


def by_protocol(table: Any) -> str:
    with prepared() as sigma:
        view = EnvironmentView(sigma, threading.Event())
        request = {"id": 1, "do": "command", "name": "swap", "arguments": {"slot": "optimiser", "component": table}}
        Conversation(view).receive(json.dumps(request))
        return of(view.tickets()[-1].result)


def prepared() -> Environment:
    sigma = Environment("small")
    sigma.create_trainer(network=NETWORK, data="iris", optimiser="momentum", backend="numpy", epochs=1).prepare()
    return sigma


def of(attempt: Callable[[], Any]) -> str:
    with pytest.raises(SigmaError) as error:
        attempt()
    return str(error.value)


@pytest.mark.parametrize("way", [in_file, in_python, sent, by_protocol])
@pytest.mark.parametrize(("table", "place", "sentence"), MISTAKES)
def test_a_mistake_has_the_same_sentence_after_its_place(
    way: Callable[[Any], str], table: Any, place: str, sentence: str
) -> None:
    where, _, rest = way(table).partition(f"optimiser{place}: ")
    assert where == "trainer."
    assert rest.startswith(sentence)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: Dense(), "Dense.units: is missing. It has units, activation"),  # type: ignore[call-arg]
        (lambda: Adam(0.1, beta3=0.5), "Adam: has no setting 'beta3'. Did you mean 'beta2'?"),  # type: ignore[call-arg]
        (lambda: Dense(8, activations="relu"), "Dense: has no setting 'activations'. Did you mean 'activation'?"),  # type: ignore[call-arg]
        (lambda: Environment("x").create_trainer(optimizer="adam"),
         "trainer 'trainer': has no setting 'optimizer'. Did you mean 'optimiser'?"),
    ],
)  # fmt: skip
def test_unknown_and_missing_settings_have_the_same_sentences_in_calls(
    attempt: Callable[[], Any], sentence: str
) -> None:
    assert of(attempt).startswith(sentence)


def test_all_mistakes_of_a_table_in_python_are_told_at_once() -> None:
    told = in_python({"type": "adam", "learning_rate": -1, "beta1": "x", "beta9": 0.9})
    assert sorted(line.partition(": ")[0] for line in told.split("\n")) == [
        "trainer.optimiser", "trainer.optimiser.beta1", "trainer.optimiser.learning_rate",
    ]  # fmt: skip
