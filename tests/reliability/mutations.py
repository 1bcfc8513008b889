"""Plant faults in the code, one at a time, and see whether the tests catch them.

``python tests/reliability/mutations.py 50 plugins/sigma-training plugins/sigma-run`` changes 50 places below these
paths, each in a copy of the project: a comparison, an operator of arithmetic or logic, a number, or a returned value.

Each planted fault meets the tests of its file's room, if it is in one, then those of ``tests/``; one in the kernel or
a room of ``CUT``, which test each other, those of these rooms too. Peers, browsers and installations are left out; in
each folder, those come first that name the file's module. The first failure ends that. A fault that survives has met
them all. It is printed with its line; the exit code is 0 if none survives but those of ``EQUIVALENT``, else 1.
``SEED`` chooses other places.

A fault that is caught takes about two minutes of one processor, and one that survives as long as all of these tests.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
APART = ("test_architecture.py", "test_house.py", "test_cut.py", "test_changed.py")  # these read the code as text
CUT = ("sigma-step", "sigma-training", "sigma-store", "sigma-run")  # rooms that were part of the kernel
ELSEWHERE = {"peers", "browser", "installs", "downstream"}
LONGEST = 3600  # seconds; all tests of a fault that survives take less than half of that
EQUIVALENT: dict[str, str] = {}  # survivors that change nothing that a test could see, as they are printed: the reason
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Change one place of a module after the other, in place; yield its line and what was changed to what."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp):
            yield from _swapped(node, line)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            node.value += 1
            yield line, f"{node.value - 1} -> {node.value}"
            node.value -= 1
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            value, node.value = node.value, ast.Constant(None)
            yield line, f"return {ast.unparse(value)[:60]} -> return None"
            node.value = value


def _swapped(node: ast.Compare | ast.BinOp | ast.BoolOp, line: int) -> Iterator[tuple[int, str]]:
    before = node.ops[0] if isinstance(node, ast.Compare) else node.op
    if type(before) not in SWAPS:
        return
    after = SWAPS[type(before)]()
    _put(node, after)
    yield line, f"{type(before).__name__} -> {type(after).__name__}"
    _put(node, before)


def _put(node: ast.Compare | ast.BinOp | ast.BoolOp, operator: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = operator  # type: ignore[call-overload]
    else:
        node.op = operator  # type: ignore[assignment]


def chosen(paths: list[Path], count: int, seed: int) -> list[tuple[Path, int]]:
    """Return places to change: files, with the numbers of their mutants; the same for the same seed."""
    sources = [file for path in paths for file in sorted(path.rglob("*.py")) if "tests" not in file.parts]
    places = [(file, n) for file in sources for n, _ in enumerate(mutants(ast.parse(file.read_text("utf-8"))))]
    return random.Random(seed).sample(places, min(count, len(places)))


def changed(file: Path, number: int, root: Path) -> tuple[str, str]:
    """Return a module's text with one mutant, and what that is: file, line of code (not its number), and change."""
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    for n, (line, what) in enumerate(mutants(tree)):
        if n == number:
            return ast.unparse(tree), f"{file.relative_to(root)}: {text.splitlines()[line - 1].strip()}: {what}"
    raise IndexError(number)


def select_tests(file: Path, copy: Path) -> list[str]:
    """Return the test files to run: the room's own, then those of others, in each folder that name the module first."""
    room = next((copy / "plugins" / part for part in file.parts if part.startswith("sigma-")), None)
    module = file.relative_to(copy).with_suffix("").as_posix().rpartition("sigma_")[2].replace("/", ".")
    names = re.compile(rf"\b{re.escape(module)}\b|\b{re.escape(module.rpartition('.')[2])}\b")
    tests = []
    others = [copy / "plugins" / name for name in CUT] if room is None or room.name in CUT else []
    for folder in dict.fromkeys(one / "tests" for one in (room or copy, copy, *others)):
        files = sorted(folder.rglob("test_*.py"))
        files = [test for test in files if test.name not in APART and not ELSEWHERE & {*test.parts}]
        tests += sorted(files, key=lambda test: not names.search(test.read_text("utf-8")))
    return [str(test) for test in tests]


def copy_project(copy: Path) -> Path:
    """Copy the files of the project that git knows or would add; raise SystemExit if its tests cannot be collected."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    if failed := catch(copy, ["--collect-only", "--ignore-glob=*/peers", "tests"]):
        sys.exit(f"{failed}: fails without a planted fault. Install the default set, and what its tests need.")
    return copy


def catch(copy: Path, tests: list[str]) -> str:
    """Return the first test that fails, or does not end, in a copy of the project; empty if all pass."""
    rooms = [str(path) for path in copy.glob("plugins/*") if path.is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), *rooms]), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "not installs and not browser"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return f"a test that does not end: all had taken {LONGEST} s"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return "" if done.returncode == 0 else failed[1] if failed else "the collection of tests"


def main(count: int, *paths: str) -> int:
    """Plant the faults, and print what becomes of each; return 1 if any survives that is not known as equivalent."""
    survivors, equivalent = list[str](), list[str]()
    with TemporaryDirectory() as folder:
        copy = copy_project(Path(folder) / "sigma")
        places = chosen([copy / path for path in paths], count, int(os.environ.get("SEED", "1")))
        for file, number in places:
            (text, what), original = changed(file, number, copy), file.read_text("utf-8")
            file.write_text(text, "utf-8")
            caught = catch(copy, select_tests(file, copy))
            file.write_text(original, "utf-8")
            if not caught:
                (equivalent if what in EQUIVALENT else survivors).append(what)
            print(f"{what}: {f'caught by {caught}' if caught else EQUIVALENT.get(what, 'SURVIVES')}", flush=True)
    caught_all = len(places) - len(survivors) - len(equivalent)
    print(f"{caught_all} of {len(places)} are caught, {len(equivalent)} are equivalent, {len(survivors)} survive")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
