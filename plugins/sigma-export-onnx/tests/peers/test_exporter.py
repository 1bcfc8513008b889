"""The exporter as a component: files, external weights, and the command."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from attrs import evolve

pytest.importorskip("onnxruntime")

import onnxruntime

from sigma_export_onnx import Onnx
from sigma_export_onnx.writer import tensors
from sigma_kernel import Exporter, Inference, SigmaConfigError
from sigma_kernel.graph import Spec
from sigma_layers import BatchNorm, Dense
from sigma_run import load
from sigma_run.launcher import main
from sigma_testing import ExporterSuite

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


def test_small_tensors_stay_in_the_model_and_large_ones_follow_each_other_in_the_file(tmp_path: Path) -> None:
    network, path = alone(BatchNorm(), [Spec((300,))]), tmp_path / "it.onnx"
    small, large = np.float32([1.5]), np.arange(300, dtype=">f4")  # in the other order of bytes
    arrays = {**network.arrays, "0-it.mean": large.astype("<f4"), "0-it.variance": large.astype("<f4") + 1}
    Onnx(external=0).export(evolve(network, arrays=arrays), path)
    initial = {one.name: one for one in onnx.load(path, load_external_data=False).graph.initializer}
    told = [{x.key: x.value for x in one.external_data} for one in initial.values() if one.external_data]
    assert [(one["location"], int(one["offset"]), int(one["length"])) for one in told] == [
        ("it.onnx.data", 1200 * i, 1200) for i in range(len(told))
    ]
    assert (tmp_path / "it.onnx.data").stat().st_size == 1200 * len(told) == 4800
    assert all(one.HasField("raw_data") for one in initial.values() if not one.external_data)
    assert next(iter(tensors({"x": small}, None))).raw_data == b"\0\0\xc0?"
    with (tmp_path / "swapped").open("wb") as beside:
        list(tensors({"x": large}, beside))
    assert np.array_equal(np.fromfile(tmp_path / "swapped", "<f4"), np.arange(300))


def test_a_file_of_that_name_in_the_working_directory_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "it.onnx.data").write_bytes(b"other")
    (tmp_path / "apart").mkdir()
    monkeypatch.chdir(tmp_path)
    Onnx(external=0).export(alone(Dense(20), [Spec((30,))]), tmp_path / "apart" / "it.onnx")
    assert (tmp_path / "it.onnx.data").read_bytes() == b"other"
    assert (tmp_path / "apart" / "it.onnx.data").stat().st_size == 4 * 20 * 30


def test_parameters_in_a_model_have_a_limit() -> None:
    with pytest.raises(SigmaConfigError, match=r"external.* at most 2000000000"):
        Onnx(external=2_000_000_001)


def test_writing_beside_a_model_copies_one_array_at_a_time(tmp_path: Path) -> None:
    network = alone(Dense(2000), [Spec((2000,))])  # 16 MB
    tracemalloc.start()
    Onnx(external=0).export(network, tmp_path / "it.onnx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000


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
