"""Data for Sigma: sources, readers, extractors, preprocessors, orders of rows, splits and data sets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigma_data.plugin import sigma_components

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_data.arrays import Arrays as Arrays
    from sigma_data.datasets.csv import Csv as Csv
    from sigma_data.datasets.digits import Digits as Digits
    from sigma_data.datasets.iris import Iris as Iris
    from sigma_data.datasets.mnist import Mnist as Mnist
    from sigma_data.datasets.npy import Npy as Npy
    from sigma_data.datasets.records import Records as Records
    from sigma_data.datasets.splits import Divided as Divided, Splits as Splits
    from sigma_data.datasets.synthetic import Synthetic as Synthetic
    from sigma_data.datasets.wdbc import Wdbc as Wdbc
    from sigma_data.datasets.xor import Xor as Xor
    from sigma_data.extractors.columns import Column as Column, Columns as Columns
    from sigma_data.extractors.offsets import Field as Field, Offsets as Offsets
    from sigma_data.iterators.minibatch import Minibatch as Minibatch
    from sigma_data.iterators.sequential import Sequential as Sequential
    from sigma_data.iterators.shuffle import Shuffle as Shuffle
    from sigma_data.preprocessors.cast import Cast as Cast
    from sigma_data.preprocessors.normalise import Normalise as Normalise
    from sigma_data.preprocessors.one_hot import OneHot as OneHot
    from sigma_data.preprocessors.scale import Scale as Scale
    from sigma_data.preprocessors.standardise import Standardise as Standardise
    from sigma_data.readers.bytes import BytesReader as BytesReader
    from sigma_data.readers.csv import CsvReader as CsvReader
    from sigma_data.readers.idx import IdxReader as IdxReader
    from sigma_data.readers.image import ImageReader as ImageReader
    from sigma_data.readers.lines import LinesReader as LinesReader
    from sigma_data.readers.npy import NpyReader as NpyReader
    from sigma_data.readers.samples import SamplesReader as SamplesReader
    from sigma_data.sources.compressed import Compressed as Compressed
    from sigma_data.sources.file import File as File
    from sigma_data.sources.multi import Multi as Multi
    from sigma_data.sources.url import Url as Url
    from sigma_data.splitting import split as split
    from sigma_data.stream import Stream as Stream
    from sigma_data.subset import Subset as Subset

_BESIDE = {
    "Arrays": "arrays", "Column": "extractors.columns", "Divided": "datasets.splits", "Field": "extractors.offsets",
    "Splits": "datasets.splits", "Stream": "stream", "Subset": "subset", "split": "splitting",
}  # fmt: skip
_EXPORTS = {name: f"sigma_data.{module}" for name, module in _BESIDE.items()}
_EXPORTS |= {name: module for module, _, name in (one.path.partition(":") for one in sigma_components())}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
