"""Measure the time to the first iteration of growing networks, and to prepare large trainers.

::

    python tests/reliability/deep.py [SIZE ...]

For each number of dense layers (16 wide, Adam), and five times as many branches (dense, 4 wide) into a ``concat``, two
processes train one iteration on the numba backend, the first with an empty program cache.  A third prepares a trainer
of 2,000 layers, which has 20,025 addresses.  Prints one JSON document: elapsed seconds and processor seconds, from the
import of Sigma on; for the addresses, of the preparation alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

ONE = "import sys; sys.path.insert(0, {here!r}); import deep; deep.one({kind!r}, {size}, {iterations})"
ADDRESSES = 2000  # layers
END = " + output(10) + softmax_cross_entropy()"


def network(kind: str, size: int) -> str:
    """Return the architecture of a network with this many layers or branches."""
    if kind == "layers":
        return f"input(16) + {size} * dense(16, activation='relu'){END}"
    return f"trunk = input(16)\nconcat({', '.join(['trunk + dense(4)'] * size)}){END}"


def one(kind: str, size: int, iterations: int) -> None:
    """Print the seconds to train this many iterations of a network, or to prepare it for none."""
    begun, used = time.perf_counter(), time.process_time()
    import numpy as np

    from sigma_kernel.environment import Environment

    draw = np.random.default_rng(0)
    trainer = Environment("deep").create_trainer("trainer", backend="numba", batch_size=32)
    trainer.data = draw.normal(size=(64, 16)).astype(np.float32), draw.integers(0, 10, 64)
    trainer.network = network(kind, size)
    trainer.optimiser = "adam"
    if not iterations:
        begun, used = time.perf_counter(), time.process_time()
    trainer.prepare()
    if iterations:
        trainer.fit(iterations=iterations)
    print(json.dumps([round(time.perf_counter() - begun, 2), round(time.process_time() - used, 2)]))


def measured(kind: str, size: int, iterations: int, cache: str) -> list[float]:
    """Return the seconds of a separate process."""
    code = ONE.format(here=os.path.dirname(os.path.abspath(__file__)), kind=kind, size=size, iterations=iterations)
    command, environment = [sys.executable, "-c", code], {**os.environ, "SIGMA_NUMBA_CACHE": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure all sizes."""
    sizes = [int(word) for word in sys.argv[1:]] or [50, 100, 200, 400, 800]
    found: dict[str, object] = {}
    for kind, factor in (("layers", 1), ("branches", 5)):
        for size in (factor * size for size in sizes):
            with tempfile.TemporaryDirectory() as cache:
                found[f"{size} {kind}"] = {when: measured(kind, size, 1, cache) for when in ("cold", "warm")}
    with tempfile.TemporaryDirectory() as cache:
        found["addresses"] = measured("layers", ADDRESSES, 0, cache)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
