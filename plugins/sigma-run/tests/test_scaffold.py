"""``sigma plugins new`` and ``check``: a plugin whose tests pass at once, and what a broken one is told.

The suite of the template ``transport`` starts dozens of processes: some of its tests run each time, all are long.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins import catalogue
from sigma_kernel.plugins.specs import KINDS
from sigma_run.launcher import main, project
from sigma_run.launcher.scaffold import FOLDER, SERIES, VARIANTS, Owner, create, kinds, templates

EACH_TIME = (  # of the suite of transports: a sum, a state that is copied, an error, a loss, the operator's death
    "test_any_number_of_workers_gives_the_same_bits[3]",
    "test_workers_join_with_the_state_of_others",
    "test_an_error_in_a_worker_ends_the_run_with_its_traceback",
    "test_a_worker_that_is_killed_changes_no_bits[1000]",
    "test_workers_end_after_the_operator",
)


def installed(made: Path) -> Path:
    """Make a project count as installed for processes with it on their path."""
    package = made.name.replace("-", "_")
    info = made / f"{package}-0.1.0.dist-info"
    info.mkdir()
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    needs = "".join(f"Requires-Dist: {one}\n" for one in project["dependencies"])
    (info / "METADATA").write_text(f"Name: {made.name}\nVersion: 0.1.0\n{needs}")
    entries = [
        line
        for group, rows in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in rows.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(entries))
    return made


def test_there_is_a_template_for_every_kind() -> None:
    assert {*kinds()} == {*KINDS}
    assert {*templates()} == {*KINDS, "cost", "joint-optimiser", "stateful-optimiser", "transform", "transport"}
    assert {*VARIANTS.values()} <= {*KINDS}


def test_a_new_plugin_of_any_kind_passes_its_tests_at_once(tmp_path: Path) -> None:
    alone = not catalogue.catalogue().offers(
        "layer", "dense"
    )  # a recipe trains with the layers of a room; a kernel is for a backend
    left_out = ("lowering", "recipe", "transport") if alone else ("transport",)  # the next test has the last one
    chosen = [kind for kind in templates() if kind not in left_out]
    made = [installed(create(tmp_path, f"acme-my-{kind}", kind, f"my_{kind.replace('-', '_')}")) for kind in chosen]
    assert count_passes(made) > 12 * len(made)


def test_new_plugins_whose_names_are_left_out_pass_their_tests(tmp_path: Path) -> None:
    kinds = ("augmentation", "encoder", "layer", "op")
    made = [installed(create(tmp_path, f"tt-{kind}", kind, "", summary=f"An {kind} of tests.")) for kind in kinds]
    assert count_passes(made) > 12 * len(made)


@pytest.mark.parametrize("names", [EACH_TIME, pytest.param((), marks=pytest.mark.long)], ids=["some", "all"])
def test_a_new_transport_passes_its_suite(names: Sequence[str], tmp_path: Path) -> None:
    made = installed(create(tmp_path, "acme-my-transport", "transport", "my_transport"))
    suite = f"{made}/tests/test_my_transport.py"
    chosen = [f"{suite}::TestMyTransport::{name}" for name in names] or [suite]
    assert count_passes([made], f"{made}/tests/test_plugin.py", *chosen) > len(chosen) + 8


def count_passes(made: Sequence[Path], *tests: str) -> int:
    """Return how many tests of new projects pass, or how many of some of their tests; fail unless all do."""
    path = os.pathsep.join([*map(str, made), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--import-mode=importlib"]
    done = subprocess.run(
        [*command, *(tests or map(str, made))],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=made[0].parent,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return int(done.stdout.rpartition(" passed")[0].split()[-1])


def test_the_component_is_called_like_the_last_word_of_the_distribution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "new", "sigma-soft-gate", "--folder", str(tmp_path)]) == 0
    made = tmp_path / "sigma-soft-gate"
    assert capsys.readouterr().err == (
        f"wrote {made}; next: cd {made} && python -m pip install -e '.[test]' && python -m pytest\n"
        "its metadata name https://github.com/sigma/sigma-soft-gate; --repository names another address\n"
    )
    assert "class Gate(Layer):" in (made / "sigma_soft_gate" / "gate.py").read_text()
    assert "${{ matrix.python-version }}" in (made / ".github" / "workflows" / "tests.yml").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["Acme"], "'Acme': not a name for a distribution. Use lower-case words and hyphens: acme-gate."),
        (["../acme"], "not a name for a distribution."),
        (["acme-gate", "--component", "my gate"], "'my gate': not a name for a component. Pass --component, such as"),
        (["acme-gate", "--component", "class"], "'class': not a name for a component."),
        (["acme-gate", "--component", "2"], "'2': not a name for a component."),
        (["json"], "'json': its package would hide Python's `json`. Choose another name, such as acme-json."),
        (["tests"], "'tests': its package would hide Python's `tests`."),
        (["attrs"], "'attrs': a distribution of this name is installed."),
        (["attr"], "'attr': its package would hide the installed module `attr`."),
        (["sigma-serve"], "'sigma-serve': a distribution of Sigma has this name. Choose another name, such as acme-"),
        (["sigma-kernel"], "'sigma-kernel': a distribution of Sigma has this name."),
        (
            ["acme-gate", "--component", "plugin"],
            "'plugin': every plugin has a module plugin.py. Pass --component with",
        ),
        (["acme-gate", "--component", "test"], "'test': pytest would take it for tests."),
        (["acme-gate", "--component", "context"], "'context': it would hide the `Context` that its module needs. Pass"),
        (["a", "--component", "chart", "--kind", "chart"], "'chart': it would hide the `Chart` that its module needs."),
        (["acme-gate", "--component", "exception"], "'exception': it would hide the `Exception` of Python."),
        (["a", "--component", "print", "--kind", "verb"], "'print': it would hide the `print` of Python."),
        (["acme-gate", "--component", "none"], "'none': not a name for a component."),
        (["a", "--component", "l", "--kind", "verb"], "'l': not a name for a component."),
        (
            ["acme-gate", "--summary", "No full stop"],
            "--summary 'No full stop': not a sentence of at most 102 characters",
        ),
        (
            ["acme-gate", "--summary", 'Say "x".'],
            "not a sentence of at most 102 characters without quotes and backslash",
        ),
        (["acme-gate", "--summary", f"A{102 * 'x'}."], "Write it as 'Multiply each feature by a trained number.'"),
        (["acme-gate", "--author", 'Jo "J"'], "--author 'Jo \"J\"': has quotes or control characters. Leave them out."),
        (["acme-gate", "--repository", "acme"], "--repository 'acme': not an address. Write https://HOST/OWNER/acme-"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    assert main(["plugins", "new", *given, "--folder", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("distribution", "kind", "component"),
    [
        *((f"tt-{kind.replace('_', '-')}", kind, None) for kind in templates()),
        ("tt-op", "op", "tt_op"),
        ("tt-augmentation", "augmentation", "tt_augmentation"),
        ("tt-layer", "layer", "tt_layer"),
        ("tt-context", "layer", "tt_context"),
        ("tt-wave", "layer", "wave"),
        ("sigma-context", "layer", "my_context"),
        ("tt-print", "verb", "tt_print"),
        ("acme-2", "layer", "acme_2"),
        ("acme-plugin", "hook", "acme_plugin"),
        ("test-op", "op", "my_op"),
        ("test-2", "op", "my_2"),
        ("none", "layer", "my_none"),
    ],
)
def test_a_component_without_a_name_gets_one_that_hides_nothing(
    tmp_path: Path, distribution: str, kind: str, component: str | None
) -> None:
    made = create(tmp_path, distribution, kind, "")
    [entry] = tomllib.loads((made / "pyproject.toml").read_text())["project"]["entry-points"]["sigma_kernel.plugins"]
    assert component in (None, entry)
    assert create(tmp_path / "again", distribution, kind, entry).is_dir()  # a name that may be given is not refused


def test_a_summary_stands_in_every_file_that_says_what_the_plugin_does(tmp_path: Path) -> None:
    text, places = "Add waves (Liu, 2020), x + sin²(a x) / a.", ("plugin.py", "wave.py")
    files = {path: tmp_path / "acme-wave" / "acme_wave" / path for path in places}
    assert main(["plugins", "new", "acme-wave", "--folder", str(tmp_path), "--summary", text]) == 0
    described = tomllib.loads((tmp_path / "acme-wave" / "pyproject.toml").read_text())["project"]["description"]
    module = ast.parse(files["wave.py"].read_text())
    [layer] = (one for one in module.body if isinstance(one, ast.ClassDef))
    assert [described, ast.get_docstring(module), ast.get_docstring(layer)] == 3 * [text]
    assert f'"{text}"' in files["plugin.py"].read_text()
    assert f"`wave`: {text}\n" in (tmp_path / "acme-wave" / "README.md").read_text()
    other = create(tmp_path, "acme-other", "layer", "")
    assert all(text not in path.read_text() for path in other.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", templates())
def test_the_longest_summary_breaks_no_line_and_no_text_of_a_template(tmp_path: Path, kind: str) -> None:
    text = f"A{100 * 'x'}."
    made = create(tmp_path, "acme-my-mine", kind, "", summary=text)
    sources = [file.read_text() for file in made.rglob("*.py")]
    assert sum(text in source for source in sources) >= 2
    assert max(len(line) for source in sources for line in source.splitlines()) <= 120
    own = (FOLDER / f"{kind}.txt").read_text().partition("\n")[0]
    assert own not in "".join(sources)


def test_a_new_plugin_can_be_published_as_it_stands(tmp_path: Path) -> None:
    made = create(tmp_path, "acme-gate", "layer", "", Owner("Jo Doe", "https://host/jo/gate/"))
    project = tomllib.loads((made / "pyproject.toml").read_text())
    described = project["project"]
    assert (described["license"], described["license-files"]) == ("MIT", ["LICENSE"])
    assert re.match(r"MIT License\n\nCopyright \(c\) 20\d\d Jo Doe\n", (made / "LICENSE").read_text())
    assert described["urls"] == {"Repository": "https://host/jo/gate", "Issues": "https://host/jo/gate/issues"}
    assert project["tool"]["flit"]["sdist"] == {"include": ["tests/"]}
    release = (made / ".github" / "workflows" / "release.yml").read_text()
    assert "id-token: write" in release
    assert "secrets" not in release
    assert "python -m pip install acme-gate" in (made / "README.md").read_text()
    assert "](" not in (made / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("gate_xxxxx", '            "layer", "gate_xxxxx", "acme'),
        ("gate_" + 20 * "x", '            "layer",\n            "gate_xx'),
    ],
)
def test_a_record_is_broken_as_a_formatter_would(tmp_path: Path, name: str, lines: str) -> None:
    text = (create(tmp_path, "acme-gate", "layer", name) / "acme_gate" / "plugin.py").read_text()
    assert f"        Component(\n{lines}" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_name_that_an_installed_plugin_offers_is_taken_only_on_purpose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = ["plugins", "new", "acme-dense", "--folder", str(tmp_path)]
    assert main(new) == 2
    assert "layer 'dense': sigma-layers offers it already. Pass --component" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []
    assert main([*new, "--kind", "hook"]) == 0
    assert main(["plugins", "new", "rival-dense", "--folder", str(tmp_path), "--component", "dense"]) == 0


def test_a_new_recipe_requires_the_rooms_that_it_prefers(tmp_path: Path) -> None:
    made = create(tmp_path, "acme-gate", "recipe", "")
    needed = tomllib.loads((made / "pyproject.toml").read_text())["project"]["dependencies"]
    text = (made / "acme_gate" / "gate_recipe.py").read_text()
    preferred = tomllib.loads(text.partition('"""\\\n')[2].partition('"""')[0])["run"]["prefer"]
    assert preferred[0] == "acme-gate"
    assert {one.partition(" ")[0] for one in needed} >= {*preferred[1:]} > {"sigma-layers"}


def test_nothing_is_overwritten_and_nothing_is_left_of_what_cannot_be_written(tmp_path: Path) -> None:
    create(tmp_path, "acme-gate", "layer", "")
    with pytest.raises(SigmaConfigError, match=r"acme-gate: already exists\. Choose another name\."):
        create(tmp_path, "acme-gate", "hook", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(SigmaConfigError, match=r"cannot be written: Not a directory\. Choose another --folder\."):
        create(tmp_path / "file", "acme-gate", "layer", "")


# -- check -------------------------------------------------------------------------------------------------------------
@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalogue: None) -> Path:
    made = installed(create(tmp_path, "acme-gate", "layer", "gate"))
    monkeypatch.syspath_prepend(made)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(made), os.environ.get("PYTHONPATH", "")]))
    catalogue._catalogue.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_gate"]:
        monkeypatch.delitem(sys.modules, name)
    return made


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def reports(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return the reports of all checks but that of the wheel, whose build needs a network."""
    monkeypatch.setattr(project, "wheel", lambda root, plugin: [])
    return dict(project.check_project(root))


@pytest.mark.long
def test_a_new_plugin_passes_every_check(
    gate: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(project, "wheel", lambda root, plugin: [])
    assert main(["plugins", "check", str(gate), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "ok": True,
        "checks": {
            w: [] for w in ("metadata", "installation", "requirements", "components", "conformance", "tests", "wheel")
        },
    }


BROKEN: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "no version": (
        lambda root: replace(root / "pyproject.toml", 'version = "0.1.0"\n', ""),
        "metadata", "pyproject.toml: [project] has no version. Add it.",
    ),
    "any kernel": (
        lambda root: replace(root / "pyproject.toml", f"sigma-kernel ~={SERIES}", "sigma-kernel"),
        "metadata", f'no dependency on a range of the kernel. Add "sigma-kernel ~={SERIES}".',
    ),
    "no entry point": (
        lambda root: replace(root / "pyproject.toml", "sigma_kernel.plugins", "others"),
        "metadata", "no entry point. Add [project.entry-points.",
    ),
    "another API": (
        lambda root: replace(root / "acme_gate" / "plugin.py", 'SIGMA_API = "1.0"', 'SIGMA_API = "2.0"'),
        "installation", "acme-gate: ",
    ),
    "no component": (
        lambda root: replace(root / "acme_gate" / "gate.py", "class Gate", "class Fence"),
        "components", "Gate",
    ),
    "heavy": (
        lambda root: replace(root / "acme_gate" / "plugin.py", "SIGMA_API", "import numpy\nSIGMA_API"),
        "conformance", "test_component_records_import_neither_numpy",
    ),
    "a failing test": (
        lambda root: (root / "tests" / "test_more.py").write_text("def test_it(): assert 0\n") and None,
        "tests", "FAILED tests/test_more.py::test_it",
    ),
}  # fmt: skip


@pytest.mark.long_cases("a failing test", "another API", "heavy")
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named_by_its_check(name: str, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, check, message = BROKEN[name]
    spoil(gate)
    found = reports(gate, monkeypatch)
    assert message in "\n".join(found[check]), found
    assert next(what for what, problems in found.items() if problems) == check


def test_a_plugin_that_is_not_installed_says_how(tmp_path: Path, fresh_catalogue: None) -> None:
    made = create(tmp_path, "acme-other", "layer", "")
    assert dict(project.check_project(made)) == {
        "metadata": [],
        "installation": [f"acme-other: not installed. Run `python -m pip install -e .` in {made}."],
    }


@pytest.mark.parametrize("builder", ["pip", "uv"])
@pytest.mark.parametrize(
    ("files", "problems"),
    [
        (["acme_gate/gate.py"], []),
        (["acme_gate/other.py"], ["acme.whl: does not contain acme_gate/gate.py."]),
        (["acme_gate/gate.py", "tests/test_a.py"], ["acme.whl: contains tests/test_a.py. Leave the tests out."]),
    ],
)
def test_a_wheel_holds_the_components_and_no_tests(
    gate: Path, monkeypatch: pytest.MonkeyPatch, builder: str, files: list[str], problems: list[str]
) -> None:
    commands: list[list[str]] = []

    def build(command: list[str], root: Path) -> list[str]:
        commands.append(command)
        folder = Path(command[command.index("--wheel-dir" if builder == "pip" else "--out-dir") + 1])
        with ZipFile(folder / "acme.whl", "w") as made:
            for name in files:
                made.writestr(name, "")
        return []

    monkeypatch.setattr(project, "find_spec", lambda name: "pip" if builder == "pip" else None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(project, "_run", build)
    assert project.wheel(gate, catalogue.catalogue().plugin("acme-gate")) == problems
    [command] = commands
    begin = [sys.executable, "-m", "pip", "wheel"] if builder == "pip" else ["/bin/uv", "build"]
    assert command[: len(begin)] == begin
    assert command[-1] == "."


def test_uv_knows_the_options_that_build_a_wheel(gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    commands: list[list[str]] = []
    monkeypatch.setattr(project, "find_spec", lambda name: None)
    monkeypatch.setattr(project, "_run", lambda command, root: commands.append(command) or ["stopped"])
    assert project.wheel(gate, catalogue.catalogue().plugin("acme-gate")) == ["stopped"]
    [[uv, *arguments]] = commands
    options = subprocess.run([uv, "build", "--help"], capture_output=True, text=True, check=True).stdout
    assert [word for word in arguments if word.startswith("--") and word not in options] == []


def test_a_wheel_needs_pip_or_uv(gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert project.wheel(gate, catalogue.catalogue().plugin("acme-gate")) == [
        "pip builds the wheel, and is not installed here. Run python -m ensurepip, or uv pip install pip."
    ]


def test_a_wheel_that_cannot_be_built_is_a_problem(gate: Path) -> None:
    (gate / "pyproject.toml").write_text("[")
    assert project.wheel(gate, catalogue.catalogue().plugin("acme-gate"))


def test_without_pytest_the_check_says_what_to_install(
    gate: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert main(["plugins", "check", str(gate)]) == 3
    assert capsys.readouterr().err.endswith("Install it: pip install pytest.\n")


@pytest.mark.parametrize("text", ["", "[project", "[tool]\n", 'project = "x"\n', None])
def test_a_directory_that_is_no_project_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert main(["plugins", "check", str(tmp_path)]) == 2
    assert "bug in Sigma" not in capsys.readouterr().err


def test_a_failed_check_ends_the_command_with_code_3(gate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(gate / "pyproject.toml", 'readme = "README.md"\n', "")
    assert main(["plugins", "check", str(gate)]) == 3
    assert capsys.readouterr().out == ("metadata      failed:\n    pyproject.toml: [project] has no readme. Add it.\n")
