"""Parts of transformers in PyTorch: one packed projection to queries, keys and values, and its own fused attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from sigma_bench.work import Part, Workload


def parameters(work: Workload, *names: str) -> list[Any]:
    """Return initial parameters as tensors."""
    return [torch.from_numpy(np.array(work.parameters[name])) for name in names]


def embedding(part: Part, work: Workload) -> Any:
    """Return one vector for each index."""
    (weights,) = parameters(work, f"{part.layer}.weights")
    return nn.Embedding.from_pretrained(weights, freeze=False)


class Positions(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Add one vector for each position."""

    def __init__(self, part: Part, work: Workload) -> None:
        super().__init__()
        (weights,) = parameters(work, f"{part.layer}.weights")
        self.weight = nn.Parameter(weights)

    def forward(self, x: Any) -> Any:
        """Return the sum."""
        return x + self.weight[: x.shape[1]]


def layer_norm(work: Workload, layer: str, epsilon: float) -> Any:
    """Return normalisation of the last axis."""
    scale, shift = parameters(work, f"{layer}.scale", f"{layer}.shift")
    module = nn.LayerNorm(len(scale), epsilon, dtype=scale.dtype)
    with torch.no_grad():
        module.weight.copy_(scale)
        module.bias.copy_(shift)
    return module


def linear(work: Workload, *layers: str) -> Any:
    """Return the affine maps of some layers, side by side."""
    weights = torch.cat(parameters(work, *(f"{layer}.weights" for layer in layers)), dim=1)
    biased = f"{layers[0]}.biases" in work.parameters
    module = nn.Linear(*weights.shape, bias=biased, dtype=weights.dtype)
    with torch.no_grad():
        module.weight.copy_(weights.T)
        if biased:
            module.bias.copy_(torch.cat(parameters(work, *(f"{layer}.biases" for layer in layers))))
    return module


class EncoderModule(nn.Module):  # type: ignore[misc]
    """One block: attention of a sequence to itself, and a feed-forward network."""

    def __init__(self, part: Part, work: Workload, activation: Callable[[], Any]) -> None:
        super().__init__()
        s, name = part.settings, part.layer
        self.heads, self.causal, self.before = s["heads"], s["causal"], s["norm"] == "pre"
        self.projected = linear(work, *(f"{name}.attention.{role}" for role in ("query", "key", "value")))
        self.output = linear(work, f"{name}.attention.output")
        self.first, self.second = (
            layer_norm(work, f"{name}.{role}_norm", s["epsilon"]) for role in ("attention", "feed_forward")
        )
        self.fed = nn.Sequential(
            linear(work, f"{name}.hidden"), activation(), linear(work, f"{name}.feed_forward")
        )  # fmt: skip

    def attend(self, x: Any) -> Any:
        """Return what all heads find."""
        batch, time, width = x.shape
        parts = self.projected(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        result = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=self.causal)
        return self.output(result.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x: Any) -> Any:
        """Return the sequence that leaves the block."""
        if self.before:
            x = x + self.attend(self.first(x))
            return x + self.fed(self.second(x))
        x = self.first(x + self.attend(x))
        return self.second(x + self.fed(x))
