"""The suites on the pages of docs/literature pass: each page is a module of tests, its files with captions a plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.rooms
ROOT = Path(__file__).parents[1]
PAGES = [path for path in sorted((ROOT / "docs/literature").glob("*.md")) if path.stem != "index"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```\{code-block\} python\n:caption: (\S+\.py)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_page(page: Path, folder: Path) -> Path:
    """Write a page's blocks as one module of tests, and its files as an installed distribution; return the module."""
    text, module = page.read_text("utf-8"), folder / f"test_{page.stem}.py"
    module.write_text("\n\n".join(BLOCK.findall(text)), "utf-8")
    for name, content in FILE.findall(text):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf-8")
        if Path(name).name == "plugin.py":
            install_plugin(folder, Path(name).parent.name)
    return module


def install_plugin(folder: Path, package: str) -> None:
    """Write the metadata of a distribution whose plugin is ``package.plugin``."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    distribution = package.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[sigma_kernel.plugins]\n{package} = {package}.plugin\n")


def run_module(module: Path) -> list[ElementTree.Element]:
    """Run the tests of a module in a process of their own; return their cases."""
    folder = module.parent
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "numba")}
    environment.pop("SIGMA_CONTROL", None)  # as on other pages: examples may steer what they train
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", folder,
         "--junit-xml", "report.xml", module.name],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return list(ElementTree.parse(folder / "report.xml").iter("testcase"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_suites_of_a_page_pass(page, tmp_path):
    module = write_page(page, tmp_path)
    suites = set(re.findall(r"^class (\w+)\(\w*(?:Suite|Test\w+)\):$", module.read_text("utf-8"), re.MULTILINE))
    cases = [case for case in run_module(module) if case.find("skipped") is None]
    assert {case.get("classname", "").rpartition(".")[2] for case in cases} == suites


FAULTY = """
```python
from sigma_kernel import functions as f
from sigma_testing import ActivationSuite


class TestSquare(ActivationSuite):
    def make(self):
        return f.square

    def expected(self, x):
        return 2.0 * x
```
"""


@pytest.mark.rooms
def test_a_suite_that_fails_on_a_page_is_found(tmp_path):
    page = tmp_path / "faulty.md"
    page.write_text(FAULTY)
    with pytest.raises(AssertionError, match="TestSquare.test_it_is_what_others_compute"):
        run_module(write_page(page, tmp_path))
