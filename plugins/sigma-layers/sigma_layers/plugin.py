"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

LAYERS = {
    "input": ("Input", "Begin a network with a section of the data."),
    "output": ("Output", "Mark what the network predicts, after as many weighted sums as wanted."),
    "dense": ("Dense", "Weighted sums of all features, and an activation."),
    "conv2d": ("Conv2d", "Weighted sums of what a window covers, as it slides over an image."),
    "max_pool": ("MaxPool", "The largest number of each window."),
    "average_pool": ("AveragePool", "The mean of each window."),
    "activation": ("Activation", "A function of each number, such as relu."),
    "dropout": ("Dropout", "Set some numbers to 0 while training, at random."),
    "flatten": ("Flatten", "Make each sample one row of numbers."),
    "reshape": ("Reshape", "Give each sample another shape."),
    "add": ("Add", "Merge branches by adding them up."),
    "concat": ("Concat", "Merge branches by putting them side by side."),
    "function": ("Function", "A layer made of a graph function of your own (in Python)."),
    "function_cost": ("FunctionCost", "A cost made of a graph function of your own (in Python)."),
    "softmax_cross_entropy": ("SoftmaxCrossEntropy", "The cost of choosing one class among several."),
    "binary_cross_entropy": ("BinaryCrossEntropy", "The cost of answering yes or no."),
    "squared_difference": ("SquaredDifference", "The cost of predicting numbers: the mean of squared errors."),
}
ACTIVATIONS = {
    "relu": "Cut off what is negative.",
    "leaky_relu": "Shrink what is negative to a hundredth.",
    "sigmoid": "Squash into (0, 1).",
    "tanh": "Squash into (-1, 1).",
    "softplus": "A smooth relu: log(1 + exp(x)).",
    "elu": "As relu, but negative numbers approach -1.",
    "gelu": "Each number times its normal probability.",
    "silu": "Each number times its sigmoid.",
    "softmax": "Turn scores into probabilities along the last axis.",
    "identity": "Leave everything as it is.",
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
