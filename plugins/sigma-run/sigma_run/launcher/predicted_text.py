"""``sigma predict --text`` for a network that was trained on texts: predict from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import click

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_run.config.trained import Trained
from sigma_run.launcher.continuation import DEFAULTS
from sigma_run.launcher.predictions import Predictions


def reads_texts(model: Trained) -> bool:
    """Return whether the network was trained on a column with an encoder, and nothing else."""
    frames = model.checkpoint.values.get("learned", {}).get("frames", {})
    columns = frames.get(next(iter(model.shapes)), {}).get("columns", ())
    return len(model.shapes) == len(columns) == 1 and isinstance(columns[0], dict)


def predict_text(model: Trained, how: Mapping[str, Any], top: int) -> Predictions:
    """Return the prediction for a text; raise UsageError for options of a text to continue."""
    if wrong := [f"--{name}" for name in DEFAULTS if how[name] is not None]:
        raise click.UsageError(f"{wrong[0]} is for a text to continue. This network predicts from texts: leave it out.")
    try:
        predicted = model.predict([how["text"]])
    except SigmaDataError as error:
        raise SigmaConfigError(f"--text: {error}") from error
    return collect_predictions(model, predicted, [("--text", 0)], top)


def collect_predictions(
    model: Trained,
    predicted: Any,
    places: Sequence[tuple[str, int]],
    top: int,
    identity: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Predictions:
    """Return what a network predicted for samples at these places, and what identifies these."""
    outputs = predicted if isinstance(predicted, dict) else {model.network.outputs[0].name: predicted}
    choosing = model.network.choosing()
    classes = {name: model.names(name) for name in choosing}
    return Predictions(outputs, choosing, classes, places, top, model.targets, identity)
