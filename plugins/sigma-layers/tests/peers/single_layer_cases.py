"""Single layers, and the same functions in PyTorch, over generated settings and shapes."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import field, frozen

torch = pytest.importorskip("torch")

import sigma_layers  # noqa: E402
from sigma_kernel.errors import SigmaNetworkError  # noqa: E402

from . import attention_cases  # noqa: E402

F = torch.nn.functional


@frozen(eq=False)
class Case:
    """A layer, the shapes of its inputs, and a function of tensors (inputs, then parameters and state by name).

    Inputs that are ``given`` by name are constants; integers have to be.
    """

    layer: object
    shapes: list
    in_torch: object
    made: dict = field(factory=dict)
    given: dict = field(factory=dict)

    @property
    def name(self):
        sides = " ".join("x".join(map(str, shape)) for shape in self.shapes)
        return f"{type(self.layer).__name__} {self.made or ''} {sides}"


# -- generated cases ---------------------------------------------------------------------------------------------------
def draw(random, rank, low, high):
    """Return one number, or one for each side."""
    each = [int(n) for n in random.integers(low, high + 1, rank)]
    return each[0] if random.random() < 0.4 else each


def sides(value, rank):
    return [value] * rank if isinstance(value, int) else list(value)


def convolutions(rank, count, depthwise):
    """Yield convolutions whose windows fit."""
    random = np.random.default_rng(rank + 10 * depthwise)
    make = getattr(sigma_layers, f"{'DepthwiseConv' if depthwise else 'Conv'}{rank}d")
    convolve = getattr(F, f"conv{rank}d")
    while count:
        groups, biased = int(random.integers(1, 4)), bool(random.integers(2))
        most = {"size": 4, "stride": 3, "padding": 2, "dilation": 3}
        how = {name: draw(random, rank, name != "padding", high) for name, high in most.items()}
        own = [int(n) for n in random.integers(1, {1: 14, 2: 9, 3: 6}[rank], rank)]
        reach = [(k - 1) * d + 1 for k, d in zip(sides(how["size"], rank), sides(how["dilation"], rank), strict=True)]
        room = zip(own, sides(how["padding"], rank), reach, strict=True)
        if any(n + 2 * p < r for n, p, r in room):
            continue
        count -= 1
        channels = groups * int(random.integers(1, 3))
        more = {"multiplier": groups} if depthwise else {"filters": groups * 2, "groups": groups}
        layer = make(**how, **more, bias=biased)
        torched = {name: sides(how[name], rank) for name in ("stride", "padding", "dilation")}
        torched["groups"] = channels if depthwise else groups
        yield Case(
            layer, [(3, channels, *own)],
            lambda x, p, torched=torched: convolve(x, p["weights"], p.get("biases"), **torched),
            {**how, **more},
        )  # fmt: skip


def transposed(rank, count):
    """Yield transposed convolutions that leave something of each side."""
    random = np.random.default_rng(rank)
    make, convolve = getattr(sigma_layers, f"Conv{rank}dTranspose"), getattr(F, f"conv_transpose{rank}d")
    while count:
        groups = int(random.integers(1, 4))
        most = {"size": 4, "stride": 3, "padding": 2, "dilation": 2, "output_padding": 2}
        how = {name: draw(random, rank, "padding" not in name, high) for name, high in most.items()}
        own = [int(n) for n in random.integers(1, {1: 9, 2: 6, 3: 4}[rank], rank)]
        each = zip(own, *(sides(value, rank) for value in how.values()), strict=True)
        if any(e >= s or (n - 1) * s - 2 * p + (k - 1) * d + 1 + e < 1 for n, k, s, p, d, e in each):
            continue
        count -= 1
        layer = make(filters=groups * 2, groups=groups, bias=bool(random.integers(2)), **how)
        torched = {name: sides(value, rank) for name, value in how.items() if name != "size"}
        yield Case(
            layer, [(2, groups * 2, *own)],
            lambda x, p, torched=torched, groups=groups: convolve(
                x, p["weights"], p.get("biases"), groups=groups, **torched),
            {**how, "groups": groups},
        )  # fmt: skip


def batch_norm(axis=1, momentum=0.1, epsilon=1e-5):
    """Return batch normalisation in training; the running statistics are changed in place."""

    def function(x, p):
        x = x.movedim(axis, 1)
        scale = [p.get(name) for name in ("scale", "shift")]
        y = F.batch_norm(x, p["mean"], p["variance"], *scale, training=True, momentum=momentum, eps=epsilon)
        return y.movedim(1, axis)

    return function


def layer_norm(axes, epsilon=1e-5):
    return lambda x, p: F.layer_norm(x, x.shape[-axes:], p.get("scale"), p.get("shift"), epsilon)


def norms():
    """Yield norms over vectors, sequences, images and volumes, also of odd sizes."""
    for shape in ((5, 3), (2, 1), (4, 3, 7), (2, 4, 1, 5), (3, 2, 2, 3, 1)):
        yield Case(sigma_layers.BatchNorm(), [shape], batch_norm())
    for shape in ((4, 5, 3), (3, 7, 2, 2)):
        made = sigma_layers.BatchNorm(momentum=0.3, epsilon=1e-2, affine=False, axis=-1)
        yield Case(made, [shape], batch_norm(-1, 0.3, 1e-2))
    for shape, axes in (((3, 5), 1), ((2, 4, 7), 1), ((1, 3, 5), 2), ((2, 3, 4, 5), 3)):
        yield Case(sigma_layers.LayerNorm(axes), [shape], layer_norm(axes))
        yield Case(sigma_layers.LayerNorm(axes, 0.1, affine=False), [shape], layer_norm(axes, 0.1))
        yield Case(
            sigma_layers.RMSNorm(axes, 1e-4), [shape],
            lambda x, p, axes=axes: F.rms_norm(x, x.shape[-axes:], p["scale"], 1e-4),
        )  # fmt: skip
    for shape, groups in (((3, 6), 3), ((1, 6, 5), 2), ((2, 4, 3, 5), 4), ((2, 3, 2, 1, 3), 1)):
        yield Case(
            sigma_layers.GroupNorm(groups, affine=groups != 4), [shape],
            lambda x, p, groups=groups: F.group_norm(x, groups, p.get("scale"), p.get("shift")),
        )  # fmt: skip
    for shape in ((2, 3, 7), (1, 2, 3, 5), (2, 2, 1, 3, 2)):
        made = sigma_layers.InstanceNorm(epsilon=1e-3, affine=len(shape) != 4)
        yield Case(made, [shape], lambda x, p: F.instance_norm(x, weight=p.get("scale"), bias=p.get("shift"), eps=1e-3))


def pools(rank, count):
    """Yield pools whose windows fit, and global and adaptive ones."""
    random = np.random.default_rng(rank)
    largest, average = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")
    while count:
        how = {name: draw(random, rank, 1, 4) for name in ("size", "stride")}
        how["padding"] = [k // 2 for k in sides(how["size"], rank)] if random.random() < 0.5 else 0
        how["ceil_mode"] = bool(random.random() < 0.5)
        own = [int(n) for n in random.integers(1, {1: 14, 2: 8, 3: 5}[rank], rank)]
        apart = draw(random, rank, 1, 3)
        spans = zip(sides(how["size"], rank), sides(apart, rank), strict=True)
        room = zip(own, sides(how["padding"], rank), [(k - 1) * d + 1 for k, d in spans], strict=True)
        if any(n + 2 * p < r or p > n for n, p, r in room):
            continue
        count -= 1
        shape, each, ceil_mode = (2, 2, *own), sides(apart, rank), how["ceil_mode"]
        given = [sides(how[name], rank) for name in ("size", "stride", "padding")]
        try:
            sigma_layers.MaxPool(**how, dilation=apart).window(shape[1:])
        except SigmaNetworkError:  # windows of padding only
            count += 1
            continue
        yield Case(
            sigma_layers.MaxPool(**how, dilation=apart), [shape],
            lambda x, p, given=given, each=each, up=ceil_mode: largest(x, *given, dilation=each, ceil_mode=up),
            {**how, "dilation": apart},
        )  # fmt: skip
        if rank == 3 and any(n < k for n, k in zip(own, given[0], strict=True)):
            continue  # PyTorch refuses them
        for included in (True, False):
            yield Case(
                sigma_layers.AveragePool(**how, count_padding=included), [shape],
                lambda x, p, given=given, included=included, up=ceil_mode: average(x, *given, up, included),
                {**how, "count_padding": included},
            )  # fmt: skip


def adaptive_pools():
    """Yield pools to one value, to sides that divide those of samples, to others and to larger ones."""
    for shape, size in (((2, 3, 7), 3), ((2, 2, 8), 4), ((1, 2, 3), 5), ((2, 1, 7, 5), (3, 5)), ((2, 2, 3, 4, 5), 2)):
        rank = len(shape) - 2
        m = sides(size, rank)
        largest, average = (getattr(F, f"adaptive_{kind}_pool{rank}d") for kind in ("max", "avg"))
        yield Case(
            sigma_layers.AdaptiveMaxPool(size),
            [shape],
            lambda x, p, f=largest, m=m: f(x, m),
            {"to": size},
        )
        yield Case(
            sigma_layers.AdaptiveAveragePool(size), [shape],
            lambda x, p, f=average, m=m: f(x, m), {"to": size},
        )  # fmt: skip
        yield Case(sigma_layers.GlobalMaxPool(), [shape], lambda x, p: x.flatten(2).amax(2))
        yield Case(sigma_layers.GlobalAveragePool(), [shape], lambda x, p: x.flatten(2).mean(2))


def upsampled():
    """Yield upsampling by factors, and to larger and smaller sizes."""
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}
    for shape, factor in (((2, 3, 5), 3), ((1, 2, 3, 4), (2, 3)), ((2, 1, 2, 3, 1), (1, 2, 4))):
        rank = len(shape) - 2
        many = {"scale_factor": sides(factor, rank)}
        yield Case(
            sigma_layers.Upsample(factor), [shape], lambda x, p, many=many: F.interpolate(x, **many), {"factor": factor}
        )
        for aligned in (True, False):
            yield Case(
                sigma_layers.Upsample(factor, "linear", aligned), [shape],
                lambda x, p, many=many, mode=linear[rank], aligned=aligned: F.interpolate(
                    x, **many, mode=mode, align_corners=aligned),
                {"factor": factor, "aligned": aligned},
            )  # fmt: skip
    for shape, size in (((2, 3, 5), 8), ((1, 2, 7), 3), ((1, 2, 3, 4), (7, 3)), ((2, 1, 2, 3, 1), (3, 5, 4))):
        rank = len(shape) - 2
        m = sides(size, rank)
        yield Case(
            sigma_layers.Upsample(size=size), [shape],
            lambda x, p, m=m: F.interpolate(x, m), {"size": size},
        )  # fmt: skip
        for aligned in (True, False):
            yield Case(
                sigma_layers.Upsample(mode="linear", align_corners=aligned, size=size), [shape],
                lambda x, p, m=m, mode=linear[rank], aligned=aligned: F.interpolate(
                    x, m, mode=mode, align_corners=aligned),
                {"size": size, "aligned": aligned},
            )  # fmt: skip


def margins():
    """Yield padding in every mode, and cropping."""
    for shape, pairs in (((2, 3, 5), [(1, 3)]), ((1, 2, 4, 3), [(2, 0), (1, 2)]), ((2, 1, 3, 2, 3), [(1, 1)] * 3)):
        around = [n for pair in reversed(pairs) for n in pair]
        for mode in ("constant", "reflect", "replicate", "circular"):
            value = {"value": 0.5} if mode == "constant" else {}
            yield Case(
                sigma_layers.Pad(pairs, mode, **value), [shape],
                lambda x, p, around=around, mode=mode, value=value: F.pad(x, around, mode, **value), {"mode": mode},
            )  # fmt: skip
    yield Case(sigma_layers.Crop([(1, 2), (0, 1)]), [(2, 3, 5, 4)], lambda x, p: x[:, :, 1:3, :3])


def merged():
    """Yield layers that merge branches."""
    three = [(2, 3, 5)] * 3
    yield Case(sigma_layers.Multiply(), three, lambda x, y, z, p: x * y * z)
    yield Case(sigma_layers.Multiply(), [(2, 3, 4, 5), (2, 3, 1, 1)], lambda x, y, p: x * y)
    yield Case(sigma_layers.Mean(), three, lambda x, y, z, p: (x + y + z) / 3)
    yield Case(sigma_layers.Maximum(), three, lambda x, y, z, p: torch.stack([x, y, z]).amax(0))
    yield Case(sigma_layers.Dot(), [(4, 7), (4, 7)], lambda x, y, p: (x * y).sum(1, keepdim=True))
    yield Case(
        sigma_layers.Dot(axis=1), [(2, 3, 4, 1), (2, 3, 5)], lambda x, y, p: torch.einsum("nabc,nad->nbcd", x, y)
    )
    yield Case(
        sigma_layers.Dot(cosine=True), [(4, 7), (4, 7)], lambda x, y, p: F.cosine_similarity(x, y, dim=1)[:, None]
    )


CASES = [
    *merged(),
    *(case for rank in (1, 2, 3) for case in pools(rank, 4)), *adaptive_pools(), *upsampled(), *margins(),
    *norms(), *(Case(*drawn) for drawn in attention_cases.generated()),
    *(case for rank in (1, 2, 3) for case in convolutions(rank, 5, False)),
    *(case for rank in (1, 2, 3) for case in convolutions(rank, 3, True)),
    *(case for rank in (1, 2, 3) for case in transposed(rank, 5)),
    Case(sigma_layers.Conv2d(3, 3, padding="same", dilation=2, activation="tanh"), [(2, 2, 7, 4)],
         lambda x, p: torch.tanh(F.conv2d(x, p["weights"], p["biases"], padding="same", dilation=2))),
    Case(sigma_layers.Expand(2), [(2, 3, 4)], lambda x, p: x.unsqueeze(2)),
    Case(sigma_layers.Permute(3, 1, 2), [(2, 3, 4, 5)], lambda x, p: x.permute(0, 3, 1, 2)),
]  # fmt: skip
