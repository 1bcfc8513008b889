"""The exporter as a component: files, external weights, and the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime

from sigma_export_onnx import Onnx
from sigma_kernel import Exporter, Inference, load
from sigma_kernel.graph import Spec
from sigma_kernel.launcher import main
from sigma_kernel.testing import ExporterSuite
from sigma_layers import Dense

from .running import alone, close, drawn, reference


class TestOnnx(ExporterSuite):
    def make(self) -> Exporter:
        return Onnx()


class TestOnnxWithExternalWeights(ExporterSuite):
    def make(self) -> Exporter:
        return Onnx(external=0)

    def network(self) -> Inference:
        return alone(Dense(20), [Spec((30,))])


SIZE = 4 * (20 * 30 + 20)  # bytes of its parameters


@pytest.mark.parametrize(("external", "names"), [(SIZE, ["it.onnx", "it.onnx.data"]), (SIZE + 1, ["it.onnx"])])
def test_large_parameters_are_written_beside_the_model(tmp_path: Path, external: int, names: list[str]) -> None:
    network, path = alone(Dense(20), [Spec((30,))]), tmp_path / "it.onnx"
    Onnx(external=external).export(network, path)
    onnx.checker.check_model(str(path), full_check=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == names
    assert (path.stat().st_size < SIZE) == (len(names) == 2)
    samples = drawn(network.step(1), 4)
    running = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    close(running.run(None, samples)[0], reference(network, samples)["it"])


def test_the_command_exports_a_run_and_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [f"run.folder='{tmp_path / 'runs'}'", "run.backend=numpy", "hooks.finish.when=epoch reaches 1"]
    assert main(["run", "iris", "--quiet", *(word for text in settings for word in ("--set", text))]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    file = tmp_path / "iris.onnx"
    assert main(["export", str(run), str(file)]) == 0
    flowers = np.random.default_rng(0).normal(5.0, 2.0, (7, 4)).astype(np.float32)
    running = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    close(running.run(None, {"inputs": flowers})[0], load(run).predict(flowers))
    about = running.get_modelmeta().custom_metadata_map
    assert about["classes"] == '["setosa", "versicolor", "virginica"]'
    assert about["run"] == f"{run.name}/checkpoints/trainer/8"
    prepared = tmp_path / "prepared.onnx"
    assert main(["export", str(run), str(prepared), "--as", "{ type = 'onnx', preprocessing = false }"]) == 0
    plain = onnxruntime.InferenceSession(str(prepared), providers=["CPUExecutionProvider"])
    model = load(run)
    close(plain.run(None, model._preparation()({"inputs": flowers}))[0], model.predict(flowers))
    assert plain.get_modelmeta().custom_metadata_map["preprocessors"] == "[]"
    whole = file.read_bytes()
    capsys.readouterr()
    assert main(["export", str(run), str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: already exists. Pass --force to overwrite it.\n"
    assert main(["export", str(run), str(file), "--force"]) == 0
    assert file.read_bytes() == whole
