"""Train a small network for very many iterations, and check that it is saved, in limited memory and files.

::

    python tests/reliability/soak.py 10000000 [BACKEND]

Nobody saves or steers the run.  Its checkpoint must hold the end of the journal, within the limits of a manifest, and
name a place near it from which a resume reads; a resume must go on from it.  Prints one JSON document: seconds, the
resident memory after each eighth of the iterations, in MiB, and the bytes of each file; exits with an error if the
memory of the second half grows, or a file is too large.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_optimisers import Adam
from sigma_store.checkpoints.store import list_checkpoints, read_manifest
from sigma_store.files import LARGEST
from sigma_store.journal import EVERY
from sigma_training.history.recorder import APART, MOST_LOSSES, THINNING

NETWORK = 'input(3) + dense(4, activation="tanh") + output(1) + squared_difference()'
OFTEN = {"type": "extrema", "value": "training.loss", "every": "100 iterations"}
GROWTH = 48.0  # MiB in the second half: the newest values of three names, as arrays and as numbers
ROWS = 34 << 20  # bytes of curves.bin
LOSS, ROW = 8, 1000  # bytes of the journal: for each loss, and for the rest of a row of digests


@define(eq=False, kw_only=True)
class Weigh(Hook):
    """Record the resident memory, in MiB."""

    found: list[float] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        """Read it from the process."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.found.append(round(pages * 4096 / 2**20, 1))


def environment(backend: str, folder: Path | None, hooks: dict[str, Any]) -> Environment:
    """Return a run of a hundred iterations an epoch."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 3)).astype(np.float32)
    sigma = Environment("soak", seed=1, folder=folder)
    sigma.create_trainer(
        network=NETWORK, data={"training": (x, x.sum(1, keepdims=True))}, optimiser=Adam(0.001), batch_size=2,
        backend=backend, hooks={"often": OFTEN, **hooks},
    )  # fmt: skip
    return sigma


def most_bytes(steps: int, seconds: float) -> float:
    """Return the most bytes that a journal may have, if a row comes ``APART`` later for each row before it."""
    rows = math.sqrt(2 * (seconds + 10) / APART)
    losses = THINNING * (1 + math.log(max(1.0, rows * MOST_LOSSES / THINNING)))
    return ROW * rows + LOSS * min(steps, losses)


def main(steps: int, backend: str = "numba") -> None:
    """Train for that many iterations, and for a few more after a resume; print what it took."""
    with TemporaryDirectory() as folder:
        weigh, began = Weigh(every=every(max(1, steps // 8), "iteration")), time.monotonic()
        with environment(backend, Path(folder), {"weigh": weigh}) as sigma:
            sigma.trainer("trainer").fit(iterations=steps)
            run = sigma.run_folder
        seconds = time.monotonic() - began
        assert run is not None
        sizes = {
            path.name: path.stat().st_size for path in [*run.iterdir(), *list_checkpoints(run, "trainer")[-1].iterdir()]
        }
        manifest = read_manifest(list_checkpoints(run, "trainer")[-1])
        values = manifest["values"]
        assert (values["clock"]["iteration"], "lacks" in values) == (steps, False)
        assert sizes["manifest.json"] < LARGEST
        assert sizes["curves.bin"] < ROWS
        assert sizes["journal.jsonl"] < most_bytes(steps, seconds)
        assert manifest["chain"]["bookmark"]["offset"] > sizes["journal.jsonl"] - 2 * EVERY
        assert weigh.found[-1] - weigh.found[3] < GROWTH, weigh.found
        with environment(backend, None, {"weigh": Weigh(every=every(1, "epoch"))}) as again:
            again.resume(run)
            assert again.trainer("trainer").session.moment.iteration == steps
            again.trainer("trainer").fit(iterations=100)
    print(json.dumps({"iterations": steps, "seconds": round(seconds, 1), "memory": weigh.found, "bytes": sizes}))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
