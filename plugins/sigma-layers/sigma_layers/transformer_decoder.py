"""Transformer decoder: one block of attention to itself and to another sequence, and a feed-forward network."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Architecture, Context
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.settings import architecture, count, flag
from sigma_layers.transformer_blocks import TransformerBlock


@define(eq=False)
class TransformerDecoder(TransformerBlock):
    """One decoder block: ``TransformerDecoder(8, memory=encoded)``.

    To the input it adds causal attention to the sequence itself, attention to the memory, then a feed-forward network
    of one hidden layer, each with layer normalisation.  A pre-norm stack is followed by one more normalisation.  Inner
    addresses begin with ``attention``, ``attention_norm``, ``cross_attention``, ``cross_attention_norm``, ``hidden``,
    ``feed_forward`` and ``feed_forward_norm``.

    Further inputs may also be linked to it, or to ``Repeat(6, TransformerDecoder(8))``: the memory, and masks, which
    are those of ``Attention``.  A linked mask is that of the memory, unless it comes before it.

    Shapes: ``(batch, time, features)`` and a memory ``(batch, keys, ...)`` -> ``(batch, time, features)``.

    Vaswani et al., Attention Is All You Need, arXiv:1706.03762.

    Args:
        heads: Number of heads.
        memory: Architecture of the sequence to attend to, such as what an encoder returns.
        mask: Architecture of a mask of the own sequence; by default all entries count.
        memory_mask: Architecture of a mask of the memory; by default all entries count.
        causal: Whether entries attend to themselves and earlier ones alone in their own sequence.
    """

    heads: int = field(validator=count)
    memory: Architecture | None = field(default=None, validator=optional(architecture))
    mask: Architecture | None = field(default=None, validator=optional(architecture), kw_only=True)
    memory_mask: Architecture | None = field(default=None, validator=optional(architecture), kw_only=True)
    causal: bool = field(default=True, validator=flag, kw_only=True)

    def _named_inputs(self) -> dict[str, Architecture]:
        inputs = {"mask": self.mask, "memory": self.memory, "memory_mask": self.memory_mask}
        return {name: source for name, source in inputs.items() if source is not None}

    @property
    def branches(self) -> tuple[Architecture, ...]:
        """Return the architectures of its further inputs."""
        return tuple(self._named_inputs().values())

    def forward(self, context: Context, x: Node, *others: Node) -> Node:
        """Return the sequence that leaves the block; raises SigmaNetworkError if there is no memory."""
        own, memory, masks = self._sort_inputs(others)
        attended = self._attend(context, "attention", self.heads, x, *own, causal=self.causal)
        crossed = self._attend(context, "cross_attention", self.heads, attended, memory, *masks, own=False)
        return self._fed_forward(context, crossed)

    def _sort_inputs(self, others: Sequence[Node]) -> tuple[list[Node], Node, list[Node]]:
        """Return masks of the own sequence, the memory, and masks of it."""
        names = [*self._named_inputs()]
        inputs = dict(zip(names, others, strict=False))
        own, masks = ([inputs[name]] if name in inputs else [] for name in ("mask", "memory_mask"))
        memory = inputs.get("memory")
        for other in others[len(names) :]:
            if memory is None and len(other.shape) == 3:
                memory = other
            else:
                (own if memory is None else masks).append(other)
        if memory is None:
            shapes = ", ".join(str(array.shape[1:]) for array in others)
            raise SigmaNetworkError(
                f"transformer_decoder({shapes}): there is no sequence to attend to. Give memory=, or link one; without "
                "one, use transformer_encoder with causal=true."
            )
        return own, memory, masks
