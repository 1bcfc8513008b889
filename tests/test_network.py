"""Architectures become networks: algebra, order, names, shapes, the forward pass, and errors."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, CostLayer, Layer, Outputs, Parameter, live
from sigma_kernel.errors import SigmaAddressError, SigmaComponentError, SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Node, Spec, symbol
from sigma_kernel.graph.random import Key, Streams
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import Trace, live_settings


@define(eq=False)
class Input(Layer):
    section: str = "inputs"
    role: ClassVar[str] = "input"

    def forward(self, context, x):
        return x


@define(eq=False)
class Dense(Layer):
    units: int

    def parameters(self, x):
        return {"weights": Parameter((x.shape[-1], self.units), "glorot_uniform")}

    def forward(self, context, x):
        return x @ context.parameters["weights"]


@define(eq=False)
class Mark(Layer):
    role: ClassVar[str] = "output"

    def forward(self, context, x):
        return x


@define(eq=False)
class Add(Layer):
    branches: tuple[Architecture, ...] = ()

    def forward(self, context, *inputs):
        return sum(inputs[1:], start=inputs[0])


@define(eq=False)
class Join(Layer):
    branches: tuple[Architecture, ...] = ()

    def forward(self, context, *inputs):
        return f.concat(*inputs)


@define(eq=False)
class Noise(Layer):
    rate: float = live(0.5, low=0.0, below=1.0)

    def forward(self, context, x):
        return context.key.dropout(x, context.live["rate"]) if context.training and context.key else x


@define(eq=False)
class Mean(Layer):
    """Track the mean of the inputs."""

    def state(self, x):
        return {"mean": Parameter(x.shape)}

    def forward(self, context, x):
        return Outputs(x - context.state["mean"], {"mean": f.mean(x, axis=0)}) if context.training else x


@define(eq=False)
class Residual(Layer):
    body: Architecture

    def forward(self, context, x):
        return x + context.run("body", self.body, x)


@define(eq=False)
class Square(CostLayer):
    def forward(self, context, output, targets):
        return f.mean(f.square(output - targets))

    def prediction(self, output):
        return output * 2.0


@define(eq=False, kw_only=True)
class Apart(CostLayer):
    """Compare two values."""

    branches: tuple[Architecture, ...] = field(kw_only=False)

    def forward(self, context, x, y):
        return f.mean(f.square(x - y))


@define(eq=False)
class Custom(Layer):
    """Call a function of the test."""

    does: Any
    needs: Mapping[str, Parameter] = field(factory=dict)

    def parameters(self, *inputs):
        return self.needs

    def forward(self, context: Context, *inputs: Node) -> Any:
        return self.does(context, *inputs)


DATA = {"inputs": Spec((4,)), "targets": Spec((2,)), "other": Spec((3,)), "goals": Spec((4,))}


def resolve(kind: str, chosen: Any) -> Any:
    return {"twice": lambda x: x * 2.0}[chosen]


def names(*ends: Architecture) -> list[str]:
    return [placed.name for placed in Network.build(ends).layers]


def declared(*ends: Architecture):
    return Network.build(ends).declare(DATA, "float32", resolve)


def sources(network: Network) -> dict[str, tuple[str, ...]]:
    return {placed.name: placed.sources for placed in network.layers}


def computed(network: Network, arrays: Mapping[str, np.ndarray], training: bool = False, **wanted: Any) -> Any:
    """Run a network in NumPy on arrays by name, and return the outputs that ``wanted`` selects."""
    shapes = network.declare({n: Spec(spec.shape, "float64") for n, spec in DATA.items()}, "float64", resolve)
    data = {n: symbol(arrays[n].shape, "float64", n) for n in network.sections() if n in arrays}
    parameters, state = (
        {n: symbol(p.shape, "float64", n) for n, p in group.items()} for group in (shapes.parameters, shapes.state)
    )
    settings = {n: symbol((), "float64", n) for n in shapes.live}
    given = {**parameters, **state, **settings}
    forward = network.forward(Trace(resolve, training, None, "float64", given), data)
    inputs = {**data, **given}
    values = {**{n: setting.value for n, setting in shapes.live.items()}, **arrays}
    outputs = {name: pick(forward) for name, pick in wanted.items()}
    graph = Graph(tuple(inputs.values()), tuple(outputs.values()))
    found = interpret(graph, numpy_namespace())(*(np.asarray(values[n], np.float64) for n in inputs))
    return dict(zip(outputs, found, strict=True))


# -- the algebra -------------------------------------------------------------------------------------------------------
def test_chaining_layers_is_associative():
    expected = ["0-input", "1-dense", "2-mark", "3-square"]
    assert names(((Input() + Dense(3)) + Mark()) + Square()) == expected
    assert names(Input() + (Dense(3) + (Mark() + Square()))) == expected


def test_copies_of_a_layer_have_the_same_settings_and_separate_parameters():
    chain = Input() + 3 * (Dense(5) + Noise(0.25))
    network = Network.build(chain)
    assert [p.name for p in network.layers][1:] == ["1-dense", "2-noise", "3-dense", "4-noise", "5-dense", "6-noise"]
    assert {placed.layer.rate for placed in network.layers if placed.kind == "noise"} == {0.25}
    assert len({id(placed.layer) for placed in network.layers}) == 7
    assert list(network.declare(DATA, "float32", resolve).parameters) == [f"{i}-dense.weights" for i in (1, 3, 5)]


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "2"])
def test_the_number_of_copies_must_be_positive(n):
    with pytest.raises(SigmaNetworkError, match=r"\* dense: the number of copies must be a whole number of at least 1"):
        Dense.__rmul__(Dense(3), n)


def test_the_number_of_layers_is_limited():
    for n in (10_001, 10**30):
        with pytest.raises(SigmaNetworkError, match=rf"10,000 layers at most \(got {n:,}\). Make fewer copies."):
            n * Dense(3)
    with pytest.raises(SigmaNetworkError, match=r"got 11,000"):
        110 * (50 * (Dense(3) + Dense(4)))
    with pytest.raises(SigmaNetworkError, match=r"got 10,002"):
        Network.build(Input(3) + 10_000 * Dense(3) + Dense(3))


def test_owned_layers_count_towards_the_number_of_layers():
    @define(eq=False)
    class Body(Layer):
        body: Architecture

        def forward(self, context, x):
            return x

    with pytest.raises(SigmaNetworkError, match=r"got 10,100"):
        100 * Body(100 * Dense(3))


def test_only_architectures_can_be_added():
    with pytest.raises(TypeError):
        Input() + 3


def test_a_layer_used_in_two_chains_is_one_layer():
    trunk = Input() + Dense(5)
    network = Network.build(Join((trunk + Dense(2), trunk + Dense(3))))
    assert sources(network) == {
        "0-input": (),
        "1-dense": ("0-input",),
        "2-dense": ("1-dense",),
        "3-dense": ("1-dense",),
        "4-join": ("2-dense", "3-dense"),
    }


def test_the_layer_before_a_merge_layer_is_its_first_input():
    trunk = Input() + Dense(4)
    network = Network.build(trunk + Dense(4) + Add((trunk,)))
    assert network["3-add"].sources == ("2-dense", "1-dense")


def test_linking_a_layer_adds_an_input_and_returns_the_target():
    trunk, merge = Input() + Dense(4), Add()
    body = Dense(4) + Dense(4) + merge
    assert trunk.link(merge) is merge
    assert Network.build(trunk + body)["4-add"].sources == ("3-dense", "1-dense")


def test_linking_a_chain_adds_all_its_layers():
    merge = Join()
    (Input("other") + Dense(2, name="side")).link(merge)
    assert names(Input() + merge) == ["0-input", "1-input", "side", "3-join"]


def test_the_same_branch_may_be_merged_twice():
    x = Input()
    found = computed(Network.build(Add((x, x))), {"inputs": np.ones((2, 4))}, y=lambda forward: forward.prediction)
    np.testing.assert_array_equal(found["y"], np.full((2, 4), 2.0))


def test_copies_of_a_layer_have_no_links():
    dense = Dense(4)
    (Input() + dense).link(Add())
    assert names(Input() + 1 * dense) == ["0-input", "1-dense"]


def test_a_network_of_three_thousand_layers_can_be_built():
    network = Network.build(Input() + 3000 * Dense(4))
    assert network.layers[-1].name == "3000-dense"
    assert str(network) == "input() + 3000 * dense(4)"


# -- names -------------------------------------------------------------------------------------------------------------
def test_unnamed_layers_are_named_by_their_order():
    assert names(Input() + Dense(3, name="hidden") + Dense(3, name="h#") + Dense(3)) == [
        "0-input", "hidden", "h2", "3-dense",
    ]  # fmt: skip


def test_two_layers_of_the_same_name_are_refused_with_a_remedy():
    with pytest.raises(SigmaNetworkError, match=r"2 layers are called 'h'. '#' in a name becomes the index"):
        Network.build(Input() + 2 * Dense(3, name="h"))


@pytest.mark.parametrize("name", ["a.b", "a*", "<a>", "a b", "**"])
def test_a_name_that_is_not_valid_in_addresses_is_refused(name):
    with pytest.raises(SigmaNetworkError, match="cannot name a layer"):
        Network.build(Input(name=name))


def test_a_class_name_becomes_snake_case():
    class RNNCell2D(Dense):
        pass

    assert Network.build(Input() + RNNCell2D(3)).layers[1].kind == "rnn_cell2_d"


# -- invalid networks --------------------------------------------------------------------------------------------------
def test_a_cycle_of_hooks_is_named():
    a, b = Dense(4, name="a"), Dense(4, name="b")
    chain = Input() + a + b
    b.link(a)
    with pytest.raises(SigmaNetworkError, match=r"b -> a -> b is a cycle"):
        Network.build(chain)


def test_a_layer_that_follows_itself_is_a_cycle():
    a = Dense(4)
    with pytest.raises(
        SigmaNetworkError, match=r"dense -> dense is a cycle.*2 \* layer.*share={'weights': '1-dense.wei"
    ):
        Network.build(Input() + a + a)


def test_a_branch_that_leads_back_to_itself_is_a_cycle():
    merge = Add(name="merge")
    merge.branches = (merge + Dense(4, name="back"),)
    with pytest.raises(SigmaNetworkError, match=r"merge -> back -> merge is a cycle"):
        Network.build(Input() + merge)


def test_a_link_to_a_layer_that_leads_to_no_output_is_refused():
    trunk = Input() + Dense(4)
    trunk.link(Add(name="lost"))
    with pytest.raises(SigmaNetworkError, match="dense is linked to lost, which leads to none of the ends"):
        Network.build(trunk)


def test_an_empty_network_is_refused():
    with pytest.raises(SigmaNetworkError, match="there is no layer. Begin with an Input"):
        Network.build([])


def test_a_layer_without_inputs_is_refused():
    with pytest.raises(SigmaNetworkError, match="0-dense: nothing leads to it. Write Input"):
        Network.build(Dense(3))


def test_an_input_layer_in_the_middle_is_refused():
    with pytest.raises(SigmaNetworkError, match="2-input: 1-dense leads to it, but an input begins a chain"):
        Network.build(Input() + Dense(3) + Input())


def test_no_layer_may_follow_a_cost():
    with pytest.raises(SigmaNetworkError, match="2-dense: 1-square leads to it, but a cost ends a chain"):
        Network.build(Input() + Square() + Dense(3))


def test_several_inputs_of_a_layer_that_takes_one_are_refused_with_a_remedy():
    dense = Dense(3)
    with pytest.raises(SigmaNetworkError, match=r"2-dense: 0-input, 1-input lead to it.*not take 2 inputs. Merge"):
        Network.build([Input() + dense, Input("other") + dense])


# -- sections, outputs, costs ------------------------------------------------------------------------------------------
def test_several_inputs_outputs_and_weighted_costs_make_one_network():
    left, right = Input() + Dense(2), Input("other") + Dense(2)
    first = left + Mark(name="first") + Square(name="a", weight=2.0)
    second = Add((left, right)) + Mark(name="second") + Square(name="b", targets="aims", weight=0.5)
    network = Network.build([first, second])
    assert network.sections() == ("inputs", "other", "targets", "aims")
    assert network.sections(costs=False) == ("inputs", "other")
    assert [placed.name for placed in network.outputs] == ["first", "second"]
    assert [placed.name for placed in network.costs] == ["a", "b"]
    assert network.targets() == "targets"


def test_the_loss_is_the_sum_of_the_costs_times_their_live_weights():
    trunk = Input()
    network = Network.build(
        [trunk + Square(name="a", targets="goals", weight=3.0), trunk + Square(name="b", targets="goals")]
    )
    x, t = np.arange(8.0).reshape(2, 4), np.ones((2, 4))
    mean = ((x - t) ** 2).mean()
    found = computed(
        network, {"inputs": x, "goals": t, "b.weight": np.array(0.25)},
        loss=lambda forward: forward.loss, a=lambda forward: forward.costs["a"], b=lambda forward: forward.costs["b"],
    )  # fmt: skip
    assert found["a"] == pytest.approx(3 * mean)
    assert found["b"] == pytest.approx(0.25 * mean)
    assert found["loss"] == pytest.approx(3.25 * mean)


def test_the_input_of_a_cost_is_the_output_unless_one_is_marked():
    assert [p.name for p in Network.build(Input() + Dense(3) + Square()).outputs] == ["1-dense"]
    assert [p.name for p in Network.build(Input() + Mark() + Dense(3) + Square()).outputs] == ["1-mark"]
    assert [p.name for p in Network.build(Input() + Dense(3)).outputs] == ["1-dense"]


def test_predictions_are_transformed_by_the_cost_after_the_output():
    network = Network.build(Input() + Mark() + Square(targets="goals"))
    found = computed(network, {"inputs": np.ones((2, 4))}, y=lambda forward: forward.predictions["1-mark"])
    np.testing.assert_array_equal(found["y"], np.full((2, 4), 2.0))


def test_costs_without_targets_are_skipped_and_the_loss_is_then_an_error():
    network = Network.build(Input() + Dense(2) + Square())
    shapes = network.declare({"inputs": DATA["inputs"]}, "float32", resolve)
    given = {n: symbol(p.shape) for n, p in shapes.parameters.items()}
    forward = network.forward(Trace(resolve, False, None, "float32", given), {"inputs": symbol((3, 4))})
    assert forward.loss is None
    assert forward.prediction.shape == (3, 2)
    with pytest.raises(SigmaNetworkError, match="there is no cost to minimise"):
        forward.loss_or_fail()


def test_a_network_without_a_cost_reads_no_targets():
    with pytest.raises(SigmaNetworkError, match="there is no cost"):
        Network.build(Input()).targets()


def test_a_cost_without_targets_is_given_only_what_leads_to_it():
    pair = Input("other") + Dense(3) + Apart((Input() + Dense(3),), targets="", name="apart")
    network = Network.build(pair)
    assert network.sections() == ("other", "inputs")
    assert network.targeted_costs == ()
    assert [output.name for output in network.outputs] == ["1-dense"]
    shapes = network.declare({name: DATA[name] for name in network.sections()}, "float32", resolve)
    assert shapes.outputs["apart"] == Spec(())
    with pytest.raises(SigmaNetworkError, match="there is no cost with targets"):
        network.targets()
    with pytest.raises(SigmaNetworkError, match=r"4-apart: .* lead to it, but it does not take 2 inputs"):
        Network.build(Input() + Dense(3) + Apart((Input("other") + Dense(3),)))


def test_a_prediction_reads_only_what_leads_to_outputs():
    network = Network.build(Input("other") + Dense(3) + Apart((Input() + Dense(3),), targets=""))
    assert network.samples == ("other",)
    forward = network.forward(Trace(resolve, False, None, "float32"), {"other": symbol((5, 3))})
    assert forward.prediction.shape == (5, 3)
    assert forward.costs == {}
    with pytest.raises(SigmaNetworkError, match=r"0-input: the data has no section 'other'"):
        network.forward(Trace(resolve, False, None, "float32"), {"inputs": symbol((5, 4))})


def test_the_targets_of_an_output_are_those_of_the_first_cost_that_has_any():
    trunk = Input() + Dense(4)
    apart = trunk + Apart((Input("other") + Dense(4),), targets="")
    assert Network.build([apart, trunk + Square(targets="goals")]).targets() == "goals"
    assert Network.build([apart, trunk + Square(targets="goals")]).targets("1-dense") == "goals"


# -- shapes ------------------------------------------------------------------------------------------------------------
def test_declare_returns_everything_by_address():
    shapes = declared(Input() + Dense(5) + Mean() + Noise(0.1) + Dense(2) + Square(weight=2.0))
    assert {a: p.shape for a, p in shapes.parameters.items()} == {"1-dense.weights": (4, 5), "4-dense.weights": (5, 2)}
    assert {a: p.shape for a, p in shapes.state.items()} == {"2-mean.mean": (5,)}
    assert {a: s.value for a, s in shapes.live.items()} == {"3-noise.rate": 0.1, "5-square.weight": 2.0}
    assert shapes.outputs["1-dense"] == Spec((5,))
    assert shapes.outputs["5-square"] == Spec(())
    assert shapes.streams.numbers == {"3-noise": 0}


def test_fans_default_to_the_last_two_axes():
    assert (Parameter((3, 4)).fan_in, Parameter((3, 4)).fan_out) == (3, 4)
    assert (Parameter((5, 3, 4)).fan_in, Parameter((5, 3, 4)).fan_out) == (3, 4)
    assert (Parameter((7,)).fan_in, Parameter((7,)).fan_out) == (7, 7)
    assert (Parameter(()).fan_in, Parameter(()).fan_out) == (1, 1)
    assert Parameter((3, 4), fan_in=9).fan_in == 9


def test_an_error_inside_a_layer_names_the_layer_and_the_shapes():
    with pytest.raises(SigmaNetworkError, match=r"1-custom: matmul\(\(2, 4\), \(3, 5\)\): .*4.*3"):
        declared(Input() + Custom(lambda context, x: x @ context.parameters["w"], {"w": Parameter((3, 5))}))


def test_an_error_inside_an_owned_chain_names_the_full_path():
    bad = Dense(4) + Custom(lambda context, x: x @ x)
    with pytest.raises(SigmaNetworkError, match=r"1-residual: body.1-custom: matmul"):
        declared(Input() + Residual(bad))


def test_another_error_in_a_layer_is_the_cause_of_one_that_names_the_layer():
    with pytest.raises(
        SigmaComponentError, match=r"^layer 1-custom \(\S+Custom\): KeyError: 'w'\. Correct its code\.$"
    ) as error:
        declared(Input() + Custom(lambda context, x: context.parameters["w"]))
    assert isinstance(error.value.__cause__, KeyError)


def test_a_layer_must_return_a_node():
    with pytest.raises(SigmaComponentError, match=r"1-custom \(\S+\): forward\(\) must return a node, .* \(got int\)"):
        declared(Input() + Custom(lambda context, x: 3))


def test_a_layer_must_keep_the_batch():
    with pytest.raises(SigmaNetworkError, match=r"1-custom\(\(2, 4\)\): axis 0 of the output must be the batch"):
        declared(Input() + Custom(lambda context, x: f.reshape(x, (8,))))


def test_a_cost_must_be_a_scalar():
    class Bad(Square):
        def forward(self, context, output, targets):
            return f.square(output)

    with pytest.raises(SigmaNetworkError, match=r"1-bad: a cost must be a scalar \(got shape \(2, 4\)\)"):
        declared(Input() + Bad())


def test_a_missing_section_is_reported_with_similar_names():
    with pytest.raises(SigmaNetworkError, match=r"0-input: the data has no section 'input'.*Did you mean 'inputs'"):
        declared(Input("input"))


def test_state_that_was_not_declared_is_refused():
    with pytest.raises(SigmaComponentError, match="it returned state 'm', which it does not declare"):
        declared(Input() + Custom(lambda context, x: Outputs(x, {"m": x})))


def test_a_layer_cannot_use_one_name_for_two_things():
    class Both(Noise):
        def parameters(self, x):
            return {"rate": Parameter(x.shape)}

    with pytest.raises(SigmaNetworkError, match=r"1-both.rate is the name of 2 parameters"):
        declared(Input() + Both())


def test_a_value_that_was_not_given_is_named():
    network = Network.build(Input() + Dense(2))
    with pytest.raises(SigmaNetworkError, match=r"1-dense: no value for 1-dense.weights"):
        network.forward(Trace(resolve, False, None, "float32", {}), {"inputs": symbol((3, 4))})


# -- running -----------------------------------------------------------------------------------------------------------
def test_a_diamond_of_branches_computes_the_expected_value():
    trunk = Input() + Dense(3, name="t")
    network = Network.build(Join((trunk + Dense(2, name="l"), trunk + Dense(2, name="r"))) + Dense(1, name="o"))
    random = np.random.default_rng(0)
    x, t, left, right, o = (random.normal(size=s) for s in ((5, 4), (4, 3), (3, 2), (3, 2), (4, 1)))
    given = {"inputs": x, "t.weights": t, "l.weights": left, "r.weights": right, "o.weights": o}
    found = computed(network, given, y=lambda forward: forward.prediction)
    np.testing.assert_allclose(found["y"], np.concatenate([x @ t @ left, x @ t @ right], -1) @ o)


def test_state_is_read_and_written_by_address_while_training_only():
    network = Network.build(Input() + Mean())
    x, mean = np.arange(8.0).reshape(2, 4), np.ones(4)
    given = {"inputs": x, "1-mean.mean": mean}
    found = computed(
        network, given, True, y=lambda forward: forward.prediction, m=lambda forward: forward.state["1-mean.mean"]
    )
    np.testing.assert_array_equal(found["y"], x - 1)
    np.testing.assert_array_equal(found["m"], x.mean(0))
    np.testing.assert_array_equal(computed(network, given, y=lambda forward: forward.prediction)["y"], x)


def test_evaluation_and_training_have_different_graphs():
    network = Network.build(Input() + Noise())
    words = [symbol((2,), "uint32"), *(symbol((), "uint32") for _ in range(3))]
    data, given = {"inputs": symbol((3, 4))}, {"1-noise.rate": symbol(())}
    key = Key(*words, Streams())
    training = network.forward(Trace(resolve, True, key, "float32", given), data)
    evaluation = network.forward(Trace(resolve, False, key, "float32", given), data)
    assert "dropout" in {node.op for node in Graph((), (training.prediction,))}
    assert evaluation.prediction is data["inputs"]


def test_a_layer_is_given_the_precision_of_the_trace():
    seen = []
    network = Network.build(Input() + Custom(lambda context, x: (seen.append(context.precision), x)[1]) + Noise())
    network.declare({"inputs": Spec((4,), "float64")}, "float64", resolve)
    ints, rate = {"inputs": symbol((3, 4), "int32")}, {"2-noise.rate": symbol((), "float16")}
    network.forward(Trace(resolve, False, None, "float16", rate), ints)
    assert seen == ["float64", "float16"]


def test_components_are_resolved_by_name_and_objects_come_back():
    chosen = Custom(lambda context, x: context.resolve("activation", "twice")(x))
    given = Custom(lambda context, x: context.resolve("activation", f.neg)(x))
    found = computed(
        Network.build(Input() + chosen + given), {"inputs": np.ones((1, 4))}, y=lambda forward: forward.prediction
    )
    np.testing.assert_array_equal(found["y"], np.full((1, 4), -2.0))


# -- owned layers ------------------------------------------------------------------------------------------------------
def test_addresses_of_owned_layers_nest():
    shapes = declared(Input() + Residual(Dense(6) + Residual(Dense(6)) + Noise() + Dense(4)) + Residual(Dense(4)))
    assert list(shapes.parameters) == [
        "1-residual.body.0-dense.weights",
        "1-residual.body.1-residual.body.weights",
        "1-residual.body.3-dense.weights",
        "2-residual.body.weights",
    ]
    assert list(shapes.live) == ["1-residual.body.2-noise.rate"]
    assert list(shapes.streams.numbers) == ["1-residual.body.2-noise"]
    sizes = {address: np.prod(p.shape) for address, p in shapes.parameters.items()}
    assert list(sizes.values()) == [4 * 6, 36, 6 * 4, 16]


def test_an_owned_chain_computes_its_layers_in_order():
    network = Network.build(Input() + Residual(Dense(3) + Dense(4)))
    random = np.random.default_rng(0)
    x, a, b = (random.normal(size=s) for s in ((5, 4), (4, 3), (3, 4)))
    given = {"inputs": x, "1-residual.body.0-dense.weights": a, "1-residual.body.1-dense.weights": b}
    np.testing.assert_allclose(computed(network, given, y=lambda forward: forward.prediction)["y"], x + x @ a @ b)


def test_an_owned_layer_that_runs_twice_has_one_set_of_parameters():
    cell = Dense(4)
    twice = Custom(lambda context, x: context.run("cell", cell, context.run("cell", cell, x)))
    assert list(declared(Input() + twice).parameters) == ["1-custom.cell.weights"]


def test_an_owned_layer_that_runs_twice_continues_from_its_own_state():
    inner = Mean()
    twice = Custom(lambda context, x: context.run("inner", inner, context.run("inner", inner, x)))
    x, mean = np.arange(8.0).reshape(2, 4), np.ones(4)
    given = {"inputs": x, "1-custom.inner.mean": mean}
    found = computed(Network.build(Input() + twice), given, True, y=lambda forward: forward.prediction)
    np.testing.assert_array_equal(found["y"], x - mean - x.mean(0))


def test_an_owned_layer_that_runs_twice_draws_different_numbers():
    inner = Noise()
    twice = Custom(lambda context, x: context.run("inner", inner, context.run("inner", inner, x)))
    assert list(declared(Input() + twice).streams.numbers) == ["1-custom.inner", "1-custom.inner(1)"]


def test_two_owned_layers_of_the_same_name_are_refused_if_their_shapes_differ():
    cells = Custom(lambda context, x: context.run("cell", Dense(3), context.run("cell", Dense(5), x)))
    with pytest.raises(SigmaNetworkError, match=r"1-custom.cell.weights: is used with shapes \(4, 5\) and \(5, 3\)"):
        declared(Input() + cells)


@pytest.mark.parametrize("body", [Input() + Dense(4), Dense(4) + Square()])
def test_owned_layers_cannot_be_inputs_or_costs(body):
    with pytest.raises(SigmaNetworkError, match="a layer cannot own input or cost layers. Link an input to the layer"):
        declared(Input() + Residual(body))


# -- shared parameters -------------------------------------------------------------------------------------------------
def test_a_parameter_can_be_shared_by_address():
    chain = Input() + Dense(4, name="own") + Dense(4, name="twin", share={"weights": "own.weights"})
    shapes = declared(chain)
    assert list(shapes.parameters) == ["own.weights"]
    x, w = np.random.default_rng(0).normal(size=(2, 4, 4))
    found = computed(Network.build(chain), {"inputs": x, "own.weights": w}, y=lambda forward: forward.prediction)
    np.testing.assert_allclose(found["y"], x @ w @ w)


def test_a_parameter_can_be_shared_with_a_later_layer():
    first = Dense(4, share={"weights": "2-dense.weights"})
    assert list(declared(Input() + first + Dense(4)).parameters) == ["2-dense.weights"]


@pytest.mark.parametrize(
    ("share", "message"),
    [
        ({"weight": "own.weights"}, "share: there is no parameter 'weight'. Did you mean 'weights'"),
        ({"weights": "own.weight"}, "share: there is no parameter 'own.weight'. Did you mean 'own.weights'"),
        ({"weights": "wide.weights"}, r"wide: share: wide.weights has shape \(4, 6\), 3-dense.weights has \(4, 4\)\."),
        ({"weights": "twin.weights"}, "share: twin.weights is itself shared. Use 'own.weights'"),
    ],
)
def test_sharing_a_parameter_of_another_shape_is_refused(share, message):
    chain = (
        Input() + Dense(4, name="own") + Dense(4, name="twin", share={"weights": "own.weights"}) + Dense(4, share=share)
    )
    with pytest.raises(SigmaNetworkError, match=message):
        declared(chain + Dense(6, name="wide"))


# -- live settings -----------------------------------------------------------------------------------------------------
def test_live_settings_are_listed_with_their_values_and_ranges():
    settings = live_settings(Noise(0.25))
    assert list(settings) == ["rate"]
    assert (settings["rate"].value, settings["rate"].low, settings["rate"].below) == (0.25, 0.0, 1.0)


@pytest.mark.parametrize("value", ["banana", None, True, float("nan"), float("inf"), 1.0, -0.1, 1 + 0j])
def test_a_live_setting_out_of_range_is_refused_at_construction_and_when_set(value):
    with pytest.raises(SigmaConfigError, match=r"Noise.rate: must be"):
        Noise(value)
    with pytest.raises(SigmaAddressError, match=r"3-noise.rate: must be"):
        live_settings(Noise())["rate"].check("3-noise.rate", value)


def test_every_bound_of_a_live_setting_applies():
    @define
    class Four:
        a: float = live(1.0, low=0.0)
        b: float = live(1.0, high=2.0)
        c: float = live(1.0, above=0.0)
        d: float = live(1.0, below=2.0, kw_only=True)

    for name, bad in {"a": -1, "b": 3, "c": 0, "d": 2}.items():
        with pytest.raises(SigmaConfigError, match=rf"Four.{name}: must be .*got {bad}"):
            Four(**{name: bad})
    assert Four(0, 2.0, np.float32(0.5), d=0).c == 0.5


# -- as objects --------------------------------------------------------------------------------------------------------
def test_an_architecture_survives_pickling_with_its_links():
    trunk, merge = Input() + Dense(4), Add()
    trunk.link(merge)
    chain = trunk + Dense(4) + merge
    assert sources(Network.build(pickle.loads(pickle.dumps(chain)))) == sources(Network.build(chain))


def test_layers_with_value_equality_are_still_distinct_layers():
    @define
    class Twin(Layer):
        def forward(self, context, x):
            return x * 2.0

    network = Network.build(Input() + Twin() + Twin())
    assert [placed.name for placed in network.layers] == ["0-input", "1-twin", "2-twin"]


@pytest.mark.parametrize("what", ["parameters", "state"])
@pytest.mark.parametrize(("found", "got"), [({"w": 3}, r"\{'w': int\}"), ([3], "list"), (None, "NoneType")])
def test_an_invalid_parameter_declaration_of_a_layer_is_reported_by_name(what, found, got):
    odd = define(eq=False)(type("Odd", (Layer,), {what: lambda self, x: found, "forward": lambda self, context, x: x}))
    network = Network.build(Input() + odd())
    with pytest.raises(SigmaComponentError, match=rf"^layer 1-odd \(\S+\): {what}\(\) must return .* \(got {got}\)"):
        network.declare({"inputs": Spec((2,), "float32")}, "float32", lambda kind, name: name)
