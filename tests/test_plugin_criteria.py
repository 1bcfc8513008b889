"""Criteria of plugins: in files, on the command line, in runs of one's own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from sigma_kernel import Criterion, Moment, SigmaConfigError, catalogue
from sigma_run.launcher import main

FILE = """
format = 1

[data]
dataset = "xor"
batch_size = 4

[network]
architecture = "input(2) + dense(8, activation='tanh') + output(2) + softmax_cross_entropy()"

[trainer]
epochs = 400
optimiser = {{ type = "adam", learning_rate = 0.05 }}

[hooks.end]
type = "stop"
when = {when}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that writes a configuration with a criterion, and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(when: str) -> str:
        Path("f.toml").write_text(FILE.format(when=when))
        return "f.toml"

    return write


# -- in files ----------------------------------------------------------------------------------------------------------
SENTENCE = "'plateau(training.loss, 20, tolerance=0.5) and epoch reaches 30'"
TABLE = "{ type = 'plateau', value = 'training.loss', window = 20, tolerance = 0.5 }"


@pytest.mark.rooms
@pytest.mark.parametrize("when", [SENTENCE, TABLE])
def test_a_run_of_a_file_with_a_plugins_criterion_resumes_and_replays_to_the_bit(
    file: Callable[[str], str], capsys: pytest.CaptureFixture[str], when: str
) -> None:
    summaries = []
    for name in ("whole", "cut"):
        short = ["--epochs", "10"] if name == "cut" else []
        assert main(["run", file(when), "--set", f"run.name={name}", "--quiet", "--json", *short]) == 0
        summaries.append(json.loads(capsys.readouterr().out))
    folder = summaries[1]["folder"]
    assert main(["resume", folder, "--epochs", "400", "--quiet", "--json"]) == 0
    whole, resumed = summaries[0], json.loads(capsys.readouterr().out)
    assert 20 <= whole["epochs"] < 400
    assert (resumed["epochs"], resumed["parameters_sha256"]) == (whole["epochs"], whole["parameters_sha256"])
    assert "sigma-hooks:plateau" in (Path(folder) / "config.toml").read_text()
    assert main(["replay", folder, "--check", "--quiet"]) == 0


@pytest.mark.rooms
@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("'plato(training.loss)'", "hooks.end.when: criterion 'plato': no plugin offers it. Did you mean 'plateau'?"),
        (
            "'plateau(training.loss, windw=3)'",
            "hooks.end.when: plateau: has no setting 'windw'. Did you mean 'window'?",
        ),
        ("'plateau(training.loss, 1)'", "hooks.end.when: Plateau.window: must be at least 2 (got 1)."),
        ("'plateau()'", "plateau(): Plateau.__init__() missing 1 required positional argument: 'value'"),
        (
            "'plateau(training.loss 3)'",
            "hooks.end.when: 'plateau(training.loss 3)': is not understood at '3)'; expected a comma, ).",
        ),
        ("'plateau(training.lost)'", "reads 'training.lost', which nothing here publishes."),
        ("{ type = 'plato' }", "hooks.end.when.type: criterion 'plato': no plugin offers it. Did you mean 'plateau'?"),
        (
            "{ type = 'plateau', value = 'epoch', windw = 3 }",
            "hooks.end.when: has no setting 'windw'. Did you mean 'window'?",
        ),
    ],
)
def test_a_mistake_in_a_plugins_criterion_is_reported_where_it_is(
    file: Callable[[str], str], capsys: pytest.CaptureFixture[str], when: str, message: str
) -> None:
    assert main(["check", file(when)]) == 2
    said = capsys.readouterr().err
    assert "f.toml:17: " in said
    assert message in said


@pytest.mark.rooms
def test_the_settings_of_a_plugins_criterion_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["components", "criterion", "plateau"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "criterion sigma-hooks:plateau: Whether a value has settled" in said
    assert "Number of evaluations that are compared, the present one included. Must be a whole number" in said


# -- alone -------------------------------------------------------------------------------------------------------------
@frozen
class Above(Criterion):
    value: str
    limit: float = 0.0
    name: str = ""
    strict: bool = True

    def addresses(self) -> tuple[str, ...]:
        return (self.value,)

    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        value = lookup(self.value)
        return None if value is None or value != value else bool(value > self.limit)


def load(kind: str, name: str) -> Any:
    return Above if kind == "criterion" else catalogue().trusting("tests").load(kind, name)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("above(x)", Above("x")),
        ("above(x, 2)", Above("x", 2.0)),
        ("above(x, limit = -1e-3, strict=false)", Above("x", -0.001, strict=False)),
        ("above( 'x.<dense>' ,name=\"a, b\",)", Above("x.<dense>", name="a, b")),
        ("not (above(x) or a-b:above-it(y)) for 3 epochs once", ~(Above("x") | Above("y")).for_(3, "epoch").once()),
        ("python('tests.test_plugin_criteria:Above', x, 2)", Above("x", 2)),
    ],
)
def test_a_plugins_criterion_is_called_with_its_settings_and_prints_text_that_parses_to_an_equal_one(
    text: str, wanted: Criterion
) -> None:
    read = Criterion.parse(text)
    assert Criterion.parse(str(read)) == read
    assert read.bound(load) == wanted
    assert Criterion.parse(str(wanted)).bound(load) == wanted
    assert {*wanted.addresses()} <= {*read.addresses()}


def test_a_criterion_of_ones_own_code_prints_the_path_of_its_class() -> None:
    assert str(Above("x", 2.5)) == 'python("tests.test_plugin_criteria:Above", x, limit=2.5)'
    with pytest.raises(SigmaConfigError, match="trust"):
        Criterion.parse(str(Above("x"))).bound(catalogue().load)


def test_a_criterion_without_plugins_is_bound_to_itself() -> None:
    criterion = Criterion.parse("not x above 1 for 3 epochs and y improves")
    assert criterion.bound(load) is criterion


def test_what_is_no_criterion_or_not_made_yet_is_refused() -> None:
    with pytest.raises(
        SigmaConfigError, match=r"above\(x\): is not a criterion \(got <class 'int'>\)\. Make it a subclass"
    ):
        Criterion.parse("above(x)").bound(lambda kind, name: int)
    with pytest.raises(SigmaConfigError, match=r"above\(x\): is not bound to its plugin"):
        Criterion.parse("above(x)").ask({"x": 1}.get, {}, Moment())
