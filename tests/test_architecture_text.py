"""The text form of architectures: printing and parsing are inverse, and errors have line and column."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from attrs import define, field
from hypothesis import given, settings, strategies as st

from sigma_kernel.contracts import Architecture, Layer, Parameter, live
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError, SigmaPluginError
from sigma_kernel.network.architecture import name_of, place, write
from sigma_kernel.network.network import Network
from sigma_training.notation import parse


@define(eq=False, init=False)
class Input(Layer):
    shape: tuple[int, ...]
    section: str = "inputs"
    role: ClassVar[str] = "input"

    def __init__(self, *shape, section="inputs", name=None):
        self.__attrs_init__(shape, section, name=name)

    def forward(self, context, x):
        return x


@define(eq=False)
class Dense(Layer):
    units: int | None = None
    activation: Any = "identity"
    bias: bool = True
    extra: Any = None

    def forward(self, context, x):
        return x


@define(eq=False)
class Noise(Layer):
    rate: float = live(0.5, low=0.0, below=1.0)

    def forward(self, context, x):
        return x


@define(eq=False, init=False)
class Concat(Layer):
    branches: tuple[Architecture, ...]
    axis: int = -1

    def __init__(self, *branches, axis=-1, name=None):
        self.__attrs_init__(branches, axis, name=name)

    def forward(self, context, *inputs):
        return inputs[0]


@define(eq=False)
class Merge(Layer):
    """Like Concat, with its branches as an ordinary setting."""

    branches: tuple[Architecture, ...] = field(default=(), kw_only=True)

    def forward(self, context, *inputs):
        return inputs[0]


@define(eq=False)
class Residual(Layer):
    body: Architecture

    def forward(self, context, x):
        return x


@define
class Gaussian:
    deviation: float = 1.0
    mean: float = 0.0


LAYERS = {cls.__name__.lower(): cls for cls in (Input, Dense, Noise, Concat, Merge, Residual)}


def resolve(kind: str, name: str) -> Any:
    assert kind == "layer"
    if name == "missing":
        raise SigmaPluginError("layer 'missing': acme offers it, but is not installed.")
    if name.rpartition(":")[2] not in LAYERS:
        raise SigmaConfigError(f"layer {name!r}: no plugin offers it.")
    return LAYERS[name.rpartition(":")[2]]


def reprinted(text: str) -> str:
    return write(parse(text, resolve))


def shape(ends: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(placed.name, placed.sources) for placed in Network.build(ends).layers]


# -- printing and parsing ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "input(28, 28)",
        'input(4, section="left") + dense(3, activation="relu", bias=false) + noise(0.25)',
        "input(4) + 3 * dense(3) + dense(4)",
        "x1 = input(4) + dense(3)\nconcat(x1 + dense(2), x1, axis=1) + dense(5)",
        "x1 = input(4)\nx2 = x1 + dense(3)\nconcat(x2, concat(x2, x1))",
        "input(4)\ninput(5)",
        "x1 = input(4)\nx2 = concat()\nx1 -> x2\nx1 + dense(2) + x2",
        "residual(2 * dense(3) + noise(0.1))",
        "residual(residual(dense(3)))",
        "merge(branches=(input(4), input(5)))",
        "merge(branches=(input(4),))",
        'dense(extra={"type": "gaussian", "deviation": [1, 2.5, -3e-07]})',
        "dense(extra=(1,))",
        "dense(extra=((), [], {}))",
        "dense(extra=(true, none, inf, -inf))",
        r'dense(extra="a \"quoted\" text, a \\ and a \n")',
        'dense(share={"weights": "0-dense.weights"})',
        "acme:dense(3) + my-plugin:noise()",
    ],
)
def test_printed_architectures_round_trip(text):
    assert reprinted(text) == text


def test_str_prints_what_the_python_form_says():
    trunk = Input(28, 28) + 2 * Dense(100, activation="relu")
    assert str(trunk + Concat(trunk, axis=1)) == (
        'x1 = input(28, 28) + 2 * dense(100, activation="relu")\nx1 + concat(x1, axis=1)'
    )


def test_python_and_text_give_the_same_names():
    trunk = Input(4) + Dense(3)
    text = "trunk = input(4) + dense(3)\nconcat(trunk + dense(2), trunk) + dense(1)"
    assert shape(Concat(trunk + Dense(2), trunk) + Dense(1)) == shape(parse(text, resolve))


def test_another_kind_of_component_prints_as_a_table():
    assert str(Dense(3, extra=Gaussian(0.1))) == 'dense(3, extra={"type": "gaussian", "deviation": 0.1})'


def test_a_default_that_depends_on_other_settings_is_left_out_too():
    assert str(Dense(3, extra=Parameter((2, 3)))) == 'dense(3, extra={"type": "parameter", "shape": (2, 3)})'


def test_layers_without_text_form_print_by_name_and_do_not_parse():
    text = str(Dense(3, activation=resolve))
    assert text == "dense(3, activation=<resolve>)"
    with pytest.raises(SigmaNetworkError, match="line 1, column 21: expected"):
        parse(text, resolve)


def test_names_of_components_can_be_replaced_by_full_ones():
    ends = parse("input(4) + residual(dense(3))", resolve)
    named = write(ends, lambda kind, component: f"acme:{name_of(kind, component)}")
    assert named == "acme:input(4) + acme:residual(acme:dense(3))"


def test_copies_keep_the_name_of_their_component():
    assert reprinted("input(4) + 2 * (acme:dense(3) + noise())") == (
        "input(4) + acme:dense(3) + noise() + acme:dense(3) + noise()"
    )


def test_numpy_numbers_print_as_numbers():
    numpy = pytest.importorskip("numpy")
    assert str(Noise(numpy.float64(0.25)) + Dense(3, extra=numpy.float64(2))) == "noise(0.25) + dense(3, extra=2.0)"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("input(4) +\n  dense(3)\n  + dense(4)", "input(4) + dense(3) + dense(4)"),
        ("\n\n  input(4)  \n\n", "input(4)"),
        ("input(\n  4, # a comment\n  5,\n)  # another\n", "input(4, 5)"),
        ("input(4) # one\n# two\n+ dense(3)", "input(4) + dense(3)"),
        ("a = input(4); a + dense(3)", "input(4) + dense(3)"),
        ("a = input(4)\n\n;\na", "input(4)"),
        ("2 *\n 2 * dense(3)", "4 * dense(3)"),
        ("2 * (noise() + dense(3)) + (dense(3))", "noise() + dense(3) + noise() + 2 * dense(3)"),
        ("input(4)\r\n+ dense(3)\r\n", "input(4) + dense(3)"),
        ("input(4, section='a \"b\" c')", r'input(4, section="a \"b\" c")'),
        ("dense(3, extra=[1, 2,],)", "dense(3, extra=[1, 2])"),
        ("dense(units=3, activation='identity')", "dense(3)"),
        ("a=input(4)\nb=input(5)\nm=merge()\nb->m\na+m", "x1 = merge()\ninput(5) -> x1\ninput(4) + x1"),
        ("noise(.25) + noise(2.5e-1)", "2 * noise(0.25)"),
    ],
)
def test_equivalent_texts_give_the_same_architecture(text, printed):
    assert reprinted(text) == printed


def test_a_named_chain_refers_to_the_same_layers_each_time():
    network = Network.build(parse("t = input(4) + dense(3)\nt + dense(2)\nt + dense(1)", resolve))
    assert [placed.name for placed in network.layers] == ["0-input", "1-dense", "2-dense", "3-dense"]


def test_several_unnamed_chains_are_several_outputs():
    assert len(parse("input(4)\ninput(5)\ninput(6)", resolve)) == 3


def test_the_text_of_an_architecture_is_never_evaluated():
    for text in ("__import__('os').system('true')", "dense((lambda: 3)())", "dense(1 + 2)", "dense(3).units"):
        with pytest.raises((SigmaNetworkError, SigmaConfigError)):
            parse(text, resolve)


def test_deep_nesting_is_allowed():
    assert reprinted("(" * 3000 + "dense(3)" + ")" * 3000) == "dense(3)"
    assert reprinted(" + ".join(["dense(3)"] * 3000)) == "3000 * dense(3)"


# -- round trips of random networks ------------------------------------------------------------------------------------
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def architectures(draw) -> list[Architecture]:
    """Return the outputs of a random acyclic network with shared layers, merges, links and owned chains."""
    known: list[Architecture] = [Input(4)]
    for _ in range(draw(st.integers(0, 8))):
        pick = st.sampled_from(known)
        match draw(st.integers(0, 6)):
            case 0:
                known.append(Input(*draw(st.lists(st.integers(1, 9), max_size=2)), section=draw(st.sampled_from("ab"))))
            case 1:
                known.append(draw(pick) + Dense(draw(st.integers(1, 3)), extra=draw(literals)))
            case 2:
                known.append(draw(pick) + draw(st.integers(1, 3)) * (Dense(3) + Noise(draw(st.floats(0, 0.9)))))
            case 3:
                known.append(Concat(*draw(st.lists(pick, min_size=1, max_size=3)), axis=draw(st.integers(-1, 2))))
            case 4:
                known.append(draw(pick) + Merge(branches=tuple(draw(st.lists(pick, max_size=2)))))
            case 5:
                merge = Merge()
                for source in draw(st.lists(pick, max_size=2)):
                    source.link(merge)
                known.append(draw(pick) + merge)
            case 6:
                known.append(draw(pick) + Residual(Dense(2) + draw(st.integers(1, 2)) * Dense(2)))
    return draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))


@settings(deadline=None, max_examples=200)
@given(architectures())
def test_printing_then_parsing_gives_the_same_network_and_the_same_text(ends):
    text = write(ends)
    again = parse(text, resolve)
    assert write(again) == text
    leading = [(p.kind, p.name, p.sources, _settings(p.layer)) for p in _layers(ends)]
    assert [(p.kind, p.name, p.sources, _settings(p.layer)) for p in _layers(again)] == leading


def _layers(ends: list[Architecture]) -> Any:
    return place(ends)


def _settings(layer: Any) -> Any:
    kept: Mapping[str, tuple[str, ...]] = {
        "dense": ("units", "extra"),
        "noise": ("rate",),
        "concat": ("axis",),
        "input": ("shape", "section"),
    }
    return [repr(getattr(layer, name)) for name in kept.get(type(layer).__name__.lower(), ())]


@settings(deadline=None)
@given(st.text(st.sampled_from("dense(3)+*-> =,;:[]{}\"'#\n.x1"), max_size=30))
def test_any_text_raises_only_sigma_errors(text):
    with suppress(SigmaNetworkError, SigmaConfigError):
        parse(text, resolve)


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input(3) +", r"line 1, column 11: expected '\(', a name, a number \(got the end\)"),
        ("", "line 1, column 1: expected .* \\(got the end\\)"),
        ("# nothing\n", "line 2, column 1: expected .* \\(got the end\\)"),
        ("input(3)\n+ dense(4))", r"line 2, column 11: expected .*\(got '\)'\)"),
        ("input(3) $ dense(4)", r"line 1, column 10: expected .*'\+'.*\(got '\$'\)"),
        ("input(3) dense(4)", r"line 1, column 10: expected .*'\+'.*\(got 'dense'\)"),
        ("input(3\n\n  dense(4)", r"line 3, column 3: expected '\)', .*',' \(got 'dense'\)"),
        ("3 + input(2)", r"line 1, column 3: expected '\*' \(got '\+'\)"),
        ("dense(3, activation=)", r"column 21: expected .*a string.*\(got '\)'\)"),
        ("input('a)", "line 1, column 7: expected"),
        ("input(4) + dens", r"line 1, column 12: there is no chain called 'dens'. A layer has parentheses: dens\(\)"),
        ("trunk = input(4)\ntrunk + dense(3) + trnk", "line 2, column 20: .*'trnk'. Did you mean 'trunk'"),
        ("a = input(4)\na = input(5)\na", "line 2, column 1: 'a' is already defined"),
        ("a = input(4)\nb = input(5)\nb", "line 1, column 1: 'a' is never used"),
        ("a = input(4)\ninput(5) -> a\ninput(6)", "line 1, column 1: 'a' is never used"),
        ("input(5) -> a", "line 1, column 13: there is no chain called 'a'"),
        ("a = input(4)", "every chain has a name, so none is an end"),
        ("a-b = input(4)\na-b", "'a-b' cannot name a chain"),
        ("a:b = input(4)\na:b", "'a:b' cannot name a chain"),
        ("input(4) + dense(unit=3)", "line 1, column 12: dense: has no setting 'unit'. Did you mean 'units'"),
        ("dense(qqq=3)", "dense: has no setting 'qqq'. It has units, activation, bias, extra, name, share, recompute"),
        ("dense(1, 2, 3, 4, 5)", "dense: too many positional arguments. It has units"),
        ("residual()", "residual.body: is missing. It has body"),
        ("dense(units=3, units=4)", "line 1, column 16: units: positional settings come first"),
        ("dense(bias=true, 3)", "line 1, column 7: bias: positional settings come first"),
        (
            "input(4) + 0 * dense(3)",
            "line 1, column 12: 0 . dense: the number of copies must be a whole number of at least 1",
        ),
        ("input(4) + 99999999999 * dense(3)", "line 1, column 12: a network can have 10,000 layers at most"),
        ("input(4) + dense(True)", "there is no chain called 'True'. Write true."),
        ("input(4) + dense(3, bias=FALSE)", "there is no chain called 'FALSE'. Write false."),
        ("1.5 * dense(3)", "line 1, column 1: 1.5 . dense"),
        ('dense(activation="\\q")', "line 1, column 18: .*escape"),
        ("dense(" + "9" * 5000 + ")", "line 1, column 7: .*digits"),
    ],
)
def test_a_mistake_is_shown_with_line_and_column(text, message):
    with pytest.raises(SigmaNetworkError, match=message):
        parse(text, resolve)


def test_a_layer_with_invalid_settings_is_reported_with_its_position():
    with pytest.raises(
        SigmaConfigError, match=r"line 2, column 3: Noise.rate: must be at least 0 and less than 1 \(got 1.5\)"
    ):
        parse("input(4)\n+ noise(1.5)", resolve)


def test_an_unknown_layer_is_reported_with_its_position():
    with pytest.raises(SigmaConfigError, match="line 1, column 12: layer 'dens': no plugin offers it"):
        parse("input(4) + dens(3)", resolve)
    with pytest.raises(SigmaPluginError, match="line 1, column 1: layer 'missing': acme offers it"):
        parse("missing()", resolve)


def test_a_component_that_is_not_a_layer_is_refused():
    with pytest.raises(SigmaNetworkError, match=r"gaussian: Gaussian\(.*\) is not a layer"):
        parse("gaussian(0.1)", lambda kind, name: Gaussian)
