"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

RECIPES = {
    "bench-cnn": "Measure convolutions: 32 filters, pool, 64 filters, pool, 128-10.",
    "bench-deep": "Measure many small layers: 20 layers of weights, 64 wide.",
    "bench-iris": "Measure the smallest steps: 4-12-3 in batches of 10.",
    "bench-mlp-large": "Measure large matrix products: 784-1024-1024-10.",
    "bench-mlp-small": "Measure one hidden layer: 784-128-10.",
    "digits": "Read 8 x 8 handwritten digits; a second, and nothing to download.",
    "iris": "Tell three species of iris by four lengths.",
    "mnist": "Read 28 x 28 handwritten digits, as the sample of the first Sigma did.",
    "wdbc": "Tell malignant from benign tumours by 30 features.",
    "xor": "Learn exclusive or, the smallest task that one layer cannot do.",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all recipes."""
    places = {name: f"sigma_recipes.recipes:{name.replace('-', '_')}" for name in RECIPES}
    return [Component("recipe", name, places[name], summary) for name, summary in RECIPES.items()]
