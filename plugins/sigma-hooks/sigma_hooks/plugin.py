"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

HOOKS = {
    "evaluate": ("Evaluate", "Publish the loss and metrics over a split of the data."),
    "accuracy": ("Accuracy", "Publish the loss and the (top-k) accuracy over a split of the data."),
    "loss": ("Loss", "Tell the training loss."),
    "report": ("Report", "Tell any values by address."),
    "running_time": ("RunningTime", "Publish the seconds that the last interval took."),
    "extrema": ("Extrema", "Publish the smallest and the greatest value seen so far."),
    "stop": ("Stop", "End training when a criterion holds."),
    "early_stop": ("EarlyStop", "End training when a value no longer improves."),
    "nan_guard": ("NanGuard", "Decide what happens when the loss is not finite."),
    "function": ("FunctionHook", "Call a Python function."),
}
METRICS = {
    "accuracy": ("AccuracyMetric", "The share of samples whose class is among the k best scores."),
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all hooks and metrics."""
    hooks = [Component("hook", name, f"sigma_hooks.{name}:{thing}", text) for name, (thing, text) in HOOKS.items()]
    metrics = [Component("metric", n, f"sigma_hooks.metrics:{thing}", text) for n, (thing, text) in METRICS.items()]
    return hooks + metrics
