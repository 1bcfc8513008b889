"""Plant faults in the code, one at a time, and see whether the tests catch them.

``python tests/reliability/mutations.py 50 sigma_kernel/training plugins/sigma-run`` changes 50 places below these
paths, each in a copy of the project: a comparison, an operator of arithmetic or logic, a number, or a returned value.
The tests of the file's room run, then those that cross rooms, the ones that import the file's module first, until one
fails. What survives is printed, and is the exit code. ``SEED`` chooses other places.
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


def changed(file: Path, number: int) -> tuple[str, str]:
    """Return a module's text with one mutant, and what that is."""
    tree = ast.parse(file.read_text("utf-8"))
    for n, (line, what) in enumerate(mutants(tree)):
        if n == number:
            return ast.unparse(tree), f"{file.relative_to(ROOT)}:{line}: {what}"
    raise IndexError(number)


def tests_for(file: Path, copy: Path) -> list[str]:
    """Return the test files to run, those that name the module first."""
    room = next((copy / "plugins" / part for part in file.parts if part.startswith("sigma-")), None)
    files = [*(sorted((room / "tests").rglob("test_*.py")) if room else []), *sorted(copy.glob("tests/**/test_*.py"))]
    wanted = [
        one
        for one in files
        if one.name not in APART and not {"peers", "browser", "installs", "downstream"} & {*one.parts}
    ]
    module = file.relative_to(ROOT).with_suffix("").as_posix().rpartition("sigma_")[2].replace("/", ".")
    named = re.compile(rf"\b{re.escape(module)}\b|\b{re.escape(module.rpartition('.')[2])}\b")
    return [str(one) for one in sorted(wanted, key=lambda one: not named.search(one.read_text("utf-8")))]


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
    """Return the first test that fails in a copy of the project; empty if none does."""
    rooms = [str(path) for path in copy.glob("plugins/*") if path.is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), *rooms]), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "not installs and not browser"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=copy, env=environment, capture_output=True, text=True
    )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return "" if done.returncode == 0 else failed[1] if failed else "the collection of tests"


def main(count: int, *paths: str) -> int:
    """Plant the faults, print what becomes of each, and return how many survive."""
    survivors = 0
    with TemporaryDirectory() as folder:
        copy = copy_project(Path(folder) / "sigma")
        for file, number in chosen([ROOT / path for path in paths], count, int(os.environ.get("SEED", "1"))):
            text, what = changed(file, number)
            target, original = copy / file.relative_to(ROOT), file.read_text("utf-8")
            target.write_text(text, "utf-8")
            caught = catch(copy, tests_for(file, copy))
            target.write_text(original, "utf-8")
            survivors += not caught
            print(f"{what}: {f'caught by {caught}' if caught else 'SURVIVES'}", flush=True)
    print(f"{survivors} of {count} survive")
    return survivors


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
