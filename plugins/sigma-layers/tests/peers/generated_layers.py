"""Strategies that draw single layers, their settings and the shapes of their inputs; each family is a strategy."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import assume, strategies as st

torch = pytest.importorskip("torch")

import sigma_layers  # noqa: E402

from .attention_cases import below, beyond, block, called, turned  # noqa: E402
from .layer_cases import IN_TORCH  # noqa: E402
from .recurrent_cases import THEIRS, in_torch as recurrent_in_torch  # noqa: E402
from .single_layer_cases import Case, batch_norm, layer_norm, sides  # noqa: E402

F, nn = torch.nn.functional, torch.nn
few, some = st.integers(1, 3), st.integers(1, 5)
FUNCTIONS = st.sampled_from(sorted(IN_TORCH))
EPSILONS = st.sampled_from([1e-5, 1e-3, 0.1])
MOST = {1: 13, 2: 8, 3: 5}  # of a side, by their number


def each(draw, rank, low, high):
    """Return one number, or one for each side."""
    numbers = st.integers(low, high)
    return draw(st.one_of(numbers, st.lists(numbers, min_size=rank, max_size=rank)))


def room(draw, rank, spans, pads):
    """Return sides that hold at least one window."""
    wanted = zip(spans, pads, strict=True)
    return [draw(st.integers(max(1, span - 2 * pad), max(MOST[rank], span))) for span, pad in wanted]


def reaches(how, rank):
    pairs = zip(sides(how["size"], rank), sides(how.get("dilation", 1), rank), strict=True)
    return [(k - 1) * d + 1 for k, d in pairs]


@st.composite
def dense(draw):
    shape = (draw(few), *draw(st.lists(some, min_size=1, max_size=3)))
    name, bias = draw(FUNCTIONS), draw(st.booleans())
    return Case(
        sigma_layers.Dense(draw(some), activation=name, bias=bias), [shape],
        lambda x, p: IN_TORCH[name](x @ p["weights"] + p.get("biases", 0.0)), {"activation": name},
    )  # fmt: skip


# -- windows -----------------------------------------------------------------------------------------------------------
def evenly(x, how, rank):
    """Pad so that n entries become ceil(n / stride), an odd entry of the padding going after."""
    pads = []
    for n, reach, step in zip(x.shape[2:], reaches(how, rank), sides(how["stride"], rank), strict=True):
        missing = max((-(-n // step) - 1) * step + reach - n, 0)
        pads = [missing // 2, missing - missing // 2, *pads]
    return F.pad(x, pads)


@st.composite
def convolution(draw):
    rank, depthwise, groups = draw(few), draw(st.booleans()), draw(few)
    how = {"size": each(draw, rank, 1, 4), "stride": each(draw, rank, 1, 3), "dilation": each(draw, rank, 1, 3)}
    same = draw(st.integers(0, 3)) == 0
    padding = 0 if same else each(draw, rank, 0, 2)
    own = room(draw, rank, [1] * rank if same else reaches(how, rank), sides(padding, rank))
    channels, name = groups * draw(few), draw(FUNCTIONS)
    more = {"multiplier": groups} if depthwise else {"filters": groups * draw(few), "groups": groups}
    make = getattr(sigma_layers, f"{'DepthwiseConv' if depthwise else 'Conv'}{rank}d")
    layer = make(**how, **more, padding="same" if same else padding, bias=draw(st.booleans()), activation=name)
    torched = {one: sides(how[one], rank) for one in ("stride", "dilation")}
    torched |= {"groups": channels if depthwise else groups, "padding": sides(padding, rank)}
    convolve = getattr(F, f"conv{rank}d")

    def function(x, p):
        x = evenly(x, how, rank) if same else x
        return IN_TORCH[name](convolve(x, p["weights"], p.get("biases"), **torched))

    assume(name != "softmax" or own)
    return Case(layer, [(draw(few), channels, *own)], function, {**how, **more, "padding": padding, "same": same})


@st.composite
def transposed(draw):
    rank, groups = draw(few), draw(few)
    how = {"size": each(draw, rank, 1, 4), "stride": each(draw, rank, 1, 3), "padding": each(draw, rank, 0, 2)}
    how["dilation"] = each(draw, rank, 1, 2)
    how["output_padding"] = [draw(st.integers(0, s - 1)) for s in sides(how["stride"], rank)]
    own = [draw(st.integers(1, MOST[rank] - 1)) for _ in range(rank)]
    every = zip(own, *(sides(value, rank) for value in how.values()), strict=True)
    assume(all((n - 1) * s - 2 * p + (k - 1) * d + 1 + e > 0 for n, k, s, p, d, e in every))
    make, convolve = getattr(sigma_layers, f"Conv{rank}dTranspose"), getattr(F, f"conv_transpose{rank}d")
    layer = make(filters=groups * draw(few), groups=groups, bias=draw(st.booleans()), **how)
    torched = {name: sides(value, rank) for name, value in how.items() if name != "size"}
    return Case(
        layer, [(draw(few), groups * draw(few), *own)],
        lambda x, p: convolve(x, p["weights"], p.get("biases"), groups=groups, **torched), {**how, "groups": groups},
    )  # fmt: skip


@st.composite
def pool(draw):
    rank, largest = draw(few), draw(st.booleans())
    how = {"size": each(draw, rank, 1, 4), "stride": each(draw, rank, 1, 4)}
    how["padding"] = [k // 2 for k in sides(how["size"], rank)] if draw(st.booleans()) else 0
    torched = [sides(value, rank) for value in how.values()]
    how["ceil_mode"] = draw(st.booleans())
    more = {} if largest else {"count_padding": draw(st.booleans())}
    own = room(draw, rank, reaches(how, rank) if how["padding"] == 0 else sides(how["size"], rank), [0] * rank)
    function = getattr(F, f"{'max' if largest else 'avg'}_pool{rank}d")
    theirs = {"ceil_mode": how["ceil_mode"], **({"count_include_pad": more["count_padding"]} if more else {})}
    layer = (sigma_layers.MaxPool if largest else sigma_layers.AveragePool)(**how, **more)
    shape = draw(few), draw(few), *own
    return Case(layer, [shape], lambda x, p: function(x, *torched, **theirs), {**how, **more})


@st.composite
def adaptive_pool(draw):
    rank, kind = draw(few), draw(st.sampled_from(["max", "avg"]))
    shape = draw(few), draw(few), *(draw(st.integers(1, MOST[rank])) for _ in range(rank))
    ours = "Max" if kind == "max" else "Average"
    if draw(st.integers(0, 3)) == 0:
        keep = draw(st.booleans())
        axes = tuple(range(2, rank + 2))
        return Case(
            getattr(sigma_layers, f"Global{ours}Pool")(keepdims=keep), [shape],
            lambda x, p: (x.amax if kind == "max" else x.mean)(axes, keepdim=keep), {"keepdims": keep},
        )  # fmt: skip
    size = [draw(st.integers(1, n + 2)) for n in shape[2:]]
    function = getattr(F, f"adaptive_{kind}_pool{rank}d")
    return Case(getattr(sigma_layers, f"Adaptive{ours}Pool")(size), [shape], lambda x, p: function(x, size))


# -- norms -------------------------------------------------------------------------------------------------------------
@st.composite
def norm(draw):
    epsilon, affine, kind = draw(EPSILONS), draw(st.booleans()), draw(st.sampled_from(NORMS))
    space = draw(st.lists(some, min_size=1 if kind == "instance" else 0, max_size=3))
    batch, features = draw(few), draw(some)
    if kind == "batch":
        assume(batch * int(np.prod(space)) > 1)
        last, momentum = draw(st.booleans()), draw(st.sampled_from([0.0, 0.1, 0.7, 1.0]))
        layer = sigma_layers.BatchNorm(momentum, epsilon, affine, -1 if last else 1)
        shape = (batch, *space, features) if last else (batch, features, *space)
        return Case(layer, [shape], batch_norm(-1 if last else 1, momentum, epsilon))
    if kind == "group":
        groups = draw(few)
        shape = batch, features * groups, *space
        assume(features * int(np.prod(space)) > 1)
        layer = sigma_layers.GroupNorm(groups, epsilon=epsilon, affine=affine)
        return Case(layer, [shape], lambda x, p: F.group_norm(x, groups, p.get("scale"), p.get("shift"), epsilon))
    shape = batch, features, *space
    if kind == "instance":
        assume(int(np.prod(space)) > 1)
        layer = sigma_layers.InstanceNorm(epsilon=epsilon, affine=affine)
        given = {"eps": epsilon}
        return Case(layer, [shape],
                    lambda x, p: F.instance_norm(x, weight=p.get("scale"), bias=p.get("shift"), **given))  # fmt: skip
    axes = draw(st.integers(1, len(shape) - 1))
    assume(int(np.prod(shape[-axes:])) > 1)
    if kind == "layer":
        return Case(sigma_layers.LayerNorm(axes, epsilon, affine=affine), [shape], layer_norm(axes, epsilon))
    return Case(
        sigma_layers.RMSNorm(axes, epsilon), [shape],
        lambda x, p: F.rms_norm(x, x.shape[-axes:], p["scale"], epsilon),
    )  # fmt: skip


NORMS = ["batch", "layer", "group", "instance", "rms"]


# -- sides and branches ------------------------------------------------------------------------------------------------
@st.composite
def resized(draw):
    rank = draw(few)
    own = [draw(st.integers(1, MOST[rank] - 1)) for _ in range(rank)]
    shape, linear, aligned = (draw(few), draw(few), *own), draw(st.booleans()), draw(st.booleans())
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]
    factor = each(draw, rank, 1, 3)
    size = None if draw(st.booleans()) else [draw(st.integers(1, 2 * n)) for n in own]
    theirs = {"scale_factor": [float(n) for n in sides(factor, rank)]} if size is None else {"size": size}
    ours = {"factor": factor} if size is None else {"size": size}
    if linear:
        ours |= {"mode": "linear", "align_corners": aligned}
        theirs |= {"mode": mode, "align_corners": aligned}
    layer = sigma_layers.Upsample(**ours)
    return Case(layer, [shape], lambda x, p: F.interpolate(x, **theirs), ours)


@st.composite
def margin(draw):
    rank, mode = draw(few), draw(st.sampled_from(["constant", "reflect", "replicate", "circular", "crop"]))
    own = [draw(st.integers(2, MOST[rank])) for _ in range(rank)]
    most = [{"circular": n, "reflect": n - 1, "crop": (n - 1) // 2}.get(mode, 4) for n in own]
    pairs = [(draw(st.integers(0, n)), draw(st.integers(0, n))) for n in most]
    shape = draw(few), draw(few), *own
    if mode == "crop":
        part = (slice(None), slice(None), *(slice(a, n - b) for (a, b), n in zip(pairs, own, strict=True)))
        return Case(sigma_layers.Crop(pairs), [shape], lambda x, p: x[part], {"width": pairs})
    around, value = [n for pair in reversed(pairs) for n in pair], {"value": -0.5} if mode == "constant" else {}
    return Case(
        sigma_layers.Pad(pairs, mode, **value), [shape], lambda x, p: F.pad(x, around, mode, **value), {"mode": mode}
    )


@st.composite
def merge(draw):
    count, kind = draw(st.integers(2, 4)), draw(st.sampled_from(sorted(MERGES)))
    shape = draw(few), *draw(st.lists(some, min_size=1, max_size=3))
    if kind == "Concat":
        axis = draw(st.integers(1, len(shape) - 1))
        shapes = [tuple(draw(some) if k == axis else n for k, n in enumerate(shape)) for _ in range(count)]
        return Case(sigma_layers.Concat(axis=axis), shapes, lambda *x: torch.cat(x[:-1], axis))
    one = tuple(1 if k and draw(st.booleans()) else n for k, n in enumerate(shape))
    shapes = [shape] * (count - 1) + [one if kind == "Multiply" else shape]
    return Case(getattr(sigma_layers, kind)(), shapes, lambda *x: MERGES[kind](x[:-1]))


MERGES = {
    "Add": sum, "Multiply": lambda x: reduce(torch.mul, x), "Mean": lambda x: sum(x) / len(x),
    "Maximum": lambda x: torch.stack(x).amax(0), "Concat": None,
}  # fmt: skip


# -- sequences ---------------------------------------------------------------------------------------------------------
@st.composite
def embedding(draw):
    words, units = draw(st.integers(1, 7)), draw(some)
    shape = draw(few), *draw(st.lists(some, min_size=1, max_size=2))
    padding = draw(st.one_of(st.none(), st.integers(0, words - 1)))
    index = np.random.default_rng(draw(st.integers(0, 9))).integers(0, words, shape, np.int32)

    def function(x, p):
        found = F.embedding(x, p["weights"], padding)
        return found if padding is None else found * (x != padding)[..., None]

    layer = sigma_layers.Embedding(words, units, padding=padding)
    return Case(layer, [shape], function, {"padding": padding}, {"input 0": index})


def lengths(draw, batch, most):
    return np.array([draw(st.integers(1, most)) for _ in range(batch)], np.int32)


@st.composite
def recurrent(draw):
    kind, units, features, time = draw(st.sampled_from(sorted(THEIRS))), draw(some), draw(some), draw(st.integers(1, 7))
    batch, both, sequence, padded = draw(few), draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    given = {"input 1": lengths(draw, batch, time)} if padded else {}
    how = {"sequence": sequence, "direction": "bidirectional" if both else "forward"}
    heads = [["a", *(["a.reverse"] if both else [])]]

    def function(x, *rest):
        layer, weights = recurrent_in_torch(below(rest[-1]), kind, heads, features, units)
        if padded:
            pack = torch.nn.utils.rnn.pack_padded_sequence
            x = pack(x, rest[0].long(), batch_first=True, enforce_sorted=False)
        every, last = torch.func.functional_call(layer, weights, (x,))
        if sequence:
            unpack = torch.nn.utils.rnn.pad_packed_sequence
            return unpack(every, batch_first=True, total_length=time)[0] if padded else every
        last = last[0] if isinstance(last, tuple) else last
        return torch.cat([*last], -1)

    layer = {"rnn_tanh": sigma_layers.SimpleRNN, "gru": sigma_layers.GRU, "lstm": sigma_layers.LSTM}[kind](units, **how)
    return Case(layer, [(batch, time, features), *([(batch,)] if padded else [])], function, {"kind": kind}, given)


@st.composite
def attention(draw):
    pairs, each_has, size, width = draw(few), draw(few), draw(few), draw(few)
    batch, time, features, units, bias = draw(few), draw(st.integers(1, 9)), draw(some), draw(some), draw(st.booleans())
    rotary = draw(st.one_of(st.none(), st.sampled_from([10.0, 10000.0])))
    size = 2 * size if rotary else size
    padded, causal = draw(st.booleans()), draw(st.booleans())
    given = {"input 1": lengths(draw, batch, time)} if padded else {}
    shapes, heads = [(batch, time, features), *([(batch,)] if padded else [])], pairs * each_has
    how = {"key_value_heads": pairs, "key_size": size, "value_size": width, "units": units, "causal": causal}
    later = torch.ones(time, time, dtype=torch.bool).tril() if causal else torch.ones(time, time, dtype=torch.bool)

    def function(x, *rest):
        q, k, v = (
            (x @ rest[-1][f"{name}.weights"] + rest[-1].get(f"{name}.biases", 0.0)).unflatten(-1, (n, -1))
            for name, n in (("query", heads), ("key", pairs), ("value", pairs))
        )
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        q, k = (turned(one, rotary) for one in (q, k)) if rotary else (q, k)
        seen = later if not padded else later & ~beyond(rest[0], time)[:, None, None]
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True).transpose(1, 2).flatten(2)
        return found @ rest[-1]["output.weights"] + rest[-1].get("output.biases", 0.0)

    layer = sigma_layers.Attention(heads, **how, bias=bias, rotary=rotary)
    return Case(layer, shapes, function, {"heads": heads, **how, "rotary": rotary, "bias": bias}, given)


@st.composite
def encoder(draw):
    heads, hidden, time, batch = draw(few), draw(some), draw(st.integers(1, 6)), draw(few)
    size, order, epsilon = heads * draw(few), draw(st.sampled_from(["pre", "post"])), draw(EPSILONS)
    assume(size > 1)
    activation, padded = draw(st.sampled_from(["relu", "gelu"])), draw(st.booleans())
    given = {"input 1": lengths(draw, batch, time)} if padded else {}
    module = nn.TransformerEncoderLayer(size, heads, hidden, 0.0, activation, epsilon, True, order == "pre")

    def function(x, *rest):
        mask = {"src_key_padding_mask": beyond(rest[0], time)} if padded else {}
        return called(module, block(below(rest[-1]), "a", "attention"), x, **mask)

    layer = sigma_layers.TransformerEncoder(heads, hidden=hidden, norm=order, epsilon=epsilon, activation=activation)
    shapes = [(batch, time, size), *([(batch,)] if padded else [])]
    return Case(layer, shapes, function, {"heads": heads, "norm": order}, given)


FAMILIES = {
    "dense": dense(), "convolution": convolution(), "transposed": transposed(), "pool": pool(),
    "adaptive_pool": adaptive_pool(), "norm": norm(), "resized": resized(), "margin": margin(), "merge": merge(),
    "embedding": embedding(), "recurrent": recurrent(), "attention": attention(), "encoder": encoder(),
}  # fmt: skip
