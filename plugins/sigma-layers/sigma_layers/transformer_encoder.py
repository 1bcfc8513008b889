"""Transformer encoder: one block of attention and a feed-forward network."""

from __future__ import annotations

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Architecture, Context
from sigma_kernel.graph import Node
from sigma_layers.settings import architecture, count, flag
from sigma_layers.transformer_blocks import TransformerBlock


@define(eq=False)
class TransformerEncoder(TransformerBlock):
    """One encoder block: ``Repeat(6, TransformerEncoder(8, dropout=0.1))``; with ``causal``, one of a language model.

    To the input it adds attention to the sequence itself, then a feed-forward network of one hidden layer, each with
    layer normalisation.  A pre-norm stack is followed by one more normalisation.  Inner addresses begin with
    ``attention``, ``attention_norm``, ``hidden``, ``feed_forward`` and ``feed_forward_norm``.

    Masks of the sequence may also be linked to it; they are those of ``Attention``.

    Shapes: ``(batch, time, features)`` -> the same.

    Vaswani et al., Attention Is All You Need, arXiv:1706.03762.

    Args:
        heads: Number of heads.
        mask: Architecture of a mask of the sequence; by default all entries count.
        causal: Whether entries attend to themselves and earlier ones alone.
    """

    heads: int = field(validator=count)
    mask: Architecture | None = field(default=None, validator=optional(architecture))
    causal: bool = field(default=False, validator=flag, kw_only=True)

    @property
    def branches(self) -> tuple[Architecture, ...]:
        """Return the architectures of its further inputs."""
        return () if self.mask is None else (self.mask,)

    def forward(self, context: Context, x: Node, *masks: Node) -> Node:
        """Return the sequence that leaves the block."""
        attended = self._attend(context, "attention", self.heads, x, *masks, causal=self.causal)
        return self._fed_forward(context, attended)
