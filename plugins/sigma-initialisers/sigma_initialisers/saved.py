"""Read the parameters of saved networks, without building them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel import catalogue
from sigma_kernel.contracts import Checkpoint, Store, StoredRun
from sigma_kernel.errors import SigmaConfigError

LAYERS = "network.layers."  # what the addresses of parameters and of layer state begin with


def saved_parameters(run: Path | str, trainer: str | None = None) -> dict[str, np.ndarray]:
    """Return the parameters and layer state of the newest intact checkpoint of a run, by address in ``network.layers``.

    ``trainer`` names one of several. No network is built, so that the run may have been trained from Python. Raises
    SigmaCheckpointError if no checkpoint is intact, and SigmaConfigError if a trainer must be named.
    """
    return read_saved(run, trainer)[0]


def read_saved(
    run: Path | str, trainer: str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, dict[str, list[Any]]]]:
    """Return the parameters of :func:`saved_parameters`, and the names of the data that they were trained on.

    These are the ``columns`` and the ``classes`` by section, or of "" if only one has any.
    """
    checkpoint = _newest(Path(run), trainer)
    parameters = {name.removeprefix(LAYERS): x for name, x in checkpoint.arrays.items() if name.startswith(LAYERS)}
    learned = checkpoint.values.get("learned", {})
    classes = learned.get("classes") or {"": checkpoint.values.get("classes", ())}  # of the only section that has any
    facts = {"columns": learned.get("columns", {}), "classes": classes}
    return parameters, {what: {name: [*names] for name, names in sections.items()} for what, sections in facts.items()}


def _newest(path: Path, trainer: str | None) -> Checkpoint:
    store: type[Store] = catalogue().load("store", "default:run")  # type: ignore[assignment]
    run = store().open(path, warnings.warn, _fill)
    names = run.trainers()
    if trainer is None and len(names) > 1:
        raise SigmaConfigError(f"{path}: it trained {', '.join(names)}. Choose one: trainer = '{names[0]}'.")
    return run.checkpoints(trainer or (names or ["trainer"])[0]).newest(warnings.warn, _accept)[1]


def _fill(run: StoredRun) -> None:
    """Write nothing to a run that is only read."""


def _accept(label: str, found: Checkpoint) -> None:
    """Take any checkpoint that is intact."""
