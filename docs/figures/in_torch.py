"""The recipes in PyTorch: one function for each network, and how it is trained.

Each network's modules are in the order of Sigma's layers, so that parameters can be copied one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log
from typing import Any

import torch
from attrs import frozen
from torch import nn

from figures import adversarial

optim, init, F = torch.optim, nn.init, nn.functional
Scores = dict[str, float]


@frozen
class Row:
    """How a recipe is trained: its network, its optimiser, what is measured, and when it ends.

    ``initialise`` fills a matrix or a kernel of its network; ``ends`` is given the scores of all epochs until now;
    ``settings`` are those of Sigma's recipe that are changed; ``schedule`` moves the learning rate every iteration: it
    is given the optimiser, and the number of iterations of an epoch.
    ``train`` takes the place of the usual loop, and ``address`` is where Sigma publishes the score, if it is no metric.
    Where rounding and random numbers decide how training goes on, more ``seeds`` tell how far the means are apart.
    """

    measure: str
    model: Callable[[], nn.Module]
    optimiser: Callable[..., Any]
    initialise: Callable[[Any], Any]
    ends: Callable[[Sequence[Scores]], bool]
    loss: Callable[..., Any] = F.cross_entropy
    clip: float | None = None
    restore: bool = False
    targets: str = "targets"
    settings: Sequence[str] = ()
    precision: str = "float32"
    schedule: Callable[[Any, int], Any] | None = None
    train: Callable[..., Scores] | None = None
    address: str = ""
    seeds: int = 5

    def network(self) -> Any:
        """Return the network in this precision."""
        return self.model().to(getattr(torch, self.precision))

    @property
    def classifies(self) -> bool:
        """Return whether the accuracy is measured, and not the loss."""
        return self.measure == "accuracy"

    @property
    def metrics(self) -> dict[str, str]:
        """Return the metrics that Sigma measures beside the loss."""
        return {name: name for name in (self.score,) if name != "loss"}

    @property
    def score(self) -> str:
        """Return the name of the score that is measured."""
        known = {"accuracy": "accuracy", "bits per character": "bits_per_character"}
        return known.get(self.measure) or self.address.rpartition(".")[2] or "loss"

    def scores(self, prediction: Any, targets: Any) -> Scores:
        """Return the loss, and the accuracy: any class with the greatest share of a target is right."""
        found = {"loss": self.loss(prediction, targets).item()}
        if self.classifies:
            shares = targets if targets.is_floating_point() else F.one_hot(targets, prediction.shape[-1])
            chosen = shares.gather(-1, prediction.argmax(-1, keepdim=True))[..., 0]
            found["accuracy"] = (chosen == shares.amax(-1)).double().mean().item()
        if self.score == "bits_per_character":
            found["bits_per_character"] = found["loss"] / log(2)
        return found


# -- networks ----------------------------------------------------------------------------------------------------------
def iris() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))


def parkinsons() -> nn.Module:
    return nn.Sequential(nn.Linear(22, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))


def xor() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def wdbc() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))


def digits() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def tictactoe() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 9))


def mnist() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(784, 1000), nn.ReLU(), nn.Dropout(0.4),
        nn.Linear(1000, 800), nn.ReLU(), nn.Dropout(0.4),
        nn.Linear(800, 10),
    )  # fmt: skip


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(128, 10),
    )  # fmt: skip


class Residual(nn.Module):
    """Add the input, or its projection, to what a body makes of it."""

    def __init__(self, body: nn.Module, projection: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.projection = body, projection or nn.Identity()

    def forward(self, x: Any) -> Any:
        return self.projection(x) + self.body(x)


def residual() -> nn.Module:
    def convolved(*sizes: int, stride: int = 1) -> list[nn.Module]:
        return [nn.Conv2d(*sizes, 3, stride, 1, bias=False), nn.BatchNorm2d(sizes[-1])]

    return nn.Sequential(
        nn.Unflatten(1, (1, 8)), *convolved(1, 16), nn.ReLU(),
        Residual(nn.Sequential(*convolved(16, 16), nn.ReLU(), *convolved(16, 16))), nn.ReLU(),
        Residual(
            nn.Sequential(HalfPadded(), nn.Conv2d(16, 32, 3, 2, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                          *convolved(32, 32)),
            nn.Conv2d(16, 32, 1, 2, bias=False),
        ), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


class HalfPadded(nn.ZeroPad2d):
    """Pad as ``padding="same"`` does for a window of 3 and a stride of 2 over an even side: at the end alone."""

    def __init__(self) -> None:
        super().__init__((0, 1, 0, 1))


def autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8), nn.Linear(8, 32), nn.ReLU(),
        nn.Linear(32, 64), nn.Sigmoid(), nn.Unflatten(1, (8, 8)),
    )  # fmt: skip


class Adding(nn.Module):
    """Read a sequence by an LSTM; PyTorch's second vector of biases stays 0, as it would double their steps."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.output = nn.LSTM(2, 32, batch_first=True), nn.Linear(32, 1)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()

    def forward(self, x: Any) -> Any:
        return self.output(self.lstm(x)[0][:, -1])


class Characters(nn.Module):
    """Predict the next character after each one, by an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(62, 32), nn.LSTM(32, 128, batch_first=True)
        self.output = nn.Linear(128, 62)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()

    def forward(self, x: Any) -> Any:
        return self.output(self.lstm(self.embedding(x))[0])


def each(prediction: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of the classes of all steps of sequences."""
    return F.cross_entropy(prediction.flatten(0, 1), targets.flatten())


# -- initial values ----------------------------------------------------------------------------------------------------
def draw(module: nn.Module, initialise: Callable[[Any], Any]) -> None:
    """Draw weights; biases begin with 0, and those of forget gates with 1."""
    for one in module.modules():
        if isinstance(one, nn.Linear | nn.Conv2d):
            initialise(one.weight)
            if one.bias is not None:
                init.zeros_(one.bias)
        elif isinstance(one, nn.LSTM):
            initialise(one.weight_ih_l0)
            init.orthogonal_(one.weight_hh_l0)
            init.zeros_(one.bias_ih_l0)
            init.ones_(one.bias_ih_l0.chunk(4)[1])


def copy(module: nn.Module, values: Sequence[Any]) -> None:
    """Give a module Sigma's parameters, in the same order; matrices other than those of embeddings are transposed."""
    rows = {id(one.weight) for one in module.modules() if isinstance(one, nn.Embedding)}
    own = [p for p in module.parameters() if p.requires_grad]
    for parameter, value in zip(own, values, strict=True):
        given = torch.as_tensor(value)
        parameter.data.copy_(given.T if given.ndim == 2 and id(parameter) not in rows else given)


# -- rows --------------------------------------------------------------------------------------------------------------
def epochs(count: int) -> Callable[[Sequence[Scores]], bool]:
    """Return whether so many epochs are over."""
    return lambda scores: len(scores) == count


def cosine(count: int) -> Callable[[Any, int], Any]:
    """Return what makes the schedule of a cosine over so many epochs, which moves every iteration."""
    return lambda optimiser, each: optim.lr_scheduler.CosineAnnealingLR(optimiser, count * each)


def impatient(scores: Sequence[Scores], patience: int = 5) -> bool:
    """Return whether the loss has not improved for some epochs."""
    losses = [one["loss"] for one in scores]
    return len(losses) - 1 - losses.index(min(losses)) >= patience


def solved(scores: Sequence[Scores]) -> bool:
    """Return whether the four cases are right, looking after every tenth epoch."""
    last, count = scores[-1], len(scores)
    return count % 10 == 0 and ((last["accuracy"] == 1 and last["loss"] < 0.01) or count >= 1000)


def adversarial_pair(count: int, seeds: int = 5) -> Row:
    """Return the row of ``gan`` that ends after so many epochs."""
    return Row(
        "squared MMD", adversarial.Pair, optim.Adam, init.xavier_uniform_, epochs(count), targets="noise",
        train=partial(adversarial.train, epochs=count), settings=(f"hooks.finish.when=epoch reaches {count}",),
        address="validation.average.pictures.maximum_mean_discrepancy", seeds=seeds,
    )  # fmt: skip


def adding(*settings: str, seeds: int = 5) -> Row:
    """Return the row of ``lstm`` with these settings."""
    return Row(
        "squared error", Adding, partial(optim.Adam, lr=0.005), init.xavier_uniform_, epochs(40),
        loss=F.mse_loss, clip=1.0, settings=settings, seeds=seeds,
        schedule=cosine(40),
    )  # fmt: skip


he = partial(init.kaiming_normal_, nonlinearity="relu")
ROWS = {
    "iris": Row("accuracy", iris, partial(optim.Adam, lr=0.01), init.xavier_uniform_, epochs(30)),
    "xor": Row("accuracy", xor, partial(optim.Adam, lr=0.05), init.xavier_uniform_, solved),
    "wdbc": Row("accuracy", wdbc, partial(optim.AdamW, lr=0.005), init.xavier_uniform_, impatient, restore=True),
    "parkinsons, made-up table": Row(
        "accuracy", parkinsons, partial(optim.AdamW, lr=0.003), init.xavier_uniform_, epochs(40),
        settings=("data.path=VOICES",),
    ),
    "digits": Row("accuracy", digits, partial(optim.Adam, lr=0.003), he, epochs(30)),
    "mnist": Row(
        "accuracy", mnist, partial(optim.Adagrad, lr=0.02), partial(init.normal_, std=0.1), epochs(10),
    ),
    "cnn": Row("accuracy", cnn, partial(optim.Adam, lr=0.003), he, epochs(20)),
    "residual": Row("accuracy", residual, partial(optim.Adam, lr=0.003), he, epochs(10)),
    "tictactoe": Row(
        "accuracy", tictactoe, partial(optim.AdamW, lr=0.004), he, epochs(60),
        schedule=cosine(60),
    ),
    "gan, 20 epochs": adversarial_pair(20, seeds=10),
    "gan, 60 epochs": adversarial_pair(60),
    "autoencoder": Row(
        "squared error", autoencoder, partial(optim.Adam, lr=0.005), init.xavier_uniform_, epochs(60),
        loss=F.mse_loss, targets="inputs",
    ),
    "lstm": adding(seeds=20),
    "lstm, 8 steps": adding("data.steps=8"),
    "charmodel": Row(
        "bits per character", Characters, partial(optim.Adam, lr=0.005), init.xavier_uniform_, epochs(8),
        loss=each, clip=1.0,
    ),
}  # fmt: skip
