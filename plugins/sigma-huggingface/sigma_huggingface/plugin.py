"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


RECORDS = {
    "dataset": {
        "huggingface": ("dataset:HuggingFace", "A dataset of Hugging Face that was saved to disk, as a table."),
        "huggingface_pictures": (
            "pictures:HuggingFacePictures",
            "The pictures of a dataset of Hugging Face that was saved to disk (needs Pillow).",
        ),
        "huggingface_sequences": (
            "sequences:HuggingFaceSequences",
            "The lists of numbers of a dataset of Hugging Face that was saved to disk.",
        ),
        "huggingface_sounds": (
            "sounds:HuggingFaceSounds",
            "The sounds of a dataset of Hugging Face that was saved to disk (needs soundfile).",
        ),
    },
    "inspector": {
        "huggingface": (
            "inspector:HuggingFaceInspector",
            "Inspects folders that save_to_disk of Hugging Face's datasets has written.",
        ),
    },
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the data sets, and of the inspector."""
    return [
        Component(
            kind, name, f"sigma_huggingface.{path}", text,
            also_known_as="load_from_disk" if (kind, name) == ("dataset", "huggingface") else "",
        )
        for kind, records in RECORDS.items()
        for name, (path, text) in records.items()
    ]  # fmt: skip
