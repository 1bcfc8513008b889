from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest

from sigma_data import Compressed, NpzReader, Records
from sigma_kernel import Reader, SigmaDataError
from sigma_testing import ReaderSuite

IMAGES, LABELS = np.arange(24, dtype=np.uint8).reshape(4, 2, 3), np.array([0, 1, 1, 0])


def as_npz(save=np.savez, **arrays) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


class TestNpz(ReaderSuite):
    def make(self) -> Reader:
        return NpzReader()

    def data(self) -> bytes:
        return as_npz(x=IMAGES, y=LABELS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_saved(held, save):
    arrays = NpzReader().read(held(as_npz(save, x=IMAGES.T, y=LABELS.astype(">i4"))))
    np.testing.assert_array_equal(arrays["x"], IMAGES.T)
    np.testing.assert_array_equal(arrays["y"], LABELS)
    assert (arrays["x"].dtype, arrays["y"].dtype) == (np.uint8, np.int32)


def test_arrays_get_names_of_sections(held):
    reader = NpzReader({"inputs": "x", "targets": "y"})
    data = Records(held(as_npz(x=IMAGES, y=LABELS, z=np.ones(2))), reader, split={"training": 1.0})
    assert data["training"].block(0)["inputs"].shape == (4, 2, 3)
    assert data["training"].block(0)["targets"].tolist() == [0, 1, 1, 0]


def test_an_archive_within_a_compressed_file_is_read(held):
    assert NpzReader().read(Compressed(held(gzip.compress(as_npz(y=LABELS)))))["y"].tolist() == [0, 1, 1, 0]


def test_what_is_no_archive_or_has_no_such_array_is_refused(held):
    with pytest.raises(SigmaDataError, match=r"^held: there is no array 'xs'\. Did you mean 'x'\?"):
        NpzReader({"inputs": "xs"}).read(held(as_npz(x=IMAGES)))
    with pytest.raises(SigmaDataError, match=r"^held: is no \.npz archive, or damaged"):
        NpzReader().read(held(b"PK\x03\x04"))
    with pytest.raises(SigmaDataError, match=r"^held: holds no array"):
        NpzReader().read(held(as_npz()))


def test_objects_are_not_unpickled(held):
    with pytest.raises(SigmaDataError, match=r"^held:x\.npy: holds '\|O', which is not supported"):
        NpzReader().read(held(as_npz(x=np.array([{}, None]))))


def test_bombs_are_refused(held):
    content = as_npz(np.savez_compressed, x=np.zeros(1 << 22, np.uint8))
    assert len(content) < 1 << 15
    with pytest.raises(SigmaDataError, match=r"^held:x\.npy: unpacks to more than 1048576 bytes"):
        NpzReader(limit=1 << 20).read(held(content))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", as_npy_header(1 << 60))
    with pytest.raises(SigmaDataError, match=r"^held:x\.npy: .*bytes should follow, 0 are there"):
        NpzReader().read(held(file.getvalue()))


def as_npy_header(rows: int) -> bytes:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows},)}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
