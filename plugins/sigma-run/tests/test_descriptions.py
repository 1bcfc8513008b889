"""What ``describe`` and ``sigma components KIND NAME`` say of a component and of each of its settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from attrs import define, field, frozen

from sigma_kernel.contracts import Layer, live, live_settings
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_kernel.settings import (
    deep_iterable,
    describe_limits,
    ge,
    gt,
    in_,
    lt,
    min_len,
    must,
    optional,
    read_docs,
    requirements,
)
from sigma_run import describe
from sigma_run.launcher.group import main

DOCUMENTED = re.compile(r"[A-Z].*[.]")
NOISE = """
    from collections.abc import Callable, Mapping
    from typing import Literal
    from attrs import define, field, frozen
    from sigma_kernel import Initialiser, Layer, live
    from sigma_kernel.settings import ge, in_, optional

    @frozen
    class Part:
        '''A part.

        Args:
            offset: First byte of it.
        '''

        offset: int

    @define(eq=False)
    class Noise(Layer):
        '''Add noise.  There is
        more of it.

        Shapes: ``(batch, ...)`` -> the same.

        Args:
            rate: Standard deviation of the noise,
                in units of the value.
            way: What to draw from.
            function: Function of the value.
        '''

        way: Literal["normal", "uniform"]
        rate: float = live(0.5, low=0.0, below=1.0)
        most: int | None = field(default=None, validator=optional(ge(2)))
        missing: Literal["drop"] | float = "drop"
        by: str = field(default="row", validator=in_(("row", "column")))
        function: str = field(default="relu", metadata={"kind": "activation"})
        start: Initialiser | None = None
        parts: Mapping[str, Part] = field(factory=dict)

        def forward(self, context, x):
            return x
"""
PLAIN = {"doc": "", "must": "", "limits": {}, "choices": [], "closed": False, "kind": None, "live": False}
RECORD = '"layer", "noise_x", "acme_layers.noise:Noise", "Add noise."'


def test_every_setting_of_every_component_has_a_documentation_of_sentences() -> None:
    undocumented = {
        f"{one.full_name}.{setting['name']}": setting["doc"]
        for one in catalogue().components()
        for setting in _every(describe(one.kind, one.full_name)["settings"])
        if not DOCUMENTED.fullmatch(setting["doc"])
    }
    assert undocumented == {}


def _every(settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for one in settings for each in (one, *_every(one["settings"]))]


def test_every_documented_setting_exists() -> None:
    classes = {base for one in catalogue().components() if isinstance(made := load(one), type) for base in made.__mro__}
    for made in (one for one in classes if attrs.has(one)):
        known = {f.alias for f in attrs.fields(made)}
        assert set(read_docs(made)) <= known, made


def test_a_class_without_documentation_is_described_by_its_record(
    distribution: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code = """
        from attrs import define
        from sigma_kernel import Layer
        @define(eq=False)
        class Bare(Layer):
            def forward(self, context, x):
                return x
    """
    distribution("acme-layers", '"layer", "bare", "acme_layers.bare:Bare", "Do nothing."', bare=code)
    found = describe("layer", "bare")
    assert (found["about"], found["doc"]) == ("Do nothing.", "Do nothing.")
    beginnings = ["Name of the layer", "Parameters of oth", "Whether training "]
    assert [one["doc"][:17] for one in found["settings"]] == beginnings


def test_every_description_is_plain_data_and_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for one in catalogue().components():
        found = describe(one.kind, one.full_name)
        assert json.loads(json.dumps(found)) == found
        for setting in found["settings"]:  # sentences end after them: "Must be 1, 2, 3." would allow three numbers
            assert not re.search(r"\d, \d|\.$", setting["must"]), f"{one.full_name}: {setting['must']}"
    assert main(["components", "optimiser", "adam"]) == 0
    out = capsys.readouterr().out
    assert "    Decay rate of the first moment's moving average. Must be at least 0 and less" in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["components", "layer", "dense"]) == 0
    assert "    Number of outputs of each row. Must be a whole number of at least 1.\n" in capsys.readouterr().out


def test_a_description_has_the_type_default_documentation_and_range_of_every_setting(
    distribution: Callable[..., None],
) -> None:
    distribution("acme-layers", RECORD, noise=NOISE)
    found = describe("layer", "noise_x")
    assert (found["about"], found["distribution"]) == ("Add noise.", "acme-layers")
    assert found["doc"] == "Add noise.  There is\nmore of it.\n\nShapes: ``(batch, ...)`` -> the same."
    settings = {one.pop("name"): one for one in found["settings"]}
    assert list(settings) == [
        "way",
        "rate",
        "most",
        "missing",
        "by",
        "function",
        "start",
        "parts",
        "name",
        "share",
        "recompute",
    ]
    assert settings["way"] == PLAIN | {
        "type": "'normal' or 'uniform'", "required": True, "default": None, "doc": "What to draw from.",
        "choices": ["normal", "uniform"], "closed": True, "settings": [],
    }  # fmt: skip
    assert settings["rate"] == PLAIN | {
        "type": "a number", "required": False, "default": 0.5, "limits": {"low": 0.0, "below": 1.0}, "live": True,
        "doc": "Standard deviation of the noise, in units of the value.", "must": "at least 0 and less than 1",
        "settings": [],
    }  # fmt: skip
    assert (settings["most"]["limits"], settings["most"]["must"]) == ({"low": 2}, "at least 2")
    assert (settings["missing"]["choices"], settings["missing"]["closed"]) == (["drop"], False)
    assert (settings["by"]["choices"], settings["by"]["closed"]) == (["row", "column"], True)
    assert (settings["function"]["kind"], settings["start"]["kind"]) == ("activation", "initialiser")
    assert [(one["name"], one["doc"]) for one in settings["parts"]["settings"]] == [("offset", "First byte of it.")]
    assert settings["name"]["doc"].startswith("Name of the layer")


def test_a_description_for_people_names_ranges_choices_and_lists_of_names(
    distribution: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    distribution("acme-layers", RECORD, noise=NOISE)
    assert main(["components", "layer", "noise_x"]) == 0
    out = capsys.readouterr().out
    for line in (
        "There is more of it.",
        '    What to draw from. One of "normal", "uniform".',
        "    Must be at least 2.",
        '    Such as "drop".',
        "    Function of the value. `sigma components activation` lists the names.",
        "    Keys: offset.",
    ):
        assert f"{line}\n" in out
    assert "value. Must be at least 0 and less than 1. Can be changed" in " ".join(out.split())


def test_live_settings_carry_the_documentation_of_their_class() -> None:
    @define(eq=False)
    class Noise(Layer):
        """Add noise.

        Args:
            rate: Standard deviation.
        """

        rate: float = live(0.5)

        def forward(self, context: Any, *inputs: Any, **_: Any) -> Any:
            return inputs[0]

    assert live_settings(Noise())["rate"].doc == "Standard deviation."


def test_documentation_is_inherited_unless_it_is_given_again() -> None:
    class Base:
        """A base.

        Args:
            a: First:
                on two lines.
            b: Second.

        Not part of it:
            c: Third.
        """

    class Derived(Base):
        """A class.

        Args:
            b: Again.
        """

    assert read_docs(Derived) == {"a": "First: on two lines.", "b": "Again."}
    assert read_docs(object) == {}


def test_validators_describe_themselves() -> None:
    @frozen
    class Made:
        both: int = field(default=1, validator=[ge(0), lt(2**64)])
        some: float | None = field(default=None, validator=optional(gt(0.5)))
        sides: tuple[int, ...] = field(default=(1,), validator=[min_len(1), deep_iterable(ge(1))])
        ways: tuple[str, ...] = field(default=(), validator=deep_iterable(in_(("mean", "sum"))))
        odd: int = field(default=1, validator=must(lambda value: value % 2, "odd"))

    found = {f.name: list(requirements(f.validator)) for f in attrs.fields(Made)}
    assert [rule.limits for rule in found["both"]] == [{"low": 0}, {"below": 2**64}]
    assert describe_limits({"low": 0, "below": 2**64}) == "at least 0 and less than 18,446,744,073,709,551,616"
    assert [describe_limits(rule.limits) for rule in found["some"]] == ["more than 0.5"]
    assert [rule.words for rule in found["sides"]] == ["of length 1 or more", "each at least 1"]
    assert [rule.choices for rule in found["ways"]] == [("mean", "sum")]
    assert [rule.words for rule in found["odd"]] == ["odd"]
    assert list(requirements(None)) == []
    with pytest.raises(SigmaConfigError, match="Made.odd: must be odd"):
        Made(odd=2)
