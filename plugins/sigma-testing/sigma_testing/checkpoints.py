"""Write checkpoints with given arrays, and read those of run folders, without training."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sigma_kernel.contracts.storing import Checkpoint, Log, Use
from sigma_kernel.network.network import LAYERS
from sigma_store.checkpoints.store import list_checkpoints, read, write
from sigma_store.checkpoints.writer import Saver


def save_checkpoint(
    run: Path, arrays: Mapping[str, np.ndarray], trainer: str = "trainer", iteration: int = 100
) -> Path:
    """Write a checkpoint with these parameters, by address, to a run folder; return its directory."""
    held = {LAYERS + address: value for address, value in arrays.items()}
    folder = run / "checkpoints" / trainer / str(iteration)
    return write(folder, Checkpoint({**held, "optimiser.step": np.array(3)}, {}))


def newest_checkpoint(
    run: Path, trainer: str = "trainer", log: Log = warnings.warn, use: Use = lambda label, checkpoint: None
) -> tuple[Path, Checkpoint]:
    """Return the directory of a run folder's newest intact checkpoint that ``use`` accepts, and the checkpoint."""
    checkpoints = Saver(run / "checkpoints" / trainer, log)
    label, checkpoint = checkpoints.newest(log, use)
    return checkpoints.place(label), checkpoint


def saved_scores(run: Path, trainer: str = "trainer") -> dict[int, float | None]:
    """Return the scores of a run's checkpoints by iteration."""
    return {int(path.name): read(path).score for path in list_checkpoints(run, trainer)}
