"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

INITIALISERS = {
    "constant": ("Constant", "A constant value."),
    "gaussian": ("Gaussian", "Normal distribution of a given mean and standard deviation."),
    "truncated_normal": ("TruncatedNormal", "Normal distribution truncated at two standard deviations."),
    "uniform": ("Uniform", "Uniform distribution over an interval."),
    "glorot_uniform": ("GlorotUniform", "Glorot (Xavier) uniform: variance 2 / (fan_in + fan_out)."),
    "glorot_normal": ("GlorotNormal", "Glorot (Xavier) normal: variance 2 / (fan_in + fan_out)."),
    "he_uniform": ("HeUniform", "He (Kaiming) uniform: variance 2 / fan_in, for ReLU."),
    "he_normal": ("HeNormal", "He (Kaiming) normal: variance 2 / fan_in, for ReLU."),
    "lecun_uniform": ("LecunUniform", "LeCun uniform: variance 1 / fan_in, for SELU."),
    "lecun_normal": ("LecunNormal", "LeCun normal: variance 1 / fan_in, for SELU."),
    "sparse": ("Sparse", "Normal distribution, with a share of the weights to each output 0."),
    "identity": ("Identity", "The identity, for matrices and kernels of convolutions."),
    "delta_orthogonal": ("DeltaOrthogonal", "Kernels that are orthogonal in the middle and 0 elsewhere."),
    "orthogonal": ("Orthogonal", "A random orthogonal matrix."),
    "lsuv": ("LSUV", "Orthogonal, scaled until the layer's outputs have unit variance on data."),
    "from_file": ("FromFile", "Values from a file of arrays by address: NPZ, safetensors, or ONNX."),
    "warm_start": ("WarmStart", "Parameters loaded from the checkpoint of an earlier run."),
}

ALSO_KNOWN_AS = {  # in Keras and PyTorch
    "constant": "zeros ones",
    "gaussian": "normal random_normal std=deviation stddev=deviation",
    "truncated_normal": "trunc_normal",
    "uniform": "random_uniform minval=low maxval=high",
    "glorot_uniform": "glorot xavier xavier_uniform",
    "glorot_normal": "xavier_normal",
    "he_uniform": "kaiming_uniform",
    "lecun_normal": "lecun variance_scaling",
    "sparse": "std=deviation",
    "identity": "eye dirac",
    "from_file": "load pretrained",
    "he_normal": "he kaiming kaiming_normal",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all initialisers."""
    return [
        Component(
            "initialiser",
            name,
            f"sigma_initialisers.{name}:{target}",
            summary,
            also_known_as=ALSO_KNOWN_AS.get(name, ""),
        )
        for name, (target, summary) in INITIALISERS.items()
    ]
