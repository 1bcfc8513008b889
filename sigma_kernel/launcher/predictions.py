"""Predictions as people, programs and files want them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaConfigError

FILES = (".csv", ".npy")
SHOWN = 8  # numbers of a row in a table


@frozen
class Predictions:
    """What a network made of samples: arrays by output, one row a sample.

    ``choosing`` are the outputs that hold probabilities of classes, which are called ``classes``; ``places`` are the
    file of each sample and its row there; ``top`` is the number of classes to name.
    """

    outputs: Mapping[str, np.ndarray]
    choosing: Sequence[str]
    classes: Sequence[str]
    places: Sequence[tuple[str, int]]
    top: int = 1

    # -- for programs --------------------------------------------------------------------------------------------------
    def rows(self) -> list[dict[str, Any]]:
        """Return a document for each sample; with several outputs, what each says is below its name."""
        found: list[dict[str, Any]] = []
        for number, (path, row) in enumerate(self.places):
            said = {name: self._said(name, values[number]) for name, values in self.outputs.items()}
            found.append({"input": path, "row": row, **(said if len(said) > 1 else next(iter(said.values())))})
        return found

    def _said(self, output: str, values: np.ndarray) -> dict[str, Any]:
        if not self._chooses(output):
            return {"values": _json(values)}
        best = self._best(output, values)
        return {**best[0], **({"top": best} if self.top > 1 else {}), "probabilities": _json(values)}

    def _chooses(self, output: str) -> bool:
        return output in self.choosing and bool(self.outputs[output].ndim == 2)  # one choice a sample

    def _best(self, output: str, values: np.ndarray) -> list[dict[str, Any]]:
        """Return the most probable classes; of equals, the first."""
        order = np.argsort(-values, kind="stable")[: self.top]
        return [{"class": int(i), **self._named(output, int(i)), "probability": _json(values[i])} for i in order]

    def _named(self, output: str, number: int) -> dict[str, str]:
        return {"label": self.classes[number]} if self._labelled(output) else {}

    def _labelled(self, output: str) -> bool:
        return bool(len(self.classes) == self.outputs[output].shape[-1])

    # -- for people ----------------------------------------------------------------------------------------------------
    def table(self) -> Iterator[list[str]]:
        """Yield the lines of a table, its head first."""
        yield ["input", "row", *(text for name in self.outputs for text in self._head(name))]
        for number, (path, row) in enumerate(self.places):
            cells = (text for name, values in self.outputs.items() for text in self._cells(name, values[number]))
            yield [path, str(row), *cells]

    def _head(self, output: str) -> list[str]:
        before = f"{output}." if len(self.outputs) > 1 else ""
        if not self._chooses(output):
            return [f"{before}values"]
        count = min(self.top, self.outputs[output].shape[-1])
        return [f"{before}{word}" for _ in range(count) for word in ("class", "probability")]

    def _cells(self, output: str, values: np.ndarray) -> list[str]:
        if not self._chooses(output):
            flat = values.ravel()
            more = f" ... {flat.size} in all" if flat.size > SHOWN else ""
            return [" ".join(f"{value:.6g}" for value in flat[:SHOWN].tolist()) + more]
        best = self._best(output, values)
        return [text for one in best for text in (str(one.get("label", one["class"])), f"{values[one['class']]:.4f}")]

    # -- for files -----------------------------------------------------------------------------------------------------
    def columns(self) -> dict[str, Sequence[Any]]:
        """Return everything as columns: the class and its label, then every number."""
        found: dict[str, Sequence[Any]] = {
            "input": [path for path, _ in self.places],
            "row": [row for _, row in self.places],
        }
        for name, values in self.outputs.items():
            before = f"{name}." if len(self.outputs) > 1 else ""
            found |= {f"{before}{key}": column for key, column in self._columns(name, values).items()}
        return found

    def _columns(self, output: str, values: np.ndarray) -> dict[str, Sequence[Any]]:
        flat = values.reshape(len(values), -1)
        if not self._chooses(output):
            return {f"value_{i}": flat[:, i].tolist() for i in range(flat.shape[1])}
        chosen = values.argmax(axis=1).tolist()
        labels = {"label": [self.classes[i] for i in chosen]} if self._labelled(output) else {}
        names = self.classes if self._labelled(output) else range(flat.shape[1])
        return {"class": chosen, **labels, **{f"probability_{n}": flat[:, i].tolist() for i, n in enumerate(names)}}


def writable(path: Path) -> None:
    """Raise SigmaConfigError for a file that predictions cannot be written to."""
    if path.suffix.lower() not in FILES:
        raise SigmaConfigError(f"--output {path}: must be a {' or '.join(FILES)} file.")
    if not path.parent.is_dir():
        raise SigmaConfigError(f"--output {path}: there is no folder {str(path.parent)!r}. Make it first.")


def write(path: Path, found: Predictions) -> None:
    """Write predictions: a table with a line for each sample, or the array of the only output."""
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


def _json(values: Any) -> Any:
    """Return numbers as JSON has them; it has none that is not finite."""
    found = np.asarray(values).astype(object)
    found[~np.isfinite(values)] = None
    return found.tolist()
