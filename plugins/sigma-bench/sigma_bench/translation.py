"""Translate a trainer's network and optimiser to the description that peers take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, repeat
from math import prod
from typing import Any

import numpy as np
from attrs import evolve

from sigma_bench.work import Part, UpdateRule, Workload
from sigma_kernel import Layer, Network, Placed
from sigma_kernel.contracts import live_settings
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import (
    GRU,
    LSTM,
    Activation,
    AveragePool,
    BatchNorm,
    Conv1d,
    Conv2d,
    Conv3d,
    Dense,
    DepthwiseConv1d,
    DepthwiseConv2d,
    DepthwiseConv3d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool,
    Input,
    LayerNorm,
    LearnedPositions,
    MaxPool,
    Output,
    Residual,
    SimpleRNN,
    SoftmaxCrossEntropy,
    TransformerEncoder,
)
from sigma_layers.plugin import ACTIVATIONS
from sigma_optimisers import Adagrad, Adam, GradientDescent, Momentum
from sigma_step import Model
from sigma_training import NetworkTrainer

LAYERS = "network.layers."  # the prefix of layers' addresses
KNOWN_ITERATIONS = 64  # for so many at least, peers are told the order of the rows
RULES: dict[type, str] = {GradientDescent: "gradient_descent", Momentum: "momentum", Adam: "adam", Adagrad: "adagrad"}

Shape = tuple[int, ...]


def to_workload(trainer: NetworkTrainer) -> Workload:
    """Return the work of a prepared trainer that has not started; SigmaConfigError for what peers do not support."""
    session = trainer.session
    feed, model = session.setup.feed, session.setup.model
    if feed.dataset.blocks > 1:
        raise cannot("data", f"data in {feed.dataset.blocks} blocks: they hold all of it at once")
    first, last = _ends(model)
    block, state = feed.prepare(feed.dataset.block(0)), session.snapshot().arrays
    rows, per_epoch = feed.dataset.rows(0), feed.iterations_per_epoch
    orders = [feed.iterator.indices(feed.seed, epoch, 0, rows) for epoch in range(-(-KNOWN_ITERATIONS // per_epoch))]
    if block[last.layer.targets].shape[1:] != model.shapes.outputs[last.sources[0]].shape[:-1]:
        raise cannot(last.name, "targets other than one label for each sample, or each entry of a sequence")
    return Workload(
        parts=tuple(part for placed in model.network.layers for part in _parts(model, placed)),
        parameters={address: state[LAYERS + address].copy() for address in model.shapes.parameters},
        rule=_rule(model),
        precision=model.precision,
        key=state["random.key"],
        inputs=block[first.layer.section],
        labels=block[last.layer.targets],
        orders=np.array(orders, np.int64),
        batch_size=feed.batch_size,
        keep_last=feed.keep_last,
    )


def cannot(where: str, what: str) -> SigmaConfigError:
    """Return the error for something that no peer supports."""
    return SigmaConfigError(
        f"peers: {where}: they do not support {what}. They support chains of input, flatten, dropout, dense, "
        "convolutions, max_pool, average_pool, global_average_pool, batch_norm, activation, residual, embedding, "
        "learned_positions, layer_norm, transformer_encoder, simple_rnn, gru, lstm, output and softmax_cross_entropy, "
        "trained by gradient_descent, momentum, adam or adagrad. Leave --peers out."
    )


# -- layers ------------------------------------------------------------------------------------------------------------
def _ends(model: Model) -> tuple[Placed, Placed]:
    """Return input and cost of a chain that ends in class scores."""
    layers = model.network.layers
    chain = [(), *((placed.name,) for placed in layers[:-1])]
    if [tuple(placed.sources) for placed in layers] != chain:
        raise cannot("network", "branches")
    first, last = layers[0], layers[-1]
    if type(last.layer) is not SoftmaxCrossEntropy:
        raise cannot(last.name, f"the cost {type(last.layer).__name__}")
    if last.layer.class_weights is not None or last.layer.weight != 1:
        raise cannot(last.name, "weights of classes or costs")
    if last.layer.label_smoothing or last.layer.ignore_index is not None:
        raise cannot(last.name, "smoothed or ignored labels")
    if first.layer.dtype not in (None, model.precision) and type(layers[1].layer) is not Embedding:
        raise cannot(first.name, f"inputs of {first.layer.dtype}")
    if not model.shapes.parameters:
        raise cannot("network", "networks without parameters")
    return first, last


def _parts(model: Model, placed: Placed, shape: Shape | None = None) -> Iterator[Part]:
    """Yield the parts of a layer, given the shape of its samples if another layer owns it."""
    make = TRANSLATIONS.get(type(placed.layer))
    if make is None:
        raise cannot(placed.name, f"the layer {type(placed.layer).__name__}")
    if placed.layer.share:
        raise cannot(placed.name, "shared parameters")
    if shape is None:
        shape = model.shapes.outputs[placed.sources[0]].shape if placed.sources else ()
    for kind, settings in make(model, placed, shape):
        yield (part := Part(kind, placed.name, shape, settings))
        shape = _output_shape(model, part)


def _output_shape(model: Model, part: Part) -> Shape:
    """Return the shape of a part's output for a sample."""
    how, shape = part.settings, part.shape
    if part.kind == "residual":
        return _output_shape(model, how["body"][-1])
    if part.kind == "recurrence":
        return (*(shape[:1] if how["sequence"] else ()), how["units"])
    if part.kind in ("affine", "convolution"):
        weights = model.shapes.parameters[f"{part.layer}.weights"].shape
        shape = (weights[0], *shape[1:]) if part.kind == "convolution" else (*shape[:-1], weights[1])
    if "window" in how:
        spans = ((n - 1) * d + 1 for n, d in zip(how["window"], how.get("dilation", repeat(1)), strict=False))
        every = zip(shape[1:], spans, how["stride"], how["padding"], strict=True)
        return (shape[0], *((side + sum(pad) - span) // step + 1 for side, span, step, pad in every))
    shorter = {"flatten": (prod(shape),), "global_average_pool": shape[:1]}
    return shorter.get(part.kind, shape)


Made = list[tuple[str, dict[str, Any]]]


def _nothing(model: Model, placed: Placed, shape: Shape) -> Made:
    return []


def _affine(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    return [("affine", {"bias": layer.bias}), *_function(placed.name, layer.activation)] if layer.units else []


def _convolution(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    how = {**layer.window(shape), "groups": layer.filters_and_groups(shape[0])[1], "bias": layer.bias}
    return [("convolution", how), *_function(placed.name, layer.activation)]


def _max_pool(model: Model, placed: Placed, shape: Shape) -> Made:
    how = placed.layer.window(shape)
    if set(how.pop("dilation")) != {1}:
        raise cannot(placed.name, "dilation")
    return [("max_pool", how)]


def _average_pool(model: Model, placed: Placed, shape: Shape) -> Made:
    how = placed.layer.window(shape)
    if (placed.layer.counts((1, *shape), how) != prod(how["window"])).any():
        raise cannot(placed.name, "padding that does not count")
    return [("average_pool", how)]


def _global_average_pool(model: Model, placed: Placed, shape: Shape) -> Made:
    if placed.layer.keepdims:
        raise cannot(placed.name, "sides that are kept")
    return [("global_average_pool", {})]


def _batch_norm(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    if layer.axis not in (1, -len(shape)):
        raise cannot(placed.name, "features along another axis than the first of a sample")
    return [("batch_norm", {name: getattr(layer, name) for name in ("momentum", "epsilon", "affine")})]


def _residual(model: Model, placed: Placed, shape: Shape) -> Made:
    layer, chains = placed.layer, dict[str, tuple[Part, ...]]()
    for name, chain in (("body", layer.chain), ("projection", layer.projection)):
        if chain is not None:
            chains[name] = tuple(_parts_of_owned(model, f"{placed.name}.{name}", chain, shape))
    return [("residual", chains)]


def _parts_of_owned(model: Model, where: str, owned: Any, shape: Shape) -> Iterator[Part]:
    """Yield the parts of a layer or a chain that a layer owns."""
    layers = Network.build(Input(*shape) + owned).layers
    if any(placed.sources != (before.name,) for before, placed in pairwise(layers)):
        raise cannot(where, "branches")
    for i, placed in enumerate(layers[1:]):
        name = f"#-{placed.kind}" if placed.layer.name is None else placed.layer.name
        address = where if isinstance(owned, Layer) else f"{where}.{name.replace('#', str(i))}"
        for part in _parts(model, evolve(placed, name=address), shape):
            yield part
            shape = _output_shape(model, part)


def _activation(model: Model, placed: Placed, shape: Shape) -> Made:
    return _function(placed.name, placed.layer.function)


def _function(where: str, activation: Any) -> Made:
    name = str(activation).rpartition(":")[2]  # a stored configuration names the plugin too
    if name not in ACTIVATIONS:
        raise cannot(where, f"the activation {name!r}")
    return [] if name == "identity" else [("activation", {"name": name})]


def _dropout(model: Model, placed: Placed, shape: Shape) -> Made:
    return [("dropout", {"rate": placed.layer.rate, "stream": model.shapes.streams.numbers[placed.name]})]


def _flatten(model: Model, placed: Placed, shape: Shape) -> Made:
    return [("flatten", {})]


def _embedding(model: Model, placed: Placed, shape: Shape) -> Made:
    if placed.layer.padding is not None:
        raise cannot(placed.name, "an index that is padding")
    return [("embedding", {})]


def _positions(model: Model, placed: Placed, shape: Shape) -> Made:
    return [("positions", {})]


def _layer_norm(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    if layer.axes != 1 or not layer.affine:
        raise cannot(placed.name, "normalisation of several axes, or without scale and shift")
    return [("layer_norm", {"epsilon": layer.epsilon})]


def _encoder(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    if layer.mask is not None or layer.dropout or layer.key_value_heads is not None or layer.rotary is not None:
        raise cannot(placed.name, "masks, dropout, grouped heads and rotary positions")
    how = {name: getattr(layer, name) for name in ("heads", "causal", "norm", "epsilon")}
    activation = _function(placed.name, layer.activation)
    if not activation:
        raise cannot(placed.name, "a hidden layer without an activation")
    return [("encoder", {**how, "activation": activation[0][1]["name"]})]


def _recurrent(model: Model, placed: Placed, shape: Shape) -> Made:
    layer = placed.layer
    if layer.direction != "forward" or layer.carried or layer.lengths is not None:
        raise cannot(placed.name, "directions, lengths and state that is carried")
    functions = [layer.activation, *([] if type(layer) is SimpleRNN else [layer.gate_activation])]
    if list(map(str, functions)) != ["tanh", "sigmoid"][: len(functions)]:
        raise cannot(placed.name, "cells with other activations than tanh and sigmoid")
    if type(layer) is GRU and not layer.reset_after:
        raise cannot(placed.name, "reset_after = false")
    return [("recurrence", {"cell": CELLS[type(layer)], "units": layer.units, "sequence": layer.sequence})]


CELLS: dict[type, str] = {SimpleRNN: "simple_rnn", GRU: "gru", LSTM: "lstm"}
TRANSLATIONS: dict[type, Callable[[Model, Placed, Shape], Made]] = {
    Input: _nothing,
    SoftmaxCrossEntropy: _nothing,
    Dense: _affine,
    Output: _affine,
    **dict.fromkeys((Conv1d, Conv2d, Conv3d, DepthwiseConv1d, DepthwiseConv2d, DepthwiseConv3d), _convolution),
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    GlobalAveragePool: _global_average_pool,
    BatchNorm: _batch_norm,
    Residual: _residual,
    Activation: _activation,
    Dropout: _dropout,
    Flatten: _flatten,
    Embedding: _embedding,
    LearnedPositions: _positions,
    LayerNorm: _layer_norm,
    TransformerEncoder: _encoder,
    **dict.fromkeys(CELLS, _recurrent),
}


# -- optimisers --------------------------------------------------------------------------------------------------------
def _rule(model: Model) -> UpdateRule:
    if len(model.optimisers) != 1:
        raise cannot("optimisers", "several optimisers")
    ((_, optimisation),) = model.optimisers.items()
    optimiser: Any = optimisation.type
    if type(optimiser) not in RULES:
        raise cannot("optimiser", type(optimiser).__name__)
    for name in ("settings", "schedules", "modifiers", "transforms"):
        if getattr(optimiser, name):
            raise cannot("optimiser", name)
    names = [*live_settings(optimiser), *(["initial_accumulator"] if type(optimiser) is Adagrad else [])]
    return UpdateRule(RULES[type(optimiser)], {name: float(getattr(optimiser, name)) for name in names})
