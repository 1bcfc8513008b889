"""Errors and warnings of a file are in its words: layers of the text, not classes of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sigma_run.config.complaints import in_words_of_files
from sigma_run.launcher.group import main

FILE = """
format = 1

[data]
dataset = "iris"

[network]
architecture = "{architecture}"

[trainer]
optimiser = "adam"
epochs = 1
"""


def checked(path: Path, architecture: str, capsys: pytest.CaptureFixture[str], command: str = "check") -> Any:
    file = path / "run.toml"
    file.write_text(FILE.format(architecture=architecture))
    return main([command, str(file)]), capsys.readouterr().err


@pytest.mark.parametrize(
    ("architecture", "remedy"),
    [
        ("dense(3) + softmax_cross_entropy()", "Write input(4) + dense(3)"),
        ("input(4, section='x') + output(3) + softmax_cross_entropy()", "Name one of these: input(section=...)"),
        ("input(4) + output(3) + squared_difference()", "For classes, use softmax_cross_entropy."),
        ("input(4) + output(3, activation='ReLU') + softmax_cross_entropy()", "Did you mean 'relu'?"),
    ],
)
def test_the_remedy_of_an_error_is_in_the_words_of_the_file(
    tmp_path: Path, architecture: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = checked(tmp_path, architecture, capsys)
    assert code == 2
    assert remedy in told


@pytest.mark.parametrize("several", [False, True])
def test_a_split_without_a_share_is_advised_in_the_words_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], several: bool
) -> None:
    text = (
        FILE.format(architecture="input(4) + output(3) + softmax_cross_entropy()")
        + '[hooks.score]\ntype = "accuracy"\n'
    )
    text = text.replace('dataset = "iris"', 'dataset = "iris"\nsplit = { training = 1.0 }')
    if several:
        text = text.replace("[trainer]", "[trainers.one]")
        for table in ("data", "network", "hooks.score"):
            text = text.replace(f"[{table}]", f"[trainers.one.{table}]")
    (tmp_path / "run.toml").write_text(text)
    assert main(["check", str(tmp_path / "run.toml")]) == 2
    told = capsys.readouterr().err
    assert "the data has no split 'validation'. There are: training. Give it a share, such as split = {" in told


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_softmax_too_many_is_a_line_of_check_and_explain(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    architecture = "input(4) + dense(3, activation='softmax') + softmax_cross_entropy()"
    code, told = checked(tmp_path, architecture, capsys, command)
    assert code == 0
    assert told.count("warning: 2-softmax_cross_entropy: its input ends in a softmax") == 1


def test_of_many_mistakes_the_first_fifty_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text("format = 1\n" + "".join(f"wrong{number} = 1\n" for number in range(60)))
    assert main(["check", str(tmp_path / "run.toml")]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 51
    assert re.fullmatch(r"\.\.\. and 1\d more. Correct these first.", told[-1])


def test_names_of_layers_become_those_of_the_text_and_nothing_else_does() -> None:
    for told, meant in {
        "Merge them, as with Concat(a, b) or Add(a, b).": "Merge them, as with concat(a, b) or add(a, b).",
        "Put SquaredDifference() last.": "Put squared_difference() last.",
        "Use Stream(source), not InputStream(x) or Input.": "Use Stream(source), not InputStream(x) or Input.",
    }.items():
        assert in_words_of_files(told) == meant
    told = "there is no data to train on. Set data, such as Arrays(inputs=...)."
    assert in_words_of_files(told) == "there is no data to train on. Give it a share in `split`."
