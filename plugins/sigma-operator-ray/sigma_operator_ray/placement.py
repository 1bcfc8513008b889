"""Where workers run: a placement group reserves the resources of the least of them together."""

from __future__ import annotations

import time

from attrs import define, field

from sigma_operator_ray.engine import ActorOptions, Handle, is_reserved, place_actor, release, reserve

LOOK_AGAIN = 0.1  # seconds between two questions whether there is room
SAY_AFTER = 5.0  # seconds without room until that is said


@define(eq=False)
class Placement:
    """Places for workers of a cluster.

    The first ``count`` workers take the bundles of a placement group, of which all are reserved, or none. Others are
    placed alone, where there is room. A worker that is started after the loss of another one takes its bundle, which
    Ray moves to another node if that of the lost one has ended.

    Args:
        options: What each worker reserves.
        strategy: "pack" for as few nodes as possible, "spread" for as many.
        count: Workers whose resources are reserved together.
        within: Seconds in which they must be.
    """

    options: ActorOptions
    strategy: str
    count: int
    within: float
    _group: Handle = field(init=False)
    _bundles: dict[int, int] = field(factory=dict, init=False)  # by worker
    _began: float = field(factory=time.monotonic, init=False)
    _looked: float = field(default=0.0, init=False)
    _is_reserved: bool = field(default=False, init=False)
    _is_said: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._group = reserve(self.options, self.count, self.strategy)
        self._is_reserved = self._group is None

    def place(self, worker: int) -> object:
        """Return where Ray is to start a worker."""
        free = sorted({*range(self.count)} - {*self._bundles.values()})
        if self._group is None or not free:
            return place_actor(None, 0, self.strategy)
        self._bundles[worker] = free[0]
        return place_actor(self._group, free[0], self.strategy)

    def leave(self, worker: int) -> None:
        """Let others have the place of a worker that has ended."""
        self._bundles.pop(worker, None)

    def describe_wait(self) -> str | None:
        """Return, once, that the cluster has no room yet; None if it has, or that has been said."""
        if self._is_said or self._waiting_time() < SAY_AFTER:
            return None
        self._is_said = True
        return (
            f"operator 'ray': {self._lack()} It waits up to {self.within:g} s for others to end, or nodes to be added."
        )

    def describe_failure(self) -> str | None:
        """Return why there are no places in time; None if there are, or there is time left."""
        if self._waiting_time() <= self.within:
            return None
        return (
            f"operator 'ray': {self._lack()} It has waited for {self.within:g} s. Lower at_least, cpus or gpus, raise"
            " place_within, or add nodes."
        )

    def _lack(self) -> str:
        kinds = (("CPU", self.options.cpus), ("GPU", self.options.gpus))
        amounts = ", ".join(f"{amount * self.count:g} {kind}" for kind, amount in kinds if amount)
        return f"the cluster has no room yet for what at_least = {self.count} reserves together: {amounts}."

    def _waiting_time(self) -> float:
        """Return for how long there have been no places; 0 once there are."""
        now = time.monotonic()
        if not self._is_reserved and now - self._looked > LOOK_AGAIN:
            self._looked, self._is_reserved = now, is_reserved(self._group)
        return 0.0 if self._is_reserved else now - self._began

    def close(self) -> None:
        """Give all places back."""
        if self._group is not None:
            release(self._group)
