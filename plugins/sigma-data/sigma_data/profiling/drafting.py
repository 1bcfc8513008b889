"""Draft a configuration that trains on a table as it is: encoders of its columns, a network, and an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2

from attrs import field, frozen

from sigma_data.profiling.kinds import describe_infinite, list_names, shorten
from sigma_data.profiling.profile import ColumnProfile, Profile
from sigma_kernel import SigmaDataError
from sigma_kernel.errors import suggest_name

CLASSES = 12  # distinct whole numbers, from 0 or 1 on without a gap, that are taken for classes
FEWEST = 6  # rows of a class that can be divided
SHOWN = 5  # notes on columns
WIDTHS = ((300, 16), (2_000, 32), (20_000, 64), (200_000, 128))  # of hidden layers below so many rows
WIDEST = 256
SHARES = "split = { training = 0.7, validation = 0.15, test = 0.15 }"


@frozen
class PredictionTask:
    """What is to be predicted: ``classes``, how many, 0 for numbers; the reason, and what is unsure about it."""

    target: str
    classes: int
    reason: str
    unsure: str = ""


@frozen
class TableDraft:
    """What a draft is made of: where the table is, its profile, the task, and what is known about columns.

    ``leaks`` are columns that give the target away, with the reason; ``groups`` those that may name groups of rows.
    """

    place: str
    name: str
    profile: Profile
    task: PredictionTask
    leaks: Mapping[str, str] = field(factory=dict)
    groups: Sequence[ColumnProfile] = ()
    settings: Mapping[str, str] = field(factory=dict)  # of the format, as TOML
    dataset: str = "table"
    key: str = "path"  # the setting of the place
    has_splits: bool = False

    @property
    def rows(self) -> int:
        """Return the number of rows with a target."""
        return self.profile.rows - self.profile[self.task.target].missing

    @property
    def text(self) -> str:
        """Return the configuration."""
        return "\n".join([*self._head(), *self._data(), *self._columns(), *self._network(), *self._training(), ""])

    @property
    def notes(self) -> list[str]:
        """Return what a user should look at, one sentence each, with the line to change."""
        task, profile = self.task, self.profile
        notes = [task.unsure] if task.unsure else []
        notes += [f"column {name!r} was left out: {reason}." for name, reason in self.leaks.items()]
        notes += [
            f"column {column.name!r} may name groups of rows, {column.distinct:,} in all; to keep the rows of each in "
            f"one split, write group = {quote(column.name)} below [data]."
            for column in self.groups
        ]
        unsure = [c for c in profile.columns if c.inferred.unsure and c.name != task.target]
        notes += [f"column {column.name!r}: {column.inferred.unsure}." for column in unsure[:SHOWN]]
        if len(unsure) > SHOWN:
            notes.append(f"{len(unsure) - SHOWN} columns more are unsure: `sigma data show` says why.")
        if profile.duplicates:
            notes.append(f"{count_rows(profile.duplicates)} equal to an earlier one, which may be in another split.")
        return notes

    # -- parts of the text ---------------------------------------------------------------------------------------------
    def _head(self) -> Iterator[str]:
        yield f"# {self.profile.name}: {self.profile.rows:,} rows, {len(self.profile.columns):,} columns."
        yield from ("", "format = 1", "", "[run]", f"name = {quote(self.name)}", "seed = 0", "")

    def _data(self) -> Iterator[str]:
        task = self.task
        yield from ("[data]", f"dataset = {quote(self.dataset)}", f"{self.key} = {quote(self.place)}")
        yield from (f"{name} = {value}" for name, value in self.settings.items())
        yield f"target = {quote(task.target)}".ljust(32) + f"# {task.reason}"
        yield f'targets = "{"classes" if task.classes else "numbers"}"'
        if missing := self.profile[task.target].missing:
            yield 'missing_targets = "drop"'.ljust(32) + f"# {missing:,} rows have none"
        if not self.has_splits:
            yield SHARES
            if task.classes and self._smallest_class >= FEWEST:
                yield 'split_by = "stratified"'
        yield f"batch_size = {choose_batch_size(self.rows)}"
        yield ""

    def _columns(self) -> Iterator[str]:
        yield "[data.columns]                  # how each becomes numbers; those that are excluded are not read"
        for column in self.profile.columns:
            if column.name != self.task.target:
                yield f"{_key(column.name)} = {self._encoder(column)}".ljust(31) + f" # {self._reason(column)}"
        yield ""

    def _encoder(self, column: ColumnProfile) -> str:
        encoder = None if column.name in self.leaks else column.encoder
        if encoder is None:
            return '"exclude"'
        if len(encoder) == 1:
            return quote(encoder["type"])
        return f"{{ {', '.join(f'{name} = {_value(value)}' for name, value in encoder.items())} }}"

    def _reason(self, column: ColumnProfile) -> str:
        reason = self.leaks.get(column.name, column.inferred.reason)
        return shorten(reason + (f"; {column.missing:,} missing" if column.missing else ""), 100)

    def _network(self) -> Iterator[str]:
        width = choose_width(self.rows)
        cost = "softmax_cross_entropy()" if self.task.classes else "squared_difference()"
        if not self.task.classes:
            yield from ("[data.preprocessors.target]     # predictions are in the units of the column all the same",)
            yield from ('type = "standardise"', 'section = "targets"', "")
        yield from (f"[network]                       # of a size for {self.rows:,} rows", 'architecture = """')
        yield f'input() + dense({width}, activation="relu") + dropout(0.2) + dense({width}, activation="relu")'
        yield from (f"+ output() + {cost}", '"""', "")

    def _training(self) -> Iterator[str]:
        score = "accuracy" if self.task.classes else "r_squared"
        yield from (
            "[trainer]",
            'optimiser = { type = "adamw", learning_rate = 0.003 }',
            f"epochs = {self._epochs}",
            "",
        )
        yield from ("[hooks.score]", f'type = "{score}"', 'on = "validation"')
        if not self.task.classes:
            yield 'metrics = { error = "mean_absolute_error" }'
        yield from ('every = "1 epoch"', "", "[hooks.finish]                  # the best parameters are restored")
        yield from ('type = "early_stop"', 'value = "validation.loss"', "patience = 20", "restore = true")

    @property
    def _smallest_class(self) -> int:
        """Return the rows of the smallest class; 0 if not all classes were counted."""
        counts = self.profile[self.task.target].counts
        return min((rows for _, rows in counts), default=0) if len(counts) == self.task.classes else 0

    @property
    def _epochs(self) -> int:
        return max(20, min(300, 2_000_000 // max(1, self.rows)))


def choose_task(profile: Profile, target: str) -> PredictionTask:
    """Return what to predict; raise SigmaDataError for a column that is not there, or cannot be predicted."""
    names = [column.name for column in profile.columns]
    if target not in names:
        hint = suggest_name(target, names) or f" There are: {list_names(names)}."
        raise SigmaDataError(f"{profile.name}: there is no column {target!r} to predict.{hint}")
    column = profile[target]
    kind, distinct = column.kind, column.distinct
    if column.inferred.infinite:
        problem = f"column {target!r} cannot be predicted: {describe_infinite(column.inferred.infinite)}"
        raise SigmaDataError(f"{profile.name}: {problem}. Correct the values, or leave the rows out.")
    if kind in ("category", "boolean"):
        return PredictionTask(target, distinct, f"{distinct} classes: {shorten(column.content, 60)}")
    if column.figures:
        low, high = column.figures["minimum"], column.figures["maximum"]
        if low in (0, 1) and high - low + 1 == distinct and 1 < distinct <= CLASSES:
            return PredictionTask(
                target, distinct, f"{distinct} whole numbers, taken for classes",
                f"column {target!r} holds {distinct} whole numbers, which are taken for classes. To predict a number, "
                'write targets = "numbers" and squared_difference().',
            )  # fmt: skip
        return PredictionTask(target, 0, f"numbers, {column.content}")
    remedy = "Choose another column as the target."
    raise SigmaDataError(f"{profile.name}: column {target!r} cannot be predicted: {column.inferred.reason}. {remedy}")


def choose_width(rows: int) -> int:
    """Return the width of hidden layers for a number of rows."""
    return next((width for limit, width in WIDTHS if rows < limit), WIDEST)


def choose_batch_size(rows: int) -> int:
    """Return a power of 2, of about a thirtieth of the rows, from 8 to 512."""
    return max(8, min(512, 1 << int(log2(max(2, rows / 30)))))


def count_rows(rows: int) -> str:
    """Return a number of rows as the subject of a sentence: ``1 row is``, ``2 rows are``."""
    return f"{rows:,} {'row is' if rows == 1 else 'rows are'}"


def quote(text: str) -> str:
    """Return a text as a string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def _value(value: str | int | bool) -> str:
    return quote(value) if isinstance(value, str) else str(value).lower()


def _key(name: str) -> str:
    return name if name.replace("_", "a").replace("-", "a").isalnum() and name.isascii() else quote(name)
