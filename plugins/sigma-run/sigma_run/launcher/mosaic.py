"""Draw pictures on a terminal, as small blocks of colours or shades."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

import click
import numpy as np

SIDE = 16  # pixels of a picture on the terminal, two in a character
UPPER = "▀"  # in the colour of the upper pixel, on that of the lower one
SHADES, PLAIN = " ░▒▓█", " .:-=+*#%@"  # from black to white
RESET = "\x1b[0m"


def draw_samples(samples: Mapping[str, np.ndarray], columns: int, colours: int, shades: str) -> Iterator[str]:
    """Yield the lines of a grid of pictures, as many of each label as the columns hold, below the label.

    ``samples`` are uint8, (pictures, 3, height, width), by label. ``colours`` are 2**24, 256, or 0 for shades.
    """
    for label, pictures in samples.items():
        small = [shrink(picture) for picture in pictures]
        most = max(1, (columns + 1) // (small[0].shape[2] + 1))
        rows = [[*draw_picture(picture, colours, shades)] for picture in small[:most]]
        yield label
        yield from (" ".join(parts) for parts in zip(*rows, strict=True))


def shrink(picture: np.ndarray) -> np.ndarray:
    """Return a picture (3, height, width) with at most SIDE pixels a side, as the mean of squares; uint8."""
    factor = -(-max(picture.shape[1:]) // SIDE)
    height, width = (side // factor * factor for side in picture.shape[1:])
    squares = picture[:, :height, :width].reshape(3, height // factor, factor, width // factor, factor)
    return np.asarray(np.rint(squares.mean(axis=(2, 4))), np.uint8)


def draw_picture(picture: np.ndarray, colours: int, shades: str) -> Iterator[str]:
    """Yield the lines of one picture, two rows of pixels each; a last row without a partner is repeated."""
    for row in range(0, picture.shape[1], 2):
        upper, lower = picture[:, row].T, picture[:, min(row + 1, picture.shape[1] - 1)].T
        if colours:
            pairs = zip(upper.tolist(), lower.tolist(), strict=True)
            cells = (f"\x1b[38;{_code(up, colours)};48;{_code(low, colours)}m{UPPER}" for up, low in pairs)
            yield f"{''.join(cells)}{RESET}"
        else:
            grey = (upper.mean(axis=1) + lower.mean(axis=1)) / 2
            yield "".join(shades[int(value * len(shades) / 256)] for value in grey)


def _code(pixel: list[int], colours: int) -> str:
    """Return the numbers of a colour in an escape sequence (ISO 8613-6; a cube of 6 x 6 x 6 of 256 colours)."""
    if colours > 256:
        return f"2;{';'.join(map(str, pixel))}"
    red, green, blue = (round(value * 5 / 255) for value in pixel)
    return f"5;{16 + 36 * red + 6 * green + blue}"


def count_colours() -> int:
    """Return how many colours the terminal has: 2**24, 256, or 0 if there should be none."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb" or not _can_print(UPPER):
        return 0
    return 1 << 24 if os.environ.get("COLORTERM") in ("truecolor", "24bit") else 256


def choose_shades() -> str:
    """Return the characters for shades that can be printed."""
    return SHADES if _can_print(SHADES) else PLAIN


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def print_samples(samples: Mapping[str, np.ndarray], columns: int) -> None:
    """Print a grid of pictures on a terminal of so many columns."""
    colours = count_colours()
    for line in draw_samples(samples, columns, colours, choose_shades()):
        click.echo(line, color=bool(colours))
