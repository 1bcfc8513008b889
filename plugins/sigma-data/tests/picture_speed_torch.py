"""Compare with torch: python picture_speed_torch.py FOLDER [BATCH] [WORKERS], in an environment with torchvision.

Prints as JSON the seconds that a DataLoader with torchvision's transforms takes to decode, crop and flip JPEGs.
`picture_speed.py --torch PYTHON` runs it; PYTHON is the interpreter of that environment.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision import __version__, transforms
from torchvision.datasets import ImageFolder

PADDING = 16  # as in picture_speed.py


def main(folder: str, batch: int = 64, workers: int = 2) -> None:
    """Read all pictures once, from the start of the workers to the last batch."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = ImageFolder(folder)
    side = data[0][0].size[0]
    data.transform = transforms.Compose(
        [transforms.RandomCrop(side, PADDING), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    )
    loader = DataLoader(data, batch, shuffle=True, num_workers=workers)
    began = time.perf_counter(), read_processor_time()
    total = sum(len(labels) for _, labels in loader)
    del loader
    seconds, processor = time.perf_counter() - began[0], read_processor_time() - began[1]
    versions = {"torch": torch.__version__, "torchvision": __version__}
    print(json.dumps({"pictures": total, "seconds": seconds, "processor": processor, **versions}))


def read_processor_time() -> float:
    """Return the seconds of processors that this process and the workers that have ended took."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
