"""Photographs of brick, grass and gravel, 32 x 32 pixels."""

from __future__ import annotations

import io
import tarfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.pictures.decoding import PictureForm
from sigma_data.splitting import KINDS, By
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import in_

FORM = PictureForm(32, 32, "grey", "crop", 255, 1024)


@define(eq=False, kw_only=True)
class Textures(Divided):
    """240 patches of photographs: ``inputs`` (1, 32, 32), grey from 0 to 1; ``targets`` 0 brick, 1 grass, 2 gravel.

    80 patches of one photograph each, without overlap, as JPEG files. ``write`` puts them into folders of classes.
    Needs Pillow: ``python -m pip install "sigma-data[images]"``.

    The photographs brick, grass and gravel of scikit-image, 2019; public domain (CC0).
    """

    split_by: By = field(default="stratified", validator=in_(KINDS))

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all patches."""
        contents = read_files()
        names = sorted({name.partition("/")[0] for name in contents})
        pixels = np.stack([FORM.decode(io.BytesIO(content)) for content in contents.values()])
        targets = np.array([names.index(name.partition("/")[0]) for name in contents], np.int32)
        return Arrays(inputs=pixels.astype(np.float32) / np.float32(255), targets=targets), tuple(names)

    @staticmethod
    def write(folder: str | Path) -> Path:
        """Write the files into a folder, each in the folder of its class, and return the folder."""
        for name, content in read_files().items():
            path = Path(folder, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError as error:
                raise SigmaDataError(
                    f"{path}: cannot be written: {error.strerror or error}. Choose another folder."
                ) from error
        return Path(folder)


def read_files() -> dict[str, bytes]:
    """Return the files by path, as they come with this package."""
    content = (files("sigma_data") / "files" / "textures.tar.xz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:xz") as archive:
        members = ((member.name, archive.extractfile(member)) for member in archive.getmembers())
        return {name: file.read() for name, file in members if file is not None}
