"""The data of a trainer: one resident block, an order of rows, and a cursor.

A burst runs on one block.  Minibatches are cut from the block's rows in an order that is a function of the seed, the
epoch and the block alone; what is left at the end of a block is a smaller batch, or is dropped.  While a burst runs,
the next block is already being read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Dataset, Order, Preprocessor
from sigma_kernel.errors import SigmaDataError, near
from sigma_kernel.graph.node import FLOATS, Spec
from sigma_kernel.graph.random import permutation

Host = dict[str, np.ndarray]
MANY = 2048  # rows whose order is drawn ahead


@frozen
class Shuffled(Order):
    """Every row once in each epoch, in an order drawn from the seed."""

    def order(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return the permutation of one epoch and block."""
        return permutation(seed, block, epoch, rows)


@frozen
class Cursor:
    """Where training stands in its data: the epoch, the block in it, and the first row not yet used."""

    epoch: int = 0
    block: int = 0
    row: int = 0


@frozen
class Batches:
    """Minibatches of equal size from one block: ``rows`` has shape ``(n, batch)``."""

    block: Mapping[str, Any]
    rows: np.ndarray


@frozen
class Preparation:
    """What is done to every block before it is used: preprocessors, then the trainer's dtypes."""

    precision: str
    preprocessors: Mapping[str, Preprocessor] = field(factory=dict)
    fitted: Mapping[str, Host] = field(factory=dict)

    def fit(self, dataset: Dataset) -> Preparation:
        """Return this preparation with every preprocessor fitted, each on what those before it leave."""
        fitted: dict[str, Host] = {}
        for name, step in self.preprocessors.items():
            if step.section not in dataset.sections:
                raise SigmaDataError(f"preprocessor {name!r}: the data has no section {step.section!r}.")
            before = [(self.preprocessors[n], state) for n, state in fitted.items()]
            left = Left(dataset, step.section, [one for one in before if one[0].section == step.section])
            fitted[name] = step.fit(left)
            if not all(map(_finite, fitted[name].values())):
                left.check_finite()  # else every row would be blamed
        return evolve(self, fitted=fitted)

    def __call__(self, block: Mapping[str, np.ndarray]) -> Host:
        """Return a block as the step wants it."""
        values = dict(block)
        for name, step in self.preprocessors.items():
            if step.section in values:
                values[step.section] = self._applied(name, step, np.asarray(values[step.section]))
        return {name: self._cast(name, value) for name, value in values.items()}

    def _applied(self, name: str, step: Preprocessor, values: np.ndarray) -> np.ndarray:
        try:
            return step.apply(values, self.fitted[name])
        except (TypeError, ValueError) as error:
            raise SigmaDataError(
                f"preprocessor {name!r}: cannot take section {step.section!r}, {values.dtype} of shape {values.shape}: "
                f"{error}. Give samples like those of the training data."
            ) from error

    def _cast(self, name: str, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "f":
            with np.errstate(over="ignore"):  # what is not finite itself is told later, with its row
                cast = np.asarray(values, self.precision, order="C")
            if cast.dtype != values.dtype and not _finite(cast) and _finite(values):
                first = tuple(np.argwhere(np.isinf(cast))[0])
                raise SigmaDataError(
                    f"data: section {name!r}, row {first[0]}: {values[first]:g} is too large for {self.precision}. "
                    "Scale the values, or choose another precision."
                )
            return cast
        if values.dtype.kind in "iu":
            _fits_int32(name, values)
            return np.asarray(values, np.int32, order="C")
        if values.dtype.kind == "b":
            return np.asarray(values, order="C")
        raise SigmaDataError(f"data: section {name!r} holds {values.dtype}. Use numbers or booleans.")


@frozen
class Left(Iterable[np.ndarray]):
    """What preprocessors leave of one section: its blocks, each read when it is its turn, as often as one likes."""

    dataset: Dataset
    section: str
    steps: Sequence[tuple[Preprocessor, Host]]

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the blocks' arrays, one row a sample."""
        for block in range(self.dataset.blocks):
            values = np.asarray(self.dataset.block(block)[self.section])
            for step, state in self.steps:
                values = step.apply(values, state)
            yield values

    def check_finite(self) -> None:
        """Raise SigmaDataError for the first number that is not finite."""
        for block, values in enumerate(self):
            with placed(self.dataset, block):
                check_finite({self.section: values})


@contextmanager
def placed(dataset: Dataset, block: int) -> Iterator[None]:
    """Let a SigmaDataError say which block it is about, where there are several."""
    try:
        yield
    except SigmaDataError as error:
        if dataset.blocks == 1:
            raise
        raise SigmaDataError(f"block {block}: {error}") from error


def _fits_int32(name: str, values: np.ndarray) -> None:
    limits = np.iinfo(np.int32)
    if values.size and (values.min() < limits.min or values.max() > limits.max):
        raise SigmaDataError(f"data: section {name!r} holds integers beyond 32 bits. Scale them, or use floats.")


K = TypeVar("K")
V = TypeVar("V")


@define(eq=False)
class Ahead(Generic[K, V]):
    """What is made of the present key, and, beside training, what is made of the one that comes after it."""

    make: Callable[[K], V]
    beside: Callable[[], Executor]
    present: tuple[K, V] | None = None
    following: tuple[K, Future[V]] | None = None

    def of(self, key: K, after: K | None) -> V:
        """Return what is made of a key; begin with that of the one ``after``, if there is to be one."""
        if self.present is None or self.present[0] != key:
            ahead, self.following = self.following, None
            self.present = key, ahead[1].result() if ahead is not None and ahead[0] == key else self.make(key)
        if after is not None and self.following is None:
            self.following = after, self.beside().submit(self.make, after)
        return self.present[1]


@define(eq=False)
class Feed:
    """Hand out minibatches of a dataset; ``prepare`` makes a block ready and checks it, ``place`` moves it over."""

    dataset: Dataset
    batch_size: int
    seed: int
    prepare: Callable[[Mapping[str, np.ndarray]], Host]
    place: Callable[[np.ndarray], Any]
    order: Order = field(factory=Shuffled)
    keep_last: bool = True
    cursor: Cursor = Cursor()
    _before: list[int] = field(init=False)  # iterations of an epoch before each block, and all of them
    _orders: Ahead[tuple[int, int], np.ndarray] = field(init=False)  # by epoch and block
    _blocks: Ahead[int, Mapping[str, Any]] = field(init=False)
    _reader: ThreadPoolExecutor | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be trained on."""
        if len(self.dataset) == 0:
            raise SigmaDataError("data: there is no row. Check the path, the split and the filters.")
        if self.batch_size > len(self.dataset):
            raise SigmaDataError(
                f"data: a batch of {self.batch_size} is larger than the data, {len(self.dataset)} rows. "
                "Choose a smaller batch_size."
            )
        rows, size = map(self.dataset.rows, range(self.dataset.blocks)), self.batch_size
        self._before = [0, *accumulate(-(-n // size) if self.keep_last else n // size for n in rows)]
        if not self.iterations_per_epoch:
            raise SigmaDataError(
                f"data: no block holds a whole batch of {self.batch_size}, and smaller ones are dropped. "
                "Choose a smaller batch_size, or last_batch = 'keep'."
            )
        self._orders, self._blocks = Ahead(self._drawn, self._beside), Ahead(self._load, self._beside)
        self._pass_over()

    # -- counting ------------------------------------------------------------------------------------------------------
    def batches(self, block: int) -> int:
        """Return the number of minibatches in a block."""
        return self._before[block + 1] - self._before[block]

    @property
    def iterations_per_epoch(self) -> int:
        """Return the number of iterations that use every row once."""
        return self._before[-1]

    @property
    def iteration_in_epoch(self) -> int:
        """Return the number of iterations of this epoch that are done."""
        return self._before[self.cursor.block] + self.cursor.row // self.batch_size

    # -- handing out ---------------------------------------------------------------------------------------------------
    def next(self, most: int) -> Batches:
        """Return at most so many minibatches of equal size, from the cursor on; the cursor stays."""
        epoch, block, row = self.cursor.epoch, self.cursor.block, self.cursor.row
        after = self._after(self.cursor)
        left = self.dataset.rows(block) - row
        size = min(self.batch_size, left)
        n = max(1, min(most, left // size))
        many = self.dataset.rows(after.block) >= MANY  # else a thread is not worth it
        order = self._orders.of((epoch, block), (after.epoch, after.block) if many else None)
        resident = self._blocks.of(block, after.block if after.block != block else None)
        return Batches(resident, order[row : row + n * size].reshape(n, size))

    def advance(self, batches: Batches, done: int) -> None:
        """Move the cursor past the first ``done`` minibatches."""
        row = self.cursor.row + done * batches.rows.shape[1]
        left = self.dataset.rows(self.cursor.block) - row
        if left >= self.batch_size or (left and self.keep_last):
            self.cursor = Cursor(self.cursor.epoch, self.cursor.block, row)
        else:
            self.cursor = self._after(self.cursor)

    def rewind(self) -> None:
        """Go back to the start."""
        self.cursor = Cursor()
        self._pass_over()

    def _pass_over(self) -> None:
        """Go on to the next block where this one is smaller than a batch, and such are dropped."""
        if not self.batches(self.cursor.block):
            self.cursor = self._after(self.cursor)

    def _after(self, at: Cursor) -> Cursor:
        """Return where the next block begins; one smaller than a batch, where such are dropped, is passed over."""
        last = at.block + 1 == self.dataset.blocks
        after = Cursor(at.epoch + 1, 0) if last else Cursor(at.epoch, at.block + 1)
        return after if self.batches(after.block) else self._after(after)

    def _drawn(self, at: tuple[int, int]) -> np.ndarray:
        order = self.order.order(self.seed, *at, self.dataset.rows(at[1]))
        return np.ascontiguousarray(order, np.int32)

    def _load(self, block: int) -> Mapping[str, Any]:
        with placed(self.dataset, block):
            prepared = self.prepare(self.dataset.block(block))
        return {name: self.place(values) for name, values in prepared.items()}

    def close(self) -> None:
        """Stop reading ahead."""
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
            self._reader = self._orders.following = self._blocks.following = None

    def _beside(self) -> Executor:
        if self._reader is None:
            self._reader = ThreadPoolExecutor(2, thread_name_prefix="sigma-data")
        return self._reader


def check_finite(block: Host) -> None:
    """Raise SigmaDataError for the first number that is not finite, naming its section and row."""
    for name, values in block.items():
        if not _finite(values):
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise SigmaDataError(
                f"data: section {name!r} holds a value that is not finite, first in row {row}. "
                "Fill or drop such rows before training."
            )


def _finite(values: np.ndarray) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def conform(block: Host, wanted: Mapping[str, Spec], where: str = "data") -> Host:
    """Return the sections of a prepared block that are wanted; whole numbers become floats where these are wanted.

    Raises SigmaDataError for a section that is missing, or has another shape or type.
    """
    found: Host = {}
    for name, spec in wanted.items():
        if name not in block:
            raise SigmaDataError(f"{where}: section {name!r} is missing.{near(name, block)}")
        values = block[name]
        if not values.ndim or values.shape[1:] != spec.shape:
            raise SigmaDataError(f"{where}: section {name!r} has shape {values.shape}; wanted is {('n', *spec.shape)}.")
        if values.dtype != spec.dtype and (spec.dtype not in FLOATS or values.dtype.kind == "f"):
            raise SigmaDataError(
                f"{where}: section {name!r} holds {values.dtype}; the step was built for {spec.dtype}."
            )
        found[name] = values.astype(spec.dtype, copy=False)
    return found


def specs(block: Host) -> dict[str, Spec]:
    """Return the specs of one sample of each section of a prepared block."""
    return {name: Spec(values.shape[1:], str(values.dtype)) for name, values in block.items()}


class Rows(Dataset):
    """Arrays in memory, one row a sample, in one block or several."""

    def __init__(self, *blocks: Mapping[str, Any]) -> None:
        self._blocks = [{name: as_array("data", name, values) for name, values in block.items()} for block in blocks]
        if not self._blocks:
            raise SigmaDataError("data: there is no block of rows. An iterator can be used only once.")
        for number, block in enumerate(self._blocks):
            counts = {name: len(values) for name, values in block.items()}
            if len(set(counts.values())) != 1:
                raise SigmaDataError(f"data: sections must have equally many rows (got {counts}).")
            first, here = ({name: values.shape[1:] for name, values in b.items()} for b in (self._blocks[0], block))
            if here != first:
                raise SigmaDataError(f"data: block {number} holds {here}; block 0 holds {first}. Make them alike.")

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's spec."""
        return specs(self._blocks[0])

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self._blocks)

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return len(next(iter(self._blocks[block].values())))

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block."""
        return self._blocks[block]


def as_array(where: str, name: str, values: Any) -> np.ndarray:
    """Return a section as an array with one row a sample; raises SigmaDataError for what cannot be one."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise SigmaDataError(f"{where}: section {name!r}: samples have different shapes. Cut or pad them.") from None
    if not array.ndim:
        raise SigmaDataError(f"{where}: section {name!r} is a single value. Axis 0 is for the samples.")
    return array


def dataset(given: Any, where: str = "data") -> Dataset:
    """Return a data set of what was given: one, arrays by section, a pair, or an iterable of such blocks.

    An iterable is gone through once, and what it yields is kept.  Raises SigmaDataError for anything else.
    """
    if isinstance(given, Dataset):
        return given
    blocks = [given] if isinstance(given, Mapping) or _is_pair(given) else given
    if isinstance(blocks, str | bytes | np.ndarray) or not isinstance(blocks, Iterable):
        raise _no_data(given, where)
    return Rows(*(_sections(block, where) for block in blocks))


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and not any(isinstance(part, Mapping) for part in given)


def _sections(block: Any, where: str) -> Mapping[str, Any]:
    if isinstance(block, Mapping):
        return block
    if not isinstance(block, tuple | list) or len(block) != 2:
        raise _no_data(block, where)
    return dict(zip(("inputs", "targets"), block, strict=True))


def _no_data(given: Any, where: str) -> SigmaDataError:
    what = f"{type(given).__name__} of {len(given)}" if isinstance(given, tuple | list) else type(given).__name__
    return SigmaDataError(
        f"{where}: is no data (got {what}). Give arrays by section, {{'inputs': x, 'targets': y}}, a pair "
        "(inputs, targets), an iterable of such blocks, or a data set such as Arrays(...) or Stream(...)."
    )
