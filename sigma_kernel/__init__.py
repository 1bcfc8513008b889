"""The kernel of Sigma: registries, time scales, the computation graph, the lifecycle and the plugin machinery."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_kernel.clock import after as after, between as between, every as every
    from sigma_kernel.contracts import *  # noqa: F403
    from sigma_kernel.criteria import when as when
    from sigma_kernel.environment import Environment as Environment
    from sigma_kernel.errors import (
        SigmaAddressError as SigmaAddressError,
        SigmaCheckpointError as SigmaCheckpointError,
        SigmaConfigError as SigmaConfigError,
        SigmaDataError as SigmaDataError,
        SigmaError as SigmaError,
        SigmaGraphError as SigmaGraphError,
        SigmaNetworkError as SigmaNetworkError,
        SigmaPluginError as SigmaPluginError,
        SigmaStateError as SigmaStateError,
        SigmaTrainingError as SigmaTrainingError,
    )
    from sigma_kernel.graph import functions as functions
    from sigma_kernel.graph.node import Node as Node, Spec as Spec
    from sigma_kernel.inference import load as load
    from sigma_kernel.minimisation import minimise as minimise
    from sigma_kernel.plugins.specs import Component as Component, hookimpl as hookimpl
    from sigma_kernel.registry.registry import Registry as Registry

_MODULES = {
    "clock": "after between every",
    "contracts": "Architecture Array Backend Burst Context CostLayer Dataset Draws Extractor GradientOptimiser Hook"
    " HookContext Initialiser Layer LoopProgram Merger Metric Modifier Monitor Objective Operator Optimiser Order"
    " Outlook Outputs Parameter Preprocessor Program Reader Recipe Schedule Slot Source Step Totals Transform Update"
    " View live",
    "environment": "Environment",
    "errors": "SigmaAddressError SigmaCheckpointError SigmaConfigError SigmaDataError SigmaError SigmaGraphError"
    " SigmaNetworkError SigmaPluginError SigmaStateError SigmaTrainingError",
    "graph.functions": "functions",
    "graph.node": "Node Spec",
    "inference": "load",
    "minimisation": "minimise",
    "registry.registry": "Registry",
    "plugins.specs": "Component hookimpl",
    "criteria": "when",
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_EXPORTS[name]}")
    globals()[name] = value = getattr(module, name, module)  # ``functions`` is a module itself
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
