"""Run hooks of local scope in workers: what is sent of a call, and what comes back.

The operator decides which hooks are due, and sends each call with the table of its hook: a hook that was attached or
changed meanwhile needs no more. Parameters are not sent, as the worker has them.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.dumping import Dumper
from sigma_training.components import hooks as resolve_hooks
from sigma_training.hooks.background import WORKER, HookCall
from sigma_training.session.state import Present

Host = Mapping[str, np.ndarray]


@frozen(eq=False)
class SentCall:
    """One run of a hook of local scope, as it is sent to a worker.

    Args:
        name: The name of the hook.
        scope: The scope: ``workers.<n>.``.
        table: The hook, as a configuration has it.
        moment: The present moment.
        names: The names of the values that it reads, in order.
        known: These values, but for arrays of the state.
        memory: Its memory in this scope.
        directions: Which values of metrics are better, by address.
    """

    name: str
    scope: str
    table: Any
    moment: Moment
    names: Sequence[str]
    known: Mapping[str, Any]
    memory: Any
    directions: Mapping[str, str]


@frozen(eq=False)
class CallResult:
    """What a call has left: its row, the seconds that it took, its files, and the traceback of an error."""

    row: dict[str, Any]
    seconds: float
    files: dict[str, bytes]
    traceback: str = ""


def describe_hook(where: str, hook: Hook) -> Any:
    """Return the table by which workers make a hook; raise SigmaConfigError if they cannot."""
    try:
        return Dumper(catalogue()).table(hook)
    except SigmaConfigError as error:
        raise SigmaConfigError(
            f"{where}: has scope = 'local', and workers in other processes cannot make it: {error} Move it to a module"
            " that they can import, set scope = 'global', or use operator = 'local'."
        ) from error


def send_call(call: HookCall, table: Any, run: Present) -> SentCall:
    """Return what a worker needs for a call, beside its own state."""
    values = {name: x for name, x in call.known.items() if not (name in run.state.arrays and isinstance(x, np.ndarray))}
    names, memory = [*call.known], call.memory
    return SentCall(call.name, call.scope, table, call.moment, names, values, memory, call.directions)


def run_call(sent: SentCall, run: Present, arrays: Host) -> CallResult:
    """Run a call at the state of a worker, whose ``arrays`` are on the host too."""
    setup, hook = run.setup, make_hook(sent, run)
    call = HookCall(
        sent.name, sent.scope, hook, sent.moment, None,
        known={name: sent.known[name] if name in sent.known else arrays[name] for name in sent.names},
        fresh={},
        memory=deepcopy(sent.memory),  # the call may be run again
        evaluator=setup.evaluator,
        steps=run.copy_steps(hook.weights),
        place=WORKER,
        directions=sent.directions,
    )  # fmt: skip
    call.run()
    trace = "" if call.error is None else "".join(traceback.format_exception(call.error))
    return CallResult(call.row, call.seconds, call.files, trace)


def make_hook(sent: SentCall, run: Present) -> Hook:
    """Return the hook of a call."""
    factory = run.setup.factory
    return resolve_hooks(factory.resolve, f"{factory.name}.hooks", {sent.name: sent.table}, factory.splits)[sent.name]
