"""Schedules that last as long as the run: they know when it ends, and refuse a run without an end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigma_ml as sm
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_operator_local import LocalOperator
from sigma_optimisers import Cosine, GradientDescent, OneCycle, Product, WarmUp
from sigma_testing.steering import decisive, steered_environment
from sigma_testing.transports.threads import ThreadOperator

pytestmark = pytest.mark.rooms
RATE = 0.1


def begun(schedule: Any, folder: Path | None = None, **settings: Any) -> Environment:
    """Return a network of one weight, whose loss is ``weight``: each update lowers it by the rate."""
    sigma = Environment("length", seed=0, precision="float64", folder=folder)
    sigma.create_trainer(
        data=(np.ones((8, 1)), np.zeros((8, 1))), batch_size=2, backend="numpy",
        network="input(1) + dense(1, bias=false) + absolute_difference()",
        optimiser=GradientDescent(RATE, schedules={"learning_rate": schedule}),
        initialisers={"far": ("**", {"type": "constant", "value": 100.0})}, **settings,
    )  # fmt: skip
    return sigma


def rates(sigma: Environment, train: Callable[[], Any]) -> list[float]:
    """Return the factors of the schedule in each iteration: the losses fall by the rate."""
    train()
    losses = sigma.trainer("trainer").history["training.loss"]
    return [float(x) for x in -np.diff(losses) / RATE]


def cosine(total: int) -> np.ndarray:
    return np.asarray(0.5 * (1.0 + np.cos(np.pi * np.arange(total) / total)))


def test_the_end_is_the_total_number_of_epochs() -> None:
    with begun(Cosine("run"), epochs=5) as sigma:
        found = rates(sigma, lambda: sigma.run(progress=False))
    np.testing.assert_allclose(found, cosine(20)[:-1], rtol=1e-6)


@pytest.mark.parametrize("goal", [{"epochs": 3}, {"iterations": 12}])
def test_the_end_is_the_goal_of_fit(goal: Any) -> None:
    with begun(Cosine("run"), epochs=50) as sigma:
        found = rates(sigma, lambda: sigma.trainer("trainer").fit(progress=False, **goal))
    np.testing.assert_allclose(found, cosine(12)[:-1], rtol=1e-6)


def test_the_end_follows_when_the_number_of_epochs_is_set() -> None:
    with begun(Cosine("run"), epochs=3) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=4, progress=False)
        sigma.set("trainer.epochs", 10)
        sigma.run(progress=False)
        losses = trainer.history["training.loss"]
    found = -np.diff(losses) / RATE
    np.testing.assert_allclose(found[:3], cosine(4)[:3], rtol=1e-6)
    np.testing.assert_allclose(found[4:], cosine(40)[4:-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "same"),
    [
        (OneCycle("run"), OneCycle("20 iterations")),
        (WarmUp("4 iterations", then=Cosine("run")), WarmUp("4 iterations", then=Cosine("16 iterations"))),
        (
            Product([Cosine("run"), OneCycle("10 iterations")]),
            Product([Cosine("20 iterations"), OneCycle("10 iterations")]),
        ),
    ],
    ids=["one_cycle", "warm_up", "product"],
)
def test_schedules_that_hold_others_pass_the_end_on(schedule: Any, same: Any) -> None:
    found = []
    for each in (schedule, same):
        with begun(each, epochs=5) as sigma:
            found.append(rates(sigma, lambda: sigma.run(progress=False)))
    assert found[0] == found[1]


def test_a_run_without_an_end_is_refused_before_it_trains() -> None:
    said = r"trainer.optimiser.schedules.learning_rate: needs the length of the run, .* Set `epochs` to a number"
    with begun(Cosine("run"), epochs=np.inf) as sigma:
        with pytest.raises(SigmaConfigError, match=said):
            sigma.run(progress=False)
        assert sigma.trainer("trainer").session.moment.iteration == 0
        sigma.trainer("trainer").fit(epochs=1, progress=False)


def test_a_swap_to_a_schedule_without_an_end_is_refused_and_training_goes_on() -> None:
    refused = list[str]()

    def swap(sigma: Environment) -> None:
        commands = sigma.trainer("trainer").session.commands
        schedules = {"learning_rate": {"type": "cosine", "total": "run"}}
        new = {"type": "gradient_descent", "learning_rate": RATE, "schedules": schedules}
        try:
            commands.apply(commands.make("swap", slot="optimiser", component=new))
        except SigmaConfigError as error:
            refused.append(str(error))

    with steered_environment({5: swap}, last=9) as sigma:
        sigma.run(progress=False)
        assert sigma.trainer("trainer").session.moment.iteration == 9
    assert len(refused) == 1
    assert "needs the length of the run" in refused[0]


def test_a_warm_up_in_epochs_before_one_that_ends_with_the_run_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="warm_up: '1 epoch' is in epochs, and `then` ends with the run"):
        WarmUp("1 epoch", then=Cosine("run"))


def test_a_resumed_and_a_replayed_run_has_the_same_bits(tmp_path: Path) -> None:
    hooks = {"save": {"type": "checkpoint", "every": "1 epoch"}}
    with begun(Cosine("run"), tmp_path, epochs=6, hooks=hooks) as sigma:
        sigma.run(progress=False)
        wanted, run = decisive(sigma.trainer("trainer"))[0], sigma.run_folder
    assert run is not None
    with begun(Cosine("run"), tmp_path, epochs=6, hooks=hooks) as part:
        part.trainer("trainer").fit(epochs=1, progress=False)
    with begun(Cosine("run"), epochs=6, hooks=hooks) as again:
        assert again.replay(run)[1] == {}
        assert decisive(again.trainer("trainer"))[0] == wanted


def test_workers_and_shards_change_no_bits() -> None:
    text = """format = 1
[data]
dataset = "iris"
batch_size = 30
[network]
architecture = 'input(4) + dense(5, "tanh") + output(3) + softmax_cross_entropy()'
[trainer]
epochs = 3
optimiser = { type = "adam", schedules = { learning_rate = { type = "cosine", total = "run" } } }
"""

    def digest(operator: Any, *sets: str) -> str | None:
        made = sm.from_file(text, *sets)
        made.trainer("trainer").operator = operator
        return made.run(progress=False).parameters_sha256

    wanted = digest(LocalOperator(shards=4))
    assert {digest(ThreadOperator(workers=n, shards=4)) for n in (1, 3)} == {wanted}
    own = "trainer.optimiser.schedules.learning_rate.total='12 iterations'"
    assert digest(LocalOperator(shards=4), own) == wanted


def test_a_run_that_is_interrupted_goes_on_to_the_same_end(sigma: Any) -> None:
    Path("own.toml").write_text("""format = 1
[data]
dataset = "iris"
batch_size = 50
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
epochs = 6
optimiser = { type = "adam", schedules = { learning_rate = { type = "cosine", total = "run" } } }
""")

    def ran(*arguments: Any) -> Any:
        code, out, error = sigma(*arguments, "--json", "--quiet")
        assert code == 0, error
        return json.loads(out)

    whole = ran("run", "own.toml", "--set", "hooks.save={ type = 'checkpoint', every = '2 epochs' }")
    assert sigma("replay", whole["folder"], "--check")[0] == 0
    code, _, error = sigma("run", "own.toml", "--epochs", "inf", "--quiet")
    assert code == 2
    assert "optimiser.schedules.learning_rate: needs the length of the run" in error
