"""Reports of trained networks: the same numbers in Python, as JSON and on the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_report import calibrate, describe, importance, render_page, saliency, scale_probabilities
from sigma_report.answers import read_answers
from sigma_report.findings import describe_worst
from sigma_run import Trained
from sigma_run.launcher import main


class Tags(HTMLParser):
    """The tags of a page: which are open, and the attributes of all."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def parse(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def test_a_report_of_classes_has_the_numbers_that_evaluation_has(classifier: Trained):
    report = describe(classifier, worst=3)
    assert (report["on"], report["rows"], report["labels"]) == ("validation", 30, ["setosa", "versicolor", "virginica"])
    classes = report["classes"]
    assert classes["calibration"]["log_loss"] == pytest.approx(classifier.evaluate()["loss"], rel=1e-5)
    counts = np.array(classes["confusion"]["counts"])
    assert counts.sum() == 30
    assert classes["accuracy"] == pytest.approx(np.trace(counts) / 30)
    losses = classifier.data.losses("validation", 3)
    assert [row["row"] for row in report["worst"]] == losses.rows.tolist()
    assert [row["loss"] for row in report["worst"]] == pytest.approx(losses.losses.tolist(), rel=1e-4)
    assert "petal length (cm)" in report["worst"][0]["inputs"]["inputs"]["values"]


def test_one_hot_targets_are_classes(classifier: Trained):
    rows = classifier.data.draw_rows("validation")[1]
    one_hot = describe(classifier, (rows["inputs"], np.eye(3, dtype=np.float32)[rows["targets"].reshape(-1)]))
    assert one_hot["classes"]["confusion"] == describe(classifier)["classes"]["confusion"]


def test_a_split_with_rows_is_chosen_and_drawn_rows_keep_their_numbers(estimator: Trained):
    report = describe(estimator, most=10, worst=10)
    assert (report["on"], report["rows"]) == ("validation", 10)
    whole = estimator.data.rows("validation", range(80))["inputs"]
    numbers, sections = estimator.data.draw_rows("validation", 10)
    assert (np.diff(numbers) > 0).all()
    assert (sections["inputs"] == whole[numbers]).all()
    assert {row["row"] for row in report["worst"]} == {*numbers.tolist()}
    assert (estimator.data.draw_rows("validation", 10, seed=1)[0] != numbers).any()


def test_a_report_of_numbers_is_in_units_of_the_data(estimator: Trained):
    report = describe(estimator, "test")
    (column,) = report["numbers"]
    assert (column["label"], report["rows"]) == ("price", 40)
    assert 3 < column["root_mean_squared_error"] < 8  # the noise has a deviation of 5
    assert column["r_squared"] > 0.99
    assert sum(column["residuals"]["counts"]) == 40
    assert [row["column"] for row in report["importance"]["columns"]] == ["size", "age", "other"]
    assert [*report["gradients"]["inputs"]["columns"]][:2] == ["size", "age"]


def test_the_importance_of_a_linear_network_is_what_its_weights_say(estimator: Trained):
    measured = importance(estimator, "training", repeats=20)
    assert measured.columns == ("size", "age", "other")
    assert measured.mean[:2] == pytest.approx([2 * (5 * 20) ** 2, 2 * 2**2 * 50**2 / 12], rel=0.15)
    assert abs(measured.mean[2]) < measured.loss / 2
    assert (measured.deviation[:2] > 1).all()
    again = importance(estimator, "training", repeats=20)
    assert again.mean.tolist() == measured.mean.tolist()


def test_the_gradients_of_a_linear_network_are_its_weights(estimator: Trained):
    slopes = saliency(estimator, np.array([[100.0, 20.0, 0.0], [50.0, 1.0, 1.0]], np.float32))
    (weights,) = (values for name, values in estimator.parameters().items() if name.endswith("weights"))
    assert slopes["inputs"] == pytest.approx(np.abs(weights[:, 0]), rel=1e-5)


def test_the_gradients_of_a_class_are_differences_of_its_score(classifier: Trained):
    rows = classifier.data.draw_rows("validation")[1]["inputs"]
    (scores, slopes) = classifier.excite(rows[:1], np.array([[0, 1, 0]], np.float32))
    step = np.float32(1e-2)
    spread = classifier.data.rows("training", range(120))["inputs"].std(axis=0)
    for column in range(4):
        moved = rows[:1].copy()
        moved[0, column] += step * spread[column]
        rise = classifier.excite(moved, np.zeros((1, 3), np.float32))[0][0, 1] - scores[0, 1]
        assert rise / step == pytest.approx(slopes[0, column], abs=0.02)


def test_more_rows_than_are_computed_at_once_have_the_same_mean_gradients(classifier: Trained):
    rows = classifier.data.draw_rows("validation")[1]["inputs"]
    many = saliency(classifier, np.tile(rows, (20, 1)))["inputs"]
    assert many == pytest.approx(saliency(classifier, rows)["inputs"], rel=1e-4)


def test_a_temperature_lowers_the_log_loss_and_keeps_the_classes(classifier: Trained):
    fit = calibrate(classifier)
    assert fit.after < fit.before
    rows = classifier.data.draw_rows("validation")[1]["inputs"]
    predicted = np.asarray(classifier.predict(rows))
    assert (fit.probabilities.argmax(axis=1) == predicted.argmax(axis=1)).all()
    np.testing.assert_allclose(fit.probabilities, scale_probabilities(predicted, fit.temperature))


def test_a_report_of_another_split_is_calibrated_on_the_validation_split(classifier: Trained):
    report = describe(classifier, "training", calibrated=True)
    assert report["classes"]["calibration"]["temperature"] == calibrate(classifier).temperature


def test_numbers_have_no_temperature(estimator: Trained):
    with pytest.raises(SigmaConfigError, match="predicts numbers, and a temperature calibrates classes"):
        calibrate(estimator)


def test_a_temperature_needs_a_row_that_is_predicted_wrongly(classifier: Trained):
    rows = np.array([[5.1, 3.5, 1.4, 0.2]], np.float32)
    with pytest.raises(SigmaDataError, match="all rows are predicted rightly"):
        calibrate(classifier, (rows, np.array([0])))


def test_predictions_that_are_not_finite_are_counted_and_are_the_worst(estimator: Trained):
    rows = np.array([[100, 20, 0], [np.inf, 20, 0], [50, 1, 1], [80, 2, 1]], np.float32)
    targets = np.array([[460.0], [1.0], [248.0], [396.0]], np.float32)
    with pytest.raises(SigmaDataError, match="finite"):
        describe(estimator, (rows, targets))
    rows[1, 0] = 1e38  # overflows
    report = describe(estimator, (rows, targets))
    assert report["worst"][0]["row"] == 1
    assert None not in report["gradients"]["inputs"]["columns"].values()
    render_page("prices", report)
    json.dumps(report, allow_nan=False)


def test_a_row_without_a_number_is_the_worst(estimator: Trained):
    answers = read_answers(estimator)
    predicted = answers.predicted.copy()
    predicted[5] = np.nan
    (row,) = describe_worst(estimator, evolve(answers, predicted=predicted), 1)
    assert row["row"] == answers.rows[5]


def test_a_file_is_reported_as_its_rows(prices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "new.csv"
    file.write_text("size,age,other,price\n100,10,0,480\n110,20,0,510\n90,0,1,450\n")
    assert main(["report", str(prices), str(file), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["on"]) == (3, str(file))
    assert report["numbers"][0]["mean_absolute_error"] < 10


def test_the_command_writes_a_page_of_the_numbers_that_it_prints(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "page.html"
    assert main(["report", str(flowers), "--calibrate", "--json", "--save", str(file)]) == 0
    report, page = json.loads(capsys.readouterr().out), file.read_text()
    assert f"Temperature {report['classes']['calibration']['temperature']:.4g}" in page
    for row in report["importance"]["columns"]:
        assert f"<td>{row['rise']:.4g}</td>" in page


def test_a_page_needs_nothing_from_elsewhere_and_its_charts_have_names_and_tables(flowers: Path):
    assert main(["report", str(flowers)]) == 0
    page = (flowers / "report.html").read_text()
    tags = parse(page)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in tags.seen}
    assert not re.search(r"https?://|url\(|@import", page)
    sources = [about["src"] for tag, about in tags.seen if tag == "img"]
    assert all(str(source).startswith("data:image/") for source in sources)
    charts = [about for tag, about in tags.seen if tag == "svg"]
    assert len(charts) == 5
    assert all(about["role"] == "img" and about["aria-label"] for about in charts)
    assert page.count("<table>") == page.count("<caption>") >= len(charts)
    assert "prefers-color-scheme:dark" in page
    assert "width=device-width" in page


def test_names_of_the_data_are_escaped(classifier: Trained):
    report: dict[str, Any] = describe(classifier)
    hostile = "<script>alert(1)</script>\x1b"
    text = json.dumps(report).replace("petal length (cm)", json.dumps(hostile)[1:-1])
    page = render_page(hostile, json.loads(text.replace("virginica", json.dumps(hostile)[1:-1])))
    parse(page)
    assert "<script" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--on", "holidays"], "holidays"),
        (["--output", "nothing"], "has no output 'nothing'. Name one of"),
        (["new.csv", "--on", "test"], "--on test: is a split of the run's data"),
        (["--save", "nowhere/page.html"], "cannot be written: No such file or directory. Pass another to --save."),
    ],
)
def test_mistakes_have_a_remedy(
    flowers: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(flowers), *arguments]) == 2
    assert words in capsys.readouterr().err
