"""Strategies that draw costs, their settings, and outputs and targets of several ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, strategies as st

torch = pytest.importorskip("torch")

import sigma_layers  # noqa: E402

from .single_layer_cases import Case  # noqa: E402

F = torch.nn.functional
some, SEEDS = st.integers(1, 5), st.integers(0, 99)
MARGINS = st.sampled_from([0.0, 0.3, 1.0, 2.5])


def shaped(draw):
    """Return the shape of an output, and random numbers."""
    shape = draw(some), *draw(st.lists(some, min_size=1, max_size=3))
    return shape, np.random.default_rng(draw(SEEDS))


def last_second(x):
    """Put the classes where PyTorch expects them."""
    return x.movedim(-1, 1)


def weights_of(draw, random, classes):
    return tuple(random.uniform(0.1, 3.0, classes).tolist()) if draw(st.booleans()) else None


@st.composite
def cross_entropy(draw):
    shape, random = shaped(draw)
    classes = shape[-1]
    weights, smoothing = weights_of(draw, random, classes), draw(st.sampled_from([0.0, 0.1, 0.7, 1.0]))
    how = {"label_smoothing": smoothing}
    tensor = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    if draw(st.booleans()):
        shares = random.uniform(0.1, 1.0, shape)
        given = shares / shares.sum(-1, keepdims=True)
        ignored = {}
    else:
        given = random.integers(0, classes, shape[:-1], np.int32)
        ignored = {"ignore_index": draw(st.integers(-1, classes - 1))} if draw(st.booleans()) else {}
        assume((given != ignored.get("ignore_index")).any())

    def function(x, y, p):
        y = last_second(y) if y.ndim == x.ndim else y.long()
        return F.cross_entropy(last_second(x), y, weight=tensor, **how, **ignored)

    layer = sigma_layers.SoftmaxCrossEntropy(weights, **how, **ignored)
    return Case(layer, [shape, given.shape], function, {**how, **ignored}, {"input 1": given})


@st.composite
def adaptive(draw):
    """Draw classes in clusters, of rows and of sequences; some tails have one class."""
    classes = draw(st.integers(2, 12))
    cutoffs = sorted(draw(st.sets(st.integers(1, classes - 1), min_size=1, max_size=3)))
    divisor, bias = draw(st.sampled_from([1.0, 1.5, 2.0])), draw(st.booleans())
    shape, random = (*draw(st.lists(some, min_size=1, max_size=2)), 8), np.random.default_rng(draw(SEEDS))
    labels = random.integers(0, classes, shape[:-1], np.int32)

    def function(x, y, p):
        module = torch.nn.AdaptiveLogSoftmaxWithLoss(8, classes, cutoffs, divisor, bias).double()
        names = {
            f"tail.{i}.{j}.weight": f"tail-{i}.{name}"
            for i in range(len(cutoffs))
            for j, name in enumerate(("projection", "weights"))
        }
        given = {name: p[own].T for name, own in {"head.weight": "head.weights", **names}.items()}
        given |= {"head.bias": p["head.biases"]} if bias else {}
        return torch.func.functional_call(module, given, (x.flatten(0, -2), y.flatten().long())).loss

    layer = sigma_layers.AdaptiveSoftmax(classes, cutoffs, divisor, bias=bias)
    settings = {"classes": classes, "cutoffs": cutoffs, "divisor": divisor}
    return Case(layer, [shape, labels.shape], function, settings, {"input 1": labels})


@st.composite
def of_numbers(draw):
    shape, random = shaped(draw)
    name = draw(st.sampled_from(["absolute", "squared", "huber", "poisson", "binary", "hinge"]))
    delta, margin, power = draw(st.sampled_from([0.1, 1.0, 2.5])), draw(MARGINS), draw(st.sampled_from([1, 2]))
    answers = random.integers(0, 2, shape).astype(np.float64)
    given = {
        "poisson": random.poisson(2.0, shape).astype(np.float64),
        "binary": random.uniform(size=shape), "hinge": answers,
    }.get(name, random.normal(size=shape))  # fmt: skip
    layer = {
        "absolute": sigma_layers.AbsoluteDifference(),
        "squared": sigma_layers.SquaredDifference(),
        "huber": sigma_layers.Huber(delta), "poisson": sigma_layers.Poisson(),
        "binary": sigma_layers.BinaryCrossEntropy(),
        "hinge": sigma_layers.Hinge(margin, power),
    }[name]  # fmt: skip
    theirs = {
        "absolute": F.l1_loss, "squared": F.mse_loss, "huber": lambda x, y: F.huber_loss(x, y, delta=delta),
        "poisson": F.poisson_nll_loss, "binary": F.binary_cross_entropy_with_logits,
        "hinge": lambda x, y: (torch.relu(margin - x * (2 * y - 1)) ** power).mean(),
    }[name]  # fmt: skip
    return Case(layer, [shape, shape], lambda x, y, p: theirs(x, y), {"kind": name}, {"input 1": given})


@st.composite
def of_classes(draw):
    shape, random = shaped(draw)
    margin, power = draw(MARGINS), draw(st.sampled_from([1, 2]))
    labels = random.integers(0, shape[-1], shape[:-1], np.int32)
    return Case(
        sigma_layers.MultiClassHinge(margin, power=power), [shape, labels.shape],
        lambda x, y, p: F.multi_margin_loss(x.flatten(0, -2), y.flatten().long(), power, margin),
        {"margin": margin, "power": power}, {"input 1": labels},
    )  # fmt: skip


@st.composite
def of_distributions(draw):
    shape, random = shaped(draw)
    shares = random.uniform(0.1, 1.0, shape)
    shares /= shares.sum(-1, keepdims=True)
    rows = int(np.prod(shape[:-1]))
    return Case(
        sigma_layers.KullbackLeibler(), [shape, shape],
        lambda x, y, p: F.kl_div(F.log_softmax(x, -1), y, reduction="sum") / rows, {}, {"input 1": shares},
    )  # fmt: skip


@st.composite
def of_embeddings(draw):
    batch, features, margin = draw(some), draw(some), draw(MARGINS)
    shape = batch, features
    if draw(st.booleans()):
        margin = margin or 0.5  # PyTorch has none of 0
        norm = draw(st.sampled_from([1.0, 2.0, 3.0]))
        return Case(
            sigma_layers.Triplet(margin=margin, norm=norm), [shape] * 3,
            lambda a, b, c, p: F.triplet_margin_loss(a, b, c, margin=margin, p=norm), {"norm": norm, "margin": margin},
        )  # fmt: skip
    margin = min(margin, 1.0)
    signs = np.random.default_rng(draw(SEEDS)).choice([-1, 1], batch).astype(np.int32)
    return Case(
        sigma_layers.CosineDistance(margin=margin), [shape, shape, (batch,)],
        lambda a, b, y, p: F.cosine_embedding_loss(a, b, y, margin=margin), {"margin": margin}, {"input 2": signs},
    )  # fmt: skip


@st.composite
def alignment(draw):
    batch, classes, most = draw(some), draw(st.integers(2, 4)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(SEEDS))
    lengths = random.integers(1, most + 1, batch)
    labels = random.integers(1, classes, (batch, most)).astype(np.int32)
    labels[np.arange(most) >= lengths[:, None]] = -1
    time = 2 * most + draw(some)  # equal labels need a blank between them
    steps = random.integers(2 * most, time + 1, batch).astype(np.int32)

    def function(x, count, y, p):
        scores = F.log_softmax(x, -1).movedim(1, 0)
        return F.ctc_loss(scores, y.clamp(min=0).long(), count.long(), (y >= 0).sum(1))

    shapes = [(batch, time, classes), (batch,), labels.shape]
    layer = sigma_layers.CTC(sigma_layers.Input(section="steps"))
    return Case(layer, shapes, function, {"labels": most}, {"input 2": labels, "input 1": steps})


FAMILIES = {
    "cross_entropy": cross_entropy(), "adaptive": adaptive(), "of_numbers": of_numbers(), "of_classes": of_classes(),
    "of_distributions": of_distributions(), "of_embeddings": of_embeddings(), "alignment": alignment(),
}  # fmt: skip
