"""The language of generated programs agrees with Python and NumPy."""

from __future__ import annotations

import gc
import math
import platform
import re
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba.cache import lookup, units
from sigma_backend_numba.compiler import language, machine_code
from sigma_backend_numba.compiler.language import Routine, f4
from sigma_backend_numba.compiler.units import ProgramText

INTEGERS = [-9, -4, -1, 0, 1, 3, 7, 2**31]
FLOATS = [-math.inf, -2.5, -0.0, 0.0, 0.75, 3.0, math.inf, math.nan]


def run(lines: list[str], n: int, *arrays: np.ndarray) -> int:
    """Run lines as the body of a burst that has the arrays a0, a1 and so on."""
    short = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "uint32": "u4"}
    names = [f"a{i} = as_{short[str(x.dtype)]}(tab[{i}])" for i, x in enumerate(arrays)]
    body = ["tab = as_i8(table)", *names, *lines]
    text = "\n    ".join(["def burst(table, n, t, T):", *body, "" if "return" in lines[-1] else "return 0"]) + "\n"
    table = np.array([x.ctypes.data for x in arrays], np.int64)
    return lookup.load(text, lambda: ({}, text))[1](table.ctypes.data, n, 0, 1)


@pytest.mark.parametrize("sign", ["+", "-", "*", "//", "%", "&", "|", "^", "<", "<=", "==", "!=", ">="])
def test_integer_operators_agree_with_python(sign):
    pairs = [(x, y) for x in INTEGERS for y in INTEGERS if y or sign not in ("//", "%")]
    x, y = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    out = np.zeros(len(pairs), np.int64)
    run([f"for q in range(n):\n        a2[q] = i8(a0[q] {sign} a1[q])"], len(pairs), x, y, out)
    assert out.tolist() == [int(eval(f"x {sign} y", {"x": x, "y": y})) for x, y in pairs]


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "<", "<=", "==", "!=", ">="])
def test_float_operators_agree_with_numpy(sign):
    pairs = [(x, y) for x in FLOATS for y in FLOATS]
    x, y = (np.array(side, np.float64) for side in zip(*pairs, strict=True))
    out = np.zeros(len(pairs))
    run([f"for q in range(n):\n        a2[q] = f8(a0[q] {sign} a1[q])"], len(pairs), x, y, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, eval(f"x {sign} y", {"x": x, "y": y}).astype(float))


def test_unsigned_integers_wrap_and_stay_unsigned():
    x, out = np.array([2**32 - 1, 7], np.uint32), np.zeros(4, np.uint32)
    run(
        ["a1[0] = u4(a0[0] + a0[1])", "a1[1] = a0[0] >> 4", "a1[2] = u4(f4(a0[1]))", "a1[3] = a0[0] > a0[1]"], 0, x, out
    )
    assert out.tolist() == [6, (2**32 - 1) >> 4, 7, 1]


def test_break_and_continue_work_as_in_python():
    lines = """total = 0
    for i in range(1, n, 2):
        if i == 5:
            continue
        elif i > 11:
            break
        else:
            total += i
    while True:
        total += 100
        if total > 300 or n < 0:
            break
    first, second = total, -total
    return first if second < 0 else second"""
    assert run(lines.split("\n    "), 50) == 1 + 3 + 7 + 9 + 11 + 300


def compiled(text: str, names: Mapping[str, Any]) -> list[bytes]:
    """Return the object code of a program, without the cache."""
    codes, _ = units.assemble(ProgramText(text, names), {}, keep=False)
    return codes


def test_a_variable_keeps_its_kind():
    with pytest.raises(AssertionError, match="x is i8, and cannot become f4"):
        compiled("def burst(table):\n    x = 1\n    x = f4(2.0)\n    return x\n", {"f4": f4})


def test_routines_cannot_be_called_from_python():
    with pytest.raises(TypeError, match="compiled code only"):
        f4(1.0)
    with pytest.raises(TypeError, match="burst runs in compiled code only"):
        Routine(burst, "task")()


def burst() -> None:
    """A routine for the tests."""


def test_the_elements_of_short_rows_are_not_gathered_one_by_one(monkeypatch):
    text = """def task0(x, y, out):
    for row in range(128):
        for column in range(14):
            out[row * 14 + column] = x[row * 15 + column] + y[row * 15 + column]


def burst(table, n, t, T):
    tab = as_i8(table)
    task0(as_f4(tab[0]), as_f4(tab[1]), as_f4(tab[2]))
    return 0
"""
    monkeypatch.setattr(
        machine_code, "_emit_object", lambda module, speed: machine_code._target(speed).emit_assembly(module)
    )
    source = ProgramText(text, lookup._names(text))
    _, (unit,) = machine_code.translate_unit(source, source.burst)
    assembly, _ = machine_code.translate_unit(source, unit)
    listing = str(machine_code.emit_code(assembly)[0])
    found = [line for line in listing.splitlines() if "gather" in line or "scatter" in line]
    assert not found
    assert "unit_" in listing


def emit_bias(word: str) -> tuple[str, bytes]:
    """Return LLVM's text and the code of a bias and an activation of rows, whose innermost loop has a word."""
    text = f"""def task0(x, bias, out):
    for v0 in range(0, 500):
        for v1 in {word}(0, 17):
            x1 = x[v0 * 17 + v1] + bias[v1]
            out[v0 * 17 + v1] = sel(x1 <= f4(0.0), f4(0.0), x1)


def burst(table, n, t, T):
    tab = as_i8(table)
    task0(as_f4(tab[0]), as_f4(tab[1]), as_f4(tab[2]))
    return 0
"""
    source = ProgramText(text, lookup._names(text))
    _, (unit,) = machine_code.translate_unit(source, source.burst)
    assembly, _ = machine_code.translate_unit(source, unit)
    return assembly, machine_code.emit_code(assembly)[0]


def test_only_loops_over_rows_tell_llvm_not_to_write_them_out() -> None:
    assert "llvm.loop" not in emit_bias("range")[0]
    (loop,) = re.findall(r"br label .* !llvm\.loop !(\d+)", emit_bias("row")[0])
    assert f"!{loop} = !{{ !{loop}, " in emit_bias("row")[0]  # names itself


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="the code is of one processor type")
def test_a_row_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would need many times as long, and the code would take more than twice the time."""
    monkeypatch.setattr(machine_code, "processor", lambda: ("znver3", "+avx2,+fma"))
    monkeypatch.setattr(machine_code, "_targets", threading.local())
    assert 2 * len(emit_bias("row")[1]) < len(emit_bias("range")[1])


def test_nothing_of_a_translation_stays_in_memory() -> None:
    from llvmlite import ir

    text = "def burst(table, n, t, T):\n    return n + 1\n"
    gc.collect()  # what the errors of other tests held
    compiled(text, vars(language))
    left = [x for x in gc.get_objects() if isinstance(x, ir.Module | ir.Function | ir.Instruction)]
    assert not left


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_searches_only_what_a_short_translation_made(enabled: bool) -> None:
    searched = list[int]()

    def note(phase: str, about: dict[str, int]) -> None:
        searched.append(about["generation"])

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    gc.collect()  # else a search of more may be due by chance
    gc.callbacks.append(note)
    try:
        with pytest.raises(KeyError, match="missing"), machine_code._collect_after(0):
            raise KeyError("missing")
        compiled("def burst(table, n, t, T):\n    return n + 2\n", vars(language))
        assert gc.isenabled() == enabled
    finally:
        gc.callbacks.remove(note)
        (gc.enable if before else gc.disable)()
    assert searched
    assert not any(searched)
