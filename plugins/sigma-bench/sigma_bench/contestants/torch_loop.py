"""PyTorch training loop: a module, a library optimiser and the usual loop, eager or compiled.

All rows and the indices of every minibatch are resident tensors.  Dropout draws PyTorch's own random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch import nn

from sigma_bench.contest import CHECKED, Contestant
from sigma_bench.contestants import torch_transformer as transformer
from sigma_bench.cores import cores
from sigma_bench.work import Part, UpdateRule, Workload


class Torch(Contestant):
    """The eager loop."""

    name = "torch"

    def __init__(self, work: Workload) -> None:
        torch.set_num_threads(cores())
        torch.manual_seed(0)
        self.module = sequence(work.parts, work)
        self.module.to(getattr(torch, work.precision))
        self.optimiser = optimiser(work.rule, list(self.module.parameters()))
        self.inputs, self.labels = tensor(work.inputs), tensor(work.labels).long()
        self.batches = [tensor(rows) for epoch in work.epochs() for rows in epoch]
        self.criterion = nn.CrossEntropyLoss()
        self.learn: Callable[[Any, Any], Any] = self.slope
        self.done, self.first = 0, list[Any]()

    def slope(self, inputs: Any, labels: Any) -> Any:
        """Return the loss of a minibatch, and leave its gradients in ``grad``."""
        loss = self.criterion(self.module(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        return loss

    def run(self, iterations: int) -> None:
        """Train for this many more iterations."""
        for i in range(self.done, self.done + iterations):
            rows = self.batches[i % len(self.batches)]
            self.optimiser.zero_grad()
            loss = self.learn(self.inputs[rows], self.labels[rows])
            self.optimiser.step()
            if i < CHECKED:
                self.first.append(loss.detach())
        self.done += iterations

    @property
    def losses(self) -> np.ndarray:
        """Return the losses of the first iterations."""
        return np.array([loss.item() for loss in self.first])


class TorchCompile(Torch):
    """The loop with compiled forward and backward pass, separately for each size of a minibatch."""

    name = "torch-compile"

    def __init__(self, work: Workload) -> None:
        super().__init__(work)
        self.learn = torch.compile(self.slope, dynamic=False)


def tensor(x: np.ndarray) -> Any:
    """Return an array as a tensor, which must be writable."""
    return torch.from_numpy(np.require(x, requirements=["C", "W"]))


# -- parts -------------------------------------------------------------------------------------------------------------
class MeanOfSides(nn.Module):  # type: ignore[misc]  # has no annotations
    """The mean of each channel."""

    def forward(self, x: Any) -> Any:
        """Return the means over all sides."""
        return x.mean(tuple(range(2, x.ndim)))


class SumOfChains(nn.Module):  # type: ignore[misc]  # has no annotations
    """The sum of what two chains make of a value."""

    def __init__(self, body: Any, projection: Any) -> None:
        super().__init__()
        self.body, self.projection = body, projection

    def forward(self, x: Any) -> Any:
        """Return the sum."""
        return self.projection(x) + self.body(x)


def sequence(parts: Iterable[Part], work: Workload) -> Any:
    """Return a chain of parts as a module."""
    return nn.Sequential(*chain.from_iterable(modules(part, work) for part in parts))


ACTIVATIONS: dict[str, Callable[[], Any]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softmax": lambda: nn.Softmax(-1),
}


def modules(part: Part, work: Workload) -> Iterator[Any]:
    """Yield the modules of a part, with its initial parameters."""
    match part.kind:
        case "affine":
            yield affine(part, work)
        case "convolution":
            pads, rest = make_padding(part)
            yield from pads
            yield convolution(part, work, rest)
        case "max_pool" | "average_pool":
            yield from pool(part)
        case "global_average_pool":
            yield MeanOfSides()
        case "batch_norm":
            yield norm(part, work)
        case "residual":
            yield SumOfChains(*(sequence(part.inner.get(name, ()), work) for name in ("body", "projection")))
        case "activation":
            yield ACTIVATIONS[part.settings["name"]]()
        case "dropout":
            yield nn.Dropout(part.settings["rate"])
        case "embedding":
            yield transformer.embedding(part, work)
        case "positions":
            yield transformer.Positions(part, work)
        case "layer_norm":
            yield transformer.layer_norm(work, part.layer, part.settings["epsilon"])
        case "encoder":
            yield transformer.EncoderModule(part, work, ACTIVATIONS[part.settings["activation"]])
        case "recurrence":
            yield Recurrence(part, work)
        case _:
            yield nn.Flatten()


def affine(part: Part, work: Workload) -> Any:
    """Return weighted sums."""
    weights = work.parameters[f"{part.layer}.weights"]
    module = nn.Linear(*weights.shape, bias=part.settings["bias"], dtype=getattr(torch, work.precision))
    return set_parameters(module, part, work, weights.T)


def convolution(part: Part, work: Workload, padding: Any) -> Any:
    """Return filters."""
    weights = work.parameters[f"{part.layer}.weights"]
    filters, channels, *window = weights.shape
    how = {name: part.settings[name] for name in ("stride", "dilation", "groups", "bias")}
    make = getattr(nn, f"Conv{len(window)}d")
    conv = make(channels * how["groups"], filters, window, padding=padding, **how, dtype=getattr(torch, work.precision))
    return set_parameters(conv, part, work, weights)


def norm(part: Part, work: Workload) -> Any:
    """Return batch normalisation with running statistics."""
    s = part.settings
    make = getattr(nn, f"BatchNorm{max(len(part.shape) - 1, 1)}d")
    module = make(part.shape[0], s["epsilon"], s["momentum"], s["affine"])
    if s["affine"]:
        with torch.no_grad():
            module.weight.copy_(tensor(work.parameters[f"{part.layer}.scale"]))
            module.bias.copy_(tensor(work.parameters[f"{part.layer}.shift"]))
    return module


def set_parameters(made: Any, part: Part, work: Workload, weights: np.ndarray) -> Any:
    """Set a module's initial parameters."""
    with torch.no_grad():
        made.weight.copy_(tensor(weights))
        if part.settings["bias"]:
            made.bias.copy_(tensor(work.parameters[f"{part.layer}.biases"]))
    return made


class Recurrence(nn.Module):  # type: ignore[misc]  # torch may not be installed
    """The library's recurrent layer; of the biases of recurrent sums, only those that the task has are trained."""

    def __init__(self, part: Part, work: Workload) -> None:
        super().__init__()
        cell, units, self.sequence = (part.settings[name] for name in ("cell", "units", "sequence"))
        make = {"simple_rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.layer = make(part.shape[-1], units, batch_first=True, dtype=getattr(torch, work.precision))
        own = {name: work.parameters[f"{part.layer}.{name}"] for name in ("weights", "recurrent", "biases")}
        inner, trained = np.zeros((2, *own["biases"].shape), work.precision)
        if cell == "gru":
            inner[-units:], trained[-units:] = work.parameters[f"{part.layer}.recurrent_biases"], 1
        with torch.no_grad():
            values = (own["weights"].T, own["recurrent"].T, own["biases"], inner)
            for parameter, value in zip(self.layer.parameters(), values, strict=True):
                parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))
        mask = torch.from_numpy(trained)
        self.layer.bias_hh_l0.register_hook(lambda slope: slope * mask)

    def forward(self, x: Any) -> Any:
        """Return the outputs of all steps, or of the last one."""
        outputs, _ = self.layer(x)
        return outputs if self.sequence else outputs[:, -1]


def pool(part: Part) -> Iterator[Any]:
    """Yield the modules of a pooling layer over any number of spatial dimensions."""
    largest = part.kind == "max_pool"
    pads, rest = make_padding(part, -float("inf") if largest else 0.0)
    yield from pads
    make = getattr(nn, f"{'Max' if largest else 'Avg'}Pool{len(rest)}d")
    yield make(part.settings["window"], part.settings["stride"], rest)


def make_padding(part: Part, value: float = 0.0) -> tuple[list[Any], tuple[int, ...]]:
    """Return a module for padding that the part's own module does not support, and the padding left to that."""
    pairs, window = part.settings["padding"], part.settings["window"]
    if all(low == high and 2 * low <= span for (low, high), span in zip(pairs, window, strict=True)):
        return [], tuple(low for low, _ in pairs)
    last_first = tuple(side for pair in reversed(pairs) for side in pair)
    pad = getattr(nn, f"ConstantPad{len(pairs)}d")
    return [pad(last_first, value)], tuple(repeat(0, len(pairs)))


def optimiser(rule: UpdateRule, parameters: list[Any]) -> Any:
    """Return the library's optimiser with the same settings."""
    s = rule.settings
    match rule.name:
        case "gradient_descent":
            return torch.optim.SGD(parameters, s["learning_rate"])
        case "momentum":
            return torch.optim.SGD(parameters, s["learning_rate"], momentum=s["momentum"])
        case "adam":
            return torch.optim.Adam(parameters, s["learning_rate"], (s["beta1"], s["beta2"]), s["epsilon"])
        case _:
            how = {"initial_accumulator_value": s["initial_accumulator"], "eps": s["epsilon"]}
            return torch.optim.Adagrad(parameters, s["learning_rate"], **how)
