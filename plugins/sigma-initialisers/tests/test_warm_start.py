from __future__ import annotations

import shutil

import numpy as np
import pytest

from sigma_initialisers import WarmStart
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.graph import Draw
from sigma_testing import InitialiserSuite, save_checkpoint

WEIGHTS = np.arange(6.0).reshape(2, 3) / 7.0


def values(initialiser, address="2-dense.weights", shape=(2, 3)):
    return initialiser.values(address, Parameter(shape), Draw(0, 0))


class TestWarmStart(InitialiserSuite):
    parameters = (Parameter((2, 3)),)

    @pytest.fixture(autouse=True)
    def _run(self, tmp_path):
        save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS})
        self.run = tmp_path

    def make(self):
        return WarmStart(self.run)


def test_a_warm_start_restores_values_bit_for_bit(tmp_path):
    save_checkpoint(tmp_path, {"1-dense.weights": WEIGHTS + 1, "2-dense.weights": WEIGHTS})
    assert values(WarmStart(str(tmp_path))).tobytes() == WEIGHTS.tobytes()


def test_float32_is_converted_to_float64_exactly(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS.astype(np.float32)})
    assert np.array_equal(values(WarmStart(tmp_path)), WEIGHTS.astype(np.float32).astype(np.float64))


def test_a_warm_start_uses_the_newest_checkpoint(tmp_path):
    for iteration in (9, 100, 20):
        save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS + iteration}, iteration=iteration)
    assert np.array_equal(values(WarmStart(tmp_path)), WEIGHTS + 100)


@pytest.mark.parametrize("where", [{"2-dense": "5-output"}, {"2-dense.weights": "5-output.weights", "2-dense": "?"}])
def test_a_warm_start_can_map_names_of_layers_and_parameters(tmp_path, where):
    save_checkpoint(tmp_path, {"5-output.weights": WEIGHTS})
    assert np.array_equal(values(WarmStart(tmp_path, map=where)), WEIGHTS)


def test_the_map_of_a_warm_start_matches_whole_names(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS})
    assert np.array_equal(values(WarmStart(tmp_path, map={"2-den": "nowhere", "2": "nowhere"})), WEIGHTS)


def test_a_missing_parameter_is_reported_with_similar_names(tmp_path):
    save_checkpoint(tmp_path, {"3-dense.weights": WEIGHTS})
    with pytest.raises(
        SigmaCheckpointError, match=r"2-dense.weights: .*Did you mean '3-dense.weights'\? Give its name"
    ):
        values(WarmStart(tmp_path))


def test_another_shape_is_refused_with_both_shapes(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS.T})
    with pytest.raises(
        SigmaConfigError, match=r"2-dense.weights\(2, 3\): .* shape \(3, 2\)\. Give the layers the same"
    ):
        values(WarmStart(tmp_path))


@pytest.mark.parametrize("what", ["nothing", "empty"])
def test_a_folder_without_checkpoints_is_refused(tmp_path, what):
    if what == "empty":
        (tmp_path / "checkpoints").mkdir()
    with pytest.raises(SigmaCheckpointError, match="checkpoints/trainer: holds no checkpoint"):
        values(WarmStart(tmp_path))


def test_with_several_trainers_one_must_be_chosen(tmp_path):
    for shift, name in enumerate(("critic", "artist")):
        save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS + shift}, trainer=name)
    with pytest.raises(SigmaConfigError, match=r"artist, critic\. Choose one: trainer = 'artist'"):
        values(WarmStart(tmp_path))
    assert np.array_equal(values(WarmStart(tmp_path, trainer="artist")), WEIGHTS + 1)


def test_the_only_trainer_need_not_be_named(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS}, trainer="critic")
    assert np.array_equal(values(WarmStart(tmp_path)), WEIGHTS)


def test_of_several_checkpoints_the_newest_intact_one_counts(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS}, iteration=1)
    (save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS + 2}, iteration=2) / "state.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match="2/state.safetensors: is damaged"):
        assert np.array_equal(values(WarmStart(tmp_path)), WEIGHTS)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    file = save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS}) / "state.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(SigmaCheckpointError, match="no intact checkpoint"):
        values(WarmStart(tmp_path))


def test_a_checkpoint_is_read_once_for_its_parameters_and_its_names(tmp_path):
    save_checkpoint(tmp_path, {"2-dense.weights": WEIGHTS})
    start = WarmStart(tmp_path)
    assert np.array_equal(values(start), WEIGHTS)
    shutil.rmtree(tmp_path / "checkpoints")
    assert start.learned == {"columns": {}, "classes": {"": []}}
    assert np.array_equal(values(start), WEIGHTS)
