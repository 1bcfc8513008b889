"""Check the compatibility of a checkpoint with a session: names, shapes and dtypes, and versions."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from sigma_kernel import __version__
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaCheckpointError
from sigma_step.model import LAYERS, Model
from sigma_training.names import KEPT, UNDO

STEP = re.compile(r"(kept\.[^.]*+\.)?+((?:optimiser|optimisers\.[^.]++)\.)step")  # older versions' count of updates


def check_fit(path: Path | str, found: Checkpoint, trainer: str, arrays: Mapping[str, Any]) -> None:
    """Raise SigmaCheckpointError unless a checkpoint is of this trainer, and has arrays of these shapes and dtypes.

    ``arrays`` are the session's own, on the host or on a device, or their specs.
    """
    whose = found.values.get("trainer", trainer)
    if whose != trainer:
        raise SigmaCheckpointError(
            f"{path}: belongs to trainer {whose!r:.50}, not to {trainer!r}. Use a checkpoint of {trainer!r}."
        )
    there, here = _describe_arrays(found.arrays), _describe_arrays(arrays)
    for name in sorted({*there, *here}):
        if name.startswith(UNDO):  # former values for undo, of any shape
            continue
        held, wanted = there.get(name), here.get(name)
        if name.startswith(KEPT):  # kept.<hook>.<address>: a copy of the array at that address
            held, wanted = held or wanted, here.get(name.split(".", 2)[-1], held)
        if held != wanted:
            raise SigmaCheckpointError(
                f"{path}: {name} is {held or 'missing'} in it, and {wanted or 'missing'} here. "
                "Use the configuration that it was saved with."
            )


def check_layers(path: Path | str, found: Checkpoint, trainer: str, model: Model) -> None:
    """Raise SigmaCheckpointError unless the parameters and the layer state of a checkpoint are those of a model."""
    own = {name: value for name, value in found.arrays.items() if name.startswith(LAYERS)}
    check_fit(path, evolve(found, arrays=own), trainer, model.layer_specs())


def _describe_arrays(arrays: Mapping[str, Any]) -> dict[str, str]:
    """Return the dtype and shape of arrays by name."""
    return {name: f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}" for name, value in arrays.items()}


def with_counts(found: Checkpoint, arrays: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint with a number of updates for each parameter; older versions kept one for an optimiser."""
    steps = {(m[1] or "", m[2]): value for name, value in found.arrays.items() if (m := STEP.fullmatch(name))}
    wanted = [name for name in arrays if name.startswith("optimiser") and name.endswith(".updates")]
    counts = {f"{kept}{name}": n for (kept, head), n in steps.items() for name in wanted if name.startswith(head)}
    return evolve(found, arrays={**counts, **found.arrays})


# -- versions ----------------------------------------------------------------------------------------------------------
def made_with(backend: str, about: Mapping[str, str]) -> dict[str, str]:
    """Return what the bits of a run depend on besides its configuration: versions, libraries, processor type."""
    versions = {"sigma-kernel": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return {**versions, "processor": f"{platform.machine()} {_processor()}".strip(), "backend": backend, **about}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each version that differs from that in a checkpoint."""
    changed = [name for name in now if then.get(name, now[name]) != now[name]]
    return [f"{name} was {then[name]}, and is {now[name]} now" for name in changed]


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    match = re.search(r"^model name\s*+: (.*+)$", described.read_text(), re.MULTILINE) if described.exists() else None
    return match[1] if match else platform.processor()
