"""The facts of ops, as the table gives them."""

from __future__ import annotations

from sigma_kernel.graph import ELEMENTWISE, OPS
from sigma_kernel.graph import flows, rewriting, meaning, node
from sigma_kernel.launcher import work
from sigma_kernel.testing import cases, edges
from sigma_hooks import reference


def having(**facts):
    return {r.name for r in OPS.values() if ":" not in r.name and all(getattr(r, k) == v for k, v in facts.items())}


def test_derived_equal_lists():
    assert having(entries="moved") == flows.MOVES
    assert having(entries="along") == flows.ALONG
    el = {r.name for r in OPS.values() if r.shape in ELEMENTWISE}
    assert (having(entries="apart") | having(entries="folded")) - el - {"argmax"} == flows.STAYS
    assert having(linear="whole") | having(linear="pieces") == flows.LINEAR | {"stop", "reshape", "permute", "slice", "concat"}
    assert {r.name: r.neutral for r in OPS.values() if r.neutral is not None} == rewriting._NEUTRAL
    folds = {r.name: r.fold for r in OPS.values() if r.fold}
    assert folds.keys() == rewriting._FOLDS.keys()
    assert all(folds[k] is v for k, v in rewriting._FOLDS.items() if k != "cast")
    assert {r.name: r.standard for r in OPS.values() if r.standard not in ("", r.name)} == meaning.STANDARD
    assert {k for k in work._COUNTS if k != "scan"} | set(work._MOVES) == {r.name for r in OPS.values() if r.operations}
    assert having(domain="positive") == cases.POSITIVE
    floats = {"equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not", "is_finite"}
    assert edges.SIGNED | floats | {"exp", "log", "cos", "stretch", "slice", "pad"} == having(signed=True)
    assert having(rounding="exact") == reference.EXACT
    assert having(rounding="function") == reference.FUNCTIONS
    import numpy as np
    for name, own in node.RENAMED.items():
        assert next(r.name for r in OPS.values() if r.standard and getattr(np, r.standard, None) is getattr(np, name)) == own
    assert reference.ELEMENTWISE == {n for n in el if OPS[n].rounding != "exact" and OPS[n].expansion is None} - {"reduce_precision"} - floats
    from sigma_backend_numba.lower.layout import VIEWS
    from sigma_backend_numpy.plan import STRIDED
    assert having(view=True) == VIEWS == STRIDED
    from sigma_backend_numba.plan.sample_regions import POOLS
    from sigma_backend_numba.lower.batch_chunks import REDUCTIONS
    assert having(entries="pooled") == POOLS and having(entries="folded") == REDUCTIONS
    import sigma_backend_cupy.graphs.reads as r
    assert having(view=True) | having(entries="moved") | having(entries="gathered") == r.MOVES
    assert r.PULLED == having(entries="pooled") | {"scatter_add"}
