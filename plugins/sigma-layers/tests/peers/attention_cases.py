"""Embedding, positions, attention and transformer blocks that are compared with the modules of PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_layers import (  # noqa: E402
    Attention,
    Dense,
    DocumentMask,
    Embedding,
    Flatten,
    Input,
    LearnedPositions,
    Output,
    Repeat,
    SinusoidalPositions,
    SoftmaxCrossEntropy,
    SquaredDifference,
    TransformerDecoder,
    TransformerEncoder,
)

from .comparison import affine  # noqa: E402

F, nn = torch.nn.functional, torch.nn
ROWS, TIME, FEATURES, KEYS, VOCABULARY = 3, 7, 6, 5, 11
RANDOM = np.random.default_rng(5)
X, Y = RANDOM.normal(size=(2, ROWS, TIME, FEATURES))
M = RANDOM.normal(size=(ROWS, KEYS, FEATURES))
LENGTHS, COUNTS = np.array([7, 1, 4], np.int32), np.array([2, 5, 1], np.int32)
TOKENS, LABELS = RANDOM.integers(0, VOCABULARY, (2, ROWS, TIME), np.int32)
PACKED = np.array([[3, 0, 4, 5, 0, 6, 7], [1, 2, 3, 4, 5, 6, 0], [0, 0, 1, 2, 0, 3, 4]], np.int32)  # 0 ends a document
DATA = {"inputs": X, "targets": Y}
BOTH = {**DATA, "memory": M, "lengths": LENGTHS, "counts": COUNTS}
LATER = torch.triu(torch.ones(TIME, TIME, dtype=torch.bool), 1)


def squared(y):
    return F.mse_loss(y, torch.tensor(Y))


def beyond(lengths, count):
    """Return true for the keys to ignore, as PyTorch takes it."""
    return torch.arange(count) >= torch.as_tensor(lengths)[:, None]


def called(module, parameters, *given, **how):
    """Call a module of PyTorch in float64, in training, with these parameters."""
    return torch.func.functional_call(module.double(), parameters, given, how)


# -- parameters under the names of PyTorch -----------------------------------------------------------------------------
def attention(p, name, prefix=""):
    maps = [f"{name}.{one}" for one in ("query", "key", "value")]
    found = {
        "in_proj_weight": torch.cat([p[f"{one}.weights"].T for one in maps]),
        "out_proj.weight": p[f"{name}.output.weights"].T,
    }
    if f"{name}.output.biases" in p:
        found["in_proj_bias"] = torch.cat([p[f"{one}.biases"] for one in maps])
        found["out_proj.bias"] = p[f"{name}.output.biases"]
    return {prefix + key: value for key, value in found.items()}


def block(p, name, *attentions):
    """Return the parameters of a block with these kinds of attention."""
    found = {}
    for ours, theirs in zip(attentions, ("self_attn.", "multihead_attn."), strict=False):
        found |= attention(p, f"{name}.{ours}", theirs)
    for ours, theirs in (("hidden", "linear1"), ("feed_forward", "linear2")):
        found |= {f"{theirs}.weight": p[f"{name}.{ours}.weights"].T, f"{theirs}.bias": p[f"{name}.{ours}.biases"]}
    for i, part in enumerate((*attentions, "feed_forward")):
        norm = f"{name}.{part}_norm"
        found |= {f"norm{i + 1}.weight": p[f"{norm}.scale"], f"norm{i + 1}.bias": p[f"{norm}.shift"]}
    return found


# -- the same in PyTorch -----------------------------------------------------------------------------------------------
def attended(p, bias=True, **how):
    module = nn.MultiheadAttention(FEATURES, 2, bias=bias, batch_first=True)
    x = torch.tensor(X)
    return squared(called(module, attention(p, "a"), x, x, x, need_weights=False, **how)[0])


def apart(p):
    ends = torch.tensor(PACKED == 0).long()
    document = ends.cumsum(1) - ends
    hidden = (document[:, :, None] != document[:, None, :]) | LATER
    return attended(p, attn_mask=hidden.repeat_interleave(2, 0))  # for each head


def crossed(p):
    module, m = nn.MultiheadAttention(FEATURES, 3, batch_first=True), torch.tensor(M)
    ignored = beyond(COUNTS, KEYS)
    return squared(called(module, attention(p, "a"), torch.tensor(X), m, m, key_padding_mask=ignored)[0])


def grouped(p, heads=4, pairs=2, size=3, width=2):
    q, k, v = (
        affine(p, f"a.{name}", torch.tensor(X)).unflatten(-1, (count, -1)).transpose(1, 2)
        for name, count in (("query", heads), ("key", pairs), ("value", pairs))
    )
    assert q.shape[-1] == k.shape[-1] == size
    assert v.shape[-1] == width
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return squared(affine(p, "a.output", found.transpose(1, 2).flatten(2)))


def turned(x, base):
    """Turn pairs of features as complex numbers."""
    count, size = x.shape[-2:]
    angles = torch.arange(count)[:, None] * base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def rotary(p):
    q, k, v = (affine(p, f"a.{name}", torch.tensor(X)).unflatten(-1, (3, 2)).transpose(1, 2) for name in MAPS)
    found = F.scaled_dot_product_attention(turned(q, 50.0), turned(k, 50.0), v, is_causal=True)
    return squared(affine(p, "a.output", found.transpose(1, 2).flatten(2)))


MAPS = ("query", "key", "value")


def encoded(p, count=1, hidden=8, activation="relu", norm_first=True, **how):
    module = nn.TransformerEncoderLayer(FEATURES, 2, hidden, 0.0, activation, 1e-5, True, norm_first)
    x = torch.tensor(X)
    for i in range(count):
        x = called(module, block(p, f"e.{i}" if count > 1 else "e", "attention"), x, **how)
    return squared(x)


def decoded(p, norm_first):
    module = nn.TransformerDecoderLayer(FEATURES, 3, 4 * FEATURES, 0.0, "gelu", 1e-5, True, norm_first)
    own, there = beyond(LENGTHS, TIME), beyond(COUNTS, KEYS)
    return 0.3 * squared(
        called(module, block(p, "d", "attention", "cross_attention"), torch.tensor(X), torch.tensor(M),
               tgt_mask=LATER, tgt_key_padding_mask=own, memory_key_padding_mask=there)
    )  # fmt: skip


def language(p, positions, padding=None):
    x = F.embedding(torch.tensor(TOKENS), p["words.weights"], padding)
    x = x * (torch.tensor(TOKENS) != padding)[..., None] if padding is not None else x
    module = nn.TransformerEncoderLayer(FEATURES, 2, 4 * FEATURES, 0.0, "relu", 1e-5, True, True)
    x = called(module, block(p, "e", "attention"), x + positions(p), src_mask=LATER)
    scores = affine(p, "out", x)
    return F.cross_entropy(scores.flatten(0, 1), torch.tensor(LABELS).long().flatten())


def sinusoidal(_):
    places = torch.arange(TIME, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, FEATURES, 2, dtype=torch.float64) * (-math.log(10000.0) / FEATURES))
    table = torch.zeros(TIME, FEATURES, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(places * rates), torch.cos(places * rates)
    return table


# -- cases -------------------------------------------------------------------------------------------------------------
def model(*positions, **settings):
    found = Input(TIME, dtype="int32") + Embedding(VOCABULARY, FEATURES, name="words", **settings)
    for layer in positions:
        found = found + layer
    encoder = TransformerEncoder(2, causal=True, name="e")
    return found + encoder + Output(VOCABULARY, name="out") + SoftmaxCrossEntropy()


def chain(*layers, weight=1.0):
    found = Input(TIME, FEATURES)
    for layer in layers:
        found = found + layer
    return found + SquaredDifference(weight=weight)


def decoder(norm):
    memory, own, there = (
        Input(KEYS, FEATURES, section="memory"), Input(section="lengths", dtype="int32"),
        Input(section="counts", dtype="int32"),
    )  # fmt: skip
    layer = TransformerDecoder(3, memory, mask=own, memory_mask=there, activation="gelu", norm=norm, name="d")
    return chain(layer, weight=0.3)  # with longer steps, training is chaotic


def masked(make):
    return chain(make(Input(section="lengths", dtype="int32")))


TEXT = {"inputs": TOKENS, "targets": LABELS}
PADDED = {**DATA, "lengths": LENGTHS}
CASES = {
    "attention": (chain(Attention(2, name="a")), DATA, attended),
    "attention without bias": (chain(Attention(2, bias=False, name="a")), DATA, lambda p: attended(p, bias=False)),
    "causal attention": (
        chain(Attention(2, causal=True, name="a")), DATA, lambda p: attended(p, attn_mask=LATER, is_causal=True)),
    "attention with padding": (
        masked(lambda mask: Attention(2, mask=mask, name="a")), PADDED,
        lambda p: attended(p, key_padding_mask=beyond(LENGTHS, TIME))),
    "attention within documents": (
        chain(Attention(2, mask=Input(TIME, section="tokens", dtype="int32") + DocumentMask(), causal=True, name="a")),
        {**DATA, "tokens": PACKED}, apart),
    "attention to another sequence": (
        chain(Attention(3, Input(KEYS, FEATURES, section="memory"), Input(section="counts", dtype="int32"), name="a")),
        BOTH, crossed),
    "grouped heads": (
        chain(Attention(4, key_value_heads=2, key_size=3, value_size=2, causal=True, name="a")), DATA, grouped),
    "one pair of keys and values": (
        chain(Attention(4, key_value_heads=1, key_size=3, value_size=2, causal=True, name="a")), DATA,
        lambda p: grouped(p, pairs=1)),
    "rotary positions": (chain(Attention(3, causal=True, rotary=50.0, name="a")), DATA, rotary),
    "encoder, pre-norm, causal": (
        chain(TransformerEncoder(2, hidden=8, causal=True, name="e")), DATA,
        lambda p: encoded(p, src_mask=LATER, is_causal=True)),
    "encoder, post-norm, with padding": (
        masked(lambda mask: TransformerEncoder(2, mask, hidden=8, norm="post", activation="gelu", name="e")), PADDED,
        lambda p: encoded(p, activation="gelu", norm_first=False, src_key_padding_mask=beyond(LENGTHS, TIME))),
    "encoders": (
        chain(Repeat(2, TransformerEncoder(2, hidden=8, norm="post"), name="e")), DATA,
        lambda p: encoded(p, count=2, norm_first=False)),
    "decoder, pre-norm": (decoder("pre"), BOTH, lambda p: decoded(p, norm_first=True)),
    "decoder, post-norm": (decoder("post"), BOTH, lambda p: decoded(p, norm_first=False)),
    "language model, learned positions": (
        model(LearnedPositions(name="places")), TEXT, lambda p: language(p, lambda p: p["places.weights"])),
    "language model, sinusoidal positions, padding": (
        model(SinusoidalPositions(), padding=3), TEXT, lambda p: language(p, sinusoidal, 3)),
    "embedding": (
        Input(TIME, dtype="int32") + Embedding(VOCABULARY, 2, name="words") + Flatten() + Dense(3, name="a")
        + SquaredDifference(), {"inputs": TOKENS, "targets": Y[:, 0, :3]},
        lambda p: F.mse_loss(affine(p, "a", F.embedding(torch.tensor(TOKENS), p["words.weights"]).flatten(1)),
                             torch.tensor(Y[:, 0, :3]))),
}  # fmt: skip


# -- over generated settings and shapes --------------------------------------------------------------------------------
def heads_of(p, x, m, heads, pairs, causal):
    q, k, v = (
        affine(p, name, of).unflatten(-1, (count, -1)).transpose(1, 2)
        for name, of, count in (("a.query", x, heads), ("a.key", m, pairs), ("a.value", m, pairs))
    )
    found = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    return affine(p, "a.output", found.transpose(1, 2).flatten(2))


def below(parameters):
    """Return parameters with the name of their layer."""
    return {f"a.{name}": value for name, value in parameters.items()}


def generated():
    """Yield layers, shapes of their inputs, the same in PyTorch, and what was drawn."""
    random = np.random.default_rng(17)
    for _ in range(8):
        pairs, time, features, units = (int(n) for n in random.integers(1, 6, 4))
        size, heads, crossed = int(random.integers(1, 5)), pairs * int(random.integers(1, 4)), random.random() < 0.3
        how = {"key_value_heads": pairs, "key_size": size, "value_size": size + 1, "units": units}
        how["causal"] = bool(random.random() < 0.5 and not crossed)
        shapes = [(2, time, features), *([(2, time + 3, features + 1)] if crossed else [])]
        yield (
            Attention(heads, **how), shapes,
            lambda x, *rest, heads=heads, pairs=pairs, causal=how["causal"]: heads_of(
                below(rest[-1]), x, (*rest[:-1], x)[0], heads, pairs, causal),
            {"heads": heads, **how},
        )  # fmt: skip
    for norm in ("pre", "post"):
        for heads, size, time, hidden in ((1, 3, 1, 1), (2, 4, 5, 7), (3, 9, 4, 2)):
            layer = TransformerEncoder(heads, hidden=hidden, norm=norm, epsilon=1e-3, activation="gelu")
            module = nn.TransformerEncoderLayer(size, heads, hidden, 0.0, "gelu", 1e-3, True, norm == "pre")
            yield (
                layer, [(2, time, size)],
                lambda x, p, module=module: called(module, block(below(p), "a", "attention"), x),
                {"heads": heads, "hidden": hidden, "norm": norm},
            )  # fmt: skip
