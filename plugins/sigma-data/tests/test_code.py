"""Hashes of code: what a class runs of its own package, of what that imports, and of what was typed in."""

from __future__ import annotations

import linecache
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from sigma_data.encoders.number import NumberEncoder
from sigma_data.prepared import code
from sigma_data.prepared.code import hash_code, hash_package

ENCODER = """
from functools import lru_cache
from units import metres

class Doubled:
    def apply(self):
        from rates import percent
        return metres(2) * percent(3)
"""
HELPERS = {
    "own.py": ENCODER,
    "units.py": "import lengths.long\ndef metres(x): return lengths.long.FOOT * x",
    "rates.py": "def percent(x): return x / 100",
    "lengths/__init__.py": "",
    "lengths/long.py": "FOOT = 0.3048",
    "lengths/short.py": "INCH = 0.0254",
    "other.py": "X = 1",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lengths").mkdir()
    for name, text in HELPERS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("own", "units", "rates", "lengths", "lengths.long", "lengths.short", "other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def hash_anew(home: Path) -> str:
    """Return the hash that a process computes that starts now."""
    code._hash_imports.cache_clear()
    invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("own", "units", "rates", "lengths")]:
        del sys.modules[name]
    return hash_code(import_module("own").Doubled)


@pytest.mark.parametrize("changed", ["own.py", "units.py", "rates.py", "lengths/long.py", "lengths/short.py"])
def test_a_change_of_a_module_or_of_one_that_it_imports_changes_the_hash(home: Path, changed: str) -> None:
    before = hash_anew(home)
    assert hash_anew(home) == before
    (home / "other.py").write_text("X = 2")
    assert hash_anew(home) == before  # nothing imports it
    (home / changed).write_text(HELPERS[changed] + "\n# changed")
    assert hash_anew(home) != before


def test_an_import_in_a_circle_or_of_nothing_ends(home: Path) -> None:
    (home / "rates.py").write_text("import own\nimport missing_altogether\nfrom . import x\ndef percent(x): return x")
    (home / "lengths" / "short.py").write_text("this is no Python")
    assert hash_anew(home) == hash_anew(home)


def test_of_an_installed_package_the_version_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "rates.py").write_text("import scipy.stats\nimport PIL\nfrom json import dumps\ndef percent(x): return x")
    before = hash_anew(home)
    real, read = code._read_version, []

    def read_version(name: str) -> str:
        read.append(name)
        return real(name)

    monkeypatch.setattr(code, "_read_version", read_version)
    assert hash_anew(home) == before
    assert sorted(read) == ["PIL", "scipy"]
    assert all(real(name)[0].isdigit() for name in read)
    monkeypatch.setattr(code, "_read_version", lambda name: real(name) + "+1")
    assert hash_anew(home) != before


def test_an_encoder_of_this_package_has_the_hash_of_the_package() -> None:
    assert hash_code(NumberEncoder) == hash_code(NumberEncoder)
    assert hash_package("sigma_data") == hash_package("sigma_data")


# -- what was typed in -------------------------------------------------------------------------------------------------
TYPED = """
from functools import lru_cache
from units import metres

FACTOR = [1, 2.5]

@lru_cache
def scale(x): return x * FACTOR[0]

def unused(x): return x

class Base:
    offset = 1

class Doubled(Base):
    def apply(self, x): return metres(scale(x)) + self.offset
"""


def type_in(text: str, monkeypatch: pytest.MonkeyPatch) -> type:
    """Return the class that a notebook holds after this text was typed in."""
    file = "<typed in>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    main = type(sys)("__main__")
    main.__file__ = file
    monkeypatch.setitem(sys.modules, "__main__", main)
    code._hash_imports.cache_clear()
    exec(compile(text, file, "exec"), vars(main))
    return main.Doubled


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("return x\n", "return 2 * x\n", True),
        ("+ self.offset", "- self.offset", False),
        ("offset = 1", "offset = 2", False),
        ("return x * FACTOR[0]", "return x + FACTOR[0]", False),
        ("[1, 2.5]", "[1, 3.5]", False),
    ],
)
def test_of_a_class_that_was_typed_in_all_that_it_names_counts(home, monkeypatch, old, new, same) -> None:
    before = hash_code(type_in(TYPED, monkeypatch))
    assert hash_code(type_in(TYPED, monkeypatch)) == before
    assert (hash_code(type_in(TYPED.replace(old, new), monkeypatch)) == before) is same
    (home / "units.py").write_text("def metres(x): return 2 * x")
    assert hash_code(type_in(TYPED, monkeypatch)) != before


@pytest.mark.parametrize("value", ["Base()", "[lambda x: x]", "__import__('threading').Lock()", "(x for x in ())"])
def test_where_the_source_of_what_is_named_is_unknown_the_hash_is_another_one_each_time(home, monkeypatch, value):
    text = TYPED.replace("class Doubled", f"HELD = {value}\n\nclass Doubled").replace("+ self", "+ HELD + self")
    typed = type_in(text, monkeypatch)
    assert hash_code(typed) != hash_code(typed)


RULES = """
def scale(x): return x * 2

class Rule:
    class Inner: pass
    def __init__(self, size): self.size = size
    def apply(self, x): return x * 2
"""


@pytest.mark.parametrize("module", ["rules", "helpers.rules"])
@pytest.mark.parametrize(
    "value",
    [
        '{"x": rules.scale}',
        "partial(rules.scale, 2)",
        "rules.Rule(3)",
        "[(rules.Rule.Inner(),)]",
        "rules.Rule(3).apply",
    ],
)
def test_of_what_a_value_refers_to_the_package_counts(home, monkeypatch, module, value) -> None:
    file = home / f"{module.replace('.', '/')}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(RULES)
    for name in ("helpers", "helpers.rules", "rules"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    text = TYPED.replace(
        "class Doubled", f"import {module} as rules\nfrom functools import partial\nHELD = {value}\n\nclass Doubled"
    )
    text = text.replace("+ self", "+ HELD + self")
    before = hash_code(type_in(text, monkeypatch))
    assert hash_code(type_in(text, monkeypatch)) == before
    file.write_text(RULES.replace("x * 2", "x * 3"))
    assert hash_code(type_in(text, monkeypatch)) != before


def test_of_an_installed_package_that_a_value_refers_to_the_version_counts(home, monkeypatch) -> None:
    text = TYPED.replace("[1, 2.5]", "__import__('numpy').arange(3)")
    before = hash_code(type_in(text, monkeypatch))
    assert hash_code(type_in(text, monkeypatch)) == before
    assert "numpy" not in code._collect_typed(type_in(text, monkeypatch))[1]
    real = code._read_version
    monkeypatch.setattr(code, "_read_version", lambda name: real(name) + "+1" * (name == "numpy"))
    assert hash_code(type_in(text, monkeypatch)) != before


@pytest.mark.parametrize("form", ["{}", "frozenset({})", "[(1, {})]", "{{'a': {}, 'b': 2}}", "{{frozenset({}): 1}}"])
def test_the_order_within_a_set_does_not_count(home, monkeypatch, form) -> None:
    assert [*{0, 8}] != [*{8, 0}]  # so that the second one stands for a process with another seed of hashes

    def hash_with(value: str) -> str:
        return hash_code(type_in(TYPED.replace("[1, 2.5]", form.format(value)), monkeypatch))

    assert hash_with("{0, 8}") == hash_with("{8, 0}")
    assert len({hash_with(value) for value in ("{0, 8}", "{0, 9}", "{0}", "(0, 8)")}) == (
        3 if "frozenset" in form else 4
    )
