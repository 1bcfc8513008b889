"""Configurations and run folders of strangers: each ends soon, in one short line without control characters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.network import architecture
from sigma_kernel.plugins import catalogue as lookup
from sigma_run.config import read
from sigma_run.launcher import main, say
from sigma_run.launcher.output import document, printable
from sigma_training import notation

NETWORK = "input(4) + dense(3) + softmax_cross_entropy()"
TEXT = """
format = 1
[run]
name = "t"
backend = "numpy"
[data]
dataset = "iris"
[network]
architecture = "{network}"
[trainer]
optimiser = "adam"
epochs = 1
{more}
"""
Check = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Return a function that checks a configuration and returns the line that refuses it."""

    def check(network: str = NETWORK, more: str = "") -> str:
        file = tmp_path / "c.toml"
        file.write_text(TEXT.format(network=network, more=more))
        assert main(["check", str(file)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix(f"{file}:")

    return check


# -- what a terminal is shown ------------------------------------------------------------------------------------------
def test_control_characters_of_a_strangers_keys_are_escaped(refused: Check) -> None:
    line = refused(more='[hooks."\\u001b]0;owned\\u0007"]\ntype = "x"')
    assert line.startswith("14: hooks.\\u001b]0;owned\\u0007.type: hook 'x': no plugin offers it.")


@pytest.mark.parametrize("character", ["\x1b", "\r", "\b", "\x7f", "\x9b", "\u202e", "\u2066"])
def test_what_a_terminal_would_act_on_is_escaped_in_messages_and_documents(
    character: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say(f"a{character}b")
    document({"key": f"a{character}b"})
    said = capsys.readouterr()
    assert character not in said.err + said.out
    assert json.loads(said.out) == {"key": f"a{character}b"}


def test_new_lines_tabs_and_letters_of_any_script_are_printed_as_they_are() -> None:
    assert printable("a\n\tb é 学 🙂") == "a\n\tb é 学 🙂"


def test_colours_of_sigma_itself_reach_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sigma_run.launcher.output.colours", lambda: True)
    say("a\x1b[2J", "red")
    assert capsys.readouterr().err == "\x1b[31ma\\u001b[2J\x1b[0m\n"


def test_the_list_of_runs_escapes_names_of_metrics_and_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        run = tmp_path / name
        run.mkdir()
        (run / "config.toml").write_text(f'"\\u001b]0;x" = "\\u001b[2J{name}"')
        (run / "summary.json").write_text(json.dumps({"status": "\x1b[1mdone", "metrics": {"\x1b[31m": 1.0}}))
    assert main(["runs", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert {"\\u001b[1mdone", "\\u001b[31m", "\\u001b]0;x", "\\u001b[2Ja"} <= set(said.out.split())


# -- long values -------------------------------------------------------------------------------------------------------
def test_an_error_about_a_very_long_value_keeps_its_location_and_its_remedy(refused: Check) -> None:
    line = refused(more=f'[hooks.x]\ntype = "{"a" * 900_000}"')
    assert line.startswith("14: hooks.x.type: hook 'aaa")
    assert line.endswith("aaa': no plugin offers it. `sigma components hook` lists them.")
    assert len(line) < 2_200


def test_each_line_of_an_error_is_shortened_by_itself_and_once() -> None:
    first = SigmaConfigError(f"a: {'x' * 5_000}.\nb: short.")
    long, short = str(first).split("\n")
    assert (len(long), short) == (len(" ... (3,004 more characters) ...") - 1 + 2_000, "b: short.")
    assert str(SigmaConfigError(str(first))) == str(first)
    assert str(SigmaConfigError("x" * 2_000)) == "x" * 2_000


@pytest.mark.parametrize("number", ["9" * 400, f"-{'9' * 21}"])
def test_a_number_that_nothing_can_hold_is_refused_in_an_architecture(refused: Check, number: str) -> None:
    digits = len(number.lstrip("-"))
    line = refused(network=f"input(4) + dense({number}) + softmax_cross_entropy()")
    assert line == (f"9: network.architecture: column 18: a whole number has 20 digits at most (got {digits}).")


# -- many of a kind ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["hook", "monitor"])
def test_thousands_of_hooks_or_monitors_are_refused_unread(refused: Check, kind: str) -> None:
    line = refused(more=f"[{kind}s]\n" + "".join(f"x{i}.type = 1\n" for i in range(1_001)))
    assert line == f"13: {kind}s: 1,000 {kind}s are allowed at most (got 1,001). Leave some out."


def test_the_rest_of_too_long_a_chain_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "MOST", 20)
    names = []

    def resolve(kind: str, name: str) -> object:
        names.append(name)
        return lookup.catalogue().load(kind, name)

    with pytest.raises(SigmaNetworkError, match=r"20 layers at most \(got 21\)"):
        notation.parse("flatten()" + " + flatten()" * 99, resolve)
    assert len(names) == 21


def test_a_configuration_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(b"\xef\xbb\xbfformat = 1\n")
    assert read(file).values == {"format": 1}
