"""Columns by name: of data frames of any library, and of mappings of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from sigma_data.labels import EXACT, list_first
from sigma_kernel import SigmaConfigError, SigmaDataError, as_numpy

Place = Callable[[int], str]  # the name of a row in an error message
WORDS = np.dtypes.StringDType()
MISSING = ("NAType", "NaTType")  # types of missing values, which cannot be compared


def columns_of(frame: Any, where: str = "frame") -> dict[str, Any]:
    """Return the columns of a frame by name, as its library has them.

    A frame is one of pandas, polars or pyarrow, or any other object with ``columns`` whose columns convert to arrays.
    Raises SigmaDataError for names that occur twice, and for other objects.
    """
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect") and not hasattr(frame, "__array__"):
        raise SigmaDataError(f"{where}: a {type(frame).__name__} has not been read. Call its collect().")
    if not is_frame(frame):
        raise SigmaDataError(f"{where}: must be a data frame, or columns by name (got {type(frame).__name__}).")
    names = list(frame.column_names if hasattr(type(frame), "column_names") else frame.columns)
    spelled = [str(name) for name in names]
    if twice := next((name for name in spelled if spelled.count(name) > 1), None):
        raise SigmaDataError(f"{where}: has two columns {twice!r}. Rename one of them.")
    return {str(name): frame[name] for name in names}


def is_frame(values: Any) -> bool:
    """Return whether values are a data frame, of whatever library: an object with named columns."""
    return hasattr(type(values), "columns")


def named_columns(given: Any, there: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the names of one column or several, given by name or by number.

    A number is the name of a numbered column, as frames made from arrays have; where names are words, it counts columns
    from 0, or from the end if it is negative.  Raises SigmaConfigError for anything else.
    """
    if isinstance(given, str | Integral):
        return (_column_name(given, [*there], where),)
    if not isinstance(given, Sequence) or not all(isinstance(column, str | Integral) for column in given):
        raise SigmaConfigError(f"{where}: must be the name of a column, or several (got {given!r}).")
    return tuple(_column_name(column, [*there], where) for column in given)


def _column_name(column: str | Integral, names: Sequence[str], where: str) -> str:
    if isinstance(column, str) or str(column) in names:
        return str(column)
    if any(name.isdecimal() for name in names) or not -len(names) <= int(column) < len(names):
        raise SigmaDataError(
            f"{where}: there is no column {column}; it has {list_first([*names])}. Choose one of these."
        )
    return names[int(column)]


def order_of(column: Any) -> list[Any]:
    """Return the categories of a column in their order, for an ordered categorical type; empty for any other."""
    kind: Any = getattr(column, "dtype", getattr(column, "type", None))
    if type(kind).__name__ == "Enum" or (getattr(kind, "ordered", False) and hasattr(kind, "categories")):
        return list(kind.categories)  # of polars, of pandas
    if getattr(kind, "ordered", False) and hasattr(kind, "index_type"):  # of pyarrow
        return [*dict.fromkeys(x for part in getattr(column, "chunks", [column]) for x in part.dictionary.to_pylist())]
    return []


def is_categorical(column: Any) -> bool:
    """Return whether a column of a frame has a categorical type."""
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    return kind.startswith(("categor", "enum", "dictionary"))


def cells(column: Any, where: str) -> np.ndarray:
    """Return a column as numbers, NaN if missing, or as words, blank if missing.

    Booleans count as 0 and 1.  Raises SigmaDataError for other types, and for a mixture of words and numbers.
    """
    array = tight(as_numpy(column))
    if array.ndim != 1:
        raise SigmaDataError(f"{where}: has shape {array.shape}; a column has one value per row. Make several columns.")
    if array.dtype.kind in "fiu" and array.dtype.itemsize <= 8:
        return array
    if array.dtype.kind == "b":
        return array.astype(np.float32)
    if array.dtype.kind in "TU":
        return _to_words(array, where)
    if array.dtype.kind != "O":
        raise SigmaDataError(f"{where}: holds {array.dtype}. Make numbers of it, such as days, or leave it out.")
    return _of_objects(array.tolist(), where)


def tight(array: np.ndarray) -> np.ndarray:
    """Return an array of objects that are all booleans, or all integers, as an array of these; others unchanged."""
    same = array.dtype.kind == "O" and {*map(type, array.flat)} in ({bool}, {int})
    return np.asarray(array.tolist()) if same else array


def _of_objects(values: list[Any], where: str) -> np.ndarray:
    gaps = [is_missing(value) for value in values]
    kinds = [None if gap else _kind(value) for gap, value in zip(gaps, values, strict=True)]
    places = {kind: kinds.index(kind) for kind in kinds if kind is not None}
    if len(places) > 1:
        (kind, first), (other, second) = [*places.items()][:2]
        shown = f"row {first} holds {_format_name(values[first])}, row {second} {_format_name(values[second])}"
        raise SigmaDataError(f"{where}: mixes {kind} and {other}: {shown}. Make them alike.")
    if "words" in places:
        return _to_words(["" if gap else value for gap, value in zip(gaps, values, strict=True)], where)
    if places.keys() <= {"numbers"}:
        return np.array([np.nan if gap else _float(values[i], f"{where}: row {i}") for i, gap in enumerate(gaps)])
    ((kind, first),) = places.items()
    if True in gaps:
        raise SigmaDataError(f"{where}: row {gaps.index(True)} is missing. Fill it in, or leave it out.")
    raise SigmaDataError(f"{where}: row {first} holds a {kind}. Use numbers or words.")


def _to_words(values: Any, where: str) -> np.ndarray:
    """Return words as an array; raise SigmaDataError for the first word with a lone surrogate."""
    try:
        return np.array(values, WORDS)
    except (UnicodeEncodeError, TypeError):  # of objects, and of an array of words
        wrong = next(i for i, value in enumerate(values) if value.encode("utf-8", "ignore").decode() != value)
        raise SigmaDataError(
            f"{where}: row {wrong} holds {str(values[wrong])!a}, which is no valid text. Correct it, such as by "
            "text.encode('utf-8', 'replace').decode()."
        ) from None


def check_texts(columns: Mapping[str, Any], where: str) -> None:
    """Raise SigmaDataError for the first word in columns, or the first of their names, that is no valid text."""
    for name, column in columns.items():
        if name.encode("utf-8", "ignore").decode() != name:
            raise SigmaDataError(f"{where}: the name of column {name!a} is no valid text. Rename it.")
        array = as_numpy(column)
        if array.dtype.kind in "OU":
            words = [value if isinstance(value, str) else "" for value in array.tolist()]
            _to_words(words, f"{where}: column {name!r}")


def _float(value: Any, where: str) -> float:
    if isinstance(value, Integral) and abs(int(value)) > EXACT:
        shown = value if abs(int(value)) < 10**40 else "an integer of more than 40 digits"
        raise SigmaDataError(
            f"{where} holds {shown}, and floats cannot tell integers beyond 2**53 apart. Give such numbers as "
            "floats, or as words if they are names."
        )
    try:
        return float(value)
    except (ValueError, OverflowError) as error:  # of a Decimal or a Fraction
        raise SigmaDataError(
            f"{where} holds {_format_name(value)}: {error}. Give numbers that floats can hold."
        ) from None


def _format_name(value: Any) -> str:
    return repr(str(value) if isinstance(value, str) else value)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "words"
    return "numbers" if isinstance(value, Real) or type(value).__name__ == "Decimal" else type(value).__name__


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing: None, NaN, or what pandas has for it."""
    return value is None or type(value).__name__ in MISSING or (isinstance(value, float) and value != value)


def as_categories(column: np.ndarray) -> np.ndarray:
    """Return numbers as the words that name them, blank if missing; words are unchanged."""
    if column.dtype.kind == "T":
        return column
    return np.array(["" if x != x else str(int(x)) if x == int(x) else str(x) for x in column.tolist()], WORDS)


def check_names(
    there: Mapping[str, Any], wanted: Sequence[str], others: Sequence[str], where: str, remedy: str = ""
) -> None:
    """Raise SigmaDataError for columns that are missing, and for those that are neither ``wanted`` nor ``others``."""
    if missing := [name for name in wanted if name not in there]:
        raise SigmaDataError(
            f"{where}: there is no column {list_first(missing)}; it has {list_first([*there])}. Add it."
        )
    expected = {*wanted, *others}
    if more := [name for name in there if name not in expected]:
        remedy = remedy or f"Leave it out: frame.drop(columns={more!r}), or select those."
        raise SigmaDataError(
            f"{where}: the network was not trained on column {list_first(more)}, but on {list_first(wanted)}. {remedy}"
        )
