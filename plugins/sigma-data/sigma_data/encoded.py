"""Columns of a table with an encoder each: fitted on training rows, then applied to any rows with these columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import Any

import attrs
import numpy as np
from attrs import define, evolve, field, frozen

from sigma_data.frames import check_names
from sigma_data.streaming import RowsToPredict, stream_rows
from sigma_data.threads import map_in_threads
from sigma_kernel import Encoder, Extractor, SigmaConfigError, SigmaDataError, catalogue
from sigma_kernel.errors import expect, introduce_errors
from sigma_kernel.settings import SHAPE, optional

TOGETHER = 1024  # rows whose columns are joined at once
MANY = 1 << 16  # rows from which on threads fit a column each
LARGE = 1 << 10  # values of a state from which on all rows of a column are encoded at once: each call looks at all
BATCH = 1 << 14  # rows that are encoded at once; their numbers fit into a cache, and memory is used again
OWN = "python"  # in place of the name of a component, for a class of one's own code

Place = Callable[[int], str]  # where a row is, for errors


@frozen(eq=False)
class EncodedColumn:
    """A column of a table.

    Args:
        name: Name of the column.
        encoder: Encoder of its values.
        state: What the encoder learned from the training rows.
    """

    name: str
    encoder: Encoder
    state: Mapping[str, Any] = field(factory=dict)

    def fit(
        self, table: Any, targets: np.ndarray | None, place: Place, training: np.ndarray | None = None
    ) -> EncodedColumn:
        """Return the column with its encoder fitted on rows of a table of Arrow, by default on all."""
        column = table[self.name] if training is None else table[self.name].take(training)
        with self._locate_errors(place):
            state = self.encoder.fit([join(column)], None if targets is None else [targets])
        return evolve(self, state=state)

    def apply(self, table: Any, place: Place) -> np.ndarray:
        """Return the numbers of the column, (rows, width)."""
        column = join(table[self.name])
        with self._locate_errors(place):
            values = self.encoder.apply(column, self.state)
            expect(values.ndim == 2 and len(values) == len(column), "apply() must return a row for each", values)
        return values

    def apply_training(
        self, table: Any, place: Place, training: np.ndarray, numbers: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the numbers of rows that the encoder was fitted on, in their order.

        If these are some of the training rows, ``numbers`` are their numbers among all.
        """
        column = join(table[self.name].take(training))
        with self._locate_errors(lambda row: place(int(training[row]))):
            return self.encoder.apply_training(
                column, self.state, np.arange(len(training)) if numbers is None else numbers
            )

    @contextmanager
    def _locate_errors(self, place: Place) -> Iterator[None]:
        """Add the column, and the place of a row, to the errors of the encoder."""
        try:
            with introduce_errors(f"column {self.name!r}", self.encoder):
                yield
        except SigmaDataError as error:
            where = "" if error.row is None else f"{place(error.row)}: "
            raise SigmaDataError(f"{where}column {self.name!r}: {error.args[0]}") from error

    def count_replaced(self, column: Any) -> tuple[int, int]:
        """Return how many values are missing, and how many are categories that no training row has."""
        columns = import_module("sigma_data.encoders.columns")
        missing = columns.is_missing(columns.decode(join(column)))
        seen = [*self.state.get("categories", ()), *(rare if isinstance(rare := self.state.get("rare"), list) else ())]
        if not seen:
            return int(missing.sum()), 0
        return int(missing.sum()), int(((columns.place_categories(join(column), seen) < 0) & ~missing).sum())

    def count_learned(self) -> int:
        """Return the number of values in the longest list that the encoder learned, such as that of categories."""
        return max((len(values) for values in self.state.values() if isinstance(values, list)), default=0)

    @property
    def titles(self) -> tuple[str, ...]:
        """Return a name for each number."""
        return self.encoder.names(self.name, self.state)

    def to_plain(self, described: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return name, encoder, which may be ``described`` already, and state as plain values."""
        encoder = describe_encoder(self.encoder) if described is None else {**described}
        return {"name": self.name, "encoder": encoder, "state": {**self.state}}


@frozen(eq=False)
class EncodedColumns(Extractor):
    """Columns of a table, by name and in this order, as one ``section``: each as its encoder encodes it.

    Other columns of the table are ignored.

    Args:
        columns: The columns, each with its encoder, in the order of a sample's elements.
        shape: Shape of a sample; by default a vector.
        section: Section to extract.
        kept: Columns that name a row, which are kept beside its predictions.
    """

    columns: tuple[EncodedColumn, ...]
    shape: tuple[int, ...] | None = field(default=None, validator=optional(SHAPE))
    section: str = "inputs"
    kept: tuple[str, ...] = ()

    def fit(
        self, table: Any, targets: np.ndarray | None, place: Place, training: np.ndarray | None = None
    ) -> EncodedColumns:
        """Return the same columns, fitted on rows of a table of Arrow, by default on all, with their targets."""
        act, many = map_in_threads if table.num_rows >= MANY else map, self.columns
        return evolve(self, columns=tuple(act(lambda column: column.fit(table, targets, place, training), many)))

    def extract(self, records: Any) -> dict[str, np.ndarray]:
        """Return the section; raise SigmaDataError for columns and values that do not fit."""
        table = import_module("sigma_data.tables").open_table(records)  # now, as it imports Arrow
        return {self.section: self.apply(table.read(), table.place)}

    def apply(
        self, table: Any, place: Place, training: np.ndarray | None = None, numbers: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the section of a table of Arrow; ``training`` are the rows that encoders were fitted on, in order.

        If these are some of the training rows, ``numbers`` are their numbers among all.
        """
        check_names(dict.fromkeys(table.column_names), self.names, table.column_names, "table")
        whole = self._apply_in_batches(table, place)
        if training is not None:
            self._replace_training(whole, table, place, training, numbers)
        return whole if self.shape is None else whole.reshape(len(whole), *self.shape)

    def _apply_in_batches(self, table: Any, place: Place) -> np.ndarray:
        """Return the numbers of all columns, (rows, width); threads compute a batch of rows each, if there are many."""
        ready = [column.apply(table, place) if column.count_learned() > LARGE else None for column in self.columns]

        def apply(rows: slice) -> list[np.ndarray]:
            batch = table.slice(rows.start, rows.stop - rows.start)
            return [
                column.apply(batch, lambda row: place(rows.start + row)) if values is None else values[rows]
                for column, values in zip(self.columns, ready, strict=True)
            ]

        first, *others = cut_batches(table)
        parts = apply(first)
        if len(parts) == 1 and not others:
            return parts[0]
        whole = np.empty((table.num_rows, sum(part.shape[1] for part in parts)), np.result_type(*parts))
        join_columns(parts, whole[first])
        wider = {*map_in_threads(partial(_write, apply, whole), others)} - {whole.dtype}
        if wider:  # numbers of later rows do not fit: all are computed again
            whole = np.empty(whole.shape, np.result_type(whole, *wider))
            map_in_threads(partial(_write, apply, whole), [first, *others])
        return whole

    def _replace_training(
        self, whole: np.ndarray, table: Any, place: Place, training: np.ndarray, numbers: np.ndarray | None
    ) -> None:
        """Write the numbers of the training rows, of columns where they differ from those of other rows."""
        first = 0
        for column in self.columns:
            beyond = first + len(column.titles)
            if type(column.encoder).apply_training is not Encoder.apply_training:
                whole[training, first:beyond] = column.apply_training(table, place, training, numbers)
            first = beyond

    def stream(self, others: Sequence[Any], place: Any, rows: int, **how: Any) -> Iterator[RowsToPredict]:
        """Yield a table in parts, with the sections of other extractors; see :func:`stream_rows`."""
        return stream_rows([self, *others], place, rows, **how)

    def count_replaced(self, table: Any) -> dict[str, tuple[int, int]]:
        """Return how many values of each column are missing, and how many unseen."""
        return {column.name: column.count_replaced(table[column.name]) for column in self.columns}

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the columns that are read."""
        return self.names

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def elements(self) -> tuple[str, ...]:
        """Return a name for each number of a sample."""
        return tuple(title for column in self.columns for title in column.titles)

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the names of the elements; empty unless a sample is a vector."""
        return self.elements if self.shape is None else ()

    def to_plain(self) -> dict[str, Any]:
        """Return the settings as a table of plain values."""
        shape = {} if self.shape is None else {"shape": [*self.shape]}
        encoders = {id(column.encoder): column.encoder for column in self.columns}
        described = {key: describe_encoder(encoder) for key, encoder in encoders.items()}  # many columns share one
        columns = [column.to_plain(described[id(column.encoder)]) for column in self.columns]
        kept = {"kept": [*self.kept]} if self.kept else {}
        return {"type": "sigma-data:encoded", "columns": columns, **shape, "section": self.section, **kept}


def read_encoded(learned: Mapping[str, Any], section: str, where: str) -> EncodedColumns:
    """Return the columns of a section that a run saved; raise SigmaDataError if they are damaged."""
    try:
        table = learned["frames"][section]
        make = EncoderMaker().make
        columns = [
            EncodedColumn(column["name"], make(column["encoder"]), column["state"]) for column in table["columns"]
        ]
        return EncodedColumns(tuple(columns), table.get("shape"), section, tuple(table.get("kept", ())))
    except (AttributeError, KeyError, TypeError, SigmaConfigError) as error:
        raise SigmaDataError(
            f"{where}: the columns of the training are damaged in the checkpoint: it holds "
            f"{learned.get('frames')!r:.60}. Use another checkpoint, or train again."
        ) from error


def make_encoder(given: str | Mapping[str, Any]) -> Encoder:
    """Return the encoder of a name, or of a table as :func:`describe_encoder` returns it."""
    table = {"type": given} if isinstance(given, str) else given
    settings = {name: value for name, value in table.items() if name not in ("type", OWN)}
    kind, name = (OWN, table[OWN]) if OWN in table else ("encoder", table["type"])
    encoder: Any = catalogue().load(kind, name)
    return encoder(**settings)  # type: ignore[no-any-return]


@define(eq=False)
class EncoderMaker:
    """Make encoders from names and tables, one for all columns with equal ones, as these may be thousands."""

    _encoders: dict[str, Encoder] = field(factory=dict, init=False)

    def make(self, given: str | Mapping[str, Any]) -> Encoder:
        """Return the encoder of a name, or of a table as :func:`describe_encoder` returns it."""
        key = json.dumps(given, sort_keys=True, default=repr)
        if key not in self._encoders:
            self._encoders[key] = make_encoder(given)
        return self._encoders[key]


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Return an encoder as a table: its name, or the path of its own class, and settings that are not defaults."""
    cls: Any = type(encoder)
    path = f"{cls.__module__}:{cls.__qualname__}"
    record = next((record for record in catalogue().components("encoder") if record.path == path), None)
    name = {OWN: path} if record is None else {"type": record.full_name}
    settings = {f.alias: getattr(encoder, f.name) for f in attrs.fields(cls) if f.init}
    changed = {f.alias for f in attrs.fields(cls) if f.init and settings[f.alias] != f.default}
    plain = {name: _to_plain(value) for name, value in settings.items()}
    return {**name, **{alias: plain[alias] for alias in plain if alias in changed}}


def _to_plain(value: Any) -> Any:
    """Return a setting as JSON holds it."""
    return [*value] if isinstance(value, tuple) else str(value) if isinstance(value, PurePath) else value


def cut_batches(table: Any) -> list[slice]:
    """Return the rows of batches, which end where chunks of the columns do, if these are neither small nor large."""
    ends = np.cumsum([len(chunk) for chunk in table.column(0).chunks] if table.num_columns else [])
    batches, first = list[slice](), 0
    while first < table.num_rows or not batches:
        last = min(first + BATCH, table.num_rows)
        within = ends[(ends <= last) & (ends > first + BATCH // 2)]
        batches.append(slice(first, int(within[-1]) if len(within) else last))
        first = batches[-1].stop
    return batches


def _write(apply: Callable[[slice], list[np.ndarray]], whole: np.ndarray, rows: slice) -> np.dtype[Any]:
    """Write the columns of a batch of rows, if their type fits; return the type that fits them."""
    parts = apply(rows)
    fitting = np.result_type(whole, *parts)
    if fitting == whole.dtype:
        join_columns(parts, whole[rows])
    return fitting


def join_columns(parts: Sequence[np.ndarray], whole: np.ndarray) -> None:
    """Write arrays of (rows, width) side by side; as many rows at once as a processor's cache holds."""
    for first in range(0, len(whole), TOGETHER):
        np.concatenate([part[first : first + TOGETHER] for part in parts], axis=1, out=whole[first : first + TOGETHER])


def join(column: Any) -> Any:
    """Return a column of Arrow in one piece, without a copy if it is one."""
    if not hasattr(column, "combine_chunks"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
