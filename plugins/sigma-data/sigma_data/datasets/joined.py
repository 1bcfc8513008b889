"""Several files joined by row as a data set: one for inputs, another for targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_data.arrays import Arrays
from sigma_data.datasets.records import read_sections
from sigma_data.datasets.splits import Divided
from sigma_data.readers.samples import ARRAYS, IMAGES
from sigma_data.sources import local
from sigma_kernel import Extractor, Preprocessor, Reader, SigmaConfigError, SigmaDataError, Source
from sigma_kernel.errors import introduce_errors, suggest_name
from sigma_kernel.settings import brief, min_len

INPUTS = "inputs"


class _RowsNeeded(Exception):
    """A preprocessor reads rows to be fitted."""


class _NoRows(Iterable[np.ndarray]):
    """Blocks for a preprocessor that has its numbers already; raises when they are read."""

    def __iter__(self) -> Iterator[np.ndarray]:
        """Raise."""
        raise _RowsNeeded


@frozen
class JoinedSource:
    """One of several sources that are joined: its rows are those of the others, in the same order.

    Args:
        source: Source of bytes.
        reader: Reader that decodes them.
        extractor: Extractor of sections; without one, each array of the reader is a section, and a single one has the
            name of the part.
        preprocessors: Preprocessors of its sections, in this order.  Those of a section from the first one on that has
            to be fitted act like those of the trainer, before these: fitted on the training rows alone, and saved with
            the run.
    """

    source: Source
    reader: Reader
    extractor: Extractor | None = None
    preprocessors: Mapping[str, Preprocessor] = field(factory=dict)

    __repr__ = brief

    def read(self, name: str, source: Source | None = None) -> dict[str, np.ndarray]:
        """Return the sections of the part with this name; of another source, if one is given."""
        arrays = read_sections(source or self.source, self.reader, self.extractor)
        if self.extractor is None and len(arrays) == 1:
            arrays = {name: next(iter(arrays.values()))}
        fitted = self.fitted_steps
        for label, step in self.preprocessors.items():
            where = f"Joined.parts.{name}.preprocessors.{label}"
            if step.section not in arrays:
                near = suggest_name(step.section, arrays, "This part has")
                raise SigmaConfigError(f"{where}.section: there is no section {step.section!r}.{near}")
            if label not in fitted:
                with introduce_errors(where, step):
                    arrays[step.section] = step.apply(arrays[step.section], step.fit(_NoRows()))
        return arrays

    @property
    def fitted_steps(self) -> dict[str, Preprocessor]:
        """Return the preprocessors that are fitted on training rows, and those that follow on one in its section."""
        fitted: dict[str, Preprocessor] = {}
        for label, step in self.preprocessors.items():
            if step.section in {earlier.section for earlier in fitted.values()} or _needs_rows(step):
                fitted[label] = step
        return fitted


def _needs_rows(step: Preprocessor) -> bool:
    try:
        step.fit(_NoRows())
    except _RowsNeeded:
        return True
    return False


@define(eq=False)
class Joined(Divided):
    """Several sources, each with its own reader, extractor and preprocessors, joined by row.

    The images and labels of MNIST, in files as they are distributed::

        Joined({
            "inputs": JoinedSource(Compressed(File("images.gz")), IdxReader(), None, {"scale": Normalise((0, 255))}),
            "targets": JoinedSource(Compressed(File("labels.gz")), IdxReader(), None, {"classes": OneHot(10)}),
        })

    Raises SigmaDataError if the sources differ in their number of rows, and SigmaConfigError if two have the same
    section. ``sigma predict`` reads another file of inputs like the part that has them.

    Args:
        parts: Sources by name, each with its reader, and extractor and preprocessors if it needs them.
    """

    parts: Mapping[str, JoinedSource] = field(validator=min_len(1))

    @property
    def preprocessors(self) -> dict[str, Preprocessor]:
        """Return the preprocessors of the parts that are fitted on the training rows, by part and name.

        Raises SigmaConfigError for two of the same part and name, joined by an underscore.
        """
        places = [(name, label) for name, part in self.parts.items() for label in part.fitted_steps]
        steps: dict[str, Preprocessor] = {}
        for name, label in places:
            if (key := f"{name}_{label}") in steps:
                both = [f"parts.{part}.preprocessors.{step}" for part, step in places if f"{part}_{step}" == key]
                raise SigmaConfigError(
                    f"Joined: {both[0]} and {both[1]} both have the name {key!r} in the run. Rename one."
                )
            steps[key] = self.parts[name].preprocessors[label]
        return steps

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all rows."""
        sections: dict[str, np.ndarray] = {}
        names: dict[str, str] = {}
        first, rows = "", 0
        for name, part in self.parts.items():
            arrays = part.read(name)
            for section, values in arrays.items():
                if section in sections:
                    raise SigmaConfigError(
                        f"Joined.parts: {names[section]!r} and {name!r} both have a section {section!r}. Rename one."
                    )
                names[section], sections[section] = name, values
                first, rows = (first, rows) if first else (part.source.name, len(values))
                if len(values) != rows:
                    raise SigmaDataError(
                        f"{part.source.name}: section {section!r} has {len(values)} rows; {first} has {rows}. "
                        "Give files of the same samples."
                    )
        return Arrays(**sections), ()

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the samples of another file, read like the inputs; pictures and .npy files as those of any data."""
        if path.is_dir() or path.name.lower().endswith((*ARRAYS, *IMAGES)):
            return super().samples(path, shape, white, learned)
        part = self.parts.get(INPUTS)
        if part is None:
            raise SigmaDataError(f"{path}: there is no part {INPUTS!r} to read it like. Predict from an .npy file.")
        values = part.read(INPUTS, local(path)).get(INPUTS)
        if values is None or values.shape[1:] != tuple(shape):
            held = "nothing" if values is None else f"samples of shape {values.shape[1:]}"
            raise SigmaDataError(f"{path}: holds {held}; the network takes {tuple(shape)}.")
        return values
