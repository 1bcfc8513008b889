"""Any iterable as a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from threading import RLock
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.arrays import equal_length, finite, numbers, read_only, specs
from sigma_data.frames import is_frame
from sigma_kernel import Dataset, SigmaDataError, as_numpy
from sigma_kernel.graph import Spec
from sigma_kernel.settings import brief, ge, in_, min_len, optional

Block = dict[str, np.ndarray]


@define(eq=False)
class Stream(Dataset):
    """Collect the samples of an iterable into blocks of ``block_rows`` rows.

    The iterable yields samples, or batches with ``of="batches"``: dictionaries by section, or tuples in the order of
    ``names``.  With ``keep="blocks"``, it is iterated once, on first use, and all blocks are kept in memory;
    SigmaDataError if they exceed ``limit`` bytes.  With ``keep="one"``, only the last block is kept, and the iterable
    is iterated again for every epoch, after a first pass to count rows; it must yield as many rows each time, in any
    order, and may draw them anew.  Rows of an iterable have no place: they are split by their section ``key``, or by
    what they hold.

    Rows are shuffled within their block, and no minibatch spans two blocks: the remainder of a block is a smaller
    minibatch, or dropped with ``last_batch="drop"``.  Make ``block_rows`` a large multiple of the batch size.

    Args:
        source: Iterable of samples or batches, or a function that returns a new one at each call, such as a generator
            function.
        names: Sections of tuples, in order.
        of: What the iterable yields.
        block_rows: Rows of a block.
        keep: Whether all blocks are kept in memory, or only the last one.
        limit: Most bytes of the blocks that are kept; no limit by default.
        most: Items after which the source counts as endless, which is an error; no limit by default.
    """

    source: Iterable[Any] | Callable[[], Iterable[Any]]
    names: tuple[str, ...] = field(default=("inputs", "targets", "weights"), validator=min_len(1), kw_only=True)
    of: Literal["samples", "batches"] = field(default="samples", validator=in_(("samples", "batches")), kw_only=True)
    block_rows: int = field(default=8192, validator=ge(1), kw_only=True)
    keep: Literal["blocks", "one"] = field(default="blocks", validator=in_(("blocks", "one")), kw_only=True)
    limit: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    most: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    _kept: list[Block] | None = field(default=None, init=False)
    _sizes: list[int] = field(factory=list, init=False)
    _specs: dict[str, Spec] = field(factory=dict, init=False)
    _running: Iterator[Block] = field(factory=lambda: iter(()), init=False)
    _at: tuple[int, Block] = field(default=(-1, {}), init=False)
    _lock: RLock = field(factory=RLock, init=False)  # training prefetches while a split of the same rows is evaluated

    __repr__ = brief

    def __attrs_post_init__(self) -> None:
        """Raise SigmaDataError if the source cannot be iterated, or not again although ``keep`` needs it."""
        if not callable(self.source) and not any(hasattr(self.source, way) for way in ("__iter__", "__getitem__")):
            raise SigmaDataError(
                f"stream: must be an iterable, such as a list or a generator, or a function that returns one (got "
                f"{self.source!r}). Pass one."
            )
        if self.keep == "one" and isinstance(self.source, Iterator):
            raise SigmaDataError(
                "stream: an iterator or a generator can be used only once. Pass an object that can be iterated again, "
                "or set keep='blocks'."
            )

    # -- the Dataset contract ------------------------------------------------------------------------------------------
    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        self._gather()
        return self._specs

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        self._gather()
        return len(self._sizes)

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        self._gather()
        return self._sizes[block]

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a block."""
        self._gather()
        with self._lock:
            return read_only(self._kept[block] if self._kept is not None else self._sought(block))

    @property
    def has_row_numbers(self) -> bool:
        """Return False: nothing promises that an iterable yields the same rows in another process."""
        return False

    @property
    def drawn_anew(self) -> bool:
        """Return whether the source is iterated again for every epoch."""
        return self.keep == "one"

    # -- collecting blocks ---------------------------------------------------------------------------------------------
    def _gather(self) -> None:
        with self._lock:
            if not self._sizes:
                self._count()

    def _count(self) -> None:
        kept: list[Block] | None = [] if self.keep == "blocks" else None
        held, sizes = 0, list[int]()
        for block in self.read_anew():
            self._check_specs(block, sum(sizes))
            sizes.append(len(next(iter(block.values()))))
            if kept is not None:
                kept.append(block)
                held += sum(values.nbytes for values in block.values())
                self._check_limit(held)
        if not sizes:
            raise SigmaDataError("stream: the iterable yields nothing.")
        self._kept, self._sizes = kept, sizes

    def _check_limit(self, held: int) -> None:
        if self.limit is not None and held > self.limit:
            raise SigmaDataError(f"stream: more than {self.limit} bytes. Raise `limit`, or set keep='one'.")

    def _check_specs(self, block: Block, before: int) -> None:
        block_specs = specs(block)
        self._specs = self._specs or block_specs
        if block_specs != self._specs:
            was, now = ([f"{name} {spec}" for name, spec in table.items()] for table in (self._specs, block_specs))
            raise SigmaDataError(
                f"stream: from row {before} on there is {', '.join(now)}; before, {', '.join(was)}. Make rows alike."
            )

    def _sought(self, block: int) -> Block:
        """Return a block; iterate on from the last one, or from the start for an earlier block."""
        if block < self._at[0] or self._at[0] < 0 or len(self._sizes) == 1:
            self._running, self._at = self.read_anew(), (-1, {})
        while self._at[0] < block:
            arrays = next(self._running, {})
            number = self._at[0] + 1
            ended = number + 1 < len(self._sizes) or not next(self._running, None)
            if not arrays or len(next(iter(arrays.values()))) != self._sizes[number] or not ended:
                self._at = (-1, {})
                raise SigmaDataError(
                    "stream: the iterable does not yield as many rows as the first time. Use keep='blocks', or, if "
                    "rows with random changes are split, yield a section 'key' with the number of each."
                )
            self._at = (number, arrays)
        return self._at[1]

    def read_anew(self) -> Iterator[Block]:
        """Iterate over the source once more, by blocks."""
        return self._of_batches() if self.of == "batches" else self._of_samples()

    def _items(self) -> Iterator[Any]:
        """Yield what the source yields; raise SigmaDataError if it is endless."""
        try:
            items = iter(self.source() if callable(self.source) else self.source)
        except TypeError as error:
            raise SigmaDataError(
                f"stream: must be a function without arguments that returns an iterable ({error}). Pass such a one."
            ) from error
        for number, item in enumerate(items):
            if number == self.most:
                raise SigmaDataError(
                    f"stream: the source has not ended after {self.most:,} items. An epoch must end: return a part, "
                    "such as itertools.islice(generator, 100). If it does end, use Stream(..., most=None)."
                )
            yield item

    def _of_samples(self) -> Iterator[Block]:
        samples, before = self._items(), 0
        while part := [
            self._name_sections(sample, "sample", before + i)
            for i, sample in enumerate(islice(samples, self.block_rows))
        ]:
            if odd := next((i for i, sample in enumerate(part) if sample.keys() - part[0].keys()), None):
                raise SigmaDataError(
                    f"stream: sample {before + odd} has {', '.join(part[odd])}; sample {before}, {', '.join(part[0])}. "
                    "Make them alike."
                )
            yield {name: _stack_values(name, [sample.get(name) for sample in part], before) for name in part[0]}
            before += len(part)

    def _of_batches(self) -> Iterator[Block]:
        waiting: list[Block] = []
        count = before = 0
        for i, batch in enumerate(self._items()):
            arrays = {
                name: _array(name, values, before + count)
                for name, values in self._name_sections(batch, "batch", i).items()
            }
            count += equal_length(arrays, f"stream: batch {i}")
            waiting.append(arrays)
            while count >= self.block_rows:
                whole = _join_blocks(waiting, before)
                yield {name: values[: self.block_rows] for name, values in whole.items()}
                count, before = count - self.block_rows, before + self.block_rows
                waiting = [{name: values[self.block_rows :] for name, values in whole.items()}] if count else []
        if waiting:
            yield _join_blocks(waiting, before)

    def _name_sections(self, item: Any, what: str, number: int) -> Mapping[str, Any]:
        if isinstance(item, Mapping):
            return item
        values: Sequence[Any] = item if isinstance(item, tuple) else (item,)
        if not 0 < len(values) <= len(self.names):
            named = ", ".join(self.names)
            raise SigmaDataError(f"stream: {what} {number} has {len(values)} parts, for {named}. Set `names`.")
        return dict(zip(self.names, values, strict=False))


def _stack_values(name: str, values: list[Any], before: int) -> np.ndarray:
    shapes = [np.shape(value) if value is not None else None for value in values]
    if (odd := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)) is not None:
        fault = "is missing" if shapes[odd] is None else f"has shape {shapes[odd]}"
        raise SigmaDataError(f"stream: sample {before + odd}: section {name!r} {fault}; before, it had {shapes[0]}.")
    return _array(name, [as_numpy(value) if hasattr(value, "shape") else value for value in values], before)


def _array(name: str, values: Any, before: int) -> np.ndarray:
    if is_frame(values):
        raise SigmaDataError(
            f"stream: section {name!r} of a batch is a frame, and batches lose the names of columns. Give "
            "frame[names].to_numpy(), or all rows as one Frame."
        )
    array = as_numpy(values)
    numbers(name, array)
    if array.ndim == 0:
        raise SigmaDataError(
            f"stream: section {name!r} of a batch is a single number; axis 0 is for the samples. "
            "If the source yields samples, not batches, use Stream(source)."
        )
    finite(name, array, range(before, before + len(array)))
    return array


def _join_blocks(batches: list[Block], before: int) -> Block:
    try:
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    except (KeyError, ValueError):
        raise SigmaDataError(
            f"stream: the batches from row {before} on have different sections or shapes. Make them alike."
        ) from None
