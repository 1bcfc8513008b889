"""Several optimisers in one trainer: what each updates and minimises, in which order, and how they are steered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_hooks import FunctionHook
from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Modifier, Objective, Operator, Optimisation, Slot, Work
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError, SigmaStateError
from sigma_kernel.graph import Node, Spec
from sigma_layers import Dense, Function, FunctionCost, Input
from sigma_operator_local import LocalOperator
from sigma_optimisers import (
    AccumulateGradients,
    Adam,
    Average,
    ClipGlobalNorm,
    GradientDescent,
    MaxNorm,
    Momentum,
    WarmUp,
)
from sigma_run.launcher import main
from sigma_testing.steering import decisive, state_bytes

ONE = {"inputs": np.ones((8, 1)), "targets": np.ones((8, 1))}
FIRST = Optimisation(GradientDescent(0.1), match="a.*", minimises=["up"])
SECOND = {"type": "gradient_descent", "learning_rate": 0.1, "match": "b.*", "minimises": ["down"]}


def game() -> Any:
    """Return a network with parameters ``a`` and ``b``, whose costs are ``up``, ``a * b``, and ``down``, ``-a * b``."""
    a, b = (Input(1) + Dense(1, bias=False, name=name) for name in "ab")
    product, down = Function(lambda x, y: x * y), FunctionCost(lambda x, _: -f.mean(x), name="down")
    b.link(product)
    product.link(down)
    return [a + product + FunctionCost(lambda x, _: f.mean(x), name="up"), down]


def playing(**settings: Any) -> Any:
    """Return a trainer of the game, in which both parameters begin at 1."""
    begin = {"w": ("**.weights", {"type": "constant", "value": 1.0})}
    given = {"optimisers": {"first": FIRST, "second": SECOND}, "network": game(), "initialisers": begin, **settings}
    return Environment("game", precision="float64").create_trainer(data=ONE, batch_size=4, **given)


SHARDED = {"operator": LocalOperator(shards=2)}
COSTS = {"a": "up", "b": "down"}


def weight(trainer: Any, name: str) -> float:
    return float(trainer.session.host(f"network.layers.{name}.weights")[0, 0])


def played(order: str, count: int) -> tuple[float, float]:
    """Return both parameters after ``count`` updates of a bilinear game."""
    a = b = 1.0
    for _ in range(count):
        before = a
        if order == "ba":
            b += 0.1 * a
        a -= 0.1 * b
        if order != "ba":
            b += 0.1 * (a if order == "ab" else before)
    return a, b


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("order", "names"), [("", []), ("ab", ["first", "second"]), ("ba", ["second", "first"])])
def test_optimisers_update_from_the_same_state_unless_they_are_ordered(
    backend: str, order: str, names: list[str]
) -> None:
    trainer = playing(order=names, backend=backend)
    trainer.fit(epochs=5)
    np.testing.assert_allclose([weight(trainer, "a"), weight(trainer, "b")], played(order, 10), rtol=1e-14)


def test_shards_of_several_optimisers_have_the_gradients_of_the_whole_batch() -> None:
    trainer = playing(operator=LocalOperator(shards=3))
    trainer.fit(epochs=5)
    np.testing.assert_allclose([weight(trainer, "a"), weight(trainer, "b")], played("", 10), rtol=1e-14)


def test_shards_of_optimisers_in_an_order_are_refused() -> None:
    trainer = playing(operator=LocalOperator(shards=2), order=["first", "second"])
    with pytest.raises(SigmaConfigError, match="trainer.order: shards compute the gradients .* Use shards = 1"):
        trainer.prepare()


class Undeclared(Operator):
    """Cuts batches into shards without declaring it."""

    def train(self, work: Work) -> None:
        LocalOperator(shards=2).train(work)


def test_shards_of_optimisers_in_an_order_are_refused_in_the_first_iteration_if_the_operator_declares_none() -> None:
    trainer = playing(operator=Undeclared(), order=["first", "second"])
    with pytest.raises(SigmaStateError, match="trainer.order: shards compute the gradients .* Use shards = 1"):
        trainer.fit(epochs=1)


@pytest.mark.parametrize("order", [[], ["first", "second"]])
def test_a_cost_that_an_optimiser_does_not_minimise_has_no_influence_on_it(order: list[str]) -> None:
    found = []
    for scale in (1.0, 7.0):
        trainer = playing(order=order)
        trainer.prepare()
        trainer.session.commands.set("network.layers.down.weight", scale)
        trainer.fit(iterations=1)
        found.append((weight(trainer, "a"), weight(trainer, "b")))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


def test_without_minimises_an_optimiser_minimises_the_sum_of_all_costs() -> None:
    trainer = playing(optimisers={"first": Optimisation(GradientDescent(0.1), match="a.*"), "second": SECOND})
    trainer.fit(iterations=3)
    assert weight(trainer, "a") == 1.0  # the costs cancel out
    assert weight(trainer, "b") == pytest.approx(1.3)


def test_gradients_that_hooks_observe_are_those_that_the_optimisers_are_given() -> None:
    seen: list[Any] = []
    pattern = "gradients.**"
    watch = FunctionHook(lambda context: seen.append(context.read(pattern)), inputs=[pattern], every="1 iteration")
    trainer = playing(order=["first", "second"], hooks={"watch": watch})
    trainer.fit(iterations=1)
    found = {address: float(values[0, 0]) for address, values in seen[0].items()}
    assert found == pytest.approx({"gradients.a.weights": 1.0, "gradients.b.weights": -0.9})


def test_each_optimiser_has_its_own_slots_steps_schedules_transforms_and_modifiers() -> None:
    short, bounded = {"short": ClipGlobalNorm(0.5)}, {"bounded": MaxNorm(1.03)}
    slow = Momentum(0.1, 0.0, schedules={"learning_rate": WarmUp("2 iterations")}, transforms=short)
    trainer = playing(
        optimisers={
            "first": Optimisation(slow, match="a.*", minimises=["up"]),
            "second": Optimisation(GradientDescent(0.1, modifiers=bounded), match="b.*", minimises=["down"]),
        }
    )
    trainer.fit(iterations=1)
    arrays = trainer.session.state.arrays
    assert {name for name in arrays if name.startswith("optimiser")} == {
        "optimisers.first.slots.a.weights.velocity", "optimisers.first.slots.a.weights.updates",
        "optimisers.second.slots.b.weights.updates", "optimisers.first.step", "optimisers.second.step",
    }  # fmt: skip
    factor = float(slow.schedules["learning_rate"].factors(np.array([0]), np.array([0]))[0])
    assert weight(trainer, "a") == pytest.approx(1.0 - 0.1 * factor * 0.5)
    assert weight(trainer, "b") == pytest.approx(1.03)
    assert trainer.session.registry.get("optimisers.first.transforms.short.limit") == 0.5


def test_a_parameter_that_no_optimiser_matches_keeps_its_bits() -> None:
    trainer = playing(optimisers={"second": SECOND})
    trainer.fit(epochs=2)
    assert weight(trainer, "a") == 1.0
    assert weight(trainer, "b") == pytest.approx(1.4)
    assert not [name for name in trainer.session.registry.addresses("optimisers.**") if ".a." in name]


# -- steering ----------------------------------------------------------------------------------------------------------
def test_settings_of_one_optimiser_are_set_by_its_name() -> None:
    trainer = playing()
    trainer.fit(iterations=1)
    trainer.session.commands.set("optimisers.second.learning_rate", 0.0)
    trainer.fit(iterations=1)
    assert weight(trainer, "b") == played("", 1)[1]
    assert weight(trainer, "a") == pytest.approx(played("", 2)[0])
    trainer.session.commands.set("optimisers.*.learning_rate", 0.0)
    assert trainer.session.registry.get("optimisers.first.a.weights.learning_rate") == 0.0


def test_one_optimiser_is_frozen_while_the_other_goes_on() -> None:
    trainer = playing()
    trainer.fit(iterations=1)
    trainer.session.commands.set("optimisers.first.frozen", True)
    a, b = weight(trainer, "a"), weight(trainer, "b")
    trainer.fit(iterations=2)
    assert (weight(trainer, "a"), weight(trainer, "b")) == (a, pytest.approx(b + 2 * 0.1 * a))
    trainer.session.commands.set("optimisers.*.frozen", False)
    trainer.fit(iterations=1)
    assert weight(trainer, "a") != a


def test_a_swap_of_one_optimiser_keeps_the_other_and_is_undone() -> None:
    with Environment("swapped", precision="float64") as sigma:
        adams = {name: {"type": "adam", "match": f"{name}.*", "minimises": [cost]} for name, cost in COSTS.items()}
        trainer = sigma.create_trainer(data=ONE, network=game(), optimisers=adams)
        sigma.prepare()
        trainer.fit(iterations=2)
        sigma.set("trainer.optimisers.*.learning_rate", 0.5)
        before, arrays = decisive(trainer), state_bytes(trainer)
        sigma.swap("optimisers.a", {"type": "momentum", "learning_rate": 0.5})
        after = state_bytes(trainer)
        changed = {name for name in arrays | after if arrays.get(name) != after.get(name)}
        assert {name for name in changed if not name.startswith("undo.")} == {
            "optimisers.a.slots.a.weights.first_moment", "optimisers.a.slots.a.weights.second_moment",
            "optimisers.a.slots.a.weights.velocity", "optimisers.a.slots.a.weights.updates", "optimisers.a.step",
        }  # fmt: skip
        settings = dict(trainer.session.registry.find("optimisers.*.*.*.learning_rate"))
        assert settings == {f"optimisers.{name}.{name}.weights.learning_rate": 0.5 for name in COSTS}
        sigma.undo()
        assert decisive(trainer) == before
        sigma.swap("optimisers.a", {"type": "momentum", "learning_rate": 0.5})
        start, slope = weight(trainer, "a"), weight(trainer, "b")
        trainer.fit(iterations=1)
        assert weight(trainer, "a") == pytest.approx(start - 0.5 * slope)  # it minimises the same cost


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        ("optimisers.frist", r"there is no such optimiser. Did you mean 'optimisers.first'\?"),
        ("optimiser", r"there is no such optimiser. Did you mean"),
    ],
)
def test_a_swap_of_an_optimiser_that_is_not_there_is_refused(slot: str, message: str) -> None:
    with Environment("none") as sigma:
        sigma.create_trainer(data=ONE, network=game(), optimisers={"first": FIRST, "second": SECOND})
        sigma.prepare()
        with pytest.raises(SigmaConfigError, match=message):
            sigma.swap(slot, "adam")


def test_early_stopping_restores_the_slots_of_every_optimiser() -> None:
    moments = {name: {"type": "momentum", "match": f"{name}.*", "minimises": [cost]} for name, cost in COSTS.items()}
    kept: dict[str, Any] = {}

    def act(context: Any) -> None:
        if context.moment.iteration == 2:
            context.keep()
            kept.update(state_bytes(trainer))
        elif context.moment.iteration == 5:
            context.bring_back()

    hook = FunctionHook(act, every="1 iteration")
    trainer = playing(optimisers=moments, hooks={"act": hook})
    trainer.fit(iterations=5)
    found = state_bytes(trainer)
    names = [name for name in found if name.startswith(("optimisers.", "network."))]
    assert len(names) == 8
    assert {name: found[name] for name in names} == {name: kept[name] for name in names}


# -- mistakes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": "adam"}, r"trainer.optimisers: there is an optimiser as well"),
        ({"optimisers": ["adam"]}, r"trainer.optimisers: each needs a name"),
        ({"optimisers": {"type": "adam"}}, r"trainer.optimisers: each needs a name"),
        ({"optimisers": {"x": {"match": "**"}}}, r"trainer.optimisers.x.type: is missing. Give it the name of"),
        ({"optimisers": {"x": 3}}, r"trainer.optimisers.x: must be an optimiser: its name"),
        ({"optimisers": {"x": "adam", "y": {"type": "adam", "match": "b.*"}}},
         r"trainer.optimisers.y: 'b.\*' matches b.weights, as does trainer.optimisers.x. A parameter has one"),
        ({"optimisers": {"x": {"type": "adam", "match": "c.*"}}},
         r"trainer.optimisers.x: 'c.\*' matches no parameter. There are a.weights, b.weights"),
        ({"optimisers": {"x": {"type": "adam", "minimises": ["ups"]}}},
         r"trainer.optimisers.x.minimises: there is no cost 'ups'. Did you mean 'up'\?"),
        ({"optimisers": {"x": {"type": "adam", "minimises": "up"}}},
         r"trainer.optimisers.x.minimises: must be a list of cost layers \(got 'up'\). Write \['...'\]"),
        ({"optimisers": {"x": {"type": "adam", "minimises": []}}}, r"x.minimises: must be a list of cost layers"),
        ({"order": ["first"]}, r"trainer.order: must be a list of the names of all optimisers, each once \(got \['f"),
        ({"order": ["first", "first"]}, r"There are: first, second"),
        ({"order": "first"}, r"trainer.order: must be a list"),
        ({"optimisers": {"x": Optimisation(Adam(settings={"s": {"match": "b.*", "frozen": True}}), match="a.*")}},
         r"trainer.optimisers.x.settings.s: 'b.\*' matches no parameter. There are a.weights;"),
        ({"optimisers": {"x": Optimisation(Adam(settings={"s": {"match": "**", "rate": 1}}), match="a.*")}},
         r"optimisers.x.settings.s.rate: no such setting"),
    ],
)  # fmt: skip
def test_mistakes_in_several_optimisers_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        playing(**settings).prepare()


# -- files -------------------------------------------------------------------------------------------------------------
FILE = """\
format = 1

[run]
name = "two"

[data]
dataset = "xor"
batch_size = 2

[network]
architecture = \"""
input(2) + dense(4, activation="tanh", name="body") + dense(3, name="spare")
+ output(2, name="head") + softmax_cross_entropy(name="kind")
\"""

[trainer]
epochs = 6
order = ["body", "head"]

[trainer.optimisers.body]
type = "adam"
learning_rate = 0.01
match = "body.*"

[trainer.optimisers.head]
type = "momentum"
match = "head.*"
minimises = ["kind"]

[hooks.save]
type = "checkpoint"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "two.toml").write_text(FILE)
    return tmp_path / "two.toml"


def test_a_run_with_several_optimisers_resumes_and_replays_to_the_bit(sigma: Any, file: Path) -> None:
    quiet = ["--quiet", "--json"]
    whole = json.loads(sigma("run", file, *quiet)[1])
    run = Path(json.loads(sigma("run", file, *quiet, "--epochs", "2")[1])["folder"])
    code, out, _ = sigma("resume", run, "--epochs", "6", *quiet)
    assert (code, json.loads(out)["parameters_sha256"]) == (0, whole["parameters_sha256"])
    assert sigma("replay", run, "--check")[0] == 0
    text = (run / "config.toml").read_text()
    assert '[trainer.optimisers.head]\ntype = "sigma-optimisers:momentum"' in text
    assert 'order = ["body", "head"]' in text
    assert sigma("evaluate", run, "--on", "training")[0] == 0


def test_a_setting_of_one_optimiser_is_overridden_by_its_address(sigma: Any, file: Path) -> None:
    found = [
        json.loads(sigma("run", file, "--quiet", "--json", "--set", f"trainer.optimisers.body.learning_rate={rate}")[1])
        for rate in (0.01, 0.02)
    ]
    assert found[0]["parameters_sha256"] != found[1]["parameters_sha256"]


def test_optimisers_are_explained_with_what_they_update_and_minimise(sigma: Any, file: Path) -> None:
    text = sigma("explain", file)[1]
    assert "OPTIMISER (IN ORDER)  TYPE      UPDATES  MINIMISES\nbody                  Adam      body.*   kind\n" in text
    assert [line.split(")", 1)[1].strip() for line in text.splitlines() if line.startswith("spare.")] == [
        "frozen: no optimiser matches it"
    ] * 2
    parameters = json.loads(sigma("explain", file, "--json")[1])["trainers"]["trainer"]["parameters"]
    assert [row["optimiser"] for row in parameters] == ["body"] * 2 + [None] * 2 + ["head"] * 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["kind"]', '["kinds"]',
         "two.toml:28: trainer.optimisers.head.minimises[0]: there is no cost 'kinds'. Did you mean 'kind'?"),
        ('"head.*"', '"**"', "two.toml:27: trainer.optimisers.head.match: '**' matches body.weights, as does"),
        ('"head.*"', '"hat.*"', "two.toml:27: trainer.optimisers.head.match: 'hat.*' matches no parameter."),
        ('["body", "head"]', '["body"]', "two.toml:18: trainer.order[0]: must be a list of the names of all"),
        ("minimises", "minimizes", "two.toml:28: trainer.optimisers.head: has no setting 'minimizes'. Did"),
        ("epochs = 6", 'optimiser = "adam"', "two.toml:20: trainer.optimisers: there is an optimiser as well."),
        ("learning_rate = 0.01", "learning_rate = -1", "two.toml:22: trainer.optimisers.body.learning_rate: must be"),
        (FILE[FILE.index("[trainer.o") : FILE.index("[hooks")], "",
         "two.toml:16: trainer.optimiser: is missing. Give it an optimiser, or several as optimisers.NAME."),
    ],
)  # fmt: skip
def test_mistakes_in_several_optimisers_are_reported_at_their_line(
    sigma: Any, file: Path, old: str, new: str, message: str
) -> None:
    file.write_text(FILE.replace(old, new))
    code, _, said = sigma("check", file)
    assert code == 2
    assert message in said


# -- an adversarial pair -----------------------------------------------------------------------------------------------
GAN = """
judged = input(1, section="noise") + dense(1, name="generator")
    + dense(16, activation="tanh", name="judge-1") + dense(1, name="judge-2")
input(1, section="real")
    + dense(16, activation="tanh", share={"weights": "judge-1.weights", "biases": "judge-1.biases"})
    + dense(1, share={"weights": "judge-2.weights", "biases": "judge-2.biases"})
    + binary_cross_entropy(targets="ones", name="real-known")
judged + binary_cross_entropy(targets="zeros", name="fake-found")
judged + binary_cross_entropy(targets="ones", name="fooled")
"""


@pytest.mark.parametrize("order", [[], ["critic", "generator"]])
def test_an_adversarial_pair_learns_the_mean_and_the_spread_of_a_gaussian(order: list[str]) -> None:
    random, count = np.random.default_rng(0), 2000
    real = random.normal(3.0, 0.5, (count, 1))
    data = {
        "noise": random.normal(size=(count, 1)), "real": real, "ones": np.ones((count, 1)),
        "zeros": np.zeros((count, 1)),
    }  # fmt: skip
    adam = {"type": "adam", "learning_rate": 0.01, "beta1": 0.5}
    trainer = Environment("gan", seed=1).create_trainer(network=GAN, data=data, batch_size=100, order=order)
    trainer.optimisers = {
        "critic": {**adam, "match": "judge-*.*", "minimises": ["real-known", "fake-found"]},
        "generator": {**adam, "match": "generator.*", "minimises": ["fooled"]},
    }
    trainer.fit(epochs=60)
    scale, mean = (trainer.session.host(f"network.layers.generator.{name}").item() for name in ("weights", "biases"))
    assert mean == pytest.approx(real.mean(), abs=0.1)
    assert abs(scale) == pytest.approx(real.std(), abs=0.15)


def test_a_file_with_shards_and_an_order_is_refused_by_a_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
format = 1
run = { operator = { type = "local", shards = 2 } }
data = { dataset = "xor" }
network = { architecture = "input(2) + dense(3) + output(2) + softmax_cross_entropy()" }

[trainer]
epochs = 1
order = ["b", "a"]

[trainer.optimisers]
a = { type = "adam", match = "1-dense.*" }
b = { type = "adam", match = "2-output.*" }
"""
    file = tmp_path / "f.toml"
    file.write_text(text)
    assert main(["check", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"{file}:9: trainer.order: shards compute the gradients of all optimisers from the same state. Use shards = 1, "
        "or leave out the order.\n"
    )
    file.write_text(text.replace("shards = 2", "shards = 1"))
    assert main(["check", str(file)]) == 0


@define(eq=False)
class Forgetful(Modifier):
    """A modifier that declares a slot, and returns another."""

    def slots(self, parameter: Spec) -> dict[str, Slot]:
        return {"seen": Slot(0.0, (), "int32")}

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, dict[str, Node]]:
        return parameter, {} if objective.parameters[address].shape else {"seen": parameter}


def test_a_modifier_must_return_the_slots_that_it_declares() -> None:
    optimiser = GradientDescent(0.1, modifiers={"it": Forgetful(match="b.*")})
    trainer = playing(optimisers={"first": FIRST, "second": Optimisation(optimiser, match="b.*", minimises=["down"])})
    message = "optimisers.second.*does not return the slot 'modifiers.it.seen' of 'b.weights'"
    with pytest.raises(SigmaComponentError, match=message):
        trainer.fit(epochs=1)


def test_slots_of_changes_have_names_of_their_own_and_their_dtypes() -> None:
    optimiser = Adam(0.1, transforms={"two": AccumulateGradients(2)}, modifiers={"slow": Average()})
    trainer = playing(optimisers={"first": FIRST, "second": Optimisation(optimiser, match="b.*", minimises=["down"])})
    trainer.fit(iterations=1)
    arrays = trainer.session.snapshot().arrays
    slots = {name.partition(".b.weights.")[2]: x.dtype.name for name, x in arrays.items() if ".second.slots." in name}
    assert slots == {
        "first_moment": "float64", "second_moment": "float64", "updates": "int32",
        "transforms.two.sum": "float64", "transforms.two.weight": "float64", "transforms.two.batches": "int32",
        "modifiers.slow.weights": "float64", "modifiers.slow.count": "int32",
    }  # fmt: skip
    assert arrays["optimisers.second.slots.b.weights.modifiers.slow.count"] == 0  # the first batch is no update


def test_shards_accumulate_the_gradients_of_the_whole_batch() -> None:
    settings = {**SECOND, "transforms": {"two": {"type": "accumulate", "batches": 2}}}
    whole, parts = (playing(optimisers={"first": FIRST, "second": settings}, **more) for more in ({}, SHARDED))
    for trainer in (whole, parts):
        trainer.fit(epochs=5)
    assert weight(parts, "b") == pytest.approx(weight(whole, "b"), rel=1e-13)
    assert weight(whole, "b") != 1.0
