"""Keep a copy of what a run has learned for a hook, and restore it, as functions of a run."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from sigma_step.model import LAYERS, OPTIMISERS
from sigma_training.names import KEPT
from sigma_training.session.progress import Phase
from sigma_training.session.state import Present

END = ""  # in place of the name of a hook: the state in which training ended


def keep(run: Present, hook: str) -> Present:
    """Return a run that keeps a copy of parameters, layer state, slots of optimisers and scores for a hook."""
    state, head, splits = run.state, f"{KEPT}{hook}.", run.setup.factory.splits
    names = [name for name in state.arrays if name.startswith((LAYERS, *OPTIMISERS))]
    kept = {head + name: run.setup.to_host(state.arrays[name]) for name in names}
    scores = [name for name in state.published if name.partition(".")[0] in splits]
    kept |= {head + n: np.array(x) for n in scores if isinstance(x := state.published[n], float)}
    return run.with_state(evolve(state, kept={**state.kept, **kept}))


def restore_kept(run: Present, hook: str) -> Present:
    """Return a run with the copy that was kept last for a hook; once training has ended, keep what it goes on from."""
    if run.progress.phase is Phase.ENDED and not run.state.set_aside:
        run = keep(run, END)
    state, head = run.state, f"{KEPT}{hook}."
    kept, arrays = state.kept, state.arrays
    placed = {name: run.setup.to_device(kept[head + name]) for name in arrays if head + name in kept}
    scores = {name: kept[head + name].item() for name in state.published if head + name in kept}
    state = evolve(state, arrays={**arrays, **placed}, published={**state.published, **scores})
    return evolve(run, state=state, last=evolve(run.last, finite=run.last.finite or bool(placed)))


def leave_kept(run: Present) -> Present:
    """Return a run in the state in which training ended, if a hook has restored an earlier one since."""
    run = restore_kept(run, END)
    return run.with_state(run.state.without_last())
