"""Whether lower or higher values are better: by the setting, or by the metric published at the address."""

from __future__ import annotations

from sigma_kernel.contracts import HookContext, Outlook
from sigma_kernel.errors import SigmaConfigError

DIRECTIONS = ("automatic", "lower", "higher")


def higher_is_better(context: HookContext, better: str, address: str) -> bool:
    """Return whether higher values are better: by ``better``, else by the metric, else False."""
    return (context.direction(address) if better == "automatic" else better) == "higher"


def check_direction(outlook: Outlook, better: str, address: str) -> None:
    """Raise SigmaConfigError if neither the setting nor the metric at the address decides which values are better."""
    said = outlook.direction(address) if better == "automatic" else better
    if said in ("undeclared", "neither"):
        why = "does not say whether lower or higher ones are" if said == "undeclared" else "says that neither are"
        raise SigmaConfigError(f'{address}: its metric {why} better. Set better = "higher" or better = "lower".')


def say_if_unknown(context: HookContext, better: str, address: str) -> None:
    """Log once that lower is assumed to be better, if neither metric nor setting decides."""
    if better == "automatic" and not context.memory.get("told") and not context.direction(address):
        context.memory["told"] = True
        context.log(f'{address}: lower is assumed to be better. Set better = "higher" or better = "lower".')
