from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from sigma_initialisers import FromFile, archives
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_testing import InitialiserSuite, draw

NAME = "2-dense.weights"
WEIGHTS = np.arange(6.0).reshape(2, 3) / 7.0


def saved(path, **arrays):
    """Write arrays by name, with double underscores for dots."""
    arrays = {name.replace("__", "."): x for name, x in arrays.items()} or {NAME: WEIGHTS}
    save_file(arrays, path) if path.suffix == ".safetensors" else np.savez(path, **arrays)
    return path


def values(initialiser, shape=(2, 3)):
    return draw(initialiser, Parameter(shape))


class TestFromFile(InitialiserSuite):
    parameters = (Parameter((2, 3)),)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        self.path = saved(tmp_path / "weights.npz")

    def make(self):
        return FromFile(self.path)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
def test_the_array_of_the_address_is_returned_in_float64(tmp_path, suffix, dtype):
    path = saved(tmp_path / f"x.{suffix}", **{NAME: (WEIGHTS * 7).astype(dtype), "other": WEIGHTS.T.copy()})
    np.testing.assert_array_equal(values(FromFile(str(path))), WEIGHTS * 7)


def test_the_extension_may_be_in_capitals(tmp_path):
    np.testing.assert_array_equal(values(FromFile(saved(tmp_path / "x.npz").rename(tmp_path / "X.NPZ"))), WEIGHTS)


@pytest.mark.parametrize("names", [{"2-dense": "encoder"}, {NAME: "encoder.weights", "2-dense": "none"}])
def test_names_in_the_file_can_be_mapped(tmp_path, names):
    path = saved(tmp_path / "x.npz", **{"encoder.weights": WEIGHTS})
    np.testing.assert_array_equal(values(FromFile(path, map=names)), WEIGHTS)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_missing_name_a_wrong_shape_and_a_wrong_type_are_refused(tmp_path, suffix):
    path = saved(tmp_path / f"x.{suffix}", **{"3-dense.weights": WEIGHTS})
    with pytest.raises(SigmaConfigError, match=rf"{NAME}: .*x.{suffix} has no array '{NAME}'.*Did you mean '3-dense.w"):
        values(FromFile(path))
    with pytest.raises(SigmaConfigError, match=rf"{NAME}\(3, 2\): '{NAME}' of .* has shape \(2, 3\)\. Give the layers"):
        values(FromFile(saved(path)), (3, 2))
    path = saved(tmp_path / f"bool.{suffix}", **{NAME: WEIGHTS > 0})
    with pytest.raises(SigmaConfigError, match="holds bool. Give real numbers"):
        values(FromFile(path))


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path):
    objects, plain = tmp_path / "objects.npz", tmp_path / "plain.npz"
    np.savez(objects, **{NAME: np.array([Harmful()], object)})
    plain.write_bytes(pickle.dumps(Harmful()))
    for path in (objects, plain):
        with pytest.raises(SigmaDataError, match="holds pickled objects, which are not read. Write arrays of numbers"):
            values(FromFile(path))


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_files_that_cannot_be_read_are_named(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    with pytest.raises(SigmaDataError, match=rf"x.{suffix}: cannot be read: No such file or directory.*Check the path"):
        values(FromFile(path))
    whole = saved(path).read_bytes()
    for broken in (b"", whole[: len(whole) // 2], whole[:-1], b"PK\x03\x04 nothing", b"\xff" * 40):
        path.write_bytes(broken)
        with pytest.raises(SigmaDataError, match=rf"x.{suffix}: "):
            values(FromFile(path))


def test_other_files_are_refused_by_their_names_and_contents(tmp_path):
    told = r"x\.pt: arrays are read from \.npz and \.safetensors files, and those of exporters that read them\. Save"
    with pytest.raises(SigmaDataError, match=told):
        values(FromFile(tmp_path / "x.pt"))
    with zipfile.ZipFile(tmp_path / "torch.npz", "w") as archive:  # what torch.save writes
        archive.writestr("archive/data.pkl", pickle.dumps(Harmful()))
    with pytest.raises(SigmaDataError, match=r"torch\.npz: 'archive/data\.pkl' is not an array\. Write arrays"):
        values(FromFile(tmp_path / "torch.npz"))
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, WEIGHTS)
    with pytest.raises(SigmaDataError, match="holds one array without a name. Write it with numpy.savez"):
        values(FromFile(tmp_path / "one.npz"))


HUGE = 2**40


def header(shape):
    """Return the header of an .npy file of float64."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_declares_more_than_it_holds_is_refused_before_memory_is_allocated(tmp_path, how):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", how) as archive:
        archive.writestr(f"{NAME}.npy", header((HUGE, 3)) + b"few")
    with pytest.raises(
        SigmaDataError, match=rf"'{NAME}\.npy' declares {24 * HUGE} bytes and has .*damaged: write it ag"
    ):
        values(FromFile(tmp_path / "x.npz"))


def text(words):
    """Return an .npy file of version 1.0 with this header, and data for 6 numbers."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words) + 1) + words.encode() + b"\n" + bytes(48)


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"


@pytest.mark.parametrize(
    "words",
    [
        "(" * 5000, "[" * 5000, "(" * 60000, "print(1)", HEADER % ("<f8", "(2, 3"), HEADER % ("<f8", (0, 2**70)),
        HEADER % ("<f8", (-2, -3)), HEADER % ("<f8", (2**32, 2**32)), HEADER % ("<f8", (1,) * 70),
        HEADER % ("x8", (2, 3)),
    ],
    ids=lambda words: words[:10] + words[-25:],
)  # fmt: skip
def test_headers_that_no_array_has_are_refused(tmp_path, words):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr(f"{NAME}.npy", text(words))
    with pytest.raises(SigmaDataError, match=r"x\.npz: .*(is damaged|declares \d+ bytes)"):
        values(FromFile(tmp_path / "x.npz"))


@pytest.mark.parametrize(("place", "value"), [(8, 1), (10, 77)])
def test_archives_with_a_password_or_an_unknown_compression_are_refused(tmp_path, place, value):
    path = saved(tmp_path / "x.npz")
    whole = bytearray(path.read_bytes())
    whole[whole.rindex(b"PK\x01\x02") + place] = whole[place - 2] = value
    path.write_bytes(whole)
    with pytest.raises(SigmaDataError, match=r"x\.npz: is damaged: .*(encrypted|compression)"):
        values(FromFile(path))


@pytest.mark.parametrize("members", [1, 3])
def test_an_archive_of_little_that_becomes_much_is_refused(tmp_path, monkeypatch, members):
    monkeypatch.setattr(archives, "LARGE", 3_000_000)
    np.savez_compressed(tmp_path / "x.npz", **{f"a{i}": np.zeros(400_000 // members) for i in range(members)})
    with pytest.raises(
        SigmaDataError, match=r"x\.npz: \d+ bytes become 3200\d+, which trained parameters do not\. Write"
    ):
        values(FromFile(tmp_path / "x.npz"))
    monkeypatch.setattr(archives, "LARGE", 4_000_000)
    assert len(FromFile(tmp_path / "x.npz").arrays()) == members


def test_arrays_that_need_more_memory_than_there_is_are_told(tmp_path, monkeypatch):
    def full(file, **how):
        raise MemoryError("Unable to allocate 8.00 TiB")

    path = saved(tmp_path / "x.npz")
    monkeypatch.setattr(np, "load", full)
    with pytest.raises(SigmaDataError, match=r"x\.npz: its arrays need more memory than there is\. Write fewer"):
        values(FromFile(path))


def test_safetensors_in_bfloat16_are_read_in_float32_and_unknown_types_are_refused(tmp_path):
    pytest.importorskip("ml_dtypes", reason="without it, no file of bfloat16 is read by safetensors")
    numbers = np.array([[1.0, -2.5, 3.0], [0.0, 100.0, 7.0]], "<f4")
    for kind, data in (("BF16", (numbers.view("<u4") >> 16).astype("<u2").tobytes()), ("F4", bytes(3))):
        told = {NAME: {"dtype": kind, "shape": [2, 3], "data_offsets": [0, len(data)]}}
        words = json.dumps(told).encode()
        (tmp_path / f"{kind}.safetensors").write_bytes(struct.pack("<Q", len(words)) + words + data)
    np.testing.assert_array_equal(values(FromFile(tmp_path / "BF16.safetensors")), numbers)
    with pytest.raises(SigmaDataError, match=r"F4\.safetensors: holds numbers of a type that NumPy lacks\. Write them"):
        values(FromFile(tmp_path / "F4.safetensors"))


@pytest.mark.parametrize("shape", [[2**32, 2**32], [2**63, 2], [2**64], [1] * 70 + [6]])
def test_shapes_that_no_tensor_has_are_refused(tmp_path, shape):
    words = json.dumps({NAME: {"dtype": "F64", "shape": shape, "data_offsets": [0, 48]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(words)) + words + bytes(48))
    with pytest.raises(SigmaDataError, match=r"x\.safetensors: is damaged"):
        values(FromFile(tmp_path / "x.safetensors"))


def test_an_archive_whose_directory_declares_too_much_is_refused(tmp_path):
    path = saved(tmp_path / "x.npz")
    whole, size = bytearray(path.read_bytes()), (tmp_path / "x.npz").stat().st_size
    entry = whole.rindex(b"PK\x01\x02")
    assert size < 2000
    for compressed in (whole[entry + 20 : entry + 24], struct.pack("<I", 2**31)):
        whole[entry + 20 : entry + 24] = compressed
        whole[entry + 24 : entry + 28] = struct.pack("<I", 2**31)  # the uncompressed size
        path.write_bytes(whole)
        with pytest.raises(SigmaDataError, match=rf"'{NAME}\.npy' declares {2**31} bytes, more than there are"):
            values(FromFile(path))


@pytest.mark.parametrize("ends", [[0, 24 * HUGE], [0, 47], [0, 49], [8, 56], [-1, 47]])
def test_a_safetensors_file_that_declares_more_than_it_holds_is_refused(tmp_path, ends):
    text = json.dumps({NAME: {"dtype": "F64", "shape": [2, 3], "data_offsets": ends}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(48))
    with pytest.raises(SigmaDataError, match=r"x\.safetensors: is damaged"):
        values(FromFile(path))
    path.write_bytes(struct.pack("<Q", 2**60) + text + bytes(48))
    with pytest.raises(SigmaDataError, match=r"x\.safetensors: is damaged"):
        values(FromFile(path))
