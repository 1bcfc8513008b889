"""The lines of the console fit every width, whatever trainers and metrics are called and whatever they measure."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len
from rich.console import Console

from sigma_monitor_console.console import Drawn
from sigma_monitor_console.layout import LABEL, Look, distinct, labels, lines
from sigma_monitor_console.reading import Reading

VALUES = (0.1234, 1e-12, -1.234e-12, math.nan, math.inf, -math.inf, 12345678.9, 0.0)
METRICS = (
    "loss", "validation.loss", "validation.accuracy", "test.accuracy", "training.cost.4-softmax_cross_entropy",
    "validation.a_very_long_name_of_a_metric_that_somebody_wrote", "validation.mean_absolute_error",
)  # fmt: skip
SPEED = ("1,234 it/s", "12:20 min left")


def _look(
    name: str = "trainer", metrics: int = 3, values: Any = VALUES, goal: int | None = 100, epochs: float = 20
) -> Look:
    named = {METRICS[i % len(METRICS)] + str(i) * (i >= len(METRICS)): values[i % len(values)] for i in range(metrics)}
    return Look(Reading(name, 35, 7, goal, epochs, named), SPEED)


def _texts(looks: list[Look], width: int, ascii_only: bool = False) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines(looks, width, ascii_only)]


def _drawn(looks: list[Look], width: int) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width, force_terminal=True, color_system=None).print(Drawn(looks))
    return screen.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("trainers", [1, 2, 5])
@pytest.mark.parametrize("metrics", [0, 1, 3, 12, 60])
def test_no_line_wraps_and_epoch_and_bar_stay(width: int, trainers: int, metrics: int) -> None:
    looks = [_look(f"trainer-{i}-{'long' * 20 * (i % 2)}", metrics) for i in range(trainers)]
    drawn = _drawn(looks, width)
    assert drawn == [line.rstrip() for line in drawn]
    assert max(map(cell_len, drawn)) <= width
    assert trainers <= len(drawn) <= 2 * trainers
    first = [line for line in drawn if "epoch 7/20" in line]
    assert len(first) == trainers
    assert all("━━" in line and "──" in line for line in first)


def test_one_trainer_at_120_columns_has_one_line_and_at_80_a_second_one() -> None:
    assert _texts([_look()], 120) == [
        "epoch 7/20  ━━━━━━━━────────────────  loss 0.1234  val loss 1e-12  val acc -1.234e-12  "
        "1,234 it/s  12:20 min left"
    ]
    assert _texts([_look()], 80) == [
        "epoch 7/20  ━━━━━━━━────────────────  1,234 it/s  12:20 min left",
        "  loss 0.1234  val loss 1e-12  val acc -1.234e-12",
    ]
    assert _texts([_look()], 40) == [
        "epoch 7/20  ━━━━━───────────  1,234 it/s",
        "  loss 0.1234  val loss 1e-12  +2",
    ]


def test_several_trainers_are_named_and_aligned() -> None:
    assert _texts([_look("a", 1), _look("generator", 1)], 80) == [
        "a          epoch 7/20  ━━━━─────────  loss 0.1234  1,234 it/s  12:20 min left",
        "generator  epoch 7/20  ━━━━─────────  loss 0.1234  1,234 it/s  12:20 min left",
    ]


def test_what_does_not_fit_into_the_second_line_is_counted() -> None:
    [_, second] = _texts([_look(metrics=12)], 80)
    assert second.endswith("  test acc nan  +8")
    assert second.startswith("  loss 0.1234  val loss 1e-12  ")


def test_lines_do_not_jump_when_values_get_longer_or_shorter() -> None:
    for width in range(40, 140):
        counts = {len(_texts([_look(values=(value,))], width)) for value in VALUES}
        assert len(counts) == 1


def test_a_terminal_without_these_characters_gets_a_plain_bar() -> None:
    [line] = _texts([_look(metrics=0)], 80, ascii_only=True)
    assert line.startswith("epoch 7/20  ########----------------  1,234")


def test_a_bar_is_empty_while_the_end_is_unknown_and_never_longer_than_full() -> None:
    assert _texts([_look(metrics=0, goal=None)], 40)[0].count("─") == 16
    assert _texts([_look(metrics=0, goal=3)], 40)[0].count("━") == 16


@settings(max_examples=150, deadline=None)
@given(
    width=st.integers(1, 200),
    names=st.lists(st.text(min_size=1, max_size=60).filter(str.isprintable), min_size=1, max_size=6, unique=True),
    metrics=st.lists(st.text(min_size=1, max_size=60).filter(str.isprintable), max_size=8, unique=True),
    value=st.floats(),
    epochs=st.sampled_from([1, 100_000, math.inf]),
)
def test_no_line_is_ever_wider_than_the_terminal(
    width: int, names: list[str], metrics: list[str], value: float, epochs: float
) -> None:
    looks = [Look(Reading(name, 5, 99_999, 10, epochs, dict.fromkeys(metrics, value)), SPEED) for name in names]
    assert all(cell_len(line) <= width for line in _texts(looks, width))


def test_the_width_is_measured_whenever_lines_are_drawn() -> None:
    progress = Drawn([_look()])
    for width in (120, 40, 80):
        screen = io.StringIO()
        Console(file=screen, width=width).print(progress)
        assert max(map(cell_len, screen.getvalue().splitlines())) <= width


def test_names_are_short_and_no_two_are_equal() -> None:
    names = ["loss", "validation.loss", "validation.accuracy", "training.accuracy", "test.accuracy_top5"]
    assert list(labels(names).values()) == ["loss", "val loss", "val acc", "acc", "test acc top5"]
    assert labels(["validation.accuracy", "val.acc", "valid"]) == {
        "validation.accuracy": "validation accuracy", "val.acc": "val acc", "valid": "valid"
    }  # fmt: skip
    alike = [f"validation.{'x' * 50}{i}{'y' * 50}" for i in range(12)]
    found = list(labels(alike).values())
    assert len(set(found)) == 12
    assert all(cell_len(name) <= LABEL for name in found)
    assert cell_len(distinct(["训练训练训练"], 6)[0]) <= 6


def test_a_million_epochs_are_written_in_full() -> None:
    assert Reading("trainer", 0, 30, None, 1e6, {}).progress() == "epoch 30/1000000"
    assert Reading("trainer", 0, 30, None, float("inf"), {}).progress() == "epoch 30"
