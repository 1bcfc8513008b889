"""The public signatures are those of the snapshot, and the version of the API rises by rule."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from sigma_kernel import __version__
from sigma_kernel.contracts import Layer, Metric
from sigma_kernel.plugins.specs import API_VERSION
from tests import signatures
from tests.signatures import Change, compare, required_level

pytestmark = pytest.mark.rooms


def changes() -> list[Change]:
    return compare(signatures.read(API_VERSION), signatures.snapshot())


def test_the_public_signatures_are_those_of_the_snapshot() -> None:
    lines = "\n".join(f"{change.level}: {change.text}" for change in changes())
    assert not lines, f"The API has changed. Look at each line, and run `{signatures.COMMAND}`.\n{lines}"


def test_the_snapshot_has_what_plugins_write_and_call() -> None:
    rows = signatures.read(API_VERSION)
    assert rows["sigma_kernel.contracts.Layer.forward"] == "abstract method (context, *inputs, **_)"
    assert rows["sigma_kernel.contracts.Metric.value"] == "method (totals, rows)"
    assert rows["sigma_kernel.contracts.HookContext"] == "protocol"
    assert rows["sigma_kernel.functions.softmax"] == "function (x, axis=...)"
    assert rows["sigma_kernel.Layer"] == "= sigma_kernel.contracts.Layer"
    assert rows["sigma_testing.LayerSuite.make"] == "abstract method ()"
    assert rows["op matmul"] == "(x, y, *, dtype=...)"
    assert rows["kind layer"] == "fulfils Layer"
    assert rows["hookspec sigma_components"] == "()"
    assert not [name for name in rows if ".test_" in name or "._" in name]


def test_an_argument_that_is_renamed_is_a_major_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def value(self: Any, totals: Any, count: int) -> float:
        return 0.0

    monkeypatch.setattr(Metric, "value", value)
    name = "sigma_kernel.contracts.Metric.value"
    assert Change("major", f"{name} was method (totals, rows), and is method (totals, count)") in changes()


def test_a_method_that_becomes_abstract_or_goes_is_a_major_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Layer, "with_size")
    state: Any = Layer.state
    monkeypatch.setattr(state, "__isabstractmethod__", True, raising=False)
    found = {change.text.split()[0].rpartition(".")[2]: change.level for change in changes()}
    assert found["with_size"] == found["state"] == "major"


BEFORE = {"m.f": "function (x, axis=...)", "m.C": "contract (a)", "m.C.do": "method (x)", "m.P": "protocol"}
CASES: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, ""),
    "a new function": ({"m.g": "function ()"}, "minor"),
    "an optional argument": ({"m.f": "function (x, axis=..., keepdims=...)"}, "minor"),
    "an optional argument by name": ({"m.f": "function (x, axis=..., *, keepdims=...)"}, "minor"),
    "a required argument": ({"m.f": "function (x, y, axis=...)"}, "major"),
    "a required argument by name": ({"m.f": "function (x, axis=..., *, y)"}, "major"),
    "another order": ({"m.f": "function (axis, x=...)"}, "major"),
    "an argument by name alone": ({"m.f": "function (x, *, axis=...)"}, "major"),
    "a default that goes": ({"m.f": "function (x, axis)"}, "major"),
    "an argument of a method that plugins write": ({"m.C.do": "method (x, y=...)"}, "major"),
    "a new method of a contract": ({"m.C.more": "method ()"}, "minor"),
    "a new abstract method": ({"m.C.must": "abstract method ()"}, "major"),
    "a new method of what plugins are given": ({"m.P.more": "method ()"}, "minor"),
    "an argument that has its former name": ({"m.C.do": "method (y) formerly x=y"}, "minor"),
    "an alias": ({"m.C.do": "alias of act", "m.C.act": "method (x)"}, "minor"),
    "a function that becomes a class": ({"m.f": "class (x, axis=...)"}, "major"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_asks_for_a_version(name: str) -> None:
    after, level = CASES[name]
    assert required_level(compare(BEFORE, BEFORE | after)) == level


def test_what_is_gone_is_a_major_change() -> None:
    assert compare(BEFORE, {n: text for n, text in BEFORE.items() if n != "m.f"}) == [Change("major", "m.f is gone")]


def test_the_version_of_the_api_rises_by_rule() -> None:
    versions = sorted(tuple(map(int, path.stem.split("."))) for path in signatures.FOLDER.glob("*.txt"))
    assert versions[-1] == tuple(map(int, API_VERSION.split(".")))
    for one, other in pairwise(versions):
        level = required_level(compare(*(signatures.read("{}.{}".format(*version)) for version in (one, other))))
        assert other == ((one[0] + 1, 0) if level == "major" else (one[0], one[1] + 1)), f"{other} follows {one}"


def test_the_table_of_versions_has_this_kernel() -> None:
    series = __version__.rpartition(".")[0]
    assert signatures.releases()[series][0] == API_VERSION, f"{signatures.VERSIONS} has no row for kernel {series}"


def test_a_released_version_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"m.f": "function (x)"}
    monkeypatch.setattr(signatures, "FOLDER", tmp_path)
    monkeypatch.setattr(signatures, "snapshot", lambda: rows)
    assert signatures.main([]) == 0
    assert signatures.main(["--check"]) == 0
    rows["m.f"] = "function (y)"
    assert signatures.main(["--check"]) == 1
    monkeypatch.setattr(signatures, "releases", lambda: {"0.1": (API_VERSION, True)})
    assert signatures.main([]) == 1
    assert capsys.readouterr().out.endswith("is released. Raise API_VERSION: these changes are major.\n")
    monkeypatch.setattr(signatures, "releases", lambda: {"0.1": (API_VERSION, False)})
    assert signatures.main([]) == 0
    assert signatures.read(API_VERSION) == rows
