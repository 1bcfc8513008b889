"""Costs that are compared with PyTorch: architectures, their data, and the same in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_layers import (  # noqa: E402
    CTC,
    AbsoluteDifference,
    AdaptiveSoftmax,
    Adversarial,
    CosineDistance,
    Dense,
    Hinge,
    Huber,
    Input,
    KullbackLeibler,
    MultiClassHinge,
    Output,
    Poisson,
    SoftmaxCrossEntropy,
    Triplet,
)

from .comparison import affine  # noqa: E402

F = torch.nn.functional
RANDOM = np.random.default_rng(7)
ROWS = 7
X, Y = RANDOM.normal(size=(2, ROWS, 4))
SEQUENCES = RANDOM.normal(size=(ROWS, 5, 4))
LABELS = RANDOM.integers(0, 3, ROWS, np.int32)
TAGS = np.where(RANDOM.random((ROWS, 5)) < 0.3, -100, RANDOM.integers(0, 3, (ROWS, 5))).astype(np.int32)
SHARES = np.exp(Y[:, :3]) / np.exp(Y[:, :3]).sum(-1, keepdims=True)
THIRD, SIGNS = RANDOM.normal(size=(ROWS, 4)), RANDOM.choice([-1, 1], ROWS)
SAID = np.array([[1, 2], [2, 2], [1, -1], [-1, -1], [2, 1], [1, 1], [2, -1]], np.int32)
STEPS = np.array([5, 4, 3, 5, 2, 3, 4], np.int32)
ANSWERS = RANDOM.integers(0, 2, (ROWS, 3)).astype(np.float64)
COUNTS = RANDOM.poisson(2.0, (ROWS, 3)).astype(np.float64)
WEIGHTS = (0.5, 2.0, 1.25)
TENSOR = torch.tensor(WEIGHTS, dtype=torch.float64)


def head(cost, inputs=(4,), units=3):
    return Input(*inputs) + Output(units, name="a") + cost


def scores(p, x=X):
    return affine(p, "a", torch.tensor(x))


def of_tags(p, **settings):
    return F.cross_entropy(scores(p, SEQUENCES).permute(0, 2, 1), torch.tensor(TAGS).long(), **settings)


def hinged(p):
    """Give the signed outputs as distances of pairs that differ: the loss is max(0, margin - distance)."""
    signed = scores(p) * torch.tensor(2 * ANSWERS - 1)
    return F.hinge_embedding_loss(signed, -torch.ones_like(signed), margin=0.8)


def of_classes(margin, power):
    return lambda p: F.multi_margin_loss(scores(p), torch.tensor(LABELS).long(), margin=margin, p=power)


def towers(cost):
    """Return three embeddings of one network under a cost; the first leads to it."""
    same = {"weights": "a.weights", "biases": "a.biases"}
    first, *others = (
        Input(4, section=name) + Dense(3, name=name if i else "a", share=same if i else {})
        for i, name in enumerate(("inputs", "second", "third"))
    )
    return first + cost(*others)


TRIPLETS = {"inputs": X, "second": Y, "third": THIRD}
PAIRS = {"inputs": X, "second": Y, "targets": SIGNS}


def tripled(values, **settings):
    return F.triplet_margin_loss(scores(values), scores(values, Y), scores(values, THIRD), **settings)


def aligned(p, steps, **settings):
    return F.ctc_loss(
        F.log_softmax(scores(p, SEQUENCES), -1).permute(1, 0, 2),
        torch.tensor(np.maximum(SAID, 0)).long(),
        torch.tensor(steps).long(),
        torch.tensor((SAID > 0).sum(1)),
        **settings,
    )


CUTOFFS = ([3], [1, 4], [2, 4, 8])  # of nine classes, the last one in a tail of its own
NINE = RANDOM.integers(0, 9, (ROWS, 5), np.int32)
UNKNOWN = np.where(RANDOM.random((ROWS, 5)) < 0.3, -100, NINE)


def adaptive(cutoffs, p, layer="b", **settings):
    """Return PyTorch's module with our parameters: a function of its method, and of tensors."""
    width = p[f"{layer}.head.weights"].shape[0]
    module = torch.nn.AdaptiveLogSoftmaxWithLoss(width, 9, cutoffs, **settings).double()
    given = {"head.weight": p[f"{layer}.head.weights"].T}
    if settings.get("head_bias"):
        given["head.bias"] = p[f"{layer}.head.biases"]
    for i in range(len(cutoffs)):
        given[f"tail.{i}.0.weight"] = p[f"{layer}.tail-{i}.projection"].T
        given[f"tail.{i}.1.weight"] = p[f"{layer}.tail-{i}.weights"].T
    return module, given


def of_clusters(cutoffs, labels, p, **settings):
    """Return the mean loss of the labels that count, of sequences that a layer has widened."""
    module, given = adaptive(cutoffs, p, **settings)
    counted = torch.tensor(labels.ravel() >= 0)
    features = scores(p, SEQUENCES).flatten(0, 1)[counted]
    return torch.func.functional_call(module, given, (features, torch.tensor(labels).flatten()[counted].long())).loss


def clustered(*settings, **others):
    return Input(5, 4) + Dense(8, name="a") + AdaptiveSoftmax(9, *settings, name="b", **others)


ALL = {"real": torch.ones, "generated": torch.zeros}
FORMS = {
    "logistic": F.binary_cross_entropy_with_logits,
    "least_squares": F.mse_loss,
    "hinge": lambda x, t: F.relu(1 - (2 * t - 1) * x).mean(),
    "wasserstein": lambda x, t: ((1 - 2 * t) * x).mean(),
}

CASES = {
    **{
        f"adversarial {form}, {side}": (
            head(Adversarial(side, form)),
            {"inputs": X},
            lambda p, form=form, side=side: FORMS[form](scores(p), ALL[side](ROWS, 3, dtype=torch.float64)),
        )
        for form in FORMS
        for side in ALL
    },
    **{
        f"{name} smoothed by {e}": (
            head(SoftmaxCrossEntropy(weights, label_smoothing=e)),
            {"inputs": X, "targets": targets},
            lambda p, t=targets, w=weights, e=e: F.cross_entropy(
                scores(p),
                torch.tensor(t).long() if t.ndim == 1 else torch.tensor(t),
                weight=w and TENSOR,
                label_smoothing=e,
            ),
        )
        for name, targets, weights, e in (
            ("labels", LABELS, None, 0.1),
            ("weighted labels", LABELS, WEIGHTS, 0.3),
            ("probabilities", SHARES, None, 0.1),
            ("weighted probabilities", SHARES, WEIGHTS, 1.0),
        )
    },
    "ignored labels": (
        head(SoftmaxCrossEntropy(ignore_index=-100), (5, 4)),
        {"inputs": SEQUENCES, "targets": TAGS},
        of_tags,
    ),
    "ignored labels with class weights": (
        head(SoftmaxCrossEntropy(WEIGHTS, ignore_index=-100), (5, 4)),
        {"inputs": SEQUENCES, "targets": TAGS},
        lambda p: of_tags(p, weight=TENSOR),
    ),
    "an ignored class with class weights, smoothed": (
        head(SoftmaxCrossEntropy(WEIGHTS, ignore_index=1, label_smoothing=0.2)),
        {"inputs": X, "targets": LABELS},
        lambda p: F.cross_entropy(
            scores(p), torch.tensor(LABELS).long(), weight=TENSOR, ignore_index=1, label_smoothing=0.2
        ),
    ),
    **{
        f"adaptive softmax of {len(cutoffs)} clusters{', biased' * bias}": (
            clustered(cutoffs, divisor, bias=bias),
            {"inputs": SEQUENCES, "targets": NINE},
            lambda p, c=cutoffs, d=divisor, b=bias: of_clusters(c, NINE, p, div_value=d, head_bias=b),
        )
        for cutoffs, divisor in zip(CUTOFFS, (4.0, 2.5, 2.0), strict=True)
        for bias in (False, True)
    },
    "adaptive softmax with ignored labels": (
        clustered([2, 5], 2.0, ignore_index=-100),
        {"inputs": SEQUENCES, "targets": UNKNOWN},
        lambda p: of_clusters([2, 5], UNKNOWN, p, div_value=2.0),
    ),
    "absolute difference": (
        head(AbsoluteDifference(), units=4),
        {"inputs": X, "targets": Y},
        lambda p: F.l1_loss(scores(p), torch.tensor(Y)),
    ),
    "huber": (
        head(Huber(0.7), units=4),
        {"inputs": X, "targets": Y},
        lambda p: F.huber_loss(scores(p), torch.tensor(Y), delta=0.7),
    ),
    "smooth l1": (
        head(Huber(0.25, weight=1 / 0.25), units=4),
        {"inputs": X, "targets": Y},
        lambda p: F.smooth_l1_loss(scores(p), torch.tensor(Y), beta=0.25),
    ),
    "poisson": (
        head(Poisson(weight=0.2)),
        {"inputs": X, "targets": COUNTS},
        lambda p: 0.2 * F.poisson_nll_loss(scores(p), torch.tensor(COUNTS)),
    ),
    "hinge": (head(Hinge(0.8)), {"inputs": X, "targets": ANSWERS}, hinged),
    "hinge over classes": (head(MultiClassHinge()), {"inputs": X, "targets": LABELS}, of_classes(1.0, 1)),
    "squared hinge over classes": (
        head(MultiClassHinge(0.6, power=2)),
        {"inputs": X, "targets": LABELS},
        of_classes(0.6, 2),
    ),
    "kullback-leibler": (
        head(KullbackLeibler()),
        {"inputs": X, "targets": SHARES},
        lambda p: F.kl_div(F.log_softmax(scores(p), -1), torch.tensor(SHARES), reduction="batchmean"),
    ),
    "cosine": (
        head(CosineDistance(), units=4),
        {"inputs": X, "targets": Y},
        lambda p: F.cosine_embedding_loss(scores(p), torch.tensor(Y), torch.ones(ROWS)),
    ),
    "cosine of pairs": (
        towers(lambda other, _: CosineDistance(other, margin=0.2)),
        PAIRS,
        lambda p: F.cosine_embedding_loss(scores(p), scores(p, Y), torch.tensor(SIGNS), margin=0.2),
    ),
    **{
        f"triplet of norm {norm}": (
            towers(lambda near, far, n=norm: Triplet(near, far, margin=1.5, norm=n)),
            TRIPLETS,
            lambda p, n=norm: tripled(p, margin=1.5, p=n),
        )
        for norm in (1.0, 2.0, 3.0)
    },
    "ctc": (
        head(CTC(), (5, 4)),
        {"inputs": SEQUENCES, "targets": SAID},
        lambda p: aligned(p, np.full(ROWS, 5)),
    ),
    "ctc with lengths": (
        head(CTC(Input(section="steps"), per_label=False), (5, 4)),
        {"inputs": SEQUENCES, "targets": SAID, "steps": STEPS},
        lambda p: aligned(p, STEPS, reduction="sum") / ROWS,
    ),
    "ctc with labels that do not fit": (
        head(CTC(Input(section="steps"), zero_infinity=True), (5, 4)),
        {"inputs": SEQUENCES, "targets": SAID, "steps": STEPS - 2},
        lambda p: aligned(p, STEPS - 2, zero_infinity=True),
    ),
}
