"""The table of products is complete, says what was measured, and is what the tuner writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sigma_backend_numba import tune
from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.compiler import processor
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import graph_job
from sigma_backend_numba.lower import product_table
from sigma_backend_numba.lower.product_table import (
    BLAS,
    FILE,
    PANELS,
    TILES,
    WAYS,
    Route,
    entry,
    force_route,
    select_route,
)
from sigma_kernel.graph import Graph, symbol

TABLES = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("bits", ["256", "512"])
def test_the_table_has_every_product_of_the_grid(bits: str) -> None:
    products = TABLES[bits]["products"]
    assert list(products) == [entry(*sides) for sides in tune.sides()]
    assert all(way in WAYS and pieces in (1, 2, 4, 8) for way, pieces in products.values())
    assert "OpenBLAS" in TABLES[bits]["measured"]


def test_a_product_takes_the_entry_whose_sides_are_nearest_as_ratios() -> None:
    assert entry(100, 1000, 784, True) == "64 x 1024 x 1024 transposed"
    assert entry(130, 10, 40, False) == "256 x 16 x 64"
    assert entry(0, 5000, 1, False) == "1 x 1024 x 16"
    assert entry(128, 512, 32, False) == "256 x 1024 x 64"  # as near to 64, 256 and 16


@pytest.mark.parametrize("turned", [False, True])
def test_dense_layers_are_computed_without_blas(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_table, "registers", lambda: 512)
    assert select_route(100, 1000, 784, turned).way == select_route(784, 1000, 100, turned).way == PANELS


def test_processors_that_were_not_measured_leave_large_products_to_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_table, "registers", lambda: 128)
    assert (select_route(8, 8, 8, False).way, select_route(100, 1000, 784, False).way) == (TILES, BLAS)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_gives_the_same_product(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "makers", lambda: f"in {way}")  # the program of another way has the same key
    draw = np.random.default_rng(0)
    x, w = draw.standard_normal((20, 30)), draw.standard_normal((30, 17))
    a, b = symbol(x.shape, "float64"), symbol(w.shape, "float64")
    graph = Graph((a, b), (a @ b,))
    with force_route(Route(way, 1)):
        assert ("dgemm(" in source(graph_job(graph, {})).text) == (way == BLAS)
        (found,) = NumbaBackend().lower(graph, {})(x, w)
    assert np.allclose(found, x @ w, rtol=0, atol=1e-13)


def test_the_tuner_writes_what_it_measured_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tune, "time_alternating", lambda runs: [3.0, 1.0, 2.0][: len(runs)])
    monkeypatch.setattr(tune, "registers", lambda: 512)
    tune.main(["--to", str(tmp_path / "table.json"), "--only", "64 x 64 x 64"])
    written, name = json.loads((tmp_path / "table.json").read_text("utf-8")), "64 x 64 x 64 transposed"
    assert written["512"]["products"][name] == [PANELS, 8]
    assert f"{name}: ['panels', 8]" in capsys.readouterr().err
    other = {one: value for one, value in TABLES["512"]["products"].items() if "64 x 64 x 64" not in one}
    assert {one: written["512"]["products"][one] for one in other} == other
    assert written["256"] == TABLES["256"]
    assert written["512"]["measured"] == TABLES["512"]["measured"]  # most entries are from then


def test_a_check_compares_layers_with_the_largest_product_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[tuple[int, int, int, bool], str, bool]] = []
    monkeypatch.setattr(tune, "LAYERS", ((10, 30, 20),))
    monkeypatch.setattr(tune, "LARGEST", 100)
    monkeypatch.setattr(tune, "prepare_product", lambda of, how, first: made.append((of, how.way, first)))
    largest, layer = 2e-9 * 100**3, 2e-9 * 10 * 30 * 20  # seconds at a GFLOP/s
    each = (layer / 10, layer / 40, layer / 20)  # tiles, panels and blas
    monkeypatch.setattr(tune, "time_alternating", lambda runs, times: [largest / 40, largest / 50, *each * 3])
    tune.main(["--check", "--to", str(tmp_path / "table.json")])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.endswith("100 x 100 by panels and blas: 40 and 50 GFLOP/s")
    assert [line.partition(":")[0].partition(", ")[2] for line in lines] == [
        "forward", "gradient of the input", "gradient of the weights"
    ]  # fmt: skip
    assert all("tiles 20%, panels 80%, blas 40%; the table says " in line for line in lines)
    of = [(10, 20, 30, False), (10, 30, 20, True), (30, 20, 10, False)]
    assert made[2:] == [(one, way, k == 2) for k, one in enumerate(of) for way in WAYS]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("turned", [False, True])
def test_the_tuner_runs_products_of_transposed_operands(turned: bool) -> None:
    tune.prepare_product((5, 7, 3, turned), Route(TILES, 1), first=True)(2)


def test_a_whole_table_says_as_which_processor_blas_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "sides", list)
    monkeypatch.setattr(tune, "registers", lambda: 512)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    tune.main(["--to", str(tmp_path / "table.json")])
    written = json.loads((tmp_path / "table.json").read_text("utf-8"))["512"]["measured"]
    assert written.startswith(TABLES["512"]["measured"] + "; then ")  # its entries stay where they are nearly as fast
    assert written.endswith("(Haswell)")


def test_a_large_product_is_cut_into_no_more_pieces_than_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "prepare_product", lambda of, choice: choice)
    monkeypatch.setattr(tune, "time_alternating", lambda runs: [1.0, 1.2, 1.03, 1.3][: len(runs)])
    assert tune.tune_product((1024, 1024, 1024, False))[0] == [PANELS, 4]


@pytest.mark.parametrize(("before", "way"), [("", TILES), (BLAS, BLAS), (PANELS, TILES)])
def test_a_way_is_kept_unless_another_is_clearly_faster(before: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "prepare_product", lambda of, choice: choice)
    monkeypatch.setattr(tune, "time_alternating", lambda runs: [1.04, 1.1, 1.0][: len(runs)])
    assert tune.tune_product((64, 64, 64, False), before)[0][0] == way


def test_a_processor_can_be_measured_as_if_its_registers_were_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "llvm", lambda: _Host)
    monkeypatch.setenv("SIGMA_NUMBA_REGISTERS", "256")
    features = "+avx2,-avx512f,-amx-tile,+fma,+prefer-no-gather,+prefer-no-scatter"
    assert processor.processor.__wrapped__() == ("host", features)


class _Host:
    @staticmethod
    def get_host_cpu_name() -> str:
        return "host"

    @staticmethod
    def get_host_cpu_features() -> type[_Host]:
        return _Host

    @staticmethod
    def flatten() -> str:
        return "+avx2,+avx512f,+amx-tile,+fma"
