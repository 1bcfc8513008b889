"""The inspector of folders of pictures."""

from __future__ import annotations

import io
import json
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from sigma_data.pictures.folder import list_pictures
from sigma_data.pictures.looking import PictureFacts, look_at_pictures
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.picture_drafting import choose_filters, choose_size
from sigma_data.profiling.picture_inspector import PictureInspector
from sigma_data.profiling.pictures import PictureProfile, profile_pictures
from sigma_kernel import Inspector, SigmaConfigError, SigmaDataError
from sigma_testing import InspectorSuite

Image = pytest.importorskip("PIL.Image")


def save(path: Path, pixels: np.ndarray, **options: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


def noise(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    shape = (height, width, channels) if channels else (height, width)
    return np.random.default_rng(seed).integers(60, 200, shape, np.uint8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of two classes, ten pictures each, of 24 x 16 pixels in colours."""
    for i in range(10):
        save(tmp_path / "pets" / "cats" / f"{i}.png", noise(16, 24, seed=i))
        save(tmp_path / "pets" / "dogs" / f"{i}.jpg", noise(16, 24, seed=100 + i))
    return tmp_path / "pets"


def draft(root: Path, **wishes: str) -> tuple[dict, list[str]]:
    """Return the tables of a draft, and its notes."""
    result = PictureInspector().draft(root, str(root), wishes)
    return tomllib.loads(result.text), [*result.notes]


class TestPictureInspector(InspectorSuite):
    def make(self) -> Inspector:
        return PictureInspector()

    def place(self, folder: Path) -> Path:
        for label in ("cats", "dogs"):
            for i in range(3):
                save(folder / "pets" / label / f"{i}.png", noise(8, 8, seed=i))
        return folder / "pets"


# -- what is in a folder -----------------------------------------------------------------------------------------------
def test_a_folder_of_pictures_with_a_table_is_no_table(root: Path) -> None:
    (root / "labels.csv").write_text("path,label\n")
    assert PictureInspector().takes(root)
    assert not TableInspector().takes(root)
    assert not PictureInspector().takes(root / "labels.csv")


def test_hidden_pictures_do_not_make_a_folder_of_pictures(tmp_path: Path) -> None:
    save(tmp_path / ".thumbs" / "a.png", noise(8, 8))
    save(tmp_path / ".a.png", noise(8, 8))
    assert not PictureInspector().takes(tmp_path)


def test_classes_are_counted_with_sizes_and_formats(root: Path) -> None:
    save(root / "cats" / "large.png", noise(40, 50))
    inspection = PictureInspector().inspect(root)
    assert inspection.head == f"{root}: 21 pictures, 2 classes, 24 x 16, 50 x 40, colours, PNG (11), JPEG (10)"
    head, *rows = inspection.table
    assert [dict(zip(head, row, strict=True))["pictures"] for row in rows] == ["11", "10"]
    assert [row[-2:] for row in rows] == [["PNG", "24 x 16, 50 x 40"], ["JPEG", "24 x 16"]]
    assert inspection.document["classes"] == {"cats": 11, "dogs": 10}
    assert inspection.document["sizes"][0] == {"width": 24, "height": 16, "pictures": 20}


def test_many_sizes_are_a_range() -> None:
    sizes = [(10, 10), (20, 30), (5, 4), (9, 9), (30, 20)]
    facts = [PictureFacts(f"a/{i}.png", size, "PNG", "L") for i, size in enumerate(sizes)]
    profile = PictureProfile("x", {fact.path: "a" for fact in facts}, facts, {}, ())
    assert profile.describe_sizes() == "5 x 4 … 20 x 30"
    assert profile.median_size == (10, 10)


def test_a_picture_that_lies_on_its_side_has_the_size_that_is_shown(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "a.jpg", noise(16, 24), exif=exif)
    (facts,) = look_at_pictures(tmp_path, list_pictures(tmp_path).pictures)
    assert facts.size == (16, 24)


def test_samples_are_pictures_of_each_class_in_the_order_of_their_paths(root: Path) -> None:
    for i in range(10):
        save(root / "cats" / f"{i}.png", np.full((32, 32, 3), 10 * i, np.uint8))
    samples = PictureInspector().inspect(root).samples
    assert {label: (values.shape, values.dtype) for label, values in samples.items()} == {
        "cats": ((5, 3, 32, 32), np.uint8), "dogs": ((5, 3, 32, 32), np.uint8),
    }  # fmt: skip
    np.testing.assert_array_equal(samples["cats"].max(axis=(1, 2, 3)), [0, 20, 40, 60, 80])


def test_broken_files_are_named_with_what_is_wrong(root: Path) -> None:
    whole = (root / "dogs" / "3.jpg").read_bytes()
    (root / "dogs" / "3.jpg").write_bytes(whole[: len(whole) // 2])
    (root / "cats" / "text.png").write_text("no picture")
    inspection = PictureInspector().inspect(root)
    assert [text.split(":")[0] for text in inspection.findings] == ["cats/text.png", "dogs/3.jpg"]
    assert {*inspection.document["broken"]} == {"cats/text.png", "dogs/3.jpg"}
    tables, notes = draft(root)
    assert tables["data"]["broken"] == "skip"
    assert notes[0].startswith("2 of 21 pictures cannot be read and are left out: cats/text.png is no picture")


def test_a_file_of_too_many_pixels_is_broken(root: Path) -> None:
    huge = noise(8, 8, 0)
    save(root / "cats" / "huge.png", huge)
    content = bytearray((root / "cats" / "huge.png").read_bytes())
    content[16:24] = (1 << 15).to_bytes(4, "big") * 2
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    (root / "cats" / "huge.png").write_bytes(content)
    (finding,) = PictureInspector().inspect(root).findings
    assert "is too large" in finding


def test_a_folder_without_a_picture_that_can_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_text("no picture")
    with pytest.raises(SigmaDataError, match=r"no picture can be used\. a/1\.png: is no picture"):
        draft(tmp_path)


def test_of_many_pictures_some_are_looked_at_from_the_first_to_the_last(root: Path, monkeypatch) -> None:
    monkeypatch.setattr("sigma_data.profiling.pictures.LOOKED", 7)
    profile = profile_pictures(root)
    assert [fact.path for fact in profile.facts][::3] == ["cats/0.png", "cats/8.png", "dogs/7.jpg"]
    assert profile.counts == {"cats": 10, "dogs": 10}
    assert "7 of 20 pictures were decoded, evenly spaced." in PictureInspector().inspect(root).findings
    assert "7 of 20 pictures were looked at." in draft(root)[1]


# -- sizes and networks ------------------------------------------------------------------------------------------------
def profile_of(sizes: list[tuple[int, int]], value: int = 128) -> PictureProfile:
    """Return the profile of pictures of some widths and heights, all of one value."""
    copy = np.full((3, 32, 32), value, np.uint8)
    facts = [PictureFacts(f"a/{i}.png", size, "PNG", "L", copy=copy) for i, size in enumerate(sizes)]
    return PictureProfile("x", {fact.path: "a" for fact in facts}, facts, {}, ())


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([(28, 28)] * 5, (28, 28)),
        ([(24, 16)] * 5, (16, 24)),
        ([(640, 480)] * 5, (48, 64)),
        ([(480, 640)] * 5, (64, 48)),
        ([(640, 480), (640, 480), (480, 640)], (64, 64)),  # of other ratios
        ([(100, 100), (300, 300), (200, 200)], (64, 64)),
        ([(2000, 20)] * 3, (8, 64)),
        ([(3, 5)] * 3, (8, 8)),
    ],
)
def test_the_size_keeps_the_ratio_that_most_pictures_have(sizes, expected) -> None:
    size = choose_size(profile_of(sizes))
    assert (size.height, size.width) == expected
    assert size.fit == "crop"


def test_drawings_of_several_ratios_are_padded_with_their_background() -> None:
    white = profile_of([(40, 20), (20, 40), (30, 30)], value=250)
    assert (choose_size(white).fit, white.background) == ("pad", 255)
    assert evolve(white, facts=profile_of([(40, 20)], value=3).facts).background == 0


@given(st.lists(st.tuples(st.integers(1, 1 << 14), st.integers(1, 1 << 14)), min_size=1, max_size=6))
def test_a_size_is_small_whatever_pictures_have(sizes) -> None:
    size = choose_size(profile_of(sizes))
    assert 8 <= size.height <= 64
    assert 8 <= size.width <= 64
    assert size.shorter >> len(choose_filters(1000, size.shorter)) >= 1


def test_larger_pictures_and_more_of_them_have_more_filters() -> None:
    assert choose_filters(200, 8) == [16]
    assert choose_filters(200, 32) == [16, 32, 64]
    assert choose_filters(5000, 64) == [32, 64, 128, 128]


# -- drafts ------------------------------------------------------------------------------------------------------------
def test_a_draft_of_folders_has_their_size_colours_and_classes(root: Path) -> None:
    tables, notes = draft(root)
    data = tables["data"]
    assert (data["size"], data["colours"], data["split_by"]) == ([16, 24], "rgb", "stratified")
    assert data["augmentations"]["mirror"] == {"type": "flip"}
    assert "output(2) + softmax_cross_entropy()" in tables["network"]["architecture"]
    assert tables["hooks"]["score"]["type"] == "accuracy"
    assert tables["hooks"]["finish"]["restore"] is True
    assert notes == []
    assert "# 2 classes, the folders: cats (10), dogs (10)" in PictureInspector().draft(root, "pets", {}).text


def test_grey_pictures_are_grey_also_as_rgb(root: Path) -> None:
    for path in root.rglob("*.*"):
        save(path, np.stack([noise(16, 24, 0)] * 3, axis=-1))
    assert draft(root)[0]["data"]["colours"] == "grey"


@pytest.mark.parametrize(("difference", "expected"), [(4, "grey"), (40, "rgb")])
def test_grey_pictures_of_a_scanner_have_channels_that_differ_little(
    root: Path, difference: int, expected: str
) -> None:
    for path in root.rglob("*.*"):
        save(path.with_suffix(".png"), np.stack([noise(16, 24, 0) + shift for shift in (0, 0, difference)], axis=-1))
        path.with_suffix(".jpg").unlink(missing_ok=True)
    assert draft(root)[0]["data"]["colours"] == expected


def test_pictures_with_a_plain_background_are_not_mirrored(root: Path) -> None:
    for path in root.rglob("*.*"):
        pixels = np.zeros((16, 24), np.uint8)
        pixels[4:12, 8:10] = 255
        save(path, pixels)
    tables, (note,) = draft(root)
    assert "mirror" not in tables["data"]["augmentations"]
    assert note.startswith("pictures are not mirrored in training: most have a plain background")
    assert '[data.augmentations.mirror] with type = "flip"' in note


def test_classes_that_name_a_side_are_not_mirrored(root: Path) -> None:
    (root / "cats").rename(root / "turn-left")
    tables, (note,) = draft(root)
    assert "mirror" not in tables["data"]["augmentations"]
    assert "'turn-left' is about a side" in note
    (root / "turn-left").rename(root / "cleft")  # a word that holds another
    assert "mirror" in draft(root)[0]["data"]["augmentations"]


def test_uneven_classes_are_mentioned_with_the_accuracy_of_the_largest(root: Path) -> None:
    for i in range(20):
        save(root / "dogs" / f"more-{i}.png", noise(16, 24, seed=i))
    (note,) = draft(root)[1]
    assert note.startswith("classes are uneven: 30 pictures of 'dogs', 10 of 'cats'.")
    assert "75%" in note


def test_a_class_that_is_too_small_to_divide_is_not_stratified(root: Path) -> None:
    for i in range(5, 10):
        (root / "cats" / f"{i}.png").unlink()
    assert "split_by" not in draft(root)[0]["data"]


def test_names_of_groups_are_mentioned(root: Path) -> None:
    for i, path in enumerate(sorted(root.rglob("*.*"))):
        path.rename(path.with_name(f"person{i % 4:02}_{i}.png"))
    (note,) = draft(root)[1]
    assert "such as 'person00', 4 in all" in note
    assert 'group = "(person[0-9]+)"' in note


def test_folders_of_splits_are_kept(root: Path, tmp_path: Path) -> None:
    for part in ("train", "val"):
        (tmp_path / "split" / part).mkdir(parents=True)
        for label in ("cats", "dogs"):
            (tmp_path / "split" / part / label).mkdir()
    for i, path in enumerate(sorted(root.rglob("*.*"))):
        path.rename(tmp_path / "split" / ("val" if i % 5 == 0 else "train") / path.parent.name / path.name)
    assert "split" not in draft(tmp_path / "split")[0]["data"]
    assert "; training 16, validation 4" in PictureInspector().inspect(tmp_path / "split").head
    (tmp_path / "split" / "val").rename(tmp_path / "split" / "test")
    assert draft(tmp_path / "split")[0]["data"]["split"] == {"training": 0.85, "validation": 0.15}


def test_one_class_alone_cannot_be_told_apart(root: Path) -> None:
    for path in (root / "dogs").iterdir():
        path.unlink()
    (root / "dogs").rmdir()
    with pytest.raises(SigmaConfigError, match="all pictures are of one class, 'cats'. Add a folder with others"):
        draft(root)


def test_a_picture_outside_of_the_classes_is_refused(root: Path) -> None:
    save(root / "loose.png", noise(8, 8))
    with pytest.raises(SigmaDataError, match=r"'loose\.png' is not in the folder of a class"):
        draft(root)
    findings = PictureInspector().inspect(root).findings
    assert findings == ["1 picture is not in the folder of a class: the label may be in a table."]


# -- tables of labels --------------------------------------------------------------------------------------------------
@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Return a folder of twelve pictures with a table."""
    lines = ["file,kind,size,red,marks"]
    for i in range(12):
        save(tmp_path / "shop" / "images" / f"{i:02}.png", noise(16, 16, seed=i))
        lines.append(f"{i:02}.png,{'cup' if i % 2 else 'hat'},{i * 1.5},{i % 3 // 2},{'a;b' if i % 2 else 'b'}")
    (tmp_path / "shop" / "labels.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "shop"


def test_a_table_names_the_classes(listed: Path) -> None:
    tables, _ = draft(listed, target="kind")
    data = tables["data"]
    assert data["folder"] == f"{listed}/images"
    assert (data["table"], data["column"], data["target"]) == (f"{listed}/labels.csv", "file", "kind")
    assert "output(2) + softmax_cross_entropy()" in tables["network"]["architecture"]


def test_numbers_of_a_table_are_predicted_as_numbers(listed: Path) -> None:
    tables, _ = draft(listed, target="size")
    assert "output(1) + squared_difference()" in tables["network"]["architecture"]
    assert tables["data"]["preprocessors"]["target"] == {"type": "standardise", "section": "targets"}
    assert tables["hooks"]["score"]["type"] == "r_squared"


def test_several_labels_are_separated_words_or_columns_of_0_and_1(listed: Path) -> None:
    tables, _ = draft(listed, target="marks")
    assert tables["data"]["separator"] == ";"
    assert "output(2) + binary_cross_entropy()" in tables["network"]["architecture"]
    text = (listed / "labels.csv").read_text().replace("size", "blue")
    rows = [line.split(",") for line in text.splitlines()]
    text = "\n".join(",".join([*row[:2], row[2] if i == 0 else str(i % 2), *row[3:]]) for i, row in enumerate(rows))
    (listed / "labels.csv").write_text(text + "\n")
    tables, _ = draft(listed, target="red, blue")
    assert tables["data"]["target"] == ["red", "blue"]
    assert "output(2) + binary_cross_entropy()" in tables["network"]["architecture"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (None, r"which column is to be predicted\? Name it, or several with commas: --target\. There are: kind"),
        ("kinds", "there is no column 'kinds'"),
        ("red,kind", "column 'kind' holds words"),
    ],
)
def test_what_to_predict_from_a_table_must_be_clear(listed: Path, target: str | None, expected: str) -> None:
    with pytest.raises(SigmaConfigError, match=expected):
        draft(listed, **({} if target is None else {"target": target}))


def test_a_table_without_paths_is_refused(listed: Path) -> None:
    (listed / "labels.csv").write_text("file,kind\nx.png,cup\ny.png,hat\n")
    for path in [*(listed / "images").iterdir()]:
        path.rename(listed / path.name)
    with pytest.raises(SigmaDataError, match="no column has the paths of pictures below"):
        draft(listed)


def test_a_column_of_long_texts_holds_no_paths(listed: Path) -> None:
    rows = "".join(f"{'long words ' * 500},{i:02}.png,{'cup' if i % 2 else 'hat'}\n" for i in range(12))
    (listed / "labels.csv").write_text("about,file,kind\n" + rows)
    assert draft(listed, target="kind")[0]["data"]["column"] == "file"


def test_a_target_needs_a_table(root: Path) -> None:
    with pytest.raises(SigmaConfigError, match="--target: there is no table of labels"):
        draft(root, target="kind")


def test_an_inspection_is_plain_json(listed: Path) -> None:
    document = PictureInspector().inspect(listed).document
    assert json.loads(json.dumps(document)) == document
    assert document["others"] == ["labels.csv"]


# -- hostile files -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_damaged_files_are_facts_and_no_errors(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    exif = Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    Image.fromarray(noise(12, 10)).save(stream, kind, **({"exif": exif} if kind in ("PNG", "JPEG", "WEBP") else {}))
    for number in range(60):
        content = bytearray(stream.getvalue())
        for place in rng.integers(0, len(content), 1 + number % 6):
            content[place] = rng.integers(256)
        cut = int(rng.integers(1, len(content))) if number % 3 == 0 else len(content)
        (tmp_path / f"{number:02}.{kind.lower()}").write_bytes(content[:cut])
    profile = profile_pictures(tmp_path)
    assert len(profile.labels) == len(profile.facts) == 60
    assert all((fact.copy is None) == bool(fact.fault) for fact in profile.facts)
    assert PictureInspector().inspect(tmp_path).document["pictures"] == 60


def test_a_link_that_leaves_the_folder_is_refused(root: Path, tmp_path: Path) -> None:
    save(tmp_path / "outside.png", noise(8, 8))
    (root / "cats" / "link.png").symlink_to(tmp_path / "outside.png")
    for look in (PictureInspector().inspect, draft):
        with pytest.raises(SigmaDataError, match=r"link\.png: is a link that leaves the folder"):
            look(root)


def test_paths_of_a_table_that_leave_the_folder_are_no_paths(listed: Path) -> None:
    (listed.parent / "outside.png").write_bytes((listed / "images" / "00.png").read_bytes())
    (listed / "labels.csv").write_text("file,kind\n" + "../outside.png,cup\n../outside.png,hat\n" * 3)
    with pytest.raises(SigmaDataError, match="no column has the paths of pictures below"):
        draft(listed)
