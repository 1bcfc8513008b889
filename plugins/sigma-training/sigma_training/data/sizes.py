"""Take the sizes that input and output layers leave open from the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.architecture import Placed
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import Resolve
from sigma_training.data.dataset import read
from sigma_training.data.preprocessing import Preparation

Sizes = dict[str, tuple[int, ...]]


@frozen(eq=False)
class SizeInference:
    """The encoded ``splits`` of the data, the ``specs`` of their prepared sections, and how layers are traced."""

    splits: Mapping[str, Dataset]
    preparation: Preparation
    specs: Mapping[str, Spec]
    resolve: Resolve

    def apply(self, network: Network) -> Network:
        """Return the network with the sizes, by layer, that inputs and outputs take from the data.

        An output whose input has the size already, or whose cost does not say one, has none.  Raises SigmaNetworkError
        if a cost chooses between classes, and their number is unknown.
        """
        inputs = {x.name: x.layer.section for x in network.inputs if x.layer.takes_size}
        sizes: Sizes = {name: self.specs[section].shape for name, section in inputs.items() if section in self.specs}
        outputs = [x for x in network.outputs if x.layer.takes_size]
        read_here = {name: self.specs[name] for name in network.sections(costs=False) if name in self.specs}
        for output in outputs if len(read_here) == len(network.sections(costs=False)) else ():
            size = self._size_of(output, network)
            if size is None:
                continue
            traced = network.with_sizes(sizes).declare(read_here, self.preparation.precision, self.resolve)
            here = traced.outputs[output.sources[0]].shape
            sizes |= {} if here[-1:] == (size,) or (size, here) == (1, ()) else {output.name: (size,)}
        return network.with_sizes(sizes)

    def _size_of(self, output: Placed, network: Network) -> int | None:
        """Return the size that fits the targets of an output; None if its cost does not say one."""
        cost = next((x.layer for x in network.targeted_costs if x.sources[0] == output.name), None)
        if cost is None or cost.targets not in self.specs:
            return None
        spec = self.specs[cost.targets]
        whole = cost.chooses and "int" in spec.dtype
        size: int | None = cost.output_size(spec, self._count_classes(cost.targets, cost.ignores) if whole else 0)
        if size is None and cost.chooses:
            what = "its rows are read anew for each epoch" if whole else f"it holds {spec.dtype} of shape {spec.shape}"
            raise SigmaNetworkError(
                f"{output.name}: the number of classes in section {cost.targets!r} is not known, as {what}. Write "
                "Output(10) for 10 classes, or another cost, such as SquaredDifference(), for numbers."
            )
        return size

    def _count_classes(self, section: str, ignored: int | None) -> int:
        """Return the number of classes of a section of class indices; 0 if its rows cannot be read in advance."""
        if names := self.splits["training"].class_names(section):
            return len(names)
        if not all(rows.has_row_numbers for rows in self.splits.values()):
            return 0
        top = -1
        for rows in self.splits.values():
            for number in range(rows.blocks):
                block = read(rows, number)
                for values in self.preparation.apply_all({section: block[section]}).values():
                    top = max([top, *(label for label in np.unique(values).tolist() if label != ignored)])
        return top + 1
