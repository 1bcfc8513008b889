"""Train a transformer of about 100 million parameters for some steps, and print the memory that it takes.

    python plugins/sigma-layers/tests/large_transformer.py [--keep] [--depth 12] [--width 768] [--time 512] [--batch 8]
        [--steps 3] [--backend numba]

It prints `peak_bytes` of the step, the largest memory of the process, and the seconds of compiling and of a step.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from sigma_kernel import Environment
from sigma_layers import Embedding, Input, LayerNorm, LearnedPositions, Output, SoftmaxCrossEntropy, TransformerEncoder
from sigma_step.graphs import training_step

VOCABULARY = 16_000


def read_arguments() -> argparse.Namespace:
    """Return the sizes of the network, and whether values are kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sizes = {"depth": 12, "width": 768, "time": 512, "batch": 8, "steps": 3}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--backend", default="numba")
    parser.add_argument("--keep", action="store_true", help="keep all values for the backward pass")
    parser.add_argument("--plan", action="store_true", help="print the memory of the step alone")
    return parser.parse_args()


def main() -> None:
    """Train, and print a line for each measurement."""
    given = read_arguments()
    tokens = np.random.default_rng(0).integers(VOCABULARY, size=(given.batch * given.steps, given.time)).astype("i4")
    block = TransformerEncoder(max(1, given.width // 64), causal=True, recompute=not given.keep)
    body = Embedding(VOCABULARY, given.width) + LearnedPositions() + given.depth * block
    trainer = Environment("large", seed=0).create_trainer(
        data={"inputs": tokens, "targets": np.roll(tokens, -1, axis=1)}, batch_size=given.batch, backend=given.backend,
        network=Input(given.time, dtype="int32") + body + LayerNorm() + Output(VOCABULARY) + SoftmaxCrossEntropy(),
        optimiser="adam",
    )  # fmt: skip
    start = time.perf_counter()
    setup = trainer.session.setup if trainer.session is not None else None
    assert setup is not None
    count = sum(int(np.prod(spec.shape)) for spec in setup.model.parameters().values())
    _, program = setup.programs.get(training_step, given.batch)
    print(f"parameters: {count:,}", flush=True)
    print(f"peak_bytes: {program.peak_bytes / 1e9:.2f} GB, known after {time.perf_counter() - start:.1f} s", flush=True)
    for step in range(0 if given.plan else given.steps):
        start, used = time.perf_counter(), time.process_time()
        trainer.fit(iterations=1)
        seconds, work = time.perf_counter() - start, time.process_time() - used
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        line = f"step {step}: {seconds:.1f} s, {work:.1f} s of processors, {resident / 1e9:.2f} GB at most"
        print(line, flush=True)


if __name__ == "__main__":
    main()
