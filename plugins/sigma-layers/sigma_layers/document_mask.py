"""Document mask: let attention see the earlier entries of the same document alone."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Outputs
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import whole
from sigma_layers.masks import update_cache


@define(eq=False)
class DocumentMask(Layer):
    """Mask of causal attention within packed documents: ``TransformerEncoder(4, causal=True, mask=apart)``.

    Its input are the tokens of several documents one after another.  An entry sees itself and the earlier entries of
    its document; the ``separator`` belongs to the document that it ends.

    Shapes: ``(batch, time)`` of integers -> ``(batch, time, time)``, 1 for what is seen and 0 elsewhere.

    Krell, Kosec, Perez and Fitzgibbon, Efficient Sequence Packing without Cross-contamination, arXiv:2107.02027.

    Args:
        separator: Index of the token that ends a document.
    """

    separator: int = field(default=0, validator=whole)

    def forward(self, context: Context, x: Node) -> Outputs:
        """Return the mask; raises SigmaNetworkError unless a sample is a sequence of indices."""
        if len(x.shape) != 2 or "int" not in x.dtype:
            raise SigmaNetworkError(
                f"document_mask({x.shape[1:]}): a sample must be a sequence of indices, (time,). Put it after the "
                'tokens, such as Input(None, dtype="int32").'
            )
        ends, there, memory = f.equal(x, self.separator), context.continuation, dict[str, Node]()
        if there is not None:
            memory = {"ends": update_cache(context, "ends", ends, 1)}
            ends = memory["ends"]
        length, places = ends.shape[1], f.iota((x.shape[1],))
        earlier = f.constant(np.triu(np.ones((length, length)), 1), "float32")
        numbers = f.cast(ends, "float32") @ earlier  # of the document of each entry
        if there is not None:
            places = places + there.position
        own = numbers if there is None else f.take(numbers, places, axis=1)
        same = f.less(f.expand(own, 2) - f.expand(numbers, 1), 0.5)  # of earlier entries, which have no greater number
        seen = f.expand(places, 1) >= f.expand(f.iota((length,)), 0)
        mask = f.cast(f.logical_and(same, f.expand(seen, 0)), context.precision)
        return Outputs(mask, memory=memory)
