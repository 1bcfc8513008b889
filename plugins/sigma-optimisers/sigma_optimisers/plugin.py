"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

OPTIMISERS = {
    "gradient_descent": ("GradientDescent", "Stochastic gradient descent."),
    "momentum": ("Momentum", "Gradient descent with momentum."),
    "nesterov": ("Nesterov", "Nesterov's accelerated gradient descent."),
    "adagrad": ("Adagrad", "Adagrad: divide by the root of the sum of squared gradients."),
    "adadelta": ("Adadelta", "Adadelta: adaptive steps without a learning rate to tune."),
    "rmsprop": ("RMSprop", "RMSprop: divide by a running root mean square of the gradients."),
    "adam": ("Adam", "Adam: adaptive moment estimation."),
    "adamw": ("AdamW", "Adam with decoupled weight decay."),
    "adamax": ("Adamax", "Adamax: Adam with the infinity norm."),
    "nadam": ("NAdam", "NAdam: Adam with Nesterov momentum."),
    "radam": ("RAdam", "RAdam: Adam with a rectified adaptive rate."),
    "lamb": ("Lamb", "LAMB: Adam with a step size per layer, for large batches."),
    "lion": ("Lion", "Lion: the sign of an interpolated momentum."),
    "adafactor": ("Adafactor", "Adafactor: adaptive steps with sublinear memory."),
    "muon": ("Muon", "Muon: orthogonalised momentum for matrices, AdamW for other parameters."),
    "l_bfgs": ("LBFGS", "L-BFGS: a quasi-Newton method with a line search, for full batches."),
    "cma_es": ("CMAES", "CMA-ES: a gradient-free evolution strategy that adapts its covariance."),
    "random_search": ("RandomSearch", "Random search: move to the best of some points nearby."),
}
TRANSFORMS = {
    "clip_value": ("ClipValue", "Gradient transform: clip each element to a range."),
    "clip_norm": ("ClipNorm", "Gradient transform: clip each gradient's norm."),
    "clip_global_norm": ("ClipGlobalNorm", "Gradient transform: clip the global norm of all gradients."),
    "accumulate": (
        "AccumulateGradients",
        "Gradient transform: accumulate gradients of several batches for an update.",
    ),
    "l1": ("L1", "Gradient transform: L1 regularisation."),
    "l2": ("L2", "Gradient transform: L2 regularisation."),
}
MODIFIERS = {
    "clip": ("Clip", "Parameter modifier: clip each element to a range."),
    "max_norm": ("MaxNorm", "Parameter modifier: max-norm constraint on the weights of each unit."),
    "unit_norm": ("UnitNorm", "Parameter modifier: unit norm of the weights of each unit."),
    "spectral_norm": ("SpectralNorm", "Parameter modifier: a fixed spectral norm."),
    "non_negative": ("NonNegative", "Parameter modifier: no negative weights."),
    "decoupled_decay": ("DecoupledDecay", "Parameter modifier: decoupled weight decay, for any optimiser."),
    "average": ("Average", "Parameter modifier: an exponential moving average of the weights, to evaluate with."),
    "scale": ("ScaleParameter", "Parameter modifier: multiply by a factor after each update."),
}
SCHEDULES = {
    "constant": ("ConstantFactor", "Constant factor."),
    "step": ("StepDecay", "Step decay: multiply by a factor at regular intervals."),
    "exponential": ("Exponential", "Exponential decay: multiply by a factor over each interval."),
    "cosine": ("Cosine", "Cosine annealing to a floor."),
    "warm_up": ("WarmUp", "Linear warm-up, then another schedule."),
    "product": ("Product", "Product of several schedules."),
    "one_cycle": ("OneCycle", "One-cycle policy: rise to the peak once, then anneal far below the start."),
    "cyclic": ("Cyclic", "Cyclic schedule: triangular waves between a low and the peak."),
}
COMMANDS = {
    "freeze": ("Freeze", "Freeze parameters: they are not updated."),
    "release": ("Release", "Train frozen parameters again."),
}
KINDS = {"optimiser": OPTIMISERS, "modifier": TRANSFORMS | MODIFIERS, "schedule": SCHEDULES, "command": COMMANDS}

ALSO_KNOWN_AS = {  # in Keras and PyTorch
    "gradient_descent": "sgd gd",
    "adam": "amsgrad beta_1=beta1 beta_2=beta2 eps=epsilon",
    "adamw": "beta_1=beta1 beta_2=beta2 eps=epsilon",
    "adamax": "beta_1=beta1 beta_2=beta2 eps=epsilon",
    "nadam": "beta_1=beta1 beta_2=beta2 eps=epsilon",
    "radam": "rectified_adam beta_1=beta1 beta_2=beta2 eps=epsilon",
    "lamb": "beta_1=beta1 beta_2=beta2 eps=epsilon",
    "lion": "beta_1=beta1 beta_2=beta2",
    "adafactor": "beta2_decay=power d=clip clip_threshold=clip",
    "l_bfgs": "lbfgs l_bfgs_b history_size=history max_ls=evaluations",
    "cma_es": "cma cmaes evolution_strategy sigma0=deviation popsize=population",
    "muon": "ns_steps=steps adjust_lr_fn=scale",
    "rmsprop": "rho=decay alpha=decay",
    "clip_norm": "max_norm=limit",
    "clip_global_norm": "clip_grad_norm global_clipnorm",
    "clip_value": "clip_grad_value",
    "accumulate": "gradient_accumulation gradient_accumulation_steps=batches accumulate_grad_batches=batches",
    "average": "ema averaged_model ema_momentum=decay",
    "non_negative": "non_neg",
    "decoupled_decay": "weight_decay=factor",
    "spectral_norm": "n_power_iterations=iterations",
    "cosine": "cosine_annealing cosine_annealing_lr cosine_decay t_max=total eta_min=floor",
    "step": "step_lr piecewise_constant gamma=factor",
    "exponential": "exponential_lr exponential_decay decay_rate=factor",
    "one_cycle": "one_cycle_lr",
    "cyclic": "cyclic_lr",
    "warm_up": "linear_lr linear_warmup",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all optimisers, schedules, gradient transforms, parameter modifiers and commands."""
    return [
        Component(kind, name, f"sigma_optimisers.{name}:{target}", summary, also_known_as=ALSO_KNOWN_AS.get(name, ""))
        for kind, table in KINDS.items()
        for name, (target, summary) in table.items()
    ]
