"""Print how many pictures are decoded in a second: python picture_speed.py [PICTURES] [SIDE] [THREADS].

Not a test: rates differ between machines. JPEGs of SIDE x SIDE pixels are cropped to 224 x 224, and shrunk to 64 x 64.

`python picture_speed.py --torch PYTHON [PICTURES] [SIDE] [THREADS]` compares epochs of decoded, cropped and flipped
pictures with a DataLoader of torch, run by the PYTHON of an environment with torchvision; rounds alternate.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageOps

from sigma_data import Flip, ImageFolder, RandomCrop
from sigma_training.data.augmenting import Augmenter

ROUNDS = 3
BATCH, PADDING = 64, 16  # of the comparison with torch


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


def vary(data: ImageFolder, threads: int, epoch: int) -> int:
    """Return the number of pictures of an epoch: decoded if they are not, cropped, flipped, and in shuffled batches."""
    augmenter = Augmenter(0, {"crop": RandomCrop(PADDING), "flip": Flip()})
    rows = data["training"]

    def batches(block: int) -> Iterator[np.ndarray]:
        numbers = np.arange(rows.rows(block))
        inputs = augmenter.apply(rows.block(block), epoch, numbers)["inputs"]
        order = np.random.default_rng(epoch).permutation(numbers)
        yield from (inputs[order[first : first + BATCH]] for first in range(0, len(order), BATCH))

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda block: sum(map(len, batches(block))), range(rows.blocks)))


def compare(python: str, count: int = 4000, side: int = 256, threads: int = 2) -> None:
    """Print a table: the first epoch, which decodes, later epochs, and an epoch of torch, in alternating rounds."""
    first, later, torch = "image_folder, first epoch", "image_folder, later epochs", "torch, every epoch"
    times: dict[str, list[tuple[float, float]]] = {first: [], later: [], torch: []}
    with TemporaryDirectory() as name:
        folder = Path(name) / "pictures"
        draw(folder, count, side)
        script = Path(__file__).with_name("picture_speed_torch.py")
        for _ in range(ROUNDS):
            data = ImageFolder(folder, size=(side, side), threads=threads, memory=1 << 40, split={"training": 1.0})
            for epoch, way in enumerate((first, later)):
                began = time.perf_counter(), time.process_time()
                assert vary(data, threads, epoch) == count
                times[way].append((time.perf_counter() - began[0], time.process_time() - began[1]))
            command = [python, str(script), str(folder), str(BATCH), str(threads)]
            answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            times[torch].append((answer["seconds"], answer["processor"]))
    for way, pairs in times.items():
        seconds, processor = map(min, zip(*pairs, strict=True))
        print(f"{way}: {count / seconds:,.0f} pictures/s, {1000 * processor / count:.3f} ms of a processor each")


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
    if sys.argv[1:2] == ["--torch"]:
        compare(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(*map(int, sys.argv[1:]))
