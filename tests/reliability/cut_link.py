"""Train by workers on two nodes of Ray whose link is cut at random moments; compare with a run without workers.

::

    unshare --map-root-user --net --mount-proc --pid --fork python tests/reliability/cut_link.py 10 [FIRST]

The second node is in a network namespace of its own, and reaches the first by a pair of virtual interfaces. One goes
down for 0.2 to 6 s, again and again: shorter than it takes until a worker is lost, and longer.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import define, field

import sigma_ml as sm
from sigma_kernel import Environment
from sigma_kernel.contracts import Operator
from sigma_operator_local import LocalOperator
from sigma_operator_ray import RayOperator
from sigma_testing.transports.driving import read_events

SHARDS = 4
HOST, GUEST, PORT = "10.77.0.1", "10.77.0.2", 6400
LOST_AFTER = 1.5  # seconds


def call(*words: str) -> None:
    """Run a program; raise RuntimeError with what it says if it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words}:\n{done.stdout}\n{done.stderr}")


@contextmanager
def linked_namespace() -> Iterator[int]:
    """Yield a process in a network namespace, and a link to it: ``near`` here, ``far`` there."""
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo && exec sleep infinity"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()  # it is in its namespace
        inside = ("nsenter", "--target", str(holder.pid), "--net")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(holder.pid))
        call("ip", "address", "add", f"{HOST}/24", "dev", "near")
        call("ip", "link", "set", "near", "up")
        call(*inside, "ip", "link", "set", "lo", "up")
        call(*inside, "ip", "address", "add", f"{GUEST}/24", "dev", "far")
        call(*inside, "ip", "link", "set", "far", "up")
        yield holder.pid
    finally:
        holder.kill()


@contextmanager
def two_nodes(holder: int) -> Iterator[str]:
    """Yield the address of a cluster of two nodes with a processor each, the second in a process's namespace."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0")
    start = (shutil.which("ray") or "ray", "start", "--num-cpus=1", "--object-store-memory=100000000")
    with TemporaryDirectory(prefix="r") as folder:
        try:
            call(
                *start, "--head", f"--node-ip-address={HOST}", f"--port={PORT}", "--include-dashboard=false",
                f"--temp-dir={folder}",
            )  # fmt: skip
            call(
                "nsenter", "--target", str(holder), "--net", *start, f"--address={HOST}:{PORT}",
                f"--node-ip-address={GUEST}",
            )  # fmt: skip
            yield f"{HOST}:{PORT}"
        finally:
            call(start[0], "stop", "--force")


@define(eq=False)
class Cuts:
    """Cut the link at random moments, until the end."""

    draw: random.Random
    ended: threading.Event = field(factory=threading.Event)
    counts: Counter[str] = field(factory=Counter)

    def run(self) -> None:
        """Cut the link, and mend it."""
        while not self.ended.wait(self.draw.uniform(1.0, 4.0)):
            seconds = self.draw.choice((0.2, 2.5, 6.0))
            call("ip", "link", "set", "near", "down")
            self.ended.wait(seconds)
            call("ip", "link", "set", "near", "up")
            self.counts["longer" if seconds > LOST_AFTER else "shorter"] += 1


def build(operator: Operator, folder: Path | None = None) -> Environment:
    """Return an environment that trains on iris for some seconds."""
    sigma = sm.from_file("iris", "hooks.finish.when='epoch reaches 400'", "run.backend='numpy'", folder=folder)
    sigma.trainer("trainer").operator = operator
    return sigma


def train_with_cuts(address: str, seed: int) -> tuple[str | None, Counter[str]]:
    """Return the hash of the parameters of a run on two nodes, and what happened to it."""
    operator = RayOperator(address=address, workers=2, shards=SHARDS, lost_after=LOST_AFTER, burst_seconds=0.05)
    cuts = Cuts(random.Random(seed))
    thread = threading.Thread(target=cuts.run)
    thread.start()
    try:
        with TemporaryDirectory() as folder, build(operator, Path(folder) / "run") as sigma:
            hashed = sigma.run(progress=False).parameters_sha256
            cuts.counts["workers lost"] = len(read_events(sigma.run_folder, "lost"))
    finally:
        cuts.ended.set()
        thread.join()
    return hashed, cuts.counts


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int((*sys.argv[2:], 0)[0])
    wanted = build(LocalOperator(shards=SHARDS)).run(progress=False).parameters_sha256
    with linked_namespace() as holder, two_nodes(holder) as address:
        equal, totals = 0, Counter[str]()
        for seed in range(first, first + count):
            hashed, cuts = train_with_cuts(address, seed)
            equal, totals = equal + (hashed == wanted), totals + cuts
            print(f"{equal} of {seed - first + 1} equal: {dict(totals)}", flush=True)
    sys.exit(equal < count)
