"""Split rows by what they are, so that a row is in the same part wherever and whenever it appears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate

import numpy as np
from attrs import evolve, frozen

from sigma_data.splitting import FOLDED, Folding, fold_names
from sigma_data.stream import Block, Stream
from sigma_data.subset import Subset
from sigma_kernel import Dataset, SigmaConfigError

KEY = "key"  # the section that identifies a row

Intervals = tuple[tuple[float, float], ...]  # each from its beginning to just before its end


@frozen(eq=False)
class Portion:
    """The rows of a stream whose places are in some intervals."""

    stream: Stream
    seed: int
    name: str
    intervals: Intervals

    def __iter__(self) -> Iterator[Block]:
        """Iterate over the rows of each block; raise SigmaConfigError if there are none."""
        has_rows = False
        for block in self.stream.read_anew():
            rows = _select_rows(places(block, self.seed), self.intervals)
            if rows.any():
                has_rows = True
                yield {name: values[rows] for name, values in block.items()}
        _check_any(has_rows, self.name, self.intervals)


def parts_of(stream: Stream, shares: Mapping[str, float], seed: int, fold: Folding | None = None) -> dict[str, Dataset]:
    """Return disjoint parts of a stream by name; each has its share of the rows approximately."""
    parts = {name: Portion(stream, seed, name, inside) for name, inside in _intervals(shares, fold).items()}
    streams = {name: evolve(stream, source=part, of="batches", most=None) for name, part in parts.items()}
    for part in streams.values():
        len(part)  # count its rows, which refuses a part without any before training
    return dict(streams)


def kept_parts_of(
    rows: Dataset, shares: Mapping[str, float], seed: int, fold: Folding | None = None
) -> dict[str, Dataset]:
    """Return disjoint parts of kept rows, the same in any order of them: those of :func:`parts_of`."""
    at, parts = np.concatenate([places(rows.block(block), seed) for block in range(rows.blocks)]), dict[str, Dataset]()
    for name, intervals in _intervals(shares, fold).items():
        chosen = np.flatnonzero(_select_rows(at, intervals))
        _check_any(bool(len(chosen)), name, intervals)
        parts[name] = Subset(rows, chosen)
    return parts


def _select_rows(at: np.ndarray, intervals: Intervals) -> np.ndarray:
    """Return whether each place is in one of the intervals."""
    inside = np.zeros(len(at), bool)
    for begin, end in intervals:
        inside |= (at >= begin) & (at < end)
    return inside


def _intervals(shares: Mapping[str, float], fold: Folding | None = None) -> dict[str, Intervals]:
    """Return the intervals of the places of each part."""
    ends = [*accumulate(shares.values())]
    bounds = zip([0.0, *ends], [end if end < 1 - 1e-9 else 1.0 for end in ends], strict=False)
    parts: dict[str, Intervals] = {name: (interval,) for name, interval in zip(shares, bounds, strict=True)}
    if fold is None:
        return parts
    pool = [interval for name in parts if name in FOLDED for interval in parts[name]]
    size = sum(end - begin for begin, end in pool)
    cuts = [*accumulate([size / fold.of] * (fold.of - 1), initial=0.0), size]
    begin, end = cuts[fold.number], cuts[fold.number + 1]
    folded = {
        "training": (*_part_of(pool, 0.0, begin), *_part_of(pool, end, size)),
        "validation": _part_of(pool, begin, end),
    }
    return {name: folded[name] if name in folded else parts[name] for name in fold_names(shares)}


def _part_of(pool: Sequence[tuple[float, float]], begin: float, end: float) -> Intervals:
    """Return the part of some intervals, laid end to end, that is between two distances from their beginning."""
    starts = [0.0, *accumulate(high - low for low, high in pool)]
    parts = [
        (low if begin <= start else low + (begin - start), high if end >= stop else low + (end - start))
        for (low, high), start, stop in zip(pool, starts, starts[1:], strict=False)
    ]
    return tuple((low, high) for low, high in parts if low < high)


def _check_any(found: bool, name: str, intervals: Intervals) -> None:
    if not found:
        share = sum(end - begin for begin, end in intervals)
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
