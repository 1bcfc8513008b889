"""Any damage is detected before a checkpoint is used, and the previous one is used instead."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store.checkpoints import store as checkpoint
from sigma_store.checkpoints.store import ARRAYS, MANIFEST, SEAL
from sigma_testing.checkpoints import newest_checkpoint
from tests.reliability.amount import amount

FLIPS = amount(1_000, 1_000, 20_000)
FILES = (ARRAYS, MANIFEST, SEAL)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder with two checkpoints of a small network."""
    run = tmp_path_factory.mktemp("run")
    draw = np.random.default_rng(0)
    arrays = {f"network.layers.{n}.weights": draw.standard_normal((9, 7)).astype(np.float32) for n in range(4)}
    for number in (10, 20):
        clock, hooks = {"iteration": number, "epoch": 0}, {"stop": {"best": 0.25}}
        values = {"clock": clock, "hooks": hooks, "live": {"learning_rate": 0.1}}
        checkpoint.write(
            run / "checkpoints" / "trainer" / str(number), Checkpoint(arrays, values, {"backend": "numpy"})
        )
    return run


def falls_back(run: Path) -> bool:
    """Return whether the newest checkpoint is refused by name, and the one before is used."""
    newest, said = checkpoint.list_checkpoints(run, "trainer")[-1], []
    with pytest.raises(SigmaCheckpointError, match=str(newest)):
        checkpoint.read(newest)
    path, _ = newest_checkpoint(run, log=said.append)
    return path.name == "10" and len(said) == 1 and str(newest) in said[0]


def damaged(path: Path, data: bytes, run: Path) -> bool:
    good = path.read_bytes()
    path.write_bytes(data)
    try:
        return falls_back(run)
    finally:
        path.write_bytes(good)


def test_each_flipped_bit_is_detected_before_use(run: Path) -> None:
    folder, draw, detected = checkpoint.list_checkpoints(run, "trainer")[-1], random.Random(0), 0
    files = {name: (folder / name).read_bytes() for name in FILES}
    for number in range(FLIPS):
        name = FILES[number % 3]
        data = bytearray(files[name])
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        detected += damaged(folder / name, bytes(data), run)
    assert detected == FLIPS
    assert newest_checkpoint(run, log=pytest.fail)[0] == folder


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_truncated_anywhere_is_detected(run: Path, name: str) -> None:
    path = checkpoint.list_checkpoints(run, "trainer")[-1] / name
    data = path.read_bytes()
    assert all(damaged(path, data[: len(data) * part // 64], run) for part in range(64))
