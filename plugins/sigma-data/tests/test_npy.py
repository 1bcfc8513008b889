from __future__ import annotations

import io
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import NpyReader
from sigma_kernel import SigmaDataError

NUMBERS = st.one_of(npst.floating_dtypes(sizes=(16, 32, 64)), npst.integer_dtypes(), npst.unsigned_integer_dtypes(),
                    npst.boolean_dtypes())  # fmt: skip


def npy(values: np.ndarray, **settings) -> bytes:
    file = io.BytesIO()
    np.save(file, values, **settings)
    return file.getvalue()


def with_header(text: str, version: bytes = b"\x01\x00", values: bytes = bytes(1000)) -> bytes:
    size = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + size + text.encode() + values


def read(source):
    return NpyReader().read(source)["values"]


@given(
    NUMBERS.flatmap(lambda d: npst.arrays(d, npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))),
    st.booleans(),
)
def test_npy_files_saved_by_numpy_are_read(held, values, fortran):
    found = read(held(npy(np.asfortranarray(values) if fortran else values)))
    assert found.dtype == values.dtype.newbyteorder("=")
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00", b"\x03\x00"], ids=["1.0", "2.0", "3.0"])
def test_every_version_of_the_format_is_read(held, version):
    content = with_header("{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}\n", version, b"\x01\x00\xff\xff")
    np.testing.assert_array_equal(read(held(content)), [1, -1])


def test_nothing_is_ever_unpickled(held):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    with pytest.raises(SigmaDataError, match=r"held: holds '\|O', which is not supported"):
        read(held(content.getvalue() + pickle.dumps(Trap())))


def test_records_with_fields_are_refused(held):
    with pytest.raises(SigmaDataError, match="which is not supported. Save an array of numbers"):
        read(held(npy(np.zeros(3, [("a", "f4"), ("b", "i4")]))))


@pytest.mark.parametrize(
    "shape",
    [
        "(1000000, 1000000)",
        "(10**3, 4)",
        "(-1,)",
        "(-1, -125)",
        "()",
        "(0, 4611686018427387904, 4)",
        "(125.0,)",
        "('a', 125)",
    ],
)
def test_an_impossible_shape_is_an_error_without_allocating_memory(held, shape):
    content = with_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n")
    tracemalloc.start()
    try:
        with pytest.raises(SigmaDataError, match="held: "):
            read(held(content))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_file_truncated_anywhere_is_an_error(held):
    content = npy(np.arange(12.0).reshape(3, 4))
    for length in range(len(content)):
        with pytest.raises(SigmaDataError, match="held: (byte 0: the header|the header declares)"):
            read(held(content[:length]))


def test_trailing_bytes_are_reported(held):
    with pytest.raises(SigmaDataError, match="more bytes follow than the file declares"):
        read(held(npy(np.zeros(3)) + b"\x00"))


@pytest.mark.parametrize("content", [b"PK\x03\x04 an archive", b"\x93NUMPY\x09\x00" + bytes(50)])
def test_a_file_of_another_format_is_reported(held, content):
    with pytest.raises(SigmaDataError, match="held: byte 0: is not an .npy file"):
        read(held(content))


@pytest.mark.parametrize(
    "text",
    ["{'descr': ", "[]", "{'shape': (1,)}", "{[]: 1}", "(" * 5000, "f(1)", "{'descr': 1, 2: 3, 4: 5}", "\0"],
    ids=len,
)
def test_an_invalid_header_is_reported(held, text):
    with pytest.raises(SigmaDataError, match="held: byte 10: the header is damaged"):
        read(held(with_header(text)))


def test_a_header_of_unlimited_length_is_refused(held):
    with pytest.raises(SigmaDataError, match="held: byte 8: the header claims 100000 bytes"):
        read(held(with_header(" " * 100_000, b"\x02\x00")))


@pytest.mark.parametrize("descr", ["'<U3'", "'<c8'", "'<M8[s]'", "'<f16'", "'3f4'", "'f4,f4'", "[('a', '<f4')]", "8"])
def test_inputs_that_are_not_numbers_are_refused(held, descr):
    with pytest.raises(SigmaDataError, match="which is not supported. Save an array of numbers"):
        read(held(with_header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,)}}")))


@given(st.data())
def test_any_change_to_a_file_causes_only_data_errors(held, told, data):
    content = bytearray(npy(np.arange(12.0).reshape(3, 4)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert told(read, held(bytes(content[: data.draw(st.integers(0, len(content)))]))).startswith("held")
