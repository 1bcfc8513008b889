"""Format predictions: JSON rows, a table for the terminal, .csv and .npy files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Label
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.trained import Trained

FILES = (".csv", ".npy")
PLACE = ("input", "row")  # the names of the columns that say where a sample is from
SHOWN = 8  # values shown per row of a table


@frozen
class Predictions:
    """Predictions for samples: arrays by output, one row per sample.

    ``choosing`` are the outputs that hold class probabilities; ``classes`` are their labels by output; ``places`` are
    the file and row of each sample; ``top`` is the number of classes to list; ``targets`` are the names of the columns
    that outputs predict; ``identity`` has columns that identify samples, such as their times.
    """

    outputs: Mapping[str, np.ndarray]
    choosing: Sequence[str]
    classes: Mapping[str, Sequence[Label]]
    places: Sequence[tuple[str, int]]
    top: int = 1
    targets: Mapping[str, Sequence[str]] = field(factory=dict)
    identity: Mapping[str, Sequence[str]] = field(factory=dict)

    # -- JSON ----------------------------------------------------------------------------------------------------------
    def rows(self) -> list[dict[str, Any]]:
        """Return a document for each sample; several outputs are nested below their names."""
        rows: list[dict[str, Any]] = []
        for number, (path, row) in enumerate(self.places):
            said = {name: self._describe_row(name, values[number]) for name, values in self.outputs.items()}
            identity = {name: values[number] for name, values in self.identity.items()}
            own = {"identity": identity} if identity else {}
            rows.append({"input": path, "row": row, **own, **(said if len(said) > 1 else next(iter(said.values())))})
        return rows

    def _describe_row(self, output: str, values: np.ndarray) -> dict[str, Any]:
        if not self._chooses(output):
            names = self._columns_of(output)
            return {"values": values.tolist(), **({"columns": [*names]} if names else {})}
        best = self._best(output, values)
        return {**best[0], **({"top": best} if self.top > 1 else {}), "probabilities": values.tolist()}

    def _chooses(self, output: str) -> bool:
        return output in self.choosing and bool(self.outputs[output].ndim == 2)  # one class per sample

    def _best(self, output: str, values: np.ndarray) -> list[dict[str, Any]]:
        """Return the most probable classes; ties go to the lower index."""
        order = np.argsort(-values, kind="stable")[: self.top]
        return [{"class": int(i), **self._label_of(output, int(i)), "probability": values[i].tolist()} for i in order]

    def _label_of(self, output: str, number: int) -> dict[str, Label]:
        return {"label": self.classes[output][number]} if self._has_labels(output) else {}

    def _has_labels(self, output: str) -> bool:
        return bool(len(self.classes.get(output, ())) == self.outputs[output].shape[-1])

    def _columns_of(self, output: str) -> Sequence[str]:
        """Return the name of the column that each number of an output predicts; none if they are not as many."""
        names = [f"value_{name}" if name in PLACE else name for name in self.targets.get(output, ())]
        return names if len(names) == prod(self.outputs[output].shape[1:]) else ()

    def _few_columns(self, output: str) -> Sequence[str]:
        """Return the same, if a table has room for them."""
        return names if len(names := self._columns_of(output)) <= SHOWN else ()

    # -- table ---------------------------------------------------------------------------------------------------------
    def table(self) -> Iterator[list[str]]:
        """Yield the rows of a table, header first."""
        yield [*PLACE, *self.identity, *(text for name in self.outputs for text in self._head(name))]
        for number, (path, row) in enumerate(self.places):
            cells = (text for name, values in self.outputs.items() for text in self._cells(name, values[number]))
            yield [path, str(row), *(values[number] for values in self.identity.values()), *cells]

    def _head(self, output: str) -> list[str]:
        before = f"{output}." if len(self.outputs) > 1 else ""
        if not self._chooses(output):
            return [f"{before}{name}" for name in self._few_columns(output) or ["values"]]
        count = min(self.top, self.outputs[output].shape[-1])
        return [f"{before}{word}" for _ in range(count) for word in ("class", "probability")]

    def _cells(self, output: str, values: np.ndarray) -> list[str]:
        if not self._chooses(output):
            flat = values.ravel()
            if self._few_columns(output):
                return [f"{value:.6g}" for value in flat.tolist()]
            more = f" ... ({flat.size} values)" if flat.size > SHOWN else ""
            return [" ".join(f"{value:.6g}" for value in flat[:SHOWN].tolist()) + more]
        best = self._best(output, values)
        return [text for top in best for text in (str(top.get("label", top["class"])), f"{values[top['class']]:.4f}")]

    # -- files ---------------------------------------------------------------------------------------------------------
    def columns(self) -> dict[str, Sequence[Any]]:
        """Return all predictions as columns: the class and its label, then every value."""
        columns: dict[str, Sequence[Any]] = {name: [place[i] for place in self.places] for i, name in enumerate(PLACE)}
        columns |= {name: values for name, values in self.identity.items() if name not in PLACE}
        for name, values in self.outputs.items():
            before = f"{name}." if len(self.outputs) > 1 else ""
            columns |= {f"{before}{key}": column for key, column in self._columns(name, values).items()}
        return columns

    def _columns(self, output: str, values: np.ndarray) -> dict[str, Sequence[Any]]:
        flat = values.reshape(len(values), -1)
        if not self._chooses(output):
            titles = self._columns_of(output) or [f"value_{i}" for i in range(flat.shape[1])]
            return {title: flat[:, i].tolist() for i, title in enumerate(titles)}
        chosen = values.argmax(axis=1).tolist()
        labels = {"label": [self.classes[output][i] for i in chosen]} if self._has_labels(output) else {}
        names = self.classes[output] if self._has_labels(output) else range(flat.shape[1])
        return {"class": chosen, **labels, **{f"probability_{n}": flat[:, i].tolist() for i, n in enumerate(names)}}


def writable(path: Path) -> None:
    """Raise SigmaConfigError unless predictions can be written to this file: its extension, its directory."""
    if path.suffix.lower() not in FILES:
        raise SigmaConfigError(f"--output {path}: must be a {' or '.join(FILES)} file.")
    if not path.parent.is_dir():
        raise SigmaConfigError(f"--output {path}: {str(path.parent)!r} is not a directory. Create it first.")


def write(path: Path, found: Predictions) -> None:
    """Write predictions: a .csv table with a line per sample, or the array of a single output as .npy."""
    try:
        if path.suffix.lower() == ".csv":
            columns = found.columns()
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
        elif len(found.outputs) > 1:
            raise SigmaConfigError(f"--output {path}: there are {len(found.outputs)} outputs. Write a .csv file.")
        else:
            np.save(path, next(iter(found.outputs.values())), allow_pickle=False)
    except OSError as error:
        raise SigmaConfigError(f"--output {path}: cannot be written: {error.strerror}.") from error


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
