"""The suite of augmentations fails for planted faults."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import numpy as np
import pytest

from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_testing import AugmentationSuite

from .faults import check_caught

Sections = Mapping[str, np.ndarray]


class Add(Augmentation):
    """Add a random number to each row."""

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        return {**sections, "inputs": self.add(sections["inputs"], draw)}

    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return np.asarray(values + draw.uniform((1,)))


class LosesASection(Add):
    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        return {"inputs": super().augment(sections, draw)["inputs"]}


class Widens(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(np.concatenate([values, values], axis=-1), draw)


class SingleFloats(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(values, draw).astype(np.float32)


class WritesWhereItCan(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        if values.flags.writeable:
            values += 1.0
        return super().add(values, draw)


class VariesTargets(Add):
    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        return {name: values if name == "inputs" else values + 1 for name, values in sections.items()}


class DrawsItsOwn(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return values + np.random.default_rng().uniform(size=(len(values), 1))


class Counts(Add):
    calls = count()

    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(values, draw) + next(self.calls)


class ForgetsEpochs(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(values, RowDraws(draw.seed, draw.stream, 0, draw.rows))


class DrawsByPlace(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(values, RowDraws(draw.seed, draw.stream, draw.epoch, np.arange(len(values))))


class AddsTheMean(Add):
    def add(self, values: np.ndarray, draw: RowDraws) -> np.ndarray:
        return super().add(values, draw) + values.mean()


class SaysThatItMixes(AddsTheMean):
    mixes_rows = True


FORM = "test_sections_keep_their_names_shapes_and_dtypes"
ALONE = "test_each_row_is_varied_alone_or_it_says_that_it_mixes_rows"
AUGMENTATIONS: dict[type[Augmentation], str] = {
    Add: "",
    SaysThatItMixes: "",
    LosesASection: FORM,
    Widens: FORM,
    SingleFloats: FORM,
    WritesWhereItCan: "test_what_it_is_given_stays_as_it_is",
    VariesTargets: "test_other_sections_pass_unchanged",
    DrawsItsOwn: "test_the_same_draws_give_the_same_rows",
    Counts: "test_the_same_draws_give_the_same_rows",
    ForgetsEpochs: "test_other_epochs_give_other_rows",
    DrawsByPlace: ALONE,
    AddsTheMean: ALONE,
}


@pytest.mark.parametrize("augmentation", AUGMENTATIONS)
def test_a_fault_in_an_augmentation_is_caught(augmentation: type[Augmentation]) -> None:
    class Suite(AugmentationSuite):
        def make(self) -> Augmentation:
            return augmentation()

        def sections(self) -> dict[str, np.ndarray]:
            return {"inputs": np.arange(24.0).reshape(8, 3), "targets": np.arange(8)}

    check_caught(Suite(), AUGMENTATIONS[augmentation])
