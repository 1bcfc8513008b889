"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

MERGERS = [
    ("sum", "Sum", "Sum the gradients of shards."),
    ("mean", "MeanOfShards", "Average the gradients of shards, however many rows they have."),
    ("weighted", "Weighted", "Weight the gradients of shards by numbers of one's own."),
    ("max", "Largest", "Take each entry from the shard where it has the greatest magnitude."),
    ("several", "MergerRules", "Merge parameters in different ways, by patterns of their addresses."),
]


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the local operator and of the mergers of gradients."""
    return [
        Component(
            "operator",
            "local",
            "sigma_operator_local.local:LocalOperator",
            "Train on this machine; data-parallel with shards and workers.",
            default_for="operator",
        ),
        *(Component("merger", name, f"sigma_operator_local.mergers:{cls}", about) for name, cls, about in MERGERS),
    ]
