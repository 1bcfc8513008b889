"""Multi-head attention, of a sequence to itself or to another one."""

from __future__ import annotations

from math import prod
from typing import Any

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, Layer, Outputs
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, ge, gt, lt
from sigma_layers.dense import Dense
from sigma_layers.dropout import Dropout
from sigma_layers.masks import keys_of
from sigma_layers.positions import check_sequence, length_of, rotate_pairs
from sigma_layers.settings import architecture, count, flag


@define(eq=False)
class Attention(Layer):
    """Attend to the entries of a sequence: ``Attention(8, causal=True)``, ``Attention(8, memory=encoded)``.

    Each head computes ``softmax(q k' / sqrt(key_size)) v`` of its queries, keys and values, which are affine maps of
    the inputs; ``output`` maps the heads' results, side by side, to the features of the input.  Weights of the four
    maps are initialised by ``glorot_uniform``, biases with 0.  ``Pick("weights")`` after it reads the weights
    ``(batch, heads, time, keys)``.

    Further inputs are settings, or linked to it: ``memory`` is a sequence ``(batch, keys, features)`` to attend to, in
    place of its own; a ``mask`` holds the number of keys of each sample, ``(batch,)`` and int32, one number for each
    key, ``(batch, keys)``, which is 0 for those to ignore, or, if it is causal, one number for each entry and key, as
    ``DocumentMask`` returns it.  Where all are ignored, heads return 0.

    Shapes: ``(batch, time, features)`` -> ``(batch, time, units)``.

    Vaswani et al., Attention Is All You Need, arXiv:1706.03762; Ainslie et al., GQA: Training Generalized Multi-Query
    Transformer Models, arXiv:2305.13245.

    Args:
        heads: Number of heads.
        memory: Architecture of another sequence to attend to; by default its own.
        mask: Architecture of a mask of the keys; by default all count.
        key_value_heads: Number of heads that have keys and values, each for equally many heads; by default all have.
        key_size: Length of the queries and keys of a head; by default the features divided by the heads.
        value_size: Length of the values of a head; by default that of the keys.
        units: Number of features that it returns; by default those of the input.
        causal: Whether entries attend to themselves and earlier ones alone.
        dropout: Probability of ignoring a key in training, for each query and head.
        bias: Whether the four maps add biases.
        rotary: Base of rotary positions of queries and keys, such as 10000; by default they have none.
    """

    heads: int = field(validator=count)
    memory: Architecture | None = field(default=None, validator=optional(architecture))
    mask: Architecture | None = field(default=None, validator=optional(architecture))
    key_value_heads: int | None = field(default=None, validator=optional(count), kw_only=True)
    key_size: int | None = field(default=None, validator=optional(count), kw_only=True)
    value_size: int | None = field(default=None, validator=optional(count), kw_only=True)
    units: int | None = field(default=None, validator=optional(count), kw_only=True)
    causal: bool = field(default=False, validator=flag, kw_only=True)
    dropout: float = field(default=0.0, validator=and_(ge(0), lt(1)), kw_only=True)
    bias: bool = field(default=True, validator=flag, kw_only=True)
    rotary: float | None = field(default=None, validator=optional(gt(0)), kw_only=True)

    @key_value_heads.validator
    def _(self, _: Any, value: int | None) -> None:
        if value is not None and self.heads % value:
            raise SigmaNetworkError(
                f"Attention.key_value_heads: {value} cannot be shared evenly by {self.heads} heads. Choose a divisor."
            )

    @property
    def branches(self) -> tuple[Architecture, ...]:
        """Return the architectures of its further inputs."""
        return tuple(branch for branch in (self.memory, self.mask) if branch is not None)

    def forward(self, context: Context, x: Node, *others: Node) -> Outputs:
        """Return the heads' outputs and weights; raises SigmaNetworkError if the inputs do not fit."""
        check_sequence("attention", x.shape[1:])
        keys = keys_of("attention", x, others, self.causal, length_of(context, x.shape[1]))
        size, pairs = self._key_size(x), self.key_value_heads or self.heads
        q = self._split(context, "query", x, self.heads, size)
        k = self._split(context, "key", keys.sequence, pairs, size)
        v = self._split(context, "value", keys.sequence, pairs, self.value_size or size)
        if self.rotary is not None:
            q, k = (rotate_pairs(context, operand, self.rotary) for operand in (q, k))
        k, v, mask, memory = keys.extend_memory(context, k, v)
        causal = keys.causal and context.continuation is None  # which has a mask instead
        heads, weights = self._heads(context, q, k, v, mask, causal)
        joined = f.reshape(f.swap_axes(heads, 1, 2), (*x.shape[:2], prod(heads.shape[1::2])))
        value = context.run("output", Dense(self.units or x.shape[-1], bias=self.bias), joined)
        return Outputs(value, others={"weights": weights}, memory=memory)

    def _key_size(self, x: Node) -> int:
        size = self.key_size or x.shape[-1] // self.heads
        if self.key_size is None and size * self.heads != x.shape[-1]:
            raise SigmaNetworkError(
                f"attention({x.shape[1:]}): {x.shape[-1]} features cannot be divided among {self.heads} heads. "
                "Choose a divisor, or give key_size."
            )
        if self.rotary is not None and size % 2:
            raise SigmaNetworkError(
                f"attention({x.shape[1:]}): rotary positions turn pairs of features, and a head has {size}. "
                "Choose an even key_size."
            )
        return size

    def _split(self, context: Context, name: str, x: Node, heads: int, size: int) -> Node:
        """Return an affine map of a sequence, ``(batch, heads, time, size)``."""
        features = context.run(name, Dense(heads * size, bias=self.bias), x)
        return f.swap_axes(f.reshape(features, (*x.shape[:2], heads, size)), 1, 2)

    def _heads(self, context: Context, q: Node, k: Node, v: Node, mask: Node | None, causal: bool) -> tuple[Node, Node]:
        """Return results ``(batch, heads, time, size)`` and weights of all heads."""
        batch, heads, time, _ = q.shape
        if grouped := k.shape[1] != heads:  # heads that share keys and values have their own axis
            q = f.reshape(q, (batch, k.shape[1], heads // k.shape[1], *q.shape[2:]))
            k, v, mask = f.expand(k, 2), f.expand(v, 2), None if mask is None else f.expand(mask, 2)
        weights = f.attention_weights(q, k, mask, causal)
        if self.dropout and context.training:
            result = context.run("dropout", Dropout(self.dropout), weights) @ v
        else:
            result = f.attention(q, k, v, mask, causal)
        if grouped:
            weights = f.reshape(weights, (batch, heads, time, weights.shape[-1]))
        return f.reshape(result, (batch, heads, time, v.shape[-1])), weights
