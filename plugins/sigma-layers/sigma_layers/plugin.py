"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

LAYERS = {
    "input": ("Input", "Input layer: a section of the data, with its shape."),
    "output": ("Output", "Output layer, optionally fully connected."),
    "dense": ("Dense", "Fully connected layer, with an activation."),
    "conv2d": ("Conv2d", "2-D convolution over images, channels first."),
    "max_pool": ("MaxPool", "Max pooling over windows, channels first."),
    "average_pool": ("AveragePool", "Average pooling over windows, channels first."),
    "activation": ("Activation", "Activation function, such as relu."),
    "dropout": ("Dropout", "Dropout: zero elements at random during training."),
    "flatten": ("Flatten", "Flatten each sample to a vector."),
    "reshape": ("Reshape", "Reshape each sample."),
    "add": ("Add", "Elementwise sum of branches, as in residual connections."),
    "concat": ("Concat", "Concatenate branches along an axis."),
    "function": ("Function", "Layer from your own graph function (Python only)."),
    "function_cost": ("FunctionCost", "Cost from your own graph function (Python only)."),
    "softmax_cross_entropy": ("SoftmaxCrossEntropy", "Softmax cross-entropy for classification, with class weights."),
    "binary_cross_entropy": ("BinaryCrossEntropy", "Binary cross-entropy with logits."),
    "squared_difference": ("SquaredDifference", "Mean squared error, for regression."),
}
ACTIVATIONS = {
    "relu": "Rectified linear unit: max(x, 0).",
    "leaky_relu": "Leaky rectified linear unit: max(x, x / 100).",
    "sigmoid": "Logistic sigmoid, into (0, 1).",
    "tanh": "Hyperbolic tangent, into (-1, 1).",
    "softplus": "Smooth rectified linear unit: log(1 + exp(x)).",
    "elu": "Exponential linear unit: x above 0, else exp(x) - 1.",
    "gelu": "Gaussian error linear unit: x times the normal distribution function of x.",
    "silu": "Sigmoid linear unit (swish): x * sigmoid(x).",
    "softmax": "Softmax along the last axis.",
    "identity": "The identity, for no activation.",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all layers and activations."""
    layers = [
        Component("layer", name, f"sigma_layers.{name}:{target}", text) for name, (target, text) in LAYERS.items()
    ]
    functions = [
        Component("activation", name, f"sigma_layers.activations:{name}", text) for name, text in ACTIVATIONS.items()
    ]
    return layers + functions
