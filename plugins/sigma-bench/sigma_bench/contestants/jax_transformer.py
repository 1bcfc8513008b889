"""Parts of transformers in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from sigma_bench.work import Part

Arrays = dict[str, Any]


def affine(parameters: Arrays, layer: str, x: Any) -> Any:
    """Return weighted sums."""
    sums = x @ parameters[f"{layer}.weights"]
    return sums + parameters[f"{layer}.biases"] if f"{layer}.biases" in parameters else sums


def layer_norm(parameters: Arrays, layer: str, epsilon: float, x: Any) -> Any:
    """Return x with the mean and the variance of its last axis normalised."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + epsilon)
    return scaled * parameters[f"{layer}.scale"] + parameters[f"{layer}.shift"]


def embedding(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    """Return one vector for each index."""
    return parameters[f"{part.layer}.weights"][x]


def positions(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    """Return x with one vector added for each position."""
    return x + parameters[f"{part.layer}.weights"][: x.shape[1]]


def normalise(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    """Return layer normalisation."""
    return layer_norm(parameters, part.layer, part.settings["epsilon"], x)


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Return what heads ``(batch, time, heads, size)`` find; JAX's own function computes weights in float32 alone."""
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -jnp.inf) if causal else scores
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def encoder(activations: Mapping[str, Callable[[Any], Any]]) -> Callable[[Part, Arrays, Any, Any], Any]:
    """Return the function of one block: attention of a sequence to itself, and a feed-forward network."""

    def block(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
        s, name = part.settings, part.layer

        def attend(x: Any) -> Any:
            shape = (*x.shape[:2], s["heads"], x.shape[2] // s["heads"])
            each = ("query", "key", "value")
            q, k, v = (affine(parameters, f"{name}.attention.{part}", x).reshape(shape) for part in each)
            result = attention(q, k, v, s["causal"]).reshape(x.shape)
            return affine(parameters, f"{name}.attention.output", result)

        def fed(x: Any) -> Any:
            hidden = activations[s["activation"]](affine(parameters, f"{name}.hidden", x))
            return affine(parameters, f"{name}.feed_forward", hidden)

        for what, inner in (("attention", attend), ("feed_forward", fed)):
            norm = f"{name}.{what}_norm"
            if s["norm"] == "pre":
                x = x + inner(layer_norm(parameters, norm, s["epsilon"], x))
            else:
                x = layer_norm(parameters, norm, s["epsilon"], x + inner(x))
        return x

    return block
