"""Rows that were given from Python, saved in the folder of their run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from attrs import define, field
from safetensors import SafetensorError

from sigma_data.arrays import read_only, specs
from sigma_data.datasets.splits import Loaded, Splits
from sigma_kernel import Dataset, Label, SigmaDataError
from sigma_kernel.graph import Spec

ABOUT = "splits"  # the entry of the file's header: names of classes and columns by split and section, and the blocks
AGAIN = "Give the data again in Python: load(run), trainer.data = ..., or Environment.resume(run)."


@define(eq=False)
class Saved(Splits):
    """The splits of a run in one file.

    Args:
        path: Path of the file; without one, the rows were not kept.
        sha256: SHA-256 of the file, in hexadecimal digits.
        splits: Names of the splits.
        divided: Whether the splits are the parts that ``validation_split`` made of the rows.
    """

    path: Path | None = None
    sha256: str = ""
    splits: tuple[str, ...] = field(default=("training",), converter=tuple)
    divided: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return self.splits

    def load(self) -> Loaded:
        """Return the splits; raises SigmaDataError if the file is missing, changed or damaged."""
        if self.path is None:
            raise SigmaDataError(f"data: the rows of this run were not kept with it. {AGAIN}")
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise SigmaDataError(f"{self.path}: cannot be read: {error.strerror}. {AGAIN}") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise SigmaDataError(f"{self.path}: is damaged: its checksum differs. {AGAIN}")
        try:
            return {name: _split(name, about, data) for name, about in _read_header(data).items()}, ()
        except (SafetensorError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise SigmaDataError(f"{self.path}: cannot be read: {error!r:.200}. {AGAIN}") from error

    @staticmethod
    def bytes_of(splits: Mapping[str, Dataset]) -> bytes:
        """Return the content of the file for some splits, with the names of classes and columns of their sections."""
        arrays, header = dict[str, np.ndarray](), dict[str, Any]()
        for split, rows in splits.items():
            names = [name for name, values in rows.block(0).items() if values.dtype.kind in "biuf"]
            header[split] = {"blocks": rows.blocks, "classes": {name: [*rows.class_names(name)] for name in names}}
            columns = {name: [*titles] for name in names if (titles := rows.column_names(name))}
            header[split] |= {"columns": columns} if columns else {}
            for block in range(rows.blocks):
                sections = rows.block(block)
                arrays |= {f"{split}/{block}/{name}": _to_storable(sections[name]) for name in names}
        return safetensors.numpy.save(arrays, {ABOUT: json.dumps(header)})


@define(eq=False)
class Blocks(Dataset):
    """The blocks of one split."""

    held: Sequence[Mapping[str, np.ndarray]]
    classes: Mapping[str, Sequence[Label]]
    columns: Mapping[str, Sequence[str]] = field(factory=dict)

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return specs(self.held[0])

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.held)

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return len(next(iter(self.held[block].values())))

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return views of the arrays of a block that cannot be written to."""
        return read_only(self.held[block])

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the class names of a section."""
        return tuple(self.classes.get(section, ()))

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of a section."""
        return tuple(self.columns.get(section, ()))


def _read_header(data: bytes) -> dict[str, Any]:
    """Return what the header says about each split."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return dict(json.loads(header["__metadata__"][ABOUT]))


def _split(name: str, about: Mapping[str, Any], data: bytes) -> Blocks:
    arrays = safetensors.numpy.load(data)
    held = [{section: arrays[f"{name}/{n}/{section}"] for section in about["classes"]} for n in range(about["blocks"])]
    return Blocks(held, about["classes"], about.get("columns", {}))


def _to_storable(values: Any) -> np.ndarray:
    array = np.asarray(values, order="C")
    return array.astype(array.dtype.newbyteorder("="), copy=False)
