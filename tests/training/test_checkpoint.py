"""Checkpoints are whole, verified, or refused."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel.errors import SigmaCheckpointError
from sigma_kernel.training import checkpoint
from sigma_kernel.training.checkpoint import ARRAYS, MANIFEST, SEAL, Checkpoint

STATE = Checkpoint(
    {"network.layers.0.weights": np.arange(6, dtype=np.float32).reshape(2, 3), "optimiser.step": np.array(7, np.int32)},
    {"clock": {"iteration": 7}, "hooks": {"stop": {"best": float("inf")}}},
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return checkpoint.write(tmp_path / "checkpoints" / "trainer" / "7", STATE)


def test_what_was_saved_is_read_back_to_the_bit(saved: Path) -> None:
    found = checkpoint.read(saved)
    assert found.values == STATE.values
    assert set(found.arrays) == set(STATE.arrays)
    for name, value in STATE.arrays.items():
        assert found.arrays[name].dtype == value.dtype
        assert found.arrays[name].shape == value.shape
        assert found.arrays[name].tobytes() == value.tobytes()


def test_nothing_but_the_three_files_is_left(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted([ARRAYS, MANIFEST, SEAL])
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_every_flipped_bit_is_detected(saved: Path, name: str) -> None:
    good = (saved / name).read_bytes()
    places = range(len(good)) if len(good) < 200 else np.random.default_rng(0).integers(0, len(good), 200)
    for place in places:
        for bit in (0, 7):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            (saved / name).write_bytes(bad)
            with pytest.raises(SigmaCheckpointError, match=str(saved)):
                checkpoint.read(saved)
    (saved / name).write_bytes(good)
    checkpoint.read(saved)


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST, SEAL])
def test_a_truncated_or_missing_file_is_named(saved: Path, name: str) -> None:
    good = (saved / name).read_bytes()
    for part in range(64):
        (saved / name).write_bytes(good[: len(good) * part // 64])
        with pytest.raises(SigmaCheckpointError, match=str(saved)):
            checkpoint.read(saved)
    (saved / name).unlink()
    with pytest.raises(SigmaCheckpointError, match=f"{name}: cannot be read"):
        checkpoint.read(saved)


def test_a_newer_format_is_refused_with_the_remedy(saved: Path) -> None:
    _reseal(saved, {**json.loads((saved / MANIFEST).read_text()), "format": 2})
    with pytest.raises(SigmaCheckpointError, match="Update sigma-kernel"):
        checkpoint.read(saved)


@pytest.mark.parametrize("manifest", [[], {}, {"format": 1, "files": 3, "values": {}}, "x"])
def test_a_sealed_manifest_that_is_none_is_refused(saved: Path, manifest: object) -> None:
    _reseal(saved, manifest)
    with pytest.raises(SigmaCheckpointError):
        checkpoint.read(saved)


def test_a_pickle_in_place_of_the_arrays_is_never_executed(saved: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (pytest.fail, ("it was executed",))

    data = pickle.dumps(Bomb())
    (saved / ARRAYS).write_bytes(data)
    manifest = json.loads((saved / MANIFEST).read_text())
    _reseal(saved, {**manifest, "files": {ARRAYS: checkpoint._digest(data)}})
    with pytest.raises(SigmaCheckpointError, match="cannot be read"):
        checkpoint.read(saved)


def test_a_failed_write_leaves_the_old_checkpoint_and_no_rest(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_put", full)
    with pytest.raises(SigmaCheckpointError, match="No space left"):
        checkpoint.write(saved, Checkpoint({}, {}))
    assert checkpoint.read(saved).values == STATE.values
    assert [path.name for path in saved.parent.iterdir()] == ["7"]


def test_the_newest_is_the_one_with_the_greatest_number(tmp_path: Path) -> None:
    for step in (9, 10, 100, 11):
        checkpoint.write(tmp_path / "checkpoints" / "trainer" / str(step), STATE)
    shutil.copytree(tmp_path / "checkpoints/trainer/100", tmp_path / "checkpoints/trainer/.101.1.part")
    assert checkpoint.newest(tmp_path).name == "100"


def test_a_folder_without_checkpoints_says_so(tmp_path: Path) -> None:
    with pytest.raises(SigmaCheckpointError, match="Is this a run folder"):
        checkpoint.newest(tmp_path)


def _reseal(folder: Path, manifest: object) -> None:
    text = json.dumps(manifest).encode()
    (folder / MANIFEST).write_bytes(text)
    (folder / SEAL).write_bytes(f"{checkpoint._digest(text)}  {MANIFEST}\n".encode())
