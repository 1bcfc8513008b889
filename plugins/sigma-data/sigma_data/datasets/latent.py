"""Another data set with random vectors beside its rows, for generators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from sigma_data.datasets.splits import Loaded, Splits
from sigma_data.derived import Derived
from sigma_kernel import Dataset, SigmaConfigError
from sigma_kernel.graph import Draw, Spec
from sigma_kernel.settings import and_, deep_iterable, ge, lt, min_len, must

FIRST = 0xFFFF_E000  # the stream of the first split

NAME = must(lambda value: isinstance(value, str) and bool(value), "the name of a section")


@define(eq=False)
class Latent(Splits):
    """Another data set with a section of standard normal noise, drawn from ``seed``: one sample for each row.

    The noise of a row stays the same, as evaluation needs it. For new noise in each iteration of training, put
    ``gaussian_noise(1.0, replace=true)`` after its input.

    Args:
        of: The other data set, with splits or without.
        shape: Shape of one sample.
        section: Name of the new section; raises SigmaConfigError if the data has it.
        seed: Seed of the numbers. It is independent of the run's, so that runs with different seeds are evaluated on
            the same ones.
    """

    of: Dataset
    shape: tuple[int, ...] = field(default=(16,), validator=and_(min_len(1), deep_iterable(ge(1))), kw_only=True)
    section: str = field(default="noise", validator=NAME, kw_only=True)
    seed: int = field(default=0, validator=[ge(0), lt(2**64)], kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(self.of) if isinstance(self.of, Mapping) else ("training",)

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        splits = self.of if isinstance(self.of, Mapping) else {"training": self.of}
        return {name: self._add_section(i, splits[name]) for i, name in enumerate(splits)}, getattr(
            splits, "classes", ()
        )

    def _add_section(self, number: int, rows: Dataset) -> Beside:
        if self.section in rows.sections:
            raise SigmaConfigError(f"Latent.section: the data has a section {self.section!r}. Choose another name.")
        drawn = Draw(self.seed, FIRST + number).normal((len(rows), *self.shape))
        return Beside(rows, self.section, drawn.astype(np.float32))


class Beside(Derived):
    """A data set with one more section."""

    def __init__(self, dataset: Dataset, section: str, values: np.ndarray) -> None:
        super().__init__(dataset)
        self._section, self._values = section, values
        values.setflags(write=False)

    def __repr__(self) -> str:
        return f"Beside({self.dataset!r}, {self._section}={self._values.shape})"

    def with_dataset(self, dataset: Dataset) -> Beside:
        """Return another data set with the section."""
        return Beside(dataset, self._section, self._values)

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return {**self.dataset.sections, self._section: Spec(self._values.shape[1:], str(self._values.dtype))}

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the sections of a block."""
        return {**self.dataset.block(block), self._section: self._values[self.starts[block] : self.starts[block + 1]]}
