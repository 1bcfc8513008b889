"""Save continuously, be killed with SIGKILL at a random time, check the remaining files, continue from there.

::

    python tests/reliability/killed.py 500 [SEED]

Every round starts a process that restores the newest checkpoint and saves continuously in the background, each number
twice, so that replacing one is interrupted as well; two are kept, so that deleting is interrupted, too.  Prints one
JSON document; exits with an error at the first round that lost something.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sigma_kernel.contracts.storing import Checkpoint, Retention
from sigma_store.checkpoints.store import list_checkpoints, read, recover
from sigma_store.checkpoints.writer import Saver
from sigma_testing.checkpoints import newest_checkpoint


def state(serial: int) -> Checkpoint:
    """Return arrays that are unique to this serial number."""
    draw = np.random.default_rng(serial)
    return Checkpoint({f"layers.{n}": draw.standard_normal((40, 50)) for n in range(5)}, {"serial": serial})


def save_for_ever(run: Path, serial: int, pipe: int) -> None:
    """Save the state of one serial number after the other; write a byte into a pipe after each."""
    saver = Saver(run / "checkpoints" / "trainer", sys.exit, retention=Retention(last=2))
    for number in count(serial + 1):
        saver.save(number // 2, state(number))
        saver.flush()
        os.write(pipe, b".")


def amid(run: Path) -> bool:
    """Return whether a checkpoint is incomplete."""
    return any(run.glob("checkpoints/*/.*"))


def kill_once(run: Path, serial: int, delay: float) -> int:
    """Let a process continue from a serial number, kill it this many seconds later, and return how many it saved.

    The seconds count from when it begins to save, however late a busy machine lets it begin.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        os.write(writes, b".")  # it has started
        save_for_ever(run, serial, writes)
    os.close(writes)
    told = len(os.read(reads, 1))
    while not amid(run):
        time.sleep(0.0005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    while more := os.read(reads, 1 << 16):
        told += len(more)
    os.close(reads)
    return told - 1


def check(run: Path, told: int) -> int:
    """Return the serial number of the newest checkpoint; it is the last reported one, or the next."""
    complaints: list[str] = []
    recover(run, lambda _: None)
    _, found = newest_checkpoint(run, log=complaints.append)
    serial = found.values["serial"]
    assert serial in (told, told + 1), f"{told} was saved, {serial} is left"
    assert not complaints, complaints
    for path in list_checkpoints(run, "trainer"):  # no numbered checkpoint is incomplete, old ones included
        read(path)
    expected = state(serial).arrays
    assert found.arrays.keys() == expected.keys()
    assert all(found.arrays[name].tobytes() == expected[name].tobytes() for name in expected)
    return int(serial)


def main(rounds: int, seed: int = 0) -> None:
    """Run that many rounds and print the results."""
    print(f"drawn from seed {seed}", file=sys.stderr)
    draw, interrupted, serial = random.Random(seed), 0, 1
    with TemporaryDirectory() as folder:
        run = Path(folder)
        first = Saver(run / "checkpoints" / "trainer", sys.exit)
        first.save(0, state(serial))
        first.flush()  # else the first process may be killed before there is any
        for _ in range(rounds):
            told = serial + kill_once(run, serial, draw.uniform(0, 0.15))
            interrupted += amid(run)
            serial = check(run, told)
    print(json.dumps({"rounds": rounds, "amid_a_save": interrupted, "saved": serial, "lost": 0}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
