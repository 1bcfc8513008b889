from __future__ import annotations

import gzip
import io
import pickle

import numpy as np
import pytest

from sigma_data import Csv, Digits, File, Mnist, Npy, SamplesReader
from sigma_kernel import SigmaDataError


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a file and reads samples from it."""

    def read(name, content, shape, **settings):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return SamplesReader(shape, **settings).read(File(tmp_path / name))["values"]

    return read


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def png(values):
    image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    image.fromarray(values).save(stream, "PNG")
    return stream.getvalue()


# -- tables ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n", "a,b\n1,2\n3,4\n", "a;b\n1;2\n3;4\n", "1\t2\n3\t4", "a,target,b\n1,x,2\n3,y,4\n",
        "target,a,b\n0,1,2\n1,3,4\n", "1 2\n3 4\n",
    ],
)  # fmt: skip
def test_a_table_is_read_with_and_without_names_and_target(read, text):
    found = read("a.csv", text, (2,))
    assert found.dtype == np.float64
    assert found.tolist() == [[1, 2], [3, 4]]


def test_a_table_is_reshaped_to_samples_and_scaled(read):
    assert read("a.csv", "1,2,3,4\n", (2, 2), scale=0.5).tolist() == [[[0.5, 1], [1.5, 2]]]


def test_named_columns_are_found_at_any_position(read):
    assert read("a.csv", "b,c,a\n1,2,3\n", (2,), inputs=("a", "b")).tolist() == [[3, 1]]
    assert read("a.csv", "1,2\n", (2,), inputs=("a", "b")).tolist() == [[1, 2]]


def test_numbered_columns_shift_if_the_target_is_left_out(read):
    settings = {"inputs": (3, 0, 1), "target": (2,)}
    assert read("a.csv", "1,2,9,4\n", (3,), **settings).tolist() == [[4, 1, 2]]
    assert read("a.csv", "1,2,4\n", (3,), **settings).tolist() == [[4, 1, 2]]
    for text in ("1,2,9\n", "1,2\n"):
        assert read("a.csv", text, (2,), target=(-1,)).tolist() == [[1, 2]]


def test_a_missing_value_is_refused_or_filled_in(read, told):
    assert ":2: column 'b': a value is missing. Fill it in, or leave the row out." in told(
        read, "a.csv", "a,b\n1,\n", (2,)
    )
    assert read("a.csv", "a,b\n1,nan\n", (2,), missing=7.0).tolist() == [[1, 7]]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "the file is empty"),
        ("1,2,3\n", "3 columns to predict from; a sample of shape (2,) has 2 numbers"),
        ("a,b,c\n1,2,3\n", "3 columns to predict from"),
        ("a,b\n", "there is no row of values"),
        ("a,b\n1,2,3\n", "a.csv:2: 3 values instead of 2"),
        ("a,b\n1,two\n", "a.csv:2: column 'b': 'two' is not a number. Correct it, or leave the column out."),
        ("a,b\n1,NaN\n", "a value is missing"),
        ("1,inf\n", "not a finite number"),
        ("Once upon a time there was a king.\n", "8 columns to predict from"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(read, told, text, wrong):
    found = told(read, "a.csv", text, (2,))
    assert "a.csv" in found
    assert wrong in found


def test_bytes_that_are_not_text_are_refused(read, told):
    assert "not valid utf-8" in told(read, "a.csv", b"\xff\xfe\x00\x01", (2,))


# -- arrays ------------------------------------------------------------------------------------------------------------
def test_an_array_keeps_its_type_unless_it_is_scaled(read):
    values = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    found = read("a.npy", npy(values), (2, 2))
    assert found.dtype == np.uint8
    assert np.array_equal(found, values)
    assert np.array_equal(read("a.npy", npy(values), (2, 2), scale=0.5), values / np.float32(2))
    assert read("a.npy", npy(values[0]), (2, 2)).shape == (1, 2, 2)


class Harmful:
    def __reduce__(self):
        return exec, ("raise SystemExit",)


def test_an_array_that_does_not_fit_is_refused_and_nothing_is_unpickled(read, told):
    assert "has shape (3, 4); expected ('n', 2, 2)" in told(read, "a.npy", npy(np.zeros((3, 4))), (2, 2))
    assert "has shape (0, 2)" in told(read, "a.npy", npy(np.zeros((0, 2))), (2,))
    assert "row 1: nan is not a finite number" in told(read, "a.npy", npy(np.array([[0.0], [np.nan]])), (1,))
    objects = io.BytesIO()
    np.save(objects, np.array([Harmful()]), allow_pickle=True)
    assert "holds '|O', which is not supported" in told(read, "a.npy", objects.getvalue(), (1,))
    assert "is not an .npy file" in told(read, "a.npy", pickle.dumps(Harmful()) + b" " * 20, (1,))


# -- images ------------------------------------------------------------------------------------------------------------
GREY = np.array([[0, 51, 102], [153, 204, 255]], np.uint8)
COLOURED = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (2, 3, 1), (6,)])
def test_a_grey_image_fits_every_input_shape_of_an_image_network(read, shape):
    found = read("a.png", png(GREY), shape, white=1.0)
    assert found.dtype == np.float32
    assert np.array_equal(found, (GREY / np.float32(255)).reshape(1, *shape))


def test_image_channels_follow_the_networks_layout(read):
    assert np.array_equal(read("a.PNG", png(COLOURED), (2, 3, 3), white=255)[0], COLOURED)
    assert np.array_equal(read("a.png", png(COLOURED), (3, 2, 3), white=255)[0], COLOURED.transpose(2, 0, 1))
    assert np.array_equal(read("a.png", png(GREY), (3, 2, 3), white=255)[0], [GREY] * 3)


def test_pixels_are_scaled_like_the_training_data(read):
    assert np.array_equal(read("a.png", png(GREY), (2, 3), scale=0.25)[0], GREY / np.float32(4))
    assert np.array_equal(read("a.png", png(GREY), (2, 3), scale=0.25, white=255)[0], GREY)


def test_an_image_of_the_wrong_size_is_refused_with_the_right_size(read, told):
    assert "has 3 x 2 pixels; expected 28 x 28. Resize it." in told(
        lambda: read("a.png", png(GREY), (28, 28), white=1.0)
    )
    assert "has 3 x 2 pixels; expected 4 in all" in told(lambda: read("a.png", png(GREY), (4,), white=1.0))
    assert "has 3 x 2 pixels; expected 2 x 3" in told(lambda: read("a.png", png(GREY), (3, 2), white=1.0))
    for shape in ((2, 3, 2), (1, 1, 2, 3)):
        assert "is not an image" in told(lambda shape=shape: read("a.png", png(GREY), shape, white=1.0))
    assert "the value of a white pixel in the training data is unknown" in told(
        lambda: read("a.png", png(GREY), (2, 3))
    )


def test_a_file_name_with_an_unknown_suffix_is_refused(read, told):
    for name in ("a", "a.exe", "a.gz"):
        assert "unknown file type. Files end in .csv, " in told(read, name, "1\n", (1,))


# -- data sets ---------------------------------------------------------------------------------------------------------
def test_the_digits_read_an_image_scaled_like_their_pixels(tmp_path):
    image = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    (tmp_path / "a.png").write_bytes(png(image))
    expected = image.astype(np.float32) / np.float32(255)
    assert np.array_equal(Digits().samples(tmp_path / "a.png", (8, 8)), expected[None])
    assert np.array_equal(Digits().samples(tmp_path / "a.png", (8, 8), 255.0), image[None])
    assert Mnist.white == 1.0


def test_image_bytes_are_scaled_like_mnist_pixels(tmp_path):
    every = np.arange(256, dtype=np.uint8).reshape(16, 16)
    (tmp_path / "a.png").write_bytes(png(every))
    assert np.array_equal(Mnist().samples(tmp_path / "a.png", (16, 16))[0], every.astype(np.float32) / np.float32(255))


TABLE = "length,kind,width\n1.5,a,2.5\n3.1,b,4.7\n0.3,a,0.7\n"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return Csv(tmp_path / "t.csv", "kind", scale=0.1, split={"training": 1.0})


def test_samples_for_prediction_equal_the_tables_rows_bit_for_bit(table, tmp_path):
    own = table["training"].block(0)["inputs"]
    for text in (TABLE, "width,length\n2.5,1.5\n4.7,3.1\n0.7,0.3\n", "1.5,2.5\n3.1,4.7\n0.3,0.7\n"):
        (tmp_path / "s.csv").write_text(text)
        assert sorted(table.samples(tmp_path / "s.csv", (2,)).tolist()) == sorted(own.tolist())
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    assert table.samples(tmp_path / "s.csv.gz", (2,)).shape == (3, 2)


def test_a_column_must_exist_in_the_table(table, tmp_path, told):
    (tmp_path / "s.csv").write_text("length,widht\n1,2\n")
    assert "there is no column 'width'. Did you mean 'widht'?" in told(table.samples, tmp_path / "s.csv", (2,))


def test_samples_can_be_read_after_the_training_table_was_deleted(table, tmp_path):
    (tmp_path / "t.csv").unlink()
    (tmp_path / "s.csv").write_text(TABLE)
    assert np.allclose(table.samples(tmp_path / "s.csv", (2,))[0], [0.15, 0.25])


def test_arrays_read_samples_with_their_scale(tmp_path):
    values = np.arange(6, dtype=np.uint8).reshape(3, 2)
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "y.npy", np.arange(3))
    data = Npy(tmp_path / "x.npy", tmp_path / "y.npy", scale=1 / 255, split={"training": 1.0})
    own = np.array(sorted(data["training"].block(0)["inputs"].tolist()), np.float32)
    assert np.array_equal(data.samples(tmp_path / "x.npy", (2,)), own)
    with pytest.raises(SigmaDataError, match="there is no such file"):
        data.samples(tmp_path / "z.npy", (2,))
