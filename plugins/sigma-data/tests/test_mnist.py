from __future__ import annotations

import gzip
import struct
from hashlib import sha256

import numpy as np
import pytest

from sigma_data import Mnist
from sigma_data.datasets import mnist
from sigma_kernel import SigmaDataError

IMAGES = np.arange(5 * 28 * 28, dtype=np.uint32).reshape(5, 28, 28).astype(np.uint8)
LABELS = np.array([3, 1, 4, 1, 5], np.uint8)


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


FILES = {
    "train-images-idx3-ubyte": idx(IMAGES), "train-labels-idx1-ubyte": idx(LABELS),
    "t10k-images-idx3-ubyte": idx(IMAGES[:2]), "t10k-labels-idx1-ubyte": idx(LABELS[:2]),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_folder_with_uncompressed_files_is_read(folder):
    digits = Mnist(folder=folder)
    assert {name: len(part) for name, part in digits.items()} == {"training": 5, "validation": 2}
    block = digits["training"].block(0)
    np.testing.assert_array_equal(block["inputs"], IMAGES.astype(np.float32) / np.float32(255))
    assert block["inputs"].dtype == np.float32
    assert block["targets"].dtype == np.int32
    assert block["targets"].tolist() == LABELS.tolist()
    assert digits.classes == tuple(range(10))


def test_a_folder_with_compressed_files_is_read(tmp_path):
    for name, content in FILES.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    assert len(Mnist(folder=tmp_path)["training"]) == 5


def test_the_files_are_downloaded_from_the_first_mirror_that_has_them(server, tmp_path, monkeypatch):
    for name, content in FILES.items():
        server.files[f"/second/{name}.gz"] = gzip.compress(content, mtime=0)
        monkeypatch.setitem(mnist.HASHES, name, sha256(gzip.compress(content, mtime=0)).hexdigest())
    mirrors = (f"{server.address}/first/", f"{server.address}/second")
    assert len(Mnist(cache=tmp_path, mirrors=mirrors)["validation"]) == 2
    assert len(server.asked) == 8
    assert len(Mnist(cache=tmp_path, mirrors=mirrors)["training"]) == 5
    assert len(server.asked) == 8


def test_a_mirror_with_other_files_is_rejected_by_its_checksum(server, tmp_path):
    for name, content in FILES.items():
        server.files[f"/{name}.gz"] = gzip.compress(content)
    with pytest.raises(SigmaDataError, match="does not match the known hash"):
        Mnist(cache=tmp_path, mirrors=(server.address,))["training"]


def test_nothing_is_downloaded_before_it_is_used():
    assert list(Mnist(mirrors=("http://127.0.0.1:9/",))) == ["training", "validation"]


def test_a_missing_file_is_named(folder):
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(SigmaDataError, match=r"t10k-labels-idx1-ubyte\.gz: there is no such file"):
        Mnist(folder=folder)["training"]


def test_a_file_of_another_shape_is_named(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(FILES["t10k-images-idx3-ubyte"])
    with pytest.raises(SigmaDataError, match="train-labels-idx1-ubyte: holds uint8 of shape .* bytes with 1 axes"):
        Mnist(folder=folder)["training"]


def test_images_without_labels_are_reported(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(LABELS[:4]))
    with pytest.raises(SigmaDataError, match="different numbers of rows: 'inputs' 5, 'targets' 4"):
        Mnist(folder=folder)["training"]


def test_a_truncated_file_is_named(folder):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(FILES["train-images-idx3-ubyte"])[:-100])
    (folder / "train-images-idx3-ubyte").unlink()
    with pytest.raises(SigmaDataError, match=r"train-images-idx3-ubyte\.gz: damaged or cut off after"):
        Mnist(folder=folder)["training"]
