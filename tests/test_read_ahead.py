"""Pictures that are read before training needs them: no more bytes of them than the memory of the data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sigma_data import Flip, ImageFolder
from sigma_data.pictures import blocks
from sigma_kernel import Environment
from sigma_testing import state_bytes

pytestmark = pytest.mark.rooms
SIDE, PICTURES, PER_BLOCK = 64, 60, 6
PIXELS = PER_BLOCK * 3 * SIDE * SIDE * 4  # bytes of the pictures of a block, as floats
BLOCK = PIXELS + PER_BLOCK * 4  # with their classes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of pictures of which six are a block."""
    monkeypatch.setattr(blocks, "PREPARED", PIXELS)
    draws = np.random.default_rng(0)
    for number in range(PICTURES):
        path = tmp_path / "pictures" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(path)
    return tmp_path / "pictures"


def train(folder: Path, memory: int, augmentations: list[Any]) -> tuple[int, dict[str, bytes]]:
    """Return the most bytes that were ready ahead of the first iterations, and the state after two epochs."""
    data = ImageFolder(folder, size=(SIDE, SIDE), split={"training": 1.0}, memory=memory, cache=folder.parent / "cache")
    with Environment("ahead", seed=1) as sigma:
        trainer: Any = sigma.create_trainer(
            data=data, network="input() + flatten() + dense(2) + softmax_cross_entropy()", optimiser="adam",
            batch_size=PER_BLOCK, augmentations=augmentations,
        )  # fmt: skip
        feed, most = trainer.session.setup.feed, 0
        cursor = feed.start()
        for _ in range(4):
            batches = feed.next_batches(cursor, 1)
            ready = [future.result() for future in feed._blocks._following.values()]
            most = max(most, sum(values.nbytes for block in ready for values in block.values()))
            cursor = feed.advance(cursor, batches, 1)
        trainer.fit(epochs=2)
        return most, state_bytes(trainer)


@pytest.mark.parametrize("augmentations", [[], [Flip()]])
def test_as_many_bytes_are_read_ahead_as_there_is_memory(folder, augmentations):
    ways = {BLOCK - 1: 0, BLOCK: BLOCK, 2 * BLOCK - 1: BLOCK, 2 * BLOCK: BLOCK * (2 if augmentations else 1)}
    trained = [train(folder, memory, augmentations) for memory in ways]
    assert [ahead for ahead, _ in trained] == [*ways.values()]
    assert all(state == trained[0][1] for _, state in trained)
