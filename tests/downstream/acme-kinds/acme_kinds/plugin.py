"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component("verb", "hail", "acme_kinds.hail_command:hail", "Say hello."),
        Component("criterion", "in_range", "acme_kinds.in_range:InRange", "Whether a value lies within two limits."),
        Component("dataset", "halves", "acme_kinds.halves:Halves", "Points in two dimensions, above and below a line."),
        Component("exporter", "lines", "acme_kinds.lines:Lines", "Parameters as text, one line each."),
        Component("hook", "count_lows", "acme_kinds.count_lows:CountLows", "Count how often the loss was lower than ever before."),
        Component("initialiser", "filled", "acme_kinds.filled:Filled", "Fill with one value."),
        Component("layer", "stretch", "acme_kinds.stretch:Stretch", "Multiply each feature by a trained number."),
        Component("metric", "mean_deviation", "acme_kinds.mean_deviation:MeanDeviation", "Mean absolute deviation from the targets."),
        Component("op", "squash", "acme_kinds.squash_op:squash", "Softsign, x / (1 + |x|), element by element."),
        Component("optimiser", "sign_steps", "acme_kinds.sign_steps:SignSteps", "Step against the sign of the gradient."),
        Component("recipe", "short_xor", "acme_kinds.short_xor_recipe:short_xor", "Learn exclusive or in a second."),
        Component("schedule", "fading", "acme_kinds.fading:Fading", "Divide a setting by 1 plus the number of epochs."),
    ]
