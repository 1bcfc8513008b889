"""Print how long byte pairs take beside the library tokenizers alone: python token_speed.py [TEXTS].

Not a test: times differ between machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sigma_text.encoders.pairs import Pairs

TIMES, WORDS, MOST, LENGTH = 5, 20_000, 8_000, 64


def write_texts(count: int) -> list[str]:
    """Return texts of 5 to 24 made-up words, drawn by Zipf's law."""
    draws = np.random.default_rng(0)
    words = ["".join(chr(97 + code) for code in draws.integers(0, 26, draws.integers(2, 9))) for _ in range(WORDS)]
    shares = 1 / np.arange(1, WORDS + 1)
    shares /= shares.sum()
    return [" ".join(words[i] for i in draws.choice(WORDS, draws.integers(5, 25), p=shares)) for _ in range(count)]


def measure(ways: dict[str, Callable[[], Any]]) -> Iterator[tuple[str, float]]:
    """Yield the median seconds of each way, taken in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, encode in ways.items():
            began = time.perf_counter()
            encode()
            seconds[name].append(time.perf_counter() - began)
    yield from ((name, statistics.median(values)) for name, values in seconds.items())


def main(count: int = 200_000) -> None:
    """Learn byte pairs, encode all texts in both ways, and print the times."""
    texts = write_texts(count)
    column = pa.array(texts)
    pairs = Pairs.learn([column.slice(0, count // 10)], MOST)
    ways = {
        "tokenizers: encode_batch": lambda: [encoding.ids for encoding in pairs.tokenizer.encode_batch(texts)],
        "encoder tokens: byte pairs": lambda: pairs.encode(column, LENGTH),
    }
    for name, seconds in measure(ways):
        print(f"{name:28} {seconds:6.2f} s  {count / seconds:10,.0f} texts a second")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
