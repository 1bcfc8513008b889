"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

HOOKS = {
    "evaluate": ("Evaluate", "Publish the loss and metrics over a split of the data."),
    "accuracy": ("Accuracy", "Publish the loss and the (top-k) accuracy over a split of the data."),
    "threshold_accuracy": (
        "ThresholdAccuracy",
        "Publish how often probabilities lie on the right side of a threshold.",
    ),
    "precision": ("Precision", "Publish the share of the samples said to be of a class that are."),
    "recall": ("Recall", "Publish the share of the samples of a class that were said to be."),
    "f1": ("F1", "Publish the harmonic mean of precision and recall."),
    "confusion_matrix": ("ConfusionMatrix", "Publish how often each class was said to be each class."),
    "mean_absolute_error": ("MeanAbsoluteError", "Publish the mean of the errors' sizes."),
    "root_mean_square_error": ("RootMeanSquareError", "Publish the root of the mean of the squared errors."),
    "r_squared": ("RSquared", "Publish the share of the targets' variance that is explained."),
    "loss": ("Loss", "Tell the training loss."),
    "report": ("Report", "Tell any values by address."),
    "progress": ("Progress", "Tell how far training has come."),
    "running_time": ("RunningTime", "Publish the seconds that the last interval took."),
    "phase_time": ("PhaseTime", "Publish what those seconds were spent on."),
    "extrema": ("Extrema", "Publish the smallest and the greatest value seen so far."),
    "accumulate": ("Accumulate", "Publish the mean, sum, minimum or maximum of a value over many times."),
    "statistics": ("Statistics", "Publish the mean, deviation, norm ... of arrays by address."),
    "update_rate": ("UpdateRate", "Publish how fast parameters change for their size."),
    "histogram": ("Histogram", "Publish histograms of parameters, gradients, updates or activations."),
    "stop": ("Stop", "End training when a criterion holds."),
    "time_limit": ("TimeLimit", "End training when its time is up."),
    "early_stop": ("EarlyStop", "End training when a value no longer improves."),
    "nan_guard": ("NanGuard", "Decide what happens when the loss is not finite."),
    "verify": ("Verify", "Compare iterations with the reference, op by op, and end training where they differ."),
    "checkpoint": ("SaveCheckpoint", "Save checkpoints, and say which of them stay."),
    "reduce_on_plateau": ("ReduceOnPlateau", "Lower the learning rate when a value no longer improves."),
    "learning_rate_finder": ("LearningRateFinder", "Find a learning rate by trying many."),
    "switch": ("Switch", "Offer a number to flip while training goes on."),
    "target_maximisation": ("TargetMaximisation", "Draw what excites each output most."),
    "function": ("FunctionHook", "Call a Python function."),
}
METRICS = {
    "accuracy": ("metrics:AccuracyMetric", "The share of samples whose class is among the k best scores."),
    "threshold_accuracy": (
        "threshold_accuracy:ThresholdAccuracyMetric",
        "The share of outputs on the right side of a threshold.",
    ),
    "precision": ("precision:PrecisionMetric", "The share of the samples said to be of a class that are."),
    "recall": ("recall:RecallMetric", "The share of the samples of a class that were said to be."),
    "f1": ("f1:F1Metric", "The harmonic mean of precision and recall."),
    "confusion_matrix": ("confusion_matrix:ConfusionMatrixMetric", "How often each class was said to be each class."),
    "mean_absolute_error": ("mean_absolute_error:MeanAbsoluteErrorMetric", "The mean of the errors' sizes."),
    "root_mean_square_error": (
        "root_mean_square_error:RootMeanSquareErrorMetric",
        "The root of the mean of the squared errors.",
    ),
    "r_squared": ("r_squared:RSquaredMetric", "The share of the targets' variance that is explained."),
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all hooks and metrics."""
    hooks = [Component("hook", name, f"sigma_hooks.{name}:{thing}", text) for name, (thing, text) in HOOKS.items()]
    metrics = [Component("metric", name, f"sigma_hooks.{path}", text) for name, (path, text) in METRICS.items()]
    return hooks + metrics
