"""The kernel of Sigma: registries, time scales, the computation graph, the lifecycle and the plugin machinery."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_kernel.clock import after as after, between as between, every as every
    from sigma_kernel.contracts import (
        Backend as Backend,
        CostLayer as CostLayer,
        Dataset as Dataset,
        Draws as Draws,
        Extractor as Extractor,
        GradientOptimiser as GradientOptimiser,
        Hook as Hook,
        Initialiser as Initialiser,
        Layer as Layer,
        Metric as Metric,
        Modifier as Modifier,
        Monitor as Monitor,
        Operator as Operator,
        Optimiser as Optimiser,
        Order as Order,
        Outputs as Outputs,
        Parameter as Parameter,
        Preprocessor as Preprocessor,
        Reader as Reader,
        Recipe as Recipe,
        Schedule as Schedule,
        Source as Source,
        Transform as Transform,
        live as live,
    )
    from sigma_kernel.environment import Environment as Environment
    from sigma_kernel.errors import SigmaError as SigmaError
    from sigma_kernel.graph import functions as functions
    from sigma_kernel.registry import Registry as Registry
    from sigma_kernel.specs import Component as Component, hookimpl as hookimpl
    from sigma_kernel.training.criteria import when as when

_MODULES = {
    "clock": "after between every",
    "contracts": "Backend CostLayer Dataset Draws Extractor GradientOptimiser Hook Initialiser Layer Metric Modifier"
    " Monitor Operator Optimiser Order Outputs Parameter Preprocessor Reader Recipe Schedule Source Transform live",
    "environment": "Environment",
    "errors": "SigmaError",
    "graph.functions": "functions",
    "registry": "Registry",
    "specs": "Component hookimpl",
    "training.criteria": "when",
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_EXPORTS[name]}")
    return globals().setdefault(name, getattr(module, name, module))  # ``functions`` is a module itself


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
