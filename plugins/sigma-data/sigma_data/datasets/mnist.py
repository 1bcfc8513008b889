"""The MNIST data set of handwritten digits, 28 x 28 pixels."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Loaded, Splits
from sigma_data.readers.idx import IdxReader
from sigma_data.sources import local
from sigma_data.sources.compressed import Compressed
from sigma_data.sources.url import Url
from sigma_kernel import SigmaDataError, Source
from sigma_kernel.settings import min_len

FILES = {"training": "train", "validation": "t10k"}
HASHES = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}  # SHA-256 of the gzip files
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")


@define(eq=False, kw_only=True)
class Mnist(Splits):
    """60,000 handwritten digits and 10,000 for validation: ``inputs`` (28, 28), pixels 0 to 1; ``targets`` 0 to 9.

    Downloaded on first use.

    LeCun, Cortes, Burges, The MNIST database of handwritten digits, 1998; CC BY-SA 3.0.

    Args:
        folder: Directory with the four IDX files, compressed or not; nothing is downloaded then.
        cache: Directory to keep the files in; by default the user's cache directory.
        mirrors: Addresses to download from.
    """

    white: ClassVar[float | None] = 1.0

    folder: Path | None = None
    cache: Path | None = None
    mirrors: tuple[str, ...] = field(default=MIRRORS, validator=min_len(1))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(FILES)

    def load(self) -> Loaded:
        """Return the training set, and the test set for validation."""
        return {name: self._half(prefix) for name, prefix in FILES.items()}, tuple(range(10))

    def _half(self, prefix: str) -> Arrays:
        images = self._read(f"{prefix}-images-idx3-ubyte", axes=3)
        labels = self._read(f"{prefix}-labels-idx1-ubyte", axes=1)
        return Arrays(inputs=images.astype(np.float32) / np.float32(255), targets=labels.astype(np.int32))

    def _read(self, name: str, axes: int) -> np.ndarray:
        source = self._source(name)
        values = IdxReader().read(source)["values"]
        if values.ndim != axes or values.dtype != np.uint8:
            raise SigmaDataError(
                f"{source.name}: holds {values.dtype} of shape {values.shape}; expected bytes with {axes} axes."
            )
        return values

    def _source(self, name: str) -> Source:
        if self.folder is None:
            first, *others = (f"{mirror.rstrip('/')}/{name}.gz" for mirror in self.mirrors)
            return Compressed(Url(first, HASHES[name], mirrors=tuple(others), cache=self.cache), "gzip")
        plain = Path(self.folder) / name
        return local(plain if plain.exists() else plain.with_name(f"{name}.gz"))
