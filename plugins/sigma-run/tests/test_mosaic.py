"""Grids of pictures on a terminal."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

from sigma_run.launcher.mosaic import (
    PLAIN,
    SHADES,
    choose_shades,
    count_colours,
    draw_picture,
    draw_samples,
    print_samples,
    shrink,
)


def picture(*rows: list[tuple[int, int, int]]) -> np.ndarray:
    return np.moveaxis(np.array(rows, np.uint8), -1, 0)


RED, BLUE, BLACK, WHITE = (255, 0, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)


def test_a_character_has_the_colour_of_the_upper_pixel_on_that_of_the_lower() -> None:
    small = picture([RED, BLUE], [BLACK, WHITE])
    assert [*draw_picture(small, 1 << 24, SHADES)] == [
        "\x1b[38;2;255;0;0;48;2;0;0;0m▀\x1b[38;2;0;0;255;48;2;255;255;255m▀\x1b[0m"
    ]
    assert [*draw_picture(small, 256, SHADES)] == ["\x1b[38;5;196;48;5;16m▀\x1b[38;5;21;48;5;231m▀\x1b[0m"]


def test_shades_go_from_black_to_white() -> None:
    small = np.stack([np.linspace(0, 255, 10).round().astype(np.uint8)[None].repeat(2, 0)] * 3)
    assert [*draw_picture(small, 0, PLAIN)] == [PLAIN]
    assert [*draw_picture(small, 0, SHADES)] == ["  ░░▒▒▓▓██"]


def test_a_last_row_without_a_partner_is_drawn_alone() -> None:
    assert [*draw_picture(picture([WHITE], [WHITE], [BLACK]), 0, SHADES)] == ["█", " "]


@pytest.mark.parametrize(("size", "expected"), [((32, 32), (16, 16)), ((8, 8), (8, 8)), ((20, 40), (6, 13))])
def test_pictures_shrink_to_means_of_squares(size: tuple[int, int], expected: tuple[int, int]) -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, *size), np.uint8)
    small = shrink(values)
    assert small.shape == (3, *expected)
    factor = size[0] // expected[0]
    assert small[1, 2, 3] == np.rint(values[1, 2 * factor : 3 * factor, 3 * factor : 4 * factor].mean())


def test_as_many_pictures_stand_beside_each_other_as_the_columns_hold() -> None:
    samples = {"cats": np.zeros((8, 3, 32, 32), np.uint8), "dogs": np.full((2, 3, 32, 32), 255, np.uint8)}
    lines = [*draw_samples(samples, 50, 0, SHADES)]
    assert [line for line in lines if line.strip(" █")] == ["cats", "dogs"]
    assert [len(line) for line in lines] == [4, *[50] * 8, 4, *[33] * 8]
    assert len([*draw_samples(samples, 3, 0, SHADES)][1]) == 16


@pytest.mark.parametrize(
    ("settings", "encoding", "expected"),
    [
        ({"TERM": "xterm"}, "utf-8", 256),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "utf-8", 1 << 24),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "utf-8", 0),
        ({"TERM": "dumb"}, "utf-8", 0),
        ({}, "utf-8", 0),
        ({"TERM": "xterm"}, "latin-1", 0),
    ],
)
def test_colours_are_those_of_the_terminal(
    settings: dict[str, str], encoding: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert count_colours() == expected
    assert choose_shades() == (SHADES if encoding == "utf-8" else PLAIN)


def test_a_grid_is_printed_in_characters_that_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream, "ascii", write_through=True))
    print_samples({"cats": np.full((1, 3, 2, 2), 255, np.uint8)}, 80)
    assert stream.getvalue().decode() == "cats\n@@\n"


def test_no_line_goes_on_in_colour() -> None:
    lines = [*draw_samples({"cats": np.zeros((3, 3, 8, 8), np.uint8)}, 80, 256, SHADES)]
    assert all(re.search(r"\x1b\[0m$", line) for line in lines[1:])
