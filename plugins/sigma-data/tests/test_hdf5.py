from __future__ import annotations

import gzip
import io
import sys
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest

from sigma_data import Compressed, File, Hdf5Reader, Records
from sigma_kernel import Reader, SigmaDataError, SigmaPluginError
from sigma_testing import ReaderSuite

IMAGES, LABELS = np.random.default_rng(0).normal(size=(50, 3, 4)), np.arange(50) % 3


def write(path: Path | io.BytesIO) -> Path | io.BytesIO:
    with h5py.File(path, "w") as file:
        file.create_dataset("train/x", data=IMAGES, chunks=(7, 3, 4), compression="gzip", shuffle=True)
        file.create_dataset("y", data=LABELS.astype(">i2"))
        file.create_dataset("on", data=LABELS > 1)
        file.create_dataset("names", data=np.array([b"cat", b"dog"] * 25))
    return path


class TestHdf5(ReaderSuite):
    def make(self) -> Reader:
        return Hdf5Reader()

    def data(self) -> bytes:
        file = io.BytesIO()
        write(file)
        return file.getvalue()


def test_datasets_are_read_as_arrays_with_names_of_sections(tmp_path):
    reader = Hdf5Reader({"inputs": "train/x", "targets": "/y"})
    arrays = reader.read(File(write(tmp_path / "x.h5")))
    np.testing.assert_array_equal(arrays["inputs"], IMAGES)
    np.testing.assert_array_equal(arrays["targets"], LABELS)
    assert arrays["targets"].dtype == np.int16
    data = Records(File(tmp_path / "x.h5"), reader, split={"training": 0.8, "validation": 0.2})
    assert len(data["validation"]) == 10


def test_by_default_the_datasets_at_the_top_are_read_also_from_a_compressed_file(held):
    file = io.BytesIO()
    write(file)
    arrays = Hdf5Reader().read(Compressed(held(gzip.compress(file.getvalue()))))
    assert sorted(arrays) == ["names", "on", "y"]
    assert arrays["names"][:3].tolist() == ["cat", "dog", "cat"]
    np.testing.assert_array_equal(arrays["on"], LABELS > 1)


def test_large_datasets_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("sigma_data.readers.hdf5.PIECE", 1000)
    arrays = Hdf5Reader({"x": "train/x"}).read(File(write(tmp_path / "x.h5")))
    np.testing.assert_array_equal(arrays["x"], IMAGES)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "z",
            r"dataset 'z': is not there\. There is link, long, names, on, other",
        ),
        ("train/z", r"dataset 'train/z': is not there\. There is x"),
        ("y/z", r"dataset 'y/z': is not there"),
        ("train", r"dataset 'train': is a group\. Name one"),
        ("link", r"'link' is a link\. Name the dataset itself"),
        ("other", r"'other' is a link\. Name the dataset itself"),
        ("view", r"holds values of other files\. Copy them"),
        ("outside", r"holds values of other files\. Copy them"),
        ("long", r"holds words of variable length\. Save them with one length"),
        ("pairs", r"holds \[\('a', '<i4'\)\] of shape \(2,\)\. Save arrays"),
        ("scalar", r"holds float64 of shape \(\)\. Save arrays"),
    ],
)
def test_what_is_no_array_of_this_file_is_refused(tmp_path, path, text):
    with h5py.File(write(tmp_path / "x.h5"), "a") as file:
        file["link"] = h5py.SoftLink("/y")
        file["other"] = h5py.ExternalLink("/etc/passwd", "/x")
        layout = h5py.VirtualLayout((50,), "i2")
        layout[:] = h5py.VirtualSource(tmp_path / "z.h5", "y", (50,))
        file.create_virtual_dataset("view", layout)
        file.create_dataset("outside", (4,), "u1", external=[("/etc/passwd", 0, 4)])
        file["long"] = ["cat", "dog"]
        file["pairs"] = np.zeros(2, [("a", "<i4")])
        file["scalar"] = 2.0
    with pytest.raises(SigmaDataError, match=text) as error:
        Hdf5Reader({"inputs": path}).read(File(tmp_path / "x.h5"))
    assert str(error.value).startswith(f"{tmp_path}/x.h5: ")


def test_bombs_are_refused_before_memory_is_taken(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (1 << 40,), "f8", chunks=(1 << 10,), compression="gzip")
        file.create_dataset("y", (4,), "f8", maxshape=(None,), chunks=(1 << 26,), compression="gzip")
    tracemalloc.start()
    with pytest.raises(SigmaDataError, match=r"dataset 'x': has 8796093022208 bytes, more than 17179869184"):
        Hdf5Reader({"x": "x"}).read(File(tmp_path / "x.h5"))
    with pytest.raises(SigmaDataError, match=r"dataset 'y': has 536870912 bytes in a chunk, more than 1048576"):
        Hdf5Reader({"y": "y"}, limit=1 << 20).read(File(tmp_path / "x.h5"))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_files_of_other_formats_and_missing_ones_are_refused(held, tmp_path):
    with pytest.raises(SigmaDataError, match=r"^held: is no HDF5 file, or damaged: "):
        Hdf5Reader().read(held(b"a,b\n1,2\n"))
    with pytest.raises(SigmaDataError, match=r"none\.h5: there is no such file"):
        Hdf5Reader().read(File(tmp_path / "none.h5"))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("train")
    with pytest.raises(SigmaDataError, match=r"there is no dataset at the top\. Name some as `arrays`"):
        Hdf5Reader().read(File(tmp_path / "x.h5"))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "x.h5")
    stamps = iter([(1, 1, 1), (1, 2, 1)])
    monkeypatch.setattr("sigma_data.readers.hdf5.stamp_of", lambda source: next(stamps))
    with pytest.raises(SigmaDataError, match="has changed while it was read"):
        Hdf5Reader().read(File(path))


def test_without_h5py_it_is_said_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(SigmaPluginError, match=r'pip install "sigma-data\[hdf5\]"'):
        Hdf5Reader().read(File(tmp_path / "x.h5"))
