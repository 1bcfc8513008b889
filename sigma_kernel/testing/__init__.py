"""Public conformance suites: what every component of a kind must do, as classes to inherit in a plugin's tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_kernel.testing.backend import BackendSuite as BackendSuite
    from sigma_kernel.testing.data import (
        DatasetSuite as DatasetSuite,
        PreprocessorSuite as PreprocessorSuite,
        SourceSuite as SourceSuite,
    )
    from sigma_kernel.testing.initialisers import (
        InitialiserSuite as InitialiserSuite,
        RandomInitialiserSuite as RandomInitialiserSuite,
    )
    from sigma_kernel.testing.layers import CostSuite as CostSuite, LayerSuite as LayerSuite
    from sigma_kernel.testing.null import NullBackend as NullBackend
    from sigma_kernel.testing.optimisers import (
        GradientOptimiserSuite as GradientOptimiserSuite,
        OptimiserSuite as OptimiserSuite,
        ScheduleSuite as ScheduleSuite,
        TransformSuite as TransformSuite,
    )
    from sigma_kernel.testing.steering import (
        HookSuite as HookSuite,
        MonitorSuite as MonitorSuite,
        OperatorSuite as OperatorSuite,
    )

_MODULES = {
    "backend": "BackendSuite",
    "data": "DatasetSuite PreprocessorSuite SourceSuite",
    "initialisers": "InitialiserSuite RandomInitialiserSuite",
    "layers": "CostSuite LayerSuite",
    "null": "NullBackend",
    "optimisers": "GradientOptimiserSuite OptimiserSuite ScheduleSuite TransformSuite",
    "steering": "HookSuite MonitorSuite OperatorSuite",
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return __all__
