"""Read what to predict from, part by part: tables of any size, pictures, arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Label
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.network import Network

ELEMENTS = 1 << 22  # numbers of samples that are held at once
ROWS = 1 << 16  # rows that are held at once, beside which columns are kept


class Predictor(Protocol):
    """A trained network, as tables of predictions need it."""

    shapes: Mapping[str, tuple[int, ...]]
    network: Network
    checkpoint: Checkpoint

    @property
    def batch_size(self) -> int:
        """Return the rows that are computed at a time."""

    @property
    def extractors(self) -> Mapping[str, Any]:
        """Return what reads tables, by section; none if it was not trained on named columns."""

    @property
    def dataset(self) -> Any:
        """Return the data of the training."""

    @property
    def predicted_columns(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the columns that outputs predict, classes and numbers."""

    def names(self, output: str) -> Sequence[Label]:
        """Return the labels of the classes of an output."""

    def read(self, path: Path, white: float | None = None) -> np.ndarray:
        """Return the samples of a file."""

    def predict(self, samples: Any) -> Any:
        """Return the predictions for samples."""


@frozen(eq=False)
class InputPart:
    """Consecutive rows: the samples by section, the columns that name them, and how many values were replaced."""

    sections: Mapping[str, np.ndarray]
    columns: Mapping[str, Any]
    replaced: Mapping[str, tuple[int, int]] = field(factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.sections.values())))


def read_parts(
    model: Predictor, place: Any, keep: Sequence[str] = (), white: float | None = None
) -> Iterator[InputPart]:
    """Yield the rows of a file, a folder or a frame, a bounded number at a time.

    Parts have whole batches, so that predictions do not depend on where they end.  Raises SigmaDataError for what does
    not fit the network.
    """
    path = Path(place) if isinstance(place, str | Path) else None
    if path is not None and _is_read_whole(path, model):
        if keep:
            raise SigmaConfigError(f"--keep {keep[0]}: {path} has no columns with names. Leave it out.")
        yield from _read_samples(model, path, white)
        return
    if path is None and {*model.extractors} < {*model.shapes}:
        raise SigmaConfigError("predict: the network was not trained on columns with names. Use predict(array).")
    first, *others = (model.extractors[name] for name in model.shapes)
    rows = _rows_at_once(model)
    for part in first.stream(others, place, rows, keep=first.kept, wanted=keep, form=_form_of(model)):
        kept = part.kept
        columns = {name: kept[name] for name in kept.column_names}
        yield InputPart(part.sections, columns, part.replaced)


def _is_read_whole(path: Path, model: Predictor) -> bool:
    """Return whether a file or folder holds no named columns: by its name, or since the data set reads it."""
    claims: Callable[[Path], bool] = getattr(model.dataset, "claims", lambda path: False)
    return {*model.extractors} < {*model.shapes} or path.suffix.lower() == ".npy" or claims(path)


def _form_of(model: Predictor) -> Mapping[str, Any]:
    form = getattr(model.dataset, "format", None)
    return form if isinstance(form, Mapping) else {}


def _rows_at_once(model: Predictor) -> int:
    """Return the rows of a part: as many whole batches as may be held, at least one."""
    size = max(1, sum(int(np.prod(shape)) for shape in model.shapes.values()))
    return model.batch_size * max(1, min(ROWS, ELEMENTS // size) // model.batch_size)


def _read_samples(model: Predictor, path: Path, white: float | None) -> Iterator[InputPart]:
    """Yield the pictures of a folder with their files, or the samples of a file with their numbers."""
    if len(model.shapes) != 1:
        raise SigmaConfigError(
            f"{path}: the network reads several sections: {', '.join(model.shapes)}. This file holds one: use "
            "sigma_ml.load(RUN).predict({section: array}) in Python."
        )
    (section,) = model.shapes
    rows, listed = _rows_at_once(model), list_files(model, path)
    for begin in range(0, len(listed) if path.is_dir() else 0, rows):
        some = listed[begin : begin + rows]
        yield InputPart(
            {section: np.concatenate([model.read(file, white) for file in some])}, {"file": [*map(str, some)]}
        )
    if listed and path.is_dir():
        return
    samples = model.read(path, white)
    members = {"file": [*map(str, listed)]} if listed else {}
    numbers: dict[str, Any] = {"row": np.arange(len(samples))}
    alone = {"file": [str(path)]} if len(samples) == 1 and path.suffix.lower() not in (".npy", ".csv") else {}
    identity = members or identify_samples(model, path) or alone or numbers
    for begin in range(0, len(samples), rows):
        names = {name: values[begin : begin + rows] for name, values in identity.items()}
        yield InputPart({section: samples[begin : begin + rows]}, names)


def list_files(model: Predictor, path: Path) -> Sequence[Path]:
    """Return the files of a folder or an archive that hold a sample each; none for a file, or for other folders."""
    files = getattr(model.dataset, "files", None)
    archives = getattr(model.dataset, "archives", (".zip",))
    return files(path) if files is not None and (path.is_dir() or path.name.lower().endswith(archives)) else ()


def identify_samples(model: Predictor, path: Path) -> Mapping[str, Sequence[Any]]:
    """Return what identifies the samples of a file, such as times, by column; nothing if they are its rows."""
    own = getattr(model.dataset, "identify", None)
    return {} if own is None else dict(own(path, model.checkpoint.values.get("learned", {})))


def describe_replaced(replaced: Mapping[str, tuple[int, int]]) -> str:
    """Return a sentence about the values that encoders replaced; empty if there were none."""
    missing = [f"{count:,} in {name!r}" for name, (count, _) in replaced.items() if count]
    unseen = [f"{count:,} in {name!r}" for name, (_, count) in replaced.items() if count]
    parts = [f"{what} ({', '.join(names[:8])}{', ...' if len(names) > 8 else ''})" for what, names in
             (("missing values", missing), ("categories that no training row has", unseen)) if names]  # fmt: skip
    return f"replaced as in the training: {'; '.join(parts)}." if parts else ""


def add_replaced(
    total: Mapping[str, tuple[int, int]], more: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the sums of two counts of replaced values."""
    missing, unseen = (
        Counter({name: counts[i] for name, counts in total.items()})
        + Counter({name: counts[i] for name, counts in more.items()})
        for i in (0, 1)
    )
    return {name: (missing[name], unseen[name]) for name in {**total, **more}}
