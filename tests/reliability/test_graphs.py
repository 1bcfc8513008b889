"""Random graphs agree with the reference on every backend, and a wrong storage rule is detected."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.graph.node import OPS
from tests.reliability.amount import SEED, amount

GRAPHS = amount(50, 500, 20_000)
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the scripts of this folder importable."""
    monkeypatch.syspath_prepend(str(HERE))


def ops_of(case: Any) -> set[str]:
    graphs = [case.step.graph]
    for graph in graphs:
        graphs += [node.attrs["body"] for node in graph if node.op == "scan"]
    return {node.op for graph in graphs for node in graph}


def test_random_graphs_have_every_op_of_the_kernel() -> None:
    drawn = import_module("drawing").drawn
    seen = set().union(*(ops_of(drawn(seed)) for seed in range(500)))
    jumps = {"svd"}  # where singular values are close
    assert {name for name in OPS if ":" not in name} - jumps <= seen


@pytest.mark.rooms
def test_random_graphs_agree_with_the_reference_on_every_backend() -> None:
    script = HERE / "graphs.py"
    done = subprocess.run(
        [sys.executable, script, str(GRAPHS), str(SEED)], capture_output=True, text=True, timeout=36_000
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["graphs"], found["different"]) == (GRAPHS, [])
    assert found["compared"] > 0.9


@pytest.mark.long
@pytest.mark.rooms
def test_the_fuzzer_finds_a_product_that_reuses_storage_without_comparing_maps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = [import_module(f"sigma_backend_numba.emit.{name}") for name in ("loops", "matmul", "packed_products")]

    def home(task: Any, core: Any) -> Any:
        fit = (node for node in modules[0].stored_members(task) if (node.shape, node.dtype) == (core.shape, core.dtype))
        return core if core in task.schedule.stored else next(fit, None)

    for module in modules:
        monkeypatch.setattr(module, "home", home)
    monkeypatch.setenv("SIGMA_NUMBA_CACHE", str(tmp_path))
    monkeypatch.setattr("sigma_backend_numba.cache.lookup.makers", lambda: "planted")
    graphs = import_module("graphs")
    backends = graphs.BACKENDS["numba"][:1]
    wrong = next(case for case in map(graphs.drawn, range(0, 200, 2)) if graphs.compare(backends, case).wrong)
    smaller = graphs.shrunk(backends, wrong, tries=20)
    assert graphs.compare(backends, smaller).wrong
    assert len(list(smaller.step.graph)) < len(list(wrong.step.graph))


@pytest.mark.rooms
@pytest.mark.parametrize("seed", [1, 12, 13, 19, 21, 22])
def test_the_program_of_a_graph_does_not_depend_on_memory_addresses(seed: int) -> None:
    program, text = (import_module(f"sigma_backend_numba.{name}") for name in ("execute.program", "emit.program_text"))
    graphs = [import_module("drawing").drawn(seed).step.graph for _ in range(5)]  # alive: each has another address
    assert len({text.source(program.graph_job(graph, {})).text for graph in graphs}) == 1
