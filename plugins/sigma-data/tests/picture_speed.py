"""Print how many pictures are decoded in a second: python picture_speed.py [PICTURES] [SIDE] [THREADS].

Not a test: rates differ between machines. JPEGs of SIDE x SIDE pixels are cropped to 224 x 224, and shrunk to 64 x 64.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageOps

from sigma_data import ImageFolder

ROUNDS = 3


def draw(folder: Path, count: int, side: int) -> None:
    """Write pictures with smooth shapes and some noise, which compress as photographs do."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 255, (32, side // 16 + 1, side // 16 + 1, 3)).astype(np.uint8)
    for i in range(count):
        smooth = np.asarray(Image.fromarray(coarse[i % 32]).resize((side, side), Image.Resampling.BICUBIC), np.int16)
        pixels = np.clip(smooth + rng.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
        path = folder / str(i % 10) / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)


def with_pillow(folder: Path, size: int) -> np.ndarray:
    """Decode and crop all pictures in one thread, with Pillow alone."""
    paths = sorted(folder.glob("*/*.jpg"))
    images = (ImageOps.fit(Image.open(path).convert("RGB"), (size, size), Image.Resampling.BILINEAR) for path in paths)
    return np.stack([np.asarray(image).transpose(2, 0, 1) for image in images])


def with_sigma(folder: Path, size: int, threads: int, cache: Path | None) -> float:
    """Read all rows of the data set once, as bytes; from a cache, if there is one."""
    settings = {"memory": 0, "cache": cache} if cache else {"memory": 1 << 40}
    data = ImageFolder(folder, size=(size, size), threads=threads, scale=1.0, split={"training": 1.0}, **settings)
    rows = data["training"]
    return sum(float(rows.block(block)["inputs"].sum()) for block in range(rows.blocks))


def measure(count: int, read: Callable[[], object]) -> str:
    """Return the rate of the fastest round, and the least processor time for a picture."""
    seconds, processor = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter(), time.process_time()
        read()
        seconds.append(time.perf_counter() - began[0])
        processor.append(time.process_time() - began[1])
    return f"{count / min(seconds):,.0f} pictures/s, {1000 * min(processor) / count:.3f} ms of a processor each"


def main(count: int = 2000, side: int = 256, threads: int = 2) -> None:
    """Print a table."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "pictures"
        draw(folder, count, side)
        for size in (224, 64):
            ways = {
                "Pillow, one thread": lambda size=size: with_pillow(folder, size),
                "image_folder, one thread": lambda size=size: with_sigma(folder, size, 1, None),
                f"image_folder, {threads} threads": lambda size=size: with_sigma(folder, size, threads, None),
                "image_folder, from the cache": lambda size=size: with_sigma(folder, size, threads, Path(name) / "c"),
            }
            for way, read in ways.items():
                print(f"{side} -> {size}: {way}: {measure(count, read)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
