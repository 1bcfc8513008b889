"""Compute UMAP in a process of its own: an ``.npz`` from stdin, positions as ``.npy`` to stdout."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

LOWEST = 19  # of the priority of a process
NEIGHBOURS = 15  # by default, as in umap-learn


def main() -> None:
    """Read values, positions to begin with and a seed; write the positions."""
    os.nice(LOWEST)
    given = np.load(BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    values, seed = given["values"], int(given["seed"])
    umap: Any = import_module("umap")  # an extra
    neighbours = max(2, min(NEIGHBOURS, len(values) - 1))
    model = umap.UMAP(n_components=2, n_neighbors=neighbours, init=given["begin"], random_state=seed, n_jobs=1)
    answer = BytesIO()
    np.save(answer, np.asarray(model.fit_transform(values), np.float32))
    sys.stdout.buffer.write(answer.getvalue())


if __name__ == "__main__":
    main()
