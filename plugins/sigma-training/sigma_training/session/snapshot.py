"""Take and restore snapshots: a state copied to the host as arrays and JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from math import inf
from typing import Any

from attrs import asdict, evolve

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaTrainingError
from sigma_step.totals import expand
from sigma_training.data.feed import Cursor
from sigma_training.names import KEPT, UNDO
from sigma_training.session.state import Present, RunState, Setup, plain_values


def take_snapshot(run: Present) -> Checkpoint:
    """Return a copy of a whole run: its state, and the progress of its training."""
    checkpoint = snapshot(run.state, run.setup)
    return evolve(checkpoint, values={**checkpoint.values, "progress": run.progress.to_list()})


def snapshot(state: RunState, setup: Setup) -> Checkpoint:
    """Return a copy of a state on the host: arrays by name, and everything else as JSON values."""
    values = {
        "trainer": setup.name,
        "clock": asdict(state.moment),
        "cursor": [state.cursor.epoch, state.cursor.block, state.cursor.row],
        "live": dict(state.live.base),
        "configured": dict(setup.live.base),
        "hooks": {name: _copy_memory(name, memory) for name, memory in state.memory.items()},
        "streams": dict(setup.model.shapes.streams.numbers),
        "classes": list(setup.evaluator.classes),  # this and the next two are for predictions without the data
        "learned": setup.evaluator.learned,
        **_configured_lengths(setup),
        **{name: x for name, x in _configured_operator(setup).items() if name in state.changes},  # once it was set live
        **({} if setup.is_reproducible else {"reproducible": False}),
        "published": plain_values(state.published),
        "sums": dict(state.sums),
        "changes": deepcopy(dict(state.changes)),
        "data": deepcopy(dict(state.data)),
        "undo": deepcopy(list(state.undo)),
    }
    return Checkpoint({**{name: setup.to_host(value) for name, value in state.arrays.items()}, **state.kept}, values)


def restore(saved: Checkpoint, setup: Setup) -> RunState:
    """Restore the state of a snapshot, for a setup that has its changes; whatever it lacks is initialised.

    If a live value was configured differently when the snapshot was taken, the current configuration wins.
    """
    values = saved.values
    setup.model.shapes.streams.restore(values.get("streams", {}))
    kept = {name: value for name, value in saved.arrays.items() if name.startswith((KEPT, UNDO))}
    memory = {n: m for n, m in deepcopy(values.get("hooks", {})).items() if n in setup.order.hooks}
    return RunState(
        arrays={name: setup.to_device(value) for name, value in saved.arrays.items() if name not in kept},
        kept=kept,
        moment=Moment(**values.get("clock", {})),
        cursor=setup.feed.clamp(Cursor(*values["cursor"])) if "cursor" in values else setup.feed.start(),
        live=setup.live.with_base(_restored_bases(setup.live.base, values)),
        memory=setup.order.blank() | memory,
        published=dict(values.get("published", {})),
        sums={name: [_parts(total), _parts(over)] for name, (total, over) in values.get("sums", {}).items()},
        changes=values.get("changes", {}),
        data=values.get("data", {}),
        undo=deepcopy(values.get("undo", [])),
    )


def _parts(saved: float | list[float]) -> list[float]:
    """Return the parts of an exact sum; earlier versions saved one number."""
    return expand(saved if isinstance(saved, list) else [saved])


def _configured_lengths(setup: Setup) -> dict[str, int | None]:
    """Return rows of a batch and epochs, which can be set live, as they are configured."""
    epochs = None if setup.epochs is None or setup.epochs == inf else int(setup.epochs)
    return {"batch_size": setup.evaluator.batch_size, "epochs": epochs}


def _configured_operator(setup: Setup) -> dict[str, int | None]:
    """Return the settings of the operator that can be set live, as they are configured."""
    operator = setup.operator
    return {"workers": getattr(operator, "workers", None), "every": operator.every, "staleness": operator.staleness}


def reconcile(saved: Checkpoint, setup: Setup) -> Checkpoint:
    """Return a snapshot without numbers that were set, as of epochs, rows and workers, if they are configured anew."""
    now, values = _configured_lengths(setup) | _configured_operator(setup), dict(saved.values)
    gone = [name for name in now if name in values and values[name] != now[name]]
    for part in ("changes", "data"):
        values[part] = {name: value for name, value in values.get(part, {}).items() if name not in gone}
    return evolve(saved, values=values)


def _copy_memory(hook: str, memory: Mapping[str, Any]) -> Any:
    """Return a copy of a hook's memory; raise SigmaTrainingError for values that cannot be saved."""
    for key, value in memory["hook"].items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise SigmaTrainingError(
                f"hook {hook!r}: memory[{key!r}] cannot be saved: {error}. Keep plain values in it: numbers, strings, "
                "lists, dictionaries."
            ) from error
    return deepcopy(memory)


def _restored_bases(now: Mapping[str, float], values: Mapping[str, Any]) -> dict[str, float]:
    """Return the saved bases of live values, except those whose configuration has changed since."""
    then = {**now, **values.get("configured", {})}
    return {n: base for n, base in values.get("live", {}).items() if n in now and then[n] == now[n]}
