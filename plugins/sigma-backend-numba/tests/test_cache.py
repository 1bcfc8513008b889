"""Programs on disk: a second process finds them, never trusts those of others, and never depends on them."""

from __future__ import annotations

import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import files, lookup, units
from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.compiler.machine_code import translate_unit
from sigma_backend_numba.compiler.units import ProgramText
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, interpret, numpy_namespace, symbol

CODE = """
import sys
import numpy as np
from sigma_backend_numba import NumbaBackend
from sigma_kernel.graph import Graph, symbol
x = symbol((17,))
for factor in map(float, sys.argv[1:]):
    print(float(NumbaBackend().lower(Graph((x,), (x * factor + 1.0,)), {})(np.ones(17, "f4"))[0].sum()))
print(int("sigma_backend_numba.compiler.translate" in sys.modules))
"""
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX owners, modes and links")
ROOT = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
UNUSABLE = "the cache of compiled programs cannot be used"


@pytest.fixture(autouse=True)
def _nothing_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_warned", [])


def process(folder: Path, *factors: float, before: Callable[[], None] | None = None, **variables: str) -> list[str]:
    """Compile programs in another process; return their results, whether it compiled, and its number of warnings."""
    environment = {**os.environ, files.VARIABLE: str(folder), **variables}
    environment = {name: value for name, value in environment.items() if value != "unset"}
    command = [sys.executable, "-c", CODE, *map(str, factors or (3.25,))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, preexec_fn=before)
    said = done.stderr.count(UNUSABLE)
    assert len(done.stderr.splitlines()) == said, done.stderr
    return [*done.stdout.split(), *["warned"] * said]


def result(factor: float) -> list[float]:
    x = symbol((3,))
    return NumbaBackend().lower(Graph((x,), (x * factor,)), {})(np.ones(3, "f4"))[0].tolist()


def programs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("sigma_*.o"))


def is_used(folder: Path) -> bool:
    """Return whether a second process finds the programs of a first one."""
    return [process(folder)[1:], process(folder)[1:]] == [["1"], ["0"]]


def test_a_second_process_loads_the_compiled_program(tmp_path):
    folder = tmp_path / "programs"
    assert process(folder) == ["72.25", "1"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert process(folder) == ["72.25", "0"]


def test_renamed_cached_programs_are_compiled_again_and_not_run(tmp_path):
    folder = tmp_path / "programs"
    assert process(folder, 3.25, 5.25) == ["72.25", "106.25", "1"]
    one, other = programs_in(folder)
    held = one.read_bytes(), other.read_bytes()
    other.write_bytes(held[0])
    one.write_bytes(held[1])
    assert process(folder, 3.25, 5.25) == ["72.25", "106.25", "1"]
    assert (one.read_bytes(), other.read_bytes()) == held
    assert process(folder, 3.25, 5.25) == ["72.25", "106.25", "0"]


def test_a_cached_program_with_a_changed_byte_is_not_run(programs):
    result(7.125)
    path = max(programs_in(programs), key=lambda path: path.stat().st_mtime_ns)
    held = path.read_bytes()
    for at in [*range(0, len(held), max(1, len(held) // 50)), len(held) - 1]:
        path.write_bytes(held[:at] + bytes([held[at] ^ 1]) + held[at + 1 :])
        assert files.read(path.name) is None, at
    path.write_bytes(held)
    assert files.read(path.name) == held[files.DIGEST :]


@pytest.mark.long_cases("-1", "1", "31", "32", "33")
@pytest.mark.parametrize("left", [0, 1, files.DIGEST - 1, files.DIGEST, files.DIGEST + 1, -1])
def test_a_truncated_cached_program_is_compiled_again(left, tmp_path):
    folder = tmp_path / "programs"
    process(folder)
    (path,) = programs_in(folder)
    path.write_bytes(path.read_bytes()[:left])
    assert process(folder) == ["72.25", "1"]
    assert process(folder) == ["72.25", "0"]


def a_link(path: Path, elsewhere: Path) -> None:
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def given_away(path: Path, elsewhere: Path) -> None:
    os.chown(path, 65534, 65534)


@pytest.mark.long_cases("a link to itself", "a pipe", "another user's", "open to others")
@POSIX
@pytest.mark.parametrize(
    "done",
    [
        a_link,
        lambda path, elsewhere: (path.unlink(), path.symlink_to(path)),
        lambda path, elsewhere: (path.unlink(), os.mkfifo(path)),
        lambda path, elsewhere: path.chmod(0o666),
        pytest.param(given_away, marks=ROOT),
    ],
    ids=["a link to it", "a link to itself", "a pipe", "open to others", "another user's"],
)
def test_a_cached_program_of_another_user_is_replaced_and_not_run(done, tmp_path):
    folder, elsewhere = tmp_path / "programs", tmp_path / "elsewhere"
    process(folder)
    (path,) = programs_in(folder)
    done(path, elsewhere)
    assert process(folder) == ["72.25", "1"]
    assert process(folder) == ["72.25", "0"]
    assert path.is_file()
    assert not path.is_symlink()


@POSIX
def test_a_folder_in_place_of_a_cached_program_does_not_prevent_compiling(tmp_path):
    folder = tmp_path / "programs"
    process(folder)
    (path,) = programs_in(folder)
    path.unlink()
    path.mkdir()
    assert process(folder) == ["72.25", "1", "warned"]


def test_a_file_in_place_of_the_cache_does_not_prevent_compiling(tmp_path, monkeypatch, caplog):
    path = tmp_path / "file"
    path.write_text("")
    monkeypatch.setenv(files.VARIABLE, str(path))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        assert result(1.625) == [1.625] * 3
        assert result(1.6875) == [1.6875] * 3
    assert caplog.text.count(UNUSABLE) == 1


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o701, 0o1777])
def test_a_cache_that_others_can_open_is_not_used(mode, tmp_path, monkeypatch, caplog):
    tmp_path.chmod(mode)
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        factor = 1.75 + mode / 2**20
        assert result(factor) == pytest.approx([factor] * 3)
    assert "open to others; make it your own with mode 700" in caplog.text
    assert not list(tmp_path.iterdir())


@POSIX
@ROOT
def test_a_cache_owned_or_linked_by_another_user_is_not_used(tmp_path):
    folder, link = tmp_path / "programs", tmp_path / "link"
    assert is_used(folder)
    link.symlink_to(folder)
    assert process(link) == ["72.25", "0"]
    os.chown(link, 65534, 65534, follow_symlinks=False)
    assert process(link) == ["72.25", "1", "warned"]
    os.chown(folder, 65534, 65534)
    assert process(folder) == ["72.25", "1", "warned"]


@POSIX
def test_a_private_cache_below_a_world_writable_folder_is_used(tmp_path):
    tmp_path.chmod(0o1777)
    assert is_used(tmp_path / "programs")


@POSIX
def test_an_unwritable_cache_gives_one_warning(tmp_path, monkeypatch, caplog):
    def refuse(name, flags, *rest, **more):
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system", name)
        return opened(name, flags, *rest, **more)

    opened = os.open
    tmp_path.chmod(0o700)
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(files.os, "open", refuse)
    monkeypatch.setattr(files.os, "supports_dir_fd", {refuse})
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        assert [result(1.8125), result(1.84375)] == [[1.8125] * 3, [1.84375] * 3]
    assert caplog.text.count(UNUSABLE) == caplog.text.count("Read-only file system") == 1


@POSIX
def test_a_full_disk_gives_one_warning_and_leaves_no_file(tmp_path):
    resource = pytest.importorskip("resource", reason="needs POSIX resource limits")
    folder = tmp_path / "programs"

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    assert process(folder, 3.25, 5.25, before=full) == ["72.25", "106.25", "1", "warned"]
    assert list(folder.iterdir()) == []


@pytest.mark.long
@POSIX
def test_the_cache_directory_is_below_the_users_cache_directory(tmp_path):
    home = tmp_path / "home"
    own = {"HOME": str(home), files.VARIABLE: "", "XDG_CACHE_HOME": "unset"}
    assert process(tmp_path, **own) == ["72.25", "1"]
    assert process(tmp_path, **{**own, "XDG_CACHE_HOME": ""}) == ["72.25", "0"]
    assert process(tmp_path, **{**own, "XDG_CACHE_HOME": "a/relative/path"}) == ["72.25", "0"]
    assert process(tmp_path, **{**own, "XDG_CACHE_HOME": str(tmp_path / "xdg")}) == ["72.25", "1"]
    assert programs_in(home / ".cache" / "sigma" / "numba")
    assert programs_in(tmp_path / "xdg" / "sigma" / "numba")


def test_a_user_without_a_home_directory_gets_one_warning(monkeypatch, caplog):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(files.VARIABLE)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        assert [result(1.90625), result(1.921875)] == [[1.90625] * 3, [1.921875] * 3]
    assert caplog.text.count("Could not determine home directory") == caplog.text.count(UNUSABLE) == 1


WRITER = """
import sys
from sigma_backend_numba.cache import files
for turn in range(300):
    found = files.read("sigma_shared.o")
    assert found is None or (len(found) == 100_000 and len(set(found)) == 1), "a part of it was read"
    files.write("sigma_shared.o", bytes([turn % 256]) * 100_000)
"""


def test_concurrent_processes_only_read_complete_files(tmp_path):
    environment = {**os.environ, files.VARIABLE: str(tmp_path / "programs")}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER], env=environment, stderr=subprocess.PIPE) for _ in range(3)
    ]
    assert [writer.communicate()[1] for writer in writers] == [b""] * 3
    assert [writer.returncode for writer in writers] == [0] * 3
    assert [path.name for path in (tmp_path / "programs").iterdir()] == ["sigma_shared.o"]


def test_equal_graphs_are_compiled_once(programs):
    result(2.125)
    before = len(list(programs.glob("*.o")))
    result(2.125)
    assert len(list(programs.glob("*.o"))) == before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    return tmp_path


def test_files_that_were_not_used_for_longest_are_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = {"sigma_a.o": 4, "unit_b.o": 3, "sigma_c.o.0.new": 2, "unit_d.o": 1}
    for name, age in days.items():
        files.write(name, bytes(1000 - files.DIGEST))
        os.utime(folder / name, (time.time() - 86_400 * age,) * 2)
    (folder / "other").write_bytes(bytes(9000))
    assert files.read("sigma_a.o") is not None  # which is a use
    monkeypatch.setattr(files, "LIMIT", 2999)
    files.prune()
    assert {path.name for path in folder.iterdir()} == {"sigma_a.o", "unit_d.o", "other"}
    monkeypatch.setattr(files, "LIMIT", 0)
    files.prune()
    assert [path.name for path in folder.iterdir()] == ["other"]


def test_a_program_is_pruned_after_it_was_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LIMIT", 0)
    assert result(3.125) == [3.125] * 3
    assert not list(folder.iterdir())


def units_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.glob("unit_*.o")}


def dense(*widths: int, rows: int = 32) -> list[np.ndarray]:
    """Compile and run a chain of layers; return its results."""
    values, nodes = [], []
    for i, shape in enumerate([(rows, widths[0]), *pairwise(widths)]):
        values.append((np.arange(np.prod(shape)).reshape(shape) % (7 + i) - 3).astype(np.float32) / 8)
        nodes.append(symbol(shape))
    out = nodes[0]
    for weights in nodes[1:]:
        out = f.tanh(out @ weights)
    graph = Graph(tuple(nodes), (out, f.sum(out)))
    lookup._loaded.clear()
    results = [*NumbaBackend(threads=1).lower(graph, {})(*values)]
    for found, wanted in zip(results, interpret(graph, numpy_namespace())(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return results


def test_a_second_network_shares_the_units_that_are_equal(folder: Path) -> None:
    dense(40, 24, 24, 8)
    first = units_in(folder)
    dense(40, 24, 24, 24, 8)
    assert units_in(folder) == first  # only its burst is new
    dense(40, 24, 24, 9)
    assert len(units_in(folder)) - len(first) == 2  # the last product, and the sum behind it
    assert len(programs_in(folder)) == 3


def test_units_of_the_cache_give_the_same_bits(folder: Path) -> None:
    dense(40, 24, 24, 8)
    shared = dense(40, 24, 24, 24, 8)
    for path in folder.iterdir():
        path.unlink()
    for mine, fresh in zip(shared, dense(40, 24, 24, 24, 8), strict=True):
        np.testing.assert_array_equal(mine, fresh)


@pytest.mark.parametrize("damage", [lambda x: x[:-1], lambda x: b"", lambda x: x[:40] + b"?" + x[41:], None])
def test_a_damaged_or_missing_unit_is_compiled_again(folder: Path, damage: Callable[[bytes], bytes] | None) -> None:
    before, held = dense(40, 24, 24, 8), {}
    held = units_in(folder)
    for path, content in held.items():
        path.unlink() if damage is None else path.write_bytes(damage(content))
    programs_in(folder)[0].unlink()
    for mine, again in zip(before, dense(40, 24, 24, 8), strict=True):
        np.testing.assert_array_equal(mine, again)
    assert units_in(folder) == held


def test_a_renamed_unit_is_not_used(folder: Path) -> None:
    before = dense(40, 24, 24, 8)
    held = units_in(folder)
    for path, other in zip(held, [*held][1:] + [*held][:1], strict=True):
        path.write_bytes(held[other])
    programs_in(folder)[0].unlink()
    for mine, again in zip(before, dense(40, 24, 24, 8), strict=True):
        np.testing.assert_array_equal(mine, again)
    assert units_in(folder) == held


TEXT = """def task0(x, n):
    x[n] = {number}


def task{name}(x, {last}):
    task0(x, {last})
    task0(x, {last} + 1)


def burst(table, n, t, T):
    tab = as_i8(table)
    task{name}({kind}(tab[0]), {argument})
    return 0
"""


def symbols(
    number: int = 1, name: int = 1, kind: str = "as_i8", argument: str = "3", about: str = "", last: str = "n"
) -> set[str]:
    """Return the symbols of a program's units."""
    text = TEXT.format(number=number, name=name, kind=kind, argument=argument, last=last)
    source, found = ProgramText(text, lookup._names(text), about), set[str]()
    waiting = [source.burst]
    while waiting:
        _, called = translate_unit(source, waiting.pop())
        found |= {unit.symbol for unit in called}
        waiting += called
    return found


@pytest.mark.parametrize("other", [{"number": 2}, {"kind": "as_i4"}, {"about": "another processor"}])
def test_what_a_unit_depends_on_is_part_of_its_symbol(other: dict[str, Any]) -> None:
    assert len(symbols()) == 2
    assert not symbols() & symbols(**other)


@pytest.mark.parametrize("argument", ["4", "n", "5000", "-3"])
def test_a_small_number_that_a_unit_is_called_with_is_part_of_its_symbol(argument: str) -> None:
    assert len(symbols() & symbols(argument=argument)) == 1  # what task1 calls


def test_all_large_numbers_share_a_unit() -> None:
    assert symbols(argument="5000") == symbols(argument="9000") == symbols(argument="n")


@pytest.mark.parametrize("argument", ["4", "n", "5000", "-3"])
def test_an_argument_that_is_called_a_number_is_no_part_of_a_units_symbol(argument: str) -> None:
    assert symbols(last="number1") == symbols(last="number1", argument=argument)


def test_the_number_of_a_function_is_no_part_of_its_symbol() -> None:
    assert symbols(name=1) == symbols(name=7)


@pytest.mark.parametrize("part", ["SPEED", "processor", "makers"])
def test_level_processor_and_compiler_are_parts_of_all_symbols(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = units.key("")
    if part == "SPEED":
        monkeypatch.setattr(machine_code, "SPEED", 1)
    else:
        monkeypatch.setattr(units, part, lambda: ("other", "+none") if part == "processor" else "other")
    assert units.key("") != before
    assert units.key("roughly") != units.key("")


def test_a_routine_is_found_again_by_its_module_whoever_calls_it() -> None:
    program = ProgramText("def task0(x):\n    x[0] = 1\n\n\ndef burst(table, n, t, T):\n    return 0\n", {})
    caller = program.unit("task0", None, ("*f4",), (None,))
    routine = importlib.import_module("sigma_backend_numba.runtime.tile_product").lay
    unit = program.unit("lay", routine, ("*f4", "i8"), (None, 3))
    again = program.resolve(caller, json.loads(json.dumps(program.reference(caller, unit))))
    assert (again, again.routine) == (unit, routine)
