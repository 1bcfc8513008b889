"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the data set."""
    return [
        Component(
            "dataset",
            "huggingface",
            "sigma_huggingface.dataset:HuggingFace",
            "A dataset of Hugging Face that was saved to disk.",
            also_known_as="load_from_disk",
        )
    ]
