"""Networks from files of arrays: what `sigma export` wrote is read back, layer state included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_export_arrays import Npz, SafeTensors
from sigma_initialisers import FromFile, from_file
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import Adam
from sigma_run import Trained, load
from sigma_run.config.examination import examine
from sigma_training.trainer import NetworkTrainer

DRAWN = np.random.default_rng(0)
X, SEQUENCES = DRAWN.normal(2.0, 3.0, (48, 5)).astype("float32"), DRAWN.normal(size=(48, 6, 5)).astype("float32")
LABELS = DRAWN.integers(0, 3, 48)
NORMED = "input(5) + dense(8) + batch_norm() + output(3) + softmax_cross_entropy()"
CARRIED = "input(6, 5) + lstm(4, carried=8) + batch_norm() + output(3) + softmax_cross_entropy()"
EXPORTERS = {"npz": Npz(), "safetensors": SafeTensors()}


def trainer(network: str, seed: int = 0, **settings: Any) -> NetworkTrainer:
    data = SEQUENCES if network == CARRIED else X
    common = {"batch_size": 8, "backend": "numpy", "optimiser": Adam(0.01), "iterator": "sequential"}
    made: NetworkTrainer = Environment("it", seed=seed).create_trainer(
        network=network, data=(data, LABELS), **common, **settings
    )
    return made


def trained(folder: Path, network: str = NORMED) -> Trained:
    made = trainer(network)
    made.fit(epochs=3)
    return load(made.save(folder / "first"))


def again(folder: Path, network: str, match: str, path: Path, **settings: Any) -> Trained:
    """Return a network of another seed, in which what a pattern matches has the values of a file."""
    rules = {"start": (match, {"type": "from_file", "path": str(path), **settings})}
    return load(trainer(network, seed=9, initialisers=rules).save(folder / "again"))


@pytest.mark.parametrize("kind", EXPORTERS)
@pytest.mark.parametrize("network", [NORMED, CARRIED])
def test_a_network_with_state_that_was_exported_predicts_the_same_bits_when_it_is_read(
    network: str, kind: str, tmp_path: Path
) -> None:
    first, samples = trained(tmp_path, network), SEQUENCES if network == CARRIED else X
    assert np.abs(first.parameters()["network.layers.2-batch_norm.scale"] - 1).max() > 0
    EXPORTERS[kind].export(first.inference(), tmp_path / f"x.{kind}")
    read = again(tmp_path, network, "**", tmp_path / f"x.{kind}")
    np.testing.assert_array_equal(read.predict(samples), first.predict(samples))
    np.testing.assert_array_equal(
        read.inference().arrays["2-batch_norm.mean"], first.inference().arrays["2-batch_norm.mean"]
    )


def test_a_rule_may_match_layer_state_alone_and_map_its_name(tmp_path: Path) -> None:
    wanted = np.arange(8.0, dtype="float32")
    np.savez(tmp_path / "x.npz", **{"norm.running_mean": wanted})
    names = {"2-batch_norm.mean": "norm.running_mean"}
    read = again(tmp_path, NORMED, "**.mean", tmp_path / "x.npz", map=names).inference().arrays
    np.testing.assert_array_equal(read["2-batch_norm.mean"], wanted)
    np.testing.assert_array_equal(read["2-batch_norm.variance"], np.ones(8))


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({}, r"2-batch_norm\.mean: .*x\.npz has no array '2-batch_norm\.mean'.*Give its name there in `map`"),
        ({"mean": np.zeros(7)}, r"2-batch_norm\.mean\(8,\): '2-batch_norm\.mean' of .* has shape \(7,\)"),
    ],
)
def test_a_file_without_the_state_of_a_layer_is_refused_when_a_run_begins_and_when_it_is_checked(
    state: dict[str, Any], told: str, tmp_path: Path
) -> None:
    arrays = trained(tmp_path).inference().arrays
    without = {name: x for name, x in arrays.items() if name not in ("2-batch_norm.mean", "2-batch_norm.variance")}
    np.savez(tmp_path / "x.npz", **without, **{f"2-batch_norm.{name}": x for name, x in state.items()})
    with pytest.raises(SigmaConfigError, match=told):
        again(tmp_path, NORMED, "**", tmp_path / "x.npz")
    made = trainer(NORMED, initialisers={"start": ("**", FromFile(tmp_path / "x.npz"))})
    with pytest.raises(SigmaConfigError, match=told):
        raise dict(examine(made))["initialisers", "start"]


def test_state_that_begins_each_epoch_with_a_number_is_not_read(tmp_path: Path) -> None:
    first = trained(tmp_path, CARRIED)
    arrays = first.inference().arrays
    assert np.abs(arrays["1-lstm.hidden"]).max() > 0
    np.savez(tmp_path / "x.npz", **{name: x for name, x in arrays.items() if name != "1-lstm.hidden"})
    read = again(tmp_path, CARRIED, "**", tmp_path / "x.npz")
    np.testing.assert_array_equal(read.inference().arrays["1-lstm.hidden"], np.zeros((8, 4)))
    np.testing.assert_array_equal(read.predict(SEQUENCES), first.predict(SEQUENCES))


def test_a_file_is_read_once_for_all_that_a_rule_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "x.npz", **trained(tmp_path).inference().arrays)
    found, read = list[Path](), from_file.read
    monkeypatch.setattr(from_file, "read", lambda path: found.append(path) or read(path))
    rules = {"start": ("**", {"type": "from_file", "path": str(tmp_path / "x.npz")})}
    trainer(NORMED, initialisers=rules).prepare()
    assert found == [tmp_path / "x.npz"]
