"""Parameters from ONNX models by address: round trips, models of others, and files that are not to be trusted."""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime")

from sigma_export_onnx import Onnx
from sigma_initialisers import FromFile
from sigma_kernel import Environment, SigmaConfigError, SigmaDataError, SigmaError
from sigma_kernel.contracts import Parameter
from sigma_kernel.graph import Spec
from sigma_layers import Dense
from sigma_run import Trained, load
from sigma_testing import draw

from .running import alone
from .test_networks import trained

NAME = "2-dense.weights"  # of the suite of initialisers
DRAW = np.random.default_rng(0)
WEIGHTS = DRAW.normal(size=(2, 3)).astype(np.float32)
CASES = {
    "dense": ((5, 3), "float32", "input(5, 3) + flatten() + dense(6, activation='tanh')"),
    "convolution": ((2, 8, 7), "float32", "input(2, 8, 7) + conv2d(4, 3) + max_pool(2) + flatten()"),
    "recurrent": ((5, 3), "float32", "input(5, 3) + lstm(4, sequence=true) + gru(3)"),
    "state": ((2, 8, 7), "float32", "input(2, 8, 7) + conv2d(4, 3) + batch_norm() + flatten() + batch_norm()"),
    "state of an epoch": ((5, 3), "float32", "input(5, 3) + gru(4, carried=8) + batch_norm()"),
    "attention": ((6,), "int32", "input(6, dtype='int32') + embedding(9, 4) + attention(2) + layer_norm() + flatten()"),
}


def fresh(folder: Path, network: str, data: Any, path: Path) -> Trained:
    """Return a network that has not been trained, with the parameters and the layer state of a file."""
    sigma = Environment("fresh", folder=folder, seed=99)
    trainer = sigma.create_trainer(
        data=data, network=network, batch_size=8, backend="numpy", iterator="sequential",
        optimiser={"type": "gradient_descent", "learning_rate": 0.01},
        initialisers={"all": ("**", {"type": "from_file", "path": str(path)})},
    )  # fmt: skip
    return load(trainer.save(folder / "fresh"))


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_fresh_network_with_exported_parameters_predicts_the_same_bits(
    case: str, external: bool, tmp_path: Path
) -> None:
    shape, dtype, chain = CASES[case]
    samples = DRAW.integers(0, 9, (24, *shape)).astype(dtype) if dtype == "int32" else DRAW.normal(size=(24, *shape))
    data = {"inputs": samples, "targets": DRAW.integers(0, 3, 24)}
    network = f"{chain} + output(3) + softmax_cross_entropy()"
    model = trained(tmp_path / "first", network, data, iterator="sequential")
    path = tmp_path / "it.onnx"
    Onnx(external=0 if external else 10**9).export(model.inference(), path)
    again = fresh(tmp_path / "second", network, data, path)
    np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
    for address, values in model.parameters().items():
        np.testing.assert_array_equal(again.parameters()[address], values)


def written(path: Path, *tensors: Any) -> Path:
    """Write a model that holds these initialisers."""
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    node = helper.make_node("Identity", [tensors[0].name if tensors else ""], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", [], [y], [*tensors]))
    path.write_bytes(model.SerializeToString())
    return path


def made(array: np.ndarray, kind: int, raw: bool) -> Any:
    """Return an initialiser that has its numbers as bytes, or in a field of their type."""
    return (
        numpy_helper.from_array(array, NAME)
        if raw
        else helper.make_tensor(NAME, kind, array.shape, array.ravel().tolist())
    )


def values(path: Path) -> np.ndarray:
    return draw(FromFile(path), Parameter((2, 3)))


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT32", "INT64", "UINT8"])
@pytest.mark.parametrize("raw", [False, True])
def test_numbers_of_every_type_are_read(kind: str, raw: bool, tmp_path: Path) -> None:
    numbers = np.array([[1.0, 2.0, 3.0], [0.0, 100.0, 7.0]])
    number = getattr(TensorProto, kind)
    array = numbers.astype(helper.tensor_dtype_to_np_dtype(number))
    tensor = made(array, number, raw)
    np.testing.assert_array_equal(values(written(tmp_path / "x.onnx", tensor)), numbers)


def test_what_has_another_name_shape_or_type_is_refused_as_in_other_files(tmp_path: Path) -> None:
    path = written(tmp_path / "x.onnx", numpy_helper.from_array(WEIGHTS, "encoder.weight"))
    np.testing.assert_array_equal(draw(FromFile(path, map={NAME: "encoder.weight"}), Parameter((2, 3))), WEIGHTS)
    with pytest.raises(SigmaConfigError, match=rf"x\.onnx has no array '{NAME}'.* Give its name there in `map`"):
        values(path)
    with pytest.raises(SigmaConfigError, match=r"has shape \(3, 2\)"):
        values(written(path, numpy_helper.from_array(WEIGHTS.T.copy(), NAME)))
    with pytest.raises(SigmaConfigError, match="holds bool. Give real numbers"):
        values(written(path, numpy_helper.from_array(WEIGHTS > 0, NAME)))
    with pytest.raises(SigmaConfigError, match="has no array"):
        values(written(path, helper.make_tensor(NAME, TensorProto.STRING, (1,), [b"text"])))
    with pytest.raises(SigmaDataError, match="has no initialisers"):
        values(written(path))


class Harmful:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was loaded",))


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    with pytest.raises(SigmaDataError, match=r"x\.onnx: cannot be read: No such file or directory\. Check the path"):
        values(path)
    whole = written(path, numpy_helper.from_array(WEIGHTS, NAME)).read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:-1], pickle.dumps(Harmful()), b"\xff" * 40, b"PK\x03\x04 no"):
        path.write_bytes(broken)
        with pytest.raises(SigmaDataError, match=r"x\.onnx: is not an ONNX model, or damaged"):
            values(path)
    path.write_bytes(b"")
    with pytest.raises(SigmaDataError, match=r"x\.onnx: has no initialisers"):
        values(path)


@pytest.mark.parametrize("dims", [(2, 4), (2, 2), (2**40, 2**30), (-2, -3)])
@pytest.mark.parametrize("raw", [False, True])
def test_a_model_that_declares_another_size_than_it_holds_is_refused(
    dims: tuple[int, ...], raw: bool, tmp_path: Path
) -> None:
    tensor = made(WEIGHTS, TensorProto.FLOAT, raw)
    del tensor.dims[:]
    tensor.dims.extend(dims)
    with pytest.raises(SigmaDataError, match=rf"x\.onnx: initialiser '{NAME}': declares .* The file is damaged"):
        values(written(tmp_path / "x.onnx", tensor))


# -- external data -----------------------------------------------------------------------------------------------------
def beside(folder: Path, location: str, dims: tuple[int, ...] = (2, 3), **sizes: Any) -> Path:
    """Write a model whose initialiser is in another file."""
    tensor = TensorProto(name=NAME, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **sizes}.items():
        tensor.external_data.add(key=key, value=str(value))
    return written(folder / "x.onnx", tensor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a model, with weights below and beside it."""
    (tmp_path / "model" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for place in ("model", "model/below", "elsewhere"):
        (tmp_path / place / "weights").write_bytes(b"1234" + WEIGHTS.tobytes())
    return tmp_path / "model"


def test_external_data_below_the_directory_of_the_model_are_read(folder: Path) -> None:
    for location in ("weights", "below/weights", "./weights"):
        for sizes in ({"offset": 4, "length": 24}, {"offset": 4}):
            np.testing.assert_array_equal(values(beside(folder, location, **sizes)), WEIGHTS)


OUTSIDE = [
    "../elsewhere/weights", "below/../../elsewhere/weights", "{}/elsewhere/weights", "", "..\\elsewhere\\weights",
    "C:\\weights", "below/../weights", "wei\0ghts",
]  # fmt: skip


@pytest.mark.parametrize("place", OUTSIDE)
def test_external_data_outside_of_the_directory_of_the_model_are_refused(place: str, folder: Path) -> None:
    with pytest.raises(SigmaDataError, match=r"outside of the model's directory\. Such models are not read"):
        values(beside(folder, place.format(folder.parent), offset=4, length=24))


def test_external_data_behind_links_are_refused(folder: Path) -> None:
    (folder / "link").symlink_to("weights")
    (folder / "way").symlink_to(folder.parent / "elsewhere", target_is_directory=True)
    (folder / "nowhere").symlink_to("missing")
    for location in ("link", "way/weights", "nowhere"):
        with pytest.raises(SigmaDataError, match=rf"its data, '{location}', are behind a link\. Copy the file"):
            values(beside(folder, location, offset=4, length=24))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"offset": 4, "length": 25}, "declares bytes 4 to 29 of weights, which has 28"),
        ({"offset": 0, "length": 2**60}, f"declares bytes 0 to {2**60} of weights"),
        ({"offset": 2**60}, "declares bytes"),
        ({"offset": 0}, "declares 24 bytes and has 28"),
        ({"offset": 4, "length": 20}, "declares 24 bytes and has 20"),
        ({"offset": -4, "length": 24}, "are not byte counts"),
        ({"offset": "four", "length": 24}, "are not byte counts"),
        ({"offset": 4, "length": 24, "dims": (2**40, 2**30)}, "declares .* bytes and has 24"),
    ],
)
def test_external_data_of_another_size_are_refused(sizes: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(SigmaDataError, match=message):
        values(beside(folder, "weights", **sizes))


def shared(name: str, offset: int) -> Any:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=(2, 3), data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights", "offset": offset, "length": 24}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.mark.parametrize("offsets", [(4, 4), (0, 4)])
def test_external_data_that_are_declared_more_than_once_are_refused(offsets: tuple[int, int], folder: Path) -> None:
    path = written(folder / "x.onnx", *(shared(name, at) for name, at in zip((NAME, "other"), offsets, strict=True)))
    with pytest.raises(SigmaDataError, match=r"'other': its bytes of weights overlap those of other initialisers\."):
        values(path)


def test_two_initialisers_of_a_name_are_refused(tmp_path: Path) -> None:
    one = numpy_helper.from_array(WEIGHTS, NAME)
    with pytest.raises(SigmaDataError, match=rf"x\.onnx: has two initialisers '{NAME}'\. The file is damaged"):
        values(written(tmp_path / "x.onnx", one, one))


def varied(number: int, data: bytes) -> bytes:
    """Return a field of a message that holds bytes."""
    size, length = len(data), b""
    while size > 127:
        size, length = size >> 7, length + bytes([size & 127 | 128])
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


@pytest.mark.parametrize("depth", [150, 5000])
def test_graphs_in_graphs_without_end_are_refused(depth: int, tmp_path: Path) -> None:
    graph = b""
    for _ in range(depth):
        graph = varied(1, varied(5, varied(6, graph)))  # a node, its attribute, the graph of that
    (tmp_path / "x.onnx").write_bytes(varied(7, graph))
    with pytest.raises(SigmaDataError, match=r"x\.onnx: is not an ONNX model, or damaged"):
        values(tmp_path / "x.onnx")


@pytest.mark.parametrize("dims", [(2**32, 2**32), (2**63 - 1, 2), (0, 2**62), (1,) * 70 + (2, 3)])
@pytest.mark.parametrize("raw", [False, True])
def test_shapes_that_no_array_has_are_refused(dims: tuple[int, ...], raw: bool, tmp_path: Path) -> None:
    tensor = made(WEIGHTS, TensorProto.FLOAT, raw)
    del tensor.dims[:]
    tensor.dims.extend(dims)
    with pytest.raises(SigmaDataError, match=r"x\.onnx: .*(declares|is damaged)"):
        values(written(tmp_path / "x.onnx", tensor))


def test_external_data_that_are_missing_or_no_file_are_named(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for location in ("missing", "below", "pipe"):
        with pytest.raises(SigmaDataError, match=rf"its data, '{location}', are missing\. Copy the file"):
            values(beside(folder, location))


def test_nothing_but_sigma_errors_comes_of_damaged_models(tmp_path: Path) -> None:
    path = tmp_path / "it.onnx"
    Onnx().export(alone(Dense(3), [Spec((2,))]), path)
    whole, random = path.read_bytes(), np.random.default_rng(1)
    for _ in range(300):
        changed = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            changed[place] = random.integers(0, 256)
        path.write_bytes(changed)
        with suppress(SigmaError):
            FromFile(path).arrays()


def test_initialisers_are_those_that_onnx_reads(tmp_path: Path) -> None:
    path = tmp_path / "it.onnx"
    network = alone(Dense(40), [Spec((30,))])
    Onnx(external=0).export(network, path)
    wanted = {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    found = Onnx().arrays(path)
    assert found.keys() == wanted.keys() >= network.arrays.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
