"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

OPTIMISERS = {
    "gradient_descent": ("GradientDescent", "Step against the gradient."),
    "momentum": ("Momentum", "Follow a velocity that gathers the gradients."),
    "nesterov": ("Nesterov", "Follow the velocity one step ahead."),
    "adagrad": ("Adagrad", "Shorter steps where the gradients have been large."),
    "adadelta": ("Adadelta", "Steps in the units of the parameter, without a rate to choose."),
    "rmsprop": ("RMSprop", "Divide by a running root mean square of the gradients."),
    "adam": ("Adam", "Step along the ratio of the gradient's first two moments."),
    "adamw": ("AdamW", "Adam, with weights that decay beside the gradient."),
}
TRANSFORMS = {
    "clip_value": ("ClipValue", "Acts on gradients: clip every element."),
    "clip_norm": ("ClipNorm", "Acts on gradients: shorten each one that is too long."),
    "clip_global_norm": ("ClipGlobalNorm", "Acts on gradients: shorten all together by their common norm."),
    "l1": ("L1", "Acts on gradients: penalise absolute values of parameters."),
    "l2": ("L2", "Acts on gradients: penalise squares of parameters."),
}
MODIFIERS = {
    "clip": ("Clip", "Acts on parameters: keep every element within a range."),
    "max_norm": ("MaxNorm", "Acts on parameters: shorten the weights of each unit that are too long."),
    "scale": ("Scale", "Acts on parameters: multiply after every update."),
}
SCHEDULES = {
    "constant": ("Constant", "The same factor at all times."),
    "step": ("Step", "Multiply by a factor at regular intervals."),
    "exponential": ("Exponential", "Multiply by a factor steadily over each interval."),
    "cosine": ("Cosine", "Fall to a floor along half a cosine."),
    "warm_up": ("WarmUp", "Rise linearly, then follow another schedule."),
    "product": ("Product", "Several schedules, multiplied."),
    "one_cycle": ("OneCycle", "Rise to the whole setting once, then fall far below the start."),
    "cyclic": ("Cyclic", "Rise and fall again and again, in triangles."),
}
KINDS = {"optimiser": OPTIMISERS, "modifier": TRANSFORMS | MODIFIERS, "schedule": SCHEDULES}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all optimisers, schedules, and changes of gradients and parameters (kind ``modifier``)."""
    return [
        Component(kind, name, f"sigma_optimisers.{name}:{target}", summary)
        for kind, table in KINDS.items()
        for name, (target, summary) in table.items()
    ]
