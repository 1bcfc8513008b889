"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

INITIALISERS = {
    "constant": ("Constant", "One number everywhere."),
    "gaussian": ("Gaussian", "Normal numbers of a given deviation."),
    "truncated_normal": ("TruncatedNormal", "Normal numbers, none further out than two deviations."),
    "uniform": ("Uniform", "Uniform numbers of an interval."),
    "glorot_uniform": ("GlorotUniform", "Uniform numbers that keep the variance of signals and gradients."),
    "glorot_normal": ("GlorotNormal", "Normal numbers that keep the variance of signals and gradients."),
    "he_uniform": ("HeUniform", "Uniform numbers that keep the variance behind rectifiers."),
    "he_normal": ("HeNormal", "Normal numbers that keep the variance behind rectifiers."),
    "orthogonal": ("Orthogonal", "A random rotation: no direction grows or shrinks."),
    "warm_start": ("WarmStart", "The values that an earlier run ended with."),
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all initialisers."""
    return [
        Component("initialiser", name, f"sigma_initialisers.{name}:{target}", summary)
        for name, (target, summary) in INITIALISERS.items()
    ]
