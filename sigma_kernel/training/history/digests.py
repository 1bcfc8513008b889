"""What a session writes down of its history, keeps in memory to come back to, and compares when it lives again."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.commands.changes import FORMER
from sigma_kernel.training.hooks.runner import Runner


# -- digests -----------------------------------------------------------------------------------------------------------
def digests(saved: Checkpoint, runner: Runner) -> dict[str, str]:
    """Return a short sha256 of every array by its name, and of what else does not depend on the wall clock."""
    values, timed = saved.values, runner.timed
    parts = {
        "clock": {scale: count for scale, count in values["clock"].items() if scale != "second"},
        "cursor": values["cursor"],
        "live": values["live"],
        "published": {name: v for name, v in values["published"].items() if not runner.aside(name)},
        **{f"hooks.{name}": memory for name, memory in values["hooks"].items() if name not in timed},
    }
    parts |= {"changes": values["changes"]} if values.get("changes") else {}
    found = {name: _short(_bytes(value)) for name, value in saved.arrays.items() if not name.startswith(FORMER)}
    return found | {name: _short(json.dumps(part, sort_keys=True).encode()) for name, part in parts.items()}


def _bytes(value: np.ndarray) -> bytes:
    return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
