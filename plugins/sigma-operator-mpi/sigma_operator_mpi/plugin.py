"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the operator."""
    return [
        Component(
            "operator",
            "mpi",
            "sigma_operator_mpi.operator:MpiOperator",
            "Train on the ranks of an MPI job, started by mpiexec.",
        ),
    ]
