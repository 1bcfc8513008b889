"""Columns of a table: in batches of equal size, as numbers and categories, with errors that name the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sigma_data.encoders.lookups import CategoryTable, tabulate_categories
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import is_finite, must

ROWS = 1 << 16  # in a batch for statistics
MANY = 1 << 12  # categories of which a table is kept
FIX = "Correct it, or leave the row out."
EMPTY = "no row has a value. Leave the column out."


def rebatch(parts: Iterable[Any], join: Callable[[list[Any]], Any]) -> Iterator[Any]:
    """Yield the rows of all parts in batches of ROWS, so that sums over batches do not depend on the parts."""
    held: list[Any] = []
    rows = 0
    for part in parts:
        rest = part
        while rows + len(rest) >= ROWS:
            cut = ROWS - rows
            yield join([*held, rest[:cut]]) if held else rest[:cut]
            rest, held, rows = rest[cut:], [], 0
        held, rows = [*held, rest], rows + len(rest)
    if rows:
        yield join(held)


def read_batches(columns: Iterable[Any], read: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield what ``read`` makes of a column, batch by batch; an error counts its row over all of them."""
    first = 0
    for column in rebatch(map(decode, columns), pa.concat_arrays):
        try:
            yield read(column)
        except SigmaDataError as error:
            if error.row is None:
                raise
            raise SigmaDataError(*error.args, row=first + error.row) from None
        first += len(column)


def decode(column: Any) -> Any:
    """Return a column of a dictionary as one of its values; others are unchanged."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def refuse(wrong: np.ndarray, column: Any, problem: str) -> None:
    """Raise SigmaDataError for the first row that is wrong; ``problem`` is a format of its value."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise SigmaDataError(problem.format(repr(column[row].as_py())[:60]), row=row)


def refuse_missing(missing: np.ndarray, column: Any, remedy: str) -> None:
    """Raise SigmaDataError for the first row without a value."""
    refuse(missing, column, f"there is no value. Enter one, {remedy}.")


def is_missing(column: Any) -> np.ndarray:
    """Return which rows are null or NaN."""
    return np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False), bool)


def cast(column: Any, wanted: Any, problem: str) -> Any:
    """Return a column as another type of Arrow; raise SigmaDataError for the first value that has none there."""
    try:
        return pc.cast(column, wanted)
    except pa.ArrowException:
        refuse(np.arange(len(column)) == _find_failure(column, wanted), column, problem)
        raise


def _find_failure(column: Any, wanted: Any) -> int:
    """Return the first row that cannot be cast, of a column that cannot."""
    first, rows = 0, len(column)
    while rows > 1:
        half = rows // 2
        try:
            pc.cast(column[first : first + half], wanted)
        except pa.ArrowException:
            rows = half
        else:
            first, rows = first + half, rows - half
    return first


def read_numbers(column: Any, remedy: str = FIX) -> np.ndarray:
    """Return a column as float64, NaN where there is no value; raise SigmaDataError for words and infinite numbers."""
    return read_with_gaps(column, remedy)[0]


def read_reals(column: Any) -> np.ndarray:
    """Return a column as float64, NaN where there is no value; raise SigmaDataError for words."""
    column = decode(column)
    if column.type != pa.float64():
        column = cast(column, pa.float64(), f"{{}} is not a number that float64 holds. {FIX}")
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def read_with_gaps(column: Any, remedy: str = FIX) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what :func:`read_numbers` does, and which rows have no value; None if all have one."""
    values = read_reals(column)
    finite = np.isfinite(values)
    if finite.all():
        return values, None
    missing = np.isnan(values)
    refuse(~(finite | missing), column, f"{{}} is not finite. {remedy}")
    return values, missing


# -- categories --------------------------------------------------------------------------------------------------------
def read_categories(column: Any) -> Any:
    """Return a column as one of strings, int64, float64 or bool, of which JSON holds the values; NaN is null.

    Integers of 64 bits without a sign become their text, as int64 does not hold all of them.
    """
    column = decode(column)
    if pa.types.is_uint64(column.type):
        return pc.cast(column, pa.string())
    if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return pc.cast(column, pa.int64())
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
        return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    if pa.types.is_boolean(column.type):
        return column
    return cast(column, pa.string(), f"{{}} is not a category. {FIX}")


def count_categories(columns: Iterable[Any]) -> tuple[Any, np.ndarray, int]:
    """Return the categories of a column in order, an Arrow array, their numbers of rows, and that of missing values."""
    held: list[tuple[Any, np.ndarray]] = []
    rows = 0
    for column in columns:
        held.append(_count(column, np.ones(len(column), np.int64)))
        rows += len(column)
        if sum(len(counts) for _, counts in held) > 2 * ROWS + len(held[0][1]):
            held = [_merge(held)]
    if not held:
        return pa.array([], pa.string()), np.zeros(0, np.int64), 0
    values, counts = _merge(held)
    order = pc.sort_indices(values)
    counts = counts[order.to_numpy()]
    return values.take(order), counts, rows - int(counts.sum())


def _merge(held: Sequence[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    return _count(pa.concat_arrays([values for values, _ in held]), np.concatenate([counts for _, counts in held]))


def _count(values: Any, counts: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the distinct values that are not null, and the sums of their counts."""
    there = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), bool)
    codes = pc.dictionary_encode(values.filter(pa.array(there)))
    sums = np.zeros(len(codes.dictionary), np.int64)
    np.add.at(sums, codes.indices.to_numpy(), counts[there])
    return codes.dictionary, sums


def place_categories(column: Any, categories: Any) -> np.ndarray:
    """Return the place of each value among the categories, int64, -1 where it is none of them or null.

    ``categories`` are an Arrow array, or a list, of which a table is kept if they are many: it must not be changed.
    Numbers are compared as numbers and, with words, by their text.
    """
    values, options = read_categories(column), categories
    if not isinstance(categories, pa.Array):
        table = tabulate_categories(categories) if len(categories) >= MANY else CategoryTable(pa.array(categories))
        if len(categories) >= MANY and (places := table.place_few(values)) is not None:
            return places
        options = table.options
    if not len(options):
        return np.full(len(values), -1)
    kinds = (values.type, options.type)
    if kinds[0] != kinds[1]:
        common = pa.string() if pa.string() in kinds else pa.float64()
        values, options = (pc.cast(part, common, safe=False) for part in (values, options))
    places = pc.index_in(values, value_set=options, skip_nulls=True)
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), np.int64)


def refuse_unseen(places: np.ndarray, missing: np.ndarray, column: Any, categories: Sequence[Any], remedy: str) -> None:
    """Raise SigmaDataError for the first unknown category."""
    first = ", ".join(map(repr, categories[:5])) + (", ..." if len(categories) > 5 else "")
    words = first.replace("{", "{{").replace("}", "}}")
    refuse(
        (places < 0) & ~missing,
        column,
        f"{{}} is not one of the {len(categories)} categories of the training rows: {words}. {remedy}",
    )


def fill_rule(*words: str) -> Any:
    """Return the validator of a setting that is one of these words or a finite number."""
    return must(
        lambda value: value in words if isinstance(value, str) else is_finite(value),
        f"{', '.join(map(repr, words))} or a finite number",
    )


def are_distinct(values: Sequence[Any]) -> bool:
    """Return whether no value is there twice."""
    return len({*values}) == len(values)
