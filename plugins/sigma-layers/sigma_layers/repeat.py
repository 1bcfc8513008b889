"""A chain that runs several times in a row."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.settings import architecture, count, flag


@define(eq=False)
class Repeat(Layer):
    """Run a chain several times in a row, as one layer: ``Repeat(6, TransformerEncoder(4))``.

    ``6 * chain`` are copies in the network itself; here they are inside of one layer.  Addresses of inner parameters
    begin with the number of the run, such as ``0.weights``, unless all runs share them.  Further inputs go to every
    run.

    Shapes: those of the chain, whose output must suit it as input.  The layers of all runs together count as layers of
    the network, which can have 10,000.

    Args:
        times: Number of runs.
        chain: Layers to run.
        shared: Whether all runs use the same parameters (Dehghani, Gouws, Vinyals, Uszkoreit and Kaiser, Universal
            Transformers, arXiv:1807.03819).
    """

    times: int = field(validator=count)
    chain: Architecture = field(validator=architecture, metadata={"times": "times"})  # its layers count so often
    shared: bool = field(default=False, validator=flag)

    def forward(self, context: Context, x: Node, *others: Node) -> Node:
        """Return the value of the last run."""
        for run in range(self.times):
            x = context.run("" if self.shared else str(run), self.chain, x, *others)
        return x
