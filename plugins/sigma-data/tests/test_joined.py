from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from sigma_data import (
    Cast,
    Column,
    Columns,
    Compressed,
    CsvReader,
    File,
    IdxReader,
    Joined,
    JoinedSource,
    Multi,
    Normalise,
    OneHot,
    Scale,
    Standardise,
    Url,
)
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 2, 3), np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


def as_idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """Write the images as a gzip member of a zip archive, and the labels as one of a tar archive."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("images.gz", gzip.compress(as_idx(IMAGES)))
        packed.writestr("README", "digits")
    with tarfile.open(tmp_path / "b.tar", "w") as packed:
        content = gzip.compress(as_idx(LABELS))
        info = tarfile.TarInfo("labels.gz")
        info.size = len(content)
        packed.addfile(info, io.BytesIO(content))
    return tmp_path


def images_and_labels(folder: Path) -> dict[str, JoinedSource]:
    images = Compressed(Compressed(File(folder / "a.zip"), member="images.gz"))
    labels = Compressed(Compressed(File(folder / "b.tar")))
    scale, classes = {"scale": Normalise((0, 255))}, {"classes": OneHot(10)}
    return {
        "inputs": JoinedSource(images, IdxReader(), None, scale),
        "targets": JoinedSource(labels, IdxReader(), None, classes),
    }


class TestJoined(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, archives: Path) -> None:
        self.folder = archives

    def make(self) -> Dataset:
        return Joined(images_and_labels(self.folder))["training"]


def test_two_files_in_archives_are_joined_by_row_and_then_split(archives):
    data = Joined(images_and_labels(archives), split={"training": 0.8, "validation": 0.2}, seed=3)
    parts = [data[name].block(0) for name in ("training", "validation")]
    assert [len(part["inputs"]) for part in parts] == [16, 4]
    rows = {values.tobytes(): row for row, values in enumerate(IMAGES / 255)}
    for part in parts:
        numbers = [rows[values.tobytes()] for values in part["inputs"]]
        np.testing.assert_array_equal(part["targets"], np.eye(10)[LABELS[numbers]])


def test_a_part_has_sections_of_an_extractor(held):
    table = JoinedSource(
        held(b"a,b,kind\n1,2,x\n3,4,y\n"),
        CsvReader(text=("kind",)),
        Columns({"inputs": Column(("a", "b")), "targets": Column("kind", dtype="class")}),
        {"whole": Cast("int32")},
    )
    data = Joined(
        {"table": table, "more": JoinedSource(held(as_idx(LABELS[:2])), IdxReader())}, split={"training": 1.0}
    )
    block = data["training"].block(0)
    assert {name: values.tolist() for name, values in block.items()} == {
        "inputs": [[1, 2], [3, 4]], "targets": [0, 1], "more": [0, 1],
    }  # fmt: skip
    assert block["inputs"].dtype == np.int32


def test_a_file_that_is_not_here_is_downloaded_and_its_hash_checked(server, tmp_path):
    content = gzip.compress(as_idx(LABELS))
    server.files["/labels.gz"] = content
    url = Url(f"{server.address}/labels.gz", sha256(content).hexdigest(), cache=tmp_path)
    source = Compressed(Multi((File(tmp_path / "none.gz"), url)))
    data = Joined({"targets": JoinedSource(source, IdxReader())}, split={"training": 1.0})
    np.testing.assert_array_equal(data["training"].block(0)["targets"], LABELS)
    wrong = Compressed(Multi((File(tmp_path / "none.gz"), Url(url.url, "0" * 64, cache=tmp_path / "other"))))
    with pytest.raises(SigmaDataError, match=r"(?s)none of 2 sources is available.*no such file.*cannot be fetched"):
        len(Joined({"targets": JoinedSource(wrong, IdxReader())})["training"])


def test_files_of_different_numbers_of_rows_are_refused(held):
    parts = {name: JoinedSource(held(as_idx(LABELS[:n])), IdxReader()) for name, n in (("inputs", 5), ("targets", 4))}
    with pytest.raises(SigmaDataError, match=r"^held: section 'targets' has 4 rows; held has 5\. Give files"):
        len(Joined(parts)["training"])


def test_a_section_of_two_parts_is_refused(held):
    part = JoinedSource(held(b"inputs,targets\n1,2\n3,4\n"), CsvReader())
    with pytest.raises(SigmaConfigError, match=r"'a' and 'b' both have a section 'inputs'\. Rename one"):
        len(Joined({"a": part, "b": part})["training"])


@pytest.mark.parametrize("step", [Standardise(), Normalise(), OneHot(section="inputs")])
def test_a_preprocessor_that_has_to_be_fitted_is_left_to_the_trainer_with_those_after_it(held, step):
    halved, cast = Scale(0.5), Cast("int32", section="inputs")
    steps = {"half": halved, "fitted": step, "cast": cast}
    data = Joined({"inputs": JoinedSource(held(as_idx(IMAGES)), IdxReader(), None, steps)}, split={"training": 1.0})
    assert data.preprocessors == {"inputs_fitted": step, "inputs_cast": cast}
    np.testing.assert_array_equal(data["training"].block(0)["inputs"], IMAGES / 2)


def test_sections_without_a_fitted_preprocessor_keep_theirs(held):
    table = JoinedSource(
        held(b"a,b\n1,2\n3,4\n"),
        CsvReader(),
        Columns({"inputs": Column("a"), "targets": Column("b")}),
        {"fitted": Standardise(), "scale": Scale(3.0, section="targets")},
    )
    data = Joined({"table": table}, split={"training": 1.0})
    assert data.preprocessors == {"table_fitted": Standardise()}
    np.testing.assert_array_equal(data["training"].block(0)["targets"].ravel(), [6, 12])
    assert Joined({"table": evolve(table, preprocessors={})}).preprocessors == {}


def test_preprocessors_of_one_name_in_the_run_are_refused(held):
    parts = {
        name: JoinedSource(held(as_idx(IMAGES)), IdxReader(), None, {label: Standardise(section=name)})
        for name, label in {"a": "b_c", "a_b": "c"}.items()
    }
    message = r"parts\.a\.preprocessors\.b_c and parts\.a_b\.preprocessors\.c both have the name 'a_b_c' in the run"
    with pytest.raises(SigmaConfigError, match=message):
        Joined(parts).preprocessors  # noqa: B018
    (first, second) = parts.values()
    assert [*Joined({"a": first, "b": second}).preprocessors] == ["a_b_c", "b_c"]


def test_a_preprocessor_of_another_section_is_refused(held):
    data = Joined({"inputs": JoinedSource(held(as_idx(IMAGES)), IdxReader(), None, {"s": OneHot(10)})})
    with pytest.raises(SigmaConfigError, match=r"there is no section 'targets'\. This part has inputs"):
        len(data["training"])


def test_other_inputs_are_read_like_those_of_the_part(archives, tmp_path):
    data, path = Joined(images_and_labels(archives)), tmp_path / "others.gz"
    path.write_bytes(gzip.compress(as_idx(IMAGES[:4])))
    np.testing.assert_array_equal(data.samples(path, (2, 3)), IMAGES[:4] / 255)
    with pytest.raises(SigmaDataError, match=r"others\.gz: holds samples of shape \(2, 3\); the network takes \(6,\)"):
        data.samples(path, (6,))
    np.save(tmp_path / "x.npy", np.ones((3, 2, 3)))
    np.testing.assert_array_equal(data.samples(tmp_path / "x.npy", (2, 3)), np.ones((3, 2, 3)))
    with pytest.raises(SigmaDataError, match="there is no part 'inputs'"):
        Joined({"x": data.parts["inputs"]}).samples(path, (2, 3))
