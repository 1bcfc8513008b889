"""``sigma export``: a trained network in the format of another program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel import (
    Environment,
    Exporter,
    Inference,
    Preprocessor,
    SigmaConfigError,
    SigmaDataError,
    SigmaPluginError,
)
from sigma_kernel.graph import Graph, interpret, numpy_namespace, symbol
from sigma_run import load
from sigma_run.launcher import main
from sigma_run.launcher.export import export_network
from sigma_testing import inference

TEXT = """
format = 1
[run]
name = "small"
backend = "numpy"
[data]
dataset = "iris"
preprocessors.scale = "standardise"
[network]
architecture = 'input(4) + dense(5, activation="tanh") + dropout(0.2) + output(3) + softmax_cross_entropy()'
[trainer]
optimiser = "adam"
epochs = 2
"""
pytestmark = pytest.mark.rooms


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "small.toml").write_text(TEXT)
    assert main(["run", str(folder / "small.toml"), "--set", f"run.folder='{folder}'", "--quiet"]) == 0
    return next(path for path in folder.iterdir() if path.is_dir())


def test_a_file_holds_the_parameters_by_address(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), str(tmp_path / "small.npz")]) == 0
    parameters = load(run).parameters()
    with np.load(tmp_path / "small.npz") as found:
        for address, values in parameters.items():
            np.testing.assert_array_equal(found[address.removeprefix("network.layers.")], values)
        assert len(found) == len(parameters) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["small.npz"]


def test_an_exporter_receives_the_graph_that_predicts(run: Path) -> None:
    model, rows = load(run), np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    network = model.inference()
    step = network.step(6)
    prepared = model._preparation()({"inputs": rows})["inputs"].astype(np.float32)
    state = [network.arrays[name.removeprefix("network.layers.")] for name in step.state]
    (found,) = interpret(step.graph, numpy_namespace())(*state, prepared, *(network.live[name] for name in step.steer))
    np.testing.assert_array_equal(found, model.predict(rows))
    assert network.classes == ("setosa", "versicolor", "virginica")
    assert network.architecture.startswith("sigma-layers:input(4) + sigma-layers:dense(5")


def test_an_exporter_receives_what_comes_before_the_network(run: Path) -> None:
    network, rows = load(run).inference(), np.random.default_rng(1).normal(size=(6, 4))
    assert network.samples == {"inputs": ((4,), "float32")}
    assert network.origin == f"{run.name}/checkpoints/trainer/4"
    ((name, (step, state)),) = network.preprocessors.items()
    assert (name, step.section) == ("scale", "inputs")
    values = symbol(rows.shape, "float64")
    (found,) = interpret(Graph((values,), (step.graph(values, state),)), numpy_namespace())(rows)
    np.testing.assert_array_equal(found, step.apply(rows, state))


@frozen
class Plain(Preprocessor):
    section: str = "inputs"

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(values, np.int64)


def test_a_preprocessor_without_a_graph_says_so() -> None:
    with pytest.raises(SigmaConfigError, match=r"Plain does not say what it computes as a graph: it has no method"):
        Plain().graph(symbol((2, 3)), {})


def test_a_network_is_exported_for_the_type_that_its_preprocessors_return(tmp_path: Path) -> None:
    sigma = Environment("bytes", folder=tmp_path, seed=0)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 4), np.uint8)
    trainer = sigma.create_trainer(
        data=(pixels, np.arange(8) % 3), network="input(4) + output(3) + softmax_cross_entropy()", batch_size=4,
        backend="numpy", optimiser={"type": "gradient_descent", "learning_rate": 0.01}, epochs=1,
    )  # fmt: skip
    sigma.run()
    for path in (sigma.run_folder, trainer.save(tmp_path / "saved")):
        assert path is not None
        network = load(path).inference()
        assert network.samples == {"inputs": ((4,), "uint8")}
        step = network.step(2)
        assert step.graph.inputs[len(step.state)].dtype == "int32"


def test_an_exporter_that_reads_no_files_says_so() -> None:
    with pytest.raises(SigmaDataError, match=r"^a\.x: .*Half only writes such files\. Choose another"):
        Half().arrays(Path("a.x"))


def test_nothing_is_overwritten_without_force(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.npz"
    file.write_text("kept")
    assert main(["export", str(run), str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: already exists. Pass --force to overwrite it.\n"
    assert file.read_text() == "kept"
    assert main(["export", str(run), str(file), "--force"]) == 0
    assert file.read_bytes()[:2] == b"PK"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["model"], 2, "model: has no extension that names an exporter. Add one, or pass --as: npz, safetensors.\n"),
        (["model.npy"], 2, "exporter 'npy': no plugin offers it. Did you mean 'npz'?\n"),
        (
            ["model.onnx"],
            3,
            "sigma-export-onnx offers it, but is not installed. python -m pip install ",
        ),
        (["none/model.npz"], 2, "none/model.npz: 'none' is not a directory. Create it first.\n"),
        (["model.npz", "--checkpoint", "7"], 1, "has no checkpoint 7 of 'trainer'"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run), *given]) == code
    assert message in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_an_exporter_may_have_settings(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "weights")
    assert main(["export", str(run), file, "--as", "{ type = 'npz' }"]) == 0
    with np.load(file) as found:
        assert len(found) == 4
    capsys.readouterr()
    for table, message in (
        ("{ type = 'npz', level = 9 }", "level"),
        ("{ type = ", "--as: Invalid value (at "),
        ("{ level = 9 }", "type"),
    ):
        assert main(["export", str(run), file, "--as", table, "--force"]) == 2
        assert message in capsys.readouterr().err


def test_the_format_may_be_named(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), str(tmp_path / "weights"), "--as", "npz"]) == 0
    assert (tmp_path / "weights").is_file()


class Half(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        path.write_text("half")
        raise SigmaConfigError("half: the format has no tanh. Use another.")


class Full(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        raise OSError(28, "No space left on device")


class Beside(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        path.write_text("graph")
        path.with_name("model.weights").write_text("weights")


class Elsewhere(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        path.with_name("other").write_text("graph")


class Nothing(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        pass


@pytest.mark.parametrize("exporter", [Elsewhere(), Nothing()])
def test_an_exporter_that_does_not_write_its_file_is_named(tmp_path: Path, exporter: Exporter) -> None:
    with pytest.raises(SigmaPluginError, match=rf"the exporter .*{type(exporter).__name__}' did not write it"):
        export_network(exporter, inference(), tmp_path / "model.x")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("exporter", "message"), [(Half(), "has no tanh"), (Full(), "cannot be written: No space left on device")]
)
def test_nothing_is_left_of_an_export_that_fails(tmp_path: Path, exporter: Exporter, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        export_network(exporter, inference(), tmp_path / "model.x")
    assert [*tmp_path.iterdir()] == []


def test_other_files_of_an_export_are_kept_beside_it(tmp_path: Path) -> None:
    made = export_network(Beside(), inference(), tmp_path / "model.x")
    assert made == [tmp_path / "model.x", tmp_path / "model.weights"]
    (tmp_path / "model.x").unlink()
    with pytest.raises(SigmaConfigError, match=r"model\.weights: already exists"):
        export_network(Beside(), inference(), tmp_path / "model.x")
    assert not (tmp_path / "model.x").exists()
