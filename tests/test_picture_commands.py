"""``sigma init``, ``data show`` and ``predict`` for folders of pictures."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from sigma_data import Textures
from sigma_run.launcher.group import main

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with small photographs of brick, grass and gravel, and some others, larger, apart."""
    monkeypatch.chdir(tmp_path)
    Textures.write(tmp_path / "textures")
    for name in ("brick", "grass", "gravel"):
        (tmp_path / "new").mkdir(exist_ok=True)
        for number in range(40, 80):
            path = tmp_path / "textures" / name / f"{number}.jpg"
            path.rename(tmp_path / "new" / f"{name}-{number}.jpg") if number >= 70 else path.unlink()
    for path in (tmp_path / "textures").rglob("*.jpg"):
        Image.open(path).resize((16, 16)).save(path)
    return tmp_path


def test_a_draft_trains_as_it_stands_and_predicts_each_file_by_its_name(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    assert main(["init", "textures/"]) == 0
    assert 'folder = "textures"' in (place / "textures.toml").read_text()
    assert main(["check", "textures.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "textures.toml", "--set", "trainer.epochs=25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["validation.accuracy"] > 0.6  # a third by chance
    (run,) = (place / "runs").iterdir()
    assert main(["predict", str(run), "new/", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["predictions"]
    assert [answer["input"] for answer in answers] == sorted(str(path) for path in Path("new").iterdir())
    right = [answer["label"] == Path(answer["input"]).name.partition("-")[0] for answer in answers]
    assert np.mean(right) > 0.6
    assert all(abs(sum(answer["probabilities"]) - 1) < 1e-5 for answer in answers)
    assert main(["predict", str(run), "new/", "--output", "answers.csv"]) == 0
    with open("answers.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["input"] for row in rows] == [answer["input"] for answer in answers]
    assert {*rows[0]} >= {"label", "probability_brick", "probability_grass", "probability_gravel"}


def test_a_folder_of_pictures_is_trained_on_at_once(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "textures" / "brick" / "broken.jpg").write_bytes(b"\xff\xd8\xff and no more")
    assert main(["init", "textures", "--run", "--output", str(place / "once.toml")]) == 0
    err = capsys.readouterr().err
    assert "note: 1 of 121 pictures cannot be read and are left out: brick/broken.jpg" in err
    assert "textures finished" in err


@pytest.mark.long_cases("tar-.tar")
@pytest.mark.parametrize(("kind", "end"), [("zip", ".zip"), ("tar", ".tar"), ("gztar", ".tar.gz")])
def test_an_archive_is_trained_on_and_predicted_file_by_file(
    kind: str, end: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    shutil.make_archive("packed", kind, place, "textures")
    assert main(["init", f"packed{end}"]) == 0
    assert main(["run", "packed.toml", "--set", "trainer.epochs=1"]) == 0
    (run,) = (place / "runs").iterdir()
    shutil.make_archive("new", kind, place / "new")
    capsys.readouterr()
    answers = []
    for where in ("new", f"new{end}"):
        assert main(["predict", str(run), where, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["predictions"])
    assert [answer["input"] for answer in answers[1]] == [f"new{end}/{Path(row['input']).name}" for row in answers[0]]
    assert [answer["probabilities"] for answer in answers[1]] == [answer["probabilities"] for answer in answers[0]]
    assert main(["predict", str(run), f"new{end}", "--save", "answers.csv"]) == 0
    rows = Path("answers.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == [f'"{answer["input"]}"' for answer in answers[1]]


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        ("surface", "accuracy"),
        ("marks", "threshold_accuracy"),
        ("hard,rough", "threshold_accuracy"),
        ("weight", "r_squared"),
    ],
)
def test_labels_of_a_table_are_trained_on(
    target: str, metric: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    lines = ["file,surface,marks,hard,rough,weight"]
    for i, path in enumerate(sorted((place / "new").iterdir())):
        surface = path.name.partition("-")[0]
        hard, rough = surface != "grass", surface != "brick"
        marks = ";".join(["flat", *["hard"] * hard, *["rough"] * rough])
        lines.append(f"{path.name},{surface},{marks},{hard:d},{rough:d},{i + 0.5}")
    (place / "new" / "labels.csv").write_text("\n".join(lines) + "\n")
    assert main(["init", "new", "--target", target]) == 0
    assert main(["check", "new.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "new.toml", "--set", "trainer.epochs=2", "--json"]) == 0
    assert np.isfinite(json.loads(capsys.readouterr().out)["metrics"][f"validation.{metric}"])


@pytest.mark.parametrize(("columns", "expected"), [(100, True), (None, False)])
def test_samples_are_shown_on_a_terminal_alone(
    columns: int | None, expected: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_run.launcher.inspection.width", lambda: columns)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["data", "show", "textures"]) == 0
    out, err = capsys.readouterr()
    assert "textures: 120 pictures, 3 classes, 16 x 16, grey, JPEG" in err
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [["brick", "40"], ["grass", "40"], ["gravel", "40"]]
    assert (len(out.splitlines()) > 4) == expected
    assert ("▓" in out) == expected


def test_a_folder_is_described_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show", "textures", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["classes"] == {"brick": 40, "grass": 40, "gravel": 40}
    assert (document["formats"], document["colours"], document["broken"]) == ({"JPEG": 120}, False, {})


def test_a_wish_that_does_not_fit_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "textures", "--target", "price"]) == 2
    assert "--target: there is no table of labels in textures" in capsys.readouterr().err


def test_the_page_about_pictures_shows_what_is_written(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    page = Path(__file__).parents[1] / "docs" / "how-to" / "own-pictures.md"
    shown = page.read_text().partition("```\n[data]")[2].partition("```")[0]
    Textures.write(place / "elsewhere" / "textures")
    assert main(["init", "elsewhere/textures", "--output", "elsewhere/textures.toml"]) == 0
    assert f"[data]{shown}" in (place / "elsewhere" / "textures.toml").read_text()
