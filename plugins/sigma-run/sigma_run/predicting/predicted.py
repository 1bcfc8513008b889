"""Predict for tables of any size: as tables of Arrow, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_run.predicting.columns import PredictionColumns
from sigma_run.predicting.reading import InputPart, Predictor, add_replaced, describe_replaced, read_parts
from sigma_run.predicting.writing import NAMED, drop_unwritable, new_table
from sigma_training.optional import optional


@frozen(eq=False)
class PredictedTable:
    """Predictions as a table: the columns that name a row, then those that were predicted.

    Args:
        table: The table, of Arrow.
        replaced: Number of missing and of unseen values that encoders replaced, by column.
    """

    table: Any = field(repr=False)
    replaced: Mapping[str, tuple[int, int]] = field(factory=dict)

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return [*map(str, self.table.column_names)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise KeyError(column)
        return np.asarray(self.table[column].to_numpy())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow, which frames of any library take."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Return the table of Arrow."""
        return self.table

    def to_pandas(self) -> Any:
        """Return a data frame of pandas."""
        return self.table.to_pandas()

    def save(self, path: Path | str, force: bool = False) -> Path:
        """Write a .csv, .parquet or .jsonl file; raise SigmaConfigError if it exists, unless with ``force``."""
        with new_table(Path(path), force) as write:
            write(self.table)
        return Path(path)


@frozen
class SavedPredictions:
    """How many rows were written, and how many missing and unseen values replaced, by column."""

    rows: int
    replaced: Mapping[str, tuple[int, int]]

    @property
    def note(self) -> str:
        """Return a sentence about the replaced values; empty if there are none."""
        return describe_replaced(self.replaced)


def predict_table(model: Predictor, place: Any, keep: Sequence[str] = (), white: float | None = None) -> PredictedTable:
    """Return the predictions for a file, a folder or a frame."""
    tables, replaced = list[Any](), dict[str, tuple[int, int]]()
    for part, table in _predict_parts(model, place, keep, white):
        tables, replaced = [*tables, table], add_replaced(replaced, part.replaced)
    if not tables:
        raise SigmaConfigError(f"predict: there is no row in {place!r:.60}. Check it.")
    return PredictedTable(optional(NAMED, "pyarrow").concat_tables(tables), replaced)


def save_predictions(
    model: Predictor,
    places: Sequence[Path],
    path: Path,
    keep: Sequence[str] = (),
    white: float | None = None,
    force: bool = False,
) -> SavedPredictions:
    """Write the predictions for files and folders to one file, part by part, in bounded memory.

    Those of several are named in a column ``input``.
    """
    rows, replaced, schema = 0, dict[str, tuple[int, int]](), None
    with new_table(path, force) as write:
        for place in places:
            for part, table in _predict_parts(model, place, keep, white):
                table = drop_unwritable(table, path, keep)
                ordered = _order_columns(table if len(places) == 1 else _name_input(table, place), schema, place)
                schema = ordered.schema
                write(ordered)
                rows, replaced = rows + len(part), add_replaced(replaced, part.replaced)
        if not rows:
            raise SigmaConfigError(f"{places[0]}: there is no row. Check the path.")
    return SavedPredictions(rows, replaced)


def _predict_parts(
    model: Predictor, place: Any, keep: Sequence[str], white: float | None
) -> Iterator[tuple[InputPart, Any]]:
    """Yield the parts of an input, each with its table."""
    arrow = optional(NAMED, "pyarrow")
    names = {output.name: model.names(output.name) for output in model.network.outputs}
    columns, first = PredictionColumns(model.network, names, model.predicted_columns), 0
    for part in read_parts(model, place, keep, white):
        predicted = model.predict(part.sections)
        outputs = predicted if isinstance(predicted, dict) else {model.network.outputs[0].name: predicted}
        answers = columns.cut(outputs)
        if twice := next((name for name in part.columns if name in answers), None):
            raise SigmaConfigError(f"predict: {twice!r} is the name of a prediction, too. Rename this column.")
        kept = part.columns or {"row": np.arange(first, first + len(part))}
        first += len(part)
        yield part, arrow.table({**kept, **{name: _to_arrow(values) for name, values in answers.items()}})


def _order_columns(table: Any, schema: Any, place: Path) -> Any:
    """Return a table with its columns in the order of a schema; raise SigmaConfigError for other ones."""
    if schema is None or table.schema.equals(schema):
        return table
    if others := sorted({*table.column_names} ^ {*schema.names}):
        raise SigmaConfigError(f"{place}: the inputs before differ in column {others[0]!r}. Predict from it alone.")
    for wanted in schema:
        if (held := table.schema.field(wanted.name).type) != wanted.type:
            raise SigmaConfigError(
                f"{place}: column {wanted.name!r} holds {held}, but {wanted.type} in the inputs before. Give both one "
                "type, or predict from it alone."
            )
    return table.select(schema.names)


def _to_arrow(values: np.ndarray) -> Any:
    """Return a column as an array of Arrow."""
    return optional(NAMED, "pyarrow").array(np.ascontiguousarray(values))


def _name_input(table: Any, place: Path) -> Any:
    return table if "input" in table.column_names else table.add_column(0, "input", [[str(place)] * len(table)])
