"""Digests of a snapshot: hashes of the state in the journal, compared during replay."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from sigma_kernel.contracts.storing import Checkpoint
from sigma_training.hooks.order import HookOrder
from sigma_training.names import UNDO


def digests(saved: Checkpoint, order: HookOrder) -> dict[str, str]:
    """Return a short sha256 of each array, and of each other part that does not depend on the wall clock."""
    values, timed = saved.values, order.timing_dependent
    parts = {
        "clock": {scale: count for scale, count in values["clock"].items() if scale != "second"},
        "cursor": values["cursor"],
        "live": values["live"],
        "published": {name: v for name, v in values["published"].items() if not order.depends_on_time(name)},
        **{f"hooks.{name}": memory for name, memory in values["hooks"].items() if name not in timed},
    }
    parts |= {name: values[name] for name in ("changes", "data") if values.get(name)}
    data = {name: little_endian(value) for name, value in saved.arrays.items() if not name.startswith(UNDO)}
    data |= {name: json.dumps(part, sort_keys=True).encode() for name, part in parts.items()}
    return {name: hashlib.sha256(part).hexdigest()[:16] for name, part in data.items()}


def little_endian(value: np.ndarray) -> bytes:
    """Return the bytes of an array, the same on every machine."""
    return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
