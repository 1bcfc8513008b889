"""Profile a data set in splits by the sections that a network reads: numbers and words as a table, pictures, others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from attrs import evolve

from sigma_data.profiling.kinds import Inferred
from sigma_data.profiling.profile import LARGE, Profile, profile_table
from sigma_kernel import Dataset, Inspection, Label

MOST = 1 << 24  # numbers that are looked at
WIDEST = 1000  # columns of a section that are looked at one by one
SMALLEST = 8  # pixels of a side, from which on an array is a picture
SAMPLES = 8  # pictures of each class
CLASSES = 16  # of which pictures are shown
ASIDE = ("targets", "weights")  # sections that are no inputs
WORDS = "OSUT"  # kinds of dtypes

Sections = Mapping[str, np.ndarray]


def profile_splits(name: str, splits: Mapping[str, Dataset]) -> Inspection:
    """Return the profile of the training rows of a data set, or of the first split; of many rows, of the first ones.

    ``document`` is that of a table, with the ``sections`` as they are read.  It does not count equal rows: sections
    that are no columns, such as pictures, are not compared.
    """
    split = "training" if "training" in splits else next(iter(splits))
    data = splits[split]
    sections = _read_sections(data)
    rows = len(next(iter(sections.values())))
    labels = {section: name_classes(data, section, values) for section, values in sections.items()}
    about = [_describe_section(section, values) for section, values in sections.items()]
    table = import_module("pyarrow").table(dict(_list_columns(data, sections, labels)))
    profile = _mark_classes(profile_table(table, name), labels)
    notes = [] if rows == len(data) else [f"the first {rows:,} of {len(data):,} rows of {split!r} were looked at."]
    head = f"{name}: {len(data):,} rows of {split!r}, {'; '.join(map(_say, about))}"
    cells = [["section", "shape", "type", "range"], *map(_tell, about)]
    document = {**profile.to_json(), "rows": len(data), "sections": about}
    del document["duplicates"]
    return Inspection(head, cells, notes, document, _draw_samples(sections, labels))


def count_classes(splits: Mapping[str, Dataset], section: str = "targets") -> dict[str, Any]:
    """Return the names of the classes of a section, and how many rows of each there are in each split; empty if none.

    Rows of an ignored class, a negative index, are not counted.
    """
    first = next(iter(splits.values()))
    spec = first.sections.get(section)
    if spec is None or spec.shape or np.dtype(spec.dtype).kind not in "iu":
        return {}
    values = {name: np.concatenate([*_read_column(split, section)]) for name, split in splits.items()}
    names = name_classes(first, section, np.concatenate([*values.values()]))
    counts = {
        name: np.bincount(own[own >= 0], minlength=len(names))[: len(names)].tolist() for name, own in values.items()
    }
    return {"section": section, "names": [as_text(label) for label in names], "counts": counts} if names else {}


def name_classes(data: Dataset, section: str, values: np.ndarray) -> list[Label]:
    """Return the labels of a section by index: of whole numbers that are targets, they are these; empty for others."""
    names = [*data.class_names(section)]
    if names or section != "targets" or values.ndim != 1 or values.dtype.kind not in "iu" or not values.size:
        return names
    most = int(values.max())
    return [*range(most + 1)] if 0 <= most < WIDEST else []


def _read_column(split: Dataset, section: str) -> Iterator[np.ndarray]:
    """Yield the values of a section, at once if it is in memory."""
    held = getattr(split, "column", lambda name: None)(section)
    if held is not None:
        yield held
        return
    for number in range(split.blocks):
        yield split.block(number)[section]


def _read_sections(data: Dataset) -> Sections:
    """Return the first rows of all sections, as many as have MOST numbers; those of inputs first."""
    width = sum(int(np.prod(spec.shape)) or 1 for spec in data.sections.values())
    most, parts, rows = max(1, MOST // width), list[Sections](), 0
    for number in range(data.blocks):
        block = data.block(number)
        parts.append({name: values[: most - rows] for name, values in block.items()})
        rows += len(next(iter(parts[-1].values())))
        if rows >= most:
            break
    ordered = sorted(parts[0], key=lambda name: name in ASIDE)
    return {name: np.concatenate([part[name] for part in parts]) for name in ordered}


def _list_columns(data: Dataset, sections: Sections, labels: Mapping[str, list[Label]]) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the sections of numbers, classes or words, by name."""
    taken: set[str] = set()
    for section, values in sections.items():
        for name, column in _split_section(section, values, labels[section], [*data.column_names(section)]):
            unique = name if name not in taken else f"{section}: {name}"
            taken.add(unique)
            yield unique, column


def _split_section(
    section: str, values: np.ndarray, classes: list[Label], names: list[str]
) -> Iterator[tuple[str, Any]]:
    if values.dtype.kind in WORDS:
        if values.ndim == 1:
            yield section, [as_text(value) for value in values]
        return
    if values.ndim == 1 and classes and values.dtype.kind in "iu":
        pa, there = import_module("pyarrow"), (values >= 0) & (values < len(classes))
        codes = pa.array(np.where(there, values, 0), pa.int32(), mask=~there)
        words = pa.array([as_text(label) for label in classes], pa.string())
        yield section, pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())
        return
    flat = values.reshape(len(values), -1) if values.ndim <= 2 else values
    whole = values.dtype.kind in "iu" and values.ndim > 1 and not names  # indices, such as those of words
    if flat.ndim > 2 or flat.shape[1] > WIDEST or whole:
        return
    titles = names if len(names) == flat.shape[1] else [f"{section}[{i}]" for i in range(flat.shape[1])]
    for i, title in enumerate([section] if flat.shape[1] == 1 and not names else titles):
        column = flat[:, i]
        missing = ~np.isfinite(column) if column.dtype.kind == "f" else None
        yield str(title), import_module("pyarrow").array(column, mask=missing)


def _describe_section(name: str, values: np.ndarray) -> dict[str, Any]:
    """Return shape and type of a section, and the range and the number of the finite values, as plain JSON values."""
    about: dict[str, Any] = {"name": name, "shape": [*values.shape[1:]], "type": str(values.dtype)}
    if values.dtype.kind not in "biuf" or not values.size:
        return about
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.reshape(-1)
    if finite.size:
        scale = max(1.0, float(np.abs(finite.astype(np.float64)).max()) / LARGE)
        mean = (finite / scale).mean(dtype=np.float64) * scale
        ends = {"minimum": finite.min(), "mean": mean, "maximum": finite.max()}
        about |= {key: float(value) for key, value in ends.items()}
    return {**about, "missing": int(values.size - finite.size)}


def as_text(value: Any) -> str:
    """Return a label or a word as a text that can be written; lone surrogates are escaped."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _mark_classes(profile: Profile, labels: Mapping[str, list[Label]]) -> Profile:
    """Return a profile whose columns of classes are categories, whatever their labels look like."""
    columns = [
        evolve(column, inferred=Inferred("category", f"{len(names):,} classes"))
        if (names := labels.get(column.name))
        else column
        for column in profile.columns
    ]
    return evolve(profile, columns=tuple(columns))


def _say(about: Mapping[str, Any]) -> str:
    return f"{about['name']}{' ' * bool(about['shape'])}{' x '.join(map(str, about['shape']))} of {about['type']}"


def _tell(about: Mapping[str, Any]) -> list[str]:
    ends = f"{about['minimum']:g} … {about['maximum']:g}" if "minimum" in about else ""
    return [about["name"], " x ".join(map(str, about["shape"])), about["type"], ends]


def _draw_samples(sections: Sections, labels: Mapping[str, list[Label]]) -> dict[str, np.ndarray]:
    """Return some pictures of each class, or of all rows, evenly spaced: (pictures, 3, height, width), uint8."""
    pictures = next((values for values in sections.values() if _is_picture(values)), None)
    if pictures is None:
        return {}
    targets, names = sections.get("targets"), labels.get("targets", [])[:CLASSES]
    groups = {"": np.arange(len(pictures))}
    if targets is not None and targets.ndim == 1 and targets.dtype.kind in "iu" and names:
        groups = {str(name): np.flatnonzero(targets == i) for i, name in enumerate(names)}
    low, high = float(np.nanmin(pictures)), float(np.nanmax(pictures))
    low, high = (0.0, 255.0) if pictures.dtype == np.uint8 else (low, high)
    spaced = {name: rows[:: -(-len(rows) // SAMPLES)] for name, rows in groups.items() if len(rows)}
    return {name: _to_bytes(pictures[rows], low, high) for name, rows in spaced.items()}


def _is_picture(values: np.ndarray) -> bool:
    *channels, height, width = values.shape[1:] if values.ndim > 2 else (0, 0)
    return values.dtype.kind in "biuf" and [*channels] in ([], [1], [3]) and min(height, width) >= SMALLEST


def _to_bytes(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return pictures with three channels, black at ``low`` and white at ``high``."""
    scaled = (np.nan_to_num(values.astype(np.float64), nan=low) - low) * (255.0 / (high - low) if high > low else 0.0)
    pixels = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels
    return np.broadcast_to(pixels, (len(pixels), 3, *pixels.shape[2:])).copy()
