"""Hooks and metrics for Sigma."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigma_hooks.plugin import sigma_components

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_hooks.accuracy import Accuracy as Accuracy
    from sigma_hooks.early_stop import EarlyStop as EarlyStop
    from sigma_hooks.evaluate import Evaluate as Evaluate
    from sigma_hooks.extrema import Extrema as Extrema
    from sigma_hooks.function import FunctionHook as FunctionHook
    from sigma_hooks.loss import Loss as Loss
    from sigma_hooks.metrics import AccuracyMetric as AccuracyMetric
    from sigma_hooks.nan_guard import NanGuard as NanGuard
    from sigma_hooks.report import Report as Report
    from sigma_hooks.running_time import RunningTime as RunningTime
    from sigma_hooks.stop import Stop as Stop


_PATHS = (component.path.split(":") for component in sigma_components())
_EXPORTS = {name: module for module, name in _PATHS}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
