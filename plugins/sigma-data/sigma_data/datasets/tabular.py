"""Your own table, of any format, as a data set: columns with kinds, each with an encoder."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_data.arrays import Arrays, NamedTargets, Titled
from sigma_data.datasets.in_blocks import InBlocks
from sigma_data.datasets.splits import Divided, Loaded
from sigma_data.encoded import EncodedColumn, EncodedColumns, EncoderMaker, Place, join, read_encoded
from sigma_data.extractors.columns import as_tuple
from sigma_data.frames import check_names
from sigma_data.labels import Codes, Labels
from sigma_data.prepared.blocks import is_mapped
from sigma_data.prepared.opening import open_prepared
from sigma_data.profiling.encoders import choose_for
from sigma_data.profiling.inspectors import inspect_table
from sigma_data.profiling.kinds import infer_kind
from sigma_data.readers.csv import place as find_column
from sigma_data.splitting import split
from sigma_data.subset import Subset
from sigma_data.tables import InMemory, as_place, name_place, open_alike, open_table
from sigma_kernel import Dataset, Encoder, Inspection, Label, SigmaConfigError, SigmaDataError, Source
from sigma_kernel.settings import in_

WORDS = np.dtypes.StringDType()
OTHERS = ("inputs", "weights")  # sections that hold no targets

Target = str | int | tuple[str | int, ...]


@frozen
class Roles:
    """The names of a table's columns by what they are for, those to predict by section; empty if there is none."""

    by_section: Mapping[str, tuple[str, ...]]
    inputs: tuple[str, ...]
    weights: str = ""
    group: str = ""
    time: str = ""
    excluded: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the columns to predict."""
        return tuple(dict.fromkeys(name for names in self.by_section.values() for name in names))

    @property
    def side_columns(self) -> tuple[str, ...]:
        """Return the columns that are targets, or weights, group and time of the rows, each once."""
        return tuple(dict.fromkeys((*self.targets, *filter(None, (self.weights, self.group, self.time)))))

    @property
    def read(self) -> tuple[str, ...]:
        """Return the columns to read, each once."""
        return tuple(dict.fromkeys((*self.inputs, *self.side_columns)))


@frozen(eq=False)
class EncodedRows(Titled):
    """A section of encoded columns, with the ``rows`` of the table that it was encoded from, and their places.

    ``roles`` are those of the table's columns.
    """

    rows: Any = None
    place: Place = "row {}".format
    roles: Roles = Roles({}, ())

    def align(self, table: Any, names: Sequence[str]) -> Titled:
        """Return the same rows, encoded by the columns of the training."""
        if not isinstance(table, EncodedColumns) or not isinstance(self.table, EncodedColumns):
            return super().align(table, names)
        if table.to_plain() == self.table.to_plain():
            return self
        check_names(dict.fromkeys(self.rows.column_names), table.names, self.rows.column_names, self.where)
        return evolve(self, array=table.apply(self.rows, self.place), names=table.titles, table=table)


@define(eq=False)
class Tabular(Divided, InBlocks):
    """A table with one row per sample: CSV, Parquet, Feather, JSON lines, ORC, a folder of these, or a query.

    Every column has a kind, inferred from its cells: numbers, booleans, categories and dates become inputs, each by an
    encoder that is fitted on the training rows; sentences, identifiers and constants are left out. ``columns`` gives a
    column another encoder, or excludes it. ``sigma data show`` prints the kinds, with their reasons.

    A table of more than 1 GiB of numbers is encoded once, and read in blocks.

    Args:
        path: Path of the file or the folder; in a configuration, a relative one starts in its directory. Or a source,
            such as ``{ type = "fsspec", address = "s3://bucket/houses.parquet" }``; from Python, also a frame, or
            anything that Arrow reads.
        target: Column to predict; or several, which hold numbers; or, by the name of a section, such as
            ``{ price = "price", state = "state" }``, columns of several kinds, one cost each.
        columns: Encoder by column, or ``"exclude"``; other columns get one that suits their kind.
        exclude: Columns to leave out.
        weights: Column of sample weights.
        group: Column that names the group of a row; rows of a group stay in one split.
        time: Column by which the rows are sorted, oldest first; ``split_by = "block"`` then trains on the oldest.
        targets: What the target holds: classes, numbers, or what the cost takes.
        missing_targets: What rows without a target do: raise an error, or are dropped.
        format: Settings of the file's format, such as ``{ delimiter = ";", decimal = "," }``; see ``open_table``.
    """

    path: Path | Source | InMemory = field(converter=as_place, repr=lambda place: repr(name_place(place)))
    target: Target | Mapping[str, Target]
    columns: Mapping[str, Encoder | Literal["exclude"]] = field(factory=dict, kw_only=True)
    exclude: str | int | tuple[str | int, ...] = field(default=(), kw_only=True)
    weights: str | int | None = field(default=None, kw_only=True)
    group: str | int | None = field(default=None, kw_only=True)
    time: str | int | None = field(default=None, kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    missing_targets: Literal["refuse", "drop"] = field(
        default="refuse", validator=in_(("refuse", "drop")), kw_only=True
    )
    format: Mapping[str, Any] = field(factory=dict, kw_only=True)
    _maker: EncoderMaker = field(factory=EncoderMaker, init=False, repr=False)
    _groups: tuple[Hashable, ...] | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError without a target, and for a section of targets that holds something else."""
        targets = self._targets
        if not targets or not all(as_tuple(columns) for columns in targets.values()):
            raise SigmaConfigError("Tabular.target: there is none. Name the column to predict.")
        if wrong := [section for section in targets if section in OTHERS]:
            raise SigmaConfigError(f"Tabular.target: {wrong[0]!r} is no section of targets. Choose another name.")

    @property
    def _targets(self) -> Mapping[str, Target]:
        """Return the columns to predict by section."""
        return self.target if isinstance(self.target, Mapping) else {"targets": self.target}

    @property
    def learned(self) -> dict[str, Any]:
        """Return the columns with what their encoders learned, to predict with."""
        return getattr(self._load_once()[0]["training"], "learned", {})

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the inputs of another table with the same columns, in any order, and in any format."""
        columns = read_encoded(self.learned if learned is None else learned, "inputs", str(path))
        source = open_alike(path, self.format)
        check_names(dict.fromkeys(source.schema.names), columns.names, source.schema.names, source.name)
        return columns.apply(source.read(columns.names), source.place)

    def profile(self) -> Inspection:
        """Return what the table holds, as ``sigma data show`` prints it."""
        return inspect_table(open_table(self.path, **self.format), name_place(self.path))

    def load(self) -> Loaded:
        """Return the splits, and the labels of the classes."""
        parts, whole = self._read_parts()
        return parts, self._name_classes(whole)

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return the rows of all splits, encoded, in the order of the table or of time."""
        _, whole = self._read_parts()
        every = (
            self.layout.cut(Subset(whole, np.arange(len(whole)), self._groups))
            if any(map(is_mapped, whole.arrays.values()))
            else whole
        )
        return every, self._name_classes(whole)

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row, if there are groups."""
        return self._groups

    def _name_classes(self, whole: Arrays) -> tuple[Label, ...]:
        """Return the labels of the first section of classes; empty if there is none."""
        return tuple(next(filter(None, map(whole.class_names, self._targets)), ()))

    def read_excluded(self) -> Any:
        """Return the columns that are left out, of the rows with a target in their order, as a table of Arrow."""
        source = open_table(self.path, **self.format)
        roles = self._roles(source.schema.names, source.name)
        aside = filter(None, (roles.weights, roles.group, roles.time))
        names = dict.fromkeys((*roles.excluded, *roles.targets, *aside))
        return self._select_rows(source.read([*names]), roles, source)[0].select([*roles.excluded])

    def _read_parts(self) -> tuple[Mapping[str, Dataset], Arrays]:
        """Return the splits, and all rows; encoders are fitted on those of the training."""
        if files := self.find_files():
            return self._read_blocks(open_prepared(self, files))
        source = open_table(self.path, **self.format)
        roles = self._roles(source.schema.names, source.name)
        table, numbers = self._select_rows(source.read(roles.read), roles, source)
        place: Place = lambda row: source.place(int(numbers[row]))  # noqa: E731
        targets, parts, goals = self._divide(table, roles, place, source.name)
        training = parts["training"].rows_of_dataset
        sections: dict[str, Any] = {
            section: self._read(columns, table, place, training, roles)
            for section, columns in self._fit(table, roles, training, goals, place).items()
        }
        whole = self._join(sections, table, roles, place, targets)
        return {name: part.with_dataset(whole) for name, part in parts.items()}, whole

    def _read_blocks(self, prepared: Any) -> tuple[Mapping[str, Dataset], Arrays]:
        """Return the splits, and all rows, of a table that is not in memory."""
        preparing: Any = import_module("sigma_data.prepared.preparing")  # now, as it imports Arrow
        roles = self._roles(prepared.names, prepared.name)
        aside = prepared.read_aside(roles.side_columns)
        table, numbers = self._select_rows(aside, roles, prepared)
        complete = len(numbers) == aside.num_rows and not roles.time
        place: Place = prepared.place if complete else lambda row: prepared.place(int(numbers[row]))
        targets, parts, goals = self._divide(table, roles, place, prepared.name)
        training = parts["training"].rows_of_dataset
        selection = preparing.Selection(
            aside.num_rows, None if complete else numbers, training, as_single(goals, training), place
        )
        whole = self._join(
            prepared.encode(
                selection,
                lambda rows: self._arrange(
                    roles, preparing.fit_columns(rows, roles.inputs, selection, self._choose_encoder)
                ),
            ),
            table, roles, place, targets,
        )  # fmt: skip
        return {name: self.layout.cut(part.with_dataset(whole)) for name, part in parts.items()}, whole

    def _divide(
        self, table: Any, roles: Roles, place: Place, where: str
    ) -> tuple[dict[str, NamedTargets], dict[str, Subset], np.ndarray]:
        """Return the sections of targets, the rows of each split, and what encoders learn from."""
        targets = {
            section: NamedTargets(read_targets(table, names, self.targets, place, where), names)
            for section, names in roles.by_section.items()
        }
        goals = Arrays(targets=next(iter(targets.values())))
        self._groups = tuple(table[roles.group].to_pylist()) if roles.group else None
        parts = split(goals, self.split, self.split_by, self.seed, groups=self._groups, fold=self.fold)
        return targets, parts, goals.block(0)["targets"]

    def _join(
        self, sections: Mapping[str, Titled], table: Any, roles: Roles, place: Place, targets: Mapping[str, Any]
    ) -> Arrays:
        """Return all sections; raise SigmaConfigError for one that is both of inputs and of targets."""
        weights = {"weights": read_numbers(table, roles.weights, place)} if roles.weights else {}
        if twice := next((section for section in targets if section in {**sections, **weights}), None):
            raise SigmaConfigError(f"Tabular.target: section {twice!r} is one of inputs, too. Choose another name.")
        return Arrays(**sections, **weights, **targets)

    def _roles(self, names: Sequence[str], where: str) -> Roles:
        """Return the names of the columns by what they are for; raise SigmaDataError for those that are not there."""

        def name_all(given: Any) -> tuple[str, ...]:
            return tuple(
                names[find_column(column, names, where)] for column in as_tuple(() if given is None else given)
            )

        by_section = {section: name_all(columns) for section, columns in self._targets.items()}
        targets, gone = tuple(name for columns in by_section.values() for name in columns), name_all(self.exclude)
        aside = {role: (name_all(getattr(self, role)) or ("",))[0] for role in ("weights", "group", "time")}
        for column in self.columns:
            find_column(column, names, where)
        gone = (*gone, *(name for name, encoder in self.columns.items() if encoder == "exclude"))
        for name in {*self.columns} & {*targets, aside["weights"]}:
            raise SigmaConfigError(f"Tabular.columns: {name!r} is no input. Leave it out of `columns`.")
        others = {*targets, *gone, aside["weights"], aside["group"]}
        inputs = tuple(name for name in names if name not in others)
        return Roles(by_section, inputs, **aside, excluded=tuple(dict.fromkeys(gone)))

    def _select_rows(self, table: Any, roles: Roles, source: Any) -> tuple[Any, np.ndarray]:
        """Return the rows with a target, in the order of time if there is one, and their numbers in the table."""
        if not table.num_rows:
            raise SigmaDataError(f"{source.name}: there is no row. Check the path.")
        there = np.ones(table.num_rows, bool)
        for name in (*roles.targets, *filter(None, (roles.weights, roles.group, roles.time))):
            there &= np.asarray(table[name].is_valid())
        if self.missing_targets == "refuse" and not there.all():
            first = source.place(int(np.flatnonzero(~there)[0]))
            lost = f"in {len(there) - there.sum():,} of {len(there):,} rows"
            raise SigmaDataError(
                f"{first}: the target, the weight, the group or the time is missing, {lost}. Fill it in, or set "
                "missing_targets = 'drop'."
            )
        if not there.any():
            raise SigmaDataError(f"{source.name}: no row has a target. Check the column.")
        if not roles.time:
            return (table if there.all() else table.filter(there)), np.flatnonzero(there)
        order = np.asarray(compute().sort_indices(table.filter(there), sort_keys=[(roles.time, "ascending")]))
        numbers = np.flatnonzero(there)[order]
        return table.take(numbers), numbers

    def _choose_encoder(self, name: str, column: Any) -> tuple[Encoder | None, bool]:
        """Return the encoder of a column, None if it is left out, and whether the column names the rows."""
        encoder: Any = self.columns.get(name)
        names_rows = False
        if encoder is None:
            inferred = infer_kind(name, column, is_reason_read=False)
            encoder, names_rows = choose_for(inferred, column), inferred.kind == "identifier"
        return self._maker.make(encoder) if isinstance(encoder, str | Mapping) else encoder, names_rows

    def _arrange(self, roles: Roles, chosen: Mapping[str, tuple[EncodedColumn | None, bool]]) -> dict[str, Any]:
        """Return the columns of each section, those of inputs with the names of columns that name the rows."""
        by_section: dict[str, list[EncodedColumn]] = {}
        for column, _ in chosen.values():
            if column is not None:
                by_section.setdefault(column.encoder.section, []).append(column)
        if "inputs" not in by_section:
            raise SigmaDataError(
                f"{name_place(self.path)}: no column can be an input. Name an encoder for one in `columns`."
            )
        named = [name for name, (_, names_rows) in chosen.items() if names_rows]
        kept = dict.fromkeys((*roles.excluded, *filter(None, (roles.group, roles.time)), *named))
        return {
            section: EncodedColumns(tuple(columns), section=section, kept=(*kept,) if section == "inputs" else ())
            for section, columns in by_section.items()
        }

    def _fit(
        self, table: Any, roles: Roles, training: np.ndarray, goals: np.ndarray, place: Place
    ) -> dict[str, EncodedColumns]:
        """Return the columns of each section, their encoders fitted on the training rows."""
        encoders = {name: self._choose_encoder(name, table[name]) for name in roles.inputs}
        arranged = self._arrange(
            roles,
            {
                name: (None if encoder is None else EncodedColumn(name, encoder), names_rows)
                for name, (encoder, names_rows) in encoders.items()
            },
        )
        rows = None if np.array_equal(training, np.arange(table.num_rows)) else training
        single = as_single(goals, training)
        return {
            section: columns.fit(table, single, lambda row: place(int(training[row])), rows)
            for section, columns in arranged.items()
        }

    def _read(
        self, columns: EncodedColumns, table: Any, place: Place, training: np.ndarray, roles: Roles
    ) -> EncodedRows:
        values, where = columns.apply(table, place, training), name_place(self.path)
        return EncodedRows(values, columns.titles, columns, where, rows=table, place=place, roles=roles)


def as_single(goals: np.ndarray, training: np.ndarray) -> np.ndarray | None:
    """Return what encoders learn from: one number or class for each training row; None if there are several."""
    held = goals[training].reshape(len(training), -1)
    return held[:, 0] if held.shape[1] == 1 else None


def read_targets(table: Any, names: Sequence[str], targets: str, place: Place, where: str) -> np.ndarray | Labels:
    """Return the columns to predict: numbers, (rows, columns), or labels for classes in a single column."""
    if len(names) > 1 or targets == "numbers":
        return np.stack([read_numbers(table, name, place, len(names) > 1) for name in names], axis=1)
    column, types = join(table[names[0]]), arrow().types
    if types.is_boolean(column.type):
        values = np.asarray(column)
        return Labels(Codes(values, f"{where}: the target", place), values.astype(np.float64)[:, None])
    if types.is_string(column.type) or types.is_large_string(column.type) or types.is_dictionary(column.type):
        words = np.array(column.cast("string").to_pylist(), WORDS)
        return Labels.from_codes(Codes(words, f"{where}: the target", place))
    numbers = read_numbers(table, names[0], place)
    whole = np.asarray(column) if types.is_integer(column.type) else numbers
    codes = Codes(whole.astype(np.int64) if np.array_equal(whole, np.rint(whole)) else whole, where, place)
    if targets == "classes":
        return Labels.from_codes(codes, numbers=True)
    return Labels(codes, numbers[:, None]) if codes.values.dtype.kind == "i" else numbers[:, None]


def read_numbers(table: Any, name: str, place: Place, several: bool = False) -> np.ndarray:
    """Return a column without gaps as float64; raise SigmaDataError for what is not a finite number.

    The remedy is that for one of ``several`` targets.
    """
    try:
        values: np.ndarray = import_module("sigma_data.encoders.columns").read_numbers(join(table[name]))
    except SigmaDataError as error:
        remedy = f" Targets of several kinds have a section each: target = {{ {name} = {name!r}, ... }}."
        text = f"{place(error.row or 0)}: column {name!r}: {error.args[0]}"
        raise SigmaDataError(text + (remedy if several else "")) from error
    return values


def arrow() -> Any:
    """Return the module of Arrow, which is imported on first use."""
    return import_module("pyarrow")


def compute() -> Any:
    """Return Arrow's module of computations."""
    return import_module("pyarrow.compute")
