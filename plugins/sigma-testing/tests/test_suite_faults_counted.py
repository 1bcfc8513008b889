"""How many faults are planted for the suites of conformance, all of which are caught by the tests next to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import (
    test_backend_suite as backends,
    test_lowering_suite as lowerings,
    test_suite_faults as small,
    test_suite_faults_of_augmentations as augmentations,
    test_suite_faults_of_data as data,
    test_suite_faults_of_encoders as encoders,
    test_suite_faults_of_hooks as hooks,
    test_suite_faults_of_inspectors as inspectors,
    test_suite_faults_of_launching as launching,
    test_suite_faults_of_layers as layers,
    test_suite_faults_of_operators as operators,
    test_suite_faults_of_optimisers as optimisers,
    test_suite_faults_of_traits as traits,
    test_suites as plugins,
)

TABLES: dict[str, Mapping[Any, Any]] = {
    "metrics": small.METRICS, "mergers": small.MERGERS, "iterators": small.ITERATORS, "readers": small.READERS,
    "extractors": small.EXTRACTORS, "exporters": small.EXPORTERS, "layers": layers.LAYERS, "costs": layers.COSTS,
    "activations": layers.ACTIVATIONS, "ops": layers.OF_OPS, "optimisers": optimisers.OPTIMISERS,
    "transforms": optimisers.TRANSFORMS, "modifiers": optimisers.MODIFIERS, "schedules": optimisers.SCHEDULES,
    "initialisers": optimisers.INITIALISERS, "data sets": data.DATASETS, "preprocessors": data.PREPROCESSORS,
    "sources": data.SOURCES, "hooks": hooks.HOOKS, "backends": backends.BACKENDS, "recipes": launching.RECIPES,
    "commands": launching.COMMANDS, "operators": operators.OPERATORS, "monitors": operators.MONITORS,
    "plugins": plugins.BROKEN, "encoders": encoders.ENCODERS,
    "inspectors": inspectors.INSPECTORS,
    "augmentations": augmentations.AUGMENTATIONS, "traits of layers": traits.LAYERS, "traits of costs": traits.COSTS,
    "traits of preprocessors": traits.PREPROCESSORS,
}  # fmt: skip


def planted(table: Mapping[Any, Any]) -> int:
    """Return the number of rows that name a test which must fail."""
    return sum(bool(row[-1] if isinstance(row, tuple) else row) for row in table.values())


def test_at_least_240_faults_are_planted_and_some_for_every_kind() -> None:
    counts = {name: planted(table) for name, table in TABLES.items()} | {"lowerings": len(lowerings.WRONG) + 2}
    assert all(counts.values())
    assert sum(counts.values()) >= 240, counts
