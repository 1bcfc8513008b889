"""Time whole commands with an empty cache of programs: ``python -m figures.whole_commands [ROUNDS]`` in ``docs``.

Each command runs in turns without a backend, on ``numpy``, and on ``numba``, which compiles first. Printed is a table
of medians of the wall clock from the start to the end of the process, and their ratios to ``numpy``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from statistics import median

COMMANDS = {
    "`sigma run digits`": ("digits",),
    "`sigma run iris`": ("iris",),
    "`sigma run residual --epochs 3`": ("residual", "--epochs", "3"),
    "`sigma run cnn --epochs 3`": ("cnn", "--epochs", "3"),
    "`sigma run lstm --epochs 1`": ("lstm", "--epochs", "1"),
}
BACKENDS: Mapping[str, tuple[str, ...]] = {
    "numpy": ("--backend", "numpy"),
    "none named": (),
    "numba": ("--backend", "numba"),
}


def time_command(*arguments: str) -> float:
    """Return the seconds of a command in an empty directory, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "SIGMA_BACKEND"}
        environment["SIGMA_NUMBA_CACHE"] = folder
        start = time.perf_counter()
        command = [sys.executable, "-m", "sigma_run", "run", *arguments, "--quiet"]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        return time.perf_counter() - start


def time_backends(arguments: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Return the median seconds of a command by backend, measured in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for _ in range(rounds):
        for name, backend in BACKENDS.items():
            seconds[name].append(time_command(*arguments, *backend))
    return {name: median(values) for name, values in seconds.items()}


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"| command | {' | '.join(BACKENDS)} | ratio | ratio of numba |\n|---|{'---|' * (len(BACKENDS) + 2)}")
    for command, arguments in COMMANDS.items():
        seconds = time_backends(arguments, rounds)
        ratios = [seconds[name] / seconds["numpy"] for name in ("none named", "numba")]
        cells = [*(f"{value:.2f} s" for value in seconds.values()), *(f"{ratio:.2f}" for ratio in ratios)]
        print(f"| {command} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
