"""Hooks and metrics for Sigma."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigma_hooks.plugin import sigma_components

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_hooks.accumulate import Accumulate as Accumulate
    from sigma_hooks.accuracy import Accuracy as Accuracy
    from sigma_hooks.checkpoint import SaveCheckpoint as SaveCheckpoint
    from sigma_hooks.confusion_matrix import (
        ConfusionMatrix as ConfusionMatrix,
        ConfusionMatrixMetric as ConfusionMatrixMetric,
    )
    from sigma_hooks.early_stop import EarlyStop as EarlyStop
    from sigma_hooks.evaluate import Evaluate as Evaluate
    from sigma_hooks.extrema import Extrema as Extrema
    from sigma_hooks.f1 import F1 as F1, F1Metric as F1Metric
    from sigma_hooks.function import FunctionHook as FunctionHook
    from sigma_hooks.histogram import Histogram as Histogram
    from sigma_hooks.learning_rate_finder import LearningRateFinder as LearningRateFinder
    from sigma_hooks.loss import Loss as Loss
    from sigma_hooks.mean_absolute_error import (
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsoluteErrorMetric as MeanAbsoluteErrorMetric,
    )
    from sigma_hooks.metrics import AccuracyMetric as AccuracyMetric
    from sigma_hooks.nan_guard import NanGuard as NanGuard
    from sigma_hooks.phase_time import PhaseTime as PhaseTime
    from sigma_hooks.precision import Precision as Precision, PrecisionMetric as PrecisionMetric
    from sigma_hooks.progress import Progress as Progress
    from sigma_hooks.r_squared import RSquared as RSquared, RSquaredMetric as RSquaredMetric
    from sigma_hooks.recall import Recall as Recall, RecallMetric as RecallMetric
    from sigma_hooks.reduce_on_plateau import ReduceOnPlateau as ReduceOnPlateau
    from sigma_hooks.report import Report as Report
    from sigma_hooks.root_mean_square_error import (
        RootMeanSquareError as RootMeanSquareError,
        RootMeanSquareErrorMetric as RootMeanSquareErrorMetric,
    )
    from sigma_hooks.running_time import RunningTime as RunningTime
    from sigma_hooks.statistics import Statistics as Statistics
    from sigma_hooks.stop import Stop as Stop
    from sigma_hooks.switch import Switch as Switch
    from sigma_hooks.target_maximisation import TargetMaximisation as TargetMaximisation
    from sigma_hooks.threshold_accuracy import (
        ThresholdAccuracy as ThresholdAccuracy,
        ThresholdAccuracyMetric as ThresholdAccuracyMetric,
    )
    from sigma_hooks.time_limit import TimeLimit as TimeLimit
    from sigma_hooks.update_rate import UpdateRate as UpdateRate
    from sigma_hooks.verify import Verify as Verify


_PATHS = (component.path.split(":") for component in sigma_components())
_EXPORTS = {name: module for module, name in _PATHS}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
