"""``sigma data`` and ``sigma init DATA``: look at data, and draft a configuration that trains on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sigma_data
from sigma_run.launcher.group import main


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with a table of houses, of which size, city and date of sale make the price."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["name,size,city,sold,price"]
    for i in range(240):
        size, city = rng.uniform(30, 200), ("Bern", "Basel", "Zug")[i % 3]
        price = 3 * size + {"Bern": 0, "Basel": 80, "Zug": 200}[city] + rng.normal(0, 10)
        gap = "" if i % 17 == 0 else f"{size:.1f}"
        lines.append(f"house {i},{gap},{city},20{10 + i // 24:02d}-{1 + i % 12:02d}-15,{price:.1f}")
    (tmp_path / "houses.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_data_show_prints_columns_with_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show", "houses.csv"]) == 0
    out, err = capsys.readouterr()
    assert "houses.csv: 240 rows, 5 columns" in err
    kinds = {row.split()[0]: row.split()[1] for row in out.splitlines()[1:]}
    assert kinds == {"name": "identifier", "size": "number", "city": "category", "sold": "date", "price": "number"}


def test_data_show_as_json_has_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show", "houses.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (size,) = (column for column in found["columns"] if column["name"] == "size")
    assert (found["rows"], size["missing"]) == (240, 15)
    assert 30 < size["figures"]["minimum"] < size["figures"]["median"] < size["figures"]["maximum"] < 200


def test_a_draft_trains_as_it_stands_and_beats_the_mean(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    assert main(["init", "houses.csv", "--target", "price"]) == 0
    assert "wrote houses.toml" in capsys.readouterr().err
    assert main(["check", "houses.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "houses.toml", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["metrics"]["validation.r_squared"] > 0.8
    (run,) = (place / "runs").iterdir()
    rows = (place / "houses.csv").read_text().splitlines()
    (place / "few.csv").write_text("\n".join(rows[:60]) + "\n")
    assert main(["evaluate", str(run), "few.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["r_squared"] > 0.8
    (place / "new.csv").write_text("city,size,sold\nZug,100,2020-06-15\nGenf,,2021-01-15\n")
    assert main(["predict", str(run), "new.csv", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["predictions"]
    assert 400 < first["values"][0] < 600
    assert np.isfinite(second["values"][0])


def test_a_draft_of_classes_can_be_trained_at_once(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    out = place / "elsewhere"
    out.mkdir()
    options = ["--target", "city", "--output", str(out / "cities.toml"), "--run"]
    assert main(["init", "houses.csv", *options]) == 0
    err = capsys.readouterr().err
    assert "houses finished" in err
    assert "validation.accuracy" in err
    assert f'path = "{place.as_posix()}/houses.csv"' in (out / "cities.toml").read_text()


def test_a_path_below_the_configuration_is_relative(place: Path) -> None:
    (place / "data").mkdir()
    (place / "houses.csv").rename(place / "data" / "houses.csv")
    assert main(["init", "data/houses.csv", "--target", "price"]) == 0
    assert 'path = "data/houses.csv"' in (place / "houses.toml").read_text()


MISTAKES = {
    "no target": (["init", "houses.csv"], "which column is to be predicted? Name it: --target 'price'"),
    "unknown target": (
        ["init", "houses.csv", "--target", "prise"],
        "no column 'prise' to predict. Did you mean 'price'?",
    ),
    "no file": (["init", "flats.csv", "--target", "x"], "flats.csv: there is no such file or folder"),
    "a recipe": (["init", "iris", "--target", "x"], "--target: 'iris' is a recipe"),
    "no data": (["data", "show", "."], "no installed plugin knows such data by its name"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_a_sentence(mistake: str, capsys: pytest.CaptureFixture[str], place: Path) -> None:
    arguments, message = MISTAKES[mistake]
    if mistake == "no data":
        (place / "houses.csv").unlink()
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_damaged_table_is_a_mistake_too(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "houses.parquet").write_bytes(b"PAR1")
    assert main(["init", "houses.parquet", "--target", "price"]) == 2
    assert main(["data", "show", "houses.parquet"]) == 2
    assert "houses.parquet" in capsys.readouterr().err


def test_the_data_of_a_run_are_those_of_its_configuration(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    rows = (place / "houses.csv").read_text()
    (place / "houses.csv").write_text(rows + rows.partition("\n")[2])  # each twice, and some in two splits
    assert main(["init", "houses.csv", "--target", "price"]) == 0
    assert main(["run", "houses.toml", "--epochs", "1", "--quiet"]) == 0
    (run,) = (place / "runs").iterdir()
    capsys.readouterr()
    findings = []
    for what in ("houses.toml", str(run), f"{run}/"):
        assert main(["data", "check", what, "--json"]) == 1
        findings.append(json.loads(capsys.readouterr().out)["findings"])
    assert findings[0] == findings[1] == findings[2]
    assert "shared-rows" in [finding["rule"] for finding in findings[0]]
    assert main(["data", "check", str(run), "--set", "run.seed=1"]) == 1
    for command in (["data", "show", str(run)], ["init", str(run)]):
        assert main(command) == 2
        assert "is the folder of a run. `sigma data check` takes it" in capsys.readouterr().err
    (place / "folder").mkdir()
    (place / "folder" / "config.toml").write_text("mine")
    (place / "folder" / "x.csv").write_text((place / "houses.csv").read_text())
    assert main(["data", "show", "folder"]) == 2  # a configuration alone makes no run
    assert "folder/config.toml: there is no row" in capsys.readouterr().err


def test_an_existing_configuration_is_not_replaced(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "houses.toml").write_text("mine")
    assert main(["init", "houses.csv", "--target", "price"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert (place / "houses.toml").read_text() == "mine"


# -- the cache ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def prepared(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the entries of a cache with two tables in blocks."""
    monkeypatch.setenv("SIGMA_CACHE", str(place / "cache"))
    for target in ("price", "size"):
        sigma_data.Tabular(Path("houses.csv"), target, block_rows=50, missing_targets="drop")["training"]
    return [*(place / "cache" / "tables").iterdir()]


def test_the_cache_is_listed(prepared: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "cache"]) == 0
    out, err = capsys.readouterr()
    heading, *rows = out.splitlines()
    assert heading.split() == ["ENTRY", "SIZE", "LAST", "USE", "SOURCE"]
    assert sorted(row.split()[0] for row in rows) == sorted({path.name[:12] for path in prepared})
    assert all(row.endswith("houses.csv") for row in rows)
    assert "2 entries, 0.0 MB" in err
    assert main(["data", "cache", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    sizes = {path.name: sum(file.stat().st_size for file in path.iterdir()) for path in prepared if path.is_dir()}
    assert {entry["entry"]: entry["bytes"] for entry in entries} == sizes
    assert entries[0]["last_use"] > entries[1]["last_use"] > "2020"


def test_entries_of_the_cache_are_deleted(
    prepared: list[Path], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = sorted({path.name[:64] for path in prepared})
    assert main(["data", "cache", first[:9], "--clear"]) == 0
    assert "deleted: 1 entry, " in capsys.readouterr().err
    assert {path.name[:64] for path in (place / "cache" / "tables").iterdir()} == {second}
    assert main(["data", "cache", "--clear", "--json"]) == 0
    assert [entry["entry"] for entry in json.loads(capsys.readouterr().out)["cleared"]] == [second]
    assert [*(place / "cache" / "tables").iterdir()] == []
    assert main(["data", "cache"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "0 entries, 0.0 MB\n")
    sigma_data.Tabular(Path("houses.csv"), "price", block_rows=50, cache=place / "own")["training"]
    assert main(["data", "cache", "--folder", "own", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 1


def test_an_entry_that_is_not_in_the_cache_is_a_mistake(
    prepared: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "cache", "nothing", "--clear"]) == 2
    assert "'nothing': no entry of the cache has this name" in capsys.readouterr().err
    assert all(path.exists() for path in prepared)
