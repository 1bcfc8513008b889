"""Whether lower or higher values are better: as set, or by the name of the value."""

from __future__ import annotations

from sigma_kernel.contracts import HookContext

DIRECTIONS = ("automatic", "lower", "higher")
HIGHER = frozenset((
    "accuracy", "auc", "average_precision", "f1", "intersection_over_union", "iou", "jaccard", "kappa", "precision",
    "r2", "r_squared", "recall",
))  # fmt: skip
LOWER = frozenset((
    "bits_per_character", "cost", "discrepancy", "error", "errors", "loss", "losses", "mae", "mse", "perplexity",
    "rmse",
))  # fmt: skip


def higher_is_better(better: str, address: str | None) -> bool:
    """Return whether higher values are better: as ``better`` says, else by the name of the value, else False."""
    return (better if better != "automatic" else _by_name(address or "")) == "higher"


def say_if_unknown(context: HookContext, better: str, address: str) -> None:
    """Log once that lower values are taken to be better, if neither the setting nor the name says which are."""
    if better == "automatic" and not _by_name(address) and not context.memory.get("told"):
        context.memory["told"] = True
        context.log(f'{address}: lower is taken to be better. Set better = "higher" or better = "lower".')


def _by_name(address: str) -> str:
    """Return the direction of the last name that has one, so that ``accuracy.mean`` counts as ``accuracy``."""
    names = address.split(".")
    for name in ["cost"] if "cost" in names[:-1] else reversed(names):  # a cost is named after its layer
        words = name.split("_")
        runs = {"_".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
        if runs & LOWER:
            return "lower"
        if runs & HIGHER:
            return "higher"
    return ""
