"""Split rows by what they are, so that a row is in the same part wherever and whenever it appears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import accumulate

import numpy as np
from attrs import evolve, frozen

from sigma_data.stream import Block, Stream
from sigma_data.subset import Subset
from sigma_kernel import Dataset, SigmaConfigError

KEY = "key"  # the section that identifies a row


@frozen(eq=False)
class Portion:
    """The rows of a stream whose place is between two numbers."""

    stream: Stream
    seed: int
    name: str
    begin: float
    end: float

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the rows of each block; raise SigmaConfigError if there are none."""
        has_rows = False
        for block in self.stream.read_anew():
            at = places(block, self.seed)
            rows = (at >= self.begin) & (at < self.end)
            if rows.any():
                has_rows = True
                yield {name: values[rows] for name, values in block.items()}
        _check_any(has_rows, self.name, self.end - self.begin)


def parts_of(stream: Stream, shares: Mapping[str, float], seed: int) -> dict[str, Dataset]:
    """Return disjoint parts of a stream by name; each has its share of the rows approximately."""
    parts = {name: Portion(stream, seed, name, begin, end) for name, begin, end in _bounds(shares)}
    streams = {name: evolve(stream, source=part, of="batches", most=None) for name, part in parts.items()}
    for part in streams.values():
        len(part)  # count its rows, which refuses a part without any before training
    return dict(streams)


def kept_parts_of(rows: Dataset, shares: Mapping[str, float], seed: int) -> dict[str, Dataset]:
    """Return disjoint parts of kept rows, the same in any order of them: those of :func:`parts_of`."""
    at, parts = np.concatenate([places(rows.block(block), seed) for block in range(rows.blocks)]), dict[str, Dataset]()
    for name, begin, end in _bounds(shares):
        chosen = np.flatnonzero((at >= begin) & (at < end))
        _check_any(bool(len(chosen)), name, end - begin)
        parts[name] = Subset(rows, chosen)
    return parts


def _bounds(shares: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    """Return the names of the parts, each with the places where it begins and ends."""
    ends = [*accumulate(shares.values())]
    return zip(shares, [0.0, *ends], [end if end < 1 - 1e-9 else 1.0 for end in ends], strict=False)


def _check_any(found: bool, name: str, share: float) -> None:
    if not found:
        raise SigmaConfigError(f"split: {name!r} gets no row for a share of {share:g}. Give it more.")


def places(block: Mapping[str, np.ndarray], seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each row, from a digest of its section ``key``, or of all its sections."""
    sections = [block[KEY]] if KEY in block else [block[name] for name in sorted(block)]
    texts = len(sections) == 1 and sections[0].dtype.kind not in "biuf"  # keys
    rows = [str(text).encode() for text in sections[0]] if texts else np.concatenate([*map(_bytes, sections)], axis=1)
    key = seed.to_bytes(8, "little")
    digests = b"".join(blake2b(row, digest_size=8, key=key).digest() for row in rows)
    return (np.frombuffer(digests, "<u8") >> np.uint64(11)) * 2.0**-53


def _bytes(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # so that -0.0 is 0.0
    plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(len(values), -1)
    return plain.view(np.uint8)
