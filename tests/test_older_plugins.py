"""Plugins written for an older API, or before its modules moved: they are told the new names and lines."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sigma_kernel import renaming
from sigma_kernel.plugins import discovery, rooms
from sigma_run.launcher import doctor, written
from sigma_run.launcher.group import main
from sigma_run.launcher.written import former_imports

pytestmark = pytest.mark.rooms
SCALE = '"layer", "scale_x", "acme_layers.scale:Scale", "Multiply by one number."'
OLD = """
    from attrs import define
    from sigma_kernel import Layer
    from sigma_kernel.renaming import keep_former_names

    @keep_former_names("1.1", {"run": "forward"})
    @define(eq=False)
    class Base(Layer):
        pass

    @define(eq=False)
    class Scale(Base):
        def run(self, context, x):
            return x * 2.0
"""
SENTENCE = (
    "acme-layers: written for API 1.0: `Base.run` is `Base.forward` since API 1.1 (acme_layers.scale.Scale). "
    "Use the new name, and state SIGMA_API = '1.1'."
)


@pytest.fixture
def api_1_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel have API 1.1."""
    monkeypatch.setattr(renaming, "USES", {})
    monkeypatch.setattr(written, "USES", renaming.USES)
    monkeypatch.setattr(discovery, "API_VERSION", "1.1")
    monkeypatch.setattr(written, "API_VERSION", "1.1")


def plugin_of(document: str, name: str) -> Any:
    return next(plugin for plugin in json.loads(document)["plugins"] if plugin["name"] == name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_list_and_the_doctor_name_what_was_renamed(distribution: Any, capsys: Any, api_1_1: None) -> None:
    plugin = distribution("acme-layers", SCALE, scale=OLD, requires=["sigma-kernel", "attrs"])
    assert (plugin.api, plugin.is_older, plugin.warning) == ("1.0", True, "")
    assert (doctor.problems(plugin), doctor.notes(plugin, [plugin])) == ([], [SENTENCE])
    assert main(["plugins"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("acme-layers ")]
    assert line.endswith(SENTENCE)
    assert main(["plugins", "--json"]) == 0
    assert plugin_of(capsys.readouterr().out, "acme-layers")["api"] == "1.0"


def test_the_list_imports_no_component_of_a_plugin_for_this_api(distribution: Any, capsys: Any) -> None:
    distribution("acme-layers", SCALE, scale="raise SystemExit(3)")
    assert main(["plugins"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("acme-layers ")]
    assert line.endswith("1 component")


MOVED = {
    "from sigma_kernel.testing import LayerSuite, Sample": "`from sigma_testing import LayerSuite, Sample`",
    "from sigma_kernel import load, Layer": "`from sigma_run import load`, `from sigma_kernel import Layer`",
    "from sigma_kernel import History as Curves": "`from sigma_training import History as Curves`",
    "from sigma_kernel.errors import near": "`from sigma_kernel.errors import suggest_name as near`",
    "import sigma_kernel.config as config": "`import sigma_run.config as config`",
}


@pytest.mark.parametrize("line", MOVED)
def test_an_import_of_what_has_moved_is_told_the_present_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "gate.py"
    file.write_text(f'"""Gates."""\n\n{line}\n')
    assert [*former_imports([file])] == [f"{file}, line 3: write {MOVED[line]} for `{line}`."]


def test_other_imports_and_files_that_are_not_python_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "gate.py"
    for text in ("from sigma_kernel import Layer\nimport sigma_kernel.testimony\nfrom . import near", "1 +"):
        file.write_text(text)
        assert not [*former_imports([file])]


def test_every_moved_name_is_where_the_table_says() -> None:
    for former, now in rooms._read_rooms()["imports"].items():
        module, _, name = now.rpartition(".")
        there = import_module(module or name)
        assert not module or hasattr(there, name) or import_module(now), now
        assert not hasattr(import_module(former.rpartition(".")[0]), former.rpartition(".")[2]), former


def test_a_broken_plugin_is_told_what_has_moved(distribution: Any) -> None:
    text = "from sigma_kernel import Component, hookimpl\nfrom sigma_kernel.config import load_configuration\n"
    plugin = distribution("acme-old", text=text)
    assert plugin.reason.endswith("No module named 'sigma_kernel.config'. `sigma_kernel.config` is `sigma_run.config`")
    assert doctor.problems(plugin)[-1].endswith(
        "plugin.py, line 2: write `from sigma_run.config import load_configuration` "
        "for `from sigma_kernel.config import load_configuration`."
    )


def test_a_component_that_imports_what_has_moved_is_told_its_place(distribution: Any) -> None:
    scale = "from sigma_kernel import Model\n" + dedent(OLD)
    plugin = distribution("acme-layers", SCALE, scale=scale, requires=["sigma-kernel", "attrs"])
    first, last = doctor.problems(plugin)
    assert "`sigma_kernel.Model` is `sigma_step.Model`" in first
    assert last.endswith("line 1: write `from sigma_step import Model` for `from sigma_kernel import Model`.")


def test_the_check_of_a_project_looks_at_its_tests(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_gate.py").write_text("from sigma_kernel.testing import LayerSuite\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "acme-gate"\nversion = "1"\ndescription = "x"\nreadme = "README.md"\n'
        'requires-python = ">=3.11"\ndependencies = ["sigma-kernel ~=0.1"]\n'
        '[project.entry-points."sigma_kernel.plugins"]\ngate = "acme_gate.plugin"\n'
    )
    assert main(["plugins", "check", str(tmp_path), "--json"]) == 3
    [problem] = json.loads(capsys.readouterr().out)["checks"]["imports"]
    assert problem.endswith(
        "write `from sigma_testing import LayerSuite` for `from sigma_kernel.testing import LayerSuite`."
    )
