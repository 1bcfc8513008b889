"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

RECIPES = {
    "autoencoder": "Compress digits to 8 numbers and back, without labels.",
    "bench-cnn": "Benchmark of convolutions: 32 filters, pool, 64 filters, pool, 128-10.",
    "bench-deep": "Benchmark of many small layers: 20 dense layers, 64 wide.",
    "bench-iris": "Benchmark of the smallest steps: 4-12-3 in batches of 10.",
    "bench-lstm": "Benchmark of recurrence: an LSTM of 128 on sequences of 100 steps.",
    "bench-mlp-large": "Benchmark of large matrix products: 784-1024-1024-10.",
    "bench-mlp-small": "Benchmark of one hidden layer: 784-128-10.",
    "bench-resnet": "Benchmark of a residual network: 8 convolutions with batch normalisation.",
    "bench-transformer": "Benchmark of attention: a language model of 4 causal blocks of width 128.",
    "charmodel": "Write like Shakespeare, character by character, by an LSTM.",
    "cnn": "Classify handwritten digits of any size by convolutions.",
    "digits": "Classify 8 x 8 handwritten digits; takes a second, no download.",
    "gan": "Draw handwritten digits: a generator against a critic, with an optimiser each.",
    "iris": "Classify three species of iris by four features.",
    "lstm": "Add two marked numbers of a long sequence, by an LSTM.",
    "mnist": "Classify MNIST: 28 x 28 handwritten digits, as in the first Sigma.",
    "parkinsons": "Detect Parkinson's disease in voices by 22 measures, from a CSV by path.",
    "residual": "Classify handwritten digits by a small residual network with batch normalisation.",
    "tictactoe": "Learn to play tic-tac-toe from all of its positions.",
    "wdbc": "Classify tumours as malignant or benign by 30 features.",
    "xor": "Learn exclusive or, the smallest task that one layer cannot solve.",
}
FIRST = "digits"  # to try Sigma with


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all recipes."""
    places = {name: f"sigma_recipes.recipes:{name.replace('-', '_')}" for name in RECIPES}
    return [
        Component("recipe", name, places[name], summary, default_for="first" if name == FIRST else "")
        for name, summary in RECIPES.items()
    ]
