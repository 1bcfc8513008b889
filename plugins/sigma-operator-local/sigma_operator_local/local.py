"""Local operator: run training on this machine, in bursts of bounded time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from attrs import define, field

from sigma_kernel.contracts import MODES, Merger, Operator, Work, check_mode
from sigma_kernel.errors import SigmaConfigError, warn
from sigma_kernel.settings import ge, gt, in_
from sigma_operator_local.mergers import Sum


@define(eq=False)
class LocalOperator(Operator):
    """Run a trainer on this machine, with data parallelism over threads.

    Every batch is split into shards; threads compute their gradients, which are merged in a fixed tree.

    Args:
        workers: Threads that compute the gradients of shards.
        shards: Parts that every batch is split into; the number may change rounding, that of workers does not.
        burst_seconds: Seconds between two boundaries at most, and so the latency of commands.
        merger: How the gradients of all shards of a batch become one.
        mode: Whether gradients are added up in each iteration (``synchronous``), or each shard trains a replica, and
            these are averaged (``averaging``); ``asynchronous`` is for workers in other processes.
        every: Iterations after which replicas are averaged.
    """

    workers: int = field(default=1, validator=ge(1))
    shards: int = field(default=1, validator=ge(1))
    burst_seconds: float = field(default=0.05, validator=gt(0))
    merger: Merger = field(factory=Sum)
    mode: str = field(default=MODES[0], validator=in_(MODES))
    every: int = field(default=8, validator=ge(1))

    def __attrs_post_init__(self) -> None:
        """Warn of workers that would have nothing to do; raise SigmaConfigError for a mode that does not fit."""
        check_mode(self.mode, self.shards)
        if self.mode == "asynchronous":
            raise SigmaConfigError(
                "LocalOperator.mode: 'asynchronous' lets workers go on while gradients are on their way, which those of"
                " threads are not. Use an operator for several processes or machines, such as 'processes', or leave out"
                " the mode."
            )
        if self.mode == "averaging" and type(self.merger) is not Sum:
            raise SigmaConfigError(
                "LocalOperator.merger: replicas are averaged, and their gradients are not merged. Leave out the merger,"
                " or mode = 'averaging'."
            )
        if self.workers > self.shards:  # no error: runs of earlier versions are resumed
            warn(
                f"LocalOperator.workers: {self.workers} workers share {self.shards} parts of each batch, so that some"
                f" have nothing to do. Set shards = {self.workers}, which fixes the bits of the run, or"
                f" workers = {self.shards}."
            )

    def train(self, work: Work) -> None:
        """Train until the boundary reports the end of training."""
        merger = None if type(self.merger) is Sum else self.merger
        with ThreadPoolExecutor(self.shards, thread_name_prefix="sigma-worker") as pool:  # which starts them on demand
            work.train(self.burst_seconds, work.shard(self.shards, merger, pool))
