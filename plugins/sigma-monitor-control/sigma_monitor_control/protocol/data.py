"""Requests about the data and answers to samples: rows, losses, classes, predictions. Most may have to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.contracts import RowLosses, View
from sigma_kernel.errors import SigmaConfigError, SigmaError, suggest_name
from sigma_monitor_control.protocol.moments import origin
from sigma_monitor_control.protocol.pictures import decode_picture, is_picture, picture
from sigma_monitor_control.protocol.reading import Later, select_trainer
from sigma_monitor_control.protocol.values import numbers, to_json

MOST_ROWS = 200  # in one answer
COUNTED = 20_000  # rows whose classes are counted; of more, evenly spaced ones
PIECE = 1000  # rows that are read at once
TYPICAL = 500  # rows to determine the range of an input
TEXT = "OUST"  # kinds of dtypes


# -- rows --------------------------------------------------------------------------------------------------------------
def edits(view: View, trainer: str | None = None) -> dict[str, Any]:
    """Return the rows that commands have excluded, and the labels that they have changed, by split."""
    return dict(to_json(view.trainer(select_trainer(view, trainer)).edits()))


def rows(view: View, split: str, rows: list[int], trainer: str | None = None) -> Later:
    """Return numbered rows of a split, as they are in the data: pictures, tables or texts, with their labels."""
    if len(rows) > MOST_ROWS:
        raise SigmaConfigError(f"rows: asks for {len(rows)} rows, more than {MOST_ROWS}. Ask for fewer.")
    name = select_trainer(view, trainer)
    check_rows(view, name, split, rows)
    return Later(lambda: [*_rows(view, name, split, rows)])


def check_rows(view: View, trainer: str, split: str, rows: Sequence[int] = ()) -> None:
    """Raise SigmaConfigError for an unknown split or row."""
    splits = view.trainer(trainer).splits()
    if split not in splits:
        raise SigmaConfigError(f"split {split!r:.100}: no such split.{suggest_name(split, splits, 'There is')}")
    for row in rows:
        if not 0 <= row < splits[split]:
            raise SigmaConfigError(f"row {row}: is not in {split!r}, which has rows 0 to {splits[split] - 1}.")


def _rows(view: View, trainer: str, split: str, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
    shapes, edited = sections(view, trainer), view.trainer(trainer).edits().get(split, {})
    ranges = {name: _range(view, trainer, name) for name, shape in shapes.items() if is_picture(shape)}
    arrays, names = view.trainer(trainer).rows(split, rows), RowNames(view, trainer, split)
    for i, row in enumerate(rows):
        values = {name: values[i] for name, values in arrays.items()}
        yield {
            "row": row,
            "excluded": row in edited.get("excluded", ()),
            "label": names.label(row, values),
            "relabelled": row in edited.get("labels", {}),
            **_describe_inputs({name: values[name] for name in shapes if name in values}, ranges),
        }


def _describe_inputs(inputs: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    """Return the inputs of a row: the first picture as ``picture``, texts as ``text``, all else as ``table``."""
    description: dict[str, Any] = {}
    rest = {name: np.asarray(value) for name, value in inputs.items() if name not in ranges}
    if drawable := [name for name in ranges if name in inputs]:
        description["picture"] = picture(np.asarray(inputs[drawable[0]]), *ranges[drawable[0]])
    if texts := [str(value) for value in rest.values() if value.dtype.kind in TEXT]:
        description["text"] = " ".join(texts)
    if table := {name: to_json(value.tolist()) for name, value in rest.items() if value.dtype.kind not in TEXT}:
        description["table"] = table
    return description


class RowNames:
    """The labels of rows, including changed ones: class names, or else values."""

    def __init__(self, view: View, trainer: str, split: str) -> None:
        self.classes = view.trainer(trainer).classes()
        self.inputs = sections(view, trainer)
        self.changed = view.trainer(trainer).edits().get(split, {}).get("labels", {})

    def label(self, row: int, values: Mapping[str, Any]) -> Any:
        """Return the label of a row; None if its data have no targets."""
        if row in self.changed:
            return to_json(self.changed[row])
        targets = [value for name, value in values.items() if name not in (*self.inputs, "weights")]
        return self.class_name(targets[0]) if targets else None

    def class_name(self, target: Any) -> Any:
        """Return the class name of an index, or a value as JSON."""
        value = np.asarray(target)
        if value.size == 1 and value.dtype.kind in "iu" and 0 <= int(value.item()) < len(self.classes):
            return to_json(self.classes[int(value.item())])
        return to_json(value.tolist())


# -- losses ------------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class ComputedLosses:
    """The losses of a split, and the iteration and the edits with which they were computed."""

    at: int
    edited: Any
    losses: RowLosses


_computed: WeakKeyDictionary[Any, dict[tuple[str, str, bool], ComputedLosses]] = WeakKeyDictionary()  # by view


def compute_losses(view: View, trainer: str, split: str, again: bool) -> ComputedLosses:
    """Return the losses of a split, cached for later pages and while nothing has changed; the last of earlier ones."""
    kept, past = _computed.setdefault(origin(view), {}), origin(view) is not view
    record, at = kept.get((trainer, split, past)), iteration(view, trainer)
    edited = to_json(view.trainer(trainer).edits())
    if record is None or record.edited != edited or ((again or past) and record.at != at):
        kept[trainer, split, past] = record = ComputedLosses(at, edited, view.trainer(trainer).losses(split))
    return record


def iteration(view: View, trainer: str) -> int:
    """Return the iteration that a trainer has reached."""
    return next((int(entry.value) for entry in view.entries(f"{trainer}.iteration") if entry.value is not None), 0)


def losses(
    view: View,
    split: str = "training",
    order: str = "worst",
    start: int = 0,
    count: int = 50,
    class_: str | int | None = None,
    predicted: str | int | None = None,
    trainer: str | None = None,
) -> Later:
    """Return rows of a split by their losses, the worst or the best first, with their labels and predictions.

    Only rows of a class, or predicted as one, if given. ``start`` 0 recomputes the losses; later pages keep that order.
    """
    name = select_trainer(view, trainer)
    check_rows(view, name, split)
    if order not in ("worst", "best") or start < 0 or not 0 < count <= MOST_ROWS:
        raise SigmaConfigError(f"losses: 'order' is worst or best, 'start' from 0 on, 'count' 1 to {MOST_ROWS}.")
    return Later(lambda: _by_loss(view, name, split, order, slice(start, start + count), (class_, predicted)))


def _by_loss(view: View, trainer: str, split: str, order: str, part: slice, wanted: Sequence[Any]) -> dict[str, Any]:
    computed = compute_losses(view, trainer, split, again=part.start == 0)
    row_losses, names = computed.losses, RowNames(view, trainer, split)
    kept = np.ones(len(row_losses.rows), bool)
    for values, name in zip((row_losses.targets, row_losses.predicted), wanted, strict=True):
        if name is not None:
            index = _class(names.classes, name)
            kept &= (values == index) if values is not None and values.ndim == 1 else False
    row_losses = _select_rows(row_losses, np.flatnonzero(kept))
    row_losses = row_losses.worst(len(row_losses.rows))
    places = np.arange(len(row_losses.rows))[:: 1 if order == "worst" else -1]
    total, shown = len(places), _select_rows(row_losses, places[part])
    return {"at": computed.at, "total": total, "rows": [*_describe_rows(shown, names)]}


def _select_rows(found: RowLosses, places: np.ndarray) -> RowLosses:
    kept = {name: None if (v := getattr(found, name)) is None else v[places] for name in ("predicted", "targets")}
    return evolve(found, rows=found.rows[places], losses=found.losses[places], **kept)


def _describe_rows(found: RowLosses, names: RowNames) -> Iterator[dict[str, Any]]:
    for i, (row, loss) in enumerate(zip(found.rows.tolist(), found.losses.tolist(), strict=True)):
        label = None if found.targets is None else names.class_name(found.targets[i])
        predicted = None if found.predicted is None else names.class_name(found.predicted[i])
        yield {"row": row, "loss": to_json(loss), "label": label, "predicted": predicted}


def _class(classes: Sequence[Any], name: str | int) -> int:
    """Return the index of a class by its name, or by its number; raise SigmaConfigError if there is none."""
    labels = [str(label) for label in classes]
    if str(name) in labels:
        return labels.index(str(name))
    if isinstance(name, int) and not labels:
        return name
    raise SigmaConfigError(f"class {name!r:.100}: no such class.{suggest_name(str(name), labels, 'There is')}")


def confusion(view: View, split: str = "validation", trainer: str | None = None) -> Later:
    """Return how many rows of each class (down) were predicted as each class (across)."""
    name = select_trainer(view, trainer)
    check_rows(view, name, split)
    return Later(lambda: _confusion(view, name, split))


def _confusion(view: View, trainer: str, split: str) -> dict[str, Any]:
    row_losses = compute_losses(view, trainer, split, again=True).losses
    targets, predicted = row_losses.targets, row_losses.predicted
    if targets is None or predicted is None or targets.ndim != 1 or targets.dtype.kind not in "iu":
        raise SigmaConfigError(f"confusion: {split!r} has no classes. Choose a network that predicts classes.")
    names = view.trainer(trainer).classes()
    size = max([len(names), *(int(values.max(initial=-1)) + 1 for values in (targets, predicted))])
    matrix = np.bincount(targets * size + predicted, minlength=size * size).reshape(size, size)
    classes = to_json(list(names)) if len(names) == size else [*range(size)]
    wrong = int(matrix.sum() - np.trace(matrix))
    return {"classes": classes, "matrix": matrix.tolist(), "rows": len(row_losses.rows), "wrong": wrong}


def balance(view: View, split: str = "training", trainer: str | None = None) -> Later:
    """Return how many rows each class has, after edits; of many rows, evenly spaced ones are counted."""
    name = select_trainer(view, trainer)
    check_rows(view, name, split)
    return Later(lambda: _balance(view, name, split))


def _balance(view: View, trainer: str, split: str) -> dict[str, Any]:
    total, names = view.trainer(trainer).splits()[split], RowNames(view, trainer, split)
    excluded = {*view.trainer(trainer).edits().get(split, {}).get("excluded", ())}
    counted = np.unique(np.linspace(0, total - 1, min(total, COUNTED)).astype(int)).tolist() if total else []
    counts: dict[str, int] = {str(class_): 0 for class_ in names.classes}
    for start in range(0, len(counted), PIECE):
        numbered = [row for row in counted[start : start + PIECE] if row not in excluded]
        arrays = view.trainer(trainer).rows(split, numbered) if numbered else {}
        for i, row in enumerate(numbered):
            label = str(names.label(row, {name: values[i] for name, values in arrays.items()}))
            counts[label] = counts.get(label, 0) + 1
            if len(counts) > MOST_ROWS:
                raise SigmaConfigError(f"balance: {split!r} has no classes: its targets have too many values.")
    about = {"rows": total - len(excluded), "excluded": len(excluded), "counted": len(counted)}
    return {"classes": [*counts], "counts": [*counts.values()], **about}


# -- try it ------------------------------------------------------------------------------------------------------------
def sections(view: View, trainer: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one sample of the sections that a network takes."""
    layers = (layer for layer in view.trainer(trainer).network() if not layer.sources and "section" in layer.settings)
    return {str(layer.settings["section"]): tuple(layer.shape or ()) for layer in layers}


def _range(view: View, trainer: str, section: str) -> tuple[float, float]:
    """Return the least and the greatest finite value of a section, of its first rows; of bytes 0 and 255."""
    values = typical_rows(view, trainer).get(section, np.zeros(0))
    if values.dtype == np.uint8:
        return 0.0, 255.0
    finite = values[np.isfinite(values)] if values.dtype.kind in "biuf" else np.zeros(0)
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def typical_rows(view: View, trainer: str) -> dict[str, np.ndarray]:
    """Return the first rows of the training data, or of another split, by section; nothing if they are not there."""
    try:
        splits = view.trainer(trainer).splits()
    except SigmaError:  # a run that has ended, whose data cannot be read
        splits = {}
    if not splits:
        return {}
    split = "training" if "training" in splits else next(iter(splits))
    return view.trainer(trainer).rows(split, range(min(splits[split], TYPICAL)))


def columns(view: View, trainer: str | None = None) -> dict[str, Any]:
    """Return the names of the columns of each section of inputs that has any."""
    return dict(to_json(view.trainer(select_trainer(view, trainer)).columns()))


def inputs(view: View, trainer: str | None = None) -> Later:
    """Return the inputs of the network, from which a form can be built, and the names of its outputs."""
    name = select_trainer(view, trainer)
    return Later(lambda: _inputs(view, name))


def _inputs(view: View, trainer: str) -> dict[str, Any]:
    arrays = typical_rows(view, trainer)
    shapes = sections(view, trainer)
    descriptions = [_input(view, trainer, section, shape, arrays.get(section)) for section, shape in shapes.items()]
    example = {name: arrays[name][:1] if name in arrays else np.zeros((1, *shape)) for name, shape in shapes.items()}
    return {"inputs": descriptions, "outputs": [*view.trainer(trainer).predict(example)]}


def _input(view: View, trainer: str, section: str, shape: Sequence[int], values: np.ndarray | None) -> dict[str, Any]:
    low, high = _range(view, trainer, section)
    about = {"section": section, "shape": list(shape), "low": low, "high": high}
    if values is not None and values.dtype.kind in TEXT:
        return {**about, "kind": "text"}
    if is_picture(shape):
        return {**about, "kind": "picture"}
    flat = np.zeros((0, prod(shape))) if values is None else values.reshape(len(values), -1).astype(np.float64)
    ends = ({"low": low, "high": high, "middle": middle} for low, middle, high in _ends(flat))
    names = dict(enumerate(view.trainer(trainer).columns().get(section, ())))
    named = [to_json({"name": names.get(i, str(i)), **limits}) for i, limits in enumerate(ends)]
    return {**about, "kind": "table", "columns": named}


def _ends(values: np.ndarray) -> Iterator[list[float]]:
    """Yield the least, the middle and the greatest finite value of each column."""
    for column in values.T:
        finite = column[np.isfinite(column)]
        yield np.quantile(finite, [0.0, 0.5, 1.0]).tolist() if finite.size else [0.0, 0.5, 1.0]


def predict(view: View, inputs: dict[str, Any], trainer: str | None = None) -> Later:
    """Return the prediction for one sample: numbers, nested lists, a picture or a text for each section."""
    name = select_trainer(view, trainer)
    return Later(lambda: _predict_sample(view, name, samples(view, name, inputs)))


def _predict_sample(view: View, trainer: str, sample: Mapping[str, np.ndarray]) -> dict[str, Any]:
    classes, columns = view.trainer(trainer).classes(), view.trainer(trainer).targets()
    return {
        output: {**_describe_prediction(values[0], classes), "columns": columns.get(output, [])}
        for output, values in view.trainer(trainer).predict(sample).items()
    }


def samples(view: View, trainer: str, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return one sample that was sent, as a batch of each section; raise SigmaConfigError if it does not fit."""
    shapes = sections(view, trainer)
    for section in given:
        if section not in shapes:
            raise SigmaConfigError(
                f"inputs: there is no input {section!r:.100}.{suggest_name(section, shapes, 'There is')}"
            )
    ranges = {name: _range(view, trainer, name) for name, value in given.items() if isinstance(value, Mapping)}
    return {name: _sample(value, name, shapes[name], ranges.get(name)) for name, value in given.items()}


def row_of(view: View, trainer: str, split: str, row: int) -> dict[str, np.ndarray]:
    """Return a row of a split as a batch of each section of inputs."""
    arrays = view.trainer(trainer).rows(split, [row])
    return {name: arrays[name] for name in sections(view, trainer) if name in arrays}


def _sample(value: Any, section: str, shape: Sequence[int], ends: tuple[float, float] | None) -> np.ndarray:
    """Return one sample as a batch."""
    if isinstance(value, Mapping) and ends is not None:
        return decode_picture(value, shape, *ends)[None]
    if isinstance(value, str):
        return np.array([value])
    array = numbers(value, section)
    if array.size != np.prod(shape, dtype=int):
        raise SigmaConfigError(f"{section}: must have the shape {tuple(shape)} (got {array.shape}).")
    return array.reshape(1, *shape)


def _describe_prediction(values: np.ndarray, classes: Sequence[Any]) -> dict[str, Any]:
    """Return a prediction, with the class that it chooses and how sure it is, if it chooses among classes."""
    flat = np.asarray(values, np.float64).reshape(-1)
    answer = {"values": to_json(flat.tolist()), "classes": to_json(list(classes)), "chosen": None, "sure": None}
    if len(classes) == 2 and flat.size == 1:
        index = int(flat[0] > 0.5)
        return {**answer, "chosen": to_json(classes[index]), "sure": to_json(float(flat[0] if index else 1 - flat[0]))}
    if flat.size > 1 and flat.size == len(classes):
        return {**answer, "chosen": to_json(classes[int(flat.argmax())]), "sure": to_json(float(flat.max()))}
    return {**answer, "classes": []}


DATA: Mapping[str, Callable[..., Any]] = {
    one.__name__: one for one in (edits, rows, losses, confusion, balance, columns, inputs, predict)
}
