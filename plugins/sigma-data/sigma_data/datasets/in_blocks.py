"""Settings of tables that are read in blocks if they are larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from attrs import converters, define, field
from attrs.validators import and_

from sigma_data.pictures.sizes import free_memory, parse_size
from sigma_data.prepared.blocks import BlockLayout, BlockMemory
from sigma_data.prepared.files import Original
from sigma_data.prepared.opening import find_block_files
from sigma_kernel import SigmaConfigError
from sigma_kernel.settings import ge, in_, optional, whole


def _expand(path: Path | str) -> Path:
    return Path(path).expanduser()


@define(eq=False, kw_only=True, slots=False)  # so that classes with another base may have it as well
class InBlocks:
    """A table that may be larger than memory: it is encoded once, into a cache, and read in blocks.

    Files of the cache are mapped to memory.  Minibatches have rows of several blocks, in an order of each epoch.  What
    a run computes depends on the blocks, and not on how much memory there is.

    Args:
        block_rows: Rows of a block, or windows; the table is then read in blocks, however large it is. By default,
            those of 4 MiB for a table of more than 1 GiB of numbers; others are in memory.
        block_dtype: Type of the numbers in blocks, ``float32`` or ``float64``.
        memory: Most bytes of blocks of all splits that stay in memory, such as "2 GB"; by default half of what is free.
        cache: Folder for prepared blocks; by default one in the user's cache directory, or in ``$SIGMA_CACHE``.
        lanes: Parts that the training rows are dealt into, as many as the operator's shards, so that a worker reads
            those of its shards alone; by default 1, and every worker reads all rows.
    """

    block_rows: int | None = field(default=None, validator=optional(and_(whole, ge(1))))
    block_dtype: Literal["float32", "float64"] = field(default="float32", validator=in_(("float32", "float64")))
    memory: int | None = field(
        default=None, converter=parse_size, validator=optional(ge(0)), metadata={"accepts": int | str | None}
    )
    cache: Path | None = field(default=None, converter=converters.optional(_expand))
    lanes: int = field(default=1, validator=[whole, ge(1)])
    _block_memory: BlockMemory | None = field(default=None, init=False, repr=False)  # of all splits

    def find_files(self) -> Original | None:
        """Return what is prepared if the table is read in blocks; None if it is in memory.

        Raises SigmaConfigError for lanes of a table in memory.
        """
        place: Any = self  # a table has both
        files = find_block_files(place.path, place.format, self.block_rows, self.cache)
        if files is None and self.lanes > 1:
            raise SigmaConfigError(
                "lanes: this table is read into memory, and lanes are of tables in blocks. Set block_rows, or leave "
                "out lanes."
            )
        return files

    @property
    def layout(self) -> BlockLayout:
        """Return how rows are cut into blocks, and the memory that all splits share."""
        if self._block_memory is None:
            self._block_memory = BlockMemory(free_memory() // 2 if self.memory is None else self.memory)
        return BlockLayout(self.block_rows, self._block_memory, self.lanes)
