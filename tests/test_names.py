"""The names of functions (verb and noun, not one participle or one function word) and of locals (what they hold)."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "sigma_kernel", *sorted(ROOT.glob("plugins/sigma-*/sigma_*/"))]
TERMS = {line for line in (Path(__file__).with_name("terms.txt")).read_text().splitlines() if not line.startswith("#")}
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"}  # and nouns, which end in -ed
WORDS = re.compile(r"\w+")
PARTICIPLES = set(  # which do not end in -ed
    WORDS.findall(
        """
        asked begun built chosen done drawn found given held kept known left made said seen sent shown taken thrown told
        worn written
        """
    )
)
FUNCTION_WORDS = set(
    WORDS.findall(
        """
        about above abroad across after again against ahead all alone along also always among any apart around as aside
        at away back because before behind below beneath beside besides between beyond both by down during each else
        elsewhere even ever every exactly except far few first for from hence here how if in inside instead into its
        just last later least less many mine more most much near never next no none not now of off often old on once one
        only onto or other others ours out outside over own plain rest same several since so some soon still such than
        that theirs them then there these thing this those through throughout thus to together too toward under unless
        until up upon via way well what when where whether which while who whole whose why with within without yet
        """
    )
)

VAGUE = {"found", "known", "made", "one", "told"}  # names of locals that do not say what these hold


def is_participle(name: str) -> bool:
    return name in PARTICIPLES or ("_" not in name and name.endswith("ed") and len(name) > 4 and name not in VERBS)


def functions(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def functions_by_package() -> dict[str, list[str]]:
    return {package.name: [n for path in package.rglob("*.py") for n in functions(path)] for package in PACKAGES}


def is_bad(name: str) -> bool:
    """Return whether a name is one participle or one function word, and no term."""
    word = name.strip("_")
    return name not in TERMS and not name.startswith("__") and (is_participle(word) or word in FUNCTION_WORDS)


def test_names_of_functions_are_no_participles_or_function_words():
    assert [f"{package}: {n}" for package, names in functions_by_package().items() for n in names if is_bad(n)] == []


def test_terms_are_names_of_functions_that_would_be_found_without_them():
    assert TERMS - {name for names in functions_by_package().values() for name in names} == set()
    assert {term for term in TERMS if not is_participle(term) and term.strip("_") not in FUNCTION_WORDS} == set()


def vague_locals(path: Path) -> list[str]:
    """Return the vague names of each function's locals, those of nested functions and comprehensions included."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    stored = [{n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} for f in nodes]
    return sorted(name for names in stored for name in names & VAGUE)


def test_locals_are_named_by_what_they_hold():
    vague = {path: vague_locals(path) for package in PACKAGES for path in package.rglob("*.py")}
    assert {str(path): names for path, names in vague.items() if names} == {}


def test_a_vague_name_of_a_local_is_found(tmp_path):
    (tmp_path / "own.py").write_text(
        "def f(xs):\n    found = [one for one in xs]\n    def g():\n        made = found\n    return lambda known: 1"
    )
    assert vague_locals(tmp_path / "own.py") == ["found", "made", "made", "one"]


@pytest.mark.parametrize(
    ("source", "bad"),
    [
        ("def compared(): ...", ["compared"]),
        ("def _kept(): ...", ["_kept"]),
        ("def within(): ...", ["within"]),
        ("class A:\n    @property\n    def written(self): ...", ["written"]),
        ("async def f():\n    def within(): ...", ["within"]),
        ("async def told(): ...", ["told"]),
        ("def measured_values(): ...", []),
        ("def seed(): ...\ndef feed(): ...\ndef red(): ...", []),
        ("def learned(): ...\ndef _learned(): ...", ["_learned"]),  # a term, but not where it is private
        ("class A:\n    def __next__(self): ...", []),
    ],
)
def test_a_name_that_is_a_participle_or_function_word_is_found(source, bad, tmp_path):
    (tmp_path / "own.py").write_text(source)
    assert [name for name in functions(tmp_path / "own.py") if is_bad(name)] == bad
