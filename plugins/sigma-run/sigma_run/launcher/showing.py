"""What a run shows: its monitors, its progress, and its summary in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from sigma_kernel.environment import Summary
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.watchers import PROGRESS
from sigma_run.config import Document, override
from sigma_run.launcher.output import name_metric, say, toml


def add_monitors(described: Document, monitors: tuple[str, ...]) -> Document:
    """Add the requested monitors; those that have settings already keep them."""
    for name in monitors:
        short, tables = name.rpartition(":")[2], described.values.get("monitors")
        settled = isinstance(tables, Mapping) and isinstance(tables.get(short), Mapping)
        place = f"monitors.{toml(short)}{'.type' if settled else ''}"
        described = override(described, f"{place}={toml(name)}", "--monitor")
    return described


def shows(quiet: bool) -> bool:
    """Return whether progress is shown, if no configured monitor does that."""
    return not quiet and catalogue().offers("monitor", PROGRESS)


def tell(summary: Summary) -> None:
    """Print the summary in a few lines."""
    length = f"{summary.epochs} epochs, {summary.iterations} iterations in {summary.seconds:.1f} s"
    say(f"{summary.run} {summary.status}: {length} on {summary.backend}, seed {summary.seed}")
    if summary.why:
        say(f"  {summary.why}", "red")
    for address, value in summary.metrics.items():
        others = {name: values[address] for name, values in summary.baselines.items() if address in values}
        beside = ", ".join(f"{name} {baseline:.4g}" for name, baseline in others.items())
        say(f"  {name_metric(address)}  {value:.4g}{f'  ({beside})' if beside else ''}")
    for text in summary.advice:
        say(f"  note: {text}", "yellow")
    if summary.folder is not None:
        say(f"  {'to continue: sigma resume ' if summary.status == 'interrupted' else ''}{summary.folder}")
