from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Arrays, Digits, Latent, Stream
from sigma_kernel import Environment, SigmaConfigError
from sigma_testing import DatasetSuite


class TestLatent(DatasetSuite):
    def make(self):
        rows = Stream([(i, i % 3) for i in range(10)], block_rows=4)
        return Latent(rows, shape=(2, 3))["training"]


def test_every_row_gets_normal_numbers_of_its_own():
    data = Latent(Digits(), shape=(8,))
    parts = {name: rows.block(0) for name, rows in data.items()}
    assert parts["training"]["noise"].shape == (len(data["training"]), 8)
    noise = np.concatenate([part["noise"] for part in parts.values()])
    assert len(np.unique(noise)) > 0.999 * noise.size
    assert abs(noise.mean()) < 5 / noise.size**0.5
    assert abs(noise.std() - 1) < 5 / (2 * noise.size) ** 0.5
    for name, rows in Digits().items():
        assert parts[name].keys() == {"inputs", "targets", "noise"}
        np.testing.assert_array_equal(parts[name]["inputs"], rows.block(0)["inputs"])
    assert data.classes == Digits().classes


def test_the_seed_decides_the_numbers():
    def drawn(**settings):
        return Latent(Digits(), **settings)["validation"].block(0)["noise"].tobytes()

    assert drawn() == drawn(seed=0) != drawn(seed=1)


def test_words_and_frames_of_the_data_set_are_read_as_ever():
    rows = Arrays(inputs=np.arange(6.0).reshape(6, 1), targets=["b", "a", "b", "a", "b", "a"])
    with Environment("words") as sigma:
        trainer = sigma.create_trainer(
            data={"type": "latent", "of": rows, "shape": (2,)},
            network='concat(input(1), input(2, section="noise")) + output(2) + softmax_cross_entropy()',
            optimiser="adam",
            epochs=1,
        )
        trainer.fit()
        found = trainer.classify({"inputs": np.ones((3, 1)), "noise": np.zeros((3, 2))})
        assert {*found.tolist()} <= {"a", "b"}


@pytest.mark.parametrize("wrong", [{"shape": ()}, {"shape": (0,)}, {"section": ""}, {"seed": -1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SigmaConfigError, match=r"Latent\.(shape|section|seed): must"):
        Latent(Digits(), **wrong)


def test_a_section_that_is_there_already_is_not_replaced():
    with pytest.raises(SigmaConfigError, match=r"Latent\.section: the data has a section 'targets'\. Choose another"):
        Latent(Digits(), section="targets")["training"]
