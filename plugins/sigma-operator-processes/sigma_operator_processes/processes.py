"""Processes operator: train on several processes of this machine, which share memory."""

from __future__ import annotations

import socket

from attrs import define, field

from sigma_kernel.contracts import GroupOperator
from sigma_kernel.errors import SigmaConfigError
from sigma_operator_processes.transport import ProcessesTransport


@define(eq=False)
class ProcessesOperator(GroupOperator):
    """Run a trainer on several processes of this machine.

    Every worker is an interpreter of its own. The gradients of shards are added in shared memory, in a fixed tree.

    Args:
        workers: Processes that compute the shards; the number changes no bits.
        shards: Parts that every batch is split into; at most so many workers.
        at_least: With fewer workers than these, training waits for others.
        lost_after: Seconds of silence after which a worker is lost; one whose process ends is lost at once.
        burst_seconds: Seconds between two boundaries at most, and so the latency of commands.
        devices: A GPU for each worker, such as ``["0", "1"]``. The worker sees no other, by ``CUDA_VISIBLE_DEVICES``;
            workers share devices if these are fewer.
    """

    devices: tuple[str, ...] = field(default=(), converter=tuple)

    def connect(self) -> ProcessesTransport:
        """Return a transport that has not been started; raise SigmaConfigError where there is none."""
        if not hasattr(socket, "AF_UNIX") or not hasattr(socket, "send_fds"):
            raise SigmaConfigError(
                "operator 'processes': this system cannot pass shared memory between processes. Use operator = 'local'."
            )
        return ProcessesTransport(self.devices)
