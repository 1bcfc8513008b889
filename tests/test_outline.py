"""A network as a table of layers with shapes and counts, in a terminal and in a notebook, and a drawing of branches."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from sigma_kernel import Environment, SigmaNetworkError, functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_kernel.network.network import Network
from sigma_kernel.network.outline import Outline, Row, outline
from sigma_layers import Add, Dense, Input, SquaredDifference


class Odd(Layer):
    """Need a component that is not an activation."""

    def parameters(self, *inputs: Any, **_: Any) -> dict[str, Parameter]:
        return {"weights": Parameter((3,))}

    def forward(self, context: Context, *inputs: Any, **_: Any) -> Node:
        node: Node = context.resolve("op", "odd")(inputs[0])
        return node


class Broken(Layer):
    """Fail with an error of its own."""

    def forward(self, context: Context, *inputs: Any, **_: Any) -> Node:
        raise ZeroDivisionError


SVG = "{http://www.w3.org/2000/svg}"


def test_the_table_has_a_line_for_each_layer_its_shape_and_its_parameters() -> None:
    chain = Input(4) + Dense(3) + Dense(2) + SquaredDifference()
    assert [line.split() for line in str(chain.summary()).splitlines()] == [
        ["LAYER", "SHAPE", "PARAMETERS", "INPUTS"],
        ["0-input", "4", "0"],
        ["1-dense", "3", "15", "0-input"],
        ["2-dense", "2", "8", "1-dense"],
        ["3-squared_difference", "()", "0", "2-dense"],
        ["total", "23"],
    ]
    assert str(Network.build(chain).summary()) == str(chain.summary())
    assert repr(chain.summary()) == "Outline(4 layers, 23 parameters)"


def test_what_does_not_follow_from_the_inputs_is_unknown_and_the_rest_is_shown() -> None:
    assert [row.shape for row in (Dense(3) + Dense(2)).summary().rows] == [None, None]
    for odd in (Odd(), Broken()):
        chain = Input(4) + Dense(3) + odd + Dense(2)
        assert [row.shape for row in chain.summary().rows] == [(4,), (3,), None, None]
        assert chain.summary().parameters is None
        assert str(chain.summary()).splitlines()[-1].split() == ["total", "?"]


def test_a_trainer_shows_its_network_given_as_text_or_as_layers_before_and_after_preparation() -> None:
    data = {"inputs": np.zeros((6, 4), np.float32), "targets": np.zeros((6, 2), np.float32)}
    text = 'input(4) + dense(2, activation="relu") + squared_difference()'
    for network in (text, Input(4) + Dense(2) + SquaredDifference()):
        with Environment() as sigma:
            trainer = sigma.create_trainer(network=network, data=data, optimiser="adam")
            before = str(trainer.summary())
            trainer.prepare()
            assert str(trainer.summary()) == before
            assert trainer.summary().parameters == 10
    with Environment() as sigma, pytest.raises(SigmaNetworkError, match="there is no network"):
        sigma.create_trainer().summary()


def test_a_huge_network_is_cut_in_the_middle() -> None:
    lines = str((Input(4) + 500 * Dense(4)).summary()).splitlines()
    assert len(lines) == 63
    assert lines[31].split() == ["...", "441", "more", "layers"]
    assert lines[32].startswith("471-dense")
    assert lines[-1].split() == ["total", "10,000"]


def test_the_table_of_a_network_with_branches_shows_its_connections() -> None:
    trunk = Input(4) + Dense(3)
    lines = str((trunk + Dense(3) + Add(trunk)).summary()).splitlines()
    assert [line[: line.index("-") + 2].rstrip() for line in lines[1:5]] == ["●   0-i", "●   1-d", "├─● 2-d", "●─╯ 3-a"]
    assert lines[0].startswith("LAYER ")


def test_a_notebook_shows_the_table_and_draws_branches_with_all_text_escaped() -> None:
    chain = Input(4) + Dense(3)
    assert "<svg" not in chain._repr_html_()
    assert '<td style="text-align:left">15</td>' in chain._repr_html_()
    trunk = Input(4) + Dense(3)
    html = (trunk + Dense(3) + Add(trunk))._repr_html_()
    image = ElementTree.fromstring(html[html.index("<svg") :])
    assert len(list(image.iter(f"{SVG}path"))) == 4
    assert html.count("<text") == 4
    row = Row("<b>", ("<i>",), (1,), 2)
    image = Outline((Row("<i>", ()), row)).drawing()
    assert "<b>" not in image + Outline((row,))._repr_html_()
    assert "&lt;b&gt;" in image


def test_connections_pass_other_layers_on_their_left_and_stay_in_the_drawing() -> None:
    rows = (Row("a", ()), Row("b", ("a",)), Row("c", ("a",)), Row("d", ("b", "c", "a")))
    image = ElementTree.fromstring(Outline(rows).drawing())
    dots = {(float(x.attrib["cx"]), float(x.attrib["cy"])) for x in image.iter(f"{SVG}circle")}
    assert len(dots) == 4
    bends = []
    for path in image.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?\d++", path.attrib["d"])]
        start, first, second, end = zip(numbers[::2], numbers[1::2], strict=True)
        assert {start, end} <= dots
        assert first[0] == second[0]
        passed = round((end[1] - start[1]) / 24) - 1
        bends.append((passed, (end[0] - first[0]) * 3 / 4))  # a cubic with equal bends reaches three quarters of them
    assert [passed for passed, _ in bends] == [0, 1, 1, 0, 2]
    assert all((bend == 0) if passed == 0 else (4 < bend < start[0]) for passed, bend in bends)


def test_the_shapes_of_a_trace_are_taken_where_they_are_given() -> None:
    network = Network.build(Input(4) + Odd())
    shapes = network.declare({"inputs": Spec((4,), "float32")}, "float32", lambda kind, chosen: f.relu)
    found = outline(network.layers, shapes)
    assert [(row.shape, row.parameters) for row in found.rows] == [((4,), 0), ((4,), 3)]
