"""Recurrent layers and the same in PyTorch, with packed sequences for lengths."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_layers import GRU, LSTM, Flatten, Input, Output, SimpleRNN, SquaredDifference  # noqa: E402

from .comparison import affine  # noqa: E402
from .layer_cases import BATCH  # noqa: E402

RANDOM = np.random.default_rng(5)
Y = RANDOM.normal(size=(BATCH, 4))
LENGTHS = np.array([7, 3, 1, 5, 7, 2], np.int32)
OURS = {"rnn_tanh": SimpleRNN, "gru": GRU, "lstm": LSTM}
THEIRS = {"rnn_tanh": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def in_torch(p, kind, heads, features, units):
    """Return PyTorch's layer, and its weights made of ours, whose gradients reach ours."""
    layer = THEIRS[kind](features, units, len(heads), bidirectional=len(heads[0]) == 2, batch_first=True).double()
    weights = {}
    for level, directions in enumerate(heads):
        for way, head in zip(("", "_reverse"), directions, strict=False):
            inside = p.get(f"{head}.recurrent_biases")
            zeros = torch.zeros_like(p[f"{head}.biases"])
            weights |= {
                f"weight_ih_l{level}{way}": p[f"{head}.weights"].T,
                f"weight_hh_l{level}{way}": p[f"{head}.recurrent"].T,
                f"bias_ih_l{level}{way}": p[f"{head}.biases"],
                f"bias_hh_l{level}{way}": zeros if inside is None else torch.cat([zeros[: 2 * units], inside]),
            }
    return layer, weights


def walked(p, kind, heads, x, units, lengths=None):
    """Return PyTorch's outputs of all steps, and the last ones of each direction of the last level."""
    layer, weights = in_torch(p, kind, heads, x.shape[-1], units)
    x = torch.tensor(x)
    if lengths is not None:
        given = torch.tensor(lengths, dtype=torch.int64)
        x = torch.nn.utils.rnn.pack_padded_sequence(x, given, batch_first=True, enforce_sorted=False)
    every, last = torch.func.functional_call(layer, weights, (x,))
    if lengths is not None:
        every, _ = torch.nn.utils.rnn.pad_packed_sequence(every, batch_first=True, total_length=LENGTHS.max())
    last = last[0] if isinstance(last, tuple) else last
    return every, torch.cat([*last[-len(heads[-1]) :]], -1)


def case(kind, *, features, time, units, levels=1, both=False, sequence=False, padded=False):
    """Return a stack of layers of one kind, its data, and the same in PyTorch."""
    x = RANDOM.normal(size=(BATCH, time, features))
    how = {"lengths": Input(section="lengths", dtype="int32")} if padded else {}
    how |= {"direction": "bidirectional"} if both else {}
    stack, heads = Input(time, features), []
    for level in range(levels):
        stack = stack + OURS[kind](units, sequence=sequence or level < levels - 1, name=f"r{level}", **how)
        heads.append([f"r{level}", *([f"r{level}.reverse"] if both else [])])
    end = [Flatten()] if sequence else []
    for layer in (*end, Output(4, name="end"), SquaredDifference()):
        stack = stack + layer
    lengths = LENGTHS if padded else None

    def loss(p):
        every, last = walked(p, kind, heads, x, units, lengths)
        found = affine(p, "end", every.flatten(1) if sequence else last)
        return torch.nn.functional.mse_loss(found, torch.tensor(Y))

    return stack, {"inputs": x, "targets": Y, **({"lengths": LENGTHS} if padded else {})}, loss


def elementary(p, x):
    """Return the last output of a GRU that resets before its product; PyTorch has no such layer."""
    x, h = torch.tensor(x), torch.zeros((BATCH, 3), dtype=torch.float64)
    both, third = p["a.recurrent"].split((6, 3), 1)
    for now in (x @ p["a.weights"] + p["a.biases"]).unbind(1):
        r, z = torch.sigmoid(now[:, :6] + h @ both).chunk(2, 1)
        n = torch.tanh(now[:, 6:] + (r * h) @ third)
        h = (1 - z) * n + z * h
    return h


BEFORE = RANDOM.normal(size=(BATCH, 5, 2))
CASES = {
    **{
        f"{kind} {name}": case(kind, **how)
        for kind in OURS
        for name, how in {
            "of one unit": {"features": 1, "time": 2, "units": 1},
            "of a whole sequence": {"features": 3, "time": 6, "units": 5, "sequence": True},
            "stacked": {"features": 4, "time": 5, "units": 3, "levels": 3},
            "in both directions": {"features": 3, "time": 4, "units": 2, "both": True},
            "of packed sequences": {"features": 2, "time": 7, "units": 3, "padded": True, "sequence": True},
            "stacked, of packed sequences in both directions": {
                "features": 3, "time": 7, "units": 2, "levels": 2, "both": True, "padded": True
            },
        }.items()
    },
    "gru that resets before": (
        Input(5, 2) + GRU(3, reset_after=False, name="a") + Output(4, name="end") + SquaredDifference(),
        {"inputs": BEFORE, "targets": Y},
        lambda p: torch.nn.functional.mse_loss(affine(p, "end", elementary(p, BEFORE)), torch.tensor(Y)),
    ),
}  # fmt: skip
