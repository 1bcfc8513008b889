"""``sigma plot``: the numbers of the metrics, in the terminal and in files."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sigma_run.launcher import main

BRAILLE = re.compile("[\u2801-\u28ff]")


def run(parent: Path, name: str = "a", first: float = 1.0, trainers: tuple[str, ...] = ("trainer",)) -> Path:
    """Write the metrics of a run: a loss that halves with each epoch, not finite at last, and an accuracy."""
    rows = [
        {"trainer": trainer, "iteration": 10 * i, "epoch": i, "seconds": i / 4, "values": values(first / 2**i, i)}
        for trainer in trainers
        for i in range(1, 6)
    ]
    folder = parent / name
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ({"format": 1}, *rows)))
    return folder


def values(loss: float, epoch: int) -> dict[str, dict[str, float | None]]:
    last = None if epoch == 5 else loss
    found: dict[str, dict[str, float | None]] = {"training.loss": {"last": last, "low": last, "high": last}}
    if epoch % 2:
        found["validation.accuracy"] = {"last": epoch / 5, "low": epoch / 5, "high": epoch / 5}
    return found


def test_charts_fit_the_terminal_and_end_with_the_last_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["plot", str(run(tmp_path))]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    loss, accuracy = out.split("\n\n")
    assert loss.startswith("loss: training 0.0625\n")  # the last finite one
    assert accuracy.startswith("accuracy: validation 1\n")
    assert BRAILLE.search(loss)
    labels = [float(found) for found in re.findall(r"^ *(\S+) \|", loss, re.MULTILINE) if found[0].isdigit()]
    assert (labels[0], labels[-1]) == (0.5, 0.0625)


def test_the_machine_is_plotted_if_its_values_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    row = {"trainer": "trainer", "iteration": 1, "epoch": 1, "seconds": 1.0}
    measured = {name: {"last": 1.0, "low": 1.0, "high": 1.0} for name in ("training.loss", "system.memory.run")}
    (folder / "metrics.jsonl").write_text(
        "".join(f"{json.dumps(x)}\n" for x in ({"format": 1}, {**row, "values": measured}))
    )
    assert main(["plot", str(folder)]) == 0
    assert "memory" not in capsys.readouterr().out
    assert main(["plot", str(folder), "--value", "system.*"]) == 0
    assert "memory" in capsys.readouterr().out


def test_control_characters_in_the_names_of_a_run_are_written_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path, trainers=("a\x1b[2J", "b"))
    assert main(["plot", str(folder), "--value", "*loss"]) == 0
    out = capsys.readouterr().out
    assert "a\\u001b[2J" in out
    assert "\x1b" not in out


def test_without_colours_several_lines_have_signs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(run(tmp_path, "a")), str(run(tmp_path, "b", 2.0)), "--value", "*loss"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("loss: o training a 0.0625   x training b 0.125\n")
    assert out.count("o") > 4
    assert "\x1b" not in out


def test_a_terminal_gets_colours_unless_it_wants_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["plot", str(run(tmp_path))]) == 0
    assert "38;5;75m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["plot", str(tmp_path / "a")]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(("axis", "first", "last"), [("iteration", 10, 40), ("epoch", 1, 4), ("second", 0.25, 1)])
def test_the_horizontal_axis_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], axis: str, first: float, last: float
) -> None:
    assert main(["plot", str(run(tmp_path)), "--value", "training.loss", "--over", axis]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    labels = [float(text) for text in line.split()[1:]]
    assert labels[0] == first
    assert last <= labels[-1] * 1.3


def test_curves_are_saved_as_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "curves.svg"
    assert main(["plot", str(run(tmp_path, "a<b")), "--save", str(file)]) == 0
    assert capsys.readouterr().err == f"{file}\n"
    texts = ["".join(one.itertext()) for one in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]
    assert {"a<b", "loss", "accuracy", "training 0.0625", "validation 1", "iteration"} <= set(texts)


def test_curves_are_saved_as_csv_with_every_digit(tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"
    assert main(["plot", str(run(tmp_path, first=1 / 3)), "--save", str(file)]) == 0
    rows = [*csv.DictReader(StringIO(file.read_text()))]
    assert len(rows) == 8
    assert rows[0] == {
        "run": "a", "name": "training.loss", "iteration": "10", "epoch": "1", "second": "0.25",
        "value": repr(1 / 6), "low": repr(1 / 6), "high": repr(1 / 6), "mean": repr(1 / 6),
        "count": "1", "left": "0", "time": "",
    }  # fmt: skip
    assert [row["value"] for row in rows if row["epoch"] == "5"] == ["nan", "1.0"]


def rewound(parent: Path) -> Path:
    """Write the metrics of a run that went back from iteration 30 to 10."""
    place = [(10, 0, 0), (20, 0, 0), (30, 0, 0), (20, 1, 10), (40, 1, 10)]
    rows = [
        {"trainer": "trainer", "iteration": at, "epoch": at // 10, "seconds": at / 4, "branch": branch, "session": 0,
         "start": start, "values": values(at + branch / 2, 2)}
        for at, branch, start in place
    ]  # fmt: skip
    folder = parent / "rewound"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ({"format": 1}, *rows)))
    return folder


def test_what_a_rewind_left_is_marked_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(rewound(tmp_path))
    assert main(["plot", run, "--save", str(tmp_path / "x.csv")]) == 0
    rows = [*csv.DictReader(StringIO((tmp_path / "x.csv").read_text()))]
    assert [row["iteration"] for row in rows if row["left"] == "0"] == ["10", "20", "40"]
    assert [(row["iteration"], row["value"]) for row in rows if row["left"] == "1"] == [("20", "20.0"), ("30", "30.0")]
    capsys.readouterr()
    assert main(["plot", run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]["rewound"]["training.loss"]
    assert found["values"] == [10.0, 20.5, 40.5]
    assert [(one["branch"], one["iterations"]) for one in found["left"]] == [(0, [20, 30])]


def test_what_a_rewind_left_is_drawn_without_a_legend_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(rewound(tmp_path))
    assert main(["plot", run, "--save", str(tmp_path / "x.svg")]) == 0
    tree = ElementTree.parse(tmp_path / "x.svg")
    drawn = [one.get("class", "") for one in tree.iter("{http://www.w3.org/2000/svg}path")]
    assert [one for one in drawn if one.startswith("line")] == ["line left s0", "line s0"]
    texts = ["".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("training")] == ["training 40.5"]
    capsys.readouterr()
    assert main(["plot", run]) == 0
    out = capsys.readouterr().out
    assert out.startswith("loss: training 40.5\n")
    assert out.partition("\n")[2].count(".") > 3  # the points of what was left, beside those of labels


def test_curves_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(run(tmp_path)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]["a"]
    assert found["training.loss"]["iterations"] == [10, 20, 30, 40, 50]
    assert found["training.loss"]["values"] == [0.5, 0.25, 0.125, 0.0625, None]


def test_values_of_several_trainers_begin_with_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(run(tmp_path, trainers=("left", "right"))), "--value", "right.*", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]["a"]
    assert list(found) == ["right.training.loss", "right.validation.accuracy"]


def test_runs_with_the_same_name_are_told_apart_by_their_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").mkdir()
    given = [str(run(tmp_path)), str(run(tmp_path / "x"))]
    assert main(["plot", *given, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["runs"]) == given


def test_a_run_that_measured_nothing_has_no_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text("format = 1\n")
    (tmp_path / "metrics.jsonl").write_text('{"format": 1}\n')
    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "Nothing was measured.\n"


def test_png_without_matplotlib_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert main(["plot", str(run(tmp_path)), "--save", str(tmp_path / "x.png")]) == 3
    assert capsys.readouterr().err.endswith("Install it: pip install matplotlib.\n")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--value", "x"], "--value x: has no recorded values. There are: training.loss, validation.accuracy."),
        (["--save", "x.gif"], "--save x.gif: unknown format. Name a file with one of .svg, .png, .csv."),
        (["--save", "none/x.svg"], "--save none/x.svg: No such file or directory. Choose another file."),
    ],
)
def test_a_mistake_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plot", str(run(tmp_path)), *given]) == 2
    assert capsys.readouterr().err == f"{message}\n"


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("no metrics there. Pass the folder of a run.\n")


def test_the_members_of_a_study_are_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(2):
        (run(tmp_path, str(i), 1.0 + i) / "config.toml").write_text("")
    members = [{"folder": str(i), "overrides": [f"run.seed={i}"]} for i in range(3)]  # the last has not begun
    document = {"format": 1, "name": "a", "varies": ["run.seed"], "members": members}
    (tmp_path / "study.json").write_text(json.dumps(document))
    assert main(["plot", str(tmp_path), "--value", "training.loss", "--json"]) == 0
    curves = json.loads(capsys.readouterr().out)["runs"]
    assert {name: own["training.loss"]["values"][0] for name, own in curves.items()} == {"0": 0.5, "1": 1.0}


def a_search(parent: Path, goal: dict[str, str]) -> Path:
    """Write a search of six trials: the third was pruned, the fourth has failed, the last has not begun."""
    ends = [
        ("finished", 0.5),
        ("finished", 0.7),
        ("pruned", 0.9),
        ("failed", None),
        ("finished", 0.6),
        ("planned", None),
    ]
    members = [
        {"folder": str(i), "overrides": [f"run.seed={i}"], "status": status, "metrics": {"accuracy": value}}
        for i, (status, value) in enumerate(ends)
    ]
    document = {"format": 1, "name": "a", "varies": ["run.seed"], "members": members, "search": {"trials": 6, **goal}}
    (parent / "study.json").write_text(json.dumps(document))
    return parent


@pytest.mark.parametrize(
    ("goal", "best"), [({"maximise": "accuracy"}, [0.5, 0.7, 0.7]), ({"minimise": "accuracy"}, [0.5, 0.5, 0.5])]
)
def test_a_search_is_plotted_over_trials_with_the_best_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], goal: dict[str, str], best: list[float]
) -> None:
    path = a_search(tmp_path, goal)
    assert main(["plot", str(path), "--json"]) == 0
    curves = json.loads(capsys.readouterr().out)["runs"]
    assert {name: own["accuracy"]["iterations"] for name, own in curves.items()} == {
        "each trial": [0, 1, 2, 4], "best so far": [0, 1, 4],
    }  # fmt: skip
    assert curves["each trial"]["accuracy"]["values"] == [0.5, 0.7, 0.9, 0.6]
    assert curves["best so far"]["accuracy"]["values"] == best
    assert main(["plot", str(path)]) == 0
    assert "(trial)" in capsys.readouterr().out
    assert main(["plot", str(path), "--save", str(tmp_path / "a.svg")]) == 0
    assert "trial" in (tmp_path / "a.svg").read_text()


def test_runs_have_no_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run(tmp_path)
    assert main(["plot", str(path), "--over", "trial"]) == 2
    assert capsys.readouterr().err == f"{path}: has no trials. Pass a folder that `sigma search` wrote.\n"
