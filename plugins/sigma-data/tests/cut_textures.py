"""Write files/textures.tar.xz: python cut_textures.py FILE. Needs scikit-image 0.26, which has the photographs.

Not a test: the bytes of JPEG files differ between versions of Pillow.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import skimage.data
from PIL import Image

NAMES = ("brick", "grass", "gravel")  # photographs of 512 x 512 pixels, in grey
SIDE, COUNT, STEP = 32, 80, 3  # of the patches: pixels, how many of each photograph, and every how many is taken


def cut(name: str) -> Iterator[bytes]:
    """Yield patches of a photograph as JPEG files; none of them share a pixel."""
    photograph = Image.fromarray(getattr(skimage.data, name)())
    across = photograph.width // SIDE
    for number in range(0, STEP * COUNT, STEP):
        top, left = SIDE * (number // across), SIDE * (number % across)
        stream = io.BytesIO()
        photograph.crop((left, top, left + SIDE, top + SIDE)).save(stream, "JPEG", quality=80, optimize=True)
        yield stream.getvalue()


def main(path: str) -> None:
    """Write the archive."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name in NAMES:
            for number, content in enumerate(cut(name)):
                about = tarfile.TarInfo(f"{name}/{number:02}.jpg")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    print(f"{path}: {Path(path).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
