"""Small products in registers agree with NumPy's in every shape, and always sum in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.emit import register_tiles
from sigma_backend_numba.emit.register_tiles import Ahead, Shape, Tiles, covering, disjoint, fitting, shape
from sigma_backend_numba.lower.product_table import PANELS, TILES, Route, force_route
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol

SIDES = [1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 17, 31, 33, 40]
EXACT = {"float32": 2e-6, "float64": 2e-15}


def product(x: Any, w: Any, first: bool, second: bool) -> Any:
    """Return a product, compiled, with operands transposed or not."""
    a, b = symbol(x.shape, str(x.dtype)), symbol(w.shape, str(w.dtype))
    result = (f.swap_axes(a, 0, 1) if first else a) @ (f.swap_axes(b, 0, 1) if second else b)
    (found,) = NumbaBackend().lower(Graph((a, b), (result,)), {})(x, w)
    return found


@settings(max_examples=50)
@given(
    st.sampled_from(SIDES), st.sampled_from(SIDES), st.sampled_from(SIDES), st.booleans(), st.booleans(),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_a_small_product_of_any_shape_equals_numpys(
    rows: int, columns: int, inner: int, first: bool, second: bool, dtype: str
) -> None:
    draw = np.random.default_rng(rows * 10_000 + columns * 100 + inner)
    x, w = draw.standard_normal((rows, inner)), draw.standard_normal((inner, columns))
    x, w = x.astype(dtype), w.astype(dtype)
    laid = (np.ascontiguousarray(v.T) if turned else v for v, turned in ((x, first), (w, second)))
    found = product(*laid, first, second)
    size = np.abs(x).astype(float) @ np.abs(w).astype(float)
    assert np.all(np.abs(found - x.astype(float) @ w.astype(float)) <= EXACT[dtype] * size)


@pytest.mark.parametrize("columns", [3, 10, 15, 16, 31])
@pytest.mark.parametrize("inner", [4, 9, 130])
def test_an_update_by_a_product_adds_every_column_once(columns: int, inner: int) -> None:
    draw = np.random.default_rng(0)
    values = {"p": draw.standard_normal((inner, columns)), "x": draw.standard_normal((20, inner))}
    values |= {"g": draw.standard_normal((20, columns))}
    nodes = {name: symbol(value.shape, "float64") for name, value in values.items()}
    rate = symbol((), "float64")
    updated = nodes["p"] - rate * (f.swap_axes(nodes["x"], 0, 1) @ nodes["g"])
    step = Step(Graph((*nodes.values(), rate), (updated,)), tuple(nodes), (), ("rate",), ("p",), ())
    expected = values["p"] - 0.5 * (values["x"].T @ values["g"])
    state = {name: np.ascontiguousarray(value) for name, value in values.items()}
    done = NumbaBackend().compile(step).run(state, {}, np.zeros(0, np.int32), {"rate": np.float64(0.5)}, 1)
    assert np.allclose(done.state["p"], expected, rtol=0, atol=1e-13)


def test_an_element_of_a_product_does_not_depend_on_its_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "makers", lambda: "in tiles")  # BLAS sums in another order
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(shape).astype("float32") for shape in ((24, 50), (50, 31)))
    with force_route(Route(TILES, 1)):
        whole = product(x, w, False, False)
        for rows, columns in ((5, 31), (24, 7), (1, 1), (23, 16)):
            part = product(x[:rows].copy(), np.ascontiguousarray(w[:, :columns]), False, False)
            assert np.array_equal(part, whole[:rows, :columns])


@pytest.mark.parametrize("columns", range(1, 16))
def test_packing_covers_exactly_the_remaining_columns(columns: int) -> None:
    for parts in (disjoint(columns), covering(columns)):
        assert {place + k for place, width in parts for k in range(width)} == set(range(columns))
    assert sum(width for _, width in disjoint(columns)) == columns
    assert len(covering(columns)) <= 2
    assert len(disjoint(columns)) > 2 or covering(columns) == disjoint(columns)  # what overlaps is stored twice


def test_the_tiles_of_a_product_fit_its_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: 512)
    assert shape(100, 64) == Shape(6, 4)  # 24 registers of sums, 4 of columns, and one to broadcast
    assert shape(100, 1).vectors == 1
    assert (fitting(14, 4), fitting(8, 4), fitting(9, 2)) == (2, 4, 9)
    monkeypatch.setattr(register_tiles, "registers", lambda: 256)
    assert shape(96, 64) == Shape(6, 1)  # twelve of sixteen registers


def panels(rows: int, columns: int, inner: int, down: int, along: int, turned: bool) -> Tiles:
    """Return a product of panels; the elements of its first operand are ``down`` and ``along`` apart."""
    leading = inner if turned else columns
    return Tiles("float32", rows, columns, inner, down, along, leading, turned, columns, "f4(1.0)", False, True)


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [24, 50, 100, 500])
def test_tiles_prefetch_every_line_that_is_packed_next(
    rows: int, turned: bool, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: bits)
    made = panels(rows, 1000, 784, 784, 1, turned)
    beside, groups, share = made.prefetch.shares
    high, across = (made.wide, made.deep) if turned else (made.deep, made.wide)
    steps = min(share, made.deep // register_tiles.APART)
    assert f"{groups} * {share * made.leading}" in "\n".join(made.lines("100", "1000"))
    fetched = {
        (tile // groups * share + step, tile % groups * beside + line)
        for tile in range(rows // made.shape.rows)
        for step in range(steps)
        for line in range(beside)
    }
    assert {(row, line) for row in range(high) for line in range(-(-across // 16))} <= fetched


def test_rows_that_lie_apart_are_packed_for_many_panels_or_where_they_share_sets_of_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: 512)
    assert not panels(2100, 128, 100, 1, 2100, False).turns
    assert panels(4096, 128, 100, 1, 4096, False).turns
    assert panels(2100, 1000, 100, 1, 2100, False).turns


def test_results_are_written_row_by_row_if_they_are_largest_by_far_or_too_large_for_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: 512)
    assert not panels(512, 512, 128, 512, 1, False).by_rows  # 1 MB, as much as stays in the cache
    assert panels(512, 512, 127, 512, 1, False).by_rows
    assert panels(512, 513, 128, 512, 1, False).by_rows
    assert not panels(512, 513, 512, 512, 1, False).by_rows
    assert not panels(2048, 128, 200, 1, 2048, False).by_rows  # rows that lie apart, too


class Pointer:
    """A place in a named array of 64-byte lines; says which lines of it are read and prefetched."""

    def __init__(self, name: str, place: int, log: list[tuple[str, str, int, int]]) -> None:
        self.name, self.place, self.log = name, place, log

    def note(self, what: str, place: int = 0) -> float:
        self.log.append((what, self.name, self.place + place, (self.place + place) // 16))
        return 0.0

    def __getitem__(self, place: int) -> float:
        return self.note("read", place)


def executed(lines: list[str]) -> list[tuple[str, str, int, int]]:
    """Return what the text of a product reads and prefetches, in order: what, array, place and line."""
    log: list[tuple[str, str, int, int]] = []
    words: dict[str, Any] = {name: Pointer(name, 0, log) for name in ("left", "right", "room", "to")}
    words |= {"at": lambda pointer, place: Pointer(pointer.name, pointer.place + place, log), "f4": float}
    words |= {"fetch": lambda pointer: pointer.note("fetch"), "put": lambda pointer, value: None}
    words |= {"sel": lambda condition, yes, no: yes if condition else no}
    words |= {f"wide{n}": lambda pointer: pointer.note("read") for n in range(1, 17)}
    words |= {f"spread{n}": float for n in range(1, 17)}
    exec("\n".join(lines), words)
    return log


@pytest.mark.parametrize("near", [1 << 20, 1 << 13, 1])  # all panels are packed at once, or few
@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(("columns", "inner"), [(70, 12), (200, 12), (300, 12), (70, 64), (70, 240), (70, 560)])
def test_tiles_prefetch_transposed_rows_before_they_are_read(
    columns: int, inner: int, bits: int, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: bits)
    monkeypatch.setattr(register_tiles, "NEAR", near)
    rows = 51
    made = panels(rows, columns, inner, 1, rows, False)
    assert made.by_rows == (inner == 12)
    done = executed(made.lines(str(rows), str(columns)))
    log = [(what, place, line) for what, name, place, line in done if name == "left"]
    known: set[int] = set()  # lines in the cache
    for what, place, line in log:
        assert what == "fetch" or place % rows < made.shape.rows or line in known
        assert place < 2 * inner * rows
        known.add(line)


def test_a_tile_prefetches_no_more_than_its_share() -> None:
    ahead = Ahead("come", "at(right, 7)", range(0, 32, 16), 100, "3")
    steps = [f"    {line}" for line in ahead.fetches(alone=False)]
    done = executed([f"come = {ahead.start}", "for e in range(9):", *steps])
    assert {place for _, _, place, _ in done} == {7, 23, 107, 123, 207, 223}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "columns", "inner"), [(601, 523, 301), (333, 129, 257), (129, 333, 31), (13, 65, 2), (33, 65, 0)]
)
def test_a_product_of_panels_equals_numpys(rows: int, columns: int, inner: int, dtype: str, first: bool) -> None:
    draw = np.random.default_rng(rows)
    x, w = draw.standard_normal((rows, inner)).astype(dtype), draw.standard_normal((inner, columns)).astype(dtype)
    with force_route(Route(PANELS, 1)):
        found = product(np.ascontiguousarray(x.T) if first else x, w, first, False)
    size = np.abs(x).astype(float) @ np.abs(w).astype(float)
    assert np.all(np.abs(found - x.astype(float) @ w.astype(float)) <= EXACT[dtype] * size)
