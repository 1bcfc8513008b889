"""JAX training loop: a jitted pure step, called per iteration or scanned over an epoch.

Data is resident, parameters are donated, and images are channels last, as XLA prefers on CPUs.  Dropout draws JAX's own
random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sigma_bench.contest import CHECKED, Contestant
from sigma_bench.contestants import jax_transformer as transformer
from sigma_bench.work import Part, UpdateRule, Workload, walk_parts

Arrays = dict[str, Any]
Carry = tuple[Arrays, Mapping[str, Any], Any, Any]  # parameters, slots, number of the step, key


class Jax(Contestant):
    """The jitted step; one call per iteration."""

    name = "jax"

    def __init__(self, work: Workload) -> None:
        jax.config.update("jax_enable_x64", work.precision == "float64")
        self.work = work
        self.inputs, self.labels = jnp.asarray(work.inputs), jnp.asarray(work.labels)
        self.carry = initial_carry(work)
        self.step = step(work)
        self.done, self.first = 0, list[Any]()
        self.prepare()

    def prepare(self) -> None:
        """Compile, and load parameters and data."""
        self.one = jax.jit(self.step, donate_argnums=0)
        self.calls = [jnp.asarray(rows) for epoch in self.work.epochs() for rows in epoch]

    def run(self, iterations: int) -> None:
        """Train for this many more iterations."""
        loss = None
        for i in range(self.done, self.done + iterations):
            self.carry, loss = self.one(self.carry, self.calls[i % len(self.calls)], self.inputs, self.labels)
            if i < CHECKED:
                self.first.append(loss)
        self.done += iterations
        jax.block_until_ready((self.carry, loss))

    @property
    def losses(self) -> np.ndarray:
        """Return the losses of the first iterations."""
        return np.concatenate([np.atleast_1d(np.asarray(loss)) for loss in self.first])


class JaxScan(Jax):
    """The step, scanned over all minibatches of one size in an epoch: one or two calls per epoch."""

    name = "jax-scan"

    def prepare(self) -> None:
        """Compile, and load parameters and data."""
        self.unit = self.work.per_epoch

        def run_epoch(carry: Carry, batches: Any, inputs: Any, labels: Any) -> Any:
            return lax.scan(lambda c, rows: self.step(c, rows, inputs, labels), carry, batches)

        self.one = jax.jit(run_epoch, donate_argnums=0)
        sized = [[list(same) for _, same in groupby(epoch, len)] for epoch in self.work.epochs()]
        self.calls = [[jnp.asarray(np.stack(same)) for same in epoch] for epoch in sized]

    def run(self, iterations: int) -> None:
        """Train for this many more iterations, a multiple of an epoch's."""
        losses = None
        for epoch in range(self.done, self.done + iterations // self.unit):
            for batches in self.calls[epoch % len(self.calls)]:
                self.carry, losses = self.one(self.carry, batches, self.inputs, self.labels)
                if epoch < CHECKED:
                    self.first.append(losses)
        self.done += iterations // self.unit
        jax.block_until_ready((self.carry, losses))


# -- the step ----------------------------------------------------------------------------------------------------------
def initial_carry(work: Workload) -> Carry:
    """Return the initial state of training; filters become ``(*window, channels, filters)``."""
    filters = {f"{part.layer}.weights" for part in walk_parts(work.parts) if part.kind == "convolution"}
    parameters = {
        name: jnp.array(np.moveaxis(x, (0, 1), (-1, -2)) if name in filters else x)
        for name, x in work.parameters.items()
    }
    slots = {name: FIRST[work.rule.name](x, work.rule.settings) for name, x in parameters.items()}
    return parameters, slots, jnp.zeros((), work.precision), jax.random.PRNGKey(0)


def step(work: Workload) -> Callable[..., tuple[Carry, Any]]:
    """Return the whole iteration as a pure function."""
    update, rule = UPDATES[work.rule.name], work.rule

    def iteration(carry: Carry, rows: Any, inputs: Any, labels: Any) -> tuple[Carry, Any]:
        parameters, slots, count, key = carry
        key, own = jax.random.split(key) if work.drops else (key, key)
        wanted = jax.value_and_grad(lambda p: cost(forward(work, p, inputs[rows], own), labels[rows]))
        loss, slopes = wanted(parameters)
        count = count + 1
        both = {name: update(slopes[name], x, slots[name], count, rule) for name, x in parameters.items()}
        return ({n: x for n, (x, _) in both.items()}, {n: s for n, (_, s) in both.items()}, count, key), loss

    return iteration


def cost(scores: Any, labels: Any) -> Any:
    """Return the mean of ``-log softmax(scores)[label]``."""
    chosen = jnp.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(scores, axis=-1) - chosen).mean()


def forward(work: Workload, parameters: Arrays, x: Any, key: Any) -> Any:
    """Return the scores; channels are moved last for windows, and first again for the layers that follow."""
    return apply_parts(work.parts, parameters, x, key, False)[0]


def apply_parts(parts: Sequence[Part], parameters: Arrays, x: Any, key: Any, last: bool) -> tuple[Any, bool]:
    """Return the output of a chain of parts for a value, and whether channels are last."""
    for number, part in enumerate(parts):
        own = jax.random.fold_in(key, number) if part.kind in ("dropout", "residual") else key
        anywhere = part.kind == "dropout" or (part.kind == "activation" and part.settings["name"] != "softmax")
        if part.kind == "residual":
            x, last = _residual(part, parameters, x, own, last)
            continue
        if not anywhere:
            x, last = laid(x, last, part.kind in CHANNELS_LAST)
        x = PARTS[part.kind](part, parameters, x, own)
    return x, last


def laid(x: Any, last: bool, wanted: bool) -> tuple[Any, bool]:
    """Return a value with channels last, or first, and whether they are; one without sides has no order."""
    if last == wanted or x.ndim < 3:
        return x, last
    return (jnp.moveaxis(x, 1, -1) if wanted else jnp.moveaxis(x, -1, 1)), wanted


def _residual(part: Part, parameters: Arrays, x: Any, key: Any, last: bool) -> tuple[Any, bool]:
    value, order = apply_parts(part.settings["body"], parameters, x, key, last)
    way, other = apply_parts(part.inner.get("projection", ()), parameters, x, key, last)
    return value + laid(way, other, order)[0], order


# -- parts -------------------------------------------------------------------------------------------------------------
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "softmax": jax.nn.softmax,
}


def _add_biases(part: Part, parameters: Arrays, sums: Any) -> Any:
    return sums + parameters[f"{part.layer}.biases"] if part.settings["bias"] else sums


def _affine(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return _add_biases(part, parameters, x @ parameters[f"{part.layer}.weights"])


def _convolution(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    s, sides = part.settings, "DHW"[5 - x.ndim :]
    how = {"window_strides": s["stride"], "padding": s["padding"], "rhs_dilation": s["dilation"]}
    names = (f"N{sides}C", f"{sides}IO", f"N{sides}C")
    weights = parameters[f"{part.layer}.weights"]
    sums = lax.conv_general_dilated(x, weights, **how, dimension_numbers=names, feature_group_count=s["groups"])
    return _add_biases(part, parameters, sums)


def _batch_norm(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    axes = tuple(range(x.ndim - 1))
    centred = x - x.mean(axes)
    values = centred / jnp.sqrt((centred**2).mean(axes) + part.settings["epsilon"])
    if part.settings["affine"]:
        values = values * parameters[f"{part.layer}.scale"] + parameters[f"{part.layer}.shift"]
    return values


def _global_average_pool(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return x.mean(tuple(range(1, x.ndim - 1)))


def _pool(part: Part, x: Any, start: float, reduce: Any) -> Any:
    window, stride = ((1, *part.settings[name], 1) for name in ("window", "stride"))
    return lax.reduce_window(x, start, reduce, window, stride, ((0, 0), *part.settings["padding"], (0, 0)))


def _max_pool(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return _pool(part, x, -jnp.inf, lax.max)


def _average_pool(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return _pool(part, x, 0.0, lax.add) / float(np.prod(part.settings["window"]))


def _activation(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return ACTIVATIONS[part.settings["name"]](x)


def _dropout(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    kept = 1 - part.settings["rate"]
    return jnp.where(jax.random.bernoulli(key, kept, x.shape), x / kept, 0)


def _flatten(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    return x.reshape(len(x), -1)


def _simple_rnn(p: Arrays, now: Any, carry: Any) -> Any:
    return (jnp.tanh(now + carry[0] @ p["recurrent"]),)


def _gru(p: Arrays, now: Any, carry: Any) -> Any:
    (h,) = carry
    (r, z, n), (hr, hz, hn) = jnp.split(now, 3, -1), jnp.split(h @ p["recurrent"], 3, -1)
    r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
    n = jnp.tanh(n + r * (hn + p["recurrent_biases"]))
    return ((1 - z) * n + z * h,)


def _lstm(p: Arrays, now: Any, carry: Any) -> Any:
    h, c = carry
    i, forget, g, o = jnp.split(now + h @ p["recurrent"], 4, -1)
    c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


CELLS = {"simple_rnn": _simple_rnn, "gru": _gru, "lstm": _lstm}


def _recurrence(part: Part, parameters: Arrays, x: Any, key: Any) -> Any:
    """Scan over time; the products of the inputs of all steps are computed at once, before."""
    head, cell = f"{part.layer}.", CELLS[part.settings["cell"]]
    own = {name.removeprefix(head): value for name, value in parameters.items() if name.startswith(head)}
    sums = jnp.swapaxes(x, 0, 1) @ own["weights"] + own["biases"]
    start = jnp.zeros((len(x), part.settings["units"]), x.dtype)

    def step(carry: Any, now: Any) -> Any:
        after = cell(own, now, carry)
        return after, after[0]

    last, outputs = lax.scan(step, (start,) * (2 if cell is _lstm else 1), sums)
    return jnp.swapaxes(outputs, 0, 1) if part.settings["sequence"] else last[0]


CHANNELS_LAST = frozenset({"convolution", "max_pool", "average_pool", "global_average_pool", "batch_norm"})
PARTS = {
    "affine": _affine,
    "convolution": _convolution,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
    "batch_norm": _batch_norm,
    "activation": _activation,
    "dropout": _dropout,
    "flatten": _flatten,
    "embedding": transformer.embedding,
    "positions": transformer.positions,
    "layer_norm": transformer.normalise,
    "encoder": transformer.encoder(ACTIVATIONS),
    "recurrence": _recurrence,
}


# -- optimisers --------------------------------------------------------------------------------------------------------
def _descent(slope: Any, x: Any, slots: Any, count: Any, rule: UpdateRule) -> Any:
    return x - rule.settings["learning_rate"] * slope, slots


def _momentum(slope: Any, x: Any, velocity: Any, count: Any, rule: UpdateRule) -> Any:
    velocity = rule.settings["momentum"] * velocity + slope
    return x - rule.settings["learning_rate"] * velocity, velocity


def _adam(slope: Any, x: Any, slots: Any, count: Any, rule: UpdateRule) -> Any:
    s, (first, second) = rule.settings, slots
    first = s["beta1"] * first + (1 - s["beta1"]) * slope
    second = s["beta2"] * second + (1 - s["beta2"]) * slope**2
    scale = s["learning_rate"] / (1 - s["beta1"] ** count)
    return x - scale * first / (jnp.sqrt(second / (1 - s["beta2"] ** count)) + s["epsilon"]), (first, second)


def _adagrad(slope: Any, x: Any, total: Any, count: Any, rule: UpdateRule) -> Any:
    total = total + slope**2
    return x - rule.settings["learning_rate"] * slope / (jnp.sqrt(total) + rule.settings["epsilon"]), total


UPDATES: dict[str, Callable[..., Any]] = {
    "gradient_descent": _descent,
    "momentum": _momentum,
    "adam": _adam,
    "adagrad": _adagrad,
}
FIRST: dict[str, Callable[[Any, Mapping[str, float]], Any]] = {
    "gradient_descent": lambda x, settings: (),
    "momentum": lambda x, settings: jnp.zeros_like(x),
    "adam": lambda x, settings: (jnp.zeros_like(x), jnp.zeros_like(x)),
    "adagrad": lambda x, settings: jnp.full_like(x, settings["initial_accumulator"]),
}
