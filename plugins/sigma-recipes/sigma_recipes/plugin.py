"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

RECIPES = {
    "digits": "Read 8 x 8 handwritten digits; a second, and nothing to download.",
    "iris": "Tell three species of iris by four lengths.",
    "mnist": "Read 28 x 28 handwritten digits, as the sample of the first Sigma did.",
    "wdbc": "Tell malignant from benign tumours by 30 features.",
    "xor": "Learn exclusive or, the smallest task that one layer cannot do.",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all recipes."""
    return [Component("recipe", name, f"sigma_recipes.recipes:{name}", summary) for name, summary in RECIPES.items()]
