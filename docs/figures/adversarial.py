"""The recipe ``gan`` in PyTorch: a generator and a critic with opposite goals, and how far pictures are from digits."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Noisy(nn.Module):
    """Add normal numbers in training."""

    def forward(self, x: Any) -> Any:
        return x + 0.1 * torch.randn_like(x) if self.training else x


class Pair(nn.Module):
    """Pictures made of 16 normal numbers, and what a critic says of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid()
        )
        self.critic = nn.Sequential(
            Noisy(), nn.Linear(64, 128), nn.LeakyReLU(), nn.Dropout(0.3),
            nn.Linear(128, 128), nn.LeakyReLU(), nn.Dropout(0.3), nn.Linear(128, 1),
        )  # fmt: skip

    def goals(self, real: Any) -> tuple[Any, Any]:
        """Return the losses of the critic and of the generator, whose pictures it takes for real."""
        judged = self.critic(self.generator(torch.randn(len(real), 16)))
        known = (self.critic(real) - 1.0).square().mean() + judged.square().mean()
        return known, (judged - 1.0).square().mean()


def train(task: Any, pair: Any, batches: Any, epochs: int = 300) -> dict[str, float]:
    """Train both at once; return the distance of pictures by the average of the generator's weights."""
    (digits, _), (real, noise), average = task.split("training"), task.split("validation"), None
    sides = [[*pair.critic.parameters()], [*pair.generator.parameters()]]
    optimisers = [torch.optim.Adam(own, lr=0.001, betas=(0.0, 0.999)) for own in sides]
    pair.train()
    for epoch in range(epochs):
        for rows in batches(epoch):
            slopes = [torch.autograd.grad(loss, own, retain_graph=True)
                      for loss, own in zip(pair.goals(digits[rows].flatten(1)), sides, strict=True)]  # fmt: skip
            for own, found, optimiser in zip(sides, slopes, optimisers, strict=True):
                for parameter, slope in zip(own, found, strict=True):
                    parameter.grad = slope
                optimiser.step()
            now = [p.detach().clone() for p in sides[1]]
            average = now if average is None else [old.lerp(new, 0.001) for old, new in zip(average, now, strict=True)]
    for parameter, mean in zip(sides[1], average, strict=True):
        parameter.data.copy_(mean)
    with torch.no_grad():
        return {"maximum_mean_discrepancy": discrepancy(pair.generator(noise), real.flatten(1))}


def discrepancy(made: Any, real: Any) -> float:
    """Return the unbiased squared maximum mean discrepancy with a Gaussian kernel of bandwidth 1."""

    def kernel(a: Any, b: Any) -> Any:
        return torch.exp(-torch.cdist(a.double(), b.double()).square() / 2)

    n = len(made)
    within = kernel(made, made).sum() + kernel(real, real).sum() - 2 * n
    return float(within / (n * (n - 1)) - 2 * kernel(made, real).mean())
