"""MPI operator: train on the ranks of a job that mpiexec has started."""

from __future__ import annotations

import os

from attrs import define, field

from sigma_kernel.contracts import GroupOperator
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge
from sigma_operator_mpi.pool import JOB, join_job
from sigma_operator_mpi.transport import MpiTransport

SHARDS = 12  # which 1, 2, 3, 4, 6 and 12 workers share equally
COMMAND = "mpiexec -n 4 sigma run FILE --operator mpi"


@define(eq=False)
class MpiOperator(GroupOperator):
    """Run a trainer on the ranks of an MPI job.

    Rank 0 runs the command, and each other rank may be a worker: these go no further than to where the operator is
    made, and end with rank 0. Of each iteration, a worker adds a slice of the gradients over all shards, in a fixed
    tree.

    Args:
        workers: Ranks that compute the shards; the number changes no bits. By default all but rank 0, at most
            ``shards``. Other ranks replace those that fail.
        shards: Parts that every batch is split into; at most so many workers.
        at_least: With fewer workers than these, training waits for others.
        lost_after: Seconds of silence after which a worker is lost; one whose process ends is lost at once.
        burst_seconds: Seconds between two boundaries at most, and so the latency of commands.
    """

    shards: int = field(default=SHARDS, validator=ge(1))
    workers: int = field(validator=ge(1))

    def __attrs_pre_init__(self) -> None:
        """Join the job; ranks other than 0 serve, and never return."""
        join_job()

    @workers.default
    def _count_workers(self) -> int:
        pool = join_job()
        ranks = pool.port.size - 1 if pool else 1
        wrong = [n for n in (self.shards, self.at_least) if not isinstance(n, int)]  # which validators refuse later
        return 1 if wrong else max(1, self.at_least, min(self.shards, ranks))

    def connect(self) -> MpiTransport:
        """Return a transport that has not been started; raise SigmaConfigError without ranks."""
        pool = join_job()
        if pool is None and JOB in os.environ:
            raise SigmaConfigError(
                "operator 'mpi': this process was started by a rank of the job, and has no ranks of its own. Trials of"
                " a search and parallel runs of a study are such processes: use operator 'local' or 'processes' there."
            )
        if pool is None:
            raise SigmaConfigError(f"operator 'mpi': this process was not started by mpiexec. Run `{COMMAND}`.")
        if pool.port.size == 1:
            raise SigmaConfigError(
                f"operator 'mpi': the job has one rank, which runs the command, and none that computes. Run"
                f" `{COMMAND}`, with the mpiexec of {pool.port.library}."
            )
        return MpiTransport(pool, self.at_least)
