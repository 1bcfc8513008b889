"""The files of a run folder are named where they are written, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = ROOT / "plugins" / "sigma-store"
DAMAGING = {"checkpoints.py", "journals.py"}  # of sigma_testing: they write run folders with given contents
INNER = re.compile(
    r"journal\.jsonl|media\.jsonl|curves\.bin|metrics\.jsonl|\bcheckpoints/|state\.safetensors|manifest\.(json|sha256)|^\.lock$"
)
INSIDE = re.compile(
    # their modules, and their names
    r"sigma_store\.(appending|chain|checkpoints|curves_file|excerpt|journal|levels|media_file|older|slots)\b"
    r"|from sigma_store\.folders import [^\n]*\b(CONFIG|JOURNAL|CURVES|OLDER_METRICS|CHECKPOINTS|LOCK|MEDIA)\b"
)


def strings(path: Path) -> list[str]:
    """Return the texts in a module, but docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def breaches(path: Path) -> list[str]:
    """Return what a module says of the files of a run folder."""
    imports = INSIDE.search(path.read_text("utf-8"))
    return [*filter(INNER.search, strings(path)), *([imports[0]] if imports else [])]


def test_only_the_store_of_run_folders_names_their_files():
    sources = [ROOT / "sigma_kernel", *ROOT.glob("plugins/sigma-*/sigma_*"), ROOT / "docs" / "figures"]
    paths = [path for source in sources for path in source.rglob("*.py") if OWN not in path.parents]
    assert len(paths) > 500
    found = {path: breaches(path) for path in paths if not ("sigma_testing" in path.parts and path.name in DAMAGING)}
    assert {path: texts for path, texts in found.items() if texts} == {}


def test_a_breach_is_found(tmp_path: Path):
    path = tmp_path / "bad.py"
    path.write_text('"""Read journal.jsonl."""\nfrom sigma_store.chain import read\nx = "a/journal.jsonl"\n')
    assert breaches(path) == ["a/journal.jsonl", "sigma_store.chain"]
    path.write_text("from sigma_store.folders import CONFIG, is_locked\n")
    assert breaches(path) == ["from sigma_store.folders import CONFIG"]
    path.write_text("from sigma_store.folders import is_locked\n")
    assert breaches(path) == []
    path.write_text('"""Read journal.jsonl."""\n\n\ndef f():\n    """Read checkpoints/1."""\n')
    assert breaches(path) == []
