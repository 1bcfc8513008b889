"""Ray operator: train on the workers of a Ray cluster, or of an instance that lives as long as the run."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel.contracts import GroupOperator
from sigma_kernel.settings import ge, gt, in_, le
from sigma_operator_ray.engine import import_ray
from sigma_operator_ray.transport import RayTransport


@define(eq=False)
class RayOperator(GroupOperator):
    """Run a trainer on the workers of a Ray cluster.

    Every worker is an actor. Of each iteration, it adds a slice of the gradients over all shards, in a fixed tree.

    Args:
        workers: Actors that compute the shards; the number changes no bits.
        shards: Parts that every batch is split into; at most so many workers.
        at_least: With fewer workers than these, training waits for others.
        lost_after: Seconds of silence after which a worker is lost; one whose process or node ends is lost at once.
        burst_seconds: Seconds between two boundaries at most, and so the latency of commands.
        address: The cluster: ``host:port``, or "auto" for that of this machine or of RAY_ADDRESS. "" starts an instance
            on this machine, and ends it with the run.
        cpus: CPUs that each worker reserves; its libraries use so many threads.
        gpus: GPUs that each worker reserves; with any, it sees no others.
        install: Whether workers install the plugins from a package index, in the versions that are here.
        niceness: The niceness of workers of an instance that is started; a cluster has its own.
        channels: Whether workers send vectors by Ray's channels, where these can be made, or by calls of actors alone.
        placement: "pack" for workers on few nodes, which exchange vectors in memory, or "spread" for many nodes.
        place_within: Seconds within which the cluster must have room for ``at_least`` workers, whose places are
            reserved together.
    """

    address: str = field(default="")
    cpus: float = field(default=1.0, validator=ge(0))
    gpus: float = field(default=0.0, validator=ge(0))
    install: bool = field(default=False)
    niceness: int = field(default=0, validator=[ge(0), le(19)])
    channels: bool = field(default=True)
    placement: str = field(default="pack", validator=in_(("pack", "spread")))
    place_within: float = field(default=600.0, validator=gt(0))

    def connect(self) -> RayTransport:
        """Return a transport that has not been started; raise SigmaConfigError without Ray."""
        import_ray()
        return RayTransport(
            address=self.address, niceness=self.niceness, cpus=self.cpus, gpus=self.gpus, install=self.install,
            at_least=self.at_least, channels=self.channels,
            placement=self.placement, place_within=self.place_within,
        )  # fmt: skip
