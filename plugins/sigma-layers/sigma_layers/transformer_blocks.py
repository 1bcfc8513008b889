"""The base of transformer encoders and decoders: residual attention and feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, ge, gt, in_, lt
from sigma_layers.attention import Attention
from sigma_layers.dense import Dense
from sigma_layers.dropout import Dropout
from sigma_layers.layer_norm import LayerNorm
from sigma_layers.positions import check_sequence
from sigma_layers.settings import ACTIVATION, activation, count, flag


@define(eq=False, kw_only=True)
class TransformerBlock(Layer):
    """The settings of a transformer block, and its parts.

    Args:
        hidden: Units of the feed-forward network; by default 4 times the features.
        activation: Activation function of the feed-forward network: its name, or a function of a node.
        norm: Whether layer normalisation comes before each part ("pre", Xiong et al., arXiv:2002.04745) or after the
            sum of the part and its input ("post", as in the original).
        dropout: Probability of zeroing in training: attention weights, hidden units and what each part returns.
        key_value_heads: Number of heads that have keys and values, each for equally many heads; by default all have.
        bias: Whether the affine maps add biases.
        rotary: Base of rotary positions in attention to the own sequence, such as 10000; by default there are none.
        epsilon: Number added to variances.
    """

    hidden: int | None = field(default=None, validator=optional(count))
    activation: str | Callable[[Node], Node] = field(default="relu", validator=activation, metadata=ACTIVATION)
    norm: str = field(default="pre", validator=in_(("pre", "post")))
    dropout: float = field(default=0.0, validator=and_(ge(0), lt(1)))
    key_value_heads: int | None = field(default=None, validator=optional(count))
    bias: bool = field(default=True, validator=flag)
    rotary: float | None = field(default=None, validator=optional(gt(0)))
    epsilon: float = field(default=1e-5, validator=gt(0))

    def _add_part(self, context: Context, name: str, x: Node, part: Callable[[Node], Node]) -> Node:
        """Return the sum of x and a part's output, normalised before the part or after the sum."""
        norm = LayerNorm(epsilon=self.epsilon)
        branch = part(context.run(f"{name}_norm", norm, x) if self.norm == "pre" else x)
        total = x + self._drop_features(context, f"{name}_dropout", branch)
        return total if self.norm == "pre" else context.run(f"{name}_norm", norm, total)

    def _drop_features(self, context: Context, name: str, x: Node) -> Node:
        return context.run(name, Dropout(self.dropout), x) if self.dropout else x

    def _attend(
        self, context: Context, name: str, heads: int, x: Node, *others: Node, causal: bool = False, own: bool = True
    ) -> Node:
        check_sequence(context.address, x.shape[1:])
        layer = Attention(
            heads, key_value_heads=self.key_value_heads, causal=causal, dropout=self.dropout, bias=self.bias,
            rotary=self.rotary if own else None,
        )  # fmt: skip
        return self._add_part(context, name, x, lambda inner: context.run(name, layer, inner, *others))

    def _fed_forward(self, context: Context, x: Node) -> Node:
        """Return the sum of x and a network of one hidden layer, applied to each entry of the sequence."""
        features = x.shape[-1]
        wide = Dense(self.hidden or 4 * features, activation=self.activation, bias=self.bias)

        def part(inner: Node) -> Node:
            hidden = self._drop_features(context, "hidden_dropout", context.run("hidden", wide, inner))
            return context.run("feed_forward", Dense(features, bias=self.bias), hidden)

        return self._add_part(context, "feed_forward", x, part)
