"""The graphs of the steps of a model.

One iteration is one graph: forward, backward, update, records.  With shards it is two: a *gradient* step for each
shard, and an *update* step on the merged gradients.  There is also an *evaluation* step, and an *observing* step, which
computes gradients, updates and activations for hooks without changing the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric, Step
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.node import Spec
from sigma_kernel.graph.rewriting import replace_nodes
from sigma_step.drafts import Merged, Traced, add_prefix
from sigma_step.model import (
    ACTIVATIONS,
    BATCH,
    DIRECTIONS,
    GRADIENTS,
    JUDGED,
    LAYERS,
    UNCUT,
    UPDATES,
    VECTORS,
    WANTED,
    WEIGHTS,
    Model,
)


def training_step(model: Model, batch: int, recomputes: bool = True) -> Step:
    """Return the step of a whole iteration on a batch of this size; unless it ``recomputes``, it keeps all values."""
    whole = Traced(model, batch, recomputes=recomputes)
    new = {**whole.new_state(), **whole.layer_state()}
    return whole.step_to(new, {**whole.measurements(model.metrics), **whole.skip_flags()})


def recomputed_layers(model: Model, batch: int) -> list[str]:
    """Return the addresses of the layers that a training step computes again in the backward pass."""
    return list(dict.fromkeys(region.origin for region in Traced(model, batch).regions))


def gradient_step(model: Model, batch: int) -> Step:
    """Return the step of one shard: loss, totals, layer state, and vectors of gradients, all recorded.

    Gradients are those of the loss times a live value: the part of the batch's rows that the shard has.

    A cost with unequal row weights is divided by a live value: the weight of the whole batch (see :func:`weight_step`)
    times the shard's share of the rows, so that its means over shards are weighted like all others.
    Raises SigmaStateError if the optimisers are ordered.
    """
    if model.ordered:
        raise SigmaStateError(f"trainer.order: {UNCUT}")
    shard = Traced(model, batch, cut=True)
    vectors = add_prefix(VECTORS, model.vectors.join(shard.gradients()))
    outputs = {**shard.measurements(model.metrics), **shard.layer_state(), **vectors}
    return shard.step_to({}, {**outputs, **shard.skip_flags()})


def weight_step(model: Model, batch: int) -> Step:
    """Return the step of a whole batch's weight: by cost with unequal row weights, and by optimiser that reads it.

    Shards divide by the first, and their update reads the second.
    """
    whole, read = Traced(model, batch), update_step(model).state
    costs = {WEIGHTS + name: cost.weight for name, cost in whole.forward.totals.items()}
    parts = {BATCH + aim.head: aim.parts() for aim in whole.aims() if BATCH + aim.head in read}
    if any(len(own) > 1 for own in parts.values()):
        raise SigmaStateError("optimiser: shards add up gradients of costs with different weights. Use shards = 1.")
    return whole.step_to({}, {**costs, **{name: own[0][0] for name, own in parts.items()}})


def update_step(model: Model) -> Step:
    """Return the update step, after gradients were merged; their vectors are state entries here."""
    merged = Merged(model)
    return merged.step_to(merged.new_state(), {})


def evaluation_step(model: Model, batch: int, metrics: Iterable[tuple[str, Metric]] = ()) -> Step:
    """Return the evaluation step of a batch: what each row adds to costs, to their weights and to metrics."""
    traced = Traced(model, batch, training=False)
    return traced.step_to({}, {**traced.rows(), **traced.totals(dict(metrics))})


def prediction_step(model: Model, batch: int) -> Step:
    """Return the step that predicts a batch, by output."""
    traced = Traced(model, batch, training=False, given=model.network.samples)
    return traced.step_to({}, traced.predictions())


def activity_step(model: Model, batch: int) -> Step:
    """Return the step of what each layer before the costs makes of a batch, by its name."""
    forward = (traced := Traced(model, batch, training=False, given=model.network.samples)).forward
    return traced.step_to({}, {name: x for name, x in forward.values.items() if name not in forward.costs})


def outcome_step(model: Model, batch: int) -> Step:
    """Return the step of what costs judge in a batch, by layer, and of the predictions.

    If those of the first output are in units of the data, its targets are ``WANTED``, in the same units.
    """
    traced = Traced(model, batch, training=False, given=model.network.sections(costs=False))
    values = {name: traced.forward.values[name] for name in model.judged_layers}
    section = model.network.estimated_section()
    wanted = {WANTED: traced.comparison("", section)[1]} if section else {}
    return traced.step_to({}, {**add_prefix(JUDGED, values), **traced.predictions(), **wanted})


def judgement_step(model: Model, batch: int) -> Step:
    """Return the step of the loss of a batch, given what its costs judge: of one row, the row's own loss."""
    traced = Traced(model, batch, training=False)
    values = {name: traced.forward.values[name] for name in model.judged_layers}
    given = {x: traced.section(JUDGED + name, Spec(x.shape[1:], x.dtype)) for name, x in values.items()}
    (loss,) = replace_nodes([traced.forward.loss_or_fail()], given)
    return traced.step_to({}, {"row": loss})


def excitation_step(model: Model, batch: int, layer: str, section: str) -> Step:
    """Return the step of a layer's output, and the gradient of its sum along directions in an input section."""
    traced = Traced(model, batch, training=False, given=model.network.sections(costs=False))
    output = traced.forward.values[layer or model.network.outputs[0].name]
    along = traced.section(DIRECTIONS, Spec(output.shape[1:], output.dtype))
    inputs = traced.data[section or model.network.sections(costs=False)[0]]
    return traced.step_to({}, {"output": output, "slopes": gradient(f.sum(output * along), [inputs])[0]})


def observation_step(model: Model, batch: int, wanted: Sequence[str], cut: bool = False) -> Step:
    """Return the step that computes gradients, updates and activations of an iteration, by address.

    Those of a shard, ``cut`` from a batch, are weighted as in :func:`gradient_step`.
    """
    traced = Traced(model, batch, cut=cut)
    ring = add_prefix(ACTIVATIONS, traced.forward.values)
    if any(name.startswith(GRADIENTS) for name in wanted):
        ring |= add_prefix(GRADIENTS, traced.gradients())
    if any(name.startswith(UPDATES) for name in wanted):
        new = traced.new_state()
        parameters = {a: traced.entry(LAYERS + a, spec) for a, spec in model.trainable().items()}
        ring |= {UPDATES + a: new[LAYERS + a] - node for a, node in parameters.items()}
    return traced.step_to({}, {name: ring[name] for name in wanted})
