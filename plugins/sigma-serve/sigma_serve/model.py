"""A trained network as it is served: its predictions, and how they are written."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaDataError
from sigma_run import Trained
from sigma_run.launcher import Predictions

Arrays = Mapping[str, np.ndarray]


@frozen
class ServedNetwork:
    """A network that is served, and the name of its run."""

    trained: Trained
    name: str

    def warm_up(self) -> None:
        """Predict for zeros, which compiles the program; data that refuse zeros compile it on the first request."""
        try:
            self.predict({name: np.zeros((1, *shape), np.float32) for name, shape in self.trained.shapes.items()})
        except SigmaDataError:
            return

    def predict(self, rows: Arrays) -> dict[str, np.ndarray]:
        """Return the outputs by name for rows by section, each computed by itself.

        Raises SigmaDataError for rows that do not fit.
        """
        with np.errstate(all="ignore"):  # values that overflow are refused by the check of the rows
            outputs = self.trained.predict(rows, batch_size=1)
        return outputs if isinstance(outputs, dict) else {self.trained.network.outputs[0].name: outputs}

    def describe(self, outputs: Arrays, top: int) -> Predictions:
        """Return the predictions in the words of ``sigma predict``."""
        trained, choosing = self.trained, self.trained.network.choosing()
        places = [("", row) for row in range(len(next(iter(outputs.values()))))]
        classes = {name: trained.names(name) for name in choosing}
        return Predictions(outputs, choosing, classes, places, top, trained.targets)


def write_json(predictions: Predictions) -> str:
    """Return ``{"predictions": [...]}``; numbers that JSON lacks are null."""
    rows = [{name: value for name, value in row.items() if name != "input"} for row in predictions.rows()]
    try:
        return json.dumps({"predictions": rows}, allow_nan=False)
    except ValueError:
        return json.dumps({"predictions": _without_nan(rows)}, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(predictions: Predictions) -> str:
    """Return a table with a line for each row."""
    columns = {name: values for name, values in predictions.columns().items() if name != "input"}
    text = io.StringIO(newline="")
    csv.writer(text).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return text.getvalue()
