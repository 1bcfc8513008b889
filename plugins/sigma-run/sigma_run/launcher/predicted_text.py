"""``sigma predict --text`` for a network that was trained on texts: predict from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.scanning import OWN
from sigma_run.config.trained import Trained
from sigma_run.launcher.continuation import DEFAULTS
from sigma_run.launcher.predictions import Predictions, collect_predictions


def reads_texts(model: Trained) -> bool:
    """Return whether the network was trained on a column with an encoder of texts, and nothing else."""
    frames = model.checkpoint.values.get("learned", {}).get("frames", {})
    columns = frames.get(next(iter(model.shapes)), {}).get("columns", ())
    if len(model.shapes) != 1 or len(columns) != 1 or not isinstance(columns[0], dict):
        return False
    encoder: Mapping[str, str] = columns[0].get("encoder", {})
    kind, name = ("encoder", encoder["type"]) if "type" in encoder else (OWN, encoder.get(OWN, ""))
    cls: Any = catalogue().load(kind, name) if name else None
    return cls is not None and "text" in cls.kinds


def predict_text(model: Trained, how: Mapping[str, Any], top: int) -> Predictions:
    """Return the prediction for a text; raise UsageError for options of a text to continue."""
    if wrong := [f"--{name}" for name in DEFAULTS if how[name] is not None]:
        raise click.UsageError(f"{wrong[0]} is for a text to continue. This network predicts from texts: leave it out.")
    try:
        predicted = model.predict([how["text"]])
    except SigmaDataError as error:
        raise SigmaConfigError(f"--text: {error}") from error
    return collect_predictions(model, predicted, [("--text", 0)], top)
