"""Every component of the project's rooms is run by the suite of its kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sigma_testing as testing
from sigma_kernel import Component, catalogue
from sigma_kernel.plugins.specs import KINDS

pytestmark = pytest.mark.rooms
ROOT = Path(__file__).parents[1]
SUITES = {
    "backend": "BackendSuite", "layer": "LayerSuite CostSuite", "activation": "ActivationSuite",
    "optimiser": "OptimiserSuite GradientOptimiserSuite", "schedule": "ScheduleSuite",
    "initialiser": "InitialiserSuite RandomInitialiserSuite", "modifier": "TransformSuite ModifierSuite",
    "source": "SourceSuite", "reader": "ReaderSuite", "extractor": "ExtractorSuite", "encoder": "EncoderSuite",
    "preprocessor": "PreprocessorSuite", "augmentation": "AugmentationSuite", "dataset": "DatasetSuite",
    "iterator": "IteratorSuite", "inspector": "InspectorSuite", "hook": "HookSuite",
    "metric": "MetricSuite", "operator": "OperatorSuite TransportSuite", "merger": "MergerSuite",
    "monitor": "MonitorSuite",
    "exporter": "ExporterSuite", "recipe": "RecipeSuite", "verb": "VerbSuite", "op": "OpSuite",
    "lowering": "LoweringSuite", "criterion": "CriterionSuite", "panel": "PanelSuite",
    "chart": "ChartSuite", "configuration": "ConfigurationSuite", "store": "StoreSuite", "command": "CommandSuite",
    "generator": "GeneratorSuite", "rewriting": "RewritingSuite",
    "trainer": "TrainerSuite",
}  # fmt: skip


def test_every_kind_of_component_has_a_suite() -> None:
    assert {*KINDS} == {*SUITES}
    assert {name for names in SUITES.values() for name in names.split()} <= {*dir(testing)}


@cache
def in_suites(room: str) -> dict[str, set[str]]:
    """Return the names and texts in the test classes of a room, by the suite that they inherit."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "plugins" / room / "tests").rglob("test_*.py"):
        classes = {one.name: one for one in ast.parse(path.read_text()).body if isinstance(one, ast.ClassDef)}
        for one in classes.values():
            line = [*_line(one, classes)]
            words = {word for each in line for word in _words(each)}
            for suite in {ast.unparse(base) for each in line for base in each.bases} - {*classes}:
                found.setdefault(suite, set()).update(words)
    return found


def _line(one: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Yield a class and those of its file that it inherits."""
    yield one
    for base in one.bases:
        if ast.unparse(base) in classes:
            yield from _line(classes[ast.unparse(base)], classes)


def _words(one: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(one):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def names(component: Component) -> set[str]:
    """Return the names by which a test may make a component."""
    return {component.name, component.path.partition(":")[2]}


@pytest.mark.parametrize("component", [*catalogue().components()], ids=lambda one: f"{one.kind}-{one.name}")
def test_a_component_of_a_room_is_run_by_the_suite_of_its_kind(component: Component) -> None:
    if not (ROOT / "plugins" / component.distribution).exists():
        return  # installed, but no room of this project
    words = {
        word for suite in SUITES[component.kind].split() for word in in_suites(component.distribution).get(suite, ())
    }
    assert words & names(component), f"no {SUITES[component.kind]} in the tests of {component.distribution} makes it"
