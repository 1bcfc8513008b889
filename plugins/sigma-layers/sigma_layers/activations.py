"""Activation functions of a node: relu, sigmoid, tanh, gelu and others, elementwise except for softmax."""

from __future__ import annotations

from sigma_kernel import functions as f
from sigma_kernel.graph import Node

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # Klambauer et al., arXiv:1706.02515


def relu(x: Node) -> Node:
    """Return ``max(x, 0)`` (Nair and Hinton, ICML 2010)."""
    return f.relu(x)


def leaky_relu(x: Node) -> Node:
    """Return ``x`` above 0, else ``x / 100`` (Maas, Hannun and Ng, ICML 2013)."""
    return f.leaky_relu(x)


def sigmoid(x: Node) -> Node:
    """Return ``1 / (1 + exp(-x))``."""
    return f.sigmoid(x)


def tanh(x: Node) -> Node:
    """Return the hyperbolic tangent."""
    return f.tanh(x)


def softplus(x: Node) -> Node:
    """Return ``log(1 + exp(x))`` (Dugas et al., NIPS 2000)."""
    return f.softplus(x)


def elu(x: Node) -> Node:
    """Return ``x`` above 0, else ``exp(x) - 1`` (Clevert, Unterthiner and Hochreiter, arXiv:1511.07289)."""
    return f.elu(x)


def selu(x: Node) -> Node:
    """Return ``scale * x`` above 0, else ``scale * alpha * (exp(x) - 1)`` (Klambauer et al., arXiv:1706.02515).

    With these constants, layers with weights of variance ``1 / fan_in`` keep the mean 0 and the variance 1.
    """
    return f.elu(x, SELU_ALPHA) * SELU_SCALE


def gelu(x: Node) -> Node:
    """Return ``x * Phi(x)``, Phi the standard normal distribution (Hendrycks and Gimpel, arXiv:1606.08415)."""
    return f.gelu(x)


def silu(x: Node) -> Node:
    """Return ``x * sigmoid(x)`` (Elfwing, Uchibe and Doya, arXiv:1702.03118)."""
    return f.silu(x)


def softmax(x: Node) -> Node:
    """Return ``exp(x) / sum(exp(x))``, the sum over the last axis."""
    return f.softmax(x)


def identity(x: Node) -> Node:
    """Return x."""
    return x
