"""Time predictions next to ONNX Runtime: ``python -m figures.predictions [CALLS]`` in ``docs``.

Networks are trained for an epoch, and exported by ``sigma-export-onnx``.  Then Sigma and ONNX Runtime, on one thread
and with its default number, predict the same rows in turns, each once the threads of the one before sleep.  Printed
are a table of median times of a call, with the ratios of Sigma's to the others', and one of two threads of Python that
predict at once, compared with a single one: calls per second, which grow if a core is free, and the processor time of a
call, which grows if they hinder each other.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime

import sigma_ml as sm
from sigma_export_onnx import Onnx

NETWORKS = {
    "dense": "input(64) + dense(128, activation='relu') + dense(64, activation='relu') + output(10)",
    "convolutional": """
        input(8, 8) + expand() + conv2d(16, 3, padding="same", activation="relu") + max_pool(2)
        + conv2d(32, 3, padding="same", activation="relu") + max_pool(2) + flatten() + dropout(0.3) + output(10)
    """,  # that of the recipe cnn
    "recurrent": "input(50, 2) + lstm(32) + output(10)",  # that of the recipe lstm
}
ROWS = (1, 32, 1000)
TURN = 10  # calls in a row, so that each begins with its own code in the cache
LONG, FEW = 5e-3, 300  # seconds of a call from which on fewer are made, and how many
PERIOD = 0.3  # seconds in which calls of threads are counted
PAUSE, IDLE = 2e-3, 2e-4  # seconds that are slept between turns, and of the processor in them if no thread spins

Predict = Callable[[], Any]


def train(architecture: str, folder: str) -> tuple[Any, np.ndarray]:
    """Train a network for an epoch; return it as loaded from its run, and rows to predict."""
    shape = {"input(64)": (64,), "input(8, 8)": (8, 8), "input(50, 2)": (50, 2)}
    sides = next(sides for text, sides in shape.items() if text in architecture)
    generator = np.random.default_rng(0)
    rows = generator.random((max(ROWS), *sides), dtype=np.float32)
    data = rows, generator.integers(0, 10, len(rows))
    with sm.Environment("predictions", seed=0, folder=folder) as sigma:
        sigma.create_trainer(
            data=data,
            network=f"{architecture} + softmax_cross_entropy()",
            optimiser="adam",
            batch_size=100,
            backend="numba",
            epochs=1,
        )
        sigma.run()
        return sm.load(sigma.run_folder, backend="numba"), rows


def open_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Return a session of ONNX Runtime with that many threads for one op; 0 means its default."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def wait_for_threads() -> None:
    """Wait until no thread of this process spins: those of ONNX Runtime do for a while after a call."""
    used = IDLE
    while used >= IDLE:
        before = time.process_time()
        time.sleep(PAUSE)
        used = time.process_time() - before


def time_turns(contestants: Mapping[str, Predict], calls: int) -> dict[str, float]:
    """Return the median seconds of a call of each, measured in turns after a warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for predict in contestants.values():
        for _ in range(TURN):
            predict()
    for _ in range(-(-calls // TURN)):
        for name, predict in contestants.items():
            wait_for_threads()
            predict()
            for _ in range(TURN):
                start = time.perf_counter()
                predict()
                seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def count_calls(predict: Predict, threads: int) -> np.ndarray:
    """Return calls per second from so many threads at once, and the processor time of a call."""
    begin, used = time.perf_counter(), time.process_time()

    def work(_: int) -> int:
        calls = 0
        while time.perf_counter() < begin + PERIOD:
            predict()
            calls += 1
        return calls

    with ThreadPoolExecutor(threads) as pool:
        calls = sum(pool.map(work, range(threads)))
    return np.array([calls / (time.perf_counter() - begin), (time.process_time() - used) / calls])


def compare_threads(contestants: Mapping[str, Predict]) -> dict[str, np.ndarray]:
    """Return both numbers of two threads, divided by those of one, measured in turns."""
    ratios: dict[str, list[np.ndarray]] = {name: [] for name in contestants}
    for _ in range(5):
        for name, predict in contestants.items():
            alone = count_calls(predict, 1)
            ratios[name].append(count_calls(predict, 2) / alone)
    return {name: np.median(values, axis=0) for name, values in ratios.items()}


def measure(architecture: str, calls: int) -> Iterator[tuple[int, dict[str, float], dict[str, np.ndarray]]]:
    """Yield a number of rows, the seconds of a call of each contestant, and what two threads change."""
    with tempfile.TemporaryDirectory() as folder:
        model, samples = train(architecture, folder)
        path = Path(folder) / "network.onnx"
        Onnx().export(model.inference(), path)
        sessions = {"one thread": open_session(path, 1), "default threads": open_session(path, 0)}
        for count in ROWS:
            rows = samples[:count]
            (expected,) = sessions["one thread"].run(None, {"inputs": rows})
            np.testing.assert_allclose(model.predict(rows), expected, 1e-4, 1e-5)
            contestants: dict[str, Predict] = {"Sigma": partial(model.predict, rows)}
            for name, session in sessions.items():
                contestants[name] = partial(session.run, None, {"inputs": rows})
            few = min(time_turns({"": contestants["Sigma"]}, TURN).values()) > LONG
            seconds = time_turns(contestants, min(calls, FEW) if few else calls)
            del contestants["default threads"]  # which uses all cores for one call
            yield count, seconds, compare_threads(contestants)


def main() -> None:
    """Print the tables."""
    calls, changes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, list[str]()
    print("| network | rows | Sigma | ONNX Runtime, one thread | default threads | ratios |\n|---|---|---|---|---|---|")
    for network, architecture in NETWORKS.items():
        for rows, seconds, change in measure(architecture, calls):
            own, *others = seconds.values()
            times = " | ".join(f"{value * 1e6:,.1f} us" for value in (own, *others))
            ratios = ", ".join(f"{own / other:.2f}" for other in others)
            print(f"| {network} | {rows:,} | {times} | {ratios} |", flush=True)
            each = " | ".join(f"{calls:.2f}, {processor:.2f}" for calls, processor in change.values())
            changes.append(f"| {network} | {rows:,} | {each} |")
    print("\n| network | rows | Sigma | ONNX Runtime |\n|---|---|---|---|", *changes, sep="\n")


if __name__ == "__main__":
    main()
