"""A conformance suite for augmentations, to inherit in a plugin's tests.

::

    class TestMyAugmentation(AugmentationSuite):
        def make(self) -> Augmentation:
            return MyAugmentation()

        def sections(self) -> dict[str, np.ndarray]:
            return {"inputs": np.arange(96.0).reshape(8, 3, 4)}
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from sigma_kernel.contracts import Augmentation
from sigma_kernel.graph.random import RowDraws
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.suite import alike

OTHER = "a section of others"


class AugmentationSuite(DeterministicSuite):
    """Conformance tests of an augmentation: inherit, and override :meth:`make` and :meth:`sections`."""

    @abstractmethod
    def make(self) -> Augmentation:
        """Return the augmentation under test, with settings by which most epochs change some rows."""

    @abstractmethod
    def sections(self) -> dict[str, np.ndarray]:
        """Return a block, the arrays of at least eight rows by section."""

    def augment(self, rows: np.ndarray, epoch: int = 0) -> Mapping[str, np.ndarray]:
        """Return what a new augmentation makes of some rows, by their numbers, and of one more section."""
        block = {name: values[rows] for name, values in self.sections().items()} | {OTHER: rows.copy()}
        for values in block.values():
            values.setflags(write=False)
        return self.make().augment(block, RowDraws(1, 0, epoch, rows))

    @property
    def all_rows(self) -> np.ndarray:
        """Return the numbers of all rows."""
        return np.arange(len(next(iter(self.sections().values()))))

    def use(self) -> None:
        """Make it, and use it once."""
        self.make().augment(self.sections(), RowDraws(1, 0, 0, self.all_rows))

    def results(self) -> Mapping[str, Any]:
        """Return the rows of two epochs."""
        return {"rows": [self.augment(self.all_rows, epoch) for epoch in range(2)]}

    def test_sections_keep_their_names_shapes_and_dtypes(self) -> None:
        """Return all sections, each with the shape and the dtype that it had."""
        block, result = {**self.sections(), OTHER: self.all_rows}, self.augment(self.all_rows)
        assert {*result} == {*block}
        for name, values in block.items():
            assert (result[name].shape, result[name].dtype) == (values.shape, values.dtype), name

    def test_what_it_is_given_stays_as_it_is(self) -> None:
        """Write to copies; the arrays may be the user's own."""
        block = self.sections()
        before = {name: values.copy() for name, values in block.items()}
        self.make().augment(block, RowDraws(1, 0, 0, self.all_rows))
        changed = [name for name, values in before.items() if not np.array_equal(block[name], values)]
        assert not changed, f"{changed} are changed in place"
        self.augment(self.all_rows)  # which cannot be written

    def test_other_sections_pass_unchanged(self) -> None:
        """Return sections that the augmentation is not for as they were: ``{**sections, name: values}``."""
        assert np.array_equal(self.augment(self.all_rows)[OTHER], self.all_rows)

    def test_the_same_draws_give_the_same_rows(self) -> None:
        """Take all random numbers from `draw`, and keep nothing between calls."""
        augmentation, block = self.make(), self.sections()
        first, again = (_bits(augmentation.augment(block, RowDraws(1, 0, 2, self.all_rows))) for _ in range(2))
        other = _bits(self.make().augment(block, RowDraws(1, 0, 2, self.all_rows)))
        assert alike(first, again)
        assert alike(first, other)

    def test_other_epochs_give_other_rows(self) -> None:
        """Let the result depend on numbers from `draw`."""
        epochs = [_bits(self.augment(self.all_rows, epoch)) for epoch in range(4)]
        assert any(not alike(epoch, epochs[0]) for epoch in epochs[1:])

    def test_each_row_is_varied_alone_or_it_says_that_it_mixes_rows(self) -> None:
        """Give a row its own random numbers, from its number; else set mixes_rows to True."""
        augmentation = self.make()
        assert isinstance(augmentation.mixes_rows, bool), "mixes_rows must be True or False"
        if not augmentation.mixes_rows:
            whole, order = self.augment(self.all_rows), self.all_rows[::-1]
            turned, alone = self.augment(order), [self.augment(order[row : row + 1]) for row in range(len(order))]
            for name, values in whole.items():
                assert alike(values[order].tobytes(), turned[name].tobytes()), f"{name}: another order of the rows"
                assert alike(values[order].tobytes(), b"".join(part[name].tobytes() for part in alone)), name


def _bits(block: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in block.items()}
