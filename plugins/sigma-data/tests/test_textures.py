"""The photographs of brick, grass and gravel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_data import ImageFolder, Textures
from sigma_kernel import Dataset, SigmaDataError
from sigma_kernel.graph import Spec
from sigma_testing import DatasetSuite

pytest.importorskip("PIL.Image")


class TestTextures(DatasetSuite):
    def make(self) -> Dataset:
        return Textures()["training"]


def test_each_class_has_80_patches_and_its_share_of_every_split() -> None:
    data = Textures()
    assert data.classes == ("brick", "grass", "gravel")
    assert data["training"].sections == {"inputs": Spec((1, 32, 32), "float32"), "targets": Spec((), "int32")}
    counts = {name: np.bincount(part.block(0)["targets"]).tolist() for name, part in data.items()}
    assert counts == {"training": [64, 64, 64], "validation": [16, 16, 16]}


def test_written_files_are_the_same_pictures(tmp_path: Path) -> None:
    folder = Textures.write(tmp_path / "new" / "textures")
    assert sum(1 for _ in folder.rglob("*.jpg")) == 240
    rows, classes = ImageFolder(folder, size=(32, 32), colours="grey").all_rows()
    own, own_classes = Textures().all_rows()
    assert (*classes,) == own_classes
    for name, values in own.block(0).items():
        np.testing.assert_array_equal(rows.block(0)[name], values)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SigmaDataError, match=r"cannot be written: .* Choose another folder"):
        Textures.write(tmp_path / "file")
