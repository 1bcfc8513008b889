"""Histograms of parameters, gradients, updates or activations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import HistogramValue, Hook, HookContext
from sigma_kernel.settings import and_, ge, le


@define(eq=False, kw_only=True)
class Histogram(Hook):
    """Publish ``histogram.<address>.edges`` and ``.counts``, as lists, for every array that the pattern ``of`` matches.

    There is one edge more than counts, from the minimum to the maximum. Elements that are not finite are left out.
    The histogram is also published as media, ``histogram.<address>``.

    Args:
        of: Pattern of arrays: parameters (``network.layers.**``), ``gradients.**``, ``updates.**`` or
            ``activations.**``.
        bins: Number of counts.
    """

    every: TimeStep = every(1, "epoch")
    of: str = field(default="network.layers.**", kw_only=False)
    bins: int = field(default=30, validator=and_(ge(1), le(1000)))

    @property
    def reads(self) -> Sequence[str]:
        """Return the pattern."""
        return [self.of]

    @property
    def writes(self) -> Sequence[str]:
        """Return the pattern of all addresses."""
        return ["histogram.**"]

    def fire(self, context: HookContext) -> None:
        """Publish the histogram of each array."""
        for address, value in read_all(context, self.of).items():
            values = np.asarray(value, np.float64)
            counts, edges = np.histogram(values[np.isfinite(values)], self.bins)
            context.publish(f"histogram.{address}.edges", edges.tolist())
            context.publish(f"histogram.{address}.counts", counts.tolist())
            context.publish(f"histogram.{address}", HistogramValue(edges, counts))
