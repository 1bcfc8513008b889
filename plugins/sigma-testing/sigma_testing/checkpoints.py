"""Write checkpoints with given arrays, and read their scores, without training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.network.network import LAYERS
from sigma_store.checkpoints.store import list_checkpoints, read, write


def save_checkpoint(
    run: Path, arrays: Mapping[str, np.ndarray], trainer: str = "trainer", iteration: int = 100
) -> Path:
    """Write a checkpoint with these parameters, by address, to a run folder; return its directory."""
    held = {LAYERS + address: value for address, value in arrays.items()}
    folder = run / "checkpoints" / trainer / str(iteration)
    return write(folder, Checkpoint({**held, "optimiser.step": np.array(3)}, {}))


def saved_scores(run: Path, trainer: str = "trainer") -> dict[int, float | None]:
    """Return the scores of a run's checkpoints by iteration."""
    return {int(path.name): read(path).score for path in list_checkpoints(run, trainer)}
