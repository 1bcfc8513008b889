"""ONNX's recurrent operators, normalisations and transposed convolutions, as Sigma's layers with given parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sigma_kernel import Trace, functions as f
from sigma_kernel.graph import Node, constant
from sigma_layers import GRU, LSTM, BatchNorm, GroupNorm, InstanceNorm, Pad, RMSNorm, SimpleRNN, Upsample
from sigma_testing import by_name
from tests.peers.onnx_nodes.reading import OutOfScopeError, Table
from tests.peers.onnx_nodes.windowed import spread

LAYERS = Table()
row = LAYERS.row


def layer(made: Any, *inputs: Any, training: bool = False, **given: Any) -> tuple[Any, dict[str, Node]]:
    """Return the value of a layer, and its new state, for given parameters, state and live settings."""
    values = {f"it.{name}": x if isinstance(x, Node) else constant(x) for name, x in given.items()}
    trace = Trace(by_name, training, None, "float32", values)
    value = trace.run("it", "it", made, inputs)
    return value, {name.removeprefix("it."): node for name, node in trace.state.items()}


# -- recurrent ---------------------------------------------------------------------------------------------------------
def _parameters(order: Sequence[int], units: int, ways: int, w: Any, r: Any, b: Any, apart: bool) -> dict[str, Any]:
    """Return Sigma's parameters: blocks of gates in another order, matrices transposed, both biases added."""

    def blocks(x: Any, way: int) -> Any:
        rows = x[way]
        return f.concat(*(rows[gate * units : (gate + 1) * units] for gate in order), axis=0)

    found = {}
    for way in range(ways):
        head, size = "reverse." if way else "", len(order) * units
        found |= {f"{head}weights": blocks(w, way).T, f"{head}recurrent": blocks(r, way).T}
        first, second = (f.zeros((ways, size)),) * 2 if b is None else (b[:, :size], b[:, size:])
        found[f"{head}biases"] = blocks(first, way) + blocks(second, way)
        if apart:  # GRU: the biases of the recurrent product of n stay inside of the reset gate
            inside = blocks(second, way)[-units:]
            found[f"{head}biases"] = blocks(first, way) + f.concat(blocks(second, way)[:-units], inside * 0.0, axis=0)
            found[f"{head}recurrent_biases"] = inside
    return found


def _recurrent(kind: Any, order: Sequence[int], x: Any, w: Any, r: Any, b: Any, how: Mapping[str, Any]) -> Any:
    """Return ``Y`` and ``Y_h``."""
    layout, units, direction = how.get("layout", 0), how["hidden_size"], how.get("direction", "forward")
    ways = 2 if direction == "bidirectional" else 1
    apart = kind is GRU and bool(how.get("linear_before_reset", 0))
    settings = {"reset_after": apart} if kind is GRU else {}
    given = _parameters(order, units, ways, w, r, b, apart)
    rows = x if layout else f.swap_axes(x, 0, 1)
    both = [layer(kind(units, sequence=s, direction=direction, **settings), rows, **given)[0] for s in (True, False)]
    outputs, last = both
    batch, time, _ = outputs.shape
    every, end = f.reshape(outputs, (batch, time, ways, units)), f.reshape(last, (batch, ways, units))
    return (every, end) if layout else (f.permute(every, (1, 2, 0, 3)), f.swap_axes(end, 0, 1))


def _refuse(what: str, *given: Any) -> None:
    if any(x is not None for x in given):
        raise OutOfScopeError("an initial state, lengths or peepholes of a recurrent operator", what)


@row("RNN")
def _rnn(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, **how: Any) -> Any:
    _refuse("RNN", lengths, h)
    return _recurrent(SimpleRNN, (0,), x, w, r, b, how)


@row("GRU")
def _gru(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, **how: Any) -> Any:
    _refuse("GRU", lengths, h)
    return _recurrent(GRU, (1, 0, 2), x, w, r, b, how)


@row("LSTM")
def _lstm(x: Any, w: Any, r: Any, b: Any = None, *others: Any, **how: Any) -> Any:
    _refuse("LSTM", *others)
    return _recurrent(LSTM, (0, 2, 3, 1), x, w, r, b, how)


# -- normalisations ----------------------------------------------------------------------------------------------------
@row("BatchNormalization")
def _batch_norm(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:  # fmt: skip
    given = {"scale": scale, "shift": shift, "mean": mean, "variance": variance, "momentum": 1.0 - momentum}
    value, state = layer(BatchNorm(epsilon=epsilon), x, training=bool(training_mode), **given)
    if training_mode:  # the variance moves by the mean of squares, and in Sigma and PyTorch by that over n - 1
        n = x.shape[0] * x.shape[2] * x.shape[3]
        moved = variance + (state["variance"] - variance * momentum) * ((n - 1) / n) - variance * (1.0 - momentum)
        return value, state["mean"], moved
    return value


@row("GroupNormalization")
def _group_norm(x: Any, scale: Any, shift: Any, num_groups: int, epsilon: float = 1e-5) -> Any:
    return layer(GroupNorm(num_groups, epsilon=epsilon), x, scale=scale, shift=shift)[0]


@row("InstanceNormalization")
def _instance_norm(x: Any, scale: Any, shift: Any, epsilon: float = 1e-5) -> Any:
    return layer(InstanceNorm(epsilon=epsilon), x, scale=scale, shift=shift)[0]


@row("RMSNormalization")
def _rms_norm(x: Any, scale: Any, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    at, lead = axis % len(x.shape), len(x.shape)
    rows = f.expand(x, 0) if at == 0 else x  # the layer leaves the batch alone
    value, _ = layer(RMSNorm(lead - at, epsilon=epsilon), rows, scale=scale)
    return value[0] if at == 0 else value


# -- transposed convolutions -------------------------------------------------------------------------------------------
@row("ConvTranspose")
def _conv_transpose(
    x: Any, w: Any, b: Any = None, strides: Any = None, dilations: Any = None, pads: Any = None, group: int = 1,
    output_padding: Any = None, output_shape: Any = None, auto_pad: str = "NOTSET", kernel_shape: Any = None,
) -> Any:  # fmt: skip
    rank = len(x.shape) - 2
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    added, pads = list(output_padding or [0] * rank), list(pads or [0] * 2 * rank)
    spans = spread(w.shape[2:], gaps)
    if auto_pad.startswith("SAME"):
        output_shape = [n * step for n, step in zip(x.shape[2:], steps, strict=True)]
    if output_shape:
        whole = [(n - 1) * s + k + a for n, s, k, a in zip(x.shape[2:], steps, spans, added, strict=True)]
        total = [side - wanted for side, wanted in zip(whole, output_shape, strict=True)]
        added = [max(a, a - t) if t < 0 else a for a, t in zip(added, total, strict=True)]
        total = [max(t, 0) for t in total]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = [*small, *large] if auto_pad == "SAME_UPPER" else [*large, *small]
    pairs = [(pads[i], pads[i + rank]) for i in range(rank)]
    made = f.convolution_transpose(x, w, steps, pairs, gaps, group, added)
    return made if b is None else made + f.reshape(b, (-1, *(1,) * rank))


# -- sides -------------------------------------------------------------------------------------------------------------
_POSITIONS = {"half_pixel": False, "align_corners": True}


def _sides(x: Any, scales: Any, sizes: Any, axes: Any) -> list[int]:
    """Return the sides that a test asks for; raises OutOfScopeError if they are no multiple or part of the present."""
    chosen, sides = list(axes) if axes is not None else list(range(len(x.shape))), list(x.shape)
    for place, axis in enumerate(chosen):
        if sizes is not None:
            sides[axis] = int(sizes[place])
        elif (wanted := float(scales[place]) * x.shape[axis]) == int(wanted):
            sides[axis] = int(wanted)
        else:
            raise OutOfScopeError("a mode of an operator", "Resize to fractions of an entry")
    if sides[:2] != list(x.shape[:2]):
        raise OutOfScopeError("a mode of an operator", "Resize of batch and channels")
    return sides[2:]


@row("Resize", static=(1, 2, 3))
def _resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, mode: str = "nearest", axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel", **others: Any,
) -> Any:  # fmt: skip
    given = (mode, coordinate_transformation_mode)
    if mode == "cubic" or given[1] not in _POSITIONS or given == ("nearest", "align_corners") or others:
        raise OutOfScopeError("a mode of an operator", "Resize by cubics, other positions, or with antialias")
    sides = _sides(x, scales, sizes, axes)
    if mode == "nearest" and any(wanted % n for n, wanted in zip(x.shape[2:], sides, strict=True)):
        raise OutOfScopeError("a mode of an operator", "Resize to no multiple by nearest entries")
    corners = mode == "linear" and _POSITIONS[given[1]]
    return layer(Upsample(mode=mode, align_corners=corners, size=sides), x)[0]


@row("Upsample", static=(1,))
def _upsample(x: Any, scales: Any, mode: str = "nearest") -> Any:
    return layer(Upsample(mode=mode, size=_sides(x, scales, None, None)), x)[0]


def padded(x: Any, mode: str, low: Sequence[int], high: Sequence[int]) -> Any:
    """Return a sample whose sides are continued."""
    if any((*low[:2], *high[:2])):
        raise OutOfScopeError("a mode of an operator", f"Pad by {mode} of batch and channels")
    modes = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    return layer(Pad(list(zip(low[2:], high[2:], strict=True)), mode=modes[mode]), x)[0]
