from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from sigma_data import Csv
from sigma_kernel import SigmaConfigError, SigmaDataError

FLOWERS = "length,width,species,weight\n1,2,rose,1.5\n3,4,aster,2.5\n5,6,rose,3.5\n7,8,iris,4.5\n"


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "flowers.csv").write_text(FLOWERS)
    return tmp_path / "flowers.csv"


def read(path: Path, target, **settings):
    rows, classes = Csv(path, target, **settings).all_rows()
    return rows.block(0), classes


def test_classes_by_name_become_indices_in_alphabetical_order(path):
    block, classes = read(path, "species")
    assert classes == ("aster", "iris", "rose")
    assert block["targets"].tolist() == [2, 0, 2, 1]
    assert block["targets"].dtype == np.int32
    assert block["inputs"].tolist() == [[1, 2, 1.5], [3, 4, 2.5], [5, 6, 3.5], [7, 8, 4.5]]
    assert block["inputs"].dtype == np.float64


def test_it_has_splits_and_class_names(path):
    data = Csv(path, "species", split={"training": 0.75, "validation": 0.25})
    assert [len(part) for part in data.values()] == [3, 1]
    assert data.classes == ("aster", "iris", "rose")


def test_a_column_of_fractions_is_a_numeric_target(path):
    block, classes = read(path, "weight", inputs=("width", 0))
    assert classes == ()
    assert block["inputs"].tolist() == [[2, 1], [4, 3], [6, 5], [8, 7]]
    assert block["targets"].tolist() == [[1.5], [2.5], [3.5], [4.5]]


def test_integers_are_numbers_for_one_cost_and_classes_for_another(path):
    rows, classes = Csv(path, 0, inputs=("width",)).all_rows()
    assert (rows.block(0)["targets"].tolist(), classes) == ([[1.0], [3.0], [5.0], [7.0]], ())
    assert rows.encode("targets", None).block(0)["targets"].tolist() == [[1.0], [3.0], [5.0], [7.0]]
    encoded = rows.encode("targets", 4)
    assert (encoded.block(0)["targets"].tolist(), encoded.class_names("targets")) == (
        [0, 1, 2, 3],
        (1, 3, 5, 7),
    )
    assert np.shares_memory(encoded.block(0)["inputs"], rows.block(0)["inputs"])


def test_the_kind_of_targets_can_be_set(path):
    block, classes = read(path, "length", inputs=("width",), targets="numbers")
    assert (block["targets"].tolist(), classes) == ([[1.0], [3.0], [5.0], [7.0]], ())
    rows, classes = Csv(path, "length", inputs=("width",), targets="classes").all_rows()
    assert (rows.block(0)["targets"].tolist(), classes) == ([0, 1, 2, 3], (1, 3, 5, 7))
    assert rows.encode("targets", None).block(0)["targets"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("units", "indices", "classes"), [
    (8, [1, 3, 5, 7], tuple(range(8))),  # all of them are indices of eight classes
    (4, [0, 1, 2, 3], (1, 3, 5, 7)),
    (0, [0, 1, 2, 3], (1, 3, 5, 7)),
])  # fmt: skip
def test_integers_that_are_valid_indices_are_kept(path, units, indices, classes):
    rows = Csv(path, "length", inputs=("width",)).all_rows()[0].encode("targets", units)
    assert (rows.block(0)["targets"].tolist(), rows.class_names("targets")) == (indices, classes)


def test_integer_labels_can_be_split_by_class(path):
    path.write_text("x,y\n" + "".join(f"{i},{i % 2 + 5}\n" for i in range(20)))
    parts = Csv(path, "y", split={"training": 0.5, "validation": 0.5}, split_by="stratified")
    assert sorted(parts["training"].block(0)["targets"].ravel().tolist()) == [5.0] * 5 + [6.0] * 5


def test_classes_by_number_are_in_numerical_order(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{i}.0\n" for i in (10, 9, -1, 100)))
    block, classes = read(tmp_path / "a.csv", "y", targets="classes")
    assert classes == (-1, 9, 10, 100)
    assert block["targets"].tolist() == [2, 1, 0, 3]


def test_integer_classes_stay_distinct_beyond_float_precision(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"1,{2**53 + i}\n" for i in (1, 0, 2, 1)))
    rows = Csv(tmp_path / "a.csv", "y").all_rows()[0].encode("targets", 3)
    classes = (9007199254740992, 9007199254740993, 9007199254740994)
    assert rows.class_names("targets") == classes
    assert rows.block(0)["targets"].tolist() == [1, 0, 2, 1]
    assert read(tmp_path / "a.csv", "y", targets="classes", missing="drop")[1] == classes


@pytest.mark.parametrize("columns", ["y", ("y", "z")])
def test_numbers_to_predict_that_floats_would_merge_are_refused_with_their_line(tmp_path, columns):
    text = "x,y,z\n1,7,0.5\n1,9007199254740993,0.5\n"
    (tmp_path / "a.csv").write_text(text)
    what = (
        r"column 'y': the target: line 3 holds 9007199254740993, and floats cannot tell integers beyond 2\*\*53 apart"
    )
    with pytest.raises(SigmaDataError, match=rf"a\.csv: {what}. Write such numbers as floats\."):
        read(tmp_path / "a.csv", columns, inputs=("x",), targets="numbers")
    (tmp_path / "a.csv").write_text(text.replace("9007199254740993", "9007199254740993.0"))
    assert read(tmp_path / "a.csv", columns, inputs=("x",), targets="numbers")[0]["targets"][1, 0] == 2.0**53


@pytest.mark.parametrize(("cell", "form"), [
    (str(2**64 + 1), {}), (str(2**53 + 1), {"decimal": ","}), ("9_007_199_254_740_993", {"thousands": "_"}),
    ("9.007.199.254.740.993", {"thousands": ".", "decimal": ","}),
])  # fmt: skip
def test_integers_that_floats_would_merge_are_refused_in_every_form(tmp_path, cell, form):
    (tmp_path / "a.csv").write_text(f"x;y\n1;7\n2;{cell}\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv.*3.*floats cannot tell .* beyond 2\*\*53"):
        read(tmp_path / "a.csv", "y", delimiter=";", targets="numbers", **form)
    with pytest.raises(SigmaDataError, match=f"a.csv:3: column 'y': floats cannot tell {cell} from its neighbours"):
        read(tmp_path / "a.csv", "x", delimiter=";", **form)


def test_a_table_is_read_in_double_precision(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,z,w\n1700000001,0.1,0.7,1.1\n")
    block, _ = read(tmp_path / "a.csv", ("y", "z"), inputs=("x",), weights="w")
    assert {name: values.tolist() for name, values in block.items()} == {
        "inputs": [[1700000001.0]], "targets": [[0.1, 0.7]], "weights": [1.1],
    }  # fmt: skip
    assert Csv(tmp_path / "a.csv", ("y", "z", "w")).samples(tmp_path / "a.csv", (1,)).tolist() == [[1700000001.0]]


@pytest.mark.parametrize("other", ["9007199254740993.0", "1e20"])
def test_float_classes_beyond_exact_precision_are_refused(tmp_path, other):
    (tmp_path / "a.csv").write_text(f"x,y\n1,7\n1,{other}\n")
    with pytest.raises(SigmaDataError, match="the target: line 3 holds .* float64 cannot distinguish .*as words"):
        read(tmp_path / "a.csv", "y", targets="classes")


def test_several_targets_are_a_vector_of_numbers(path):
    block, classes = read(path, ("weight", "length"), inputs=("width",))
    assert (block["targets"].tolist()[0], classes) == ([1.5, 1.0], ())


def test_samples_can_be_scaled_and_reshaped(path):
    block, _ = read(path, "species", inputs=("length", "width"), scale=0.5, shape=(2, 1))
    assert block["inputs"][0].tolist() == [[0.5], [1.0]]
    with pytest.raises(SigmaConfigError, match=r"shape: .*flowers\.csv has 3 values a row, which do not make \[2, 2\]"):
        read(path, "species", shape=(2, 2))


def test_a_file_without_a_header_has_numbered_columns(tmp_path):
    (tmp_path / "a.txt").write_text("1;2;yes\n3;4;no\n")
    block, classes = read(tmp_path / "a.txt", -1, header=False, delimiter=";")
    assert (block["inputs"].tolist(), block["targets"].tolist(), classes) == ([[1, 2], [3, 4]], [1, 0], ("no", "yes"))


def test_a_compressed_file_is_decompressed(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(FLOWERS.encode()))
    assert len(Csv(tmp_path / "a.csv.gz", "species").all_rows()[0]) == 4


def test_an_unknown_target_suggests_similar_names(path):
    with pytest.raises(SigmaDataError, match=r"flowers\.csv: there is no column 'specie'. Did you mean 'species'?"):
        read(path, "specie")


def test_a_missing_target_setting_is_reported(path):
    with pytest.raises(SigmaDataError, match="there is no target. Name a column"):
        read(path, ())


def test_a_target_among_the_inputs_is_reported(path):
    with pytest.raises(SigmaDataError, match="column 'weight' is named 2 times"):
        read(path, "weight", inputs=("length", -1))


def test_words_among_the_inputs_are_reported_with_their_line(path):
    with pytest.raises(SigmaDataError, match=r"flowers\.csv:2: column 'species': 'rose' is not a number"):
        read(path, "weight")


def test_fractions_are_not_classes(path):
    with pytest.raises(SigmaDataError, match="the target: line 2 holds 1.5, which is not a class"):
        read(path, "weight", inputs=("length",), targets="classes")


@pytest.fixture
def gaps(tmp_path) -> Path:
    (tmp_path / "gaps.csv").write_text(
        "a,b,kind,size\n1,2,rose,1.5\n\n,4,aster,2.5\n5,6,,3.5\n7,NA,iris,NA\n9,0,iris,1\n"
    )
    return tmp_path / "gaps.csv"


def test_a_missing_value_names_settings_that_this_data_set_has(gaps):
    with pytest.raises(SigmaDataError, match="gaps.csv:4: column 'a': a value is missing. .*set missing = 'drop'"):
        read(gaps, "size", inputs=("a",))
    with pytest.raises(SigmaDataError, match="gaps.csv:5: the target: a value is missing. .*set missing = 'drop'"):
        read(gaps, "kind", inputs=("a",), missing=0)
    with pytest.raises(SigmaDataError, match="gaps.csv:6: the target: a value is missing. .*set missing = 'drop'"):
        read(gaps, "size", inputs=("a",), missing=0)


def test_rows_with_a_missing_value_can_be_dropped(gaps):
    block, classes = read(gaps, "kind", inputs=("a", "b"), missing="drop")
    assert block["inputs"].tolist() == [[1, 2], [9, 0]]
    assert (block["targets"].tolist(), classes) == ([1, 0], ("iris", "rose"))
    block, _ = read(gaps, "size", inputs=("b",), missing="drop")
    assert block["inputs"].tolist() == [[2], [4], [6], [0]]
    assert block["targets"].tolist() == [[1.5], [2.5], [3.5], [1.0]]


def test_missing_inputs_are_replaced_by_a_number_before_scaling(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n?,1\n")
    assert read(tmp_path / "a.csv", "y", missing=-2, scale=0.5)[0]["inputs"].tolist() == [[0.5], [-1.0]]


def test_a_table_with_a_missing_value_in_every_row_is_reported(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n,0\n3,\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv: a value is missing in every row\. Name fewer"):
        read(tmp_path / "a.csv", "y", missing="drop")


@pytest.mark.parametrize("missing", ["mean", float("nan"), float("inf"), None])
def test_an_invalid_missing_setting_is_reported(path, missing):
    with pytest.raises(SigmaConfigError, match="Csv.missing: must be 'refuse', 'drop' or a number"):
        Csv(path, "species", missing=missing)


def test_no_row_of_a_file_without_a_header_is_taken_for_names(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,rose\n3,4,aster\n")
    data = Csv(tmp_path / "a.csv", 2, header=False)
    assert data.samples(tmp_path / "a.csv", (2,)).tolist() == [[1, 2], [3, 4]]
    (tmp_path / "named.csv").write_text("a,b,kind\n1,2,rose\n")
    assert data.samples(tmp_path / "named.csv", (2,)).tolist() == [[1, 2]]


def test_a_word_in_a_numeric_target_is_reported_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n\n3,high\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv:4: column 'y': the target 'high' is not .* targets = 'classes'"):
        read(tmp_path / "a.csv", "y", targets="numbers")
    (tmp_path / "a.csv").write_text("x,y,z\n1,0,1\n3,high,1\n")
    with pytest.raises(
        SigmaDataError, match=r"a\.csv:3: column 'y': the target 'high' .* Correct it, or make it the only"
    ):
        read(tmp_path / "a.csv", ("x", "y"))


def test_an_infinite_target_is_named_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n1e39,0.5\n0,inf\n")
    with pytest.raises(SigmaDataError, match=r"a\.csv:4: column 'y': the target is not finite\. Correct it\."):
        read(tmp_path / "a.csv", "y")


def test_a_wrong_header_or_delimiter_setting_is_suggested(path):
    path.write_text(FLOWERS.replace(",", ";"))
    with pytest.raises(SigmaDataError, match="no column 'species'. .*set delimiter = ';'"):
        read(path, "species")
    path.write_text(FLOWERS.partition("\n")[2])
    with pytest.raises(SigmaDataError, match="no column 'species'. .*set header = false"):
        read(path, "species")
    with pytest.raises(SigmaConfigError, match="delimiter"):
        Csv(path, "species", delimiter=", ")


def test_a_table_with_only_targets_is_reported(tmp_path):
    (tmp_path / "a.csv").write_text("y\n1\n2\n")
    with pytest.raises(SigmaDataError, match="there is no column except the target"):
        read(tmp_path / "a.csv", "y")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SigmaDataError, match=r"gone\.csv: there is no such file"):
        Csv(tmp_path / "gone.csv", "y")["training"]


def test_columns_have_the_names_of_the_header_and_categories_theirs(tmp_path):
    (tmp_path / "t.csv").write_text("size,colour,kind\n1,red,a\n2,blue,b\n3,red,a\n4,blue,b\n")
    rows, _ = Csv(tmp_path / "t.csv", "kind", encode="colour").all_rows()
    assert rows.column_names("inputs") == ("size", "colour = blue", "colour = red")
    assert rows.column_names("targets") == ()
    assert rows.encode("targets", 2).column_names("inputs") == rows.column_names("inputs")
    assert Csv(tmp_path / "t.csv", "kind", encode="colour")["training"].column_names("inputs")[0] == "size"
    chosen = Csv(tmp_path / "t.csv", "kind", inputs=("size",), shape=(1, 1))
    assert chosen.all_rows()[0].column_names("inputs") == (), "pixels have no names"
    (tmp_path / "u.csv").write_text("1,2,a\n3,4,b\n")
    assert Csv(tmp_path / "u.csv", 2, header=False).all_rows()[0].column_names("inputs") == ()


# -- groups ------------------------------------------------------------------------------------------------------------
VOICES = "name,pitch,status\n" + "".join(
    f"S{person:02}_{i},{person + i / 10},{person % 2}\n" for person in range(10) for i in range(3)
)


def persons(data: Csv) -> dict[str, set[int]]:
    return {name: {int(x) for x in part.block(0)["inputs"][:, 0]} for name, part in data.items()}


@pytest.fixture
def voices(tmp_path) -> Path:
    (tmp_path / "voices.csv").write_text(VOICES)
    return tmp_path / "voices.csv"


@pytest.mark.parametrize("split_by", ["record", "block", "stratified"])
def test_rows_of_a_group_are_in_one_split_and_its_name_is_no_input(voices, split_by):
    data = Csv(voices, "status", group="name", group_before="_", split_by=split_by, targets="classes")
    assert data["training"].sections["inputs"].shape == (1,)
    assert data["training"].column_names("inputs") == ("pitch",)
    found = persons(data)
    assert len(found["training"]) == 8
    assert found["training"] | found["validation"] == {*range(10)}
    assert len(data["training"]) == 24
    if split_by == "stratified":
        assert sum(person % 2 for person in found["validation"]) == 1


def test_without_an_end_the_whole_cell_names_the_group(voices):
    data = Csv(voices, "status", inputs=("pitch",), group="name")
    assert data.all_rows()[0].sections["inputs"].shape == (1,)
    assert data.groups() == tuple(line.partition(",")[0] for line in VOICES.split()[1:])


def test_a_column_of_numbers_names_groups_and_dropped_rows_have_none(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("who,x,w,y\n1,1.5,1,0\n1,?,1,1\n2,2.5,3,1\n")
    data = Csv(path, "y", weights="w", group="who", missing="drop")
    block = data.all_rows()[0].block(0)
    assert data.groups() == ("1", "2")
    assert block["weights"].tolist() == [1, 3]
    assert block["inputs"].tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("", {}, "voices.csv:2: column 'name': a value is missing"),
        ("S01", {"group_before": "_"}, r"voices.csv:2: column 'name': names no group before a '_'\. Fill it in"),
        ("S01", {"group": "who"}, "there is no column 'who'"),
    ],
)
def test_a_row_without_a_group_is_reported(tmp_path, name, settings, message):
    path = tmp_path / "voices.csv"
    path.write_text(f"name,pitch,status\n{name},1,0\nS02_1,2,1\n")
    with pytest.raises(SigmaDataError, match=message):
        Csv(path, "status", **{"group": "name", **settings}).all_rows()


def test_the_end_of_a_groups_name_needs_its_column(voices):
    with pytest.raises(SigmaConfigError, match=r"Csv\.group_before: there is no `group`\. Set `group` to the column"):
        Csv(voices, "status", group_before="_")


def test_samples_to_predict_from_may_leave_out_the_group(voices, tmp_path):
    data = Csv(voices, "status", group="name", group_before="_")
    (tmp_path / "new.csv").write_text("pitch\n4.5\n")
    assert data.samples(tmp_path / "new.csv", (1,), learned=data.learned).tolist() == [[4.5]]
    assert data.samples(voices, (1,), learned=data.learned).shape == (30, 1)


def test_a_missing_file_says_where_it_can_be_had(tmp_path):
    with pytest.raises(
        SigmaDataError, match=r"no\.csv: there is no such file\..* It can be had from example\.org; set"
    ):
        Csv(tmp_path / "no.csv", "y", origin="example.org").all_rows()
    with pytest.raises(SigmaDataError, match=r"no\.csv: there is no such file\. Check the path\.$"):
        Csv(tmp_path / "no.csv", "y").all_rows()
