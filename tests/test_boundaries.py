"""A component that breaks its contract is refused by its name, its distribution's and the rule, with the cause."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_backend_numpy import NumpyBackend
from sigma_data import Arrays, BytesReader, Records
from sigma_kernel import (
    Environment,
    Extractor,
    GradientOptimiser,
    Initialiser,
    Iterator,
    Layer,
    Merger,
    Metric,
    Modifier,
    Outputs,
    Parameter,
    Preprocessor,
    Reader,
    Schedule,
    SigmaDataError,
    Slot,
    Transform,
    catalogue,
    functions as f,
    when,
)
from sigma_kernel.errors import (
    SigmaComponentError,
    SigmaMemoryError,
    SigmaTrainingError,
    component_name,
    expect,
    introduce_errors,
)
from sigma_layers import Dense, Input, Output, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_testing import Do, Memory

pytestmark = pytest.mark.rooms
X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
Y = X[:, :1].copy()
Gives = Callable[..., Any]


def raises(*_: Any, **__: Any) -> Any:
    return {}["w"]


def _add_as_float64(parts, weights, address):
    return sum(parts).astype(float)


def gives(value: Any) -> Gives:
    return lambda *_, **__: value


@define(eq=False)
class Gate(Layer):
    declares: Gives = gives({})
    keeps: Gives = gives({})
    does: Gives = lambda context, x: x

    def parameters(self, *inputs: Any, **_: Any) -> Any:
        return self.declares(*inputs)

    def state(self, *inputs: Any, **_: Any) -> Any:
        return self.keeps(*inputs)

    def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
        return self.does(context, *inputs)


@define(eq=False, kw_only=True)
class Cost(SquaredDifference):
    predicts: Gives = lambda output: output
    checks: Gives = gives(None)

    def prediction(self, output: Any) -> Any:
        return self.predicts(output)

    def check(self, targets: Any, output: Any) -> None:
        self.checks()


@define(eq=False, kw_only=True)
class Descent(GradientOptimiser):
    has: Gives = gives({})
    does: Gives = lambda gradient, parameter, slots, step, hyper: (parameter - hyper["learning_rate"] * gradient, {})

    def slots(self, parameter: Any) -> Any:
        return self.has()

    def update(self, *given: Any) -> Any:
        return self.does(*given)


def component(contract: type, **methods: Gives) -> Any:
    """Return an instance of a contract with these methods, which are not given the instance."""
    return type("Odd", (contract,), {name: _method(does) for name, does in methods.items()})()


def _method(does: Gives) -> Gives:
    return lambda self, *given, **by: does(*given, **by)


class Odd(Arrays):
    """Rows whose methods are replaced."""

    def __init__(self, **methods: Gives) -> None:
        super().__init__(inputs=X, targets=Y)
        self.__dict__.update(methods)


@define(eq=False)
class Preparing(Preprocessor):
    section: str = "inputs"
    fits: Gives = gives({})
    applies: Gives = lambda values, state: values

    def fit(self, blocks: Any) -> Any:
        return self.fits(blocks)

    def apply(self, values: Any, state: Any) -> Any:
        return self.applies(values, state)


@define(eq=False)
class Totals(Metric):
    sums: Gives = field(default=lambda prediction, targets: prediction.spec and targets)
    merges: Gives = np.add
    values: Gives = gives(1.0)

    def totals(self, prediction: Any, targets: Any) -> Any:
        return self.sums(prediction, targets)

    def merge(self, a: Any, b: Any) -> Any:
        return self.merges(a, b)

    def value(self, totals: Any, rows: int) -> Any:
        return self.values(totals, rows)


class Backend(NumpyBackend):
    def __init__(self, **methods: Gives) -> None:
        self.__dict__.update(methods)


def program(run: Gives) -> Gives:
    return lambda step, in_place=True: component(object, run=run, peak_bytes=gives(0))


def train(layer: Any = None, cost: Any = None, data: Any = None, **settings: Any) -> None:
    with Environment() as sigma:
        trainer = sigma.create_trainer("trainer", **{"batch_size": 10, "backend": "numpy", **settings})
        trainer.data = Arrays(inputs=X, targets=Y) if data is None else data
        trainer.network = Input(3) + (layer or Dense(2)) + Output(1) + (cost or SquaredDifference())
        trainer.optimiser = trainer.optimiser or Descent()
        trainer.fit(epochs=1)
        if data is None:
            trainer.evaluate("training")


def optimiser(**settings: Any) -> dict[str, Any]:
    return {"optimiser": Descent(**settings)}


WHOLE = {"w": Parameter((3,), 1.0)}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "parameters": ({"layer": Gate(declares=gives([3]))}, r"layer 1-gate (Gate): parameters\(\) must .*\(got list"),
    "parameters that are none": (
        {"layer": Gate(declares=gives({"w": 3}))}, r"layer 1-gate (Gate): parameters\(\) must .*\(got {'w': int}"),
    "state": ({"layer": Gate(keeps=gives({"m": None}))}, r"layer 1-gate (Gate): state\(\) .*\(got {'m': NoneType}"),
    "a state's shape": (
        {"layer": Gate(keeps=gives(WHOLE), does=lambda c, x: Outputs(x, {"w": x}))},
        r"layer 1-gate (Gate): it must return state 'w' as float32\[3\], as declared \(got float32 of shape"),
    "forward": ({"layer": Gate(does=gives(None))}, r"layer 1-gate (Gate): forward\(\) must return a node, .*\(got"),
    "prediction": ({"cost": Cost(predicts=gives(3)), "metrics": {"m": Totals()}},
        r".*layer 3-cost (Cost): its prediction must be a node \(got int"),
    "slots": (optimiser(has=gives({"m": 3})),
        r"optimiser (Descent): slots\(\) must return a Slot for each name, .*\(got {'m': int}"),
    "update": (optimiser(does=gives(None)), r"optimiser (Descent): update\(\) must return a pair, .*\(got NoneType"),
    "a parameter's shape": (
        optimiser(does=lambda g, p, *_: (f.sum(g), {})),
        r"optimiser (Descent): '\S+' is float32\[.*\], and must keep shape and dtype \(got"),
    "a forgotten slot": (
        optimiser(has=gives({"m": Slot()})), r"optimiser (Descent): build\(\) does not return the slot 'm' of"),
    "transform": (optimiser(transforms={"t": component(Transform, apply=gives({}))}),
        r"optimiser (Descent): transform 't' (Odd): apply\(\) must return a gradient for each .*\(got {}"),
    "modifier": (optimiser(modifiers={"m": component(Modifier, modify=gives(0.0))}),
        r"optimiser (Descent): modifier 'm' (Odd): modify\(\) must return a node \(got float"),
    "the length of factors": (optimiser(schedules={"learning_rate": component(Schedule, factors=gives(np.ones(3)))}),
        r"schedule of \S+ (Odd): factors\(\) must return floats of shape \(1,\) \(got float64 of shape \(3,\)"),
    "whole factors": (optimiser(schedules={"learning_rate": component(Schedule, factors=gives(np.ones(1, int)))}),
        r"schedule of \S+ (Odd): factors\(\) must return floats of shape \(1,\) \(got int64"),
    "factors in a list": (optimiser(schedules={"learning_rate": component(Schedule, factors=gives([1.0]))}),
        r"schedule of \S+ (Odd): factors\(\) must return floats of shape \(1,\) \(got list"),
    "initialiser": ({"initialisers": {"i": ("**", component(Initialiser, values=gives("much")))}},
        r"initialisers.i (Odd): values\(\) must return numbers of shape \(.*\) for \S+ \(got <U4"),
    "block": ({"data": Odd(block=gives({"inputs": X[:3], "targets": Y}))},
        r"data (Odd): block\(0\) must return 'inputs' as an array of 20 rows \(got float32 of shape \(3, 3\)"),
    "a block of lists": ({"data": Odd(block=gives({"inputs": X.tolist(), "targets": Y}))},
        r"data (Odd): block\(0\) must return 'inputs' as an array of 20 rows \(got list"),
    "encode": ({"data": Odd(encode=gives(None))}, r"data (Odd): encode\(\) must return a data set \(got NoneType"),
    "fit": ({"preprocessors": {"p": Preparing(fits=gives({"mean": [1]}))}},
        r"preprocessor 'p' (Preparing): fit\(\) must return arrays by name \(got {'mean': list}"),
    "apply": ({"preprocessors": {"p": Preparing(applies=lambda values, state: values[1:])}},
        r"preprocessor 'p' (Preparing): apply\(\) must return an array of 20 rows \(got float32 of shape \(19, 3\)"),
    "totals": ({"metrics": {"m": Totals(sums=gives(0.0))}}, r".*metric 'm' (Totals): totals\(\) must return a node"),
    "value": ({"metrics": {"m": Totals(values=gives("much"))}}, r"metric 'm' (Totals): value\(\) must return a number"),
    "indices": ({"iterator": component(Iterator, indices=gives(np.arange(20) - 1))},
        r"iterator (Odd): indices\(\) must return a permutation of range\(20\), each row once \(got int64 of shape"),
    "the order": ({"iterator": component(Iterator, indices=gives(np.arange(20)[::-1]), keeps_order=True)},
        r"iterator (Odd): indices\(\) must return range\(20\), as keeps_order declares \(got int64 of shape"),
    "merger": ({"operator": LocalOperator(shards=2, merger=component(Merger, merge=_add_as_float64))},
        r"merger (Odd): merge\(\) must return float32 of shape \(.*\), like its parts \(got float64"),
    "reader": ({"data": Records(Memory(b"abc"), component(Reader, read=gives([1])))},
        r"reader (Odd): read\(\) must return arrays by name \(got list"),
    "extractor": ({"data": Records(Memory(b"abc"), BytesReader(1), component(Extractor, extract=gives({"x": [1]})))},
        r"extractor (Odd): extract\(\) must return arrays by name \(got {'x': list}"),
    "burst": ({"backend": Backend(compile=program(gives(None)))}, r"backend (Backend): run\(\) must return a Burst"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_result_that_a_contract_does_not_allow_is_refused_with_the_components_name(name: str) -> None:
    settings, text = WRONG[name]
    text = text.replace("(Odd)", r"\(\S+Odd\)")
    for own in ("Gate", "Cost", "Descent", "Totals", "Preparing", "Backend"):
        text = text.replace(f"({own})", rf"\(tests\.test_boundaries\.{own}\)")
    with pytest.raises(Exception, match=rf"^{text}(.*\)\.|.*only as it was\.)$") as error:
        train(**settings)
    chain = [error.value, error.value.__cause__]
    assert any(isinstance(one, SigmaComponentError) for one in chain)


RAISES: dict[str, dict[str, Any]] = {
    "parameters": {"layer": Gate(declares=raises)},
    "state": {"layer": Gate(keeps=raises)},
    "forward": {"layer": Gate(does=lambda context, x: x * context.parameters["w"])},
    "prediction": {"cost": Cost(predicts=raises), "metrics": {"m": Totals()}},
    "check of a cost": {"cost": Cost(checks=raises)},
    "slots": optimiser(has=raises),
    "update": optimiser(does=raises),
    "transform": optimiser(transforms={"t": component(Transform, apply=raises)}),
    "modifier": optimiser(modifiers={"m": component(Modifier, modify=raises)}),
    "schedule": optimiser(schedules={"learning_rate": component(Schedule, factors=raises)}),
    "initialiser": {"initialisers": {"i": ("**", component(Initialiser, values=raises))}},
    "block": {"data": Odd(block=raises)},
    "encode": {"data": Odd(encode=raises)},
    "fit": {"preprocessors": {"p": Preparing(fits=raises)}},
    "apply": {"preprocessors": {"p": Preparing(applies=raises)}},
    "totals": {"metrics": {"m": Totals(sums=raises)}},
    "value": {"metrics": {"m": Totals(values=raises)}},
    "iterator": {"iterator": component(Iterator, indices=raises)},
    "merger": {"operator": LocalOperator(shards=2, merger=component(Merger, merge=raises))},
    "reader": {"data": Records(Memory(b"abc"), component(Reader, read=raises))},
    "extractor": {"data": Records(Memory(b"abc"), BytesReader(1), component(Extractor, extract=raises))},
    "compile": {"backend": Backend(compile=raises)},
    "run": {"backend": Backend(compile=program(raises))},
    "hook": {"hooks": {"h": Do(does=raises)}},
    "criterion": {"hooks": {"h": Do(when=when("training.loss").above(0), does=raises)}},
}


@pytest.mark.parametrize("name", RAISES)
def test_an_unexpected_exception_is_introduced_and_stays_the_cause(name: str) -> None:
    with pytest.raises(
        Exception, match=r"\(\S+(boundaries|Odd|Do)\S*\):? .*KeyError: 'w'\. (Correct its|Set on_error)"
    ) as error:
        train(**RAISES[name])
    chain: list[BaseException] = [error.value]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    assert isinstance(chain[-1], KeyError)
    assert any(isinstance(one, SigmaComponentError | SigmaTrainingError) for one in chain)


# -- whose it is -------------------------------------------------------------------------------------------------------
GATE = """
from attrs import define
from sigma_kernel import Layer


@define(eq=False)
class Gate(Layer):
    def forward(self, context, x):
        return x * context.parameters["w"]
"""


def test_a_plugins_component_is_named_with_its_distribution(distribution: Any) -> None:
    distribution("acme-sigma", '"layer", "gate", "acme_sigma.gates:Gate", "x"', gates=GATE)
    gate = catalogue().load("layer", "gate")
    assert isinstance(gate, type)
    with pytest.raises(SigmaComponentError) as error:
        train(gate())
    said = "layer 1-gate (acme-sigma:gate): KeyError: 'w'. Correct its code, or tell the authors of acme-sigma."
    assert str(error.value) == said
    assert isinstance(error.value.__cause__, KeyError)


def test_a_name_is_that_of_the_class_of_an_instance_and_of_a_function_itself() -> None:
    assert component_name(Dense(3)) == component_name(Dense) == "sigma-layers:dense"
    assert component_name(raises) == "tests.test_boundaries.raises"
    assert component_name(Gate()) == "tests.test_boundaries.Gate"


def test_an_expected_error_passes_unchanged() -> None:
    with pytest.raises(SigmaDataError, match=r"^row 3: is torn\. Mend it\.$"), introduce_errors("data", Gate()):
        raise SigmaDataError("row 3: is torn. Mend it.")
    with introduce_errors("data", Gate()):
        expect(True, "nothing", None)


def test_an_error_of_a_row_names_it_and_its_place_can_be_put_there_instead() -> None:
    error = SigmaDataError("is torn. Mend it.", row=3)
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert (str(same), same.args, same.row) == ("row 3: is torn. Mend it.", ("is torn. Mend it.",), 3)
    assert SigmaDataError("is torn. Mend it.").row is None


@pytest.mark.parametrize(
    ("told", "much"), [("Unable to allocate 131. TiB for an array", "Unable to .* array"), ("", "an array could not")]
)
def test_too_little_memory_is_no_mistake_of_a_component(told: str, much: str) -> None:
    remedy = r"Choose a smaller batch_size, shorter sequences, or fewer units\.$"
    said = rf"^backend \(tests.test_boundaries.Gate\): out of memory: {much}.*\. {remedy}"
    with pytest.raises(SigmaMemoryError, match=said), introduce_errors("backend", Gate()):
        raise MemoryError(told)


def test_ending_a_program_is_no_error_of_a_component() -> None:
    with pytest.raises(KeyboardInterrupt), introduce_errors("data", Gate()):
        raise KeyboardInterrupt
